//! Entry.
use std::process::ExitCode;

#[tokio::main]
async fn main() -> ExitCode {
    let _ = rustls::crypto::ring::default_provider().install_default();
    tracing_subscriber::fmt().with_writer(std::io::stderr).init();
    let path = std::env::args().nth(3).unwrap_or_default();
    matins::app::serve(std::path::Path::new(&path)).await
}
