//! Tells the accepted shapes apart and brings each into the native form of an event (CONTRACT 3). One file a shape.
//! No secret is removed and no class is given here.

pub mod advisory;
mod cloudevent;
mod instant;
mod lenient;
mod n8n;
pub mod native;
mod text;

pub use instant::read as read_instant;
pub use text::{MESSAGE_MAX, visible};

use super::{Inbound, QuarantineReason};
use crate::event::EventId;
use serde_json::{Map, Value};

/// Largest payload, as JSON text in bytes; what is longer is cut.
pub const PAYLOAD_MAX: usize = 64 * 1024;

/// Longest id that is kept as it is, in bytes: ids are keys of indexes.
const ID_MAX: usize = 512;

/// Longest name that is kept as it is, in bytes: names are keys too, and stand in lists and mails.
const NAME_MAX: usize = 512;

/// An object of an event in native form, before redaction.
#[derive(Clone, Debug, PartialEq)]
pub struct Native {
    /// Its fields, unknown ones included.
    pub fields: Map<String, Value>,
    /// The id that its shape gives, for when the field `id` is unusable.
    pub id: Option<String>,
}

impl Native {
    /// Cuts a payload over 64 KiB to a string that ends by saying so. `message_bytes` spares measuring small ones.
    pub fn cut_payload(&mut self, message_bytes: usize) -> bool {
        if message_bytes <= PAYLOAD_MAX {
            return false;
        }
        let Some(payload) = self.fields.get_mut("payload") else { return false };
        let text = payload.to_string();
        if text.len() <= PAYLOAD_MAX {
            return false;
        }
        let head = payload.as_str().unwrap_or(&text);
        *payload = Value::String(cut(head, text.len()));
        true
    }
}

/// As much of `text` as stays under 64 KiB once written as a JSON string, and a mark with the full size.
fn cut(text: &str, bytes: usize) -> String {
    let mark = format!("… (cut, {bytes} bytes)");
    let mut room = PAYLOAD_MAX.saturating_sub(mark.len() + 2);
    let mut end = 0;
    for c in text.chars() {
        let width = match c {
            '"' | '\\' | '\n' | '\r' | '\t' => 2,
            '\u{0}'..='\u{1f}' => 6,
            _ => c.len_utf8(),
        };
        if width > room {
            break;
        }
        room -= width;
        end += c.len_utf8();
    }
    format!("{}{mark}", &text[..end])
}

/// Reads a message into native form.
///
/// # Errors
/// The reason for which it goes to quarantine.
pub fn decode(inbound: &Inbound<'_>) -> Result<Native, QuarantineReason> {
    let value = text::parse(inbound.payload)?;
    let mut native = match cloudevent::Mode::of(inbound.headers) {
        cloudevent::Mode::Binary => cloudevent::binary(inbound.headers, value)?,
        cloudevent::Mode::Structured => cloudevent::structured(object(value)?)?,
        cloudevent::Mode::None => {
            let fields = object(value)?;
            if cloudevent::is_structured(&fields) { cloudevent::structured(fields)? } else { plain(fields)? }
        }
    };
    name_workflow(&mut native.fields, inbound.subject)?;
    Ok(native)
}

/// A shape that is told by its fields alone.
fn plain(fields: Map<String, Value>) -> Result<Native, QuarantineReason> {
    if n8n::is_error_trigger(&fields) {
        return Ok(n8n::read(fields));
    }
    if advisory::is_advisory(&fields) {
        return advisory::read(fields);
    }
    Ok(Native { fields, id: None })
}

/// The object itself, or the only element of an array.
fn object(value: Value) -> Result<Map<String, Value>, QuarantineReason> {
    let found = match value {
        Value::Object(fields) => return Ok(fields),
        Value::Array(mut items) => match (items.len(), items.pop()) {
            (1, Some(Value::Object(fields))) => return Ok(fields),
            (1, _) => "an array of something else than an object".to_owned(),
            (count, _) => format!("an array of {count}"),
        },
        Value::Null => "null".to_owned(),
        Value::Bool(_) => "true or false".to_owned(),
        Value::Number(_) => "a number".to_owned(),
        Value::String(_) => "a string".to_owned(),
    };
    Err(QuarantineReason::NotAnObject { found })
}

/// Makes sure that the field `workflow` is a text: the field, else the second token of the subject.
fn name_workflow(fields: &mut Map<String, Value>, subject: &str) -> Result<(), QuarantineReason> {
    let named = match fields.get("workflow") {
        Some(Value::String(name)) if !trimmed(name).is_empty() => return Ok(()),
        Some(Value::Number(number)) => Some(number.to_string()),
        _ => subject.split('.').nth(1).filter(|t| !trimmed(t).is_empty()).map(|t| visible(t).into_owned()),
    };
    let name = named.ok_or(QuarantineReason::NoWorkflow)?;
    fields.insert("workflow".to_owned(), Value::String(name));
    Ok(())
}

/// Whether an id can tell events apart: not empty, blank, `undefined` or `null`.
pub fn is_usable_id(id: &str) -> bool {
    !matches!(id.trim(), "" | "undefined" | "null")
}

/// The id of a message that gives none itself: header `Nats-Msg-Id`, else `<stream>:<sequence>`.
pub fn fallback_id(inbound: &Inbound<'_>) -> EventId {
    let header = header(inbound.headers, "nats-msg-id").filter(|id| is_usable_id(id));
    match header {
        Some(id) => bounded_id(visible(id).into_owned()),
        None => EventId(format!("{}:{}", inbound.stream, inbound.sequence)),
    }
}

/// An id as it is kept: one over 512 bytes becomes `sha256:<64 hex>`.
pub fn bounded_id(id: String) -> EventId {
    if id.len() <= ID_MAX {
        return EventId(id);
    }
    let digest = ring::digest::digest(&ring::digest::SHA256, id.as_bytes());
    EventId(format!("sha256:{}", hex(digest.as_ref())))
}

/// A name without what nobody sees at its ends: `pay` and `pay\n` are one pipeline, and it may move money.
fn trimmed(name: &str) -> &str {
    name.trim_matches(|c: char| {
        c.is_whitespace()
            || c.is_control()
            || matches!(c, '\u{200b}'..='\u{200f}' | '\u{2060}' | '\u{feff}' | text::NUL_SIGN)
    })
}

/// A name as it is kept: one over 512 bytes is cut, and a short hash of the whole keeps it apart from others that begin
/// the same.
fn bounded_name(name: String) -> String {
    if name.len() <= NAME_MAX {
        return name;
    }
    let digest = ring::digest::digest(&ring::digest::SHA256, name.as_bytes());
    let mark = format!("…{}", hex(&digest.as_ref()[..8]));
    format!("{}{mark}", &name[..name.floor_char_boundary(NAME_MAX - mark.len())])
}

/// Lower-case hex.
fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|b| format!("{b:02x}")).collect()
}

/// The first header of that name, in any case.
fn header<'a>(headers: &'a [(String, String)], name: &str) -> Option<&'a str> {
    headers.iter().find(|(n, _)| n.eq_ignore_ascii_case(name)).map(|(_, v)| v.as_str())
}

#[cfg(test)]
mod tests;
