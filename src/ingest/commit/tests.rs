//! What a batch comes to, on a real database in memory.

use super::*;
use crate::config::RedactSettings;
use crate::incident::Incident;
use crate::ingest::{DecodeOutcome, Inbound, Reader};
use crate::matcher::{Glob, MatchKey, Matcher};
use crate::name::{DigestName, ReceiverName, RouteName};
use crate::outbox::{MessageKind, NewEntry};
use crate::render::Content;
use crate::route::{GroupKey, Route};
use crate::store::incidents;
use crate::store::{ledger, letters};
use crate::workflow::{Domain, Workflow, Workflows};
use chrono::{DurationRound as _, TimeDelta};
use proptest::prelude::*;
use serde_json::{Value, json};
use std::time::Duration;

struct PlainPager;

impl Pager for PlainPager {
    fn page(&self, incident: &Incident, now: DateTime<Utc>) -> Vec<NewEntry> {
        vec![NewEntry {
            number: incident.told.page_number,
            kind: MessageKind::Page,
            receiver: ReceiverName::new("oncall"),
            address: None,
            workflow: None,
            incident_id: Some(incident.id.0),
            digest_id: None,
            template: "page".to_owned(),
            view: Value::Null,
            content: Content::Text(incident.event_count().to_string()),
            fallback_of: None,
            due_at: now,
            created_at: now,
        }]
    }
}

fn matcher(key: MatchKey, globs: &[&str]) -> Matcher {
    Matcher::new([(key, globs.iter().map(|g| Glob::new(*g)).collect())].into())
}

fn route(name: &str, matcher: Matcher, page: &[&str]) -> Route {
    Route {
        name: RouteName::new(name),
        matcher,
        page: page.iter().map(|r| ReceiverName::new(*r)).collect(),
        digest: [(DigestName::new("daily"), vec![ReceiverName::new("ops")])].into(),
        group_by: vec![GroupKey::Match(MatchKey::Workflow), GroupKey::Match(MatchKey::Class)],
        remind_every: None,
        resolve_after: Duration::from_secs(900),
        growth_every: Duration::from_secs(300),
        escalate: Vec::new(),
        continues: true,
    }
}

fn policy() -> Policy {
    let workflow = |name: &str, domain| Workflow {
        name: Glob::new(name),
        domain,
        owner: None,
        runbook: None,
        slo: None,
        every: None,
        grace: Duration::ZERO,
        item_noun: None,
        expected_per_day: None,
        labels: BTreeMap::new(),
    };
    Policy {
        config_version: "v".to_owned(),
        workflows: Workflows::new(vec![workflow("pay", Domain::Money), workflow("payout", Domain::Money)]),
        routes: vec![
            route("protected", matcher(MatchKey::Domain, &["money"]), &["oncall"]),
            route("everything", Matcher::default(), &["oncall"]),
        ],
        silences: Vec::new(),
    }
}

fn at(seconds: i64) -> DateTime<Utc> {
    DateTime::from_timestamp(1_796_000_000 + seconds, 0).unwrap()
}

struct World {
    store: Store,
    intake: Intake,
    reader: Reader,
    sequence: u64,
}

impl World {
    async fn new() -> Self {
        let store = Store::open("sqlite::memory:").await.unwrap();
        let intake = Intake::new(store.clone(), Keeping::All);
        Self { store, intake, reader: Reader::new(&RedactSettings::default(), &[], &[7; 32]), sequence: 0 }
    }

    fn item(&mut self, body: &Value) -> Item {
        self.sequence += 1;
        let payload = body.to_string();
        let inbound = Inbound {
            subject: "failures.x",
            headers: &[],
            payload: payload.as_bytes(),
            stream: "FAILURES",
            sequence: self.sequence,
            received_at: at(self.sequence as i64),
        };
        match self.reader.read(inbound) {
            DecodeOutcome::Event(decoded) => Item::Event(decoded, Redelivered::No),
            DecodeOutcome::Quarantine { reason } => panic!("{reason}"),
        }
    }

    /// Gives how many events were new, and the duplicates.
    async fn commit(&mut self, bodies: &[Value]) -> (usize, Vec<Duplicate>) {
        let batch: Vec<Item> = bodies.iter().map(|b| self.item(b)).collect();
        let progress = Progress {
            stream: "FAILURES".to_owned(),
            stream_made_at: at(0),
            sequence: self.sequence as i64,
            arrival_at: at(self.sequence as i64),
            lag: 0,
        };
        let now = at(self.sequence as i64);
        let committed = self.intake.commit(&batch, &progress, &policy(), &PlainPager, now).await.unwrap();
        (committed.events.len(), committed.duplicates)
    }

    async fn number(&self, sql: &'static str) -> i64 {
        let (n,): (Option<i64>,) = sqlx::query_as(sql).fetch_one(self.store.reader()).await.unwrap();
        n.unwrap_or(0)
    }

