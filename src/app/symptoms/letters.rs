//! What is known of dead letters before the store is asked how they stand. Pure.

use crate::symptom::What;
use chrono::{DateTime, Utc};

/// Dead letters of a workflow that came or went since the store was asked.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Changed {
    pub opened_count: u64,
    pub due_at: Option<DateTime<Utc>>,
}

/// Whether a signal opens or repeats a dead letter, or may resolve one; none when it does neither.
pub(super) fn letter_comes(what: &What) -> Option<bool> {
    match what {
        What::Failure { letter, .. } => letter.is_some().then_some(true),
        What::Recovery { .. } | What::Resolved => Some(false),
        What::Runs { .. } | What::Totals { .. } | What::Heartbeat { .. } | What::Breaker { .. } | What::Alive => None,
    }
}
