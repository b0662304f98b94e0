//! Plays small files through the whole of it, with a config as people write one.

use super::against::{Difference, Tally};
use super::*;
use crate::app::symptoms::SymptomDesk;
use crate::event::HeartbeatStatus;
use crate::ingest::commit::Redelivered;
use crate::ingest::{DecodeOutcome, Inbound};
use crate::render::Parts;
use crate::store::{ledger, symptoms};
use crate::symptom::{Signal, What};
use crate::{app, config};
use chrono::TimeDelta;
use proptest::prelude::*;
use serde_json::{Value, json};

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
[calendars.office]
timezone = "UTC"
hours = { mon-fri = ["09:00-17:00"] }
[digests.quick]
cron = "*/7 * * * *"
[digests.daily]
cron = "0 * * * *"
calendar = "office"
[[workflows]]
name = "pay"
domain = "money"
owner = "Asha <asha@example.com>"
[[workflows]]
name = "report"
owner = "Ben <ben@example.com>"
[[routes]]
name = "protected"
match = { domain = ["money"] }
page = ["oncall"]
remind_every = "5m"
resolve_after = "3m"
growth_every = "1m"
escalate = [{ after = "4m", to = ["ops"] }]
continue = true
[[routes]]
name = "nobody"
match = { workflow = ["stray"] }
[[routes]]
name = "everything"
match = {}
digest.quick = ["ops"]
digest.daily = ["ops", "owner"]
"#;

fn at(text: &str) -> DateTime<Utc> {
    text.parse().unwrap()
}

fn live(text: &str) -> Arc<Live> {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("matins.toml");
    std::fs::write(&path, text).unwrap();
    let loaded = config::load(&path, &|_| None, at("2026-12-01T00:00:00Z")).unwrap_or_else(|e| panic!("{e}"));
    Arc::new(app::compile(loaded, Vec::new(), &KEYS, Parts::Words).0)
}

#[derive(Default)]
struct Found {
    lines: Vec<Value>,
    verdicts: Vec<(u32, Verdict)>,
}

impl Sink for Found {
    fn line(&mut self, line: &Line) -> io::Result<()> {
        self.lines.push(serde_json::to_value(line)?);
        Ok(())
    }

    fn event(&mut self, number: u32, verdict: Verdict) {
        self.verdicts.push((number, verdict));
    }

    fn progress(&mut self, _: DateTime<Utc>, _: usize) {}
}

impl Found {
    fn of(&self, kind: &str) -> Vec<&Value> {
        self.lines.iter().filter(|l| l["kind"] == kind).collect()
    }
}

fn file(lines: &[String]) -> tempfile::NamedTempFile {
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), lines.join("\n")).unwrap();
    file
}

fn run(agenda: Option<Agenda>, config: &str, lines: &[String], from: &str, to: &str) -> Found {
    let (live, file) = (live(config), file(lines));
    let span = Span { from: at(from), to: at(to) };
    let mut found = Found::default();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let input = Input::open(file.path(), &live.reader).unwrap();
    let agenda = agenda.unwrap_or_else(|| Agenda::new(&live.policy.silences));
    runtime.block_on(play_by(agenda, &live, &input, span, &mut found)).unwrap();
    found
}

fn failure(n: u32, workflow: &str, when: &str) -> String {
    json!({ "id": format!("e{n}"), "workflow": workflow, "item": format!("i{n}"), "occurred_at": when, "error": { "http_status": 402 } })
        .to_string()
}

#[test]
fn lines_are_read_by_arrival_and_an_unreadable_one_arrives_with_the_line_before() {
    let lines = [
        failure(1, "report", "2026-12-01T10:05:00Z"),
        "{broken".to_owned(),
        String::new(),
        failure(2, "report", "2026-12-01T10:01:00Z").replacen('{', "{\"received_at\":\"2026-12-01T10:02:00Z\",", 1),
        r#"[{"specversion":"1.0","id":"c","source":"/s","type":"t","time":"2026-12-01T10:03:00Z","data":{"workflow":"report"}}]"#.to_owned(),
        r#"{"workflow":"report","type":"heartbeat"}"#.to_owned(),
    ];
    let found = run(None, CONFIG, &lines, "2026-12-01T10:00:00Z", "2026-12-01T10:06:00Z");
    let order: Vec<u32> = found.verdicts.iter().map(|(n, _)| *n).collect();
    assert_eq!(order, [4, 5, 6, 1]);
    let unreadable = found.of("quarantined");
    assert_eq!(unreadable.len(), 1);
    assert_eq!((&unreadable[0]["event"], &unreadable[0]["at"]), (&json!("line 2"), &json!("2026-12-01T10:05:00Z")));
}

