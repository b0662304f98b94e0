//! When people read: hours and holidays in a zone, as instants. The words that hours are written in live in `hours`.

use super::{hours::WeekHours, wall};
use chrono::{DateTime, Datelike, NaiveDate, TimeDelta, Utc};
use chrono_tz::Tz;
use std::collections::BTreeSet;

/// When people read.
///
/// A holiday closes the spans that start on its date. A night shift that started on the day before runs to its end,
/// and one that would start on the holiday does not happen, its hours after midnight included.
#[derive(Clone, Debug)]
pub struct Calendar {
    /// Its zone.
    pub timezone: Tz,
    /// Its hours.
    pub hours: WeekHours,
    /// Local dates on which nothing opens.
    pub holidays: BTreeSet<NaiveDate>,
}

/// How far ahead an opening is looked for.
pub const OPENING_SEARCH_MAX: TimeDelta = TimeDelta::days(2 * 366);

/// A span of open time, half open.
type OpenSpan = (DateTime<Utc>, DateTime<Utc>);

impl Calendar {
    /// Whether it is open at `at`; an opening instant is open, a closing instant is closed.
    pub fn open_at(&self, at: DateTime<Utc>) -> bool {
        let today = wall::reading(at, self.timezone).date();
        self.spans_from(today)
            .take_while(|(date, _)| *date <= today + TimeDelta::days(1))
            .any(|(_, s)| s.0 <= at && at < s.1)
    }

    /// The first instant at or after `at` at which it is open; none within [`OPENING_SEARCH_MAX`].
    pub fn next_open(&self, at: DateTime<Utc>) -> Option<DateTime<Utc>> {
        let today = wall::reading(at, self.timezone).date();
        let last = today + OPENING_SEARCH_MAX;
        let mut ahead = self.spans_from(today).take_while(|(date, _)| *date <= last);
        // Spans come in the order of their starts.
        ahead.find(|(_, span)| span.1 > at).map(|(_, span)| span.0.max(at))
    }

    /// Open time within `[from, to)`, in order, with no two spans that touch.
    pub fn spans_between(&self, from: DateTime<Utc>, to: DateTime<Utc>) -> Vec<OpenSpan> {
        let (first, last) = (wall::reading(from, self.timezone).date(), wall::reading(to, self.timezone).date());
        let near = self.spans_from(first).take_while(|(date, _)| *date <= last + TimeDelta::days(1));
        let clipped = near.map(|(_, (start, end))| (start.max(from), end.min(to))).filter(|(start, end)| start < end);
        let mut spans: Vec<OpenSpan> = clipped.collect();
        spans.sort_unstable();
        spans.into_iter().fold(Vec::new(), join)
    }

    /// The last holiday known, when it is past or less than `notice` ahead: time to write the next ones down. None
    /// when there are later ones, or none at all, which is taken for a choice.
    pub fn holidays_run_out(&self, at: DateTime<Utc>, notice: TimeDelta) -> Option<NaiveDate> {
        let last = *self.holidays.last()?;
        (last < wall::reading(at + notice, self.timezone).date()).then_some(last)
    }

    /// Spans by the date on which they start, from two days before `date`: a night may begin on one date, and a date
    /// may itself be repeated or skipped.
    fn spans_from(&self, date: NaiveDate) -> impl Iterator<Item = (NaiveDate, OpenSpan)> {
        let dates = (date - TimeDelta::days(2)).iter_days();
        dates.filter(|date| !self.holidays.contains(date)).flat_map(move |date| {
            let instants = |(start, end)| (self.instant(start), self.instant(end));
            // A span that lies in a gap is gone.
            self.hours
                .spans_on(date, date.weekday())
                .map(instants)
                .filter(|(start, end)| start < end)
                .map(move |span| (date, span))
        })
    }

    fn instant(&self, local: chrono::NaiveDateTime) -> DateTime<Utc> {
        wall::first_instant(local, self.timezone)
    }
}

