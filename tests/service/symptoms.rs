//! Symptoms through the real stream: an outage is one page, whatever is delivered again, restarted or ahead of time.

use crate::support::app::{App, DURABLE, STREAM, failure};
use crate::support::eventually;
use chrono::{DateTime, TimeDelta, Utc};
use matins::clock;
use serde_json::{Value, json};

const LEDGER: &str = "[[workflows]]\nname = \"ledger\"\ndomain = \"money\"\nslo = 0.99\nexpected_per_day = 100000\n";

fn ago(seconds: i64) -> DateTime<Utc> {
    clock::now() - TimeDelta::seconds(seconds)
}

fn outcome(id: &str, occurred_at: DateTime<Utc>, counts: &Value) -> Value {
    let mut event =
        json!({ "id": id, "type": "outcome", "workflow": "ledger", "occurred_at": occurred_at.to_rfc3339() });
    for (key, value) in counts.as_object().unwrap() {
        event[key] = value.clone();
    }
    event
}

/// Six hours of good runs, then ten minutes in which every other run fails.
fn outage() -> Vec<Value> {
    outage_until(0)
}

/// The same, that ended so many seconds ago.
fn outage_until(end: i64) -> Vec<Value> {
    let good = (0..350)
        .map(|n| outcome(&format!("good-{n}"), ago(end + 600 + 60 * (350 - n)), &json!({ "ok": 100, "failed": 0 })));
    let bad = (0..60).map(|n| bad(n, ago(end + 10 * (60 - n))));
    good.chain(bad).collect()
}

fn bad(n: i64, occurred_at: DateTime<Utc>) -> Value {
    outcome(&format!("bad-{n}"), occurred_at, &json!({ "ok": 50, "failed": 50 }))
}

/// One that fires, once it is as asked for.
async fn becomes(app: &App, symptom: &str, is_so: impl Fn(&Value) -> bool) -> Value {
    eventually("the symptom is as it should be", async || {
        app.items("/symptoms").await.into_iter().find(|s| s["symptom"] == symptom && is_so(s))
    })
    .await
}

/// Whether the log says that a symptom cleared.
fn has_cleared(app: &App, symptom: &str) -> bool {
    app.log().lines().any(|line| line.contains("symptom cleared") && line.contains(symptom))
}

/// Waits until symptoms were looked at once more: a workflow with that many dead letters fires at the next look, and only then.
async fn looked(app: &App, workflow: &str) {
    app.fail_all((0..11).map(|n| failure(workflow, &n.to_string(), "no such column"))).await;
    firing(app, "dead_letter_depth", workflow).await;
}

async fn firing(app: &App, symptom: &str, workflow: &str) -> Value {
    eventually("the symptom fires", async || {
        let all = app.items("/symptoms").await;
        all.into_iter().find(|s| s["symptom"] == symptom && s["workflow"] == workflow)
    })
    .await
}

async fn app() -> App {
    let mut app = App::new().await;
    app.settings.more = LEDGER.to_owned();
    app.start().await;
    app
}

#[tokio::test]
async fn an_outage_is_one_page_through_duplicates_a_kill_and_a_replay() {
    let mut app = app().await;
    let events = outage();
    app.fail_all(events.clone()).await;
    let page = app.expect_slack("/oncall", 1).await;
    assert!(page.words().contains("ledger"), "{}", page.words());
    let before = firing(&app, "burn_rate", "ledger").await;
    assert_eq!(before["tier"], "page_fast", "{before}");
    assert_eq!(before["incident"], "1", "{before}");

    app.fail_all(events).await;
    looked(&app, "report-1").await;
    app.kill();
    app.start().await;
    let after = app.items("/symptoms").await;
    let still = |s: &&Value| s["symptom"] == "burn_rate" && s["since"] == before["since"];
    assert!(after.iter().any(|s| still(&s)), "the state of before the kill: {after:?}");
    looked(&app, "report-2").await;

    app.stop().await;
    app.js.get_stream(STREAM).await.unwrap().delete_consumer(DURABLE).await.unwrap();
    app.start().await;
    looked(&app, "report-3").await;
    assert_eq!(firing(&app, "burn_rate", "ledger").await["since"], before["since"]);
    assert_eq!(app.items("/incidents").await.len(), 1);
    app.end().await;
}

