//! JetStream advisories MAX_DELIVERIES and MSG_TERMINATED as events. They carry no payload: fetching the original by
//! its sequence is the work of whoever has a connection.

use super::{Native, lenient};
use crate::ingest::QuarantineReason;
use serde_json::{Map, Value, json};

/// Where a consumer gave up, as an advisory says it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Advisory {
    /// Exhausted, or terminated.
    pub kind: Kind,
    /// JetStream domain, when there is one.
    pub domain: Option<String>,
    /// Stream of the message.
    pub stream: String,
    /// Consumer that gave up.
    pub consumer: String,
    /// Sequence of the message in the stream.
    pub stream_seq: u64,
    /// How often it was delivered.
    pub deliveries: u64,
    /// Why it was terminated.
    pub reason: Option<String>,
}

/// What the server says of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Delivered as often as the consumer allows.
    MaxDeliveries,
    /// The consumer, or the server itself, gave it up.
    Terminated,
}

const PREFIX: &str = "io.nats.jetstream.advisory.";

/// Whether an object is an advisory of any kind.
pub fn is_advisory(fields: &Map<String, Value>) -> bool {
    fields.get("type").and_then(Value::as_str).is_some_and(|t| t.starts_with(PREFIX))
}

/// The advisory in an object; none when it is another kind, or lacks stream, consumer or sequence. Numbers may be text.
pub fn parse(fields: &Map<String, Value>) -> Option<Advisory> {
    let word = |key: &str| fields.get(key).and_then(Value::as_str).filter(|w| !w.is_empty()).map(str::to_owned);
    let kind = match word("type")?.strip_prefix(PREFIX)? {
        "v1.max_deliver" => Kind::MaxDeliveries,
        "v1.terminated" => Kind::Terminated,
        _ => return None,
    };
    Some(Advisory {
        kind,
        domain: word("domain"),
        stream: word("stream")?,
        consumer: word("consumer")?,
        stream_seq: fields.get("stream_seq").and_then(lenient::count)?,
        deliveries: fields.get("deliveries").and_then(lenient::count).unwrap_or(0),
        reason: word("reason"),
    })
}

impl Advisory {
    /// `js:<domain>:<stream>:<consumer>:<sequence>`: servers repeat an advisory with new ids, this stays. Whoever knows
    /// when the stream was created adds that, since a recreated stream counts from 1 again.
    pub fn id(&self) -> String {
        let domain = self.domain.as_deref().unwrap_or_default();
        format!("js:{domain}:{}:{}:{}", self.stream, self.consumer, self.stream_seq)
    }

    /// Whether the server itself dropped the message: its limits, a purge or a delete while it was being worked on.
    pub fn is_lost_by_server(&self) -> bool {
        let by_reason = match self.reason.as_deref() {
            Some(reason) => reason == "Unacknowledged message was deleted" || reason.starts_with("Message deleted by "),
            None => self.deliveries == 0,
        };
        self.kind == Kind::Terminated && by_reason
    }

    fn message(&self) -> String {
        let Self { stream, consumer, stream_seq, deliveries, .. } = self;
        let reason = self.reason.as_deref().map(|r| format!(": {r}")).unwrap_or_default();
        match self.kind {
            Kind::MaxDeliveries => {
                format!("consumer {consumer} gave up message {stream_seq} of {stream} after {deliveries} deliveries")
            }
            Kind::Terminated if self.is_lost_by_server() => {
                format!(
                    "the server dropped message {stream_seq} of {stream} before {consumer} was done with it{reason}"
                )
            }
            Kind::Terminated => format!("consumer {consumer} terminated message {stream_seq} of {stream}{reason}"),
        }
    }
}

/// Maps an advisory to native form: its workflow is the stream, its step the consumer, its item both and the sequence.
///
/// # Errors
/// `unsupported_advisory` for any other kind.
pub fn read(mut fields: Map<String, Value>) -> Result<Native, QuarantineReason> {
    let Some(advisory) = parse(&fields) else {
        let kind = fields.get("type").and_then(Value::as_str).unwrap_or_default();
        return Err(QuarantineReason::UnsupportedAdvisory { kind: kind.chars().take(80).collect() });
    };
    let kind = match advisory.kind {
        Kind::MaxDeliveries => "MaxDeliveries",
        Kind::Terminated => "MessageTerminated",
    };
    let time = fields.remove("timestamp").unwrap_or_default();
    let error = json!({ "type": kind, "message": advisory.message() });
    let item = format!("{}:{}", advisory.consumer, advisory.stream_seq);
    let mut native = Map::new();
    let mut set = |key: &str, value: Value| native.insert(key.to_owned(), value);
    if advisory.is_lost_by_server() {
        set("class", json!("catastrophic"));
    }
    set("workflow", json!(advisory.stream));
    set("step", json!(advisory.consumer));
    set("item", json!(item));
    set("occurred_at", time);
    set("disposition", json!("dead_lettered"));
    set("error", error);
    set("advisory", Value::Object(fields));
    Ok(Native { fields: native, id: Some(advisory.id()) })
}
