//! Times as config writes them: `250ms`, `90s`, `5m`, `4h`, `30d`, `1h30m`. Pure.

use std::time::Duration;

/// Longest time that config may ask for: a hundred years. Sums of a few stay far from overflow.
const LONGEST: Duration = Duration::from_secs(36_525 * 86_400);

const UNITS: [(&str, u64); 6] =
    [("w", 604_800_000), ("d", 86_400_000), ("h", 3_600_000), ("m", 60_000), ("s", 1_000), ("ms", 1)];

/// Reads whole numbers with units, greatest unit first, each unit once. None when it is anything else.
pub fn parse_duration(text: &str) -> Option<Duration> {
    let (mut rest, mut units, mut total) = (text, UNITS.as_slice(), 0_u64);
    if text.is_empty() {
        return None;
    }
    while !rest.is_empty() {
        let digits = rest.find(|c: char| !c.is_ascii_digit())?;
        let number: u64 = rest[..digits].parse().ok()?;
        let letters = rest[digits..].find(|c: char| c.is_ascii_digit()).map_or(rest.len(), |n| digits + n);
        let at = units.iter().position(|(unit, _)| *unit == &rest[digits..letters])?;
        total = total.checked_add(number.checked_mul(units[at].1)?)?;
        units = &units[at + 1..];
        rest = &rest[letters..];
    }
    Some(Duration::from_millis(total)).filter(|d| *d <= LONGEST)
}

/// Writes a time the way config does, whole milliseconds: `1h30m`, `0s`.
pub fn format_duration(time: Duration) -> String {
    let mut rest = u64::try_from(time.as_millis()).unwrap_or(u64::MAX);
    let mut text = String::new();
    for (unit, size) in UNITS.iter().skip(1) {
        if rest >= *size {
            text.push_str(&format!("{}{unit}", rest / size));
            rest %= size;
        }
    }
    if text.is_empty() { "0s".to_owned() } else { text }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn times_of_the_contract_are_read() {
        for (text, ms) in [
            ("250ms", 250),
            ("90s", 90_000),
            ("5m", 300_000),
            ("4h", 14_400_000),
            ("30d", 2_592_000_000),
            ("1h30m", 5_400_000),
            ("2w", 1_209_600_000),
            ("0s", 0),
        ] {
            assert_eq!(parse_duration(text), Some(Duration::from_millis(ms)), "{text}");
        }
    }

    #[test]
    fn anything_else_is_refused() {
        for text in
            ["", "5", "5 m", "m", "1.5h", "-5m", "5min", "30m1h", "1h1h", "99999999999d", "18446744073709551616s", "५m"]
        {
            assert_eq!(parse_duration(text), None, "{text}");
        }
    }

    proptest! {
        #[test]
        fn what_is_written_is_read_back(ms in 0_u64..1_000_000_000_000) {
            let time = Duration::from_millis(ms);
            prop_assert_eq!(parse_duration(&format_duration(time)), Some(time));
        }

        #[test]
        fn no_text_panics(text in ".{0,20}") {
            let _ = parse_duration(&text);
        }
    }
}