#[tokio::test]
async fn producers_that_restart_lose_reports_or_run_ahead_of_time_count_right() {
    let mut app = app().await;
    let totals = |epoch: &str, ok: i64, failed: i64| json!({ "producer": "p", "epoch": epoch, "ok_total": ok, "failed_total": failed });
    let first = (0..350).map(|n| outcome(&format!("a-{n}"), ago(600 + 60 * (350 - n)), &totals("a", 100 * (n + 1), 0)));
    // It starts anew, every third of its reports is lost, and one comes twice and late.
    let second = (0..60)
        .filter(|n| n % 3 != 1)
        .map(|n| outcome(&format!("b-{n}"), ago(10 * (60 - n)), &totals("b", 50 * (n + 1), 0)));
    let late = outcome("late", ago(300), &totals("b", 500, 0));
    app.fail_all(first.chain(second).chain([late])).await;
    looked(&app, "report-1").await;
    assert!(!app.items("/symptoms").await.iter().any(|s| s["workflow"] == "ledger"), "nothing failed");

    // Its clock is ten minutes fast: what it says of the time to come happened now.
    app.fail_all((0..6).map(|n| {
        outcome(&format!("c-{n}"), clock::now() + TimeDelta::seconds(600), &totals("b", 3000, 400 * (n + 1)))
    }))
    .await;
    app.expect_slack("/oncall", 1).await;
    let symptom = firing(&app, "burn_rate", "ledger").await;
    assert!(symptom["text"].as_str().unwrap().contains("2,400 of"), "{symptom}");
    app.end().await;
}

#[tokio::test]
async fn what_is_expected_and_never_heard_is_missed_also_after_a_restart_into_silence() {
    let mut app = App::new().await;
    app.settings.more = "[[workflows]]\nname = \"nightly\"\nevery = \"5s\"\ngrace = \"1s\"\n".to_owned();
    app.start().await;
    let before = firing(&app, "absence", "nightly").await;
    assert_eq!(before["reason"], "standard_workflow", "{before}");
    app.kill();
    app.start().await;
    let after = firing(&app, "absence", "nightly").await;
    assert_eq!(after["since"], before["since"], "{after}");
    // Nothing has been heard since the store was made: it is missed at the first look of a new process all the same.
    app.stop().await;
    let url = format!("sqlite://{}", app.path("matins.db").display());
    let store = matins::store::Store::open(&url).await.unwrap();
    let mut tx = store.begin().await.unwrap();
    sqlx::query("DELETE FROM symptom_states").execute(&mut *tx).await.unwrap();
    tx.commit().await.unwrap();
    store.close().await;
    drop(store);
    app.start().await;
    firing(&app, "absence", "nightly").await;
    app.end().await;
}

#[tokio::test]
async fn a_rule_that_is_taken_out_ends_its_incident_without_an_all_clear() {
    let mut app = App::new().await;
    app.settings.page_route = "resolve_after = \"2s\"";
    app.settings.more = LEDGER.to_owned();
    app.start().await;
    app.fail_all(outage()).await;
    app.expect_slack("/oncall", 1).await;
    app.settings.more = format!("{LEDGER}[[symptoms]]\nname = \"deep\"\nkind = \"dead_letter_depth\"\n");
    app.write_config();
    app.hup();
    let end = app.expect_slack("/oncall", 2).await.words();
    assert!(end.contains("its rule was taken out of the config") && !end.contains("cleared"), "{end}");
    assert!(app.items("/symptoms").await.is_empty());
    app.end().await;
}

