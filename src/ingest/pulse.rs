//! What missed heartbeats of a pull request say about the server and about the request. No requests are made here.
//!
//! A server that is silent still holds the request: what it takes first when it goes on, it sends there. Whoever lets go
//! of the request too early waits for `ack_wait` until that comes again. So the server is asked first, and the request is
//! given up only when the server answers and goes on to be silent on it.

use std::time::{Duration, Instant};

/// How long after an answer another missed heartbeat means that the request itself is lost: a heartbeat counts as missed
/// after two of its intervals.
const PROBATION: Duration = Duration::from_secs(6);

/// Heartbeats of one pull request.
#[derive(Debug, Default)]
pub(super) struct Pulse {
    missed: u32,
    is_asking: bool,
    answered_at: Option<Instant>,
}

/// What to do about a missed heartbeat.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Pulsed {
    /// Nothing: a single one says nothing.
    Wait,
    /// Ask the server whether it is there.
    Ask,
    /// Build the request again.
    Lost,
}

impl Pulse {
    /// Something came.
    pub fn beat(&mut self) {
        self.missed = 0;
    }

    /// A heartbeat did not come.
    pub fn miss(&mut self, now: Instant) -> Pulsed {
        self.missed += 1;
        if self.answered_at.is_some_and(|at| now - at < PROBATION) {
            return Pulsed::Lost;
        }
        if self.missed < 2 || self.is_asking {
            return Pulsed::Wait;
        }
        self.doubt();
        Pulsed::Ask
    }

    /// The server is being asked.
    pub fn doubt(&mut self) {
        self.is_asking = true;
        self.answered_at = None;
    }

    /// The server answered and has the consumer.
    pub fn answer(&mut self, now: Instant) {
        *self = Self { missed: 0, is_asking: false, answered_at: Some(now) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn second(start: Instant, n: u64) -> Instant {
        start + Duration::from_secs(n)
    }

    #[test]
    fn one_missed_heartbeat_says_nothing_and_two_in_a_row_ask_once() {
        let (start, mut pulse) = (crate::clock::instant(), Pulse::default());
        assert_eq!(pulse.miss(second(start, 4)), Pulsed::Wait);
        pulse.beat();
        assert_eq!(pulse.miss(second(start, 10)), Pulsed::Wait);
        assert_eq!(pulse.miss(second(start, 14)), Pulsed::Ask);
        assert_eq!(pulse.miss(second(start, 18)), Pulsed::Wait, "it is being asked already");
    }

    #[test]
    fn a_server_that_answers_but_is_silent_on_the_request_has_lost_it() {
        let (start, mut pulse) = (crate::clock::instant(), Pulse::default());
        pulse.miss(second(start, 4));
        pulse.miss(second(start, 8));
        pulse.answer(second(start, 9));
        assert_eq!(pulse.miss(second(start, 13)), Pulsed::Lost);
    }

    #[test]
    fn a_heartbeat_missed_long_after_an_answer_is_a_first_one() {
        let (start, mut pulse) = (crate::clock::instant(), Pulse::default());
        pulse.miss(second(start, 4));
        pulse.miss(second(start, 8));
        pulse.answer(second(start, 9));
        assert_eq!(pulse.miss(second(start, 60)), Pulsed::Wait);
        assert_eq!(pulse.miss(second(start, 64)), Pulsed::Ask);
    }
}
