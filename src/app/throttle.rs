//! Lines of one kind limited to one a second, whatever comes in. Failures of pipelines have a log of their own.

use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

const EVERY: Duration = Duration::from_secs(1);

/// Limits one kind of line.
#[derive(Debug, Default)]
pub struct Throttle {
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    said_at: Option<Instant>,
    unsaid: u64,
}

impl Throttle {
    /// Counts `count` more at `now`; answers how many a line is to speak of, none when one was written within the second.
    pub fn add(&self, count: u64, now: Instant) -> Option<u64> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.unsaid += count;
        if state.unsaid == 0 || state.said_at.is_some_and(|at| now.duration_since(at) < EVERY) {
            return None;
        }
        state.said_at = Some(now);
        Some(std::mem::take(&mut state.unsaid))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock;

    #[test]
    fn there_is_one_line_a_second_and_it_counts_all() {
        let (lines, start) = (Throttle::default(), clock::instant());
        let at = |ms| start + Duration::from_millis(ms);
        assert_eq!(lines.add(0, at(0)), None);
        assert_eq!(lines.add(1, at(0)), Some(1));
        assert_eq!(lines.add(400, at(500)), None);
        assert_eq!(lines.add(0, at(999)), None);
        assert_eq!(lines.add(0, at(1000)), Some(400), "also when no more come");
        assert_eq!(lines.add(0, at(3000)), None);
    }
}