#[tokio::test]
async fn reports_that_stop_hold_what_fires_through_a_kill_and_their_backlog_tells_nothing_again() {
    let mut app = App::new().await;
    // Anything that cleared would be told at once.
    app.settings.page_route = "resolve_after = \"1s\"";
    app.settings.more = LEDGER.replace("0.99", "0.999");
    app.start().await;
    // Reports are missed a minute after the last: soon, but not before the first look.
    app.fail_all(outage_until(40)).await;
    app.expect_slack("/oncall", 1).await;
    let fired = firing(&app, "burn_rate", "ledger").await;
    assert_eq!(fired["held"], Value::Null, "{fired}");
    becomes(&app, "burn_rate", |s| s["held"].is_string() && s["since"] == fired["since"]).await;
    let missing = becomes(&app, "slo_input_missing", |_| true).await;
    assert_eq!((&missing["severity"], &missing["incident"]), (&json!("page"), &json!("1")), "{missing}");

    app.kill();
    // What was not reported meanwhile failed as well.
    let gap = (60..70).map(|n| bad(n, ago(10 * (70 - n))));
    let before = app.last_sequence().await;
    app.fail_all(gap.chain(outage_until(40).into_iter().skip(400))).await;
    assert!(app.last_sequence().await > before);
    app.start().await;
    becomes(&app, "burn_rate", |s| s["held"].is_null() && s["since"] == fired["since"]).await;
    looked(&app, "report-1").await;
    assert!(!has_cleared(&app, "burn_rate"), "{}", app.log());
    assert_eq!(app.items("/incidents").await.len(), 1);
    app.end().await;
}

#[tokio::test]
async fn a_producer_that_starts_anew_while_it_fires_counts_on_through_a_kill_and_duplicates() {
    let mut app = App::new().await;
    app.settings.page_route = "resolve_after = \"1s\"";
    app.settings.more = LEDGER.to_owned();
    app.start().await;
    let totals = |epoch: &str, ok: i64, failed: i64| json!({ "producer": "p", "epoch": epoch, "ok_total": ok, "failed_total": failed });
    let report = |epoch: &str, n: i64, end: i64, ok: i64, failed: i64| {
        outcome(&format!("{epoch}-{n}"), ago(end), &totals(epoch, ok, failed))
    };
    let good = (0..350).map(|n| report("a", n, 600 + 60 * (350 - n), 100 * (n + 1), 0));
    let failing = (0..60).map(|n| report("a", 350 + n, 10 * (60 - n), 35_000 + 50 * (n + 1), 50 * (n + 1)));
    app.fail_all(good.chain(failing)).await;
    app.expect_slack("/oncall", 1).await;
    let fired = becomes(&app, "burn_rate", |s| s["text"].as_str().unwrap().contains("3,000 of")).await;

    // A kill in the middle of a try may repeat it once.
    app.settled().await;
    app.kill();
    let anew: Vec<Value> = (0..10).map(|n| report("b", n, 10 - n, 50 * (n + 1), 50 * (n + 1))).collect();
    let mut unsorted = anew.clone();
    unsorted.reverse();
    app.fail_all(unsorted.into_iter().chain(anew)).await;
    app.start().await;
    let counted = becomes(&app, "burn_rate", |s| s["text"].as_str().unwrap().contains("3,500 of")).await;
    assert_eq!(counted["since"], fired["since"], "{counted}");
    looked(&app, "report-1").await;
    assert!(!has_cleared(&app, "burn_rate"), "{}", app.log());
    assert_eq!(app.items("/incidents").await.len(), 1);
    app.end().await;
}

#[tokio::test]
async fn reports_that_come_minutes_late_still_fire() {
    let mut app = app().await;
    let mut events = outage_until(240);
    let late = events.split_off(350);
    app.fail_all(events).await;
    looked(&app, "report-1").await;
    // Four minutes after the last of it happened, all of the outage is told: the short window still has a minute of it.
    app.fail_all(late).await;
    app.expect_slack("/oncall", 1).await;
    let fired = firing(&app, "burn_rate", "ledger").await;
    assert_eq!(fired["workflow"], "ledger", "{fired}");
    app.end().await;
}