    async fn incidents(&self) -> Vec<Incident> {
        incidents::list(self.store.reader(), i64::MAX, 100).await.unwrap()
    }
}

fn failure(id: &str, workflow: &str, item: &str) -> Value {
    json!({"id": id, "workflow": workflow, "item": item, "error": {"http_status": 402, "message": "declined"}})
}

fn resolution(id: &str, workflow: &str, item: &str) -> Value {
    json!({"id": id, "type": "resolution", "workflow": workflow, "item": item, "note": "paid", "by": "asha"})
}

const OPEN: &str = "SELECT count(*) FROM dead_letters WHERE resolved_at IS NULL";
const LETTERS: &str = "SELECT count(*) FROM dead_letters";
const PAGES: &str = "SELECT count(*) FROM outbox WHERE kind = 'page'";
const COUNTED: &str = "SELECT sum(event_count) FROM counters";
const TOTAL: &str = "SELECT value FROM totals WHERE name = 'events'";

#[tokio::test]
async fn many_failures_of_one_cause_are_one_incident_and_one_page_that_counts_them() {
    let mut world = World::new().await;
    let bodies: Vec<Value> = (0..500).map(|n| failure(&format!("e{n}"), "pay", &format!("inv-{n}"))).collect();
    world.commit(&bodies).await;
    world.commit(&[failure("late", "pay", "inv-late")]).await;
    let incidents = world.incidents().await;
    assert_eq!(incidents.len(), 1);
    assert_eq!((incidents[0].event_count(), incidents[0].item_count()), (501, 501));
    assert_eq!(incidents[0].told.events, 500);
    assert_eq!(world.number(PAGES).await, 1);
}

#[tokio::test]
async fn a_standard_workflow_pages_nobody_whatever_its_routes_say() {
    let mut world = World::new().await;
    world.commit(&[failure("a", "newsletter", "n1")]).await;
    assert_eq!((world.number(PAGES).await, world.number(OPEN).await), (0, 1));
    assert!(world.incidents().await.is_empty());
}

#[tokio::test]
async fn an_id_seen_before_is_counted_as_duplicate_and_nothing_else() {
    let mut world = World::new().await;
    let (fresh_count, duplicates) = world.commit(&[failure("a", "pay", "i1"), failure("a", "pay", "i1")]).await;
    assert_eq!((fresh_count, duplicates.len()), (1, 1));
    assert!(!duplicates[0].differs);
    let (fresh_count, duplicates) = world.commit(&[failure("a", "payout", "i2")]).await;
    assert_eq!((fresh_count, duplicates.len()), (0, 1));
    assert!(duplicates[0].differs);
    assert_eq!((world.number(TOTAL).await, world.number(COUNTED).await, world.number(LETTERS).await), (1, 1, 1));
}

#[tokio::test]
async fn failure_resolution_and_failure_in_one_batch_keep_their_order() {
    let mut world = World::new().await;
    world
        .commit(&[
            failure("1", "report", "x"),
            resolution("2", "report", "x"),
            failure("3", "report", "x"),
            failure("4", "report", "y"),
            resolution("5", "report", "y"),
            resolution("6", "report", "never-failed"),
        ])
        .await;
    assert_eq!((world.number(LETTERS).await, world.number(OPEN).await), (3, 1));
}

#[tokio::test]
async fn the_same_item_again_repeats_its_letter() {
    let mut world = World::new().await;
    world.commit(&[failure("1", "report", "x"), failure("2", "report", "x")]).await;
    world.commit(&[failure("3", "report", "x")]).await;
    assert_eq!((world.number(LETTERS).await, world.number("SELECT times FROM dead_letters").await), (1, 3));
}

#[tokio::test]
async fn workflows_of_one_downstream_share_one_page() {
    let mut world = World::new().await;
    let mut bodies = vec![failure("1", "pay", "a"), failure("2", "payout", "b")];
    for body in &mut bodies {
        body["downstream"] = json!("razorpay");
    }
    world.commit(&bodies[..1]).await;
    world.commit(&bodies[1..]).await;
    let incidents = world.incidents().await;
    assert_eq!((incidents.len(), incidents[0].hits.len()), (1, 2));
    assert_eq!(world.number(PAGES).await, 1);
}

#[tokio::test]
async fn a_cause_that_comes_back_after_it_was_resolved_is_marked() {
    let mut world = World::new().await;
    world.commit(&[failure("1", "report", "x")]).await;
    world.commit(&[resolution("2", "report", "x")]).await;
    assert_eq!(world.number("SELECT count(*) FROM causes WHERE resolved_at IS NOT NULL").await, 1);
    world.commit(&[failure("3", "report", "z")]).await;
    assert_eq!(world.number("SELECT count(*) FROM causes WHERE regressed_at IS NOT NULL").await, 1);
}

