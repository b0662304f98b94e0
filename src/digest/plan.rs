//! The ledger's decision: which window of a digest is due now, what is held, and what comes late. Pure. What is in a
//! digest is `compose`'s; remembering that a window was planned is the store's.
//!
//! ```text
//!   covered_until          slots passed             now
//!        │───────────────s───────s───────s───────────│
//!        └────────── one window ─────────┘
//!   no slot passed                          → NotDue
//!   slot passed, closed, held for less      → Hold until opening, or max_hold after the first slot held
//!   slot passed, open or held long enough   → Due: [covered_until, last slot passed)
//! ```
//!
//! Nothing but `covered_until` joins one window to the next, so that windows can't overlap or leave a hole, whatever
//! happens to the clock, the schedule or the calendar in between.

use crate::calendar::{Calendar, OPENING_SEARCH_MAX, Schedule};
use chrono::{DateTime, TimeDelta, Utc};
use chrono_tz::Tz;
use std::time::Duration;

/// A half-open span of arrival time: `start_at` is inside, `end_at` is not.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Window {
    /// First instant inside.
    pub start_at: DateTime<Utc>,
    /// First instant after it; a slot.
    pub end_at: DateTime<Utc>,
}

/// When a digest is to be sent.
#[derive(Clone, Copy, Debug)]
pub struct DigestRule<'a> {
    /// Its slots …
    pub schedule: &'a Schedule,
    /// … in this zone.
    pub timezone: Tz,
    /// Business hours; none means always open.
    pub calendar: Option<&'a Calendar>,
    /// Longest hold over closed hours, from the first slot held; none holds until opening.
    pub max_hold: Option<Duration>,
    /// Since when this schedule is in force: slots up to then were never promised. None when it always was, as far as
    /// anybody knows. It keeps a change of schedule from sending a digest at once for slots that only now exist.
    pub in_force_since: Option<DateTime<Utc>>,
}

/// What to do about a digest now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PlanDecision {
    /// No slot has passed since the last window.
    NotDue {
        /// The next slot; none when the schedule has run out.
        next_at: Option<DateTime<Utc>>,
    },
    /// A slot passed in closed hours, or was missed and it is closed now.
    Hold {
        /// The first slot held; the same for as long as the hold lasts.
        slot: DateTime<Utc>,
        /// Opening, or the end of `max_hold` if that comes first.
        until: DateTime<Utc>,
    },
    /// A digest is to be planned, composed and sent; empty or not, the next window starts at its end.
    Due {
        /// What it covers.
        window: Window,
        /// When it should have gone out: its first slot, or the end of the hold that began with it.
        due_at: DateTime<Utc>,
        /// It comes late, because the service was away.
        late: Option<Late>,
        /// Slots of the window that fell in closed hours; counted up to [`SLOTS_COUNTED_MAX`].
        held_slots: u32,
    },
}

/// A digest that comes well after it was due.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Late {
    /// How long after `due_at`.
    pub by: Duration,
    /// Times to send that passed with nothing sent, at least 1; counted up to [`SLOTS_COUNTED_MAX`].
    pub slots_missed: u32,
}

/// A digest that is sent no more than this after it was due is on time.
pub const LATE_GRACE: TimeDelta = TimeDelta::minutes(5);
/// Slots of one window that are counted; more are said as "at least".
pub const SLOTS_COUNTED_MAX: u32 = 1_000;

/// Decides what to do now about a digest whose windows are joined up to `covered_until`: the end of its last window, or
/// the instant at which it was first seen.
pub fn plan(rule: &DigestRule<'_>, covered_until: DateTime<Utc>, now: DateTime<Utc>) -> PlanDecision {
    let promised_after = rule.in_force_since.map_or(covered_until, |since| since.max(covered_until));
    let first = match rule.next_slot(promised_after) {
        Some(first) if first <= now => first,
        next_at => return PlanDecision::NotDue { next_at },
    };
    let release = rule.release_of(first);
    let overdue = rule.hold_end(first).is_some_and(|end| end <= now);
    if !rule.is_open(now) && !overdue {
        return PlanDecision::Hold { slot: first, until: rule.release_from(first, now) };
    }
    let last = rule.schedule.latest_at_or_before(now, rule.timezone).map_or(first, |last| last.max(first));
    let slots = SlotCount::of(rule, promised_after, last, now);
    PlanDecision::Due {
        window: Window { start_at: covered_until, end_at: last },
        due_at: release,
        late: lateness(release, now, slots),
        held_slots: slots.held,
    }
}

impl DigestRule<'_> {
    fn next_slot(&self, after: DateTime<Utc>) -> Option<DateTime<Utc>> {
        self.schedule.next_after(after, self.timezone)
    }

    fn is_open(&self, at: DateTime<Utc>) -> bool {
        self.calendar.is_none_or(|calendar| calendar.open_at(at))
    }

    /// When a hold that began with `slot` ends at the latest.
    fn hold_end(&self, slot: DateTime<Utc>) -> Option<DateTime<Utc>> {
        slot.checked_add_signed(TimeDelta::from_std(self.max_hold?).ok()?)
    }

    /// When a digest of `slot` is due: at once in open hours, else at the end of its hold.
    fn release_of(&self, slot: DateTime<Utc>) -> DateTime<Utc> {
        self.release_from(slot, slot)
    }

    /// When what is held since `slot` may go out, seen from `at`. A calendar that does not open for years is looked at
    /// again later.
    fn release_from(&self, slot: DateTime<Utc>, at: DateTime<Utc>) -> DateTime<Utc> {
        let opening = match self.calendar {
            None => at,
            Some(calendar) => calendar.next_open(at).unwrap_or(at + OPENING_SEARCH_MAX),
        };
        self.hold_end(slot).map_or(opening, |end| end.min(opening))
    }
}

/// Slots of a window, counted.
#[derive(Clone, Copy, Debug, Default)]
struct SlotCount {
    held: u32,
    missed: u32,
}

impl SlotCount {
    fn of(rule: &DigestRule<'_>, after: DateTime<Utc>, last: DateTime<Utc>, now: DateTime<Utc>) -> Self {
        let slots = std::iter::successors(rule.next_slot(after), |slot| rule.next_slot(*slot));
        let counted = slots.take_while(|slot| *slot <= last).take(SLOTS_COUNTED_MAX as usize);
        counted.fold(Self::default(), |count, slot| match rule.is_open(slot) {
            false => Self { held: count.held + 1, ..count },
            true if slot + LATE_GRACE < now => Self { missed: count.missed + 1, ..count },
            true => count,
        })
    }
}

fn lateness(due_at: DateTime<Utc>, now: DateTime<Utc>, slots: SlotCount) -> Option<Late> {
    let by = now - due_at;
    // When only an opening was missed, no slot of open hours was.
    (by > LATE_GRACE).then(|| Late { by: by.to_std().unwrap_or_default(), slots_missed: slots.missed.max(1) })
}
