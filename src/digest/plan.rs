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

pub use super::Window;
use crate::calendar::{Calendar, OPENING_SEARCH_MAX, Schedule};
use chrono::{DateTime, TimeDelta, Utc};
use chrono_tz::Tz;
use std::time::Duration;

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
        late: Option<Lateness>,
        /// Slots of the window that fell in closed hours; counted up to [`SLOTS_COUNTED_MAX`].
        held_slots: u32,
    },
}

/// A digest that comes well after it was due.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lateness {
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

fn lateness(due_at: DateTime<Utc>, now: DateTime<Utc>, slots: SlotCount) -> Option<Lateness> {
    let by = now - due_at;
    // When only an opening was missed, no slot of open hours was.
    (by > LATE_GRACE).then(|| Lateness { by: by.to_std().unwrap_or_default(), slots_missed: slots.missed.max(1) })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::calendar::{WeekHours, parse_zone};
    use chrono::NaiveDate;
    use proptest::prelude::*;

    fn at(text: &str) -> DateTime<Utc> {
        text.parse().unwrap()
    }

    fn calendar(zone: &str, entries: &[(&str, &str)], holidays: &[&str]) -> Calendar {
        let entries: Vec<_> = entries.iter().map(|(days, span)| (days.to_string(), vec![span.to_string()])).collect();
        let holidays = holidays.iter().map(|date| date.parse::<NaiveDate>().unwrap()).collect();
        Calendar { timezone: parse_zone(zone).unwrap(), hours: WeekHours::parse(&entries).unwrap(), holidays }
    }

    /// A rule with its parts, so that tests can lend them.
    #[derive(Clone, Debug)]
    struct Digest {
        schedule: Schedule,
        timezone: Tz,
        calendar: Option<Calendar>,
        max_hold: Option<Duration>,
        in_force_since: Option<DateTime<Utc>>,
    }

    impl Digest {
        fn new(line: &str, zone: &str) -> Self {
            let (schedule, timezone) = (Schedule::parse(line).unwrap(), parse_zone(zone).unwrap());
            Self { schedule, timezone, calendar: None, max_hold: None, in_force_since: None }
        }

        fn within(line: &str, calendar: Calendar, max_hold_hours: u64) -> Self {
            let max_hold = Some(Duration::from_secs(max_hold_hours * 3_600));
            let timezone = calendar.timezone;
            Self { calendar: Some(calendar), max_hold, timezone, ..Self::new(line, "UTC") }
        }

        fn plan(&self, covered_until: DateTime<Utc>, now: DateTime<Utc>) -> PlanDecision {
            let rule = DigestRule {
                schedule: &self.schedule,
                timezone: self.timezone,
                calendar: self.calendar.as_ref(),
                max_hold: self.max_hold,
                in_force_since: self.in_force_since,
            };
            plan(&rule, covered_until, now)
        }
    }

    /// A digest that went out.
    #[derive(Clone, Debug)]
    struct Sent {
        at: DateTime<Utc>,
        window: Window,
        due_at: DateTime<Utc>,
        late: Option<Lateness>,
        held_slots: u32,
    }

    /// Looks once a minute from `seen_at` to `end_at`, except while the service is down, and writes windows down.
    fn run(digest: &Digest, seen_at: &str, end_at: &str, down: &[(&str, &str)]) -> (Vec<Sent>, Vec<DateTime<Utc>>) {
        let minutes = std::iter::successors(Some(at(seen_at)), |now| Some(*now + TimeDelta::minutes(1)));
        let up = |now: &DateTime<Utc>| !down.iter().any(|(from, to)| at(from) <= *now && *now < at(to));
        live(digest, at(seen_at), minutes.take_while(|now| *now <= at(end_at)).filter(up))
    }

    fn live(
        digest: &Digest,
        seen_at: DateTime<Utc>,
        ticks: impl Iterator<Item = DateTime<Utc>>,
    ) -> (Vec<Sent>, Vec<DateTime<Utc>>) {
        let (mut covered_until, mut sent, mut held) = (seen_at, Vec::new(), Vec::new());
        for now in ticks {
            match digest.plan(covered_until, now) {
                PlanDecision::NotDue { .. } => {}
                PlanDecision::Hold { slot, .. } => held.push(slot),
                PlanDecision::Due { window, due_at, late, held_slots } => {
                    covered_until = window.end_at;
                    sent.push(Sent { at: now, window, due_at, late, held_slots });
                }
            }
        }
        held.dedup();
        (sent, held)
    }

    fn ends(sent: &[Sent]) -> Vec<String> {
        sent.iter().map(|digest| digest.window.end_at.format("%d %H:%M").to_string()).collect()
    }

    #[test]
    fn windows_run_from_slot_to_slot_and_the_first_from_when_the_digest_was_seen() {
        let (sent, _) = run(&Digest::new("0 * * * *", "UTC"), "2026-12-01T00:10:00Z", "2026-12-01T03:30:00Z", &[]);
        assert_eq!(ends(&sent), ["01 01:00", "01 02:00", "01 03:00"]);
        assert_eq!(sent[0].window.start_at, at("2026-12-01T00:10:00Z"));
        assert!(sent.iter().all(|digest| digest.due_at == digest.window.end_at && digest.at == digest.due_at));
        assert!(sent.iter().all(|digest| digest.late.is_none() && digest.held_slots == 0));
    }

    #[test]
    fn a_digest_seen_at_a_slot_waits_for_the_next() {
        let daily = Digest::new("0 10 * * *", "UTC");
        let seen_at = at("2026-11-30T10:00:00Z");
        let next_at = Some(at("2026-12-01T10:00:00Z"));
        assert_eq!(daily.plan(seen_at, seen_at), PlanDecision::NotDue { next_at });
    }

    #[test]
    fn slots_held_over_night_are_one_digest_at_opening() {
        let office = calendar("Asia/Kolkata", &[("mon-fri", "09:30-18:30"), ("sat", "10:00-14:00")], &[]);
        let hourly = Digest::within("0 * * * *", office, 96);
        let (sent, held) = run(&hourly, "2026-12-01T16:00:00+05:30", "2026-12-02T11:00:00+05:30", &[]);
        let local = |text: &str| at(&format!("2026-12-{text}:00+05:30"));
        let times: Vec<_> = sent.iter().map(|digest| digest.at).collect();
        assert_eq!(
            times,
            ["01T17:00", "01T18:00", "02T09:30", "02T10:00", "02T11:00"].map(local),
            "sent at opening, then at slots"
        );
        let window = Window { start_at: local("01T18:00"), end_at: local("02T09:00") };
        assert_eq!((sent[2].window, sent[2].held_slots), (window, 15));
        assert_eq!((sent[2].due_at, sent[2].late), (local("02T09:30"), None));
        assert_eq!(held, [local("01T19:00")], "one hold, named by its first slot");
        let hold = hourly.plan(local("01T18:00"), local("01T23:10"));
        assert_eq!(hold, PlanDecision::Hold { slot: local("01T19:00"), until: local("02T09:30") });
    }

    #[test]
    fn a_slot_at_the_opening_instant_is_in_open_hours_and_one_at_closing_is_not() {
        let office = calendar("UTC", &[("mon-sun", "09:00-18:00")], &[]);
        let (sent, _) =
            run(&Digest::within("0 * * * *", office, 96), "2026-12-01T16:30:00Z", "2026-12-02T09:59:00Z", &[]);
        assert_eq!(ends(&sent), ["01 17:00", "02 09:00"]);
        assert_eq!((sent[1].at, sent[1].held_slots), (at("2026-12-02T09:00:00Z"), 15));
    }

    #[test]
    fn a_holiday_holds_over_the_week_end_too() {
        let hours = [("mon-thu", "08:00-17:00"), ("fri", "08:00-14:00")];
        let office = calendar("Europe/Berlin", &hours, &["2026-12-25", "2027-01-01"]);
        let hourly = Digest::within("0 * * * *", office, 96);
        let (sent, _) = run(&hourly, "2026-12-24T16:30:00+01:00", "2026-12-28T08:30:00+01:00", &[]);
        assert_eq!(sent.len(), 1);
        assert_eq!(sent[0].at, at("2026-12-28T08:00:00+01:00"));
        assert_eq!(sent[0].window.end_at, at("2026-12-28T08:00:00+01:00"));
    }

    #[test]
    fn after_max_hold_it_is_sent_in_closed_hours_and_held_anew() {
        let office = calendar("UTC", &[("mon", "09:00-18:00")], &[]);
        let daily = Digest::within("0 10 * * *", office, 48);
        let (sent, held) = run(&daily, "2026-12-07T11:00:00Z", "2026-12-14T12:00:00Z", &[]);
        assert_eq!(ends(&sent), ["10 10:00", "13 10:00", "14 10:00"]);
        assert_eq!(held, ["08", "11"].map(|day| at(&format!("2026-12-{day}T10:00:00Z"))));
        assert!(sent.iter().all(|digest| digest.late.is_none()));
        assert_eq!(sent[0].due_at, at("2026-12-10T10:00:00Z"));
    }

    #[test]
    fn without_max_hold_a_digest_waits_for_opening() {
        let mut weekly = Digest::within("@daily", calendar("UTC", &[("mon", "09:00-18:00")], &[]), 1);
        weekly.max_hold = None;
        let (sent, _) = run(&weekly, "2026-12-08T00:00:00Z", "2026-12-15T00:00:00Z", &[]);
        assert_eq!((sent.len(), sent[0].at, sent[0].held_slots), (1, at("2026-12-14T09:00:00Z"), 6));
    }

    #[test]
    fn a_slot_missed_while_away_is_one_late_digest_of_the_planned_window() {
        let daily = Digest::new("0 8 * * *", "UTC");
        let down = [("2026-12-01T07:50:00Z", "2026-12-01T09:35:00Z"), ("2026-12-01T10:00:00Z", "2026-12-01T10:05:00Z")];
        let (sent, _) = run(&daily, "2026-11-30T08:00:00Z", "2026-12-02T07:00:00Z", &down);
        let window = Window { start_at: at("2026-11-30T08:00:00Z"), end_at: at("2026-12-01T08:00:00Z") };
        assert_eq!((sent.len(), sent[0].window, sent[0].at), (1, window, at("2026-12-01T09:35:00Z")));
        let late = Lateness { by: Duration::from_secs(95 * 60), slots_missed: 1 };
        assert_eq!((sent[0].due_at, sent[0].late), (at("2026-12-01T08:00:00Z"), Some(late)));
    }

    #[test]
    fn missed_slots_are_merged_and_counted() {
        let down = [("2026-12-01T07:30:00Z", "2026-12-01T11:02:00Z")];
        let (sent, _) = run(&Digest::new("0 * * * *", "UTC"), "2026-12-01T06:10:00Z", "2026-12-01T12:10:00Z", &down);
        assert_eq!(ends(&sent), ["01 07:00", "01 11:00", "01 12:00"]);
        assert_eq!(sent[1].late.map(|late| late.slots_missed), Some(3), "08:00, 09:00 and 10:00; 11:00 is on time");
        assert_eq!(sent[2].late, None);
    }

    #[test]
    fn what_was_missed_in_open_hours_is_not_sent_in_closed_ones() {
        let office = calendar("UTC", &[("mon-fri", "09:00-18:00")], &[]);
        let hourly = Digest::within("0 * * * *", office, 96);
        let down = [("2026-12-04T15:30:00Z", "2026-12-05T03:00:00Z")]; // a Friday
        let (sent, held) = run(&hourly, "2026-12-04T14:30:00Z", "2026-12-07T09:00:00Z", &down);
        assert_eq!(ends(&sent), ["04 15:00", "07 09:00"]);
        assert_eq!(held, [at("2026-12-04T16:00:00Z")]);
        assert_eq!(sent[1].due_at, at("2026-12-04T16:00:00Z"));
        assert_eq!(sent[1].late.map(|late| late.slots_missed), Some(2));
    }

    #[test]
    fn a_missed_opening_is_late_from_the_opening_on() {
        let office = calendar("UTC", &[("mon-fri", "09:30-18:00")], &[]);
        let down = [("2026-12-02T09:00:00Z", "2026-12-02T09:45:00Z")];
        let (sent, _) =
            run(&Digest::within("0 * * * *", office, 96), "2026-12-01T18:00:00Z", "2026-12-02T09:50:00Z", &down);
        assert_eq!(sent[0].due_at, at("2026-12-02T09:30:00Z"));
        assert_eq!(sent[0].late, Some(Lateness { by: Duration::from_secs(15 * 60), slots_missed: 1 }));
    }

    #[test]
    fn a_few_minutes_are_not_late() {
        let hourly = Digest::new("0 * * * *", "UTC");
        let late = |now: &str| match hourly.plan(at("2026-12-01T09:00:00Z"), at(now)) {
            PlanDecision::Due { late, .. } => late.is_some(),
            PlanDecision::NotDue { .. } | PlanDecision::Hold { .. } => unreachable!("the slot has passed"),
        };
        assert_eq!([late("2026-12-01T10:05:00Z"), late("2026-12-01T10:05:01Z")], [false, true]);
    }

    #[test]
    fn years_of_missed_minutes_are_one_digest_and_counted_to_a_limit() {
        let PlanDecision::Due { window, late, .. } =
            Digest::new("* * * * *", "Europe/Berlin").plan(at("2016-01-01T00:00:00Z"), at("2026-01-01T00:00:30Z"))
        else {
            panic!("due");
        };
        assert_eq!(window.end_at, at("2026-01-01T00:00:00Z"));
        assert_eq!(late.map(|late| late.slots_missed), Some(SLOTS_COUNTED_MAX));
    }

    #[test]
    fn a_clock_stepped_back_waits_until_the_slot_after_what_is_covered() {
        let hourly = Digest::new("0 * * * *", "UTC");
        let covered_until = at("2026-12-01T12:00:00Z");
        for now in ["2020-01-01T00:00:00Z", "2026-12-01T11:00:00Z", "2026-12-01T12:00:00Z", "2026-12-01T12:59:59Z"] {
            let next_at = Some(at("2026-12-01T13:00:00Z"));
            assert_eq!(hourly.plan(covered_until, at(now)), PlanDecision::NotDue { next_at });
        }
    }

    #[test]
    fn after_a_change_of_schedule_windows_join_and_slots_of_before_are_not_due() {
        let mut hourly = Digest::new("0 * * * *", "UTC");
        hourly.in_force_since = Some(at("2026-12-01T15:30:00Z"));
        let covered_until = at("2026-12-01T10:00:00Z"); // by the daily line of before
        let next_at = Some(at("2026-12-01T16:00:00Z"));
        assert_eq!(hourly.plan(covered_until, at("2026-12-01T15:31:00Z")), PlanDecision::NotDue { next_at });
        let due_at = at("2026-12-01T16:00:00Z");
        let window = Window { start_at: covered_until, end_at: due_at };
        assert_eq!(hourly.plan(covered_until, due_at), PlanDecision::Due { window, due_at, late: None, held_slots: 0 });
    }

    #[test]
    fn a_window_over_midnight_belongs_to_the_night_that_it_starts_in() {
        let night = calendar("Europe/Berlin", &[("fri", "19:00-07:00")], &[]);
        let half = Digest::within("*/30 * * * *", night, 300);
        let (sent, _) = run(&half, "2026-12-04T00:00:00+01:00", "2026-12-12T12:00:00+01:00", &[]);
        let goes_out = |event: &str| {
            let event = at(&format!("2026-12-{event}:00+01:00"));
            let digest = sent.iter().find(|digest| digest.window.start_at <= event && event < digest.window.end_at);
            digest.unwrap().at.with_timezone(&half.timezone).format("%dT%H:%M").to_string()
        };
        let events = ["04T01:45", "04T18:10", "04T18:45", "05T02:10", "05T06:10", "05T06:45"];
        assert_eq!(events.map(goes_out), ["04T19:00", "04T19:00", "04T19:00", "05T02:30", "05T06:30", "11T19:00"]);
    }

    const LINES: [&str; 7] =
        ["0 * * * *", "*/20 * * * *", "0 10 * * *", "30 2 * * *", "0 9,12,17 * * MON-FRI", "15 */5 * * *", "@weekly"];
    const ZONES: [(&str, &str); 4] = [
        ("Asia/Kolkata", "2026-12-01T03:00:00Z"),
        ("Europe/Berlin", "2026-10-22T03:00:00Z"),
        ("America/New_York", "2027-03-12T03:00:00Z"),
        ("Australia/Lord_Howe", "2026-10-01T03:00:00Z"),
    ];

    fn digests() -> impl Strategy<Value = (Digest, DateTime<Utc>)> {
        let hours = prop::sample::select(vec![
            vec![("mon-fri", "09:30-18:30")],
            vec![("mon-sun", "22:00-06:00")],
            vec![("mon-thu", "08:00-17:00"), ("fri", "08:00-14:00")],
            vec![("sun", "01:30-02:45"), ("wed", "00:00-24:00")],
        ]);
        let parts = (prop::sample::select(LINES.to_vec()), prop::sample::select(ZONES.to_vec()));
        let closed = (prop::option::weighted(0.8, hours), prop::option::of(1..80_u64), 0..6_u64);
        (parts, closed).prop_map(|((line, (zone, from)), (hours, max_hold, holiday))| {
            let holiday = at(from).date_naive() + chrono::Days::new(holiday);
            let mut digest = Digest::new(line, zone);
            digest.calendar = hours.map(|hours| calendar(zone, &hours, &[&holiday.to_string()]));
            digest.max_hold = max_hold.map(|hours| Duration::from_secs(hours * 3_600));
            (digest, at(from))
        })
    }

    /// Instants at which the service looks: every few minutes, with downtimes and a clock that is set now and then.
    fn ticks() -> impl Strategy<Value = Vec<i64>> {
        let step = prop_oneof![300 => 20..600_i64, 3 => 3_600..200_000_i64, 1 => -30_000..0_i64];
        prop::collection::vec(step, 300..1_200).prop_map(|steps| {
            steps
                .into_iter()
                .scan(0, |seconds, step| {
                    *seconds += step;
                    Some(*seconds)
                })
                .collect()
        })
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 60, failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn windows_join_whatever_happens((digest, seen_at) in digests(), ticks in ticks()) {
            let ticks: Vec<_> = ticks.into_iter().map(|seconds| seen_at + TimeDelta::seconds(seconds)).collect();
            let (sent, _) = live(&digest, seen_at, ticks.iter().copied());
            let mut covered_until = seen_at;
            for one in &sent {
                prop_assert_eq!(one.window.start_at, covered_until, "windows join");
                prop_assert!(one.window.start_at < one.window.end_at && one.window.end_at <= one.at);
                let slot = digest.schedule.latest_at_or_before(one.window.end_at, digest.timezone);
                prop_assert_eq!(slot, Some(one.window.end_at), "a window ends at a slot");
                let first = digest.schedule.next_after(covered_until, digest.timezone).unwrap();
                prop_assert!(first <= one.due_at && one.due_at <= one.at);
                prop_assert_eq!(one.late.is_some(), one.at - one.due_at > LATE_GRACE);
                let open = |at| digest.calendar.as_ref().is_none_or(|calendar| calendar.open_at(at));
                let overdue = digest.max_hold.is_some_and(|hold| first + hold <= one.at);
                prop_assert!(open(one.at) || overdue, "sent in closed hours at {}", one.at);
                covered_until = one.window.end_at;
            }
            // Nothing is left behind: after a look in open hours no slot that has passed is uncovered.
            let last_open = ticks.iter().rev().find(|now| digest.calendar.as_ref().is_none_or(|calendar| calendar.open_at(**now)));
            if let Some(now) = last_open {
                let next = digest.schedule.next_after(covered_until, digest.timezone).unwrap();
                prop_assert!(next > *now, "the slot {} was not covered at {}", next, now);
            }
        }

        #[test]
        fn a_service_that_never_sleeps_is_never_late((digest, seen_at) in digests(), step in 60..240_i64) {
            let ticks = (0..4 * 86_400 / step).map(|n| seen_at + TimeDelta::seconds(n * step));
            let (sent, held) = live(&digest, seen_at, ticks);
            for one in &sent {
                prop_assert_eq!(one.late, None);
                prop_assert!(one.at - one.due_at < TimeDelta::seconds(step));
            }
            if digest.calendar.is_none() {
                prop_assert!(held.is_empty() && sent.iter().all(|one| one.due_at == one.window.end_at));
            }
        }

        #[test]
        fn a_hold_ends_with_a_digest_when_it_said_so((digest, seen_at) in digests(), minutes in 0..8_000_i64) {
            let now = seen_at + TimeDelta::minutes(minutes);
            if let PlanDecision::Hold { slot, until } = digest.plan(seen_at, now) {
                prop_assert!(slot <= now && now < until);
                let a_moment_before = digest.plan(seen_at, until - TimeDelta::milliseconds(1));
                prop_assert_eq!(a_moment_before, PlanDecision::Hold { slot, until });
                let is_due = matches!(digest.plan(seen_at, until), PlanDecision::Due { .. });
                prop_assert!(is_due);
            }
        }
    }
}
