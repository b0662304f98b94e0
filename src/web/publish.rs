//! Taking events over HTTP: told apart, read once to refuse what could not be read later, published to the stream as they came, and
//! answered only when JetStream has stored them. They are stored here by intake, like any other.

use super::error::{ApiError, BadEvent};
use super::input::Body;
use super::view::AcceptedView;
use crate::clock;
use crate::ingest::{DecodeOutcome, Inbound, Reader};
use crate::live::Shared;
use async_nats::connection::State as Connection;
use async_nats::jetstream;
use axum::Json;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode, header};
use bytes::Bytes;
use chrono::{DateTime, Utc};
use futures_util::future::try_join_all;
use serde_json::Value;
use serde_json::value::RawValue;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::timeout;

/// How long JetStream may take to confirm.
const CONFIRM_WITHIN: Duration = Duration::from_secs(3);
/// Events on their way at a time.
const AT_ONCE: usize = 256;
/// Events of one request at most: all are confirmed before it is answered.
const EVENTS_MAX: usize = 10_000;
/// Unreadable events that an answer lists.
const BAD_LISTED_MAX: usize = 100;
/// Longest part of a subject that comes from a workflow's name.
const TOKEN_MAX: usize = 200;

/// Takes one event, an array of them, or one a line, in any shape that the stream takes.
#[utoipa::path(post, path = "/api/v1/events", request_body(content = Object, content_type = "application/json"),
    responses((status = 202, body = AcceptedView), (status = 400, body = super::error::ErrorView),
    (status = 503, description = "NATS is away; ask again after Retry-After")))]
pub async fn events(
    shared: State<Arc<Shared>>,
    headers: HeaderMap,
    body: Body,
) -> Result<(StatusCode, Json<AcceptedView>), ApiError> {
    let live = shared.live.load_full();
    let kept = kept_headers(&headers);
    let bodies = split(&body.0, content_type(&headers))?;
    let settings = &shared.nats_settings;
    let messages = read_all(&live.reader, &bodies, &kept, &settings.subjects, clock::now())?;
    publish(&shared.nats, &messages, &kept).await?;
    Ok((StatusCode::ACCEPTED, Json(AcceptedView { accepted: messages.len() })))
}

/// A message on its way.
struct Outgoing {
    subject: String,
    payload: Bytes,
}

fn content_type(headers: &HeaderMap) -> &str {
    headers.get(header::CONTENT_TYPE).and_then(|v| v.to_str().ok()).unwrap_or_default()
}

/// The headers that say something about the event itself; they go with it.
fn kept_headers(headers: &HeaderMap) -> Vec<(String, String)> {
    let text = |value: &header::HeaderValue| value.to_str().ok().map(str::to_owned);
    let attributes = headers.iter().filter(|(name, _)| name.as_str().starts_with("ce-"));
    let mut kept: Vec<_> = attributes.filter_map(|(n, v)| Some((n.to_string(), text(v)?))).collect();
    let content_type = content_type(headers);
    if content_type.starts_with("application/cloudevents-batch") {
        kept.push(("Content-Type".to_owned(), "application/cloudevents+json".to_owned()));
    } else if !kept.is_empty() || content_type.starts_with("application/cloudevents") {
        kept.push(("Content-Type".to_owned(), content_type.to_owned()));
    }
    kept
}

/// The events of a body, each as it was written.
fn split(body: &Bytes, content_type: &str) -> Result<Vec<Bytes>, ApiError> {
    let text = body.strip_prefix(b"\xef\xbb\xbf".as_slice()).unwrap_or(body).trim_ascii();
    let by_line = ["ndjson", "jsonl", "jsonlines"].iter().any(|kind| content_type.contains(kind));
    let parts: Vec<&[u8]> = if by_line {
        lines(text)
    } else if text.starts_with(b"[") {
        let items: Vec<&RawValue> =
            serde_json::from_slice(text).map_err(|e| ApiError::BadRequest(format!("the array can't be read: {e}")))?;
        items.into_iter().map(|item| item.get().as_bytes()).collect()
    } else if text.contains(&b'\n') && serde_json::from_slice::<&RawValue>(text).is_err() && is_lines(text) {
        lines(text)
    } else {
        vec![text]
    };
    if parts.len() > EVENTS_MAX {
        return Err(ApiError::TooMany { count: parts.len(), max: EVENTS_MAX });
    }
    if parts.is_empty() {
        return Err(ApiError::BadRequest("there is no event in the body".to_owned()));
    }
    Ok(parts.into_iter().map(|part| body.slice_ref(part)).collect())
}

