//! When a receiver may be spoken to next: one message a second per Slack channel, sixty retries a minute, and the quiet
//! that it asked for. Pure: `now` is handed in, and is monotonic, so that a wall clock set back silences nobody.

use crate::outbox::queue::Admit;
use std::collections::VecDeque;
use std::time::{Duration, Instant};

/// Retries in any minute.
pub const RETRIES_PER_MINUTE: usize = 60;

const MINUTE: Duration = Duration::from_secs(60);

/// Whether a receiver has room.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Room {
    /// These tries can start now.
    Now(Admit),
    /// Nothing before then.
    At(Instant),
    /// Until the one in flight is back.
    Busy,
}

/// What is remembered of one receiver while the process lives.
#[derive(Clone, Debug, Default)]
pub struct Lane {
    busy: bool,
    free_at: Option<Instant>,
    retries: VecDeque<Instant>,
}

impl Lane {
    /// Whether a try can start at `now`.
    pub fn room(&mut self, now: Instant) -> Room {
        if self.busy {
            return Room::Busy;
        }
        if let Some(at) = self.free_at.filter(|at| now < *at) {
            return Room::At(at);
        }
        while self.retries.front().is_some_and(|at| now.duration_since(*at) >= MINUTE) {
            self.retries.pop_front();
        }
        let admit = if self.retries.len() < RETRIES_PER_MINUTE { Admit::All } else { Admit::FirstTries };
        Room::Now(admit)
    }

    /// When the next retry has room, for a lane that admits first tries only.
    pub fn retry_at(&self) -> Option<Instant> {
        self.retries.front().map(|at| *at + MINUTE)
    }

    /// Notes that a try starts; `spacing` is the least time between two.
    pub fn start(&mut self, now: Instant, is_retry: bool, spacing: Duration) {
        self.busy = true;
        self.hold_until(now + spacing);
        if is_retry {
            self.retries.push_back(now);
        }
    }

    /// Notes that the try in flight is back.
    pub fn finish(&mut self) {
        self.busy = false;
    }

    /// Nothing starts before `until`; a longer hold stays.
    pub fn hold_until(&mut self, until: Instant) {
        self.free_at = Some(self.free_at.map_or(until, |at| at.max(until)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The same start for all instants of a thread, which is a test.
    fn at(ms: u64) -> Instant {
        thread_local!(static START: Instant = crate::clock::instant());
        START.with(|start| *start + Duration::from_millis(ms))
    }

    #[test]
    fn the_first_message_goes_at_once_and_the_next_a_second_later() {
        let mut lane = Lane::default();
        assert_eq!(lane.room(at(0)), Room::Now(Admit::All));
        lane.start(at(0), false, Duration::from_secs(1));
        assert_eq!(lane.room(at(5000)), Room::Busy);
        lane.finish();
        assert_eq!(lane.room(at(999)), Room::At(at(1000)));
        assert_eq!(lane.room(at(1000)), Room::Now(Admit::All));
    }

    #[test]
    fn a_receiver_that_asked_for_quiet_gets_it() {
        let mut lane = Lane::default();
        lane.hold_until(at(6000));
        lane.hold_until(at(2000));
        assert_eq!(lane.room(at(5999)), Room::At(at(6000)));
    }

    #[test]
    fn after_sixty_retries_in_a_minute_only_first_tries_go() {
        let mut lane = Lane::default();
        for n in 0..60 {
            lane.start(at(n), true, Duration::ZERO);
            lane.finish();
        }
        assert_eq!(lane.room(at(59_999)), Room::Now(Admit::FirstTries));
        assert_eq!(lane.retry_at(), Some(at(60_000)));
        assert_eq!(lane.room(at(60_000)), Room::Now(Admit::All));
    }
}
