//! Digests over kills and absences: each window once, joined to the one before, the same to the byte when it is sent again.

use crate::support::app::{App, failure};
use crate::support::eventually;
use crate::support::slack::Reply;
use chrono::{DateTime, Utc};
use matins::clock;
use serde_json::Value;
use sqlx::Connection;
use sqlx::sqlite::{SqliteConnectOptions, SqliteConnection};
use std::time::Duration;

/// Columns that hold an instant which decides in which window something is.
const INSTANTS: [(&str, &str); 10] = [
    ("counters", "minute"),
    ("events", "received_at"),
    ("causes", "first_seen_at"),
    ("dead_letters", "dead_lettered_at"),
    ("dead_letters", "failed_at"),
    ("dead_letters", "last_failed_at"),
    ("digest_cover", "covered_until"),
    ("digests", "window_start"),
    ("digests", "window_end"),
    ("digests", "due_at"),
];

/// As if the service had been away for so many minutes: all that it knows is that much older.
pub async fn be_away(app: &mut App, minutes: i64) {
    assert!(app.stop().await.success());
    let options = SqliteConnectOptions::new().filename(app.path("matins.db"));
    let mut database = SqliteConnection::connect_with(&options).await.unwrap();
    for (table, column) in INSTANTS {
        // In two steps, so that no row meets its neighbour's key on the way.
        for sql in [
            format!("UPDATE {table} SET {column} = -{column}"),
            format!("UPDATE {table} SET {column} = -{column} - {}", minutes * 60_000),
        ] {
            sqlx::query(sqlx::AssertSqlSafe(sql)).execute(&mut database).await.unwrap();
        }
    }
    database.close().await.unwrap();
}

fn at(row: &Value, field: &str) -> DateTime<Utc> {
    row[field].as_str().unwrap().parse().unwrap()
}

/// Running, with a digest each minute that is known to the ledger.
async fn up_with_a_digest_each_minute() -> App {
    let mut app = App::new().await;
    app.settings.digest_cron = "* * * * *";
    app.start().await;
    let known = async || (app.count("SELECT count(*) FROM digest_cover").await == 1).then_some(());
    eventually("the digest is known", known).await;
    app
}

#[tokio::test]
async fn a_digest_goes_out_once_over_kills_and_sent_again_it_is_the_same_to_the_byte() {
    let mut app = up_with_a_digest_each_minute().await;
    app.fail_all((0..30).map(|n| failure("report", &n.to_string(), "no such column"))).await;
    app.fail(&failure("report-2", "x", "no such table")).await;
    app.stored(31).await;
    be_away(&mut app, 3).await;
    app.slack.always("/ops", Some(Reply::ok().delay(Duration::from_millis(200))));
    app.launch();
    let kills = 4;
    for _ in 0..kills {
        tokio::time::sleep(Duration::from_millis(100 + (clock::jitter() * 600.0) as u64)).await;
        app.kill();
        app.launch();
    }
    app.ready().await;
    let first = app.slack.expect("/ops", 1).await.remove(0);
    assert!(first.words().contains("no such column"), "{}", first.words());
    app.settled().await;
    let sent = app.slack.messages("/ops");
    assert!(sent.len() <= 1 + kills && sent.iter().all(|m| m.body == first.body), "{sent:#?}");
    let rows = app.items("/digests").await;
    assert_eq!(rows.len(), 1, "{rows:?}");
    assert_eq!(rows[0]["counts"]["received"], 31, "{rows:?}");

    app.slack.always("/ops", None);
    app.post(&format!("/digests/{}/resend", rows[0]["id"].as_str().unwrap()), &Value::Null).await;
    let again = app.slack.expect("/ops", sent.len() + 1).await.pop().unwrap();
    assert_eq!(again.body, first.body);
    assert_eq!(app.items("/digests").await, rows, "sending again is no new digest");
    app.allow_slack("/ops", sent.len() + 1, sent.len() + 1);
    app.end().await;
}

#[tokio::test]
async fn slots_missed_while_away_are_one_late_digest_and_the_next_window_joins_it() {
    let mut app = up_with_a_digest_each_minute().await;
    for nth in 1..=2 {
        app.fail(&failure("report", &nth.to_string(), "no such column")).await;
        app.stored(nth).await;
        be_away(&mut app, 10).await;
        app.start().await;
        app.expect_slack("/ops", usize::try_from(nth).unwrap()).await;
    }
    let digests = app.items("/digests").await;
    let [second, first] = &digests[..] else { panic!("two digests, newest first: {digests:?}") };
    for digest in [first, second] {
        assert_eq!(digest["counts"]["received"], 1, "{digest}");
        assert_eq!(digest["late"], true, "{digest}");
    }
    assert_eq!(at(second, "window_start"), at(first, "window_end"), "{digests:?}");
    app.end().await;
}