#[test]
fn what_arrives_outside_the_span_is_not_read() {
    let lines: Vec<String> = (0..4).map(|n| failure(n, "report", &format!("2026-12-01T10:0{n}:00Z"))).collect();
    let found = run(None, CONFIG, &lines, "2026-12-01T10:01:00Z", "2026-12-01T10:03:00Z");
    assert_eq!(found.verdicts.iter().map(|(n, _)| *n).collect::<Vec<_>>(), [2, 3]);
}

#[test]
fn a_dead_letter_is_said_as_it_was_when_it_came_and_not_as_its_item_failed_later() {
    let failed = |n: u32, minute: u32, message: &str| {
        json!({ "id": format!("e{n}"), "workflow": "report", "item": "x", "occurred_at": format!("2026-12-01T10:{minute:02}:00Z"),
            "error": { "http_status": 402, "message": message } })
        .to_string()
    };
    // A page parts the two into batches of their own; the digest that says both lines comes later.
    let lines = [failed(1, 1, "no money"), failure(2, "pay", "2026-12-01T10:02:00Z"), failed(3, 3, "no card")];
    let found = run(None, CONFIG, &lines, "2026-12-01T10:00:00Z", "2026-12-01T10:20:00Z");
    let opened = found.of("dead_letter_opened");
    let of_report = opened.iter().filter(|line| line["workflow"] == "report").map(|line| &line["text"]);
    assert_eq!(of_report.collect::<Vec<_>>(), ["no money"]);
}

#[test]
fn each_decision_not_to_tell_has_its_reason() {
    let silence = "\n[[silences]]\nmatch = { workflow = [\"report\"] }\nuntil = \"2026-12-01T10:02:00Z\"\nreason = \"load test\"\nby = \"Ben\"\n";
    let lines = [
        failure(1, "report", "2026-12-01T10:01:59Z"),
        failure(2, "report", "2026-12-01T10:02:00Z"),
        failure(3, "stray", "2026-12-01T10:03:00Z"),
        failure(3, "stray", "2026-12-01T10:04:00Z"),
    ];
    let found = run(None, &format!("{CONFIG}{silence}"), &lines, "2026-12-01T10:00:00Z", "2026-12-01T10:06:00Z");
    let said: Vec<_> = found.of("suppress").iter().map(|l| (l["event"].clone(), l["reason"].clone())).collect();
    assert_eq!(said, [(json!("e1"), json!("silenced")), (json!("e3"), json!("unrouted"))]);
    let verdicts: Vec<Verdict> = found.verdicts.iter().map(|(_, v)| *v).collect();
    assert_eq!(verdicts, [Verdict::Silenced, Verdict::Told, Verdict::Unrouted], "what comes again is no news");
}

#[test]
fn a_hold_is_said_once_and_ends_at_opening() {
    let lines = [failure(1, "report", "2026-12-01T02:10:00Z"), failure(2, "report", "2026-12-01T05:10:00Z")];
    let found = run(None, CONFIG, &lines, "2026-12-01T02:00:00Z", "2026-12-01T10:00:00Z");
    let holds: Vec<_> = found.of("hold").into_iter().filter(|l| l["receiver"] == "ops").collect();
    assert_eq!(holds.len(), 1);
    assert_eq!(holds[0]["due_at"], "2026-12-01T09:00:00Z");
    let daily: Vec<_> =
        found.of("digest").into_iter().filter(|l| l["digest"] == "daily" && l["receiver"] == "ops").collect();
    assert_eq!(daily.len(), 1);
    assert_eq!((&daily[0]["at"], &daily[0]["counts"]["received"]), (&json!("2026-12-01T09:00:00Z"), &json!(2)));
}

