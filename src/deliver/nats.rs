//! Receivers on NATS: the view as JSON on a subject.

use super::webhook::idempotency_key;
use crate::outbox::{Entry, Outcome};
use async_nats::connection::State;
use async_nats::{Client, HeaderMap};
use serde_json::Value;
use std::time::Duration;

const FLUSH_TIMEOUT: Duration = Duration::from_secs(5);

/// Publishes the view and waits until the server has read it.
pub async fn send(client: Option<&Client>, subject: &str, entry: &Entry, view: &Value) -> Outcome {
    let retry = |why: &str| Outcome::Retry { after: None, why: why.to_owned() };
    // While the line is down a publish would be kept by the client and sent later, behind our back.
    let Some(client) = client.filter(|c| c.connection_state() == State::Connected) else {
        return retry("not connected to NATS");
    };
    let mut headers = HeaderMap::new();
    headers.insert("Nats-Msg-Id", idempotency_key(entry));
    headers.insert("Matins-Kind", entry.new.kind.as_str());
    let body = view.to_string().into_bytes();
    if client.publish_with_headers(subject.to_owned(), headers, body.into()).await.is_err() {
        return retry("NATS did not take the message");
    }
    match tokio::time::timeout(FLUSH_TIMEOUT, client.flush()).await {
        Ok(Ok(())) => Outcome::Delivered,
        Ok(Err(_)) | Err(_) => Outcome::Unsure { why: "NATS did not confirm the message".to_owned() },
    }
}
