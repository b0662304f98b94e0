//! n8n Error Trigger JSON, both variants: an execution that failed, and a trigger that could not start and so has no
//! execution. What is not mapped is kept under `n8n`.

use super::{Native, hex, is_usable_id, lenient};
use serde_json::{Map, Value, json};

/// Whether an object is what n8n's Error Trigger gives: `workflow` an object beside `execution` or `trigger`.
pub fn is_error_trigger(fields: &Map<String, Value>) -> bool {
    let is_object = |key: &str| fields.get(key).is_some_and(Value::is_object);
    is_object("workflow") && (is_object("execution") || is_object("trigger"))
}

/// Maps it to native form. Fields beside the known ones are kept, so that labels or a payload can be added in n8n.
pub fn read(mut fields: Map<String, Value>) -> Native {
    let workflow = take_object(&mut fields, "workflow");
    let mut execution = take_object(&mut fields, "execution");
    let mut trigger = take_object(&mut fields, "trigger");
    let ended = !execution.is_empty();
    let source = if ended { &mut execution } else { &mut trigger };
    let mut error = take_object(source, "error");
    let time = error.get("timestamp").cloned();
    let reading = read_error(&mut error);
    let id = identify(&workflow, &execution, time.as_ref(), &reading);

    set(&mut fields, "workflow", name_of(&workflow).map(Value::String));
    set(&mut fields, "step", step_of(&execution, &error).map(Value::String));
    set(&mut fields, "run_id", execution.get("id").cloned());
    set(&mut fields, "occurred_at", time);
    set(&mut fields, "error", Some(Value::Object(reading)));
    // n8n retries inside the execution: once the error trigger runs nobody tries again.
    if ended {
        fields.entry("disposition").or_insert_with(|| json!("dead_lettered"));
    }
    if let Some(url) = execution.get("url").and_then(Value::as_str) {
        let links = fields.entry("links").or_insert_with(|| json!({}));
        if let Value::Object(links) = links {
            links.entry("n8n execution").or_insert_with(|| json!(url));
        }
    }
    let source = if ended { &mut execution } else { &mut trigger };
    source.insert("error".to_owned(), Value::Object(error));
    let kind = if ended { "execution" } else { "trigger" };
    fields.insert("n8n".to_owned(), json!({ "workflow": workflow, kind: if ended { execution } else { trigger } }));
    Native { fields, id }
}

/// The native `error`: type, reason, code, status, stack. Moves what is long, so that nothing is kept twice.
fn read_error(error: &mut Map<String, Value>) -> Map<String, Value> {
    let status = status_of(error);
    let code = code_of(error);
    let reason = reason_of(error);
    let mut reading = Map::new();
    set(&mut reading, "type", error.get("name").cloned());
    set(&mut reading, "http_status", status.map(Value::from));
    set(&mut reading, "code", code.map(Value::String));
    set(&mut reading, "message", reason.map(Value::String));
    set(&mut reading, "stack", error.remove("stack"));
    reading
}

/// The real reason: `description`, else the first of `messages`, else `message`, which is often a canned sentence.
fn reason_of(error: &Map<String, Value>) -> Option<String> {
    let first = error.get("messages").and_then(Value::as_array).and_then(|m| m.first());
    let candidates = [error.get("description"), first, error.get("message"), at(error, &["cause", "message"])];
    candidates.into_iter().flatten().find_map(|v| v.as_str().filter(|s| !s.trim().is_empty())).map(str::to_owned)
}

/// The status, wherever serialising has left it.
fn status_of(error: &Map<String, Value>) -> Option<u16> {
    let places: [&[&str]; 9] = [
        &["httpCode"],
        &["cause", "status"],
        &["cause", "httpCode"],
        &["cause", "statusCode"],
        &["cause", "response", "status"],
        &["status"],
        &["statusCode"],
        &["response", "status"],
        &["context", "httpCode"],
    ];
    places.iter().find_map(|path| at(error, path).and_then(lenient::http_status))
}

/// A code in words; `httpCode` is one at times (`ENOTFOUND`).
fn code_of(error: &Map<String, Value>) -> Option<String> {
    let places: [&[&str]; 4] = [&["code"], &["cause", "code"], &["httpCode"], &["context", "data", "code"]];
    let words = places.iter().filter_map(|path| at(error, path).and_then(Value::as_str));
    words.filter(|w| !w.trim().is_empty() && w.parse::<u32>().is_err()).map(str::to_owned).next()
}

fn step_of(execution: &Map<String, Value>, error: &Map<String, Value>) -> Option<String> {
    let last = execution.get("lastNodeExecuted").cloned().and_then(lenient::text);
    last.or_else(|| at(error, &["node", "name"]).cloned().and_then(lenient::text))
}

fn name_of(workflow: &Map<String, Value>) -> Option<String> {
    let word = |key: &str| workflow.get(key).cloned().and_then(lenient::text);
    word("name").or_else(|| word("id"))
}

/// `n8n:<workflow>:<execution id>`, the same for a number and a string; without an execution
/// `n8n:<workflow>:<time of the error>:<hash of its message>`, so that two failed starts are two events.
fn identify(
    workflow: &Map<String, Value>,
    execution: &Map<String, Value>,
    time: Option<&Value>,
    error: &Map<String, Value>,
) -> Option<String> {
    let own = workflow.get("id").cloned().and_then(lenient::text).or_else(|| name_of(workflow)).unwrap_or_default();
    let run = execution.get("id").cloned().and_then(lenient::text).filter(|id| is_usable_id(id));
    if let Some(run) = run {
        return Some(format!("n8n:{own}:{run}"));
    }
    let time = time.cloned().and_then(lenient::text)?;
    let message = error.get("message").and_then(Value::as_str).unwrap_or_default();
    let digest = ring::digest::digest(&ring::digest::SHA256, message.as_bytes());
    Some(format!("n8n:{own}:{time}:{}", hex(&digest.as_ref()[..8])))
}

fn take_object(fields: &mut Map<String, Value>, key: &str) -> Map<String, Value> {
    match fields.remove(key) {
        Some(Value::Object(object)) => object,
        _ => Map::new(),
    }
}

fn set(fields: &mut Map<String, Value>, key: &str, value: Option<Value>) {
    if let Some(value) = value.filter(|v| !v.is_null()) {
        fields.insert(key.to_owned(), value);
    }
}

/// The value at a path of keys.
fn at<'a>(fields: &'a Map<String, Value>, path: &[&str]) -> Option<&'a Value> {
    let (first, rest) = path.split_first()?;
    rest.iter().try_fold(fields.get(*first)?, |value, key| value.get(key))
}