#[test]
fn a_weekly_digest_tells_what_is_left_of_budgets_as_of_its_window_and_a_daily_one_does_not() {
    let config = CONFIG
        .replace("[digests.quick]\ncron = \"*/7 * * * *\"", "[digests.weekly]\ncron = \"0 10 * * MON\"")
        .replace("digest.quick = [\"ops\"]", "digest.weekly = [\"ops\", \"owner\"]")
        .replace("cron = \"0 * * * *\"", "cron = \"0 10 * * *\"")
        .replace("name = \"report\"", "name = \"report\"\nslo = 0.99\nexpected_per_day = 1000")
        .replace("name = \"pay\"", "name = \"pay\"\nslo = 0.9\nexpected_per_day = 10");
    let outcome = |workflow: &str, hour: i64, ok: u64, failed: u64| {
        let when = at("2026-11-30T10:30:00Z") + TimeDelta::hours(hour);
        json!({ "id": format!("{workflow}-{hour}"), "type": "outcome", "workflow": workflow, "occurred_at": when, "ok": ok, "failed": failed })
            .to_string()
    };
    let mut lines: Vec<String> =
        (0..8 * 24).map(|hour| outcome("report", hour, 41, u64::from(hour % 8 == 0))).collect();
    lines.push(outcome("pay", 30, 0, 6));
    // After the window of the week, but before the digest of it could be any later.
    lines.push(outcome("pay", 7 * 24, 0, 60));
    let found = run(None, &config, &lines, "2026-11-30T10:00:00Z", "2026-12-08T12:00:00Z");
    let text = |digest: &str, receiver: &str| {
        let all = found.of("digest");
        let line = all
            .iter()
            .find(|l| l["digest"] == digest && l["receiver"] == receiver && l["at"] == "2026-12-07T10:00:00Z");
        line.map(|line| line["text"].as_str().unwrap().to_owned()).unwrap()
    };
    let section = |receiver: &str| {
        let text = text("weekly", receiver);
        text.split("ERROR BUDGET").nth(1).and_then(|rest| rest.split("\n\n").next()).unwrap().to_owned()
    };
    insta::assert_snapshot!(section("ops"), @r"
      (30 days)
    ------------------------------------------------------------------------
    Workflow                    Target             Spent
    pay                           90 %           6 of 30
      80 % left, lasts 28 days at this week’s pace; only 5 d 17 h are known
    report                        99 %         21 of 300
      93 % left, lasts the period; only 6 d 23 h are known
    ");
    let own = section("owner:asha@example.com");
    assert!(own.contains("pay ") && !own.contains("report "), "an owner reads of their own: {own}");
    assert!(!text("daily", "ops").contains("ERROR BUDGET"));
}

#[test]
fn a_config_that_no_longer_protects_a_workflow_loses_its_page() {
    let lines = [failure(1, "pay", "2026-12-01T10:01:00Z"), failure(2, "report", "2026-12-01T10:02:00Z")];
    let tally = |config: &str| {
        let (live, file) = (live(config), file(&lines));
        let span = Span { from: at("2026-12-01T10:00:00Z"), to: at("2026-12-01T11:00:00Z") };
        let mut tally = Tally::default();
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let input = Input::open(file.path(), &live.reader).unwrap();
        runtime.block_on(play(&live, &input, span, &mut tally)).unwrap();
        tally
    };
    let (now, then) = (tally(CONFIG), tally(&CONFIG.replace("domain = \"money\"\nowner", "owner")));
    assert!(!Difference::between(&now, &now).loses_a_page());
    let (lost, gained) = (Difference::between(&now, &then), Difference::between(&then, &now));
    assert_eq!((lost.lost_pages.as_slice(), lost.loses_a_page()), (&[1][..], true));
    assert_eq!((gained.new_pages.as_slice(), gained.loses_a_page()), (&[1][..], false));
    assert!(lost.write().contains("pages -1 (1, then 0)"), "{}", lost.write());
}

/// A store that a service took these lines into; the second has its workflow from its subject.
async fn recorded(live: &Live, lines: &[String], path: &std::path::Path) -> Store {
    let store = Store::open(&format!("sqlite://{}", path.display())).await.unwrap();
    let mut intake = Intake::new(store.clone(), Keeping::All);
    for (sequence, line) in (1..).zip(lines) {
        let event: Value = serde_json::from_str(line).unwrap();
        let received_at = at(event["occurred_at"].as_str().unwrap());
        let nameless = line.replacen("\"workflow\":\"report\",", "", 1);
        let payload = if sequence == 2 { nameless.as_bytes() } else { line.as_bytes() };
        let subject = format!("failures.{}", event["workflow"].as_str().unwrap());
        let inbound = Inbound { subject: &subject, headers: &[], payload, stream: "S", sequence, received_at };
        let DecodeOutcome::Event(decoded) = live.reader.read(inbound) else { panic!("{line}") };
        let progress = Progress {
            stream: "S".to_owned(),
            stream_made_at: DateTime::UNIX_EPOCH,
            sequence: sequence.cast_signed(),
            arrival_at: received_at,
            lag: 0,
        };
        let batch = [Item::Event(decoded, Redelivered::No)];
        intake.commit(&batch, &progress, &live.policy, &*live.announcer, received_at).await.unwrap();
    }
    store
}

#[tokio::test]
async fn what_a_store_has_recorded_plays_as_it_would_from_a_file_while_a_service_has_the_store() {
    let lines = [
        failure(1, "pay", "2026-12-01T10:01:00Z"),
        failure(2, "report", "2026-12-01T10:02:00Z"),
        failure(3, "report", "2026-12-01T10:30:00Z"),
    ];
    let (live, dir, file) = (live(CONFIG), tempfile::tempdir().unwrap(), file(&lines));
    let path = dir.path().join("matins.db");
    let service = recorded(&live, &lines, &path).await;
    let (from, to) = (at("2026-12-01T10:00:00Z"), at("2026-12-01T10:20:00Z"));
    let reader = Store::open_to_read(&format!("sqlite://{}", path.display())).await.unwrap();
    let inputs = [Input::of_store(reader, from, to).await.unwrap(), Input::open(file.path(), &live.reader).unwrap()];
    let mut played = Vec::new();
    for input in inputs {
        let mut found = Found::default();
        play(&live, &input, Span { from, to }, &mut found).await.unwrap();
        played.push(found);
    }
    assert_eq!(played[0].lines, played[1].lines);
    assert_eq!(played[0].verdicts, [(1, Verdict::Paged), (2, Verdict::Told)]);
    service.close().await;
    let missing = Store::open_to_read(&format!("sqlite://{}.no", path.display())).await;
    assert!(missing.is_err());
}

#[derive(Clone, Debug)]
enum Step {
    Fail(&'static str),
    Retry,
    Resolve(usize),
}

fn steps() -> impl Strategy<Value = Vec<(u32, Step)>> {
    let step = prop_oneof![
        5 => Just(Step::Fail("pay")),
        1 => Just(Step::Fail("report")),
        1 => Just(Step::Retry),
        4 => any::<usize>().prop_map(Step::Resolve),
    ];
    // Whole seconds: what is due between two looks comes with the second of them.
    prop::collection::vec(((0_u32..20).prop_map(|s| s * 1000), step), 1..60)
}

fn written(steps: &[(u32, Step)]) -> Vec<String> {
    let (mut at_ms, mut failed) = (at("2026-12-01T16:52:00Z").timestamp_millis(), Vec::new());
    let mut lines = Vec::new();
    for (n, (wait, step)) in (0_u32..).zip(steps) {
        at_ms += i64::from(*wait);
        let when = DateTime::from_timestamp_millis(at_ms).unwrap().to_rfc3339();
        lines.push(match step {
            Step::Fail(workflow) => {
                failed.push((*workflow, n));
                // Each has a cause of its own: whether one counts as back depends on what came in the same batch.
                failure(n, workflow, &when).replacen("\"error\":{", &format!("\"error\":{{\"type\":\"E{n}\",\"message\":\"{}\",", letters(n)), 1)
            }
            Step::Retry => json!({ "id": format!("e{n}"), "workflow": "pay", "occurred_at": when, "disposition": "retrying" }).to_string(),
            Step::Resolve(which) => {
                let (workflow, item) = failed.get(which % failed.len().max(1)).copied().unwrap_or(("pay", 0));
                json!({ "id": format!("e{n}"), "type": "resolution", "workflow": workflow, "item": format!("i{item}"), "occurred_at": when })
                    .to_string()
            }
        });
    }
    lines
}

/// A word that no pattern takes for a number.
fn letters(n: u32) -> String {
    n.to_string().bytes().map(|b| char::from(b - b'0' + b'g')).collect()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 6, max_shrink_iters: 0, ..ProptestConfig::default() })]

    #[test]
    fn jumping_from_instant_to_instant_loses_nothing_of_looking_every_second(steps in steps()) {
        let lines = written(&steps);
        let (from, to) = ("2026-12-01T16:52:00Z", "2026-12-01T17:02:00Z");
        let seconds = (0..600).map(|n| at(from) + TimeDelta::seconds(n));
        let every_second = run(Some(Agenda::new(&[]).with(seconds)), CONFIG, &lines, from, to);
        let jumping = run(None, CONFIG, &lines, from, to);
        for (jumped, looked) in jumping.lines.iter().zip(&every_second.lines) {
            prop_assert_eq!(jumped, looked);
        }
        prop_assert_eq!(jumping.lines.len(), every_second.lines.len());
        prop_assert_eq!(jumping.verdicts, every_second.verdicts);
    }
}

