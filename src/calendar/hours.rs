//! Opening hours by weekday, as clock times. Zones, holidays and instants live in `office`.

use chrono::{NaiveDate, NaiveDateTime, NaiveTime, TimeDelta, Weekday};
use std::collections::BTreeMap;

/// Opening hours by weekday, local time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WeekHours {
    /// From Monday.
    days: [Vec<Span>; 7],
}

/// Why a span of hours can't be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct HoursError {
    /// The key or value that is wrong, as written.
    pub value: String,
    /// What is wrong and what to write instead.
    pub message: String,
}

impl HoursError {
    fn new(value: &str, message: impl Into<String>) -> Self {
        Self { value: value.to_owned(), message: message.into() }
    }
}

/// Minutes from the midnight that begins a date; the end may lie on the next date.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Span {
    start: u16,
    end: u16,
}

const DAY: u16 = 24 * 60;
const WEEKDAYS: [&str; 7] = ["mon", "tue", "wed", "thu", "fri", "sat", "sun"];

impl WeekHours {
    /// Reads entries such as `("mon-fri", ["09:30-18:30"])`. Keys are days, ranges of days (which may wrap) and lists
    /// of both; a span that crosses midnight belongs to the day on which it starts; `24:00` is an end.
    ///
    /// # Errors
    /// All that is wrong: an unknown day, a day given twice, a span that can't be read or has equal ends, no hours at
    /// all.
    pub fn parse(entries: &[(String, Vec<String>)]) -> Result<Self, Vec<HoursError>> {
        let mut errors = Vec::new();
        let mut days: [Vec<Span>; 7] = Default::default();
        let mut given: BTreeMap<usize, &str> = BTreeMap::new();
        for (key, spans) in entries {
            let read = spans.iter().filter_map(|text| parse_span(text).map_err(|e| errors.push(e)).ok());
            let read: Vec<Span> = read.collect();
            let named = parse_days(key).unwrap_or_else(|error| {
                errors.push(error);
                Vec::new()
            });
            for day in named {
                match given.insert(day, key) {
                    Some(before) => errors.push(twice(day, key, before)),
                    None => days[day].clone_from(&read),
                }
            }
        }
        if errors.is_empty() && days.iter().all(Vec::is_empty) {
            errors.push(HoursError::new("hours", "no open hours in the whole week"));
        }
        days.iter_mut().for_each(|spans| spans.sort_unstable());
        if errors.is_empty() { Ok(Self { days }) } else { Err(errors) }
    }

    /// Local start and end of each span that starts on `date`, by start.
    pub(super) fn spans_on(
        &self,
        date: NaiveDate,
        weekday: Weekday,
    ) -> impl Iterator<Item = (NaiveDateTime, NaiveDateTime)> {
        let midnight = date.and_time(NaiveTime::MIN);
        let local = move |minutes: u16| midnight + TimeDelta::minutes(i64::from(minutes));
        let spans = self.days.iter().skip(weekday.num_days_from_monday() as usize).take(1).flatten();
        spans.map(move |span| (local(span.start), local(span.end)))
    }
}

fn twice(day: usize, key: &str, before: &str) -> HoursError {
    HoursError::new(key, format!("{} is given twice, by `{before}` and by `{key}`", WEEKDAYS[day]))
}

/// Days that a key names, from Monday = 0.
fn parse_days(key: &str) -> Result<Vec<usize>, HoursError> {
    let mut days = Vec::new();
    for part in key.split(',').map(str::trim) {
        match part.split_once('-') {
            Some((from, to)) => days.extend(day_range(parse_day(from.trim(), key)?, parse_day(to.trim(), key)?)),
            None => days.push(parse_day(part, key)?),
        }
    }
    Ok(days)
}

fn day_range(from: usize, to: usize) -> impl Iterator<Item = usize> {
    let count = (to + 7 - from) % 7 + 1;
    (from..from + count).map(|day| day % 7)
}

fn parse_day(text: &str, key: &str) -> Result<usize, HoursError> {
    let lower = text.to_lowercase();
    WEEKDAYS.iter().position(|day| *day == lower).ok_or_else(|| {
        let hint = match near_day(&lower) {
            Some(day) => format!("; did you mean `{day}`?"),
            None => "; write mon, tue, wed, thu, fri, sat or sun".to_owned(),
        };
        HoursError::new(key, format!("`{text}` is no day of the week{hint}"))
    })
}

fn near_day(text: &str) -> Option<&'static str> {
    let long = |day: &&&str| text.len() > 3 && text.starts_with(**day);
    let near = |day: &&str| strsim::damerau_levenshtein(day, text);
    let closest = WEEKDAYS.iter().min_by_key(|day| near(day)).filter(|day| near(day) <= 1);
    WEEKDAYS.iter().find(long).or(closest).copied()
}

