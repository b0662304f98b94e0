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

/// Holes in what came in, in whole seconds: sorted, apart from each other.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Holes(Vec<(i64, i64)>);

impl Holes {
    /// Of lost spans, in any order.
    pub fn of(spans: &[Span]) -> Self {
        let seconds = |span: &Span| {
            let end = span.end.timestamp() + i64::from(span.end.timestamp_subsec_nanos() > 0);
            (span.start.timestamp(), end)
        };
        Self::joined(spans.iter().map(seconds).collect())
    }

    /// These and others.
    pub fn with(&self, others: impl Iterator<Item = (i64, i64)>) -> Self {
        Self::joined(self.0.iter().copied().chain(others).collect())
    }

    fn joined(mut spans: Vec<(i64, i64)>) -> Self {
        spans.retain(|(start, end)| start < end);
        spans.sort_unstable();
        let mut apart: Vec<(i64, i64)> = Vec::with_capacity(spans.len());
        for (start, end) in spans {
            match apart.last_mut() {
                Some((_, last)) if start <= *last => *last = end.max(*last),
                _ => apart.push((start, end)),
            }
        }
        Self(apart)
    }

    /// Seconds of [`end` - `window`, `end`) that are no hole.
    pub fn covered(&self, end: i64, window: i64) -> i64 {
        let missing = |(from, to): &(i64, i64)| ((*to).min(end) - (*from).max(end - window)).max(0);
        window - self.0.iter().map(missing).sum::<i64>()
    }

    /// Whether what was asked until `end` ends in a hole.
    pub fn ends_in_one(&self, end: i64) -> bool {
        self.0.iter().any(|(from, to)| *from < end && end <= *to)
    }

    /// Whether a hole reaches into the last `window` seconds before `end`.
    pub fn touch(&self, end: i64, window: i64) -> bool {
        self.0.iter().any(|(from, to)| *from < end && *to > end - window)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_second_lost_twice_is_missing_once() {
        let holes = Holes::default().with([(700, 900), (600, 800), (10, 10)].into_iter());
        assert_eq!(holes, Holes(vec![(600, 900)]));
        assert_eq!(holes.covered(1000, 300), 100);
        assert_eq!(holes.covered(600, 300), 300);
        assert!(!holes.ends_in_one(600) && holes.ends_in_one(601) && holes.ends_in_one(900) && !holes.ends_in_one(901));
    }
}