#[tokio::test]
async fn a_protected_workflow_that_joins_a_symptom_of_others_has_it_paged() {
    let rule = "\n[[symptoms]]\nname = \"everywhere\"\nkind = \"systemic\"\ncount = 2\nseverity = \"page\"\n";
    let live = live(&format!("{CONFIG}{rule}"));
    let (start, store) = (at("2026-12-01T10:00:00Z"), Store::open("sqlite::memory:").await.unwrap());
    let mut desk = SymptomDesk::played(&live, start);
    let mut fail = async |workflow: &str, second: i64| {
        let what = What::Failure {
            is_final: true,
            letter: None,
            run: None,
            is_redriven: false,
            downstream: None,
            error_type: Some("CertExpired".to_owned()),
            times: 1,
        };
        let now = start + TimeDelta::seconds(second);
        desk.take(&Signal { workflow: workflow.into(), at: now, arrived_at: None, what });
        let look_at = now + TimeDelta::seconds(10);
        desk.look(&store, &live, look_at, look_at).await.unwrap();
        desk.firing().iter().map(|symptom| symptom.told.clone()).collect::<Vec<_>>()
    };
    assert_eq!(fail("report", 5).await, []);
    let standard = fail("stray", 15).await;
    assert_eq!(standard.iter().map(|told| told.why_not()).collect::<Vec<_>>(), [Some("standard_workflow")]);
    let protected = fail("pay", 25).await;
    assert!(protected[0].incident_id().is_some(), "{protected:?}");
}

