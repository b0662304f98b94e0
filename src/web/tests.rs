//! Requests over a real socket against a real store. NATS is away, which most of the API must not notice.

use super::*;
use crate::ack_link;
use crate::clock;
use crate::config;
use crate::event::{Class, Detail, Disposition, ErrorInfo, Event, EventId, EventType, Fingerprint, TimeMark};
use crate::incident::{Incident, IncidentId, Terms};
use crate::ingest::health::Readiness;
use crate::ingest::jetstream;
use crate::live::{Keys, Live};
use crate::metrics::Metrics;
use crate::name::{ReceiverName, WorkflowName};
use crate::outbox::{DeadReason, EntryId, NewEntry, Settlement, queue};
use crate::render::Renderer;
use crate::store::intake::{self, NewCause, NewDecision, QuarantineRow};
use crate::store::key::{hash_key, key_of};
use crate::store::letters::{self, LetterRow};
use crate::store::{Store, incidents};
use crate::workflow::Domain;
use arc_swap::ArcSwap;
use chrono::TimeDelta;
use reqwest::{Method, Response};
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use tokio::sync::{Notify, mpsc};
use tokio::task::JoinHandle;

const CONFIG: &str = r#"
[nats]
url = "nats://127.0.0.1:1"
[http]
listen = "127.0.0.1:0"
public_url = "https://matins.example.com"
[receivers.oncall]
kind = "file"
dir = "oncall"
fallback = "backup"
[receivers.backup]
kind = "file"
dir = "backup"
[[workflows]]
name = "pay"
domain = "money"
[[routes]]
name = "protected"
match = { domain = ["money", "compliance"] }
page = ["oncall"]
continue = true
[[routes]]
name = "everything"
match = {}
digest.daily = ["oncall"]
[digests.daily]
cron = "0 10 * * *"
"#;

struct World {
    shared: Arc<Shared>,
    base: String,
    http: reqwest::Client,
    server: JoinHandle<()>,
    readiness: tokio::sync::watch::Sender<Readiness>,
    _folder: tempfile::TempDir,
}

impl Drop for World {
    fn drop(&mut self) {
        self.server.abort();
    }
}

async fn world() -> World {
    world_with("").await
}

async fn world_with(more: &str) -> World {
    // Another test may have chosen it already.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("matins.toml");
    std::fs::write(&path, format!("{CONFIG}{more}")).expect("a config file");
    let loaded = config::load(&path, &|_| None, clock::now()).expect("a good config");
    let store = Store::open(&format!("sqlite://{}", folder.path().join("matins.db").display())).await.expect("a store");
    let keys = Keys { redaction: [1; 32], links: [2; 32] };
    let nats_settings = loaded.config.nats.clone();
    let nats = jetstream::connect(&nats_settings).await.expect("a client");
    let live = Live::new(loaded.config, Renderer::new(&[]).0, Vec::new(), &keys);
    let (readiness, readiness_rx) = tokio::sync::watch::channel(Readiness::Ready);
    let shared = Arc::new(Shared {
        store,
        live: Arc::new(ArcSwap::from_pointee(live)),
        keys,
        readiness: readiness_rx,
        metrics: Arc::new(Metrics::default()),
        nats,
        nats_settings,
        symptoms: ArcSwap::default(),
        budgets: ArcSwap::default(),
        outbox_wake: Arc::new(Notify::new()),
        reload: mpsc::channel(1).0,
    });
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let base = format!("http://{}", listener.local_addr().expect("an address"));
    let server = tokio::spawn(serve(listener, shared.clone(), CancellationToken::new()));
    let http = reqwest::Client::builder().no_proxy().build().expect("a client");
    World { shared, base, http, server, readiness, _folder: folder }
}

impl World {
    async fn send(&self, method: Method, path: &str, body: &str, headers: &[(&str, &str)]) -> Response {
        let mut request = self.http.request(method, format!("{}{path}", self.base)).body(body.to_owned());
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        request.send().await.expect("an answer")
    }

