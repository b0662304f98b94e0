//! A row of the outbox.

use crate::name::{ReceiverName, WorkflowName};
use crate::render::Content;
use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// Row number of an entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct EntryId(pub i64);

/// What a message is about; the stable word is used in API, metrics and NATS subjects.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum MessageKind {
    /// An incident of a protected workflow opened.
    Page,
    /// It is still open, or grew.
    Reminder,
    /// Nobody acknowledged it.
    Escalation,
    /// It is over.
    Resolved,
    /// A digest.
    Digest,
    /// What Matins says about itself.
    Operator,
    /// `matins receivers test`.
    Test,
}

impl MessageKind {
    /// Every kind.
    pub const ALL: [Self; 7] =
        [Self::Page, Self::Reminder, Self::Escalation, Self::Resolved, Self::Digest, Self::Operator, Self::Test];

    /// The stable word.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Page => "page",
            Self::Reminder => "reminder",
            Self::Escalation => "escalation",
            Self::Resolved => "resolved",
            Self::Digest => "digest",
            Self::Operator => "operator",
            Self::Test => "test",
        }
    }

    /// Reads the stable word.
    pub fn parse(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|k| k.as_str() == word)
    }

    /// Whether somebody is woken by it: it is tried again within seconds, and prefers being told twice to not at all.
    pub fn is_urgent(self) -> bool {
        match self {
            Self::Page | Self::Escalation => true,
            Self::Reminder | Self::Resolved | Self::Digest | Self::Operator | Self::Test => false,
        }
    }

    /// Order of delivery: pages go first.
    pub fn priority(self) -> i64 {
        match self {
            Self::Page => 0,
            Self::Escalation => 1,
            Self::Reminder | Self::Resolved => 2,
            Self::Operator | Self::Test => 3,
            Self::Digest => 4,
        }
    }
}

/// State of an entry (CONTRACT 8).
///
/// ```text
/// pending ──claim──► pending (leased) ──settle──► sent
///    ▲                      │  │  └──► unsure   taken or not, nobody knows; the one repeat is used up
///    └──── retry, lease lost┘  └─────► dead     refused for good; its fallback, if any, was enqueued
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum State {
    /// To be sent at `due_at`, or on its way.
    Pending,
    /// The receiver confirmed it.
    Sent,
    /// It may have arrived; it is not sent again.
    Unsure,
    /// Given up.
    Dead,
}

impl State {
    /// The stable word.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Pending => "pending",
            Self::Sent => "sent",
            Self::Unsure => "unsure",
            Self::Dead => "dead",
        }
    }

    /// Reads the stable word.
    pub fn parse(word: &str) -> Option<Self> {
        [Self::Pending, Self::Sent, Self::Unsure, Self::Dead].into_iter().find(|s| s.as_str() == word)
    }
}

/// A message that a decision asks for; written in the transaction of that decision.
#[derive(Clone, Debug, PartialEq)]
pub struct NewEntry {
    /// `#N` in the message; a fallback copy keeps the number of the original.
    pub number: i64,
    /// What it is about.
    pub kind: MessageKind,
    /// Whom to.
    pub receiver: ReceiverName,
    /// The mailbox, when the receiver stands for owners.
    pub address: Option<String>,
    /// The workflow it speaks of; the first when there are several.
    pub workflow: Option<WorkflowName>,
    /// The incident it belongs to.
    pub incident_id: Option<i64>,
    /// The digest it carries.
    pub digest_id: Option<i64>,
    /// Folder of its template: `page`, `digest-daily` …
    pub template: String,
    /// What it was rendered from; kept to render it for a fallback receiver.
    pub view: Value,
    /// What is sent.
    pub content: Content,
    /// The entry that this one stands in for.
    pub fallback_of: Option<EntryId>,
    /// Not before.
    pub due_at: DateTime<Utc>,
    /// When it was decided.
    pub created_at: DateTime<Utc>,
}

/// A stored entry.
#[derive(Clone, Debug, PartialEq)]
pub struct Entry {
    /// Its row.
    pub id: EntryId,
    /// What was asked for.
    pub new: NewEntry,
    /// Where it stands.
    pub state: State,
    /// Tries begun, over restarts.
    pub attempts: u32,
    /// When the last try ended well.
    pub sent_at: Option<DateTime<Utc>>,
    /// Why the last try failed; free of secrets.
    pub last_error: Option<String>,
    /// Tries whose result nobody knows.
    pub unsure_attempts: u32,
    /// The entry that stands in for this one.
    pub fallback_id: Option<EntryId>,
}

/// A row as lists show it (CONTRACT 8), without view and content.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct EntrySummary {
    /// Its row.
    pub id: EntryId,
    /// `#N` in the message.
    pub number: i64,
    /// What it is about.
    pub kind: MessageKind,
    /// Whom to.
    pub receiver: ReceiverName,
    /// The mailbox, when the receiver stands for owners.
    pub address: Option<String>,
    /// The workflow it speaks of.
    pub workflow: Option<WorkflowName>,
    /// Where it stands.
    pub state: State,
    /// The named reason of that state, where it is not plain success.
    pub reason: Option<String>,
    /// Tries begun, over restarts.
    pub attempts: u32,
    /// Not before.
    pub due_at: DateTime<Utc>,
    /// When it was decided.
    pub created_at: DateTime<Utc>,
    /// When the last try ended well.
    pub sent_at: Option<DateTime<Utc>>,
    /// Why the last try failed; free of secrets.
    pub last_error: Option<String>,
    /// The entry that it stands in for.
    pub fallback_of: Option<EntryId>,
    /// The entry that stands in for it.
    pub fallback_id: Option<EntryId>,
}