fn parse_span(text: &str) -> Result<Span, HoursError> {
    let shape = || HoursError::new(text, "hours are written as \"HH:MM-HH:MM\"");
    let (start, end) = text.split_once('-').ok_or_else(shape)?;
    let start = parse_time(start.trim()).ok_or_else(shape)?;
    let end = parse_time(end.trim()).ok_or_else(shape)?;
    if start == end {
        return Err(HoursError::new(text, "equal start and end; write \"00:00-24:00\" for the whole day"));
    }
    if start == DAY {
        return Err(HoursError::new(text, "24:00 is an end only; write 00:00 of the next day"));
    }
    Ok(Span { start, end: if end < start { end + DAY } else { end } })
}

/// Minutes since midnight, up to and with 24:00.
fn parse_time(text: &str) -> Option<u16> {
    let (hour, minute) = text.split_once(':')?;
    let digits = |part: &str, lengths: &[usize]| {
        (lengths.contains(&part.len()) && part.bytes().all(|b| b.is_ascii_digit())).then(|| part.parse::<u16>().ok())
    };
    let (hour, minute) = (digits(hour, &[1, 2])??, digits(minute, &[2])??);
    (minute < 60 && hour * 60 + minute <= DAY).then_some(hour * 60 + minute)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(entries: &[(&str, &[&str])]) -> Result<WeekHours, Vec<HoursError>> {
        let owned = |(key, spans): &(&str, &[&str])| (key.to_string(), spans.iter().map(ToString::to_string).collect());
        WeekHours::parse(&entries.iter().map(owned).collect::<Vec<_>>())
    }

    /// Hours per weekday as `start-end` in minutes, from Monday.
    fn minutes(entries: &[(&str, &[&str])]) -> Vec<Vec<(u16, u16)>> {
        let days = parse(entries).unwrap().days;
        days.iter().map(|spans| spans.iter().map(|span| (span.start, span.end)).collect()).collect()
    }

    #[test]
    fn keys_are_days_ranges_that_may_wrap_and_lists() {
        let open =
            |entries: &[(&str, &[&str])]| -> Vec<bool> { minutes(entries).iter().map(|day| !day.is_empty()).collect() };
        let day = &["09:00-17:00"][..];
        let (t, f) = (true, false);
        assert_eq!(open(&[("mon", day)]), [t, f, f, f, f, f, f]);
        assert_eq!(open(&[("mon-fri", day)]), [t, t, t, t, t, f, f]);
        assert_eq!(open(&[("fri-mon", day)]), [t, f, f, f, t, t, t]);
        assert_eq!(open(&[("SAT, sun", day)]), [f, f, f, f, f, t, t]);
        assert_eq!(open(&[("mon,wed-thu", day), ("sat", &[])]), [t, f, t, t, f, f, f]);
        assert_eq!(open(&[("wed-wed", day)]), [f, f, t, f, f, f, f]);
    }

    #[test]
    fn a_span_over_midnight_belongs_to_its_first_day_and_24_00_is_an_end() {
        let monday = |spans: &[&str]| minutes(&[("mon", spans)])[0].clone();
        assert_eq!(monday(&["22:00-06:00"]), [(22 * 60, 30 * 60)]);
        assert_eq!(monday(&["00:00-24:00"]), [(0, 24 * 60)]);
        assert_eq!(monday(&["18:00-00:00"]), [(18 * 60, 24 * 60)]);
        assert_eq!(monday(&["14:00-18:00", "9:30 - 12:00"]), [(570, 720), (840, 1080)]);
    }

    #[test]
    fn what_can_not_be_read_is_named_all_at_once() {
        let errors = parse(&[
            ("mno-fri", &["09:00-17:00"]),
            ("monday", &["09:00-09:00", "9-17", "09:60-10:00", "24:01-02:00", "24:00-02:00", "15:00"]),
            ("weekend", &[]),
            ("tue-thu", &["09:00-17:00"]),
            ("wed", &["09:00-17:00"]),
        ])
        .unwrap_err();
        let said: Vec<_> = errors.iter().map(|e| format!("{} | {e}", e.value)).collect();
        assert_eq!(
            said,
            [
                "mno-fri | `mno` is no day of the week; did you mean `mon`?",
                "09:00-09:00 | equal start and end; write \"00:00-24:00\" for the whole day",
                "9-17 | hours are written as \"HH:MM-HH:MM\"",
                "09:60-10:00 | hours are written as \"HH:MM-HH:MM\"",
                "24:01-02:00 | hours are written as \"HH:MM-HH:MM\"",
                "24:00-02:00 | 24:00 is an end only; write 00:00 of the next day",
                "15:00 | hours are written as \"HH:MM-HH:MM\"",
                "monday | `monday` is no day of the week; did you mean `mon`?",
                "weekend | `weekend` is no day of the week; write mon, tue, wed, thu, fri, sat or sun",
                "wed | wed is given twice, by `tue-thu` and by `wed`",
            ]
        );
    }

    #[test]
    fn a_week_without_hours_is_refused() {
        assert_eq!(parse(&[]).unwrap_err().len(), 1);
        assert_eq!(parse(&[("mon", &[])]).unwrap_err()[0].message, "no open hours in the whole week");
    }
}