    async fn get(&self, path: &str) -> Value {
        let answer = self.send(Method::GET, &format!("/api/v1{path}"), "", &[]).await;
        assert_eq!(answer.status(), 200, "GET {path}");
        answer.json().await.expect("JSON")
    }

    async fn post(&self, path: &str, body: Value) -> (u16, Value) {
        let answer = self.send(Method::POST, &format!("/api/v1{path}"), &body.to_string(), &[]).await;
        (answer.status().as_u16(), answer.json().await.expect("JSON"))
    }

    /// An incident of `pay` with one open dead letter.
    async fn incident(&self) -> i64 {
        let terms = Terms {
            routes: vec!["protected".to_owned()],
            page: vec![ReceiverName::from("oncall")],
            remind_every: None,
            resolve_after: Duration::from_secs(900),
            growth_every: Duration::from_secs(300),
            escalate: Vec::new(),
        };
        let mut tx = self.shared.store.begin().await.expect("a transaction");
        let id = incidents::next_id(&mut tx).await.expect("an id");
        let incident = Incident::open(IncidentId(id.0), &failure(), Domain::Money, terms, 1);
        incidents::save(&mut tx, &incident).await.expect("an incident");
        letter(&mut tx, &format!("inv-{}", id.0), Some(id.0)).await;
        tx.commit().await.expect("a commit");
        id.0
    }
}

fn failure() -> Event {
    Event {
        id: EventId("e1".to_owned()),
        event_type: EventType::Failure,
        workflow: WorkflowName::from("pay"),
        step: Some("charge".to_owned()),
        run_id: None,
        item: Some("inv-1".to_owned()),
        class: Class::Persistent,
        class_rule: "builtin:402".to_owned(),
        disposition: Disposition::DeadLettered,
        fingerprint: Fingerprint("v1:0123456789abcdef".into()),
        error: ErrorInfo { message: Some("declined <script>".to_owned()), ..ErrorInfo::default() },
        attempt: None,
        max_attempts: None,
        downstream: None,
        occurred_at: clock::now(),
        time_mark: TimeMark::Missing,
        received_at: clock::now(),
        payload: None,
        payload_cut: false,
        links: BTreeMap::new(),
        labels: BTreeMap::new(),
        detail: Detail::Failure,
        redriven_from: None,
        redrive_count: None,
    }
}

async fn letter(tx: &mut crate::store::WriteTx, item: &str, incident_id: Option<i64>) {
    let now = clock::now();
    let workflow_id = intake::intern_workflow(tx, "pay", now).await.expect("a workflow");
    let cause = NewCause {
        key: key_of("cause"),
        fingerprint: "v1:0123456789abcdef",
        workflow_id,
        event_type: EventType::Failure,
        class: Class::Persistent,
        disposition: Disposition::DeadLettered,
        step: Some("charge"),
        downstream: None,
        error_type: None,
        strategy: None,
        sample: "declined",
        first_seen_at: now,
    };
    let decision = NewDecision {
        config_version: "1",
        routes: "[]",
        page: "[]",
        digests: &BTreeSet::new(),
        fate: "paged",
        fate_id: "1",
        reason: "protected",
    };
    let row = LetterRow {
        key: hash_key(&["pay", item]),
        cause_id: intake::intern_cause(tx, &cause).await.expect("a cause"),
        decision_id: intake::intern_decision(tx, &decision).await.expect("a decision"),
        item: Some(item.to_owned()),
        error_message: Some("declined".to_owned()),
        links: "{}".to_owned(),
        payload: Some("{\"n\":9007199254740993}".to_owned()),
        payload_cut: false,
        failed_at: now,
        arrived_at: now,
        attempt_count: 1,
        times: 1,
        incident_id,
        redrive_count: 0,
    };
    match incident_id {
        Some(id) => _ = letters::open_for(tx, &row, id).await.expect("a letter"),
        None => letters::open(tx, &[row]).await.expect("a letter"),
    }
}

