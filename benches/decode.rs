//! Time to read one event of about 700 bytes: decode, redact, classify, fingerprint, body. Prints ns an event.
//! `cargo bench --bench decode`

use chrono::{DateTime, Utc};
use matins::config::RedactSettings;
use matins::ingest::{DecodeOutcome, Inbound, Reader};
use serde_json::json;
use std::hint::black_box;

const EVENTS: usize = 200;
const ROUNDS: usize = 500;

fn failure(n: usize) -> String {
    json!({
        "id": format!("5f0c{n:04x}-7a10-4b0b-9a43-6f2f1b0f{n:04x}"), "type": "failure", "workflow": format!("workflow-{}", n % 200),
        "step": "push-contact", "run_id": format!("run-{n}"), "item": format!("order-{n}"),
        "error": {
            "type": "UpstreamError", "code": "ECONNRESET", "http_status": if n.is_multiple_of(2) { 503 } else { 422 },
            "message": format!("POST https://api.hubspot.example/crm/v3/objects/{n} failed for order {n}: upstream answered late"),
            "stack": "UpstreamError: upstream answered late\n    at push (/srv/app/push.js:41:16)\n    at run (/srv/app/run.js:7:3)",
        },
        "attempt": 1, "max_attempts": 5, "downstream": "hubspot", "occurred_at": "2026-12-01T08:14:02.512Z",
        "payload": {"order": n, "amount": 1200, "customer": {"name": "K. Rao", "city": "Pune"}, "lines": [1, 2, 3]},
        "links": {"run": format!("https://runs.example.com/{n}")}, "labels": {"team": "sales", "region": "in"},
    })
    .to_string()
}

#[allow(clippy::disallowed_methods, reason = "a benchmark reads the clock")]
fn main() {
    let reader = Reader::new(&RedactSettings::default(), &[], &[7; 32]);
    let bodies: Vec<String> = (0..EVENTS).map(failure).collect();
    let received_at: DateTime<Utc> = DateTime::from_timestamp_millis(1_796_112_000_000).unwrap_or_default();
    let read = |body: &str| {
        let payload = body.as_bytes();
        let inbound =
            Inbound { subject: "failures.w", headers: &[], payload, stream: "FAILURES", sequence: 1, received_at };
        match black_box(reader.read(inbound)) {
            DecodeOutcome::Event(decoded) => decoded.body.len(),
            DecodeOutcome::Quarantine { .. } => 0,
        }
    };
    let bytes: usize = bodies.iter().map(String::len).sum();
    let mut best = f64::INFINITY;
    for _ in 0..ROUNDS {
        let began = std::time::Instant::now();
        let kept: usize = bodies.iter().map(|body| read(body)).sum();
        assert!(kept > 0, "no event was read");
        best = best.min(began.elapsed().as_secs_f64() * 1e9 / EVENTS as f64);
    }
    println!("decode: {best:.0} ns an event of {} bytes (best of {ROUNDS} rounds)", bytes / EVENTS);
}
