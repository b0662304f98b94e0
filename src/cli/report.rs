//! Handing an event over: to the service, and straight to NATS when the service is away. What the event says is each command's.

use super::Failure;
use super::args::{Fallback, Service};
use super::client::{Client, ClientError};
use crate::clock;
use crate::config::{self, NatsSettings};
use crate::ingest::jetstream;
use crate::web::subject_of;
use serde_json::{Map, Value, json};
use std::time::Duration;
use tokio::time::timeout;

/// How long the service, and then NATS, may take.
#[derive(Clone, Copy, Debug)]
pub(super) struct Patience {
    service: Duration,
    nats: Duration,
}

impl Patience {
    /// Somebody waits for the answer.
    pub(super) const LONG: Self = Self { service: Duration::from_secs(6), nats: Duration::from_secs(4) };
    /// A command that is over waits for its report.
    pub(super) const SHORT: Self = Self { service: Duration::from_secs(2), nats: Duration::from_secs(1) };
}

/// A way that an event took.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Way {
    /// The service took it.
    Service,
    /// NATS took it; the service reads it when it is back.
    Nats,
}

/// An event on its way; it has an id, so that a second try by the other way counts once.
pub(super) fn with_id(mut event: Map<String, Value>) -> Result<Value, Failure> {
    if !event.contains_key("id") {
        let bytes =
            clock::random_bytes::<16>().map_err(|_| anyhow::anyhow!("the system has no randomness for an id"))?;
        let id: String = bytes.iter().map(|b| format!("{b:02x}")).collect();
        event.insert("id".to_owned(), json!(format!("cli-{id}")));
    }
    if !event.contains_key("occurred_at") {
        event.insert("occurred_at".to_owned(), json!(clock::now().to_rfc3339()));
    }
    Ok(Value::Object(event))
}

/// Hands an event over within some seconds.
pub(super) async fn hand_over(
    service: &Service,
    fallback: &Fallback,
    event: &Value,
    patience: Patience,
) -> Result<Way, Failure> {
    let client = Client::new(service)?;
    let why = match timeout(patience.service, client.post("/api/v1/events", event)).await {
        Ok(Ok(_)) => return Ok(Way::Service),
        Ok(Err(ClientError::Refused { status, why })) if !status.is_server_error() => {
            return Err(anyhow::anyhow!(why).into());
        }
        Ok(Err(error)) => error.to_string(),
        Err(_) => format!("the service took over {} s", patience.service.as_secs()),
    };
    let settings = nats_settings(fallback)?;
    match timeout(patience.nats, publish(&settings, event)).await {
        Ok(Ok(())) => Ok(Way::Nats),
        Ok(Err(nats)) => Err(anyhow::anyhow!("{why}; NATS: {nats:#}").into()),
        Err(_) => {
            let (servers, seconds) = (places(&settings.urls).join(", "), patience.nats.as_secs());
            Err(anyhow::anyhow!("{why}; NATS at {servers} did not take it within {seconds} s").into())
        }
    }
}

/// Host and port of addresses: all else in them may be a secret.
fn places(urls: &[String]) -> Vec<String> {
    let place = |url: &String| {
        let url = url::Url::parse(url).ok()?;
        let port = url.port().map(|port| format!(":{port}")).unwrap_or_default();
        Some(format!("{}{port}", url.host_str()?))
    };
    urls.iter().map(|url| place(url).unwrap_or_else(|| "an address that can't be read".to_owned())).collect()
}

fn nats_settings(fallback: &Fallback) -> Result<NatsSettings, Failure> {
    if let Some(path) = &fallback.config {
        let loaded = config::load(path, &config::environment, clock::now());
        return Ok(loaded.map_err(|e| Failure::Usage(e.to_string()))?.config.nats);
    }
    let (url, auth) = config::apart_from_sign_in(&fallback.nats);
    Ok(NatsSettings {
        urls: vec![url],
        stream: "FAILURES".to_owned(),
        subjects: vec!["failures.>".to_owned()],
        durable: "matins".to_owned(),
        auth,
        tls_ca: None,
        tls_client: None,
        tls_required: false,
    })
}

async fn publish(settings: &NatsSettings, event: &Value) -> anyhow::Result<()> {
    let client = jetstream::connect(settings).await?;
    let subject = subject_of(&settings.subjects, event["workflow"].as_str().unwrap_or_default());
    jetstream::context(&client).publish(subject, event.to_string().into()).await?.await?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_an_address_only_host_and_port_are_printed() {
        let urls = ["nats://u:S3@h:4222/p?S3", "tls://h", "S3"].map(str::to_owned);
        assert_eq!(places(&urls), ["h:4222", "h", "an address that can't be read"]);
    }
}