#[tokio::test]
async fn health_does_not_depend_on_nats_and_readiness_says_why() {
    let w = world().await;
    let status = async |path: &str| w.send(Method::GET, path, "", &[]).await;
    assert_eq!(status("/healthz").await.status(), 200);
    assert_eq!(status("/readyz").await.status(), 200);
    w.readiness.send_replace(Readiness::NotReady("waiting for NATS".to_owned()));
    let answer = status("/readyz").await;
    assert_eq!(answer.status(), 503);
    assert!(answer.text().await.expect("a body").contains("waiting for NATS"));
    assert_eq!(status("/healthz").await.status(), 200);
    let metrics = status("/metrics").await.text().await.expect("a body");
    assert!(metrics.contains("matins_incidents_open{domain=\"money\"} 0"), "{metrics}");
}

#[tokio::test]
async fn an_event_is_refused_with_reasons_or_asked_for_again_but_never_lost_silently() {
    let w = world().await;
    let (status, answer) = w.post("/events", json!([{"workflow": "pay"}, {"id": "y"}])).await;
    assert_eq!(status, 400);
    assert_eq!((&answer["items"][0]["index"], &answer["items"][0]["id"]), (&json!(1), &json!("y")));
    assert!(answer["items"][0]["reason"].as_str().is_some_and(|r| r.contains("workflow")), "{answer}");
    let answer = w.send(Method::POST, "/api/v1/events", "{\"workflow\": \"pay\"}", &[]).await;
    assert_eq!(answer.status(), 503);
    assert_eq!(answer.headers()["retry-after"], "5");
    let long = "x".repeat(input::BODY_MAX + 1);
    assert_eq!(w.send(Method::POST, "/api/v1/events", &long, &[]).await.status(), 413);
}

#[tokio::test]
async fn lists_go_on_at_next_until_the_end() {
    let w = world().await;
    let mut tx = w.shared.store.begin().await.expect("a transaction");
    for n in 0..5 {
        letter(&mut tx, &format!("i{n}"), None).await;
    }
    tx.commit().await.expect("a commit");
    let (mut seen, mut path) = (Vec::new(), "/dead-letters?limit=2".to_owned());
    loop {
        let part = w.get(&path).await;
        seen.extend(part["items"].as_array().expect("items").iter().map(|l| l["item"].clone()));
        let Some(next) = part["next"].as_str() else { break };
        path = format!("/dead-letters?limit=2&cursor={next}");
    }
    assert_eq!(seen, ["i4", "i3", "i2", "i1", "i0"]);
    let letter = &w.get("/dead-letters?workflow=pay&open=true&limit=1").await["items"][0];
    // Digits beyond 2^53 are kept.
    assert_eq!(letter["payload"].to_string(), "{\"n\":9007199254740993}");
    assert!(letter["failed_at"].as_str().is_some_and(|at| at.ends_with('Z') && at.contains('.')), "{letter}");
    assert_eq!(w.get("/dead-letters?workflow=other").await["items"], json!([]));
    for path in ["/dead-letters?cursor=x", "/incidents?limit=0", "/outbox?limit=many"] {
        assert_eq!(w.send(Method::GET, &format!("/api/v1{path}"), "", &[]).await.status(), 400, "{path}");
    }
}

#[tokio::test]
async fn what_is_not_there_is_404_with_words() {
    let w = world().await;
    for path in [
        "/incidents/nothing",
        "/incidents/7",
        "/dead-letters/7",
        "/outbox/7",
        "/digests/7",
        "/quarantine/7",
        "/silences/S-7",
        "/nowhere",
    ] {
        let answer = w.send(Method::GET, &format!("/api/v1{path}"), "", &[]).await;
        assert_eq!(answer.status(), 404, "{path}");
        let body: Value = answer.json().await.expect("JSON");
        assert!(body["error"].as_str().is_some_and(|e| e.starts_with("there is no")), "{path}: {body}");
    }
    let answer = w.send(Method::DELETE, "/api/v1/incidents", "", &[]).await;
    assert_eq!(answer.status(), 405);
    assert_eq!(w.post("/receivers/nobody/test", json!({})).await.0, 404);
}

