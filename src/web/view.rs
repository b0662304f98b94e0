//! What the API shows: one struct a thing, with the field names of the contract. Made from what the store gives; nothing is read here.

use super::input::At;
use crate::incident::Incident;
use crate::outbox::{Entry, EntrySummary};
use crate::store::ledger::DigestRow;
use crate::store::letters::Letter;
use crate::store::silences::StoredSilence;
use crate::store::stats::{Quarantined, Totals};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use chrono::{DateTime, Utc};
use serde::Serialize;
use serde_json::{Value, json};
use utoipa::ToSchema;

/// What the service counts of itself.
#[derive(Debug, Serialize, ToSchema)]
pub struct StatsView {
    /// Events, each counted once.
    pub events: i64,
    /// Events that were published again.
    pub duplicates: i64,
    /// Messages that can't be read.
    pub quarantined: i64,
    /// Arrival of the newest committed message; null before the first.
    pub watermark: Option<At>,
    /// Messages of the stream that are not committed yet.
    pub lag: u64,
}

impl StatsView {
    /// From totals and lag.
    pub fn new(totals: &Totals, lag: u64) -> Self {
        Self {
            events: totals.events,
            duplicates: totals.duplicates,
            quarantined: totals.quarantined,
            watermark: totals.watermark.map(At),
            lag,
        }
    }
}

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
    /// Kind of fault of its first failure.
    pub class: &'static str,
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
    pub fingerprint: String,
}

impl From<Incident> for IncidentView {
    fn from(incident: Incident) -> Self {
        let (events, items) = (incident.event_count(), incident.item_count());
        let sample = incident.sample;
        let workflows: Vec<String> = incident.hits.iter().map(|h| h.workflow.to_string()).collect();
        Self {
            id: incident.id.0.to_string(),
            workflow: workflows.first().cloned().unwrap_or_else(|| sample.workflow.to_string()),
            workflows,
            domain: incident.domain.as_str(),
            class: sample.class.as_str(),
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
            step: sample.step,
            downstream: sample.downstream,
            error_message: sample.error.message,
            fingerprint: sample.fingerprint.0,
        }
    }
}

/// A message to somebody, and what became of it.
#[derive(Debug, Serialize, ToSchema)]
pub struct EntryView {
    /// Its id.
    pub id: String,
    /// `#N` in the message.
    pub number: i64,
    /// `page`, `reminder`, `digest` …
    pub kind: &'static str,
    /// Whom to.
    pub receiver: String,
    /// The mailbox, when the receiver stands for owners.
    pub address: Option<String>,
    /// The workflow it speaks of.
    pub workflow: Option<String>,
    /// `pending`, `sent`, `unsure` or `dead`.
    pub state: &'static str,
    /// The named reason of that state, where it is not plain success.
    pub reason: Option<String>,
    /// Tries begun.
    pub attempts: u32,
    /// Not before.
    pub due_at: At,
    /// When it was decided.
    pub created_at: At,
    /// When the last try ended well.
    pub sent_at: Option<At>,
    /// Why the last try failed.
    pub last_error: Option<String>,
    /// The message that it stands in for.
    pub fallback_of: Option<String>,
    /// The message that stands in for it.
    pub fallback_id: Option<String>,
    /// What is sent; only where one message is asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Object>)]
    pub content: Option<Value>,
}

impl From<EntrySummary> for EntryView {
    fn from(entry: EntrySummary) -> Self {
        Self {
            id: entry.id.0.to_string(),
            number: entry.number,
            kind: entry.kind.as_str(),
            receiver: entry.receiver.to_string(),
            address: entry.address,
            workflow: entry.workflow.map(|w| w.to_string()),
            state: entry.state.as_str(),
            reason: entry.reason,
            attempts: entry.attempts,
            due_at: At(entry.due_at),
            created_at: At(entry.created_at),
            sent_at: entry.sent_at.map(At),
            last_error: entry.last_error,
            fallback_of: entry.fallback_of.map(|id| id.0.to_string()),
            fallback_id: entry.fallback_id.map(|id| id.0.to_string()),
            content: None,
        }
    }
}

impl EntryView {
    /// The same with what is sent.
    pub fn with_content(self, entry: &Entry) -> Self {
        Self { content: serde_json::to_value(&entry.new.content).ok(), ..self }
    }
}

