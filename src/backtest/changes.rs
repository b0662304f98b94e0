//! Tests: config changes while windows are open. What came in since the last window is told once, by whoever takes the place of those
//! that config no longer names, or else the operator is told of it.

use super::*;
use crate::app;
use crate::config;
use crate::digest::DigestCounts;
use crate::explain::explain_stored;
use crate::ingest::commit::Redelivered;
use crate::ingest::{DecodeOutcome, Inbound};
use crate::outbox::policy::{DeadReason, Settlement};
use crate::outbox::{EntryId, queue};
use crate::render::Parts;
use crate::store::ledger::{self, DigestRow};
use chrono::TimeDelta;
use proptest::prelude::*;
use serde_json::json;
use std::collections::BTreeMap;

const START: &str = "2026-03-02T08:30:00Z";

/// Which names a config uses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Names {
    digest: &'static str,
    receivers: &'static [&'static str],
    owner: Option<&'static str>,
    /// A second workflow has an owner of its own.
    has_second: bool,
}

const NAMES: Names = Names { digest: "daily", receivers: &["ops"], owner: Some("asha@example.com"), has_second: true };

impl Names {
    fn live(self) -> Arc<Live> {
        let Self { digest, receivers, owner, has_second } = self;
        let owner = owner.map(|owner| format!("owner = \"{owner}\"")).unwrap_or_default();
        let second = if has_second { "[[workflows]]\nname = \"second\"\nowner = \"dan@example.com\"" } else { "" };
        // What no route names is gone.
        let named = receivers.iter().filter(|name| **name != "owner").chain(&["operator"]);
        let files: String = named.map(|name| format!("[receivers.{name}]\nkind = \"file\"\ndir = \"out\"\n")).collect();
        let text = format!(
            "[smtp]\nhost = \"127.0.0.1\"\nfrom = \"Matins <matins@example.com>\"\n{files}\
             [receivers.owner]\nkind = \"email\"\nto = \"owner\"\n[operator]\nto = [\"operator\"]\n\
             [digests.{digest}]\ncron = \"0 * * * *\"\ntimezone = \"UTC\"\n\
             [[workflows]]\nname = \"report\"\n{owner}\n{second}\n\
             [[routes]]\nname = \"everything\"\nmatch = {{}}\ndigest.{digest} = {receivers:?}\n"
        );
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("matins.toml");
        std::fs::write(&path, text).unwrap();
        let loaded = config::load(&path, &|_| None, START.parse().unwrap()).unwrap_or_else(|e| panic!("{e}"));
        Arc::new(app::compile(loaded, Vec::new(), &KEYS, Parts::All).0)
    }
}

/// A service whose config changes.
struct World {
    store: Store,
    intake: Intake,
    ticker: Ticker,
    live: Arc<Live>,
    now: DateTime<Utc>,
    sequence: u64,
}

impl World {
    async fn new(names: Names) -> Self {
        let store = Store::open("sqlite::memory:").await.unwrap();
        let intake = Intake::new(store.clone(), Keeping::All);
        let now = START.parse().unwrap();
        let mut world = Self { store, intake, ticker: Ticker::default(), live: names.live(), now, sequence: 0 };
        world.tick().await;
        world
    }

    async fn tick(&mut self) {
        let ticked = self.ticker.tick(&self.store, &self.live, &mut AllRead, self.now).await;
        assert!(ticked.failures.is_empty(), "{:?}", ticked.failures);
    }

    async fn reload(&mut self, names: Names) {
        self.live = names.live();
        self.tick().await;
    }

    /// So much later, and one look.
    async fn wait(&mut self, minutes: i64) {
        self.now += TimeDelta::minutes(minutes);
        self.tick().await;
    }

    async fn fail(&mut self, workflow: &str, count: u64) {
        let live = self.live.clone();
        self.fail_by(&live, workflow, count).await;
    }

    /// Failures that another config than that of now decides about.
    async fn fail_by(&mut self, live: &Live, workflow: &str, count: u64) {
        let batch: Vec<Item> = (0..count)
            .map(|_| {
                self.sequence += 1;
                let event = json!({"id": self.sequence.to_string(), "workflow": workflow, "error": {"message": "no"}});
                let payload = event.to_string();
                let inbound = Inbound {
                    subject: "failures.x",
                    headers: &[],
                    payload: payload.as_bytes(),
                    stream: "S",
                    sequence: self.sequence,
                    received_at: self.now,
                };
                let DecodeOutcome::Event(decoded) = live.reader.read(inbound) else { panic!("{payload}") };
                Item::Event(decoded, Redelivered::No)
            })
            .collect();
        let progress = Progress {
            stream: "S".to_owned(),
            stream_made_at: DateTime::UNIX_EPOCH,
            sequence: self.sequence.cast_signed(),
            arrival_at: self.now,
            lag: 0,
        };
        self.intake.commit(&batch, &progress, &live.policy, &*live.announcer, self.now).await.unwrap();
    }

