//! What the API shows: one struct a thing, with the field names of the contract. Made from what the store gives; nothing is read here.

mod fault;
mod symptom;
mod told;

pub use fault::{IncidentView, LetterView, QuarantinedView};
pub use symptom::SymptomView;
pub use told::{DigestView, EntryView, TestView};

use super::input::At;
use crate::store::silences::StoredSilence;
use crate::store::stats::Totals;
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
