//! What comes in, however bad or much: poison is kept and holds up nothing, a storm of one cause is one page, a secret is nowhere.

use crate::support::app::{App, failure};
use crate::support::eventually;
use crate::support::slack::Reply;
use async_nats::HeaderMap;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::json;
use std::collections::BTreeSet;
use std::fs;

#[tokio::test]
async fn poison_is_kept_to_the_byte_and_neither_stops_nor_delays_what_is_behind_it() {
    let mut app = App::up().await;
    let mut poison: Vec<Vec<u8>> = [
        &b""[..],
        b"\0\x01\x02",
        b"\xff\xfe not UTF-8",
        b"{\"workflow\": \"pay-1\"",
        b"[1, 2, 3]",
        b"null",
        b"\"a text\"",
        b"{\"type\": \"no such type\", \"workflow\": \"pay-1\"}",
    ]
    .map(<[u8]>::to_vec)
    .to_vec();
    poison.push(vec![b'['; 200_000]);
    poison.push(vec![b'x'; 900_000]);
    for (n, body) in poison.iter().enumerate() {
        app.publish("failures.pay-1", body.clone()).await;
        app.fail(&failure("report", &n.to_string(), "no such column")).await;
    }
    app.fail(&failure("pay-1", "behind", "behind the poison")).await;
    assert!(app.expect_slack("/oncall", 1).await.words().contains("behind the poison"));
    app.stored(poison.len() as u64 + 1).await;
    let kept = app.items("/quarantine").await;
    let raw: BTreeSet<Vec<u8>> =
        kept.iter().map(|row| STANDARD.decode(row["raw_base64"].as_str().unwrap()).unwrap()).collect();
    assert_eq!(raw, poison.into_iter().collect());
    assert!(kept.iter().all(|row| row["reason"].is_string() && row["subject"] == "failures.pay-1"), "{kept:?}");
    app.end().await;
}

#[tokio::test]
async fn a_storm_of_one_cause_is_one_page_for_money_and_none_for_the_rest() {
    let mut app = App::up().await;
    app.fail_all((0..10_000).map(|n| failure("pay-1", &n.to_string(), "declined"))).await;
    app.fail_all((0..20_000).map(|n| failure("report", &n.to_string(), "no such column"))).await;
    app.expect_slack("/oncall", 1).await;
    app.stored(30_000).await;
    let incidents = app.items("/incidents").await;
    assert_eq!(incidents.len(), 1);
    assert_eq!((&incidents[0]["events"], &incidents[0]["items"]), (&json!(10_000), &json!(10_000)));
    assert_eq!(app.count("SELECT count(*) FROM outbox").await, 1, "messages");
    app.end().await;
}

#[tokio::test]
async fn an_id_is_one_event_whatever_subject_header_or_content_it_comes_with() {
    let app = App::up().await;
    let event = failure("report", "1", "no such column");
    app.fail(&event).await;
    app.fail(&event).await;
    app.publish("failures.elsewhere", event.to_string()).await;
    let mut other = event.clone();
    other["error"]["message"] = json!("another text");
    app.fail(&other).await;
    // Told apart by its header only, which is what JetStream knows it by.
    let nameless = json!({ "workflow": "report", "item": "2", "error": { "http_status": 422 } });
    for subject in ["failures.report", "failures.again"] {
        let mut headers = HeaderMap::new();
        headers.insert("Nats-Msg-Id", "report/2");
        app.publish_with(subject, nameless.to_string(), headers).await;
    }
    eventually("all is read", async || (app.consumer_info().await.ack_floor.stream_sequence >= 5).then_some(())).await;
    app.stored(2).await;
    assert_eq!(app.items("/dead-letters").await.len(), 2);
    app.end().await;
}

/// What no file, answer or message may contain.
const SECRETS: [&str; 8] = [
    "hunter2hunter2",
    "sk-live-4f9a8b7c6d5e",
    "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.c2lnbmF0dXJl",
    "4111111111111111",
    "s3cr3t-in-a-url",
    "key-in-a-query",
    "cookie-monster-77",
    "T0SECRET/B0HOOK",
];

#[tokio::test]
async fn a_secret_is_in_no_byte_of_store_log_api_or_message() {
    let mut app = App::new().await;
    let [password, key, bearer, card, userinfo, query, cookie, _hook] = SECRETS;
    app.settings.slack_url = app.slack.url("/T0SECRET/B0HOOK");
    // Also the address of a receiver that fails is a secret.
    app.slack.script("/T0SECRET/B0HOOK/oncall", [Reply::new(500, "rollup_error")]);
    app.start().await;
    for workflow in ["pay-1", "report"] {
        app.fail(&json!({
            "id": format!("https://svc:{userinfo}@api.example.com/{workflow}"),
            "workflow": workflow,
            "item": format!("card {card}"),
            "step": format!("https://svc:{userinfo}@api.example.com/step"),
            "downstream": format!("https://api.example.com/?api_key={query}"),
            "error": {
                "http_status": 402,
                "type": format!("Error at https://api.example.com/?token={query}"),
                "message": format!("POST https://svc:{userinfo}@api.example.com/pay?token={query} Authorization: Bearer {bearer} card 4111 1111 1111 1111 or {card}"),
                "stack": format!("Bearer {bearer}\n at https://api.example.com/?api_key={query}"),
            },
            "payload": {
                "password": password, "API-Key": key, "nested": [{ "client_secret": key, "Cookie": format!("sid={cookie}") }],
                "card": card, "text": format!("{{\"password\": \"{password}\"}}"),
            },
            "links": { "run": format!("https://api.example.com/run?api_key={query}") },
            "labels": { "token": key },
            "unknown": { "x-api-key": key, "authorization": format!("Bearer {bearer}") },
        }))
        .await;
    }
    app.stored(2).await;
    let page = app.expect_slack("/T0SECRET/B0HOOK/oncall", 1).await;
    app.allow_slack("/T0SECRET/B0HOOK/oncall", 2, 2);
    app.settled().await;

    let mut places = vec![("page".to_owned(), page.body.to_string())];
    for path in ["dead-letters", "incidents", "outbox", "digests/preview?name=daily&receiver=ops", "openapi.json"] {
        places.push((path.to_owned(), app.get(&format!("/api/v1/{path}")).await.unwrap().text().await.unwrap()));
    }
    places.push(("metrics".to_owned(), app.get("/metrics").await.unwrap().text().await.unwrap()));
    for entry in fs::read_dir(app.dir()).unwrap() {
        let path = entry.unwrap().path();
        if path.is_file() && !path.ends_with("matins.toml") {
            places.push((path.display().to_string(), String::from_utf8_lossy(&fs::read(&path).unwrap()).into_owned()));
        }
    }
    assert!(places.iter().any(|(name, _)| name.ends_with("matins.db-wal")), "the newest rows were looked at");
    let leaks: Vec<_> = places
        .iter()
        .flat_map(|(name, text)| SECRETS.iter().filter(|s| text.contains(*s)).map(move |s| format!("{s} in {name}")))
        .collect();
    assert!(leaks.is_empty(), "{leaks:#?}");
    app.end().await;
}
