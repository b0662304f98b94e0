//! The events: a night of 200 workflows, the same from the same seed. They satisfy the contract and the reference
//! pipeline's parser alike, so that both read the same bytes.

use anyhow::Context;
use async_nats::HeaderMap;
use async_nats::jetstream;
use bytes::Bytes;
use futures_util::future::try_join_all;
use serde_json::{Value, json};

/// Standard workflows among which events are spread.
pub const WORKFLOWS: usize = 200;

const STEPS: [&str; 6] = ["load", "transform", "call-ledger", "write-parquet", "notify-partner", "validate"];
/// Class, error type, status and message of each kind of transient fault and of each kind of dead letter.
const TRANSIENT: [(&str, &str, u16, &str); 3] = [
    ("transient", "Timeout", 504, "no answer after 30000 ms"),
    ("transient", "ConnectionReset", 502, "connection reset by peer"),
    ("rate_limited", "TooManyRequests", 429, "slow down, retry after 12 s"),
];
const FINAL: [(&str, &str, u16, &str); 3] = [
    ("invalid_input", "ValidationError", 422, "field amount is missing"),
    ("persistent", "TokenExpired", 401, "the token expired"),
    ("outcome_unknown", "AnswerLost", 500, "the write was sent, its answer was lost"),
];

/// splitmix64: small, seeded, the same everywhere.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    fn below(&mut self, limit: usize) -> usize {
        (self.next() % limit as u64) as usize
    }

    fn uuid(&mut self) -> String {
        let (high, low) = (self.next(), self.next());
        format!(
            "{:08x}-{:04x}-4{:03x}-{:04x}-{:012x}",
            high >> 32,
            (high >> 16) & 0xffff,
            high & 0xfff,
            0x8000 | ((low >> 48) & 0x3fff),
            low & 0xffff_ffff_ffff
        )
    }
}

/// A message as it goes to the stream.
pub struct Message {
    pub subject: String,
    pub id: String,
    pub body: Bytes,
}

/// The name of a standard workflow.
pub fn workflow_name(index: usize) -> String {
    format!("nightly-export-{index:03}")
}

/// Event number `index` of the mix that `seed` makes: 60 % transient faults that are retried, 25 % dead letters, 10 %
/// outcomes, 5 % recoveries, about 700 bytes each, with random ids. `at_ms` is when it happened, epoch milliseconds.
pub fn mixed(seed: u64, index: usize, at_ms: i64) -> Message {
    let mut random = Random(seed.wrapping_mul(1_000_003).wrapping_add(index as u64));
    let id = random.uuid();
    let workflow = workflow_name(random.below(WORKFLOWS));
    let mut event = frame(&mut random, &id, &workflow, at_ms);
    match random.below(100) {
        0..60 => fail(&mut event, &mut random, TRANSIENT, "retrying"),
        60..85 => fail(&mut event, &mut random, FINAL, "dead_lettered"),
        85..95 => {
            event["type"] = json!("outcome");
            event["ok"] = json!(1 + random.below(40));
            event["failed"] = json!(0);
        }
        _ => {
            event["type"] = json!("recovery");
            event["strategy"] = json!("retry");
            event["took_ms"] = json!(random.below(90_000));
        }
    }
    message(&workflow, id, &event)
}

/// A failure that is final at once: of `workflow`, in `step`, with `message`. The id is random.
pub fn dead_letter(seed: u64, index: usize, workflow: &str, step: &str, text: &str, at_ms: i64) -> Message {
    let mut random = Random(seed.wrapping_mul(1_000_003).wrapping_add(index as u64));
    let id = random.uuid();
    let mut event = frame(&mut random, &id, workflow, at_ms);
    event["step"] = json!(step);
    event["class"] = json!("persistent");
    event["disposition"] = json!("dead_lettered");
    event["item"] = json!(format!("order-{index}"));
    event["message"] = json!(text);
    event["error"] =
        json!({"type": "CardDeclined", "kind": "CardDeclined", "stack": "", "http_status": 402, "message": text});
    message(workflow, id, &event)
}

/// What every event has; the reference pipeline's parser wants all of these names.
fn frame(random: &mut Random, id: &str, workflow: &str, at_ms: i64) -> Value {
    let step = STEPS[random.below(STEPS.len())];
    json!({
        "schema": "failure.v1",
        "id": id,
        "type": "failure",
        "workflow": workflow,
        "step": step,
        "class": "transient",
        "occurred_at": at_ms,
        "attempt": 1,
        "run_id": format!("run-{:016x}", random.next()),
        "host": format!("worker-{:02}.prod.eu-west-1.internal", random.below(40)),
        "message": "",
        "error": {"kind": "", "stack": ""},
        "labels": {"env": "prod", "region": "eu-west-1", "team": "exports", "release": "2026.11.3"},
    })
}

fn fail(event: &mut Value, random: &mut Random, kinds: [(&str, &str, u16, &str); 3], disposition: &str) {
    let (class, kind, status, text) = kinds[random.below(kinds.len())];
    let text = format!("{text} (request {:016x}, shard {})", random.next(), random.below(64));
    let stack = format!(
        "at ledger::client::post (client.rs:{})\nat export::run (run.rs:{})\nat engine::poll (exec.rs:412)",
        random.below(900),
        random.below(700)
    );
    event["class"] = json!(class);
    event["disposition"] = json!(disposition);
    event["attempt"] = json!(1 + random.below(3));
    event["max_attempts"] = json!(5);
    event["item"] = json!(format!("invoice-{}", random.next() % 100_000_000));
    event["message"] = json!(text);
    event["error"] = json!({"type": kind, "kind": kind, "http_status": status, "message": text, "stack": stack});
}

fn message(workflow: &str, id: String, event: &Value) -> Message {
    Message { subject: format!("failures.{workflow}"), id, body: Bytes::from(event.to_string()) }
}

/// Publishes in batches, and waits until the stream has stored each one.
///
/// # Errors
/// When the server refuses or loses a message.
pub async fn publish(js: &jetstream::Context, messages: impl Iterator<Item = Message>) -> anyhow::Result<()> {
    let mut messages = messages.peekable();
    while messages.peek().is_some() {
        let mut stored = Vec::with_capacity(1_000);
        for message in messages.by_ref().take(1_000) {
            stored.push(send(js, message).await?.into_future());
        }
        try_join_all(stored).await.context("the stream did not store a message")?;
    }
    Ok(())
}

/// Hands one message to the server; the future that comes back ends when the stream has stored it.
///
/// # Errors
/// When there is no connection.
pub async fn send(js: &jetstream::Context, message: Message) -> anyhow::Result<jetstream::context::PublishAckFuture> {
    let mut headers = HeaderMap::new();
    headers.insert("Nats-Msg-Id", message.id.as_str());
    js.publish_with_headers(message.subject, headers, message.body).await.context("publish")
}
