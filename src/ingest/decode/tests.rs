//! Every accepted shape against samples of it, and the id rules.

use crate::config::RedactSettings;
use crate::event::*;
use crate::ingest::{DecodeOutcome, Decoded, Inbound, QuarantineReason, Reader};
use chrono::{DateTime, Utc};
use proptest::prelude::*;
use serde_json::{Value, json};
use std::sync::LazyLock;

fn arrival() -> DateTime<Utc> {
    "2026-12-01T09:00:00Z".parse().unwrap()
}

static READER: LazyLock<Reader> = LazyLock::new(|| Reader::new(&RedactSettings::default(), &[], &[7; 32]));

fn outcome(subject: &str, headers: &[(&str, &str)], payload: &[u8]) -> DecodeOutcome {
    let headers: Vec<(String, String)> = headers.iter().map(|(n, v)| ((*n).into(), (*v).into())).collect();
    let inbound =
        Inbound { subject, headers: &headers, payload, stream: "FAILURES", sequence: 12, received_at: arrival() };
    READER.read(inbound)
}

#[track_caller]
fn decoded_with(headers: &[(&str, &str)], payload: &[u8]) -> Decoded {
    match outcome("failures.report", headers, payload) {
        DecodeOutcome::Event(decoded) => *decoded,
        DecodeOutcome::Quarantine { reason } => panic!("{reason}"),
    }
}

#[track_caller]
fn event(value: Value) -> Event {
    decoded_with(&[], value.to_string().as_bytes()).event
}

#[track_caller]
fn sample(bytes: &[u8]) -> Event {
    decoded_with(&[], bytes).event
}

fn reason(subject: &str, payload: &[u8]) -> QuarantineReason {
    match outcome(subject, &[], payload) {
        DecodeOutcome::Event(decoded) => panic!("{decoded:?}"),
        DecodeOutcome::Quarantine { reason } => reason,
    }
}

#[test]
fn a_full_native_event_is_read_field_by_field() {
    let e = event(json!({
        "id": "e-1", "workflow": "pay", "step": "charge", "run_id": 7, "item": "invoice-1041",
        "error": {"type": "CardDeclined", "message": "declined", "code": 51, "http_status": "402", "retry_after_s": "30", "stack": ["a", "b"]},
        "attempt": 2, "max_attempts": "3", "downstream": "razorpay", "occurred_at": "2026-12-01T08:00:00Z",
        "payload": {"n": 1}, "links": {"run": "https://x.example/1", "bad": "javascript:alert(1)", "odd": "https://x.example/\u{7}"},
        "labels": {"team": "sales", "tier": 2, "vip": true, "none": null},
        "redriven_from": "dl-1", "redrive_count": 1,
    }));
    assert_eq!(e.id, EventId("e-1".into()));
    assert_eq!((e.workflow.as_str(), e.step.as_deref(), e.run_id.as_deref()), ("pay", Some("charge"), Some("7")));
    assert_eq!(e.error.kind.as_deref(), Some("CardDeclined"));
    assert_eq!(
        (e.error.code.as_deref(), e.error.http_status, e.error.retry_after_s),
        (Some("51"), Some(402), Some(30.0))
    );
    assert_eq!(e.error.stack.as_deref(), Some("a\nb"));
    assert_eq!((e.attempt, e.max_attempts, e.redrive_count), (Some(2), Some(3), Some(1)));
    assert_eq!(e.links.into_iter().collect::<Vec<_>>(), [("run".into(), "https://x.example/1".into())]);
    let labels: Vec<String> = e.labels.iter().map(|(k, v)| format!("{k}={v}")).collect();
    assert_eq!(labels, ["team=sales", "tier=2", "vip=true"]);
    assert_eq!(
        (e.class, e.class_rule.as_str(), e.disposition),
        (Class::Persistent, "builtin:http_402", Disposition::DeadLettered)
    );
    assert_eq!((e.payload, e.payload_cut, e.time_mark), (Some(json!({"n": 1})), false, TimeMark::Given));
}

