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
        let mut ahead = self.spans_from(today).take_while(|(date, _)| *date <= last).filter(|(_, span)| span.1 > at);
        let (date, first) = ahead.next()?;
        // Spans of one date may overlap, and a night of the day before may still run.
        let rest = ahead.take_while(|(other, _)| *other <= date + TimeDelta::days(1));
        Some(rest.fold(first.0, |start, (_, span)| start.min(span.0)).max(at))
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
