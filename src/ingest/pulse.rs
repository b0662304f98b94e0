//! What missed heartbeats of a pull request say about the server and about the request. No requests are made here.
//!
//! A server that is silent still holds the request: what it takes first when it goes on, it sends there. Whoever lets go
//! of the request too early waits for `ack_wait` until that comes again. So the server is asked first, and the request is
//! given up only when the server answers and goes on to be silent on it.

use std::time::{Duration, Instant};

/// How often the server says that a request is alive.
pub(super) const HEARTBEAT: Duration = Duration::from_secs(2);

/// One is missed after two intervals, counted from the last sign of life; heartbeats that do come are not told. So a request that stays
/// silent misses the next one within this time, and what is further apart had a sign of life between.
const IN_A_ROW: Duration = Duration::from_millis(2 * 2_000 + 500);

/// Heartbeats of one pull request.
#[derive(Debug, Default)]
pub(super) struct Pulse {
    missed_at: Option<Instant>,
    is_asking: bool,
    answered_at: Option<Instant>,
}

/// What to do about a missed heartbeat.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum MissDecision {
    /// Nothing: a single one says nothing.
    Wait,
    /// Ask the server whether it is there.
    Ask,
    /// Build the request again.
    Lost,
}

impl Pulse {
    /// A message came. True when that ends a doubt.
    pub fn beat(&mut self) -> bool {
        let was_asking = self.is_asking;
        *self = Self::default();
        was_asking
    }

    /// A heartbeat did not come.
    pub fn miss(&mut self, now: Instant) -> MissDecision {
        let is_near = |at: Option<Instant>| at.is_some_and(|at| now - at <= IN_A_ROW);
        let missed_at = self.missed_at.replace(now);
        if is_near(self.answered_at) {
            MissDecision::Lost
        } else if self.is_asking || !is_near(missed_at) {
            MissDecision::Wait
        } else {
            MissDecision::Ask
        }
    }

    /// The server was asked.
    pub fn asked(&mut self) {
        (self.is_asking, self.answered_at) = (true, None);
    }

    /// The server answered and has the consumer.
    pub fn answered(&mut self, now: Instant) {
        *self = Self { missed_at: None, is_asking: false, answered_at: Some(now) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// So many seconds after some instant.
    fn at(second: u64) -> Instant {
        static START: std::sync::LazyLock<Instant> = std::sync::LazyLock::new(crate::clock::instant);
        *START + Duration::from_secs(second)
    }

    fn silent_until(second: u64) -> Pulse {
        let mut pulse = Pulse::default();
        assert_eq!(pulse.miss(at(second - 4)), MissDecision::Wait);
        assert_eq!(pulse.miss(at(second)), MissDecision::Ask);
        pulse.asked();
        pulse
    }

    #[test]
    fn two_heartbeats_missed_in_a_row_ask_once() {
        let mut pulse = silent_until(8);
        assert_eq!(pulse.miss(at(12)), MissDecision::Wait, "it is being asked already");
    }

    #[test]
    fn a_message_or_a_heartbeat_between_two_that_are_missed_parts_them() {
        let mut pulse = Pulse::default();
        assert_eq!(pulse.miss(at(4)), MissDecision::Wait);
        assert!(!pulse.beat());
        assert_eq!(pulse.miss(at(8)), MissDecision::Wait, "a message came");
        assert_eq!(pulse.miss(at(3_600)), MissDecision::Wait, "heartbeats came");
    }

    #[test]
    fn a_server_that_answers_but_is_silent_on_the_request_has_lost_it() {
        let mut pulse = silent_until(8);
        pulse.answered(at(9));
        assert_eq!(pulse.miss(at(13)), MissDecision::Lost);
    }

    #[test]
    fn what_comes_after_the_answer_shows_that_the_request_is_alive() {
        let mut pulse = silent_until(8);
        pulse.answered(at(9));
        assert_eq!(pulse.miss(at(14)), MissDecision::Wait, "a heartbeat came, else it had been missed at 13");
        let mut pulse = silent_until(8);
        pulse.answered(at(9));
        pulse.beat();
        assert_eq!(pulse.miss(at(13)), MissDecision::Wait, "a message came");
    }

    #[test]
    fn a_message_ends_a_doubt() {
        assert!(silent_until(8).beat());
    }
}
