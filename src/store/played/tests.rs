//! Tests: what is kept in memory gives what the statements give. Intake and tick run on both, and every message and every composed window
//! must be the same.

use crate::app::tick::Ticker;
use crate::backtest::{AllRead, KEYS};
use crate::ingest::commit::{Intake, Item, Keeping, Progress, Redelivered};
use crate::ingest::{DecodeOutcome, Inbound};
use crate::live::Live;
use crate::outbox::{EntryId, NewEntry, queue};
use crate::render::Parts;
use crate::store::intake::QuarantineRow;
use crate::store::ledger::DigestRow;
use crate::store::{Store, ledger};
use crate::{app, config};
use chrono::{DateTime, TimeDelta, Utc};
use proptest::prelude::*;
use serde_json::{Value, json};
use std::sync::Arc;

const START: &str = "2026-12-01T09:30:00Z";

const CONFIG: &str = r#"
[smtp]
host = "127.0.0.1"
from = "Matins <matins@example.com>"
[receivers.oncall]
kind = "file"
dir = "out"
fallback = "ops"
[receivers.ops]
kind = "file"
dir = "out"
[receivers.owner]
kind = "email"
to = "owner"
[digests.quick]
cron = "*/20 * * * *"
[digests.daily]
cron = "30 */3 * * *"
[digests.weekly]
cron = "0 */8 * * *"
[[workflows]]
name = "pay"
domain = "money"
owner = "Asha <asha@example.com>"
[[workflows]]
name = "payout"
domain = "money"
[[workflows]]
name = "report"
owner = "Ben <ben@example.com>"
[[silences]]
match = { workflow = ["quiet"] }
until = "2026-12-01T13:00:00Z"
reason = "move"
by = "Ben"
[[routes]]
name = "protected"
match = { domain = ["money"] }
page = ["oncall"]
remind_every = "40m"
resolve_after = "3m"
growth_every = "1m"
escalate = [{ after = "50m", to = ["ops"] }]
continue = true
[[routes]]
name = "everything"
match = {}
digest.quick = ["ops"]
digest.daily = ["ops", "owner"]
digest.weekly = ["ops"]
"#;

/// Some events that are committed together, and the milliseconds that pass before them.
type Step = (u32, Vec<Value>);

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let workflow = || prop::sample::select(vec!["pay", "payout", "report", "quiet", "stray"]);
    let failure = (workflow(), 0..6_u8, 0..2_u8, prop::option::weighted(0.3, 0..2_u8), 0..3_u8).prop_map(
        |(workflow, item, error, downstream, redriven)| {
            json!({ "workflow": workflow, "step": "send", "item": format!("i{item}"), "downstream": downstream.map(|d| format!("d{d}")),
                "attempt": 1 + redriven, "max_attempts": 3, "disposition": "dead_lettered", "redrive_count": redriven,
                "payload": { "row": item }, "links": { "run": "https://n8n.example.com/1" },
                "error": { "type": format!("E{error}"), "http_status": 402 + u16::from(error) * 20, "message": format!("row {item} is bad") } })
        },
    );
    let retried = (workflow(), 0..4_u8).prop_map(|(workflow, error)| {
        json!({ "workflow": workflow, "step": "call", "disposition": "retrying",
            "error": { "type": format!("T{error}"), "http_status": 503, "message": "timeout" } })
    });
    let recovery = (workflow(), prop::option::of(0..6_u8), prop::option::of(1..9_000_u32)).prop_map(
        |(workflow, item, took)| {
            json!({ "type": "recovery", "workflow": workflow, "item": item.map(|i| format!("i{i}")), "strategy": "retry", "took_ms": took })
        },
    );
    let resolution = (workflow(), 0..6_u8, prop::option::of(1..30_u8)).prop_map(|(workflow, item, row)| {
        json!({ "type": "resolution", "workflow": workflow, "item": row.is_none().then(|| format!("i{item}")),
            "dead_letter_id": row.map(|r| r.to_string()), "note": "done", "by": "asha" })
    });
    let outcome = (workflow(), 0..50_u32, 0..3_u32).prop_map(
        |(workflow, ok, failed)| json!({ "type": "outcome", "workflow": workflow, "ok": ok, "failed": failed }),
    );
    let totals = (workflow(), 0..500_u32, 0..9_u32).prop_map(|(workflow, ok, failed)| {
        json!({ "type": "outcome", "workflow": workflow, "producer": "p1", "epoch": "e1", "ok_total": ok, "failed_total": failed })
    });
    let unreadable = Just(json!({ "type": "no such type" }));
    let event = prop_oneof![
        8 => failure, 3 => retried, 2 => recovery, 4 => resolution, 3 => outcome, 1 => totals, 1 => unreadable,
    ];
    // Some happened long before they arrive.
    let aged = (event, prop::option::weighted(0.1, 1_u32..20_000)).prop_map(|(mut event, age)| {
        event["age_seconds"] = json!(age);
        event
    });
    let step = (0_u32..900_000, prop::collection::vec(aged, 1..4));
    // Some come at the very instants at which windows end.
    (prop::sample::select(vec![1, 20_000]), prop::collection::vec(step, 1..70))
        .prop_map(|(grid, steps)| steps.into_iter().map(|(wait, events)| (wait / grid * grid, events)).collect())
}

