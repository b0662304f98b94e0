//! Spans of time in which events were lost for good, and how much of a window they leave covered.

use chrono::{DateTime, Utc};

/// [start, end): events of these instants never came in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Span {
    /// The first lost instant.
    pub start: DateTime<Utc>,
    /// The first instant after it.
    pub end: DateTime<Utc>,
}