#[tokio::test]
async fn an_unreadable_message_shows_its_bytes() {
    let w = world().await;
    let mut tx = w.shared.store.begin().await.expect("a transaction");
    let row = QuarantineRow {
        stream: "FAILURES".to_owned(),
        sequence: 1,
        subject: "failures.x".to_owned(),
        headers: "[]".to_owned(),
        reason: "not_utf8",
        explanation: "byte 0 is not UTF-8".to_owned(),
        received_at: clock::now(),
        raw: vec![0xff, 0x00],
    };
    intake::insert_quarantine(&mut tx, &row).await.expect("a row");
    let stream = intake::StreamRow { name: "S", made_at: clock::now(), sequence: 1, arrival_at: clock::now() };
    let totals = intake::NewTotals { events: 0, duplicates: 0, quarantined: 1 };
    intake::note_progress(&mut tx, stream, totals).await.expect("totals");
    tx.commit().await.expect("a commit");
    let message = &w.get("/quarantine").await["items"][0];
    assert_eq!((&message["raw_base64"], &message["size"]), (&json!("/wA="), &json!(2)));
    assert_eq!(w.get("/stats").await["quarantined"], 1);
}

#[tokio::test]
async fn a_person_resolves_an_incident_once_and_all_are_told_once() {
    let w = world().await;
    let id = w.incident().await;
    let (status, taken) = w.post(&format!("/incidents/{id}/acknowledge"), json!({"by": "asha"})).await;
    assert_eq!((status, &taken["state"], &taken["acknowledged_by"]), (200, &json!("acknowledged"), &json!("asha")));
    for _ in 0..2 {
        let (status, over) = w.post(&format!("/incidents/{id}/resolve"), json!({"by": "chen"})).await;
        assert_eq!((status, &over["state"], &over["resolved_by"]), (200, &json!("resolved"), &json!("chen")));
    }
    let outbox = w.get("/outbox").await;
    let kinds: Vec<&Value> = outbox["items"].as_array().expect("items").iter().map(|e| &e["kind"]).collect();
    assert_eq!(kinds, [&json!("resolved")]);
    assert_eq!(w.post(&format!("/incidents/{id}/acknowledge"), json!({})).await.0, 409);
}

#[tokio::test]
async fn a_resolved_dead_letter_keeps_its_first_note_and_leaves_the_metric() {
    let w = world().await;
    w.incident().await;
    let (status, letter) = w.post("/dead-letters/1/resolve", json!({"note": "by hand", "by": "asha"})).await;
    assert_eq!((status, &letter["resolution_note"], &letter["resolved_by"]), (200, &json!("by hand"), &json!("asha")));
    let (status, letter) = w.post("/dead-letters/1/resolve", json!({"note": "again"})).await;
    assert_eq!((status, &letter["resolution_note"]), (200, &json!("by hand")));
    let metrics = w.send(Method::GET, "/metrics", "", &[]).await.text().await.expect("a body");
    assert!(metrics.contains("matins_dead_letters_open{workflow=\"pay\"} 0"), "{metrics}");
}

#[tokio::test]
async fn only_the_button_behind_a_good_link_acknowledges() {
    let w = world().await;
    let id = w.incident().await;
    let link = ack_link::sign(&w.shared.keys.links, id, clock::now() + TimeDelta::hours(1));
    let state = async || w.get(&format!("/incidents/{id}")).await["state"].clone();
    for method in [Method::GET, Method::HEAD] {
        assert_eq!(w.send(method, &link, "", &[]).await.status(), 200);
    }
    let page = w.send(Method::GET, &link, "", &[]).await;
    assert!(page.headers()["content-security-policy"].to_str().is_ok_and(|p| p.contains("default-src 'none'")));
    let html = page.text().await.expect("a page");
    assert!(html.contains("pay") && html.contains("declined &lt;script&gt;") && !html.contains("<script>"), "{html}");
    let forged = link.replace("sig=", "sig=A");
    let expired = ack_link::sign(&w.shared.keys.links, id, clock::now() - TimeDelta::seconds(1));
    for bad in [forged.as_str(), &expired, &format!("/ack/{id}"), "/ack/x?sig=a&exp=1"] {
        assert_eq!(w.send(Method::POST, bad, "", &[]).await.status(), 403, "{bad}");
    }
    assert_eq!(w.send(Method::POST, &link, "", &[("sec-fetch-site", "cross-site")]).await.status(), 403);
    assert_eq!(state().await, "open");
    let form = [("content-type", "application/x-www-form-urlencoded"), ("origin", "https://matins.example.com")];
    let pressed = w.send(Method::POST, &link, "by=Asha+%3C3", &form).await;
    assert_eq!(pressed.status(), 200);
    assert!(pressed.text().await.expect("a page").contains("Asha &lt;3"));
    assert_eq!(state().await, "acknowledged");
}