fn lines(text: &[u8]) -> Vec<&[u8]> {
    text.split(|b| *b == b'\n').map(<[u8]>::trim_ascii).filter(|line| !line.is_empty()).collect()
}

/// Whether the first line is an object of its own, which tells lines of events from one that is broken.
fn is_lines(text: &[u8]) -> bool {
    lines(text).first().is_some_and(|line| serde_json::from_slice::<&RawValue>(line).is_ok())
}

/// Reads every event as intake will, and refuses all when one can't be read: then nothing has to be taken back.
fn read_all(
    reader: &Reader,
    bodies: &[Bytes],
    headers: &[(String, String)],
    subjects: &[String],
    now: DateTime<Utc>,
) -> Result<Vec<Outgoing>, ApiError> {
    let mut messages = Vec::with_capacity(bodies.len());
    let (mut bad, mut bad_count) = (Vec::new(), 0);
    for (index, payload) in bodies.iter().enumerate() {
        // No subject: the workflow must be in the event, since it is what the subject is made from.
        let inbound = Inbound { subject: "", headers, payload, stream: "", sequence: 0, received_at: now };
        match reader.read(inbound) {
            DecodeOutcome::Event(decoded) => {
                let subject = subject_of(subjects, decoded.event.workflow.as_str());
                messages.push(Outgoing { subject, payload: payload.clone() });
            }
            DecodeOutcome::Quarantine { reason } => {
                bad_count += 1;
                if bad.len() < BAD_LISTED_MAX {
                    bad.push(BadEvent { index, id: id_of(payload), reason: reason.to_string() });
                }
            }
        }
    }
    if bad_count == 0 { Ok(messages) } else { Err(ApiError::BadEvents { first: bad, count: bad_count }) }
}

fn id_of(payload: &[u8]) -> Option<String> {
    let value: Value = serde_json::from_slice(payload).ok()?;
    value.get("id")?.as_str().map(str::to_owned)
}

/// A name as one token of a subject: what NATS gives a meaning to becomes `_`.
pub fn subject_token(name: &str) -> String {
    let safe = |c: char| if c.is_ascii_alphanumeric() || matches!(c, '_' | '-') { c } else { '_' };
    let token: String = name.chars().take(TOKEN_MAX).map(safe).collect();
    if token.is_empty() { "_".to_owned() } else { token }
}

/// A subject of the stream for a workflow: `failures.>` becomes `failures.<workflow>`.
pub fn subject_of(subjects: &[String], workflow: &str) -> String {
    let token = subject_token(workflow);
    let first = subjects.first().map_or("failures.>", String::as_str);
    let filled = first.split('.').map(|part| if matches!(part, ">" | "*") { token.as_str() } else { part });
    filled.collect::<Vec<_>>().join(".")
}

async fn publish(
    client: &async_nats::Client,
    messages: &[Outgoing],
    headers: &[(String, String)],
) -> Result<(), ApiError> {
    if client.connection_state() != Connection::Connected {
        return Err(ApiError::Unavailable("NATS is away; nothing was stored".to_owned()));
    }
    let mut context = jetstream::new(client.clone());
    context.set_timeout(CONFIRM_WITHIN);
    let mut kept = async_nats::HeaderMap::new();
    for (name, value) in headers {
        kept.append(name.as_str(), value.as_str());
    }
    let mut stored = 0;
    for some in messages.chunks(AT_ONCE) {
        let each = some.iter().map(|message| publish_one(&context, message, &kept));
        let done = timeout(CONFIRM_WITHIN, try_join_all(each)).await;
        let why = match done {
            Ok(Ok(_)) => {
                stored += some.len();
                continue;
            }
            Ok(Err(why)) => why,
            Err(_) => "no answer within 3 s".to_owned(),
        };
        return Err(ApiError::Unavailable(format!(
            "NATS did not confirm: {why}; at least {stored} of {} are stored, and sending all again is safe when each has an id",
            messages.len()
        )));
    }
    Ok(())
}