/// A told window of a digest.
#[derive(Debug, Serialize, ToSchema)]
pub struct DigestView {
    /// Its id.
    pub id: String,
    /// Name of the digest.
    pub digest: String,
    /// Whom to; `owner:<mailbox>` for an owner's own.
    pub receiver: String,
    /// Start of the window.
    pub window_start: At,
    /// End of the window, not inside.
    pub window_end: At,
    /// When it should have gone out.
    pub due_at: At,
    /// When it was composed.
    pub composed_at: At,
    /// `enqueued`, or `skipped` when it was empty.
    pub state: String,
    /// Whether it came late.
    pub late: bool,
    /// What was missing.
    pub incomplete: Option<String>,
    /// `#N` in the message.
    pub number: Option<i64>,
    /// `received`, `listed`, `folded`, `silenced` by id, `paged`.
    #[schema(value_type = Object)]
    pub counts: Value,
    /// All that it was made from; only where one is asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Object>)]
    pub view: Option<Value>,
}

impl From<DigestRow> for DigestView {
    fn from(row: DigestRow) -> Self {
        Self {
            id: row.id.to_string(),
            digest: row.digest,
            receiver: row.receiver,
            window_start: At(row.window_start),
            window_end: At(row.window_end),
            due_at: At(row.due_at),
            composed_at: At(row.composed_at),
            state: row.state,
            late: row.late,
            incomplete: row.incomplete,
            number: row.number,
            counts: stored_json(&row.counts),
            view: None,
        }
    }
}

impl DigestView {
    /// With all that it was made from.
    pub fn whole(row: DigestRow) -> Self {
        let view = Some(stored_json(&row.view));
        Self { view, ..Self::from(row) }
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

/// A symptom that fires or has fired.
#[derive(Debug, Serialize, ToSchema)]
pub struct SymptomView {
    /// Its name.
    pub symptom: String,
    /// `burn_rate`, `absence` …
    pub kind: String,
    /// The workflow it speaks of.
    pub workflow: Option<String>,
    /// Of `burn_rate`: the tier.
    pub tier: Option<String>,
    /// `firing` or `clear`.
    pub state: String,
    /// Since when.
    pub since: At,
    /// What was measured.
    pub value: Option<f64>,
    /// A sentence with numbers.
    pub text: String,
}

/// A silence that a person asked for.
#[derive(Debug, Serialize, ToSchema)]
pub struct SilenceView {
    /// `S-7`.
    pub id: String,
    /// `active`, `expired`, or `pending` before it begins.
    pub state: &'static str,
    /// What it hides.
    #[schema(value_type = Object)]
    pub r#match: Value,
    /// When it began.
    pub since: At,
    /// When it ends.
    pub until: At,
    /// Why.
    pub reason: String,
    /// Who asked for it.
    pub by: String,
    /// Whether it may hide protected workflows.
    pub protected: bool,
}

impl SilenceView {
    /// As it stands at `now`.
    pub fn new(silence: StoredSilence, now: DateTime<Utc>) -> Self {
        let new = silence.new;
        let state = match (new.since <= now, now < new.until) {
            (_, false) => "expired",
            (true, true) => "active",
            (false, true) => "pending",
        };
        Self {
            id: format!("S-{}", silence.id),
            state,
            r#match: new.matcher,
            since: At(new.since),
            until: At(new.until),
            reason: new.reason,
            by: new.by,
            protected: new.protected,
        }
    }
}

/// How a test of a receiver ended.
#[derive(Debug, Serialize, ToSchema)]
pub struct TestView {
    /// Who was tested.
    pub receiver: String,
    /// `sent`, `unsure`, `dead`; `pending` when it is still being tried.
    pub state: &'static str,
    /// `#N` in the message.
    pub number: i64,
    /// Tries begun.
    pub attempts: u32,
    /// Why the last try failed.
    pub last_error: Option<String>,
}

/// Events that were stored.
#[derive(Debug, Serialize, ToSchema)]
pub struct AcceptedView {
    /// How many.
    pub accepted: usize,
}

/// An action that has nothing else to show.
#[derive(Debug, Serialize, ToSchema)]
pub struct DoneView {
    /// What was done.
    pub done: &'static str,
}

/// JSON that was stored as text; text that is none is shown as it is.
fn stored_json(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_else(|_| json!(text))
}
