//! What the store says of a workflow's dead letters, handed in: a state that ends when they are resolved, never derived
//! from counts of failures.

use chrono::{DateTime, Utc};

/// The dead letters of one workflow that wait.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Standing {
    /// Unresolved ones.
    pub open_count: u64,
    /// The oldest unresolved one.
    pub oldest: Option<OldestLetter>,
    /// When one was last resolved.
    pub last_resolved_at: Option<DateTime<Utc>>,
    /// Where all of the unresolved ones failed, when that is one place.
    pub downstream: Option<String>,
    /// When they arrived, resolved ones too, in any order; only needed for `dead_letter_rate`, as far back as its window.
    pub arrivals: Vec<DateTime<Utc>>,
}

/// The dead letter that waits longest.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OldestLetter {
    /// When it first failed.
    pub failed_at: DateTime<Utc>,
    /// Its item, else its step: `order-1041`.
    pub name: String,
}
