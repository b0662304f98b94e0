//! From bytes to a JSON value: size, BOM, UTF-8, and the two kinds of escape that JSON allows but no database takes:
//! U+0000 and lone surrogates. What the value means is not looked at here.

use crate::ingest::QuarantineReason;
use serde_json::Value;
use std::borrow::Cow;

/// Largest message that is read, in bytes.
pub const MESSAGE_MAX: usize = 1024 * 1024;

/// Stands for U+0000.
pub const NUL_SIGN: char = '\u{2400}';

/// Reads the bytes of a message as JSON.
///
/// # Errors
/// `too_large`, `empty`, `not_utf8` or `not_json`.
pub fn parse(bytes: &[u8]) -> Result<Value, QuarantineReason> {
    if bytes.len() > MESSAGE_MAX {
        return Err(QuarantineReason::TooLarge { bytes: bytes.len() });
    }
    let bytes = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes);
    let text = std::str::from_utf8(bytes).map_err(|e| QuarantineReason::NotUtf8 { at: e.valid_up_to() })?;
    if text.trim_ascii().is_empty() {
        return Err(QuarantineReason::Empty);
    }
    serde_json::from_str(&repair_escapes(text)).map_err(|e| QuarantineReason::NotJson {
        line: e.line(),
        column: e.column(),
        problem: without_position(&e.to_string()),
    })
}

fn without_position(message: &str) -> String {
    message.rsplit_once(" at line ").map_or(message, |(what, _)| what).to_owned()
}

/// Writes `\u0000` as ␀ and lone surrogates as U+FFFD. A backslash that is itself escaped starts no escape, so the
/// literal text backslash-u0000 stays. Borrows when there is nothing to do, which is nearly always.
fn repair_escapes(text: &str) -> Cow<'_, str> {
    let bytes = text.as_bytes();
    let mut repaired: Option<String> = None;
    let (mut kept, mut at) = (0, 0);
    // A backslash before anything but ASCII is no JSON: the parser will say so.
    while let Some(found) = text.get(at..).and_then(|rest| rest.find('\\')) {
        let start = at + found;
        if bytes.get(start + 1) != Some(&b'u') {
            at = start + 2;
            continue;
        }
        let (length, sign) = judge(bytes, start);
        if let Some(sign) = sign {
            let out = repaired.get_or_insert_with(|| String::with_capacity(text.len()));
            out.push_str(&text[kept..start]);
            out.push(sign);
            kept = start + length;
        }
        at = start + length;
    }
    match repaired {
        Some(mut out) => {
            out.push_str(&text[kept..]);
            Cow::Owned(out)
        }
        None => Cow::Borrowed(text),
    }
}

/// Length of the escape at `start`, and what to write instead of it; none leaves it to the parser, also when malformed.
fn judge(bytes: &[u8], start: usize) -> (usize, Option<char>) {
    match unit(bytes, start) {
        Some(0) => (6, Some(NUL_SIGN)),
        Some(0xd800..=0xdbff) => match unit(bytes, start + 6) {
            Some(0xdc00..=0xdfff) => (12, None),
            _ => (6, Some(char::REPLACEMENT_CHARACTER)),
        },
        Some(0xdc00..=0xdfff) => (6, Some(char::REPLACEMENT_CHARACTER)),
        Some(_) => (6, None),
        None => (2, None),
    }
}

/// The UTF-16 unit of a `\uXXXX` that begins at `start`.
fn unit(bytes: &[u8], start: usize) -> Option<u32> {
    let escape = bytes.get(start..start + 6)?;
    let digits = escape.strip_prefix(b"\\u")?;
    digits.iter().try_fold(0, |sum, b| Some(sum * 16 + char::from(*b).to_digit(16)?))
}

/// Text from outside JSON (headers, subjects) with U+0000 shown.
pub fn visible(text: &str) -> Cow<'_, str> {
    if text.contains('\0') { Cow::Owned(text.replace('\0', "\u{2400}")) } else { Cow::Borrowed(text) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn read(text: &str) -> Value {
        parse(text.as_bytes()).unwrap()
    }

    #[test]
    fn nul_is_shown_and_a_literal_backslash_stays() {
        let value = read(r#"{"m":"a\u0000b literal:\\u0000 end","k\u0000ey":1}"#);
        assert_eq!(value, json!({"m": "a␀b literal:\\u0000 end", "k␀ey": 1}));
        assert_eq!(read(r#"["\\\u0000"]"#), json!(["\\␀"]));
    }

    #[test]
    fn lone_surrogates_are_shown_and_pairs_are_kept() {
        assert_eq!(read(r#"["half \ud83d pair"]"#), json!(["half \u{fffd} pair"]));
        assert_eq!(
            read(r#"["\udd25 low", "\ud83d\ud83d\udd25", "\uD83D"]"#),
            json!(["\u{fffd} low", "\u{fffd}🔥", "\u{fffd}"])
        );
        assert_eq!(read(r#"["\ud83d\u0000"]"#), json!(["\u{fffd}␀"]));
        assert_eq!(read(r#"["\ud83d\\udd25"]"#), json!(["\u{fffd}\\udd25"]));
    }

    #[test]
    fn bom_is_accepted_and_what_is_no_json_says_where() {
        assert_eq!(parse(b"\xef\xbb\xbf{}"), Ok(json!({})));
        assert_eq!(parse(b"\xff\xfe\x00rubbish"), Err(QuarantineReason::NotUtf8 { at: 0 }));
        assert_eq!(parse(b" \n"), Err(QuarantineReason::Empty));
        let reason = parse(b"{\n  not json").unwrap_err();
        assert_eq!(reason.to_string(), "not JSON at line 2, column 3: key must be a string");
        assert_eq!(parse(b"{}{}{}").unwrap_err().as_str(), "not_json");
        assert_eq!(parse(&vec![b' '; MESSAGE_MAX + 1]).unwrap_err().as_str(), "too_large");
        assert_eq!(parse("[".repeat(4000).as_bytes()).unwrap_err().as_str(), "not_json");
        assert_eq!(parse(br#"["\u12"]"#).unwrap_err().as_str(), "not_json");
    }

    #[test]
    fn of_duplicate_keys_the_last_wins_and_big_integers_keep_their_digits() {
        assert_eq!(read(r#"{"id":"d1","id":"d2"}"#), json!({"id": "d2"}));
        assert_eq!(
            read("[9007199254740993, 123456789012345678901234567890]").to_string(),
            "[9007199254740993,123456789012345678901234567890]"
        );
    }
}
