//! The JSON Schema of `matins.toml`, for editors: the descriptions of `sections` in another form.

use super::keys::{Form, Key, Section};
use super::sections::ROOT;
use serde_json::{Map, Value, json};

/// JSON Schema, draft 2020-12, of the whole file.
pub fn json_schema() -> Value {
    let mut schema = table(&ROOT);
    schema["$schema"] = json!("https://json-schema.org/draft/2020-12/schema");
    schema["title"] = json!("matins.toml");
    schema
}

fn table(section: &Section) -> Value {
    if section.kinds.is_empty() {
        return object(section.doc, section.keys.iter(), None);
    }
    let of_kind = |kind: &Section| object(kind.doc, section.keys.iter().chain(kind.keys), Some(kind.title));
    json!({ "description": section.doc, "oneOf": section.kinds.iter().map(of_kind).collect::<Vec<_>>() })
}

fn object<'k>(doc: &str, keys: impl Iterator<Item = &'k Key> + Clone, kind: Option<&str>) -> Value {
    let mut properties: Map<String, Value> = keys.clone().map(|k| (k.name.to_owned(), property(k))).collect();
    if let Some(kind) = kind {
        properties.insert("kind".to_owned(), json!({ "const": kind }));
    }
    let required: Vec<&str> = keys.filter(|k| k.required).map(|k| k.name).collect();
    json!({ "type": "object", "description": doc, "properties": properties, "required": required, "additionalProperties": false })
}

fn property(key: &Key) -> Value {
    let mut value = form(&key.form);
    value["description"] = json!(key.doc);
    if let Some(default) = key.default {
        value["default"] = written(&key.form, default);
    }
    value
}

/// A default as JSON.
fn written(form: &Form, default: &str) -> Value {
    let number = matches!(form, Form::Count(..) | Form::Decimal(..) | Form::Flag | Form::Match);
    let list = matches!(form, Form::OneOrList(_)) && default.contains(", ");
    if number {
        serde_json::from_str(default).unwrap_or_else(|_| json!(default))
    } else if list {
        json!(default.split(", ").collect::<Vec<_>>())
    } else {
        json!(default)
    }
}

const TIME: &str = "^([0-9]+w)?([0-9]+d)?([0-9]+h)?([0-9]+m)?([0-9]+s)?([0-9]+ms)?$";

fn form(form: &Form) -> Value {
    match form {
        Form::Word(words) => json!({ "enum": words }),
        Form::Time | Form::Period => json!({ "type": "string", "minLength": 2, "pattern": TIME }),
        Form::TimeOrNever => {
            json!({ "anyOf": [{ "type": "string", "minLength": 2, "pattern": TIME }, { "const": "never" }] })
        }
        Form::Count(least, most) => json!({ "type": "integer", "minimum": least, "maximum": most }),
        Form::Decimal(over, under) if *under < f64::MAX => {
            json!({ "type": "number", "exclusiveMinimum": over, "exclusiveMaximum": under })
        }
        Form::Decimal(over, _) => json!({ "type": "number", "exclusiveMinimum": over }),
        Form::Flag => json!({ "type": "boolean" }),
        Form::Day => json!({ "type": "string", "format": "date" }),
        Form::Instant => json!({ "type": "string", "format": "date-time" }),
        Form::Url(schemes) | Form::SecretUrl(schemes) => {
            json!({ "type": "string", "pattern": format!("^(({})://|\\$\\{{)", schemes.join("|")) })
        }
        Form::Recipients => one_or_list(json!({ "type": "string", "minLength": 1 })),
        Form::OneOrList(inner) => one_or_list(self::form(inner)),
        Form::Table(section) => table(section),
        Form::FlagOrTable(section) => json!({ "anyOf": [{ "type": "boolean" }, table(section)] }),
        Form::Tables(section) => json!({ "type": "array", "items": table(section) }),
        Form::Named(section) => json!({ "type": "object", "additionalProperties": table(section) }),
        Form::Map(inner) | Form::MapOf(_, inner) => {
            json!({ "type": "object", "additionalProperties": self::form(inner) })
        }
        Form::Match => matching(),
        Form::Hours => json!({ "type": "object", "additionalProperties": one_or_list(json!({ "type": "string" })) }),
        Form::Text
        | Form::Secret
        | Form::Mailbox
        | Form::Zone
        | Form::Cron
        | Form::Regex
        | Form::Subject { .. }
        | Form::NatsName
        | Form::Socket
        | Form::Path
        | Form::Ref(_)
        | Form::MatchKey { .. } => json!({ "type": "string", "minLength": 1 }),
    }
}

fn one_or_list(inner: Value) -> Value {
    json!({ "anyOf": [inner, { "type": "array", "items": inner, "minItems": 1 }] })
}

fn matching() -> Value {
    let globs = one_or_list(json!({ "type": "string", "minLength": 1 }));
    let keys = ["workflow", "domain", "class", "step", "downstream"];
    let mut properties: Map<String, Value> = keys.iter().map(|k| ((*k).to_owned(), globs.clone())).collect();
    properties.insert("label".to_owned(), json!({ "type": "object", "additionalProperties": globs }));
    json!({
        "type": "object",
        "properties": properties,
        "patternProperties": { "^label\\..+$": globs },
        "additionalProperties": false,
    })
}
