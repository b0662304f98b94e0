//! Talking to a running service, and saying in words when that does not work. What is asked is each command's.

use super::Failure;
use super::args::Service;
use reqwest::{Method, RequestBuilder, StatusCode};
use serde_json::{Value, json};
use std::net::IpAddr;
use std::time::Duration;
use url::{Host, Url};

/// How long the service may take to take a connection, and to answer.
const CONNECT_WITHIN: Duration = Duration::from_secs(2);
const ANSWER_WITHIN: Duration = Duration::from_secs(40);
/// Items of one part of a list.
const PART: u32 = 500;

/// Why the service did not do what was asked.
#[derive(Debug, thiserror::Error)]
pub(super) enum ClientError {
    /// Nothing answers there, or not as a Matins would.
    #[error("the service at {url} does not answer ({why}); is `matins serve` running there, or do you need --url?")]
    Away {
        /// Where it was looked for.
        url: String,
        /// Why not.
        why: String,
    },
    /// It said no.
    #[error("{why}")]
    Refused {
        /// HTTP status.
        status: StatusCode,
        /// Its words.
        why: String,
    },
}

/// A way to one service.
#[derive(Debug)]
pub(super) struct Client {
    http: reqwest::Client,
    base: Url,
    token: Option<String>,
}

impl Client {
    pub(super) fn new(service: &Service) -> Result<Self, Failure> {
        let wrong = |why: String| Failure::Usage(format!("--url {:?} can't be used: {why}", service.url));
        let base = Url::parse(&service.url).map_err(|e| wrong(e.to_string()))?;
        if !matches!(base.scheme(), "http" | "https") {
            return Err(wrong("it must begin with http:// or https://".to_owned()));
        }
        let mut builder = reqwest::Client::builder()
            .connect_timeout(CONNECT_WITHIN)
            .timeout(ANSWER_WITHIN)
            .redirect(reqwest::redirect::Policy::none());
        if is_here(&base) {
            // A proxy can't reach this machine's own loopback.
            builder = builder.no_proxy();
        }
        Ok(Self { http: builder.build()?, base, token: service.token.clone() })
    }

    fn request(&self, method: Method, path: &str) -> RequestBuilder {
        let mut url = self.base.clone();
        url.set_path(&format!("{}{path}", self.base.path().trim_end_matches('/')));
        let request = self.http.request(method, url);
        match &self.token {
            Some(token) => request.bearer_auth(token),
            None => request,
        }
    }

    async fn send(&self, request: RequestBuilder) -> Result<Vec<u8>, ClientError> {
        let away = |why: String| ClientError::Away { url: self.base.to_string(), why };
        let response = request.send().await.map_err(|e| away(cause(&e)))?;
        let status = response.status();
        let body = response.bytes().await.map_err(|e| away(cause(&e)))?;
        if status.is_success() {
            return Ok(body.to_vec());
        }
        match serde_json::from_slice::<Value>(&body) {
            Ok(answer) if answer["error"].is_string() => Err(ClientError::Refused { status, why: refusal(&answer) }),
            Ok(_) | Err(_) => Err(away(format!("it answered {status}"))),
        }
    }

    /// The bytes of something.
    pub(super) async fn bytes(&self, path: &str, query: &[(&str, String)]) -> Result<Vec<u8>, ClientError> {
        self.send(self.request(Method::GET, path).query(query)).await
    }

    /// One thing.
    pub(super) async fn get(&self, path: &str) -> Result<Value, ClientError> {
        self.read(&self.bytes(path, &[]).await?)
    }

    /// At most `max` items of a list, newest first, and whether there are more.
    pub(super) async fn items(
        &self,
        path: &str,
        filter: &[(&str, String)],
        max: usize,
    ) -> Result<(Vec<Value>, bool), ClientError> {
        let mut items = Vec::new();
        let mut cursor: Option<String> = None;
        loop {
            let mut query = filter.to_vec();
            query.push(("limit", PART.min(u32::try_from(max).unwrap_or(PART)).to_string()));
            query.extend(cursor.map(|cursor| ("cursor", cursor)));
            let mut part = self.read(&self.bytes(path, &query).await?)?;
            if let Value::Array(some) = part["items"].take() {
                items.extend(some);
            }
            cursor = part["next"].as_str().map(str::to_owned);
            if items.len() >= max || cursor.is_none() {
                let more = items.len() > max || cursor.is_some();
                items.truncate(max);
                return Ok((items, more));
            }
        }
    }

    /// Asks for something to be done.
    pub(super) async fn post(&self, path: &str, body: &Value) -> Result<Value, ClientError> {
        self.read(&self.send(self.request(Method::POST, path).json(body)).await?)
    }

    /// Ends something.
    pub(super) async fn delete(&self, path: &str) -> Result<Value, ClientError> {
        self.read(&self.send(self.request(Method::DELETE, path)).await?)
    }

    fn read(&self, body: &[u8]) -> Result<Value, ClientError> {
        serde_json::from_slice(body)
            .map_err(|_| ClientError::Away { url: self.base.to_string(), why: "its answer is no JSON".to_owned() })
    }
}

/// A path with an id in it, whatever the id holds.
pub(super) fn path(list: &str, id: &str, action: &str) -> String {
    let safe: String = url::form_urlencoded::byte_serialize(id.as_bytes()).collect();
    format!("/api/v1/{list}/{}{action}", safe.replace('+', "%20"))
}

fn is_here(base: &Url) -> bool {
    match base.host() {
        Some(Host::Ipv4(ip)) => IpAddr::from(ip).is_loopback(),
        Some(Host::Ipv6(ip)) => IpAddr::from(ip).is_loopback(),
        Some(Host::Domain(name)) => name == "localhost",
        None => false,
    }
}

/// The words of an answer, with one line for each event that was refused.
fn refusal(answer: &Value) -> String {
    let mut words = answer["error"].as_str().unwrap_or_default().to_owned();
    for item in answer["items"].as_array().unwrap_or(&Vec::new()) {
        words.push_str(&format!("\n  {}", item["reason"].as_str().unwrap_or_default()));
    }
    words
}

/// The innermost reason: "connection refused" says more than "error sending request".
fn cause(error: &dyn std::error::Error) -> String {
    let mut error = error;
    while let Some(source) = error.source() {
        error = source;
    }
    error.to_string()
}

/// Body of an action by a person.
pub(super) fn by(person: super::args::Person) -> Value {
    json!({ "by": person.by })
}
