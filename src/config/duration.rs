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
        fn a_time_is_the_sum_of_its_parts(h in 0_u64..1000, m in 0_u64..1000, ms in 0_u64..1000) {
            let time = Duration::from_millis(h * 3_600_000 + m * 60_000 + ms);
            prop_assert_eq!(parse_duration(&format!("{h}h{m}m{ms}ms")), Some(time));
        }

        #[test]
        fn no_text_panics(text in ".{0,20}") {
            let _ = parse_duration(&text);
        }
    }
}