fn join(mut spans: Vec<OpenSpan>, next: OpenSpan) -> Vec<OpenSpan> {
    match spans.last_mut() {
        Some(last) if next.0 <= last.1 => last.1 = last.1.max(next.1),
        _ => spans.push(next),
    }
    spans
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::calendar::parse_zone;
    use proptest::prelude::*;

    fn at(text: &str) -> DateTime<Utc> {
        text.parse().unwrap()
    }

    fn hours(entries: &[(&str, &[&str])]) -> WeekHours {
        let owned = |(key, spans): &(&str, &[&str])| (key.to_string(), spans.iter().map(ToString::to_string).collect());
        WeekHours::parse(&entries.iter().map(owned).collect::<Vec<_>>()).unwrap()
    }

    fn calendar(zone: &str, entries: &[(&str, &[&str])], holidays: &[&str]) -> Calendar {
        let holidays = holidays.iter().map(|date| date.parse().unwrap()).collect();
        Calendar { timezone: parse_zone(zone).unwrap(), hours: hours(entries), holidays }
    }

    /// Open time of a span, in local time.
    fn week(calendar: &Calendar, from: &str, to: &str) -> Vec<String> {
        let local = |at: DateTime<Utc>| at.with_timezone(&calendar.timezone).format("%a %d %H:%M").to_string();
        let spans = calendar.spans_between(at(from), at(to));
        spans.into_iter().map(|(start, end)| format!("{} to {}", local(start), local(end))).collect()
    }

    #[test]
    fn a_span_over_midnight_belongs_to_the_day_on_which_it_starts() {
        let quiet = calendar("Europe/Berlin", &[("mon-sun", &["19:00-07:00"])], &[]);
        for (time, open) in
            [("18:59", false), ("19:00", true), ("22:00", true), ("02:00", true), ("06:59", true), ("07:00", false)]
        {
            assert_eq!(quiet.open_at(at(&format!("2026-12-04T{time}:00+01:00"))), open, "{time}");
        }
        let friday = calendar("Europe/Berlin", &[("fri", &["19:00-07:00"])], &[]);
        assert_eq!(week(&friday, "2026-12-01T00:00:00Z", "2026-12-08T00:00:00Z"), ["Fri 04 19:00 to Sat 05 07:00"]);
        assert!(!friday.open_at(at("2026-12-04T02:00:00+01:00")));
        assert!(!friday.open_at(at("2026-12-05T19:30:00+01:00")));
    }

    #[test]
    fn what_falls_on_a_holiday_waits_for_the_next_opening() {
        let office = calendar(
            "Europe/Berlin",
            &[("mon-thu", &["08:00-17:00"]), ("fri", &["08:00-14:00"])],
            &["2026-12-25", "2027-01-01"],
        );
        let next = office.next_open(at("2026-12-24T18:00:00+01:00"));
        assert_eq!(next, Some(at("2026-12-28T08:00:00+01:00")));
        assert_eq!(office.next_open(at("2026-12-28T08:00:00+01:00")), next);
        let inside = at("2026-12-28T11:11:11+01:00");
        assert_eq!(office.next_open(inside), Some(inside));
    }

    #[test]
    fn a_holiday_closes_what_starts_on_it_and_nothing_else() {
        let night = calendar("Europe/Berlin", &[("mon-sun", &["22:00-06:00"])], &["2026-12-25"]);
        assert_eq!(
            week(&night, "2026-12-24T12:00:00Z", "2026-12-27T12:00:00Z"),
            ["Thu 24 22:00 to Fri 25 06:00", "Sat 26 22:00 to Sun 27 06:00"]
        );
    }

    #[test]
    fn spans_that_touch_are_one() {
        let always = calendar("Asia/Kolkata", &[("mon-sun", &["00:00-12:00", "11:00-24:00"])], &[]);
        let (from, to) = (at("2026-12-01T01:00:00Z"), at("2026-12-08T01:00:00Z"));
        assert_eq!(always.spans_between(from, to), [(from, to)]);
    }

    #[test]
    fn an_opening_in_the_gap_is_its_end_and_hours_within_the_gap_are_gone() {
        let sundays = calendar("America/New_York", &[("sun", &["02:15-02:45", "02:30-04:00"])], &[]);
        let spans = sundays.spans_between(at("2027-03-14T00:00:00Z"), at("2027-03-15T00:00:00Z"));
        assert_eq!(spans, [(at("2027-03-14T07:00:00Z"), at("2027-03-14T08:00:00Z"))]);
    }

    #[test]
    fn hours_open_and_close_at_the_first_pass_of_a_repeated_time() {
        let open = |span: &str| {
            let berlin = calendar("Europe/Berlin", &[("sun", &[span])], &[]);
            let spans = berlin.spans_between(at("2026-10-24T22:00:00Z"), at("2026-10-25T12:00:00Z"));
            spans.into_iter().map(|(start, end)| (end - start).num_minutes()).collect::<Vec<_>>()
        };
        assert_eq!(open("02:00-02:30"), [30]); // 02:00 to 03:00 comes twice
        assert_eq!(open("02:30-03:30"), [120]);
        assert_eq!(open("00:00-24:00"), [14 * 60]);
    }

    #[test]
    fn the_day_of_a_change_has_23_or_25_hours() {
        let all_day = calendar("Europe/Berlin", &[("sun", &["00:00-24:00"])], &[]);
        let length = |from: &str, to: &str| {
            let spans = all_day.spans_between(at(from), at(to));
            spans.iter().map(|(start, end)| (*end - *start).num_hours()).collect::<Vec<_>>()
        };
        assert_eq!(length("2026-03-28T00:00:00Z", "2026-03-30T12:00:00Z"), [23]);
        assert_eq!(length("2026-10-24T00:00:00Z", "2026-10-26T12:00:00Z"), [25]);
    }

    #[test]
    fn a_calendar_closed_for_years_does_not_open() {
        let mut closed = calendar("UTC", &[("mon-sun", &["09:00-17:00"])], &[]);
        closed.holidays = at("2026-01-01T00:00:00Z").date_naive().iter_days().take(1_200).collect();
        assert_eq!(closed.next_open(at("2026-01-05T00:00:00Z")), None);
    }

    #[test]
    fn holidays_that_end_soon_are_told() {
        let office = calendar("UTC", &[("mon-fri", &["09:00-17:00"])], &["2026-12-25", "2027-01-01"]);
        let told = |day: &str, notice| office.holidays_run_out(at(day), TimeDelta::days(notice));
        assert_eq!(told("2026-12-01T00:00:00Z", 20), None);
        assert_eq!(told("2026-12-01T00:00:00Z", 60), NaiveDate::from_ymd_opt(2027, 1, 1));
        assert_eq!(told("2027-03-01T00:00:00Z", 0), NaiveDate::from_ymd_opt(2027, 1, 1));
        assert_eq!(
            calendar("UTC", &[("mon", &["09:00-17:00"])], &[])
                .holidays_run_out(at("2026-12-01T00:00:00Z"), TimeDelta::days(400)),
            None
        );
    }

    /// Zones with a change of clocks in the days after the given one.
    const CHANGES: [(&str, &str); 9] = [
        ("Europe/Berlin", "2026-03-27T00:00:00Z"),
        ("Europe/Berlin", "2026-10-23T00:00:00Z"),
        ("Australia/Lord_Howe", "2026-04-03T00:00:00Z"),
        ("Australia/Lord_Howe", "2026-10-02T00:00:00Z"),
        ("America/Santiago", "2026-04-03T00:00:00Z"),
        ("Africa/Cairo", "2026-04-22T00:00:00Z"),
        ("America/Sao_Paulo", "2018-02-16T00:00:00Z"),
        ("Pacific/Apia", "2011-12-28T00:00:00Z"),
        ("Asia/Kolkata", "2026-11-30T00:00:00Z"),
    ];

    fn span() -> impl Strategy<Value = String> {
        let time = || (0..24_u32, prop::sample::select(vec![0, 15, 30, 45]));
        (time(), time())
            .prop_filter("unequal", |(a, b)| a != b)
            .prop_map(|(a, b)| format!("{:02}:{:02}-{:02}:{:02}", a.0, a.1, b.0, b.1))
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 40, failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn open_time_is_what_walking_the_clock_finds(
            days in prop::collection::vec(prop::collection::vec(span(), 0..3), 7),
            place in 0..CHANGES.len(),
            holiday in 0..8_u64,
        ) {
            prop_assume!(days.iter().any(|spans| !spans.is_empty()));
            let keys = ["mon", "tue", "wed", "thu", "fri", "sat", "sun"].map(str::to_owned);
            let entries: Vec<_> = keys.into_iter().zip(days.clone()).collect();
            let (zone, from) = (parse_zone(CHANGES[place].0).unwrap(), at(CHANGES[place].1));
            let closed = from.date_naive() + chrono::Days::new(holiday);
            let calendar = Calendar { timezone: zone, hours: WeekHours::parse(&entries).unwrap(), holidays: [closed].into() };
            // A span is open from when the clock first reaches its start to when it first reaches its end. Walking the
            // clock: the latest reading so far, `reached`, lies in a span or it does not.
            let inside = |local: chrono::NaiveDateTime| (0..3).any(|back| {
                let date = local.date() - chrono::Days::new(back);
                let spans = &days[date.weekday().num_days_from_monday() as usize];
                date != closed && spans.iter().any(|text| {
                    let number = |range: std::ops::Range<usize>| text[range].parse::<i64>().unwrap();
                    let (start, end) = (number(0..2) * 60 + number(3..5), number(6..8) * 60 + number(9..11));
                    let minutes = (local - date.and_time(chrono::NaiveTime::MIN)).num_minutes();
                    start <= minutes && minutes < if end < start { end + 24 * 60 } else { end }
                })
            });
            let quarter = TimeDelta::minutes(15);
            let warm_up = from - TimeDelta::days(3);
            let mut reached = warm_up.with_timezone(&zone).naive_local();
            let mut walked = Vec::new();
            let mut now = warm_up;
            while now < from + TimeDelta::days(5) {
                let reading = now.with_timezone(&zone).naive_local();
                let repeated = reading < reached;
                reached = reached.max(reading);
                // In a repeated hour the clock has already reached what comes before the hour's end.
                let open = inside(if repeated { reached } else { reading });
                walked.push((now, open));
                now += quarter;
            }
            let within = walked.iter().filter(|(now, _)| *now >= from);
            for (now, open) in within.clone() {
                prop_assert_eq!(calendar.open_at(*now), *open, "{} in {}", now, zone);
            }
            let first = within.clone().find(|(_, open)| *open).map(|(now, _)| *now);
            if first.is_some() {
                prop_assert_eq!(calendar.next_open(from), first);
            }
            let open_quarters = within.clone().filter(|(_, open)| *open).count() as i64;
            let spans = calendar.spans_between(from, from + TimeDelta::days(5));
            let total: i64 = spans.iter().map(|(start, end)| (*end - *start).num_minutes()).sum();
            prop_assert_eq!(total, open_quarters * 15);
            prop_assert!(spans.windows(2).all(|pair| pair[0].1 < pair[1].0));
        }
    }
}