#[test]
fn the_page_that_a_silence_held_back_says_how_it_is_when_it_goes_out() {
    let silence = "\n[[silences]]\nmatch = { workflow = [\"pay\"] }\nuntil = \"2026-12-01T20:00:00Z\"\nreason = \"move\"\nby = \"Ben\"\nprotected = true\n";
    let lines = [failure(1, "pay", "2026-12-01T10:00:00Z")];
    let found = run(None, &format!("{CONFIG}{silence}"), &lines, "2026-12-01T09:59:00Z", "2026-12-01T20:01:00Z");
    let pages = found.of("page");
    assert_eq!(pages.len(), 1, "{pages:?}");
    let text = pages[0]["text"].as_str().unwrap();
    assert!(text.contains("has waited for 10 h"), "{text}");
}

#[test]
fn an_item_that_fails_of_two_causes_keeps_both_incidents_open_until_it_is_resolved() {
    let fail = |n: u32, status: u16, when: &str| {
        json!({ "id": format!("e{n}"), "workflow": "pay", "item": "i1", "occurred_at": when, "error": { "http_status": status } }).to_string()
    };
    let resolution = json!({ "id": "r1", "type": "resolution", "workflow": "pay", "item": "i1", "occurred_at": "2026-12-01T11:00:00Z" });
    let lines = [fail(1, 402, "2026-12-01T10:00:00Z"), fail(2, 422, "2026-12-01T10:01:00Z"), resolution.to_string()];
    let found = run(None, CONFIG, &lines, "2026-12-01T09:59:00Z", "2026-12-01T11:30:00Z");
    let pages = found.of("page");
    assert_eq!(pages.len(), 2, "{pages:?}");
    let second = pages[1]["text"].as_str().unwrap();
    assert!(second.contains("1 item"), "{second}");
    let resolved = found.of("resolved");
    let incidents: BTreeSet<_> = resolved.iter().map(|line| line["incident"].as_str().unwrap()).collect();
    assert_eq!(incidents.len(), 2, "{resolved:?}");
    assert!(resolved.iter().all(|line| line["at"].as_str().unwrap() > "2026-12-01T11:00:00Z"), "{resolved:?}");
}

