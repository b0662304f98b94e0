//! What went wrong, as the API shows it: dead letters, incidents, unreadable messages.

use super::{At, stored_json};
use crate::incident::Incident;
use crate::store::letters::Letter;
use crate::store::stats::Quarantined;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::Serialize;
use serde_json::Value;
use utoipa::ToSchema;

/// A failed item that is kept until it is resolved.
#[derive(Debug, Serialize, ToSchema)]
pub struct LetterView {
    /// Its id.
    pub id: String,
    /// Pipeline.
    pub workflow: String,
    /// Step that failed.
    pub step: Option<String>,
    /// Business key.
    pub item: Option<String>,
    /// Kind of fault.
    pub class: String,
    /// Dependency that failed.
    pub downstream: Option<String>,
    /// Words of the fault.
    pub error_message: Option<String>,
    /// `v1:…`, the cause.
    pub fingerprint: String,
    /// First failure.
    pub failed_at: At,
    /// Arrival of the first.
    pub dead_lettered_at: At,
    /// Newest failure.
    pub last_failed_at: At,
    /// Tries that the pipeline made.
    pub attempt_count: i64,
    /// How often the item was given up.
    pub times: i64,
    /// When it was done with; null while it is open.
    pub resolved_at: Option<At>,
    /// What was done.
    pub resolution_note: Option<String>,
    /// Who did it.
    pub resolved_by: Option<String>,
    /// The item.
    #[schema(value_type = Object)]
    pub payload: Value,
    /// Whether it was over 64 KiB and cut.
    pub payload_cut: bool,
    /// Name to address.
    #[schema(value_type = Object)]
    pub links: Value,
    /// Incident it belongs to.
    pub incident: Option<String>,
    /// How often it was redriven.
    pub redrive_count: i64,
}

impl From<Letter> for LetterView {
    fn from(letter: Letter) -> Self {
        Self {
            id: letter.id.to_string(),
            workflow: letter.workflow,
            step: letter.step,
            item: letter.item,
            class: letter.class,
            downstream: letter.downstream,
            error_message: letter.error_message,
            fingerprint: letter.fingerprint,
            failed_at: At(letter.failed_at),
            dead_lettered_at: At(letter.dead_lettered_at),
            last_failed_at: At(letter.last_failed_at),
            attempt_count: letter.attempt_count,
            times: letter.times,
            resolved_at: letter.resolved_at.map(At),
            resolution_note: letter.resolution_note,
            resolved_by: letter.resolved_by,
            payload: letter.payload.as_deref().map_or(Value::Null, stored_json),
            payload_cut: letter.payload_cut,
            links: stored_json(&letter.links),
            incident: letter.incident_id.map(|id| id.to_string()),
            redrive_count: letter.redrive_count,
        }
    }
}

/// One cause on protected workflows.
#[derive(Debug, Serialize, ToSchema)]
pub struct IncidentView {
    /// Its id.
    pub id: String,
    /// The workflow that it began with.
    pub workflow: String,
    /// All workflows that it hit.
    pub workflows: Vec<String>,
    /// `money` or `compliance`.
    pub domain: &'static str,
    /// Kind of fault of its first failure; null when a symptom opened it.
    pub class: Option<&'static str>,
    /// Sentences of the symptoms that belong to it.
    pub symptoms: Vec<String>,
    /// `open`, `acknowledged` or `resolved`.
    pub state: &'static str,
    /// When the first failure arrived.
    pub opened_at: At,
    /// When the newest failure arrived.
    pub last_failure_at: At,
    /// When a person took it.
    pub acknowledged_at: Option<At>,
    /// Who took it.
    pub acknowledged_by: Option<String>,
    /// When it was over.
    pub resolved_at: Option<At>,
    /// Who said so; null when it resolved by itself.
    pub resolved_by: Option<String>,
    /// Final failures that belong to it.
    pub events: u64,
    /// Dead letters opened.
    pub items: u64,
    /// Pages sent about it.
    pub pages: u64,
    /// `#N` of its page.
    pub number: i64,
    /// Step of its first failure.
    pub step: Option<String>,
    /// Dependency that failed.
    pub downstream: Option<String>,
    /// Words of its first failure.
    pub error_message: Option<String>,
    /// Cause of its first failure.
    pub fingerprint: Option<String>,
}

impl From<Incident> for IncidentView {
    fn from(incident: Incident) -> Self {
        let (events, items) = (incident.event_count(), incident.item_count());
        let (class, sample) = (incident.sample.as_ref().map(|s| s.class.as_str()), incident.sample);
        let workflows: Vec<String> = incident.hits.iter().map(|h| h.workflow.to_string()).collect();
        Self {
            id: incident.id.0.to_string(),
            workflow: workflows.first().cloned().unwrap_or_default(),
            workflows,
            domain: incident.domain.as_str(),
            class,
            symptoms: incident.symptoms.into_iter().map(|s| s.text).collect(),
            state: incident.state.as_str(),
            opened_at: At(incident.opened_at),
            last_failure_at: At(incident.last_failure_at),
            acknowledged_at: incident.acknowledged_at.map(At),
            acknowledged_by: incident.acknowledged_by,
            resolved_at: incident.resolved_at.map(At),
            resolved_by: incident.resolved_by,
            events,
            items,
            pages: incident.page_count,
            number: incident.told.page_number,
            step: sample.as_ref().and_then(|s| s.step.clone()),
            downstream: sample.as_ref().and_then(|s| s.downstream.clone()),
            fingerprint: sample.as_ref().map(|s| s.fingerprint.0.to_string()),
            error_message: sample.and_then(|s| s.error.message),
        }
    }
}

/// A message that could not be read.
#[derive(Debug, Serialize, ToSchema)]
pub struct QuarantinedView {
    /// Its id.
    pub id: String,
    /// Stream that it came from.
    pub stream: String,
    /// Its place there.
    pub sequence: i64,
    /// Its subject.
    pub subject: String,
    /// List of name and value.
    #[schema(value_type = Object)]
    pub headers: Value,
    /// Stable word.
    pub reason: String,
    /// Sentence for a person.
    pub explanation: String,
    /// When JetStream stored it.
    pub received_at: At,
    /// Bytes.
    pub size: usize,
    /// The bytes.
    pub raw_base64: String,
}

impl From<Quarantined> for QuarantinedView {
    fn from(message: Quarantined) -> Self {
        Self {
            id: message.id.to_string(),
            stream: message.stream,
            sequence: message.sequence,
            subject: message.subject,
            headers: stored_json(&message.headers),
            reason: message.reason,
            explanation: message.explanation,
            received_at: At(message.received_at),
            size: message.raw.len(),
            raw_base64: STANDARD.encode(message.raw),
        }
    }
}