#[tokio::test]
async fn cumulative_outcomes_survive_loss_repetition_and_reordering() {
    let mut world = World::new().await;
    let report = |id: &str, epoch: &str, ok: u64| json!({"id": id, "type": "outcome", "workflow": "report", "producer": "p", "epoch": epoch, "ok_total": ok, "failed_total": 0});
    world.commit(&[report("1", "a", 10), report("2", "a", 30), report("3", "a", 20), report("4", "b", 5)]).await;
    assert_eq!(world.number("SELECT sum(ok_count) FROM counters").await, 35);
}

#[tokio::test]
async fn late_events_count_when_they_arrive() {
    let mut world = World::new().await;
    let mut late = failure("1", "report", "x");
    late["occurred_at"] = json!((at(0) - TimeDelta::hours(27)).to_rfc3339());
    world.commit(&[late]).await;
    let minute = world.number("SELECT minute FROM counters").await;
    assert_eq!(minute, to_ms(at(1)).div_euclid(MINUTE_MS) * MINUTE_MS);
    assert_eq!(world.number("SELECT late_count FROM counters").await, 1);
}

#[tokio::test]
async fn what_is_committed_after_its_digest_was_told_counts_for_the_next() {
    let mut world = World::new().await;
    let told_until = at(600).duration_trunc(TimeDelta::minutes(1)).unwrap();
    let mut tx = world.store.begin().await.unwrap();
    let cover = ledger::Cover { until: told_until, schedule: String::new(), in_force_since: None, left_at: None };
    ledger::begin_cover(&mut tx, "daily", "ops", &cover).await.unwrap();
    tx.commit().await.unwrap();
    world.commit(&[failure("1", "report", "x")]).await;
    assert_eq!(world.number("SELECT minute FROM counters").await, to_ms(told_until));
}

#[tokio::test]
async fn a_stored_incident_that_cannot_be_read_stops_nothing() {
    let mut world = World::new().await;
    world.commit(&[failure("1", "pay", "a")]).await;
    let mut tx = world.store.begin().await.unwrap();
    sqlx::query("UPDATE incidents SET body = '{}'").execute(&mut *tx).await.unwrap();
    tx.commit().await.unwrap();
    world.commit(&[failure("2", "pay", "b")]).await;
    assert_eq!((world.number(TOTAL).await, world.number(PAGES).await), (2, 2));
}

/// One step of a random history: which id, which item, and whether it resolves.
fn steps() -> impl Strategy<Value = Vec<(u8, u8, bool)>> {
    prop::collection::vec((0..40_u8, 0..6_u8, any::<bool>()), 1..60)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]

    #[test]
    fn any_cut_into_batches_gives_the_same_letters_and_counts(steps in steps(), cuts in prop::collection::vec(1..9_usize, 60)) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let bodies: Vec<Value> = steps
            .iter()
            .map(|(id, item, resolves)| {
                let (id, item) = (id.to_string(), item.to_string());
                if *resolves { resolution(&id, "report", &item) } else { failure(&id, "report", &item) }
            })
            .collect();
        // A model in a few lines: ids once, one open letter per item.
        let (mut seen, mut open, mut opened) = (BTreeSet::new(), BTreeSet::new(), 0);
        for (id, item, resolves) in &steps {
            if !seen.insert(*id) {
                continue;
            }
            if *resolves {
                open.remove(item);
            } else if open.insert(*item) {
                opened += 1;
            }
        }
        runtime.block_on(async {
            let mut world = World::new().await;
            let (mut rest, mut cuts) = (&bodies[..], cuts.iter());
            while !rest.is_empty() {
                let (batch, after) = rest.split_at((*cuts.next().unwrap()).min(rest.len()));
                world.commit(batch).await;
                rest = after;
            }
            assert_eq!(world.number(TOTAL).await, seen.len() as i64);
            assert_eq!(world.number(COUNTED).await, seen.len() as i64);
            assert_eq!(world.number(OPEN).await, open.len() as i64);
            assert_eq!(world.number(LETTERS).await, opened);
        });
    }
}

#[tokio::test]
async fn an_item_that_fails_of_two_causes_is_of_both_incidents_until_it_is_resolved() {
    let mut world = World::new().await;
    let bad = json!({"id": "e2", "workflow": "pay", "item": "a", "error": {"http_status": 422, "message": "bad"}});
    world.commit(&[failure("e1", "pay", "a"), bad, failure("e3", "pay", "a")]).await;
    let incidents = world.incidents().await;
    assert_eq!(incidents.iter().map(Incident::item_count).collect::<Vec<_>>(), [1, 1]);
    let open = async |store: &Store| {
        let mut tx = store.begin().await.unwrap();
        let first = letters::open_of_incident(&mut tx, 1).await.unwrap();
        (first, letters::open_of_incident(&mut tx, 2).await.unwrap())
    };
    assert_eq!(open(&world.store).await, (1, 1));
    world.commit(&[resolution("r1", "pay", "a")]).await;
    assert_eq!(open(&world.store).await, (0, 0));
}
