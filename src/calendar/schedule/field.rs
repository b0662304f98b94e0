//! One field of a cron line: from its text to the set of values that it names. What the five together mean is
//! said in `mod.rs`.

use super::ScheduleError;

/// What is known of each of the five fields.
#[derive(Debug)]
pub(super) struct FieldKind {
    name: &'static str,
    min: u8,
    /// Highest value that repeats nothing; Sunday may also be written as one more.
    max: u8,
    names: &'static [&'static str],
    /// A value that means the same as `min`.
    alias_of_min: Option<u8>,
}

const MONTHS: &[&str] = &["JAN", "FEB", "MAR", "APR", "MAY", "JUN", "JUL", "AUG", "SEP", "OCT", "NOV", "DEC"];
/// From Sunday, as cron counts.
pub(super) const WEEKDAYS: &[&str] = &["SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT"];

pub(super) const MINUTE: FieldKind = FieldKind { name: "minute", min: 0, max: 59, names: &[], alias_of_min: None };
pub(super) const HOUR: FieldKind = FieldKind { name: "hour", min: 0, max: 23, names: &[], alias_of_min: None };
pub(super) const DAY_OF_MONTH: FieldKind =
    FieldKind { name: "day of month", min: 1, max: 31, names: &[], alias_of_min: None };
pub(super) const MONTH: FieldKind = FieldKind { name: "month", min: 1, max: 12, names: MONTHS, alias_of_min: None };
pub(super) const DAY_OF_WEEK: FieldKind =
    FieldKind { name: "day of week", min: 0, max: 6, names: WEEKDAYS, alias_of_min: Some(7) };

/// The values that a field names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Field {
    /// Bit n is set when value n is named.
    bits: u64,
    /// The text begins with `*`: the field was left open, if need be in steps.
    pub(super) wildcard: bool,
}

impl Field {
    /// The values, ascending.
    pub(super) fn values(self) -> impl Iterator<Item = u8> {
        (0..64).filter(move |value| self.bits >> value & 1 == 1)
    }
}

/// Reads one field.
pub(super) fn parse_field(kind: &FieldKind, text: &str) -> Result<Field, ScheduleError> {
    let refuse = |reason: String| ScheduleError(format!("{} `{text}`: {reason}", kind.name));
    let bits = text.split(',').try_fold(0, |bits, element| Ok(bits | parse_element(kind, element)?));
    Ok(Field { bits: bits.map_err(refuse)?, wildcard: text.starts_with('*') })
}

/// `*`, `*/n`, `a`, `a-b` or `a-b/n`.
fn parse_element(kind: &FieldKind, element: &str) -> Result<u64, String> {
    let (range, step) = match element.split_once('/') {
        Some((range, step)) => (range, parse_step(kind, step)?),
        None => (element, 1),
    };
    if range == "*" {
        return Ok(bits_of((kind.min..=kind.max).step_by(step)));
    }
    match range.split_once('-') {
        Some((from, to)) => Ok(range_bits(kind, parse_value(kind, from)?, parse_value(kind, to)?, step)),
        None if element.contains('/') => {
            let from = parse_value(kind, range)?;
            Err(format!("a step needs a range: write `{from}-{}/{step}` or `*/{step}`", kind.max))
        }
        None => parse_value(kind, range).map(|value| bits_of([kind.canonical(value)])),
    }
}

/// A range may wrap round the end of its field, as in `FRI-MON`.
fn range_bits(kind: &FieldKind, from: u8, to: u8, step: usize) -> u64 {
    let from = if from > to { kind.canonical(from) } else { from };
    if from <= to {
        return bits_of((from..=to).step_by(step).map(|value| kind.canonical(value)));
    }
    bits_of((from..=kind.max).chain(kind.min..=to).step_by(step))
}

fn bits_of(values: impl IntoIterator<Item = u8>) -> u64 {
    values.into_iter().fold(0, |bits, value| bits | 1 << value)
}

impl FieldKind {
    fn canonical(&self, value: u8) -> u8 {
        if self.alias_of_min == Some(value) { self.min } else { value }
    }

    fn highest(&self) -> u8 {
        self.alias_of_min.unwrap_or(self.max)
    }
}

fn parse_step(kind: &FieldKind, text: &str) -> Result<usize, String> {
    match parse_number(text) {
        Some(0) => Err("a step of 0 never moves".to_owned()),
        Some(step) if step <= kind.highest() => Ok(usize::from(step)),
        Some(_) | None if text.bytes().all(|b| b.is_ascii_digit()) && !text.is_empty() => {
            Err(format!("a step of {text} is longer than the field, which ends at {}", kind.highest()))
        }
        Some(_) | None => Err(format!("`{text}` is no step; write a number from 1 to {}", kind.highest())),
    }
}

fn parse_value(kind: &FieldKind, text: &str) -> Result<u8, String> {
    let upper = text.to_ascii_uppercase();
    if let Some(place) = (kind.min..).zip(kind.names).find(|(_, name)| **name == upper) {
        return Ok(place.0);
    }
    match parse_number(text) {
        Some(value) if (kind.min..=kind.highest()).contains(&value) => Ok(value),
        _ => Err(refusal(kind, text)),
    }
}

fn refusal(kind: &FieldKind, text: &str) -> String {
    let allowed = match kind.names {
        [first, .., last] => format!("{} to {} or {first} to {last}", kind.min, kind.highest()),
        _ => format!("{} to {}", kind.min, kind.highest()),
    };
    let quartz = kind.names.is_empty() && text.ends_with(['L', 'W', 'l', 'w']);
    if quartz || text.contains(['?', '#']) {
        return format!("`{text}` is not POSIX cron; write {allowed}, or `*`");
    }
    if text.is_empty() {
        return format!("a value is missing; write {allowed}");
    }
    format!("`{text}` is not a value; write {allowed}")
}

fn parse_number(text: &str) -> Option<u8> {
    let digits = !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    digits.then(|| text.parse().ok()).flatten()
}