#[test]
fn wrong_types_in_optional_fields_cost_nothing() {
    let e = event(json!({
        "id": {"a": 1}, "type": null, "workflow": "pay", "step": [], "item": {}, "error": 42, "attempt": "many", "max_attempts": -1,
        "disposition": "maybe", "class": 7, "links": "https://x", "labels": [], "occurred_at": [], "payload": null, "downstream": true,
    }));
    assert_eq!(e.id, EventId("FAILURES:12".into()));
    assert_eq!((e.step, e.item, e.attempt, e.max_attempts, e.payload), (None, None, None, None, None));
    assert_eq!(e.error.message.as_deref(), Some("42"));
    assert_eq!((e.class, e.disposition), (Class::Unclassified, Disposition::DeadLettered));
}

#[test]
fn an_error_may_be_a_string_or_a_type_beside_a_message() {
    assert_eq!(event(json!({"error": "broke"})).error.message.as_deref(), Some("broke"));
    let e =
        event(json!({"error": "GraphRecursionError", "message": "step limit of 25 used up without a stop condition"}));
    assert_eq!(e.error.kind.as_deref(), Some("GraphRecursionError"));
    assert_eq!((e.class, e.id.0.as_str()), (Class::LlmBehavior, "FAILURES:12"));
    assert_eq!(event(json!({"message": "only this"})).error.message.as_deref(), Some("only this"));
    let paused = event(json!({"run_id": "1efb-55", "status": "interrupted"}));
    assert_eq!((paused.class, paused.disposition), (Class::Interrupted, Disposition::Skipped));
}

#[test]
fn unusable_ids_fall_back_to_the_header_and_then_to_the_sequence() {
    for id in [json!(""), json!(null), json!("undefined"), json!(" "), json!("null")] {
        assert_eq!(event(json!({"id": id})).id.0, "FAILURES:12");
        let with_header = decoded_with(&[("nats-msg-id", "hdr-1")], json!({ "id": id }).to_string().as_bytes());
        assert_eq!(with_header.event.id.0, "hdr-1");
    }
    assert_eq!(decoded_with(&[("Nats-Msg-Id", "null")], b"{}").event.id.0, "FAILURES:12");
    assert_eq!(decoded_with(&[("Nats-Msg-Id", "hdr-1")], b"{\"id\":17}").event.id.0, "17");
    let long = event(json!({"id": "x".repeat(600)})).id.0;
    assert_eq!(long, "sha256:5130b33e6b87fbf5316ed9049e98924eb110800bcbaaad8050f642fba6df37c9");
}

#[test]
fn what_nobody_sees_at_the_ends_of_a_workflow_does_not_make_it_another() {
    for odd in ["pay\n", " pay", "\tpay\r\n", "pay\u{0}", "\u{feff}pay\u{200b}", "\u{7}pay\u{a0}"] {
        assert_eq!(event(json!({"workflow": odd})).workflow.as_str(), "pay", "{odd:?}");
    }
    assert_eq!(event(json!({"workflow": "pay out"})).workflow.as_str(), "pay out");
    assert_eq!(event(json!({"workflow": "\u{0} \u{200b}"})).workflow.as_str(), "report", "the subject names it");
}

#[test]
fn names_are_bounded_and_stay_apart() {
    let long = |tail: &str| format!("{}{tail}", "ä".repeat(300));
    let read = |name: String| {
        let e = event(json!({"workflow": name, "step": name, "item": name, "downstream": name, "run_id": name}));
        assert_eq!(e.step.as_deref(), Some(e.workflow.as_str()));
        assert_eq!((&e.step, &e.step, &e.step), (&e.item, &e.downstream, &e.run_id));
        e.workflow.to_string()
    };
    let (one, other) = (read(long("1")), read(long("2")));
    assert!(one.starts_with("äää") && one.len() <= 512 && one.len() > 500, "{one}");
    assert_eq!(one, read(long("1")), "the same name is the same key");
    assert_ne!(one, other);
    let kept = "x".repeat(512);
    assert_eq!(read(kept.clone()), kept);
}

