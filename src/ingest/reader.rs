//! The reader: one message in, one event or one reason out. It holds what config says of redaction and classes;
//! it keeps nothing between messages and knows no clock.

use super::QuarantineReason;
use super::classify::Classifier;
use super::decode;
use super::decode::native::{self, Reading};
use super::redact::Redactor;
use crate::config::{ClassifyRule, RedactSettings};
use crate::event::{Event, EventId};
use crate::fingerprint;
use chrono::{DateTime, SubsecRound, Utc};

/// A message as JetStream delivered it.
#[derive(Clone, Copy, Debug)]
pub struct Inbound<'a> {
    /// Subject that it was published on.
    pub subject: &'a str,
    /// Headers in their order; names in any case.
    pub headers: &'a [(String, String)],
    /// The body as it came.
    pub payload: &'a [u8],
    /// Name of the stream that stored it.
    pub stream: &'a str,
    /// Its sequence there.
    pub sequence: u64,
    /// When the stream stored it.
    pub received_at: DateTime<Utc>,
}

/// An event together with what the store keeps of its message.
#[derive(Clone, Debug, PartialEq)]
pub struct Decoded {
    /// What every decision is made from.
    pub event: Event,
    /// The redacted message in native form as JSON text, unknown fields included.
    pub body: String,
    /// Keyed hash of the raw message: tells another content under the same id.
    pub content_hash: u64,
}

/// What became of a message.
#[derive(Clone, Debug, PartialEq)]
pub enum DecodeOutcome {
    /// It is an event.
    Event(Box<Decoded>),
    /// It can't be read; its raw bytes are kept.
    Quarantine {
        /// Why not.
        reason: QuarantineReason,
    },
}

/// Reads messages: decode, redact, classify, fingerprint. Pure: the same message gives the same outcome.
#[derive(Debug)]
pub struct Reader {
    redactor: Redactor,
    classifier: Classifier,
}

impl Reader {
    /// A reader for one version of config. `key` is the store's redaction key: the same key keeps equal secrets equal.
    pub fn new(redact: &RedactSettings, classify: &[ClassifyRule], key: &[u8; 32]) -> Self {
        Self { redactor: Redactor::new(redact, key), classifier: Classifier::new(classify) }
    }

    /// A header as it may be kept and shown.
    pub fn redact_header(&self, name: &str, value: &str) -> String {
        let line = self.redactor.redact_text(&format!("{name}: {value}"));
        line.split_once(": ").map_or_else(String::new, |(_, value)| value.to_owned())
    }

    /// Reads one message. Never panics, whatever the bytes.
    pub fn read(&self, inbound: Inbound<'_>) -> DecodeOutcome {
        match self.try_read(&inbound) {
            Ok(decoded) => DecodeOutcome::Event(Box::new(decoded)),
            Err(reason) => DecodeOutcome::Quarantine { reason },
        }
    }

    fn try_read(&self, inbound: &Inbound<'_>) -> Result<Decoded, QuarantineReason> {
        let mut native = decode::decode(inbound)?;
        self.redactor.redact(&mut native.fields);
        let payload_cut = native.cut_payload(inbound.payload.len());
        // Strings as keys and values that are JSON already: writing them can't fail.
        let body = serde_json::to_string(&native.fields).unwrap_or_default();
        let Reading { mut event, id, said } = native::read(native.fields, inbound.received_at.trunc_subsecs(3))?;
        event.id = id.or(native.id).map_or_else(|| decode::fallback_id(inbound), |id| self.keep_id(id));
        event.payload_cut = payload_cut;
        let verdict = self.classifier.classify(&event, &said);
        event.class = verdict.class;
        event.class_rule = verdict.rule;
        event.disposition = verdict.disposition;
        event.fingerprint = fingerprint::of(&event);
        Ok(Decoded { event, body, content_hash: self.redactor.content_hash(inbound.payload) })
    }

    /// An id from a shape's own parts has not been through redaction: a source address may hold a password.
    fn keep_id(&self, id: String) -> EventId {
        decode::bounded_id(self.redactor.redact_id(id))
    }
}
