//! Handing an event over: to the service, and straight to NATS when the service is away. What the event says is each command's.

use super::Failure;
use super::args::{Fallback, Service};
use super::client::{Client, ClientError};
use crate::clock;
use crate::config::{self, NatsAuth, NatsSettings};
use crate::ingest::jetstream;
use crate::web::subject_of;
use serde_json::{Map, Value, json};
use std::time::Duration;
use tokio::time::timeout;

/// How long the service, and then NATS, may take.
const SERVICE_WITHIN: Duration = Duration::from_secs(6);
const NATS_WITHIN: Duration = Duration::from_secs(4);

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
pub(super) async fn hand_over(service: &Service, fallback: &Fallback, event: &Value) -> Result<Way, Failure> {
    let client = Client::new(service)?;
    let why = match timeout(SERVICE_WITHIN, client.post("/api/v1/events", event)).await {
        Ok(Ok(_)) => return Ok(Way::Service),
        Ok(Err(ClientError::Refused { status, why })) if !status.is_server_error() => {
            return Err(anyhow::anyhow!(why).into());
        }
        Ok(Err(error)) => error.to_string(),
        Err(_) => format!("the service at {} took over 6 s", service.url),
    };
    let settings = nats_settings(fallback)?;
    match timeout(NATS_WITHIN, publish(&settings, event)).await {
        Ok(Ok(())) => Ok(Way::Nats),
        Ok(Err(nats)) => Err(anyhow::anyhow!("{why}; NATS: {nats:#}").into()),
        Err(_) => Err(anyhow::anyhow!("{why}; NATS at {} did not take it within 4 s", settings.urls.join(", ")).into()),
    }
}

fn nats_settings(fallback: &Fallback) -> Result<NatsSettings, Failure> {
    if let Some(path) = &fallback.config {
        let loaded = config::load(path, &config::environment, clock::now());
        return Ok(loaded.map_err(|e| Failure::Usage(e.to_string()))?.config.nats);
    }
    Ok(NatsSettings {
        urls: vec![fallback.nats.clone()],
        stream: "FAILURES".to_owned(),
        subjects: vec!["failures.>".to_owned()],
        durable: "matins".to_owned(),
        auth: NatsAuth::None,
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