#[tokio::test]
async fn a_symptom_that_is_over_is_kept_no_more() {
    let live = live(CONFIG);
    let (start, store) = (at("2026-12-01T10:00:00Z"), Store::open("sqlite::memory:").await.unwrap());
    let mut desk = SymptomDesk::default();
    let mut say = async |status: HeartbeatStatus, second: i64| {
        let at = start + TimeDelta::seconds(second);
        let signal = Signal { workflow: "report".into(), at, arrived_at: None, what: What::Heartbeat { status } };
        let mut tx = store.begin().await.unwrap();
        symptoms::add_signals(&mut tx, &[signal]).await.unwrap();
        tx.commit().await.unwrap();
        let look_at = at + TimeDelta::seconds(10);
        desk.catch_up(&store, &live, look_at).await.unwrap();
        desk.look(&store, &live, look_at, look_at).await.unwrap();
        let rows = symptoms::states(store.reader()).await.unwrap().len();
        (desk.firing().len(), rows)
    };
    assert_eq!(say(HeartbeatStatus::Unhealthy, 5).await, (1, 1));
    assert_eq!(say(HeartbeatStatus::Ok, 15).await, (0, 0));
    assert_eq!(say(HeartbeatStatus::Unhealthy, 25).await, (1, 1));
}

/// Intake that has not come far enough until it is said to have.
struct Behind(bool);

impl Watermark for Behind {
    async fn refresh(&mut self) {}

    fn passed(&mut self, _: DateTime<Utc>, _: DateTime<Utc>) -> Option<Passed> {
        (!self.0).then_some(Passed { incomplete: None })
    }

    async fn reached(&mut self, now: DateTime<Utc>) -> Option<Reached> {
        Some(Reached { at: now, was_away: false })
    }

    fn keep_only(&mut self, _: &BTreeSet<DateTime<Utc>>) {}
}

#[tokio::test]
async fn a_slot_that_passes_while_a_digest_waits_for_intake_is_due_at_the_next_tick() {
    let live = live(CONFIG);
    let store = Store::open("sqlite::memory:").await.unwrap();
    let (mut ticker, mut watermark) = (Ticker::default(), Behind(false));
    let mut tick = async |time: &str, is_behind: bool| {
        watermark.0 = is_behind;
        let ticked = ticker.tick(&store, &live, &mut watermark, at(&format!("2026-12-01T{time}Z"))).await;
        assert!(ticked.failures.is_empty(), "{:?}", ticked.failures);
        let rows = ledger::list(store.reader(), i64::MAX, i64::MAX).await.unwrap();
        let quick = rows.iter().filter(|row| row.digest == "quick");
        quick.map(|row| row.window_end.format("%H:%M").to_string()).max()
    };
    tick("10:00:00", false).await;
    let before = tick("10:07:00", true).await;
    assert_eq!(tick("10:15:00", true).await, before, "it waits");
    assert_eq!(tick("10:15:01", false).await.as_deref(), Some("10:07"));
    assert_eq!(tick("10:15:02", false).await.as_deref(), Some("10:14"));
}
