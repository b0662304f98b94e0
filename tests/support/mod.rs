//! Real servers for tests: one that plays Slack, a mail server, NATS. What they are asked is kept; how they answer is scripted.
#![allow(dead_code, reason = "each test file uses its own part of the support")]
#![allow(clippy::unwrap_used, reason = "a server of a test that does not work fails the test")]

pub mod app;
pub mod nats;
pub mod settings;
pub mod slack;
pub mod smtp;

use std::time::Duration;

/// Longest wait of a test for something that must happen.
pub const PATIENCE: Duration = Duration::from_secs(30);

/// Makes TLS ready, as `main` does.
pub fn install_tls() {
    // A second test in the same process finds it done.
    drop(rustls::crypto::ring::default_provider().install_default());
}

/// Sends a signal to one process.
pub fn signal(pid: u32, name: &str) {
    let sent = std::process::Command::new("sh").arg("-c").arg(format!("kill -{name} {pid}")).status().unwrap();
    assert!(sent.success(), "SIG{name} could not be sent to {pid}");
}

/// Asks until there is an answer; fails the test when there is none in time.
pub async fn eventually<T>(what: &str, mut ask: impl AsyncFnMut() -> Option<T>) -> T {
    let deadline = tokio::time::Instant::now() + PATIENCE;
    loop {
        if let Some(answer) = ask().await {
            return answer;
        }
        assert!(tokio::time::Instant::now() < deadline, "waited in vain: {what}");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}
