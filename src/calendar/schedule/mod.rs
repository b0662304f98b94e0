//! POSIX cron lines, and the instants at which they come. What is sent then lives in `digest`.
//!
//! The `cron` crate is asked one thing only: which wall-clock time matches next, or before. It is never given a zone,
//! because it skips what falls into a gap and can answer with an instant of the past in a repeated hour.

mod field;
#[cfg(test)]
mod tests;

use super::wall;
use chrono::{DateTime, NaiveDateTime, TimeDelta, Utc};
use chrono_tz::Tz;
use field::{DAY_OF_MONTH, DAY_OF_WEEK, Field, HOUR, MINUTE, MONTH, WEEKDAYS, parse_field};
use std::str::FromStr;

/// A 5-field POSIX cron line or `@hourly` and the like.
///
/// When both day fields are given, a day that matches either is a match. A field that begins with `*`, such as `*/2`,
/// counts as left open, as in the crons of Linux and BSD: then a day must match both.
///
/// Around a change of clocks a line with a fixed hour keeps to local dates: a time in the gap comes at the first
/// instant after it, and a time that is repeated comes once, in its first pass. A line whose hour begins with `*`
/// follows real time: it comes whenever the clock reads a matching time, in both passes, and not in a gap.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Schedule {
    line: String,
    /// One matcher, or two of which either may match.
    matchers: Vec<cron::Schedule>,
    real_time: bool,
}

/// Why a cron line is refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct ScheduleError(pub String);

/// Wall-clock times looked at for one answer. A change of clocks repeats or skips a day of minutes at most.
const CANDIDATES_MAX: usize = 4 * 24 * 60;

impl Schedule {
    /// Reads `minute hour day-of-month month day-of-week`, or `@hourly`, `@daily`, `@midnight`, `@weekly`, `@monthly`,
    /// `@yearly`. Names of months and days are read in any case; Sunday is 0 and 7; ranges may wrap.
    ///
    /// # Errors
    /// When the line is not such a line, or when it can never come.
    pub fn parse(line: &str) -> Result<Self, ScheduleError> {
        let [minute, hour, day_of_month, month, day_of_week] = split_fields(line)?;
        let hour_field = parse_field(&HOUR, hour)?;
        let days = (parse_field(&DAY_OF_MONTH, day_of_month)?, parse_field(&DAY_OF_WEEK, day_of_week)?);
        let times =
            Times { minute: parse_field(&MINUTE, minute)?, hour: hour_field, month: parse_field(&MONTH, month)? };
        let either_day = !days.0.wildcard && !days.1.wildcard;
        let matchers = if either_day {
            vec![times.matcher(Some(days.0), None)?, times.matcher(None, Some(days.1))?]
        } else {
            vec![times.matcher(Some(days.0), Some(days.1))?]
        };
        let schedule = Self { line: line.to_owned(), matchers, real_time: hour_field.wildcard };
        if schedule.match_after(DateTime::UNIX_EPOCH.naive_utc()).is_none() {
            return Err(ScheduleError(format!("`{line}` never comes: no year has such a day")));
        }
        Ok(schedule)
    }

    /// The line as written.
    pub fn line(&self) -> &str {
        &self.line
    }

    /// Whether day of month and day of week are both given, so that either is enough; worth a note to who wrote it.
    pub fn both_days_restricted(&self) -> bool {
        self.matchers.len() > 1
    }

    /// The first slot strictly after `after`; none when there is none in this century.
    pub fn next_after(&self, after: DateTime<Utc>, zone: Tz) -> Option<DateTime<Utc>> {
        let mut local = wall::reading(after, zone) - wall::repeat_ahead(after, zone);
        let mut earliest: Option<DateTime<Utc>> = None;
        for _ in 0..CANDIDATES_MAX {
            local = self.match_after(local)?;
            let Some((first, last)) = self.instants(local, zone) else { continue };
            let slot = if first > after { first } else { last };
            if slot > after {
                earliest = Some(earliest.map_or(slot, |e| e.min(slot)));
            }
            // First passes come in the order of local times: no later local time can come sooner.
            if first > after {
                return earliest;
            }
        }
        earliest
    }