async fn publish_one(
    context: &jetstream::Context,
    message: &Outgoing,
    headers: &async_nats::HeaderMap,
) -> Result<(), String> {
    let (subject, payload) = (message.subject.clone(), message.payload.clone());
    let confirmed = if headers.is_empty() {
        context.publish(subject, payload).await
    } else {
        context.publish_with_headers(subject, headers.clone(), payload).await
    };
    confirmed.map_err(|e| e.to_string())?.await.map_err(|e| e.to_string())?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::RedactSettings;

    fn parts(body: &str, content_type: &str) -> Vec<String> {
        let parts = split(&Bytes::from(body.to_owned()), content_type).expect("parts");
        parts.iter().map(|p| String::from_utf8_lossy(p).into_owned()).collect()
    }

    #[test]
    fn events_are_told_apart_and_kept_as_written() {
        assert_eq!(parts("{\"a\": 1.50}", ""), ["{\"a\": 1.50}"]);
        assert_eq!(parts("[ {\"a\":1}, {\"b\": \"\\ud83d\"} ]", ""), ["{\"a\":1}", "{\"b\": \"\\ud83d\"}"]);
        assert_eq!(parts("{\"a\":1}\n\n{\"b\":2}\n", ""), ["{\"a\":1}", "{\"b\":2}"]);
        assert_eq!(parts("\u{feff}{\"a\":1}\r\n{\"b\":2}", "application/x-ndjson"), ["{\"a\":1}", "{\"b\":2}"]);
        assert_eq!(parts("{\n\"a\":1\n}", ""), ["{\n\"a\":1\n}"]);
        assert_eq!(parts("{broken\n}", ""), ["{broken\n}"]);
        assert_eq!(parts("", ""), [""]);
        assert!(split(&Bytes::from_static(b"[]"), "").is_err());
        assert!(split(&Bytes::from_static(b"\n\n"), "application/x-ndjson").is_err());
        assert!(split(&Bytes::from_static(b"[{},"), "").is_err());
    }

    #[test]
    fn one_bad_event_refuses_all_and_is_named() {
        let reader = Reader::new(&RedactSettings::default(), &[], &[0; 32]);
        let bodies = [
            Bytes::from_static(b"{\"id\":\"x\",\"workflow\":\"report\",\"error\":{\"message\":\"m\"}}"),
            Bytes::from_static(b"{\"id\":\"y\",\"error\":{\"message\":\"m\"}}"),
            Bytes::from_static(b"7"),
        ];
        let read = |bodies| read_all(&reader, bodies, &[], &["failures.>".to_owned()], DateTime::UNIX_EPOCH);
        let Err(ApiError::BadEvents { first: bad, .. }) = read(&bodies) else { panic!("a refusal is expected") };
        assert_eq!(bad.iter().map(|b| (b.index, b.id.as_deref())).collect::<Vec<_>>(), [(1, Some("y")), (2, None)]);
        assert!(bad[0].reason.contains("workflow"), "{}", bad[0].reason);
        assert_eq!(read(&bodies[..1]).expect("messages")[0].subject, "failures.report");
    }

    #[test]
    fn a_request_is_bounded_and_so_is_the_list_of_what_is_wrong_with_it() {
        let body = |n| Bytes::from(vec!["{}"; n].join("\n"));
        assert_eq!(split(&body(EVENTS_MAX), "application/x-ndjson").expect("parts").len(), EVENTS_MAX);
        let over = split(&body(EVENTS_MAX + 1), "application/x-ndjson").expect_err("a refusal");
        assert_eq!(over.status(), StatusCode::PAYLOAD_TOO_LARGE);
        let bodies = vec![Bytes::from_static(b"7"); 150];
        let reader = Reader::new(&RedactSettings::default(), &[], &[0; 32]);
        let Err(error) = read_all(&reader, &bodies, &[], &[], DateTime::UNIX_EPOCH) else { panic!("a refusal") };
        assert!(error.to_string().starts_with("150 of the events"), "{error}");
        assert!(error.to_string().contains("the first 100 are listed, and 50 more"), "{error}");
    }

    #[test]
    fn a_subject_is_one_of_the_stream_whatever_the_workflow_is_called() {
        let of = |subject: &str, workflow: &str| subject_of(&[subject.to_owned()], workflow);
        assert_eq!(of("failures.>", "order to.crm*>"), "failures.order_to_crm__");
        assert_eq!(of("in.*.failed", "pay"), "in.pay.failed");
        assert_eq!(of("failures", "pay"), "failures");
        assert_eq!(subject_of(&[], "pay"), "failures.pay");
    }
}
