//! Redaction: what must not be stored is replaced by `‹redacted:xxxxxxxx›` before anything keeps it. The eight digits
//! are a keyed hash, so that equal values stay equal and nobody can try values out without the key.
//!
//! Hidden are the values of keys named like a secret (`key`), such values, URL credentials and tokens in any text
//! (`text`), and card numbers (`card`). Nothing is decided from what was hidden.

mod card;
mod key;
mod text;

use crate::config::RedactSettings;
use key::{KeyNames, Secrecy};
use regex::Regex;
use ring::hmac;
use serde_json::{Map, Value};
use std::fmt;

const OPEN: &str = "‹redacted:";
const CLOSE: &str = "›";
/// Bytes of a whole marker.
const MARKER_LEN: usize = OPEN.len() + 8 + CLOSE.len();

/// Hides secrets in events. Its key never shows, also not in `Debug`.
pub struct Redactor {
    key: hmac::Key,
    names: KeyNames,
    patterns: Vec<Regex>,
    triggers: text::Triggers,
}

impl fmt::Debug for Redactor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Redactor").field("patterns", &self.patterns).finish_non_exhaustive()
    }
}

impl Redactor {
    /// Config's keys and patterns on top of the built-in ones; `key` is the store's.
    pub fn new(settings: &RedactSettings, key: &[u8; 32]) -> Self {
        Self {
            key: hmac::Key::new(hmac::HMAC_SHA256, key),
            names: KeyNames::new(&settings.keys),
            patterns: settings.patterns.clone(),
            triggers: text::Triggers::new(&settings.keys),
        }
    }

    /// Hides every secret in an object, its keys included. Doing it twice changes nothing more.
    pub fn redact(&self, fields: &mut Map<String, Value>) {
        let mut renamed = Vec::new();
        for (name, value) in fields.iter_mut() {
            match self.names.secrecy(name) {
                Secrecy::Secret => self.hide(value),
                Secrecy::SecretText => self.hide_texts(value),
                Secrecy::Identity => self.redact_identity(value),
                Secrecy::Open => self.redact_value(value),
            }
            if let Some(hidden) = self.redacted_name(name) {
                renamed.push((name.clone(), hidden));
            }
        }
        for (name, hidden) in renamed {
            if let Some(value) = fields.remove(&name) {
                fields.insert(hidden, value);
            }
        }
    }

    /// An id with secrets other than card numbers hidden: ids are long numbers by nature.
    pub fn redact_id(&self, id: String) -> String {
        self.redacted_text(&id, Cards::Kept).unwrap_or(id)
    }

    /// A text with every secret hidden.
    pub fn redact_text(&self, text: &str) -> String {
        self.redacted_text(text, Cards::Hidden).unwrap_or_else(|| text.to_owned())
    }

    /// Keyed hash of a whole message: unlike a plain one it can't be used to try out what was hidden in it.
    pub fn content_hash(&self, payload: &[u8]) -> u64 {
        let tag = hmac::sign(&self.key, payload);
        tag.as_ref().iter().take(8).fold(0, |sum, byte| sum << 8 | u64::from(*byte))
    }

    /// A name that is a plain word, as nearly all are, holds no secret.
    fn redacted_name(&self, name: &str) -> Option<String> {
        let is_plain = name.bytes().all(|b| b.is_ascii_alphabetic() || matches!(b, b'_' | b'-'));
        if is_plain && self.patterns.is_empty() { None } else { self.redacted_text(name, Cards::Hidden) }
    }

    fn redact_value(&self, value: &mut Value) {
        match value {
            Value::String(text) => {
                if let Some(hidden) = self.redacted_text(text, Cards::Hidden) {
                    *text = hidden;
                }
            }
            Value::Number(number) => {
                let text = number.to_string();
                if card::is_card(text.as_bytes()) {
                    *value = Value::String(self.marker(&text));
                }
            }
            Value::Array(items) => items.iter_mut().for_each(|item| self.redact_value(item)),
            Value::Object(fields) => self.redact(fields),
            Value::Null | Value::Bool(_) => {}
        }
    }

    fn redact_identity(&self, value: &mut Value) {
        match value {
            Value::String(text) => {
                if let Some(hidden) = self.redacted_text(text, Cards::Kept) {
                    *text = hidden;
                }
            }
            Value::Null | Value::Bool(_) | Value::Number(_) => {}
            Value::Array(_) | Value::Object(_) => self.redact_value(value),
        }
    }

