//! An HTTP server that plays Slack: answers `ok` and notes when each request came, where to, and with what.

use anyhow::Context;
use axum::Router;
use axum::extract::State;
use axum::http::Uri;
use bytes::Bytes;
use matins::clock;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

/// One request.
#[derive(Clone)]
pub struct Hit {
    pub at: Instant,
    pub path: String,
    pub body: Bytes,
}

/// The running server.
#[derive(Clone)]
pub struct Sink {
    port: u16,
    hits: Arc<Mutex<Vec<Hit>>>,
}

impl Sink {
    /// Starts on a free port of loopback.
    ///
    /// # Errors
    /// When no port can be had.
    pub async fn start() -> anyhow::Result<Self> {
        let listener = tokio::net::TcpListener::bind(("127.0.0.1", 0)).await.context("a port for the sink")?;
        let sink = Self { port: listener.local_addr()?.port(), hits: Arc::default() };
        let app = Router::new().fallback(take).with_state(sink.clone());
        tokio::spawn(async move { axum::serve(listener, app).await });
        Ok(sink)
    }

    /// The address of a receiver.
    pub fn url(&self, path: &str) -> String {
        format!("http://127.0.0.1:{}{path}", self.port)
    }

    /// What has come so far under a path.
    pub fn hits(&self, prefix: &str) -> Vec<Hit> {
        let hits = self.hits.lock().unwrap_or_else(PoisonError::into_inner);
        hits.iter().filter(|hit| hit.path.starts_with(prefix)).cloned().collect()
    }
}

async fn take(State(sink): State<Sink>, uri: Uri, body: Bytes) -> &'static str {
    let hit = Hit { at: clock::instant(), path: uri.path().to_owned(), body };
    sink.hits.lock().unwrap_or_else(PoisonError::into_inner).push(hit);
    "ok"
}
