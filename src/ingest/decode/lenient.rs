//! Reads a field as best as can be: numbers as text, text as numbers. What can't be read is as if it were missing;
//! the body keeps it. A wrong type in an optional field never costs an event.

use serde_json::{Number, Value};

/// Text, number or truth value as text; blank is none.
pub fn text(value: Value) -> Option<String> {
    let text = match value {
        Value::String(text) => text,
        Value::Number(number) => number.to_string(),
        Value::Bool(truth) => truth.to_string(),
        Value::Null | Value::Array(_) | Value::Object(_) => return None,
    };
    if text.trim().is_empty() { None } else { Some(text) }
}

/// Text for people: as `text`, an object or array as JSON.
pub fn prose(value: Value) -> Option<String> {
    match value {
        Value::Array(ref items) if items.is_empty() => None,
        Value::Array(_) | Value::Object(_) => Some(value.to_string()),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => text(value),
    }
}

/// A whole number of 0 or more, given as number or text; `3.0` and `1e3` count as whole.
pub fn count(value: &Value) -> Option<u64> {
    match value {
        Value::Number(number) => count_of(number),
        Value::String(text) => count_of(&text.trim().parse::<Number>().ok()?),
        Value::Null | Value::Bool(_) | Value::Array(_) | Value::Object(_) => None,
    }
}

fn count_of(number: &Number) -> Option<u64> {
    if let Some(exact) = number.as_u64() {
        return Some(exact);
    }
    let float = number.as_f64()?;
    let whole = float >= 0.0 && float.fract() == 0.0 && float < 9_007_199_254_740_992.0;
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "checked to be whole and below 2^53")]
    whole.then_some(float as u64)
}

/// As `count`, for small numbers; too large is none.
pub fn small_count(value: &Value) -> Option<u32> {
    count(value).and_then(|n| u32::try_from(n).ok())
}

/// A finite number of 0 or more, given as number or text.
pub fn amount(value: &Value) -> Option<f64> {
    let number = match value {
        Value::Number(number) => number.as_f64(),
        Value::String(text) => text.trim().parse().ok(),
        Value::Null | Value::Bool(_) | Value::Array(_) | Value::Object(_) => None,
    };
    number.filter(|n| n.is_finite() && *n >= 0.0)
}

/// A status of 100 to 599, given as number or text.
pub fn http_status(value: &Value) -> Option<u16> {
    count(value).and_then(|n| u16::try_from(n).ok()).filter(|n| (100..=599).contains(n))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn numbers_are_read_from_numbers_and_texts() {
        assert_eq!(count(&json!(3)), Some(3));
        assert_eq!(count(&json!(" 3 ")), Some(3));
        assert_eq!(count(&json!(3.0)), Some(3));
        assert_eq!(count(&json!(u64::MAX)), Some(u64::MAX));
        assert_eq!(count(&json!(-1)), None);
        assert_eq!(count(&json!(2.5)), None);
        assert_eq!(count(&json!("three")), None);
        assert_eq!(http_status(&json!("503")), Some(503));
        assert_eq!(http_status(&json!(0)), None);
        assert_eq!(http_status(&json!("ECONNRESET")), None);
        assert_eq!(amount(&json!("1.5")), Some(1.5));
        assert_eq!(amount(&json!("inf")), None);
        assert_eq!(small_count(&json!(5_000_000_000_u64)), None);
    }

    #[test]
    fn texts_keep_the_digits_of_numbers() {
        let big: Value = serde_json::from_str("9007199254740993").unwrap();
        assert_eq!(text(big), Some("9007199254740993".into()));
        assert_eq!(text(json!(" ")), None);
        assert_eq!(text(json!({"a": 1})), None);
        assert_eq!(prose(json!({"a": 1})), Some(r#"{"a":1}"#.into()));
        assert_eq!(prose(json!([])), None);
    }
}
