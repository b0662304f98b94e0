//! NATS that is absent, dies, freezes or loses its stream: Matins says so, waits, and goes on without a gap.

use crate::support::app::{App, DURABLE, STREAM, failure};
use crate::support::eventually;
use serde_json::json;
use std::time::Duration;

#[tokio::test]
async fn nats_absent_at_start_is_waited_for_and_named() {
    let mut app = App::new().await;
    app.nats.kill();
    app.launch();
    let waits =
        async || app.readiness().await.filter(|(status, why)| *status == 503 && why.contains("waiting for NATS"));
    eventually("readiness names NATS", waits).await;
    assert!(app.log().contains("waiting for NATS at"), "{}", app.log());
    assert_eq!(app.get("/healthz").await.unwrap().status(), 200, "alive all the same");
    app.nats.restart().await;
    app.ready().await;
    app.fail(&failure("pay-1", "a", "declined")).await;
    app.expect_slack("/oncall", 1).await;
    app.end().await;
}

#[tokio::test]
async fn nats_killed_and_started_again_is_found_again_and_nothing_is_lost_or_counted_twice() {
    let mut app = App::up().await;
    app.fail_all((0..50).map(|n| failure("report", &n.to_string(), "no such column"))).await;
    app.stored(50).await;
    app.nats.kill();
    app.not_ready().await;
    app.nats.restart().await;
    app.fail(&failure("pay-1", "a", "after the outage")).await;
    let page = app.expect_slack("/oncall", 1).await;
    assert!(page.words().contains("after the outage"));
    app.ready().await;
    assert_eq!(app.events().await, 51);
    app.end().await;
}

#[tokio::test]
async fn nats_killed_in_the_middle_of_a_burst_leaves_no_gap() {
    let mut app = App::new().await;
    app.prepare(Duration::from_secs(2)).await;
    app.start().await;
    app.fail_all((0..6000).map(|n| failure("report", &n.to_string(), "no such column"))).await;
    app.nats.kill();
    assert!(app.events().await < 6000, "the burst was over before the kill");
    app.nats.restart().await;
    app.stored(6000).await;
    assert_eq!(app.count("SELECT sum(event_count) FROM counters").await, 6000);
    eventually("all is acked", async || (app.consumer_info().await.num_ack_pending == 0).then_some(())).await;
    app.end().await;
}

#[tokio::test]
async fn a_frozen_nats_is_noticed_and_what_came_meanwhile_is_read_when_it_goes_on() {
    let mut app = App::up().await;
    app.fail(&failure("report", "before", "no such column")).await;
    app.stored(1).await;
    app.nats.freeze();
    app.not_ready().await;
    // It waits in the server's socket, and is taken in the moment when the server goes on.
    let (client, event) = (app.js.client(), failure("pay-1", "a", "sent during the freeze"));
    client.publish("failures.pay-1", event.to_string().into()).await.unwrap();
    client.flush().await.unwrap();
    app.nats.thaw();
    app.expect_slack("/oncall", 1).await;
    app.ready().await;
    assert_eq!(app.events().await, 2);
    assert_eq!(app.api("/stats").await["duplicates"], 0, "nothing had to be delivered again");
    app.end().await;
}

#[tokio::test]
async fn a_consumer_that_was_deleted_is_made_again_and_the_replay_counts_nothing_twice() {
    let mut app = App::up().await;
    app.fail_all((0..5).map(|n| failure("report", &n.to_string(), "no such column"))).await;
    app.publish("failures.report", "not an event").await;
    app.stored(5).await;
    eventually("the poison is kept", async || (app.items("/quarantine").await.len() == 1).then_some(())).await;
    app.js.delete_consumer_from_stream(DURABLE, STREAM).await.unwrap();
    app.fail(&failure("pay-1", "a", "after it was deleted")).await;
    app.expect_slack("/oncall", 1).await;
    eventually("all is read again", async || (app.consumer_info().await.ack_floor.stream_sequence == 7).then_some(()))
        .await;
    let stats = app.api("/stats").await;
    assert_eq!((&stats["events"], &stats["quarantined"]), (&json!(6), &json!(1)), "{stats}");
    assert_eq!(stats["duplicates"], 0, "nobody published anything twice: {stats}");
    app.end().await;
}

#[tokio::test]
async fn events_of_a_stream_that_was_made_again_are_other_events_even_without_ids() {
    let mut app = App::up().await;
    let nameless = |n: u32| json!({ "workflow": "report", "item": format!("{n}"), "error": { "http_status": 422 } });
    for n in 0..3 {
        app.fail(&nameless(n)).await;
    }
    app.stored(3).await;
    app.js.delete_stream(STREAM).await.unwrap();
    // Matins makes it again; until then nothing takes what is published.
    for n in 3..6 {
        app.fail(&nameless(n)).await;
    }
    app.stored(6).await;
    app.ready().await;
    app.end().await;
}

#[tokio::test]
async fn a_stream_made_again_while_matins_was_away_is_read_from_its_first_message() {
    let mut app = App::up().await;
    let nameless = |n: u32| json!({ "workflow": "report", "item": format!("{n}"), "error": { "http_status": 422 } });
    for n in 0..3 {
        app.fail(&nameless(n)).await;
    }
    app.stored(3).await;
    app.stop().await;
    app.js.delete_stream(STREAM).await.unwrap();
    app.prepare(Duration::from_secs(30)).await;
    for n in 3..5 {
        app.fail(&nameless(n)).await;
    }
    app.start().await;
    app.stored(5).await;
    app.end().await;
}
