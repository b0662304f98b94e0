//! How far intake has come, as a tick asks for it.

use chrono::{DateTime, Utc};
use std::collections::BTreeSet;

/// Intake has passed an instant, or is not waited for any longer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Passed {
    /// What is missing, as a sentence without full stop; none when nothing is.
    pub incomplete: Option<String>,
}

/// How far intake has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reached {
    /// Everything that happened before is known.
    pub at: DateTime<Utc>,
    /// NATS was away since this was last asked: nobody could be heard meanwhile.
    pub was_away: bool,
}

/// Knows how far intake has come.
pub trait Watermark {
    /// Looks how far intake is now. Asked once a tick, and only when a digest is due.
    fn refresh(&mut self) -> impl Future<Output = ()> + Send;
    /// Whether intake has passed `instant`, as far as the last look says; none while it is worth waiting.
    fn passed(&mut self, instant: DateTime<Utc>, now: DateTime<Utc>) -> Option<Passed>;
    /// Up to when everything that happened is known: symptoms are looked at as of then. None while that is not known.
    fn reached(&mut self, now: DateTime<Utc>) -> impl Future<Output = Option<Reached>> + Send;
    /// Forgets all instants but these: no digest waits for the others any more.
    fn keep_only(&mut self, waiting: &BTreeSet<DateTime<Utc>>);
}