#[tokio::test]
async fn a_silence_counts_at_once_and_is_kept_when_it_is_over() {
    let w = world().await;
    let until = (clock::now() + TimeDelta::hours(1)).to_rfc3339();
    let ask = |protected: bool| json!({"match": {"workflow": ["pay"]}, "until": until, "reason": "bank holiday", "by": "asha", "protected": protected});
    let (status, refused) = w.post("/silences", ask(false)).await;
    assert_eq!(status, 400);
    assert!(refused["error"].as_str().is_some_and(|e| e.contains("protected")), "{refused}");
    let (status, made) = w.post("/silences", ask(true)).await;
    assert_eq!((status, &made["id"], &made["state"]), (201, &json!("S-1"), &json!("active")));
    assert_eq!(w.shared.live.load().policy.silences.len(), 1);
    let ended = w.send(Method::DELETE, "/api/v1/silences/S-1", "", &[]).await;
    assert_eq!(ended.status(), 200);
    assert!(w.shared.live.load().policy.silences.is_empty());
    assert_eq!(w.get("/silences").await["items"][0]["state"], "expired");
}

#[tokio::test]
async fn a_receiver_is_tested_by_a_message_that_really_goes_out() {
    let w = world().await;
    let store = w.shared.store.clone();
    let wake = w.shared.outbox_wake.clone();
    // Plays delivery: takes what waits and says that it arrived.
    let delivery = async {
        wake.notified().await;
        let (now, receiver) = (clock::now(), ReceiverName::from("oncall"));
        let due = queue::next_due(store.reader(), &receiver, queue::Admit::All, now).await.expect("the outbox");
        let lease = queue::Lease { owner: "test".to_owned(), until: now + TimeDelta::minutes(1) };
        let claimed = queue::claim(&store, &[due.expect("an entry").0], &lease).await.expect("a claim");
        let mut tx = store.begin().await.expect("a transaction");
        queue::settle(&mut tx, &claimed[0], &Settlement::Sent { note: None }, &[], now).await.expect("a settlement");
        tx.commit().await.expect("a commit");
    };
    let ((status, outcome), ()) = tokio::join!(w.post("/receivers/oncall/test", json!({})), delivery);
    assert_eq!((status, &outcome["state"], &outcome["attempts"]), (200, &json!("sent"), &json!(1)));
}

