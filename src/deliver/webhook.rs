//! Webhooks: the view as JSON, by POST. Whether it was taken is read in `outcome`.

use super::http::Http;
use super::outcome;
use crate::outbox::{Entry, Outcome};
use chrono::{DateTime, Utc};
use reqwest::header::{HeaderMap, HeaderName, HeaderValue};
use secrecy::SecretString;
use serde_json::Value;

/// Posts the view. `Idempotency-Key` is the same for every try, so that a receiver can tell a repeat.
pub async fn send(http: &Http, url: &SecretString, entry: &Entry, view: &Value, now: DateTime<Utc>) -> Outcome {
    let mut headers = HeaderMap::new();
    if let Ok(key) = HeaderValue::from_str(&idempotency_key(entry)) {
        headers.insert(HeaderName::from_static("idempotency-key"), key);
    }
    headers.insert(HeaderName::from_static("matins-kind"), HeaderValue::from_static(entry.new.kind.as_str()));
    match http.post(url, headers, view.to_string().into_bytes()).await {
        Ok(answer) => outcome::webhook(answer.reply(), now),
        Err(outcome) => outcome,
    }
}

/// `matins-<entry>-<number>`
pub fn idempotency_key(entry: &Entry) -> String {
    format!("matins-{}-{}", entry.id.0, entry.new.number)
}
