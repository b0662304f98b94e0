//! What people were told, as the API shows it: messages, digests, tests of receivers.

use super::{At, stored_json};
use crate::outbox::{Entry, EntrySummary};
use crate::store::ledger::DigestRow;
use serde::Serialize;
use serde_json::Value;
use utoipa::ToSchema;

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
    /// Whom to; `<receiver>:<mailbox>` for an owner's own.
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
