//! Reads `occurred_at`: RFC 3339 and its everyday variants, and epochs in s, ms, µs or ns told apart by size. To the
//! millisecond, as the store keeps it. What a late or early event means for windows is not decided here.

use crate::event::TimeMark;
use chrono::{DateTime, FixedOffset, NaiveDate, TimeDelta, Utc};
use serde_json::Value;

/// Numbers below this are no epoch in any unit, and times before it (March 1973) no time of an event: uninitialised.
const EPOCH_MIN_S: i64 = 100_000_000;

/// How far a clock may be ahead of ours.
const AHEAD_MAX: TimeDelta = TimeDelta::minutes(5);

/// Longest original text that a mark keeps, in characters.
const ORIGINAL_MAX: usize = 200;

/// The time of an event and how far it can be trusted; arrival when there is none that can be used.
pub fn read(value: Option<&Value>, received_at: DateTime<Utc>) -> (DateTime<Utc>, TimeMark) {
    let (read, original) = match value {
        None | Some(Value::Null) => return (received_at, TimeMark::Missing),
        Some(Value::String(text)) if text.trim().is_empty() => return (received_at, TimeMark::Missing),
        Some(Value::String(text)) => (parse_text(text.trim()), text.clone()),
        Some(Value::Number(number)) => {
            let text = number.to_string();
            (parse_epoch(&text).map(|at| (at, TimeMark::Given)), text)
        }
        Some(other @ (Value::Bool(_) | Value::Array(_) | Value::Object(_))) => (None, other.to_string()),
    };
    match read {
        Some((at, _)) if at > received_at + AHEAD_MAX => (received_at, TimeMark::Future(shorten(&original))),
        Some((at, mark)) if at.timestamp() >= EPOCH_MIN_S => (at, mark),
        _ => (received_at, TimeMark::Unreadable(shorten(&original))),
    }
}

fn shorten(text: &str) -> String {
    text.chars().take(ORIGINAL_MAX).collect()
}

fn parse_text(text: &str) -> Option<(DateTime<Utc>, TimeMark)> {
    if let Some(at) = parse_epoch(text) {
        return Some((at, TimeMark::Given));
    }
    if let Some(read) = parse_iso(text.as_bytes()) {
        return Some(read);
    }
    DateTime::parse_from_rfc2822(text).ok().map(|at| (at.to_utc(), TimeMark::Given))
}

/// Seconds, ms, µs or ns since 1970 by the number of digits; a fraction counts in seconds and ms.
fn parse_epoch(text: &str) -> Option<DateTime<Utc>> {
    if text.contains(['e', 'E']) {
        let seconds: f64 = text.parse().ok().filter(|n: &f64| n.is_finite() && *n < 1e19)?;
        return parse_epoch(&format!("{seconds:.3}"));
    }
    let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
    if !(9..=19).contains(&whole.len()) || !all_digits(whole) || !all_digits(fraction) {
        return None;
    }
    let number: i64 = whole.parse().ok()?;
    let ms = match whole.len() {
        9..=11 => number * 1000 + millis(fraction.as_bytes()),
        12..=14 => number,
        15..=17 => number / 1000,
        _ => number / 1_000_000,
    };
    DateTime::from_timestamp_millis(ms)
}

fn all_digits(text: &str) -> bool {
    text.bytes().all(|b| b.is_ascii_digit())
}

/// The first three digits of a fraction.
fn millis(digits: &[u8]) -> i64 {
    (0..3).fold(0, |sum, n| sum * 10 + digits.get(n).map_or(0, |b| i64::from(b.wrapping_sub(b'0'))))
}

/// `YYYY-MM-DD`, then optionally `T` or a space and `HH:MM`, seconds, fraction, offset.
fn parse_iso(text: &[u8]) -> Option<(DateTime<Utc>, TimeMark)> {
    let mut scan = Scan(text);
    let year = scan.number(4)?;
    scan.one_of(b"-")?;
    let month = scan.number(2)?;
    scan.one_of(b"-")?;
    let date = NaiveDate::from_ymd_opt(i32::try_from(year).ok()?, month, scan.number(2)?)?;
    let (hour, minute, second, ms) = if scan.0.is_empty() { (0, 0, 0, 0) } else { scan.clock()? };
    // A leap second reads as the last millisecond of its minute.
    let (second, ms) = if second == 60 { (59, 999) } else { (second, ms) };
    let local = date.and_hms_milli_opt(hour, minute, second, ms)?;
    match scan.offset()? {
        Some(offset) => Some((local.and_local_timezone(offset).single()?.to_utc(), TimeMark::Given)),
        None => Some((local.and_utc(), TimeMark::AssumedUtc)),
    }
}

/// What is left to read.
struct Scan<'a>(&'a [u8]);