    /// Replaces a whole value; what holds nothing (null, true, empty) stays as it is.
    fn hide(&self, value: &mut Value) {
        let text = match value {
            Value::Null | Value::Bool(_) => return,
            Value::String(text) if text.is_empty() || is_marker(text) => return,
            Value::String(text) => std::mem::take(text),
            Value::Array(items) if items.is_empty() => return,
            Value::Object(fields) if fields.is_empty() => return,
            Value::Number(_) | Value::Array(_) | Value::Object(_) => value.to_string(),
        };
        *value = Value::String(self.marker(&text));
    }

    /// Replaces texts only, for keys such as `tokens` that count as often as they hold.
    fn hide_texts(&self, value: &mut Value) {
        match value {
            Value::String(_) => self.hide(value),
            Value::Array(items) => items.iter_mut().for_each(|item| self.hide_texts(item)),
            Value::Object(fields) => fields.values_mut().for_each(|item| self.hide_texts(item)),
            Value::Number(_) => self.redact_value(value),
            Value::Null | Value::Bool(_) => {}
        }
    }

    /// The text with every secret hidden; none when there is none, which is nearly always.
    fn redacted_text(&self, text: &str, cards: Cards) -> Option<String> {
        let mut spans = Vec::new();
        let found = self.triggers.find(text);
        if found.has_words {
            text::find_secrets(text, &self.names, &mut spans);
        }
        if cards == Cards::Hidden && found.has_digits {
            card::find(text.as_bytes(), &mut spans);
        }
        for pattern in &self.patterns {
            spans.extend(pattern.find_iter(text).map(|m| m.range()).filter(|r| !r.is_empty()));
        }
        if spans.is_empty() { None } else { self.replace(text, spans) }
    }

    /// Replaces the spans, overlapping ones as one. A span that only touches markers is left.
    fn replace(&self, text: &str, mut spans: Vec<std::ops::Range<usize>>) -> Option<String> {
        spans.sort_by_key(|s| (s.start, s.end));
        let mut merged: Vec<std::ops::Range<usize>> = Vec::with_capacity(spans.len());
        for span in spans {
            match merged.last_mut() {
                Some(last) if span.start < last.end => last.end = last.end.max(span.end),
                _ => merged.push(span),
            }
        }
        let mut out = String::with_capacity(text.len() + merged.len() * MARKER_LEN);
        let mut kept = 0;
        for span in merged {
            let secret = &text[span.clone()];
            if is_within_marker(text, &span) || is_marker(secret) {
                continue;
            }
            out.push_str(&text[kept..span.start]);
            out.push_str(&self.marker(secret));
            kept = span.end;
        }
        out.push_str(&text[kept..]);
        (kept > 0).then_some(out)
    }

    fn marker(&self, secret: &str) -> String {
        let tag = hmac::sign(&self.key, secret.as_bytes());
        let mut marker = String::with_capacity(MARKER_LEN);
        marker.push_str(OPEN);
        for byte in tag.as_ref().iter().take(4) {
            for nibble in [byte >> 4, byte & 15] {
                marker.push(char::from_digit(u32::from(nibble), 16).unwrap_or('0'));
            }
        }
        marker.push_str(CLOSE);
        marker
    }
}

/// Whether card numbers are looked for.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Cards {
    Hidden,
    Kept,
}

/// Whether a text is one marker and nothing else.
fn is_marker(text: &str) -> bool {
    let digits = text.strip_prefix(OPEN).and_then(|rest| rest.strip_suffix(CLOSE));
    digits.is_some_and(|d| d.len() == 8 && d.bytes().all(|b| b.is_ascii_hexdigit()))
}

/// Length of the marker that a text begins with.
pub fn marker_at(text: &str) -> Option<usize> {
    text.get(..MARKER_LEN).filter(|head| is_marker(head)).map(str::len)
}

/// Whether a span lies inside a marker that is already there.
fn is_within_marker(text: &str, span: &std::ops::Range<usize>) -> bool {
    let near = text.floor_char_boundary(span.start.saturating_sub(MARKER_LEN));
    let from = text[near..span.start].rfind(OPEN).map_or(span.start, |n| near + n);
    marker_at(&text[from..]).is_some_and(|length| span.end <= from + length)
}

#[cfg(test)]
mod tests;
