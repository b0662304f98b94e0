//! How numbers, durations, times and changes read, for pages and digests alike. Plain British words, no layout:
//! what is said about which workflow is composed elsewhere.

use crate::event::Class;
pub use crate::mailbox::label as owner_name;
use chrono::{DateTime, Datelike, Offset, TimeZone, Utc};
use chrono_tz::{OffsetName, Tz};
use std::time::Duration;

/// Digits with a comma between thousands: `1,204`.
pub fn count(n: u64) -> String {
    let digits = n.to_string();
    let mut out = String::new();
    for (i, digit) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

/// A number and its noun, which agrees: `1 order`, `0 orders`, `1,204 runs`.
pub fn noun(n: u64, singular: &str) -> String {
    format!("{} {}", count(n), noun_only(n, singular))
}

/// The noun that goes with `n`, without the number.
pub fn noun_only(n: u64, singular: &str) -> String {
    if n == 1 { singular.to_owned() } else { plural(singular) }
}

/// A number, its noun and `has` or `have`: `1 order has`, `14 orders have`.
pub fn noun_have(n: u64, singular: &str) -> String {
    format!("{} {}", noun(n, singular), if n == 1 { "has" } else { "have" })
}

/// A number, its noun and `is` or `are`: `1 dead letter is`, `2 dead letters are`.
pub fn noun_be(n: u64, singular: &str) -> String {
    format!("{} {}", noun(n, singular), if n == 1 { "is" } else { "are" })
}

/// The plural of a regular English noun; the last word of several is the one that changes.
fn plural(singular: &str) -> String {
    let lower = singular.to_lowercase();
    let sibilant = ["s", "x", "z", "ch", "sh"].iter().any(|end| lower.ends_with(end));
    let before_y = lower.strip_suffix('y').and_then(|stem| stem.chars().last());
    match before_y {
        Some(letter) if !"aeiou".contains(letter) => {
            format!("{}ies", singular.strip_suffix(['y', 'Y']).unwrap_or(singular))
        }
        _ if sibilant => format!("{singular}es"),
        _ => format!("{singular}s"),
    }
}

/// Whole per cent, cut not rounded up to 100: `23 %`; `?` when there was nothing to take a share of.
pub fn share(part: u64, whole: u64) -> String {
    match (u128::from(part) * 100).checked_div(u128::from(whole)) {
        Some(percent) => format!("{percent} %"),
        None => "?".to_owned(),
    }
}

/// Like [`share`], with one decimal under 10 %, for tables: `3.4 %`.
pub fn share_fine(part: u64, whole: u64) -> String {
    match (u128::from(part) * 1000).checked_div(u128::from(whole)) {
        Some(0) => "0 %".to_owned(),
        Some(permille) if permille < 100 => format!("{}.{} %", permille / 10, permille % 10),
        Some(permille) => format!("{} %", permille / 10),
        None => "?".to_owned(),
    }
}

/// At most two units, cut not rounded: `9 s`, `3 min 40 s`, `12 min`, `1 h 12 min`, `26 h`, `2 d 17 h`.
pub fn duration(length: Duration) -> String {
    let s = length.as_secs();
    let (min, h, d) = (s / 60, s / 3600, s / 86_400);
    match s {
        0..60 => format!("{s} s"),
        60..600 => two_units(min, "min", s % 60, "s"),
        600..3_600 => format!("{min} min"),
        3_600..36_000 => two_units(h, "h", min % 60, "min"),
        36_000..172_800 => format!("{h} h"),
        _ => two_units(d, "d", h % 24, "h"),
    }
}

/// For columns of ages: the largest unit only under 48 h (`45 s`, `12 min`, `26 h`), then `2 d 17 h`.
pub fn age(length: Duration) -> String {
    let s = length.as_secs();
    match s {
        0..60 => format!("{s} s"),
        60..3_600 => format!("{} min", s / 60),
        3_600..172_800 => format!("{} h", s / 3600),
        _ => duration(length),
    }
}

fn two_units(large: u64, large_unit: &str, small: u64, small_unit: &str) -> String {
    match small {
        0 => format!("{large} {large_unit}"),
        _ => format!("{large} {large_unit} {small} {small_unit}"),
    }
}

/// The time from `start` to `end`; zero when they are the wrong way round.
pub fn between(start: DateTime<Utc>, end: DateTime<Utc>) -> Duration {
    (end - start).to_std().unwrap_or_default()
}

/// `Tue 21:41` within seven days of `now`, `29 Oct` beyond.
pub fn time(at: DateTime<Utc>, now: DateTime<Utc>, zone: Tz) -> String {
    let local = at.with_timezone(&zone);
    match (now - at).abs() < chrono::Duration::days(7) {
        true => local.format("%a %H:%M").to_string(),
        false => local.format("%-d %b").to_string(),
    }
}

/// `21:45`.
pub fn clock(at: DateTime<Utc>, zone: Tz) -> String {
    at.with_timezone(&zone).format("%H:%M").to_string()
}

/// `Wed 18 Nov`.
pub fn date(at: DateTime<Utc>, zone: Tz) -> String {
    at.with_timezone(&zone).format("%a %-d %b").to_string()
}

/// `Wed 18 Nov 2026`, for titles.
pub fn date_with_year(at: DateTime<Utc>, zone: Tz) -> String {
    at.with_timezone(&zone).format("%a %-d %b %Y").to_string()
}

/// `Tue 17 Nov 10:00`.
pub fn date_time(at: DateTime<Utc>, zone: Tz) -> String {
    at.with_timezone(&zone).format("%a %-d %b %H:%M").to_string()
}

/// `Tue 21:41 to 22:53`, or `Tue 21:41 to Wed 03:10` over midnight.
pub fn span(start: DateTime<Utc>, end: DateTime<Utc>, now: DateTime<Utc>, zone: Tz) -> String {
    let same_day = start.with_timezone(&zone).num_days_from_ce() == end.with_timezone(&zone).num_days_from_ce();
    let recent = (now - start).abs() < chrono::Duration::days(7);
    let end = if same_day && recent { clock(end, zone) } else { time(end, now, zone) };
    format!("{} to {end}", time(start, now, zone))
}

/// `Tue 17 Nov 10:00 to Wed 18 Nov 10:00 IST`, or `Wed 18 Nov 09:00 to 10:00 IST` within a day.
pub fn window(start: DateTime<Utc>, end: DateTime<Utc>, zone: Tz) -> String {
    let same_day = start.with_timezone(&zone).date_naive() == end.with_timezone(&zone).date_naive();
    let until = if same_day { clock(end, zone) } else { date_time(end, zone) };
    format!("{} to {until} {}", date_time(start, zone), zone_name(zone, end))
}

/// The short name of a zone at an instant: `IST`, `CEST`, `UTC`; `UTC+03:00` where people use no letters.
pub fn zone_name(zone: Tz, at: DateTime<Utc>) -> String {
    let offset = zone.offset_from_utc_datetime(&at.naive_utc());
    match offset.abbreviation() {
        Some(letters) if letters.starts_with(|c: char| c.is_ascii_alphabetic()) => letters.to_owned(),
        Some(digits) => format!("UTC{digits}"),
        None => format!("UTC{}", offset.fix()),
    }
}

/// How a number moved: `↑ from 71`, `↓ from 88`, `same`, `no data before`.
pub fn change(now: u64, before: Option<u64>) -> String {
    change_as(now, before, |n| count(*n))
}

/// Like [`change`], for anything that has an order and a way to be written.
pub fn change_as<T: PartialOrd>(now: T, before: Option<T>, write: impl Fn(&T) -> String) -> String {
    let Some(before) = before else { return "no data before".to_owned() };
    let (old, new) = (write(&before), write(&now));
    // Two numbers that read the same are the same to a reader.
    if old == new {
        return "same".to_owned();
    }
    format!("{} from {old}", if now > before { '↑' } else { '↓' })
}

/// A class in plain words: `transient`, `rate limited`, `LLM output`.
pub fn class(class: Class) -> &'static str {
    match class {
        Class::Transient => "transient",
        Class::RateLimited => "rate limited",
        Class::Persistent => "persistent",
        Class::InvalidInput => "invalid input",
        Class::OutcomeUnknown => "outcome unknown",
        Class::LlmOutput => "LLM output",
        Class::LlmRefusal => "LLM refusal",
        Class::LlmHallucination => "LLM hallucination",
        Class::LlmContext => "LLM context",
        Class::LlmBehavior => "LLM behaviour",
        Class::Catastrophic => "catastrophic",
        Class::Interrupted => "interrupted",
        Class::Unclassified => "unclassified",
    }
}

