//! Clocks that run ahead: whose events say that they happened after they arrived, how often and by how much. Their times are
//! taken as arrival times anyway; somebody should set the clock right all the same.

use crate::event::{Detail, Event, OutcomeCounts, TimeMark};
use crate::name::WorkflowName;
use chrono::TimeDelta;
use std::collections::HashMap;
use std::time::Duration;

/// Clocks are never quite the same: less is not ahead.
const AHEAD_MIN: TimeDelta = TimeDelta::seconds(1);

/// A single event that is more ahead is worth a word.
const FAR: TimeDelta = TimeDelta::seconds(30);

/// So many events are seen before a share of them is judged, and 1 in so many may be ahead.
const EVENTS_MIN: u64 = 100;
const ONE_IN: u64 = 100;

/// A workflow is told of once in so long, in s.
const EVERY: i64 = 3_600;

/// Workflows that are followed within an hour; of others nothing is said.
const WORKFLOWS_MAX: usize = 1_000;

/// Workflows with a clock that runs ahead.
#[derive(Clone, Debug, Default)]
pub struct Skews(HashMap<WorkflowName, Seen>);

/// What was seen since the first event that was ahead.
#[derive(Clone, Debug, Default)]
struct Seen {
    /// In s since 1970.
    since: i64,
    events: u64,
    ahead: u64,
    is_told: bool,
}

/// A clock that is worth a word.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Skew {
    /// Whose events.
    pub workflow: WorkflowName,
    /// Who sent the last of them, when it says so.
    pub producer: Option<String>,
    /// By how much the last of them is ahead; none when it is more than five minutes.
    pub ahead: Option<Duration>,
    /// Events that were ahead, of so many.
    pub ahead_count: u64,
    /// Events since the first of these.
    pub event_count: u64,
}

/// Whether the time of an event was taken back to when it arrived: it was a second or more ahead.
pub fn is_clamped(event: &Event) -> bool {
    ahead(event).is_none_or(|ahead| ahead >= AHEAD_MIN)
}

/// How far ahead it says that it happened; none when so far that what it says is not kept as a time.
fn ahead(event: &Event) -> Option<TimeDelta> {
    match event.time_mark {
        TimeMark::Future(_) => None,
        TimeMark::Given | TimeMark::AssumedUtc | TimeMark::Missing | TimeMark::Unreadable(_) => {
            Some(event.occurred_at - event.received_at)
        }
    }
}

impl Skews {
    /// Notes an event; answers when its clock is worth a word: it is more than 30 s ahead, or so are more than 1 % of the events
    /// of its workflow that came since the first of them.
    pub fn note(&mut self, event: &Event) -> Option<Skew> {
        let is_clamped = is_clamped(event);
        if !is_clamped && self.0.is_empty() {
            return None;
        }
        let now = event.received_at.timestamp();
        if self.0.len() >= WORKFLOWS_MAX && !self.0.contains_key(&event.workflow) {
            self.0.retain(|_, seen| now - seen.since < EVERY);
            if self.0.len() >= WORKFLOWS_MAX {
                return None;
            }
        }
        if is_clamped {
            let seen = self.0.entry(event.workflow.clone()).or_default();
            if now - seen.since >= EVERY {
                *seen = Seen { since: now, ..Seen::default() };
            }
        }
        let seen = self.0.get_mut(&event.workflow)?;
        seen.events += 1;
        seen.ahead += u64::from(is_clamped);
        let ahead = ahead(event);
        let is_far = is_clamped && ahead.is_none_or(|ahead| ahead > FAR);
        // The first is where counting began.
        let are_many = seen.events >= EVENTS_MIN && seen.ahead.saturating_sub(1) * ONE_IN > seen.events;
        if seen.is_told || !is_clamped || !(is_far || are_many) {
            return None;
        }
        seen.is_told = true;
        Some(Skew {
            workflow: event.workflow.clone(),
            producer: producer(&event.detail),
            ahead: ahead.and_then(|ahead| ahead.to_std().ok()),
            ahead_count: seen.ahead,
            event_count: seen.events,
        })
    }
}