#[tokio::test]
async fn a_person_sends_a_given_up_message_again_and_only_such_a_one() {
    let w = world().await;
    let id = w.incident().await;
    w.post(&format!("/incidents/{id}/resolve"), json!({"by": "asha"})).await;
    let entry = w.get("/outbox").await["items"][0]["id"].as_str().expect("an id").to_owned();
    let (status, refused) = w.post(&format!("/outbox/{entry}/redrive"), json!({})).await;
    assert!(status == 409 && refused["error"].as_str().is_some_and(|e| e.contains("is pending")), "{refused}");
    let mut tx = w.shared.store.begin().await.expect("a transaction");
    let dead = Settlement::Dead { reason: DeadReason::Refused, why: "no".to_owned() };
    let entry_id = EntryId(entry.parse().expect("a row"));
    queue::settle_unclaimed(&mut tx, entry_id, &dead, clock::now()).await.expect("a settlement");
    tx.commit().await.expect("a commit");
    let (status, again) = w.post(&format!("/outbox/{entry}/redrive"), json!({})).await;
    assert_eq!((status, &again["state"]), (200, &json!("pending")));
    assert_eq!(w.post("/outbox/99/redrive", json!({})).await.0, 404);
    // To a receiver that config does not know it would only be given up again.
    let known = queue::find(w.shared.store.reader(), entry_id).await.expect("the outbox").expect("the entry").new;
    let mut tx = w.shared.store.begin().await.expect("a transaction");
    sqlx::query(
        "INSERT INTO digests (id, digest, receiver, window_start, window_end, due_at, composed_at, state, late, counts, view) \
         VALUES (1, 'daily', 'gone', 0, 1, 1, 1, 'enqueued', 0, '{}', '{}')",
    )
    .execute(&mut *tx)
    .await
    .expect("a digest");
    let known = NewEntry { receiver: "gone".into(), digest_id: Some(1), ..known };
    let gone = queue::enqueue(&mut tx, &known).await.expect("an entry");
    queue::settle_unclaimed(&mut tx, gone, &dead, clock::now()).await.expect("a settlement");
    tx.commit().await.expect("a commit");
    for path in [format!("/outbox/{}/redrive", gone.0), "/digests/1/resend".to_owned()] {
        let (status, refused) = w.post(&path, json!({})).await;
        let says_why = refused["error"].as_str().is_some_and(|e| e.contains("no receiver \"gone\""));
        assert!(status == 409 && says_why, "{path}: {refused}");
    }
}

#[tokio::test]
async fn a_page_of_a_foreign_name_that_points_here_learns_nothing() {
    let w = world().await;
    let status = async |path: &str, host: &str| w.send(Method::GET, path, "", &[("host", host)]).await.status();
    assert_eq!(status("/api/v1/incidents", "evil.example:8420").await, 403);
    assert_eq!(status("/metrics", "evil.example").await, 403);
    assert_eq!(status("/api/v1/incidents", "matins.example.com").await, 200);
    assert_eq!(status("/healthz", "evil.example").await, 200);
}

#[tokio::test]
async fn a_request_that_takes_too_long_is_answered() {
    // Another test may have chosen it already.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let slow = Router::new()
        .route("/", get(std::future::pending::<()>))
        .layer(from_fn_with_state(Duration::from_millis(1), in_time));
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let address = listener.local_addr().expect("an address");
    let server = tokio::spawn(async move { axum::serve(listener, slow).await });
    let client = reqwest::Client::builder().no_proxy().build().expect("a client");
    let answer = client.get(format!("http://{address}/")).send().await.expect("an answer");
    server.abort();
    assert_eq!(answer.status(), 503);
    assert!(answer.text().await.expect("a body").contains("not over after"));
}

#[tokio::test]
async fn tokens_are_asked_for_when_config_has_some() {
    let w = world_with("[[web.auth.tokens]]\nname = \"look\"\ntoken = \"look-secret-of-20-chars\"\nrole = \"read\"\n")
        .await;
    let with =
        async |method, path: &str, token: &str| w.send(method, path, "", &[("authorization", token)]).await.status();
    assert_eq!(w.send(Method::GET, "/api/v1/stats", "", &[]).await.status(), 401);
    assert_eq!(with(Method::GET, "/api/v1/stats", "Bearer look-secret-of-20-chars").await, 200);
    assert_eq!(with(Method::POST, "/api/v1/reload", "Bearer look-secret-of-20-chars").await, 403);
    assert_eq!(w.send(Method::GET, "/healthz", "", &[]).await.status(), 200);
}

#[tokio::test]
async fn the_api_describes_every_address_that_it_has() {
    let w = world().await;
    let document = w.get("/openapi.json").await;
    assert!(document["openapi"].as_str().is_some_and(|v| v.starts_with("3.1")), "{}", document["openapi"]);
    let paths: Vec<&str> = document["paths"].as_object().expect("paths").keys().map(String::as_str).collect();
    insta::assert_snapshot!(paths.join("\n"));
    for path in paths {
        let asked = path.replace("{id}", "1").replace("{name}", "x");
        let answer = w.send(Method::PUT, &asked, "", &[]).await;
        assert_eq!(answer.status(), 405, "{path} is described but not routed");
    }
}