fn item(live: &Live, n: u64, event: &Value, received_at: DateTime<Utc>) -> Item {
    let mut event = event.clone();
    let age = event["age_seconds"].as_i64().unwrap_or(0);
    event["id"] = json!(format!("e{n}"));
    event["occurred_at"] = json!((received_at - TimeDelta::seconds(age)).to_rfc3339());
    if let Value::Object(fields) = &mut event {
        fields.retain(|name, value| !value.is_null() && name != "age_seconds");
    }
    let payload = event.to_string();
    let inbound = Inbound {
        subject: "failures.x",
        headers: &[],
        payload: payload.as_bytes(),
        stream: "S",
        sequence: n,
        received_at,
    };
    match live.reader.read(inbound) {
        DecodeOutcome::Event(decoded) => Item::Event(decoded, Redelivered::No),
        DecodeOutcome::Quarantine { reason } => Item::Unreadable(QuarantineRow {
            stream: "S".to_owned(),
            sequence: n.cast_signed(),
            subject: format!("failures.{}", n % 3),
            headers: String::new(),
            reason: reason.as_str(),
            explanation: reason.to_string(),
            received_at,
            raw: Vec::new(),
        }),
    }
}

/// What came of a run.
#[derive(Debug, Default, PartialEq)]
struct Outcome {
    messages: Vec<NewEntry>,
    digests: Vec<DigestRow>,
}

async fn run(store: &Store, live: &Arc<Live>, steps: &[Step]) {
    let start: DateTime<Utc> = START.parse().unwrap();
    let mut intake = Intake::new(store.clone(), Keeping::Consequences);
    let (mut ticker, mut now, mut sequence) = (Ticker::played(live, start), start, 0);
    for (wait, events) in steps {
        now += TimeDelta::milliseconds((*wait).into());
        let mut numbered = |event| {
            sequence += 1;
            item(live, sequence, event, now)
        };
        let batch: Vec<Item> = events.iter().map(&mut numbered).collect();
        let progress = Progress {
            stream: "S".to_owned(),
            stream_made_at: DateTime::UNIX_EPOCH,
            sequence: sequence.cast_signed(),
            arrival_at: now,
            lag: 0,
        };
        intake.commit(&batch, &progress, &live.policy, &*live.announcer, now).await.unwrap();
        let ticked = ticker.tick(store, live, &mut AllRead, now).await;
        assert!(ticked.failures.is_empty(), "{:?}", ticked.failures);
    }
}

async fn of_statements(store: &Store) -> Outcome {
    let mut outcome = Outcome::default();
    for id in 1.. {
        let Some(entry) = queue::find(store.reader(), EntryId(id)).await.unwrap() else { break };
        outcome.messages.push(entry.new);
    }
    for id in 1.. {
        let Some(row) = ledger::get(store.reader(), id).await.unwrap() else { break };
        outcome.digests.push(row);
    }
    outcome
}

async fn of_memory(store: &Store) -> Outcome {
    let mut tx = store.begin().await.unwrap();
    let ledger = &mut tx.played().unwrap().ledger;
    Outcome { messages: ledger.take_messages(), digests: ledger.take_digests().into_values().collect() }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 20, max_shrink_iters: 200, ..ProptestConfig::default() })]

    #[test]
    fn memory_gives_what_the_statements_give(steps in steps()) {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("matins.toml");
        std::fs::write(&path, CONFIG).unwrap();
        let loaded = config::load(&path, &|_| None, START.parse().unwrap()).unwrap_or_else(|e| panic!("{e}"));
        let live = Arc::new(app::compile(loaded, Vec::new(), &KEYS, Parts::All).0);
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let (said, remembered) = runtime.block_on(async {
            let (sql, memory) = (Store::open("sqlite::memory:").await.unwrap(), Store::open_to_play().await.unwrap());
            run(&sql, &live, &steps).await;
            run(&memory, &live, &steps).await;
            (of_statements(&sql).await, of_memory(&memory).await)
        });
        prop_assert_eq!(said.messages.len(), remembered.messages.len());
        for (said, remembered) in said.messages.iter().zip(&remembered.messages) {
            prop_assert_eq!(said, remembered);
        }
        prop_assert_eq!(said.digests, remembered.digests);
    }
}