/// One line: control characters and line breaks become spaces, runs of blanks one, ends trimmed. Marks that turn the
/// direction of what follows go: they would turn our words too.
pub fn one_line(text: &str) -> String {
    let shown = text.chars().filter(|c| !turns_direction(*c));
    let spaced = shown.map(|c| if c.is_control() || is_line_break(c) { ' ' } else { c }).collect::<String>();
    spaced.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Line and paragraph separators, which some readers break lines at.
pub(super) fn is_line_break(c: char) -> bool {
    matches!(c, '\n' | '\r' | '\u{b}' | '\u{c}' | '\u{85}' | '\u{2028}' | '\u{2029}')
}

/// Embeddings, overrides and isolates of Unicode's bidirectional text.
pub(super) fn turns_direction(c: char) -> bool {
    matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

/// At most `max` characters of `text` and then how much was cut: `abc… (1,234 more characters)`. The mark comes on
/// top of `max`. A text that was cut before is cut again with the sum of both.
pub fn cut(text: &str, max: usize) -> String {
    let (body, cut_before) = split_mark(text);
    let length = body.chars().count();
    if length <= max {
        return text.to_owned();
    }
    let kept: String = body.chars().take(max).collect();
    let gone = (length - kept.chars().count()) as u64 + cut_before;
    format!("{}{}", kept.trim_end(), cut_mark(gone))
}

/// What a cut text ends with.
pub(super) fn cut_mark(gone: u64) -> String {
    format!("… ({} more {})", count(gone), if gone == 1 { "character" } else { "characters" })
}

/// Takes the mark of an earlier cut off: the text, and how many characters that cut took.
pub(super) fn split_mark(text: &str) -> (&str, u64) {
    let marked = text.strip_suffix(" more characters)").or_else(|| text.strip_suffix(" more character)"));
    let parts = marked.and_then(|rest| rest.rsplit_once("… ("));
    match parts.map(|(body, digits)| (body, digits.replace(',', "").parse::<u64>())) {
        Some((body, Ok(gone))) if gone < u64::from(u32::MAX) => (body, gone),
        Some(_) | None => (text, 0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(text: &str) -> DateTime<Utc> {
        text.parse().unwrap()
    }

    fn d(seconds: u64) -> String {
        duration(Duration::from_secs(seconds))
    }

    #[test]
    fn nouns_agree_with_their_number() {
        assert_eq!(noun(0, "run"), "0 runs");
        assert_eq!(noun(1, "run"), "1 run");
        assert_eq!(noun(1204, "entry"), "1,204 entries");
        assert_eq!(noun(2, "key"), "2 keys");
        assert_eq!(noun(2, "tax invoice"), "2 tax invoices");
        assert_eq!(noun(2, "batch"), "2 batches");
        assert_eq!(noun_have(1, "order"), "1 order has");
        assert_eq!(noun_have(2, "order"), "2 orders have");
    }

    #[test]
    fn thousands_are_set_apart_by_commas() {
        assert_eq!(count(999), "999");
        assert_eq!(count(1000), "1,000");
        assert_eq!(count(u64::MAX), "18,446,744,073,709,551,615");
    }

    #[test]
    fn durations_have_at_most_two_units_and_are_cut() {
        let read: Vec<String> =
            [9, 180, 220, 599, 600, 779, 3600, 4320, 35_999, 36_000, 95_000, 172_799, 172_800, 234_000].map(d).to_vec();
        assert_eq!(
            read,
            [
                "9 s",
                "3 min",
                "3 min 40 s",
                "9 min 59 s",
                "10 min",
                "12 min",
                "1 h",
                "1 h 12 min",
                "9 h 59 min",
                "10 h",
                "26 h",
                "47 h",
                "2 d",
                "2 d 17 h"
            ]
        );
    }

    #[test]
    fn a_share_of_nothing_is_unknown() {
        assert_eq!(share(0, 0), "?");
        assert_eq!(share_fine(0, 0), "?");
    }

    #[test]
    fn shares_are_cut_and_fine_under_ten_per_cent() {
        assert_eq!(share(999, 1000), "99 %");
        assert_eq!(share_fine(14, 409), "3.4 %");
        assert_eq!(share_fine(99, 409), "24 %");
        assert_eq!(share(u64::MAX, u64::MAX), "100 %");
    }

    #[test]
    fn a_time_names_the_weekday_within_seven_days_and_the_date_beyond() {
        let now = at("2026-11-18T04:30:00Z");
        let zone = chrono_tz::Asia::Kolkata;
        assert_eq!(time(at("2026-11-17T16:11:00Z"), now, zone), "Tue 21:41");
        assert_eq!(time(at("2026-10-29T10:00:00Z"), now, zone), "29 Oct");
        assert_eq!(window(at("2026-11-17T04:30:00Z"), now, zone), "Tue 17 Nov 10:00 to Wed 18 Nov 10:00 IST");
        assert_eq!(window(at("2026-11-18T03:30:00Z"), now, zone), "Wed 18 Nov 09:00 to 10:00 IST");
        assert_eq!(span(at("2026-11-17T16:11:00Z"), at("2026-11-17T17:23:00Z"), now, zone), "Tue 21:41 to 22:53");
        assert_eq!(span(at("2026-11-17T16:11:00Z"), at("2026-11-17T21:23:00Z"), now, zone), "Tue 21:41 to Wed 02:53");
    }

    #[test]
    fn zones_without_letters_show_their_offset() {
        let now = at("2026-11-18T04:30:00Z");
        assert_eq!(zone_name(chrono_tz::UTC, now), "UTC");
        assert_eq!(zone_name(chrono_tz::America::Sao_Paulo, now), "UTC-03:00");
    }

    #[test]
    fn a_change_says_from_where() {
        assert_eq!(change(116, Some(71)), "↑ from 71");
        assert_eq!(change(1, Some(1204)), "↓ from 1,204");
        assert_eq!(change(7, Some(7)), "same");
        assert_eq!(change(7, None), "no data before");
        assert_eq!(change_as(59, Some(88), |p| format!("{p} %")), "↓ from 88 %");
    }

    #[test]
    fn a_cut_text_says_how_much_was_cut_also_when_cut_twice() {
        let once = cut(&"x".repeat(2000), 1000);
        assert!(once.ends_with("x… (1,000 more characters)"), "{once}");
        assert!(cut(&once, 500).ends_with("x… (1,500 more characters)"));
        assert_eq!(cut("müller", 6), "müller");
        assert_eq!(cut("müller", 5), "mülle… (1 more character)");
    }

    #[test]
    fn one_line_has_no_control_characters() {
        assert_eq!(one_line(" a\r\nBcc: x\u{7}\u{2028}\u{202e}y\t "), "a Bcc: x y");
    }
}