impl Scan<'_> {
    /// Exactly so many digits.
    fn number(&mut self, digits: usize) -> Option<u32> {
        let (head, rest) = self.0.split_at_checked(digits)?;
        self.0 = rest;
        head.iter().try_fold(0, |sum, b| b.is_ascii_digit().then(|| sum * 10 + u32::from(b - b'0')))
    }

    fn one_of(&mut self, any: &[u8]) -> Option<u8> {
        let (first, rest) = self.0.split_first()?;
        any.contains(first).then(|| {
            self.0 = rest;
            *first
        })
    }

    /// Hour, minute, second, millisecond.
    fn clock(&mut self) -> Option<(u32, u32, u32, u32)> {
        self.one_of(b"Tt _")?;
        let hour = self.number(2)?;
        self.one_of(b":")?;
        let minute = self.number(2)?;
        let second = if self.one_of(b":").is_some() { self.number(2)? } else { 0 };
        if self.one_of(b".,").is_none() {
            return Some((hour, minute, second, 0));
        }
        let digits = self.0.iter().take_while(|b| b.is_ascii_digit()).count();
        let (fraction, rest) = self.0.split_at(digits);
        self.0 = rest;
        (digits > 0).then_some((hour, minute, second, u32::try_from(millis(fraction)).ok()?))
    }

    /// An offset, or none at the end of the text.
    fn offset(&mut self) -> Option<Option<FixedOffset>> {
        while self.one_of(b" ").is_some() {}
        if matches!(self.0, b"") {
            return Some(None);
        }
        if matches!(self.0, b"Z" | b"z" | b"UTC" | b"GMT") {
            return Some(FixedOffset::east_opt(0));
        }
        let sign = if self.one_of(b"+-")? == b'+' { 1 } else { -1 };
        let hours = self.number(2)?;
        let minutes = match self.0 {
            [] => 0,
            _ => {
                let _ = self.one_of(b":");
                self.number(2)?
            }
        };
        let seconds = i32::try_from(hours * 3600 + minutes * 60).ok()?;
        self.0.is_empty().then(|| FixedOffset::east_opt(sign * seconds)).flatten().map(Some)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde_json::json;

    fn arrival() -> DateTime<Utc> {
        "2026-12-01T09:00:00Z".parse().unwrap()
    }

    fn at(value: Value) -> (String, TimeMark) {
        let (at, mark) = read(Some(&value), arrival());
        (at.to_rfc3339_opts(chrono::SecondsFormat::AutoSi, true), mark)
    }

    #[test]
    fn every_common_form_is_read_to_the_millisecond() {
        let eight = "2026-12-01T08:00:00Z";
        for value in [
            json!("2026-12-01T08:00:00Z"),
            json!("2026-12-01T08:00:00z"),
            json!("2026-12-01t08:00Z"),
            json!("2026-12-01 08:00:00Z"),
            json!("2026-12-01 08:00:00 UTC"),
            json!("2026-12-01T13:30:00+05:30"),
            json!("2026-12-01T13:30:00+0530"),
            json!("2026-12-01T09:00:00+01"),
            json!("2026-12-01T00:30:00.0004-07:30"),
            json!(" 2026-12-01T08:00:00.000000000Z "),
            json!("Tue, 01 Dec 2026 08:00:00 +0000"),
            json!(1_796_112_000),
            json!(1_796_112_000_000_u64),
            json!(1_796_112_000_000_999_u64),
            json!(1_796_112_000_000_000_000_u64),
            json!("1796112000"),
            json!("1796112000000"),
            json!(1_796_112_000.000_4),
            serde_json::from_str("1.796112e9").unwrap(),
        ] {
            assert_eq!(at(value.clone()), (eight.into(), TimeMark::Given), "{value}");
        }
        assert_eq!(at(json!("2026-12-01T08:00:00")), (eight.into(), TimeMark::AssumedUtc));
        assert_eq!(at(json!("2026-12-01")), ("2026-12-01T00:00:00Z".into(), TimeMark::AssumedUtc));
        assert_eq!(at(json!("2026-12-01T08:00:00.6+0000")).0, "2026-12-01T08:00:00.600Z");
        assert_eq!(at(json!("2026-12-01T08:00:00,25Z")).0, "2026-12-01T08:00:00.250Z");
        assert_eq!(at(json!(1_796_112_000.25)).0, "2026-12-01T08:00:00.250Z");
        assert_eq!(at(json!("2026-12-01T07:59:60Z")).0, "2026-12-01T07:59:59.999Z");
    }

    #[test]
    fn what_cannot_be_read_is_arrival_with_the_original_kept() {
        let nine = "2026-12-01T09:00:00Z".to_owned();
        for (value, original) in [
            (json!("yesterday"), "yesterday"),
            (json!({"a": 1}), r#"{"a":1}"#),
            (json!(true), "true"),
            (json!(0), "0"),
            (json!(-5), "-5"),
            (json!("0001-01-01T00:00:00Z"), "0001-01-01T00:00:00Z"),
            (json!("2026-02-30T08:00:00Z"), "2026-02-30T08:00:00Z"),
            (json!("2026-12-01T08:00:00Zebra"), "2026-12-01T08:00:00Zebra"),
        ] {
            assert_eq!(at(value), (nine.clone(), TimeMark::Unreadable(original.into())));
        }
        assert_eq!(at(json!(null)), (nine.clone(), TimeMark::Missing));
        assert_eq!(at(json!(" ")), (nine, TimeMark::Missing));
    }

    #[test]
    fn more_than_five_minutes_ahead_is_arrival() {
        assert_eq!(at(json!("2026-12-01T09:05:00Z")), ("2026-12-01T09:05:00Z".into(), TimeMark::Given));
        assert_eq!(
            at(json!("2026-12-01T09:05:00.001Z")),
            ("2026-12-01T09:00:00Z".into(), TimeMark::Future("2026-12-01T09:05:00.001Z".into()))
        );
    }

    proptest! {
        #[test]
        fn no_text_panics_and_no_time_is_far_ahead(text in "\\PC{0,40}|[0-9TZ:+. -]{0,30}") {
            let (at, _) = read(Some(&json!(text)), arrival());
            prop_assert!(at <= arrival() + AHEAD_MAX);
        }

        #[test]
        fn what_chrono_writes_is_read_back(ms in 100_000_000_000_i64..1_796_115_600_000) {
            let given = DateTime::from_timestamp_millis(ms).unwrap();
            prop_assert_eq!(read(Some(&json!(given.to_rfc3339())), arrival()).0, given);
            prop_assert_eq!(read(Some(&json!(ms)), arrival()).0, given);
        }
    }
}
