//! Entry: arguments, logging, runtime. Everything else is in the library.

use clap::Parser as _;
use matins::cli::logging;
use matins::cli::{self, Cli};
use matins::config::environment;
use std::process::ExitCode;

fn main() -> ExitCode {
    // Before anything makes a TLS client. It fails only when one was chosen already.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let cli = Cli::parse();
    if let Some(voice) = cli.voice() {
        logging::start(voice, environment("MATINS_LOG_FORMAT").as_deref(), environment("RUST_LOG").as_deref());
    }
    let runtime = cli.runtime().build();
    match runtime {
        Ok(runtime) => runtime.block_on(cli::run(cli)),
        Err(error) => {
            eprintln!("matins: no threads to run on: {error}");
            ExitCode::FAILURE
        }
    }
}
