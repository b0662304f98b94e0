//! From an object in native form to an `Event`: every field of CONTRACT 3, read leniently. Class, disposition and
//! fingerprint are filled in by the rooms that decide them.

use super::{bounded_name, instant, is_usable_id, lenient, trimmed};
use crate::event::{
    BreakerState, Class, Detail, Disposition, ErrorInfo, Event, EventId, EventType, Fingerprint, HeartbeatStatus,
    OutcomeCounts,
};
use crate::ingest::QuarantineReason;
use crate::name::WorkflowName;
use chrono::{DateTime, Utc};
use serde_json::{Map, Value};
use std::collections::BTreeMap;

/// What an event says of itself, which inference must not overrule.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Said {
    /// The field `class`, when it is a word of the contract.
    pub class: Option<Class>,
    /// The field `disposition`, when it is a word of the contract.
    pub disposition: Option<Disposition>,
    /// A run that is reported as `interrupted` in the field `status`: it waits for a human.
    pub is_interrupted: bool,
}

/// An event without class, disposition and fingerprint, and what else its fields said.
#[derive(Clone, Debug, PartialEq)]
pub struct Reading {
    /// The event; its id is empty until the reader gives one.
    pub event: Event,
    /// The field `id`, when usable.
    pub id: Option<String>,
    /// Explicit class and disposition.
    pub said: Said,
}

/// The known fields, taken out of the object by one pass; what is not known stays in the stored body only.
#[derive(Default)]
struct Fields {
    id: Option<String>,
    kind: Option<String>,
    workflow: Option<String>,
    step: Option<String>,
    run_id: Option<String>,
    item: Option<String>,
    class: Option<Value>,
    error: Option<Value>,
    message: Option<Value>,
    attempt: Option<u32>,
    max_attempts: Option<u32>,
    disposition: Option<Value>,
    downstream: Option<String>,
    occurred_at: Option<Value>,
    payload: Option<Value>,
    links: BTreeMap<String, String>,
    labels: BTreeMap<String, String>,
    redriven_from: Option<String>,
    redrive_count: Option<u32>,
    status: Option<String>,
    rest: Map<String, Value>,
}

impl Fields {
    fn of(object: Map<String, Value>) -> Self {
        let mut fields = Self::default();
        for (key, value) in object {
            match key.as_str() {
                "id" => fields.id = lenient::text(value),
                "type" => fields.kind = text_only(value),
                "workflow" => fields.workflow = workflow(value),
                "step" => fields.step = name(value),
                "run_id" => fields.run_id = name(value),
                "item" => fields.item = name(value),
                "class" => fields.class = Some(value),
                "error" => fields.error = Some(value),
                "message" => fields.message = Some(value),
                "attempt" => fields.attempt = lenient::small_count(&value).filter(|n| *n > 0),
                "max_attempts" => fields.max_attempts = lenient::small_count(&value).filter(|n| *n > 0),
                "disposition" => fields.disposition = Some(value),
                "downstream" => fields.downstream = name(value),
                "occurred_at" => fields.occurred_at = Some(value),
                "payload" => fields.payload = Some(value).filter(|p| !p.is_null()),
                "links" => fields.links = links(value),
                "labels" => fields.labels = labels(value),
                "redriven_from" => fields.redriven_from = lenient::text(value),
                "redrive_count" => fields.redrive_count = lenient::small_count(&value),
                "status" => fields.status = text_only(value),
                _ => {
                    fields.rest.insert(key, value);
                }
            }
        }
        fields
    }
}

/// Reads an object in native form.
///
/// # Errors
/// `no_workflow`, `unknown_type`, or `unknown_state` of a breaker.
pub fn read(object: Map<String, Value>, received_at: DateTime<Utc>) -> Result<Reading, QuarantineReason> {
    let mut fields = Fields::of(object);
    let event_type = event_type(fields.kind.as_deref())?;
    let detail = detail(event_type, &mut fields)?;
    let workflow = fields.workflow.ok_or(QuarantineReason::NoWorkflow)?;
    let (occurred_at, time_mark) = instant::read(fields.occurred_at.as_ref(), received_at);
    let is_bare = fields.error.is_none();
    let event = Event {
        id: EventId(String::new()),
        event_type,
        workflow: WorkflowName::new(workflow),
        step: fields.step,
        run_id: fields.run_id,
        item: fields.item,
        class: Class::Unclassified,
        class_rule: String::new(),
        disposition: Disposition::Skipped,
        fingerprint: Fingerprint("".into()),
        error: error_info(fields.error, fields.message),
        attempt: fields.attempt,
        max_attempts: fields.max_attempts,
        downstream: fields.downstream,
        occurred_at,
        time_mark,
        received_at,
        payload: fields.payload,
        payload_cut: false,
        links: fields.links,
        labels: fields.labels,
        detail,
        redriven_from: fields.redriven_from,
        redrive_count: fields.redrive_count,
    };
    let said = Said {
        class: fields.class.as_ref().and_then(|v| word(v, Class::parse)),
        disposition: fields.disposition.as_ref().and_then(|v| word(v, Disposition::parse)),
        is_interrupted: is_bare && fields.status.as_deref() == Some("interrupted"),
    };
    Ok(Reading { event, id: fields.id.filter(|id| is_usable_id(id)), said })
}

fn name(value: Value) -> Option<String> {
    lenient::text(value).map(bounded_name)
}

fn workflow(value: Value) -> Option<String> {
    lenient::text(value).map(|text| bounded_name(trimmed(&text).to_owned())).filter(|name| !name.is_empty())
}

