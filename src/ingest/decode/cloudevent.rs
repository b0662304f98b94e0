//! CloudEvents 1.0 over NATS: structured, binary by the spec, and binary as the Go SDK sends it. The event's data is
//! an event in native form; the attributes are kept under `cloudevent`.

use super::{Native, header, is_usable_id, object, plain, text, visible};
use crate::ingest::QuarantineReason;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Map, Value};

/// How a message carries a CloudEvent, told by its headers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// Attributes and data are the body.
    Structured,
    /// Attributes are `ce-` headers, the body is the data.
    Binary,
    /// The headers don't say; the body may still be a structured one.
    None,
}

impl Mode {
    /// `Content-Type: application/cloudevents…` is structured; else a `ce-specversion` header means binary. Any case.
    pub fn of(headers: &[(String, String)]) -> Self {
        let prefix = "application/cloudevents";
        let kind = header(headers, "content-type").and_then(|v| v.trim_ascii_start().get(..prefix.len()));
        if kind.is_some_and(|k| k.eq_ignore_ascii_case(prefix)) {
            Self::Structured
        } else if header(headers, "ce-specversion").is_some() {
            Self::Binary
        } else {
            Self::None
        }
    }
}

/// Whether a body is a structured CloudEvent by its shape.
pub fn is_structured(fields: &Map<String, Value>) -> bool {
    fields.get("specversion").is_some_and(Value::is_string)
        && ["source", "data", "data_base64"].iter().any(|key| fields.contains_key(*key))
}

/// Attributes and data in one object. Without `specversion` it is no CloudEvent whatever the header says: read by shape.
///
/// # Errors
/// `bad_cloudevent` when `data_base64` is no base64, and what the data's own shape gives.
pub fn structured(mut fields: Map<String, Value>) -> Result<Native, QuarantineReason> {
    if !is_structured(&fields) {
        return plain(fields);
    }
    let data = match (fields.remove("data"), fields.remove("data_base64")) {
        (Some(data), _) if !data.is_null() => data,
        (_, Some(Value::String(encoded))) => decode_base64(encoded)?,
        _ => Value::Null,
    };
    compose(fields, data)
}

/// Bytes that are JSON are the data; any others stay base64 text.
fn decode_base64(encoded: String) -> Result<Value, QuarantineReason> {
    let bytes = STANDARD
        .decode(encoded.trim_ascii())
        .map_err(|e| QuarantineReason::BadCloudEvent { problem: format!("`data_base64` is not base64: {e}") })?;
    Ok(text::parse(&bytes).unwrap_or(Value::String(encoded)))
}

/// Attributes from `ce-` headers, data from the body.
///
/// # Errors
/// `bad_cloudevent` when a percent-encoded value is no UTF-8, and what the data's own shape gives.
pub fn binary(headers: &[(String, String)], data: Value) -> Result<Native, QuarantineReason> {
    // The Go SDK names the type of the data in a plain header, and does not percent-encode.
    let encoded = header(headers, "content-type").is_none() || header(headers, "ce-datacontenttype").is_some();
    let mut attributes = Map::new();
    for (name, value) in headers {
        let Some(name) = name.to_ascii_lowercase().strip_prefix("ce-").map(str::to_owned) else { continue };
        let value = if encoded { percent_decode(&name, value)? } else { value.clone() };
        attributes.entry(visible(&name)).or_insert_with(|| Value::String(visible(&value).into_owned()));
    }
    compose(attributes, data)
}

/// Decodes once. A value that the spec's encoder can't have written (a plain `%`, a space, `é`) is taken as it is.
fn percent_decode(name: &str, value: &str) -> Result<String, QuarantineReason> {
    let raw = value.as_bytes();
    if !raw.contains(&b'%') || !raw.iter().all(u8::is_ascii_graphic) {
        return Ok(value.to_owned());
    }
    let mut bytes = Vec::with_capacity(raw.len());
    let mut rest = raw;
    while let Some((first, tail)) = rest.split_first() {
        if *first != b'%' {
            bytes.push(*first);
            rest = tail;
            continue;
        }
        let digit = |n: usize| tail.get(n).and_then(|b| char::from(*b).to_digit(16));
        let (Some(high), Some(low)) = (digit(0), digit(1)) else { return Ok(value.to_owned()) };
        bytes.push(u8::try_from(high * 16 + low).unwrap_or(b'?'));
        rest = tail.get(2..).unwrap_or_default();
    }
    String::from_utf8(bytes).map_err(|_| QuarantineReason::BadCloudEvent {
        problem: format!("header `ce-{name}` is not UTF-8 once its percent-encoding is undone"),
    })
}

/// The data in native form, with the attributes beside it. The data's own `occurred_at` wins over the attribute `time`.
fn compose(attributes: Map<String, Value>, data: Value) -> Result<Native, QuarantineReason> {
    let mut native = match data {
        Value::Object(_) | Value::Array(_) => plain(object(data)?)?,
        Value::Null => Native { fields: Map::new(), id: None },
        Value::String(ref nested) => match text::parse(nested.as_bytes()) {
            Ok(Value::Object(fields)) => plain(fields)?,
            _ => only_payload(data),
        },
        Value::Bool(_) | Value::Number(_) => only_payload(data),
    };
    native.id = native.id.or_else(|| id_of(&attributes));
    if let Some(time) = attributes.get("time") {
        native.fields.entry("occurred_at").or_insert_with(|| time.clone());
    }
    native.fields.insert("cloudevent".to_owned(), Value::Object(attributes));
    Ok(native)
}

fn only_payload(data: Value) -> Native {
    let mut fields = Map::new();
    fields.insert("payload".to_owned(), data);
    Native { fields, id: None }
}

/// `ce:<source>#<id>`: the spec makes source and id together unique.
fn id_of(attributes: &Map<String, Value>) -> Option<String> {
    let word = |key: &str| attributes.get(key).and_then(Value::as_str);
    let id = word("id").filter(|id| is_usable_id(id))?;
    Some(format!("ce:{}#{id}", word("source").unwrap_or_default()))
}