fn producer(detail: &Detail) -> Option<String> {
    let Detail::Outcome(OutcomeCounts::Cumulative { producer, .. }) = detail else { return None };
    Some(producer.clone())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::{Class, Disposition, ErrorInfo, EventId, EventType, Fingerprint};
    use chrono::DateTime;
    use std::collections::BTreeMap;

    /// A report that arrives in this second and says that it happened so many ms later.
    fn report(workflow: &str, second: i64, ahead_ms: i64) -> Event {
        let received_at = DateTime::from_timestamp(1_798_588_800 + second, 0).unwrap();
        let counts = OutcomeCounts::Cumulative {
            producer: "host-7".to_owned(),
            epoch: "1".to_owned(),
            ok_total: 1,
            failed_total: 0,
        };
        Event {
            id: EventId(format!("{workflow}-{second}")),
            event_type: EventType::Outcome,
            workflow: workflow.into(),
            step: None,
            run_id: None,
            item: None,
            class: Class::Unclassified,
            class_rule: String::new(),
            disposition: Disposition::Skipped,
            fingerprint: Fingerprint("".into()),
            error: ErrorInfo::default(),
            attempt: None,
            max_attempts: None,
            downstream: None,
            occurred_at: received_at + TimeDelta::milliseconds(ahead_ms),
            time_mark: TimeMark::Given,
            received_at,
            payload: None,
            payload_cut: false,
            links: BTreeMap::new(),
            labels: BTreeMap::new(),
            detail: Detail::Outcome(counts),
            redriven_from: None,
            redrive_count: None,
        }
    }

    #[test]
    fn one_event_that_is_far_ahead_names_its_producer_once_an_hour() {
        let mut skews = Skews::default();
        assert_eq!(skews.note(&report("busy", 0, 30_000)), None, "30 s are not more than 30 s");
        let skew = skews.note(&report("busy", 1, 30_001)).unwrap();
        assert_eq!((skew.producer.as_deref(), skew.ahead_count, skew.event_count), (Some("host-7"), 2, 2));
        assert_eq!(skew.ahead, Some(Duration::from_millis(30_001)));
        assert_eq!(skews.note(&report("busy", 2, 60_000)), None, "it was told");
        assert!(skews.note(&report("other", 2, 60_000)).is_some(), "each workflow has its own clock");
        assert!(skews.note(&report("busy", 3_601, 60_000)).is_some());
    }

    #[test]
    fn more_than_a_hundredth_of_the_events_is_worth_a_word() {
        let found = |one_in: i64| {
            let mut skews = Skews::default();
            (0..1_000).filter_map(|n| skews.note(&report("busy", n, if n % one_in == 0 { 2_000 } else { -50 }))).count()
        };
        assert_eq!((found(50), found(100), found(500)), (1, 0, 0));
    }

    #[test]
    fn clocks_that_differ_by_less_than_a_second_are_the_same() {
        let mut skews = Skews::default();
        assert!((0..1_000).all(|n| skews.note(&report("busy", n, 999)).is_none()));
        assert!(!is_clamped(&report("busy", 0, 999)) && is_clamped(&report("busy", 0, 1_000)));
    }

    #[test]
    fn a_time_that_was_not_even_taken_is_far_ahead() {
        let event = Event { time_mark: TimeMark::Future("2099-01-01".to_owned()), ..report("busy", 0, 0) };
        let skew = Skews::default().note(&event).unwrap();
        assert_eq!(skew.ahead, None);
    }

    #[test]
    fn what_is_followed_is_bounded() {
        let mut skews = Skews::default();
        (0..5_000).for_each(|n| drop(skews.note(&report(&format!("w{n}"), 0, 2_000))));
        assert!(skews.0.len() <= WORKFLOWS_MAX);
    }
}
