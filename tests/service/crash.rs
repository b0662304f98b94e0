//! `kill -9` at any instant: nothing acked is lost, nothing is counted twice, no incident is paged twice but for the one repeat of a kill.

use crate::support::app::{App, failure};
use crate::support::eventually;
use crate::support::slack::Reply;
use matins::clock;
use serde_json::Value;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// What a kill leaves unacked comes again so soon.
const ACK_WAIT: Duration = Duration::from_secs(2);
const KILLS: usize = 10;

/// Publishes failures without a pause until told to end; says how many JetStream took. Every 200th is a new incident of money.
async fn burst(js: async_nats::jetstream::Context, ended: Arc<AtomicBool>) -> (u64, u64) {
    let (mut count, mut incidents) = (0, 0);
    while !ended.load(Ordering::Relaxed) {
        let mut waiting = Vec::new();
        for _ in 0..50 {
            let event = match count % 200 {
                100 => {
                    incidents += 1;
                    failure(&format!("pay-{incidents}"), "invoice", &format!("refused-{incidents}-end"))
                }
                n => failure(&format!("report-{}", n % 7), &count.to_string(), "no such column"),
            };
            count += 1;
            let subject = format!("failures.{}", event["workflow"].as_str().unwrap());
            waiting.push(js.publish(subject, event.to_string().into()).await.unwrap());
        }
        for ack in waiting {
            ack.await.unwrap();
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    (count, incidents)
}

/// Kills and starts again ten times while events flow, every third time while what was delivered waits for the store; `look` is asked
/// after each kill.
async fn kill_during_a_burst(app: &mut App, mut look: impl AsyncFnMut(&App)) -> (u64, u64) {
    let ended = Arc::<AtomicBool>::default();
    let publisher = tokio::spawn(burst(app.js.clone(), ended.clone()));
    for nth in 0..KILLS {
        let mut blocked = None;
        if nth % 3 == 0 {
            app.ready().await;
            blocked = Some(app.blocked().await);
            eventually("something is delivered", async || is_unacked(app).await.then_some(())).await;
        } else {
            tokio::time::sleep(Duration::from_millis(100 + (clock::jitter() * 700.0) as u64)).await;
        }
        app.kill();
        drop(blocked);
        look(app).await;
        app.launch();
    }
    ended.store(true, Ordering::Relaxed);
    publisher.await.unwrap()
}

async fn is_unacked(app: &App) -> bool {
    app.consumer_info().await.num_ack_pending > 0
}

#[tokio::test(flavor = "multi_thread")]
async fn ten_kills_in_a_burst_lose_nothing_count_nothing_twice_and_repeat_a_page_at_most_once_each() {
    let mut app = App::new().await;
    app.prepare(ACK_WAIT).await;
    // A page is on its way long enough to be hit.
    app.slack.always("/oncall", Some(Reply::ok().delay(Duration::from_millis(100))));
    app.start().await;
    let (count, incidents) = kill_during_a_burst(&mut app, async |_| {}).await;
    app.ready().await;
    app.stored(count).await;
    app.settled().await;

    assert_eq!(app.count("SELECT count(*) FROM events").await, count.cast_signed());
    assert_eq!(app.count("SELECT sum(event_count) FROM counters").await, count.cast_signed(), "counters");
    assert_eq!(app.count("SELECT count(*) FROM dead_letters").await, count.cast_signed(), "dead letters");
    assert_eq!(app.count("SELECT sum(times) FROM dead_letters").await, count.cast_signed(), "each failed once");
    assert_eq!(app.count("SELECT count(*) FROM incidents").await, incidents.cast_signed());
    let mut numbers: BTreeMap<String, Vec<i64>> = BTreeMap::new();
    for page in app.slack.messages("/oncall") {
        let words = page.words();
        let incident = words.split("refused-").nth(1).and_then(|rest| rest.split("-end").next()).unwrap();
        numbers.entry(incident.to_owned()).or_default().push(page.number().unwrap());
    }
    assert_eq!(numbers.len() as u64, incidents, "incidents that were paged");
    for (incident, numbers) in &numbers {
        assert!(numbers.iter().all(|n| *n == numbers[0]), "repeats of {incident} carry other numbers: {numbers:?}");
    }
    app.allow_slack("/oncall", numbers.len(), numbers.len() + KILLS);
    app.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_acked_is_stored_at_the_instant_of_every_kill() {
    let mut app = App::new().await;
    app.prepare(ACK_WAIT).await;
    app.start().await;
    let mut in_the_middle = false;
    let looked = async |app: &App| {
        let consumer = app.consumer_info().await;
        // More than the floor, which waits for what a kill left open.
        let acked = consumer.delivered.stream_sequence - consumer.num_ack_pending as u64;
        assert!(acked >= consumer.ack_floor.stream_sequence);
        in_the_middle |= acked > 0 && consumer.num_ack_pending > 0;
        let stored = app.count("SELECT count(*) FROM events").await;
        assert!(stored >= acked.cast_signed(), "{acked} are acked, {stored} are stored");
    };
    let (count, incidents) = kill_during_a_burst(&mut app, looked).await;
    assert!(in_the_middle, "no kill came between a delivery and its ack");
    app.ready().await;
    app.stored(count).await;
    let incidents = usize::try_from(incidents).unwrap();
    app.allow_slack("/oncall", incidents, incidents + KILLS);
    app.end().await;
}

#[tokio::test]
async fn what_was_read_and_not_committed_when_a_kill_came_is_paged_at_the_start_and_not_only_when_it_comes_again() {
    let mut app = App::new().await;
    // No test waits for that.
    app.prepare(Duration::from_hours(1)).await;
    app.start().await;
    app.fail(&failure("pay-1", "a", "declined")).await;
    app.expect_slack("/oncall", 1).await;
    app.settled().await;
    let mut blocked = app.blocked().await;
    app.fail_all([failure("pay-2", "b", "declined"), failure("pay-3", "c", "refused")]).await;
    eventually("both are delivered", async || (app.consumer_info().await.num_ack_pending == 2).then_some(())).await;
    app.kill();
    sqlx::query("ROLLBACK").execute(&mut blocked).await.unwrap();
    app.start().await;
    app.expect_slack("/oncall", 3).await;
    assert_eq!(app.events().await, 3);
    assert_eq!(app.consumer_info().await.num_ack_pending, 2, "they come again, and are known then");
    app.end().await;
}

#[tokio::test]
async fn what_was_told_stays_told_over_a_kill_and_the_incident_goes_on_counting() {
    let mut app = App::up().await;
    app.fail(&failure("pay-1", "a", "declined")).await;
    app.expect_slack("/oncall", 1).await;
    app.settled().await;
    let state = async |app: &App| {
        let mut all: Vec<Vec<Value>> = Vec::new();
        for list in ["/incidents", "/dead-letters", "/outbox"] {
            all.push(app.items(list).await);
        }
        all
    };
    let before = state(&app).await;
    app.kill();
    app.start().await;
    assert_eq!(state(&app).await, before);
    app.fail(&failure("pay-1", "b", "declined")).await;
    app.stored(2).await;
    assert_eq!(app.items("/incidents").await[0]["events"], 2);
    app.end().await;
}

#[tokio::test]
async fn a_stop_ends_well_in_the_middle_of_a_burst_and_nothing_is_lost_or_told_twice() {
    let mut app = App::new().await;
    app.prepare(ACK_WAIT).await;
    app.start().await;
    app.fail(&failure("pay-1", "a", "declined")).await;
    app.expect_slack("/oncall", 1).await;
    app.fail_all((0..3000).map(|n| failure("report", &n.to_string(), "no such column"))).await;
    app.fail(&failure("pay-1", "b", "declined")).await;
    assert_eq!(app.stop().await.code(), Some(0));
    app.start().await;
    app.stored(3002).await;
    assert_eq!(app.count("SELECT sum(event_count) FROM counters").await, 3002);
    app.end().await;
}

#[tokio::test]
async fn without_its_database_file_the_service_ends_and_acks_nothing_more() {
    let mut app = App::up().await;
    app.fail(&failure("report", "a", "no such column")).await;
    app.stored(1).await;
    std::fs::remove_file(app.path("matins.db")).unwrap();
    let status = app.exit_status().await;
    assert_eq!(status.code(), Some(1));
    assert!(app.log().contains("the database file was removed or replaced"), "{}", app.log());
    let acked = app.consumer_info().await.ack_floor.stream_sequence;
    app.fail(&failure("report", "b", "no such column")).await;
    assert_eq!(app.consumer_info().await.ack_floor.stream_sequence, acked);
}
