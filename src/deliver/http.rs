//! One POST, tried once: no redirect is followed and nothing is retried here. Addresses may be credentials, so errors name
//! the host alone.

use super::outcome::Reply;
use crate::outbox::Outcome;
use reqwest::header::{CONTENT_TYPE, HeaderMap, RETRY_AFTER};
use secrecy::{ExposeSecret, SecretString};
use std::error::Error as _;
use std::time::Duration;

/// Longest wait for an answer.
pub const ANSWER_TIMEOUT: Duration = Duration::from_secs(10);
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
/// Lines are kept open between messages, because a page should not wait for a handshake.
const IDLE_TIMEOUT: Duration = Duration::from_secs(90);
/// What is read of an answer, in bytes.
const BODY_MAX: usize = 16 * 1024;

/// The client, with its open lines. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Http(reqwest::Client);

/// An answer, read to its end or to its first kilobytes.
#[derive(Clone, Debug)]
pub struct Answer {
    status: u16,
    retry_after: Option<String>,
    body: String,
}

impl Answer {
    /// The answer as the outcome table reads it.
    pub fn reply(&self) -> Reply<'_> {
        Reply { status: self.status, retry_after: self.retry_after.as_deref(), body: &self.body }
    }
}

impl Http {
    /// A client that follows no redirects and retries nothing.
    ///
    /// # Errors
    /// When TLS can't be set up.
    pub fn new() -> Result<Self, reqwest::Error> {
        let client = reqwest::Client::builder()
            .user_agent(concat!("matins/", env!("CARGO_PKG_VERSION")))
            .redirect(reqwest::redirect::Policy::none())
            .retry(reqwest::retry::never())
            .http1_only()
            .connect_timeout(CONNECT_TIMEOUT)
            .timeout(ANSWER_TIMEOUT)
            .pool_idle_timeout(IDLE_TIMEOUT)
            .build()?;
        Ok(Self(client))
    }

    /// Posts JSON. What is not an answer is already an outcome: not sent, or sent with its answer lost.
    ///
    /// # Errors
    /// The outcome of a try without an answer.
    pub async fn post(&self, url: &SecretString, headers: HeaderMap, body: Vec<u8>) -> Result<Answer, Outcome> {
        let Ok(url) = url::Url::parse(url.expose_secret()) else {
            return Err(Outcome::Permanent { why: "the address in config is no URL".to_owned(), broken: true });
        };
        let host = url.host_str().unwrap_or("?").to_owned();
        let request = self.0.post(url).headers(headers).header(CONTENT_TYPE, "application/json").body(body);
        let mut response = request.send().await.map_err(|e| read_failure(e, &host))?;
        let status = response.status().as_u16();
        let retry_after = response.headers().get(RETRY_AFTER).and_then(|v| v.to_str().ok()).map(str::to_owned);
        let mut bytes = Vec::new();
        while bytes.len() < BODY_MAX {
            match response.chunk().await {
                Ok(Some(chunk)) => bytes.extend_from_slice(&chunk),
                Ok(None) => break,
                Err(e) => return Err(read_failure(e, &host)),
            }
        }
        bytes.truncate(BODY_MAX);
        Ok(Answer { status, retry_after, body: String::from_utf8_lossy(&bytes).into_owned() })
    }
}

fn read_failure(error: reqwest::Error, host: &str) -> Outcome {
    let error = error.without_url();
    if error.is_builder() {
        return Outcome::Permanent { why: "the address in config can't be used".to_owned(), broken: true };
    }
    if error.is_connect() {
        return Outcome::Retry { after: None, why: format!("can't connect to {host}: {}", root(&error)) };
    }
    if error.is_timeout() {
        return Outcome::Unsure { why: format!("no answer from {host} within {} s", ANSWER_TIMEOUT.as_secs()) };
    }
    Outcome::Unsure { why: format!("the answer of {host} was lost: {}", root(&error)) }
}

/// The innermost cause; the outer ones only say that a request failed.
fn root(error: &reqwest::Error) -> String {
    let mut cause = error.source();
    let mut text = error.to_string();
    while let Some(inner) = cause {
        text = inner.to_string();
        cause = inner.source();
    }
    text
}