    /// The newest slot at or before `at`; none when there is none since 1970.
    pub fn latest_at_or_before(&self, at: DateTime<Utc>, zone: Tz) -> Option<DateTime<Utc>> {
        let mut local = wall::reading(at, zone) + wall::repeat_behind(at, zone) + TimeDelta::nanoseconds(1);
        let mut latest: Option<DateTime<Utc>> = None;
        for _ in 0..CANDIDATES_MAX {
            local = match self.match_before(local) {
                Some(local) => local,
                None => return latest,
            };
            let Some((first, last)) = self.instants(local, zone) else { continue };
            let slot = if last <= at { last } else { first };
            if slot <= at {
                latest = Some(latest.map_or(slot, |l| l.max(slot)));
            }
            // Last passes come in the order of local times too.
            if last <= at {
                return latest;
            }
        }
        latest
    }

    /// First and last instant at which a matching wall-clock time comes; the same for a line that keeps to dates.
    fn instants(&self, local: NaiveDateTime, zone: Tz) -> Option<(DateTime<Utc>, DateTime<Utc>)> {
        if self.real_time {
            return wall::passes(local, zone);
        }
        let first = wall::first_instant(local, zone);
        Some((first, first))
    }

    fn match_after(&self, local: NaiveDateTime) -> Option<NaiveDateTime> {
        let next = |matcher: &cron::Schedule| matcher.after(&local.and_utc()).next();
        self.matchers.iter().filter_map(next).min().map(|at| at.naive_utc())
    }

    fn match_before(&self, local: NaiveDateTime) -> Option<NaiveDateTime> {
        let previous = |matcher: &cron::Schedule| matcher.after(&local.and_utc()).next_back();
        self.matchers.iter().filter_map(previous).max().map(|at| at.naive_utc())
    }
}

/// The fields that say when on a day, and in which months.
#[derive(Clone, Copy, Debug)]
struct Times {
    minute: Field,
    hour: Field,
    month: Field,
}

impl Times {
    /// A matcher of the `cron` crate. It is given lists of plain values only, since it reads `1-5` as Sunday to
    /// Thursday and knows no wrapping range.
    fn matcher(self, day_of_month: Option<Field>, day_of_week: Option<Field>) -> Result<cron::Schedule, ScheduleError> {
        let numbers = |field: Field| field.values().map(|value| value.to_string()).collect::<Vec<_>>().join(",");
        let days =
            |field: Field| field.values().filter_map(|v| WEEKDAYS.get(usize::from(v)).copied()).collect::<Vec<_>>();
        let text = format!(
            "0 {} {} {} {} {}",
            numbers(self.minute),
            numbers(self.hour),
            day_of_month.map_or("*".to_owned(), numbers),
            numbers(self.month),
            day_of_week.map_or("*".to_owned(), |field| days(field).join(",")),
        );
        cron::Schedule::from_str(&text).map_err(|error| ScheduleError(error.to_string()))
    }
}

/// The five fields of a line, after nicknames.
fn split_fields(line: &str) -> Result<[&str; 5], ScheduleError> {
    let trimmed = line.trim();
    let text = if trimmed.starts_with('@') { expand_nickname(trimmed)? } else { trimmed };
    let fields: Vec<&str> = text.split_ascii_whitespace().collect();
    <[&str; 5]>::try_from(fields).map_err(|fields| {
        let extra = if fields.len() > 5 { "; there are no seconds and no year" } else { "" };
        ScheduleError(format!(
            "`{line}` has {} fields; a cron line has 5 fields: minute, hour, day of month, month, day of week{extra}",
            fields.len()
        ))
    })
}

fn expand_nickname(name: &str) -> Result<&'static str, ScheduleError> {
    match name.to_ascii_lowercase().as_str() {
        "@hourly" => Ok("0 * * * *"),
        "@daily" | "@midnight" => Ok("0 0 * * *"),
        "@weekly" => Ok("0 0 * * 0"),
        "@monthly" => Ok("0 0 1 * *"),
        "@yearly" | "@annually" => Ok("0 0 1 1 *"),
        _ => Err(ScheduleError(format!(
            "`{name}` is unknown; write @hourly, @daily, @midnight, @weekly, @monthly, @yearly or 5 fields"
        ))),
    }
}