    /// Events told by windows of receivers that start so, over all digests.
    async fn told(&self, receivers: &str) -> u64 {
        let rows = self.rows().await;
        let of = rows.iter().filter(|row| row.receiver.starts_with(receivers));
        of.map(|row| serde_json::from_str::<DigestCounts>(&row.counts).unwrap().received).sum()
    }

    async fn rows(&self) -> Vec<DigestRow> {
        ledger::list(self.store.reader(), i64::MAX, i64::MAX).await.unwrap()
    }

    /// What the operator was told.
    async fn words(&self) -> Vec<String> {
        let sql = "SELECT view FROM outbox WHERE kind = 'operator' ORDER BY id";
        let rows: Vec<(String,)> = sqlx::query_as(sql).fetch_all(self.store.reader()).await.unwrap();
        rows.into_iter().map(|(view,)| view).collect()
    }
}

#[tokio::test]
async fn a_receiver_with_another_name_tells_what_the_old_name_had_not_and_keeps_its_dead_letters() {
    let mut world = World::new(NAMES).await;
    world.fail("report", 3).await;
    world.wait(60).await;
    world.fail("report", 2).await;
    world.reload(Names { receivers: &["ops-2"], ..NAMES }).await;
    world.fail("report", 4).await;
    world.wait(60).await;
    assert_eq!((world.told("ops").await, world.told("ops-2").await), (9, 6));
    let (first, second) = (&world.rows().await[1], &world.rows().await[0]);
    assert_eq!(first.window_end, second.window_start);
    let view: serde_json::Value =
        serde_json::from_str(&ledger::get(world.store.reader(), second.id).await.unwrap().unwrap().view).unwrap();
    assert!(view.to_string().contains("9 open"), "{view}");
    let explained = explain_stored(&world.store, &world.live, "4", None, Arc::default()).await.unwrap().unwrap();
    let explained = serde_json::to_string(&explained).unwrap();
    assert!(explained.contains("daily digest to ops-2 told it"), "{explained}");
    assert_eq!(world.words().await, Vec::<String>::new());
}

#[tokio::test]
async fn a_digest_on_its_way_to_a_name_that_is_gone_goes_to_the_new_one() {
    let mut world = World::new(NAMES).await;
    world.fail("report", 3).await;
    world.wait(60).await;
    world.fail("report", 2).await;
    world.wait(60).await;
    let states = async |world: &World| {
        let sql = "SELECT receiver, state FROM outbox WHERE kind = 'digest' ORDER BY id";
        let rows: Vec<(String, String)> = sqlx::query_as(sql).fetch_all(world.store.reader()).await.unwrap();
        rows
    };
    // Delivery may be the first to see that config no longer knows the name.
    let gone = Settlement::Dead { reason: DeadReason::UnknownReceiver, why: "no such receiver".to_owned() };
    let mut tx = world.store.begin().await.unwrap();
    queue::settle_unclaimed(&mut tx, EntryId(1), &gone, world.now).await.unwrap();
    tx.commit().await.unwrap();
    let waiting = |receiver: &str, state: &str| (receiver.to_owned(), state.to_owned());
    assert_eq!(states(&world).await, [waiting("ops", "dead"), waiting("ops", "pending")]);
    world.reload(Names { receivers: &["ops-2"], ..NAMES }).await;
    assert_eq!(states(&world).await, [waiting("ops-2", "pending"), waiting("ops-2", "pending")]);
}

#[tokio::test]
async fn a_digest_with_another_name_tells_what_the_old_name_had_not() {
    let mut world = World::new(Names { receivers: &["ops", "team"], ..NAMES }).await;
    world.fail("report", 2).await;
    world.reload(Names { digest: "morning", receivers: &["ops", "ops-2"], ..NAMES }).await;
    world.wait(60).await;
    assert_eq!((world.told("ops").await, world.told("ops-2").await, world.told("team").await), (4, 2, 0));
    assert!(world.rows().await.iter().all(|row| row.digest == "morning"));
    assert_eq!(world.words().await, Vec::<String>::new());
}

