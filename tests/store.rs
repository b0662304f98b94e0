//! The store as a file: made from nothing, opened again, used by one process, and left by a kill.

#![allow(clippy::unwrap_used, reason = "helpers of tests fail the test")]

use matins::store::{Store, StoreError};
use std::fs;
use std::path::Path;
use tempfile::TempDir;

fn url(dir: &Path) -> String {
    format!("sqlite://{}", dir.join("matins.db").display())
}

async fn names(store: &Store, sql: &'static str) -> Vec<String> {
    let rows: Vec<(String,)> = sqlx::query_as(sql).fetch_all(store.reader()).await.unwrap();
    rows.into_iter().map(|(name,)| name).collect()
}

async fn write(store: &Store, name: &str, value: &str) {
    let mut tx = store.begin().await.unwrap();
    let insert = sqlx::query("INSERT INTO settings (name, value) VALUES (?, ?)").bind(name).bind(value);
    insert.execute(&mut *tx).await.unwrap();
    tx.commit().await.unwrap();
}

#[tokio::test]
async fn every_migration_runs_on_an_empty_file_and_changes_nothing_the_second_time() {
    let dir = TempDir::new().unwrap();
    let schema = "SELECT sql FROM sqlite_schema WHERE sql IS NOT NULL ORDER BY name";
    let store = Store::open(&url(dir.path())).await.unwrap();
    let first = names(&store, schema).await;
    let run = names(&store, "SELECT CAST(version AS TEXT) FROM _sqlx_migrations WHERE success ORDER BY version").await;
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("migrations/sqlite");
    assert_eq!(run.len(), fs::read_dir(folder).unwrap().count(), "each file has run: {run:?}");
    write(&store, "kept", "over the second start").await;
    store.close().await;
    drop(store);

    let store = Store::open(&url(dir.path())).await.unwrap();
    assert_eq!(names(&store, schema).await, first);
    assert_eq!(names(&store, "SELECT value FROM settings WHERE name = 'kept'").await, ["over the second start"]);
    assert_eq!(names(&store, "PRAGMA foreign_key_check").await, Vec::<String>::new());
}

#[tokio::test]
async fn a_file_serves_one_store_at_a_time() {
    let dir = TempDir::new().unwrap();
    let store = Store::open(&url(dir.path())).await.unwrap();
    let refused = Store::open(&url(dir.path())).await.unwrap_err();
    assert!(matches!(refused, StoreError::Locked(_)), "{refused}");
    assert!(refused.to_string().contains("in use by another matins"), "{refused}");
    store.close().await;
    drop(store);
    Store::open(&url(dir.path())).await.unwrap();
}

#[tokio::test]
async fn a_store_of_a_newer_version_is_refused_and_left_as_it_is() {
    let dir = TempDir::new().unwrap();
    let store = Store::open(&url(dir.path())).await.unwrap();
    let mut tx = store.begin().await.unwrap();
    sqlx::query(
        "INSERT INTO _sqlx_migrations (version, description, success, checksum, execution_time) \
         VALUES (9999, 'from the future', TRUE, x'00', 0)",
    )
    .execute(&mut *tx)
    .await
    .unwrap();
    tx.commit().await.unwrap();
    store.close().await;
    drop(store);
    let refused = Store::open(&url(dir.path())).await.unwrap_err();
    assert!(matches!(refused, StoreError::Migrate(_)) && refused.to_string().contains("9999"), "{refused}");
}

#[tokio::test]
async fn a_kill_in_the_middle_of_a_transaction_leaves_what_was_committed_and_nothing_else() {
    let (dir, left) = (TempDir::new().unwrap(), TempDir::new().unwrap());
    let store = Store::open(&url(dir.path())).await.unwrap();
    write(&store, "committed", "yes").await;
    let mut tx = store.begin().await.unwrap();
    // More than the cache holds, so that pages of the open transaction are in the files.
    for n in 0..400 {
        let insert = sqlx::query("INSERT INTO settings (name, value) VALUES (?, ?)");
        insert.bind(format!("open-{n}")).bind("x".repeat(100_000)).execute(&mut *tx).await.unwrap();
    }
    // What a kill at this instant would leave.
    let mut copied = 0;
    for entry in fs::read_dir(dir.path()).unwrap() {
        let entry = entry.unwrap();
        copied += fs::copy(entry.path(), left.path().join(entry.file_name())).unwrap();
    }
    assert!(copied > 10_000_000, "the open transaction has reached the files: {copied} bytes");

    let reopened = Store::open(&url(left.path())).await.unwrap();
    assert_eq!(names(&reopened, "SELECT value FROM settings WHERE name = 'committed'").await, ["yes"]);
    assert_eq!(names(&reopened, "SELECT name FROM settings WHERE name LIKE 'open-%'").await, Vec::<String>::new());
    assert_eq!(names(&reopened, "PRAGMA integrity_check").await, ["ok"]);
    write(&reopened, "after", "the kill").await;
    tx.commit().await.unwrap();
    assert_eq!(names(&store, "SELECT name FROM settings WHERE name LIKE 'open-%'").await.len(), 400);
}
