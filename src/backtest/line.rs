//! One line of a backtest: what happened, in the words of the contract. Pure. Where it comes from is `gather`'s.

use chrono::{DateTime, SecondsFormat, Utc};
use serde::{Serialize, Serializer};
use serde_json::Value;

/// What happened.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum LineKind {
    /// An incident of a protected workflow opened.
    Page,
    /// It is still open, or grew.
    Reminder,
    /// Nobody acknowledged it.
    Escalation,
    /// It is over.
    Resolved,
    /// A digest went out.
    Digest,
    /// A digest waits for open hours.
    Hold,
    /// Somebody could have heard of an event, and did not.
    Suppress,
    /// A symptom began.
    SymptomFiring,
    /// A symptom ended.
    SymptomCleared,
    /// A failed item is kept.
    DeadLetterOpened,
    /// It is done with.
    DeadLetterResolved,
    /// A message could not be read.
    Quarantined,
}

/// One line. What does not apply is left out.
#[derive(Clone, Debug, Serialize)]
pub struct Line {
    /// When.
    #[serde(serialize_with = "instant")]
    pub at: DateTime<Utc>,
    /// What.
    pub kind: LineKind,
    /// Who hears: the name in config, `<receiver>:<mailbox>` for one owner of many.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub receiver: Option<String>,
    /// The pipeline.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub workflow: Option<String>,
    /// The incident.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub incident: Option<String>,
    /// The event, of what is decided about a single one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub event: Option<String>,
    /// The dead letter's item.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub item: Option<String>,
    /// The named reason.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// Name of the symptom.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub symptom: Option<String>,
    /// Its tier.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tier: Option<String>,
    /// Name of the digest.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub digest: Option<String>,
    /// First instant of its window.
    #[serde(skip_serializing_if = "Option::is_none", serialize_with = "maybe_instant")]
    pub window_start: Option<DateTime<Utc>>,
    /// First instant after it.
    #[serde(skip_serializing_if = "Option::is_none", serialize_with = "maybe_instant")]
    pub window_end: Option<DateTime<Utc>>,
    /// When it should go out.
    #[serde(skip_serializing_if = "Option::is_none", serialize_with = "maybe_instant")]
    pub due_at: Option<DateTime<Utc>>,
    /// Whether it came late.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub late: Option<bool>,
    /// Numbers of the footer, or of the incident.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub counts: Option<Value>,
    /// Subject, when it is a mail.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub subject: Option<String>,
    /// As plain text.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
}

impl Line {
    /// A line that says nothing but when and what.
    pub fn new(at: DateTime<Utc>, kind: LineKind) -> Self {
        Self {
            at,
            kind,
            receiver: None,
            workflow: None,
            incident: None,
            event: None,
            item: None,
            reason: None,
            symptom: None,
            tier: None,
            digest: None,
            window_start: None,
            window_end: None,
            due_at: None,
            late: None,
            counts: None,
            subject: None,
            text: None,
        }
    }
}

/// An instant as lines show it.
pub fn write_instant(at: DateTime<Utc>) -> String {
    at.to_rfc3339_opts(SecondsFormat::AutoSi, true)
}

fn instant<S: Serializer>(at: &DateTime<Utc>, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(&write_instant(*at))
}

fn maybe_instant<S: Serializer>(at: &Option<DateTime<Utc>>, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_some(&at.map(write_instant))
}