#[tokio::test]
async fn a_workflow_takes_what_was_not_told_to_its_new_owner() {
    let names = Names { receivers: &["ops", "owner"], ..NAMES };
    let mut world = World::new(names).await;
    world.fail("report", 1).await;
    world.wait(60).await;
    world.fail("report", 2).await;
    world.fail("second", 5).await;
    world.reload(Names { owner: Some("ben@example.com"), ..names }).await;
    world.wait(60).await;
    assert_eq!((world.told("owner:asha").await, world.told("owner:ben").await), (1, 2));
    // To an owner who has workflows already, and back.
    world.fail("report", 4).await;
    world.reload(Names { owner: Some("dan@example.com"), ..names }).await;
    world.wait(60).await;
    assert_eq!((world.told("owner:ben").await, world.told("owner:dan").await), (2, 9));
    world.reload(names).await;
    world.fail("report", 8).await;
    world.wait(60).await;
    assert_eq!((world.told("owner:asha").await, world.told("owner").await), (9, 20));
    assert_eq!(world.words().await, Vec::<String>::new());
}

#[tokio::test]
async fn what_a_workflow_without_an_owner_by_now_left_untold_is_told_to_the_operator() {
    let names = Names { receivers: &["ops", "owner"], ..NAMES };
    let mut world = World::new(names).await;
    world.fail("report", 2).await;
    world.fail("second", 5).await;
    world.reload(Names { owner: None, ..names }).await;
    world.wait(60).await;
    assert_eq!(world.told("owner").await, 5);
    let words = world.words().await;
    assert!(words.len() == 1 && words[0].contains("2 events since"), "{words:?}");
}

#[tokio::test]
async fn the_operator_is_told_once_what_a_receiver_without_heir_never_told_and_it_goes_on_when_named_again() {
    let both = Names { receivers: &["ops", "team"], ..NAMES };
    let mut world = World::new(both).await;
    world.fail("report", 3).await;
    world.reload(NAMES).await;
    world.fail("report", 4).await;
    world.wait(60).await;
    world.ticker = Ticker::default();
    world.wait(60).await;
    let words = world.words().await;
    assert!(
        words.len() == 1 && words[0].contains("no longer goes to team") && words[0].contains("3 events"),
        "{words:?}"
    );
    assert_eq!((world.told("ops").await, world.told("team").await), (7, 0));
    world.reload(both).await;
    world.wait(60).await;
    assert_eq!((world.told("ops").await, world.told("team").await), (7, 3));
    world.reload(NAMES).await;
    assert_eq!(world.words().await.len(), 1, "nothing is untold the second time");
}

#[tokio::test]
async fn what_the_config_before_still_decided_is_told_by_the_heir() {
    let mut world = World::new(NAMES).await;
    let before = world.live.clone();
    world.reload(Names { receivers: &["ops-2"], ..NAMES }).await;
    world.fail_by(&before, "report", 2).await;
    world.now += TimeDelta::seconds(1);
    world.tick().await;
    world.wait(60).await;
    assert_eq!(world.told("ops-2").await, 2);
}

/// Names with no doubt who takes whose place, after some of them changed.
fn names() -> impl Strategy<Value = Names> {
    let digest = prop::sample::select(vec!["daily", "morning", "evening"]);
    let receivers = prop::sample::select(vec![&["ops", "owner"], &["ops-2", "owner"], &["team", "owner"]]);
    let owner = prop::sample::select(vec!["asha@example.com", "ben@example.com", "dan@example.com"]);
    (digest, receivers, owner, any::<bool>()).prop_map(|(digest, receivers, owner, has_second)| Names {
        digest,
        receivers,
        owner: Some(owner),
        has_second,
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, max_shrink_iters: 60, ..ProptestConfig::default() })]

    #[test]
    fn whatever_names_change_each_event_is_told_once_to_everybody_and_once_to_an_owner(
        steps in prop::collection::vec((names(), 0..4_u64, 0..90_i64, any::<bool>()), 1..8),
    ) {
        tokio::runtime::Runtime::new().unwrap().block_on(async {
            let mut world = World::new(Names { receivers: &["ops", "owner"], ..NAMES }).await;
            let mut count = 0;
            for (names, failures, minutes, restarts) in &steps {
                world.fail("report", *failures).await;
                count += failures;
                if *restarts {
                    world.ticker = Ticker::default();
                }
                world.reload(*names).await;
                world.wait(*minutes).await;
            }
            world.wait(60).await;
            let owners = world.told("owner").await;
            let all: u64 = world.told("").await;
            assert_eq!((all - owners, owners), (count, count));
            let mut ends = BTreeMap::new();
            for row in world.rows().await.iter().rev().filter(|row| !row.receiver.starts_with("owner")) {
                if let Some(end) = ends.insert((), row.window_end) {
                    assert_eq!(end, row.window_start, "windows of everybody join, whatever their name");
                }
            }
            assert_eq!(world.words().await, Vec::<String>::new());
        });
    }
}