#[test]
fn odd_bodies_are_events() {
    let bom = [b"\xef\xbb\xbf".as_slice(), br#"{"item":"bom"}"#].concat();
    assert_eq!(sample(&bom).item.as_deref(), Some("bom"));
    assert_eq!(sample(br#"[{"item":"array"}]"#).item.as_deref(), Some("array"));
    assert_eq!(sample(br#"{"item":"s"}"#).workflow.as_str(), "report");
    let twice = sample(br#"{"id":"d1","workflow":"pay","id":"d2","workflow":"report"}"#);
    assert_eq!((twice.id.0.as_str(), twice.workflow.as_str()), ("d2", "report"));
    let nul = sample(br#"{"error":{"message":"a\u0000b literal:\\u0000 half \ud83d end","k\u0000ey":1}}"#);
    assert_eq!(nul.error.message.as_deref(), Some("a␀b literal:\\u0000 half \u{fffd} end"));
    let big = sample(br#"{"item":9007199254740993,"payload":{"n":9007199254740993}}"#);
    assert_eq!(big.item.as_deref(), Some("9007199254740993"));
    assert_eq!(big.payload.unwrap().to_string(), r#"{"n":9007199254740993}"#);
}

#[test]
fn a_payload_over_64_kib_is_cut_and_marked() {
    for payload in [json!("y".repeat(70_000)), json!(vec!["ü\"\\"; 20_000]), json!("\n".repeat(66_000))] {
        let d = decoded_with(&[], json!({"item": "cut", "payload": payload}).to_string().as_bytes());
        let cut = d.event.payload.unwrap();
        assert!(d.event.payload_cut && cut.to_string().len() <= super::PAYLOAD_MAX);
        assert!(cut.to_string().len() > super::PAYLOAD_MAX - 100);
        let mark = format!("… (cut, {} bytes)", payload.to_string().len());
        assert!(cut.as_str().unwrap().ends_with(&mark) && d.body.contains(&mark));
    }
    let whole = json!("y".repeat(65_000));
    assert_eq!(event(json!({"payload": whole})).payload, Some(whole));
}

#[test]
fn what_cannot_be_read_says_why() {
    assert_eq!(
        reason("failures.x", b"[1,2,3]").to_string(),
        "found an array of 3 where one JSON object was expected: send each event as its own message"
    );
    assert_eq!(reason("failures.x", b"[1]").as_str(), "not_an_object");
    assert_eq!(reason("failures.x", b"\"text\"").as_str(), "not_an_object");
    assert_eq!(reason("failures.x", b"").as_str(), "empty");
    assert_eq!(reason("failures", b"{}"), QuarantineReason::NoWorkflow);
    assert_eq!(reason("failures.x", br#"{"type":"failur"}"#).as_str(), "unknown_type");
    assert_eq!(reason("failures.x", br#"{"type":"breaker"}"#), QuarantineReason::UnknownState);
}

#[test]
fn other_types_carry_their_details() {
    let outcome = |v: Value| event(v).detail;
    assert_eq!(
        outcome(json!({"type": "outcome", "ok": "5"})),
        Detail::Outcome(OutcomeCounts::Delta { ok: 5, failed: 0 })
    );
    let cumulative =
        OutcomeCounts::Cumulative { producer: "p".into(), epoch: "3".into(), ok_total: 9, failed_total: 0 };
    assert_eq!(
        outcome(json!({"type": "outcome", "producer": "p", "epoch": 3, "ok_total": 9, "ok": 1})),
        Detail::Outcome(cumulative)
    );
    let beat = |status: Value| outcome(json!({"type": "heartbeat", "status": status, "oldest_age_s": 1.5}));
    assert_eq!(
        beat(json!(null)),
        Detail::Heartbeat { status: HeartbeatStatus::Ok, queue_depth: None, oldest_age_s: Some(1.5) }
    );
    assert_eq!(
        beat(json!("sick")),
        Detail::Heartbeat { status: HeartbeatStatus::Degraded, queue_depth: None, oldest_age_s: Some(1.5) }
    );
    assert_eq!(
        outcome(json!({"type": "breaker", "state": "half-open"})),
        Detail::Breaker { state: BreakerState::HalfOpen }
    );
    let solved = Detail::Resolution { note: Some("paid".into()), by: Some("asha".into()), dead_letter_id: None };
    assert_eq!(outcome(json!({"type": "resolution", "note": "paid", "by": "asha"})), solved);
    let e = event(json!({"type": "recovery", "strategy": "retry", "took_ms": 40, "class": "transient"}));
    assert_eq!(e.detail, Detail::Recovery { strategy: Some("retry".into()), took_ms: Some(40), degraded_level: None });
    assert_eq!((e.class, e.class_rule.as_str(), e.disposition), (Class::Unclassified, "none", Disposition::Skipped));
}

const SPEC: &[(&str, &str)] = &[
    ("ce-specversion", "1.0"),
    ("ce-id", "9e1c-77"),
    ("ce-source", "/pipelines/invoices"),
    ("ce-type", "com.example.pipeline.failed"),
    ("ce-time", "2026-12-01T08:14:02.5+01:00"),
    ("ce-subject", "step%20charge%20%E2%80%93%20M%C3%BCller"),
    ("ce-datacontenttype", "application/json"),
];
const GO: &[(&str, &str)] = &[
    ("Ce-SpecVersion", "1.0"),
    ("ce-id", "9e1c-77"),
    ("ce-source", "/pipelines/invoices"),
    ("ce-type", "com.example.pipeline.failed"),
    ("ce-time", "2026-12-01T08:14:02.5+01:00"),
    ("ce-subject", "step charge – Müller"),
    ("content-type", "application/json"),
];
const DATA: &[u8] = br#"{"step":"charge","error":{"type":"CardDeclined","message":"declined"},"amount_minor":12000}"#;

fn structured() -> Value {
    json!({
        "specversion": "1.0", "id": "9e1c-77", "source": "/pipelines/invoices", "type": "com.example.pipeline.failed",
        "time": "2026-12-01T08:14:02.5+01:00", "subject": "step charge – Müller", "datacontenttype": "application/json",
        "data": serde_json::from_slice::<Value>(DATA).unwrap(),
    })
}

#[test]
fn one_cloudevent_is_the_same_event_in_all_modes() {
    let body = structured().to_string();
    let header = ("content-type", "APPLICATION/CloudEvents+JSON");
    let all = [
        decoded_with(&[header], body.as_bytes()),
        decoded_with(&[], body.as_bytes()),
        decoded_with(SPEC, DATA),
        decoded_with(GO, DATA),
    ];
    for d in &all {
        assert_eq!(d.event.id.0, "ce:/pipelines/invoices#9e1c-77");
        assert_eq!(d.event.occurred_at.to_rfc3339(), "2026-12-01T07:14:02.500+00:00");
        assert_eq!((d.event.step.as_deref(), d.event.workflow.as_str()), (Some("charge"), "report"));
        let kept: Value = serde_json::from_str(&d.body).unwrap();
        assert_eq!(
            (&kept["cloudevent"]["subject"], &kept["amount_minor"]),
            (&json!("step charge – Müller"), &json!(12000))
        );
    }
}

#[test]
fn odd_cloudevents_lose_nothing_but_what_the_spec_refuses() {
    let percent = [&GO[..6], &[("content-type", "application/json"), ("ce-note", "50% of it, 100%25")]].concat();
    let kept: Value = serde_json::from_str(&decoded_with(&percent, DATA).body).unwrap();
    assert_eq!(kept["cloudevent"]["note"], "50% of it, 100%25");
    let broken = [&SPEC[..5], &[("ce-subject", "%C3%28")]].concat();
    let DecodeOutcome::Quarantine { reason } = outcome("failures.x", &broken, DATA) else { panic!() };
    assert_eq!(
        reason.to_string(),
        "not a valid CloudEvent: header `ce-subject` is not UTF-8 once its percent-encoding is undone"
    );
    let binary = json!({"specversion": "1.0", "id": "b", "source": "/s", "type": "t", "data_base64": "AAECAwT/"});
    assert_eq!(event(binary).payload, Some(json!("AAECAwT/")));
    let nested =
        json!({"specversion": "1.0", "id": "b", "source": "/s", "type": "t", "data_base64": "eyJpdGVtIjoiaTEifQ=="});
    assert_eq!(event(nested).item.as_deref(), Some("i1"));
    let text = json!({"specversion": "1.0", "id": "b", "source": "/s", "type": "t", "data": "{\"item\":\"i2\",\"id\":\"own\"}"});
    assert_eq!((event(text.clone()).item.as_deref(), event(text).id.0.as_str()), (Some("i2"), "own"));
}

fn n8n(error: Value, id: Value) -> Value {
    json!({
        "execution": {"id": id, "url": "https://n8n.example.net/workflow/pT4/executions/48213", "error": error, "lastNodeExecuted": "Create charge", "mode": "webhook"},
        "workflow": {"id": "pT4", "name": "Invoices → charge card"},
    })
}

#[test]
fn n8n_executions_are_read_however_the_error_was_serialised() {
    let full = json!({"message": "Canned text for status 402", "timestamp": 1_796_028_301_447_u64, "name": "NodeApiError",
        "description": "Card issuer declined", "httpCode": "402", "node": {"name": "Create charge"}, "stack": "NodeApiError: x"});
    let e = event(n8n(full, json!("48213")));
    assert_eq!((e.id.0.as_str(), e.workflow.as_str()), ("n8n:pT4:48213", "Invoices → charge card"));
    assert_eq!((e.step.as_deref(), e.run_id.as_deref()), (Some("Create charge"), Some("48213")));
    assert_eq!((e.error.message.as_deref(), e.error.http_status), (Some("Card issuer declined"), Some(402)));
    assert_eq!(e.occurred_at.timestamp_millis(), 1_796_028_301_447);
    assert_eq!((e.class, e.disposition, e.links.len()), (Class::Persistent, Disposition::DeadLettered, 1));

    let after = json!({"message": "Canned", "timestamp": 1, "name": "NodeApiError", "description": null, "messages": ["402 - real"],
        "cause": {"message": "upstream answered 402", "status": 402, "code": "ERR_BAD_REQUEST", "config": {"headers": {"Authorization": "Bearer sk_test_FAKE0000000000000000"}}}});
    let d = decoded_with(&[], json!([n8n(after, json!(48214))]).to_string().as_bytes());
    assert_eq!((d.event.id.0.as_str(), d.event.error.http_status), ("n8n:pT4:48214", Some(402)));
    assert_eq!(
        (d.event.error.message.as_deref(), d.event.error.code.as_deref()),
        (Some("402 - real"), Some("ERR_BAD_REQUEST"))
    );
    assert!(!d.body.contains("FAKE0000"), "{}", d.body);

    let lost = json!({"message": "Canned text: no connection", "description": "getaddrinfo ENOTFOUND pay.example.net", "httpCode": null, "stack": null});
    let e = event(n8n(lost, json!("48220")));
    assert_eq!((e.class, e.disposition, e.error.http_status), (Class::Transient, Disposition::DeadLettered, None));
}

#[test]
fn an_n8n_trigger_without_execution_is_told_by_time_and_message() {
    let failed = |time: u64, message: &str| {
        event(
            json!({"trigger": {"error": {"name": "WorkflowActivationError", "message": message, "timestamp": time, "node": {"name": "Mailbox"}}, "mode": "trigger"},
            "workflow": {"id": "Rf7s2", "name": "Refund mailbox"}}),
        )
    };
    let e = failed(1_796_029_001_005, "connect ECONNREFUSED 192.0.2.40:993");
    assert_eq!(e.id.0, "n8n:Rf7s2:1796029001005:da62c3fd3cd52e07");
    assert_eq!((e.workflow.as_str(), e.step.as_deref(), e.links.len()), ("Refund mailbox", Some("Mailbox"), 0));
    assert_eq!((e.class, e.disposition), (Class::Transient, Disposition::Retrying));
    assert_ne!(e.id, failed(1_796_029_006_005, "connect ECONNREFUSED 192.0.2.40:993").id);
    assert_ne!(e.id, failed(1_796_029_001_005, "other").id);
}

#[test]
fn advisories_are_dead_letters_told_by_stream_consumer_and_sequence() {
    let exhausted = json!({"type": "io.nats.jetstream.advisory.v1.max_deliver", "id": "Qm3v", "timestamp": "2026-12-01T07:14:02.118734501Z",
        "stream": "WORK", "consumer": "charge-worker", "stream_seq": 9_007_199_254_740_993_u64, "deliveries": "5", "domain": "edge-eu"});
    let e = event(exhausted);
    assert_eq!(e.id.0, "js:edge-eu:WORK:charge-worker:9007199254740993");
    assert_eq!(
        (e.workflow.as_str(), e.step.as_deref(), e.item.as_deref()),
        ("WORK", Some("charge-worker"), Some("charge-worker:9007199254740993"))
    );
    assert_eq!((e.disposition, e.occurred_at.timestamp_subsec_millis()), (Disposition::DeadLettered, 118));
    let ended = |reason: Value| {
        event(
            json!({"type": "io.nats.jetstream.advisory.v1.terminated", "id": "d0", "timestamp": "2026-12-01T07:15:40Z", "stream": "WORK",
        "consumer": "c", "consumer_seq": "311", "stream_seq": "48215", "deliveries": 1, "reason": reason}),
        )
    };
    assert_eq!(ended(json!("Message deleted by stream limits")).class, Class::Catastrophic);
    assert_eq!(ended(json!("schema check failed: amount is not a number")).class, Class::InvalidInput);
    assert_eq!(ended(json!(null)).class, Class::Unclassified);
    let nak = reason("failures.x", br#"{"type":"io.nats.jetstream.advisory.v1.nak","stream":"WORK"}"#);
    assert_eq!(nak.as_str(), "unsupported_advisory");
}

fn any_json() -> impl Strategy<Value = Value> {
    let text = prop_oneof!["\\PC{0,24}", "[\\x00-\\x20a-z:=@/\"'\\\\]{0,24}", "[0-9]{1,20}"];
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        text.prop_map(Value::from),
    ];
    let key = prop_oneof![
        proptest::sample::select(vec![
            "id",
            "type",
            "workflow",
            "error",
            "message",
            "occurred_at",
            "payload",
            "links",
            "labels",
            "execution",
            "trigger",
            "specversion",
            "data",
            "token",
            "class",
            "stack",
            "attempt",
            "item",
            "source",
        ])
        .prop_map(str::to_owned),
        "\\PC{0,8}",
    ];
    leaf.prop_recursive(4, 48, 8, move |inner| {
        prop_oneof![
            proptest::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            proptest::collection::vec((key.clone(), inner), 0..8)
                .prop_map(|pairs| Value::Object(pairs.into_iter().collect())),
        ]
    })
}

proptest! {
    #[test]
    fn no_bytes_panic(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
        let _ = outcome("failures.x", &[], &bytes);
        let _ = outcome("failures.x", SPEC, &bytes);
    }

    #[test]
    fn no_object_panics_and_what_is_kept_has_no_nul(value in any_json()) {
        let text = value.to_string();
        for headers in [&[][..], SPEC, &[("Content-Type", "application/cloudevents+json")]] {
            if let DecodeOutcome::Event(d) = outcome("failures.x", headers, text.as_bytes()) {
                let event = serde_json::to_string(&d.event).unwrap();
                prop_assert!(!d.body.contains("\\u0000") || d.body.contains("\\\\u0000"), "{}", d.body);
                prop_assert!(!event.contains('\0'));
                prop_assert!(serde_json::from_str::<Value>(&d.body).is_ok());
                prop_assert_eq!(serde_json::from_str::<Event>(&event).unwrap(), d.event);
            }
        }
    }
}