fn text_only(value: Value) -> Option<String> {
    if value.is_string() { lenient::text(value) } else { None }
}

fn event_type(word: Option<&str>) -> Result<EventType, QuarantineReason> {
    let Some(word) = word else { return Ok(EventType::Failure) };
    let known = EventType::parse(word).or_else(|| EventType::parse(&plain_word(word)));
    known.ok_or_else(|| QuarantineReason::UnknownType { word: word.chars().take(80).collect() })
}

/// A word of the contract in any case, with `-` or a space for `_`.
fn word<T>(value: &Value, parse: impl Fn(&str) -> Option<T>) -> Option<T> {
    let text = value.as_str()?;
    parse(text).or_else(|| parse(&plain_word(text)))
}

fn plain_word(text: &str) -> String {
    text.trim().to_ascii_lowercase().replace(['-', ' '], "_")
}

fn error_info(error: Option<Value>, message: Option<Value>) -> ErrorInfo {
    let mut info = ErrorInfo::default();
    match error {
        Some(Value::Object(fields)) => {
            for (key, value) in fields {
                match key.as_str() {
                    "type" => info.kind = lenient::text(value),
                    "message" => info.message = lenient::prose(value),
                    "code" => info.code = lenient::text(value),
                    "http_status" => info.http_status = lenient::http_status(&value),
                    "retry_after_s" => info.retry_after_s = lenient::amount(&value),
                    "stack" => info.stack = stack(value),
                    _ => {}
                }
            }
            if info.message.is_none() {
                info.message = message.and_then(lenient::prose);
            }
        }
        // `{"error": "GraphRecursionError", "message": "…"}` names a type, a lone string is the message.
        Some(other) => match message.and_then(lenient::prose) {
            Some(message) => {
                info.kind = lenient::text(other);
                info.message = Some(message);
            }
            None => info.message = lenient::prose(other),
        },
        None => info.message = message.and_then(lenient::prose),
    }
    info
}

/// A stack trace, also one given line by line.
fn stack(value: Value) -> Option<String> {
    match value {
        Value::Array(lines) => {
            let lines: Vec<String> = lines.into_iter().filter_map(lenient::prose).collect();
            Some(lines.join("\n")).filter(|s| !s.is_empty())
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Object(_) => lenient::prose(value),
    }
}

fn labels(value: Value) -> BTreeMap<String, String> {
    match value {
        Value::Object(fields) => fields.into_iter().filter_map(|(k, v)| Some((k, lenient::text(v)?))).collect(),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_) => BTreeMap::new(),
    }
}

/// Only http(s) addresses without white space or control characters; others are dropped.
fn links(value: Value) -> BTreeMap<String, String> {
    let mut links = labels(value);
    links.retain(|_, url| is_link(url));
    links
}

fn is_link(url: &str) -> bool {
    let scheme = |s: &str| url.get(..s.len()).is_some_and(|head| head.eq_ignore_ascii_case(s)) && url.len() > s.len();
    (scheme("https://") || scheme("http://")) && !url.chars().any(|c| c.is_control() || c.is_whitespace())
}

fn detail(event_type: EventType, fields: &mut Fields) -> Result<Detail, QuarantineReason> {
    let rest = &mut fields.rest;
    let mut text = |key: &str| rest.remove(key).and_then(lenient::text);
    Ok(match event_type {
        EventType::Failure => Detail::Failure,
        EventType::Recovery => Detail::Recovery {
            strategy: text("strategy").map(bounded_name),
            took_ms: rest.get("took_ms").and_then(lenient::count),
            degraded_level: rest.get("degraded_level").and_then(lenient::count),
        },
        EventType::Outcome => Detail::Outcome(outcome(rest)),
        EventType::Heartbeat => Detail::Heartbeat {
            status: heartbeat(fields.status.as_deref()),
            queue_depth: rest.get("queue_depth").and_then(lenient::count),
            oldest_age_s: rest.get("oldest_age_s").and_then(lenient::amount),
        },
        EventType::Resolution => {
            Detail::Resolution { note: text("note"), by: text("by"), dead_letter_id: text("dead_letter_id") }
        }
        EventType::Breaker => {
            let state = rest.get("state").and_then(|v| word(v, BreakerState::parse));
            Detail::Breaker { state: state.ok_or(QuarantineReason::UnknownState)? }
        }
    })
}

/// Totals since a producer's start win over counts since its last report: they survive loss and repeats.
fn outcome(rest: &mut Map<String, Value>) -> OutcomeCounts {
    let number = |key: &str| rest.get(key).and_then(lenient::count);
    let totals = (number("ok_total"), number("failed_total"));
    let counts = (number("ok").unwrap_or(0), number("failed").unwrap_or(0));
    let mut text = |key: &str| rest.remove(key).and_then(name).unwrap_or_default();
    match totals {
        (None, None) => OutcomeCounts::Delta { ok: counts.0, failed: counts.1 },
        (ok, failed) => OutcomeCounts::Cumulative {
            producer: text("producer"),
            epoch: text("epoch"),
            ok_total: ok.unwrap_or(0),
            failed_total: failed.unwrap_or(0),
        },
    }
}

/// No word means that it beats and is well; a word that is not known is not taken for good health.
fn heartbeat(word: Option<&str>) -> HeartbeatStatus {
    let Some(word) = word.map(plain_word) else { return HeartbeatStatus::Ok };
    match word.as_str() {
        "healthy" | "up" => HeartbeatStatus::Ok,
        "down" | "error" | "failed" => HeartbeatStatus::Unhealthy,
        other => HeartbeatStatus::parse(other).unwrap_or(HeartbeatStatus::Degraded),
    }
}
