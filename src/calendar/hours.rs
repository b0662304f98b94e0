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
