//! The ledger of digests: how far each (digest, receiver) is told, and the frozen snapshot of each window.

use super::{ReadConn, StoreError, WriteTx, from_ms, to_ms};
use crate::name::WorkflowName;
use chrono::{DateTime, Utc};
use sqlx::sqlite::SqliteRow;
use sqlx::{Row, SqliteConnection, SqlitePool};
use std::collections::BTreeMap;

/// How far a (digest, receiver) is told.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cover {
    /// End of the last window, start of the next.
    pub until: DateTime<Utc>,
    /// Schedule and zone that were last seen in config.
    pub schedule: String,
    /// Since when they are in force; none when they always were.
    pub in_force_since: Option<DateTime<Utc>>,
    /// Since when config no longer names it, with nobody in its place.
    pub left_at: Option<DateTime<Utc>>,
}

/// The cover of (digest, receiver); none when it was never looked at.
pub async fn cover(conn: &mut ReadConn, digest: &str, receiver: &str) -> Result<Option<Cover>, StoreError> {
    Ok(covers(conn).await?.remove(&(digest.to_owned(), receiver.to_owned())))
}

/// Covers by digest and receiver.
pub type Covers = BTreeMap<(String, String), Cover>;

/// Every cover.
pub async fn covers(conn: &mut ReadConn) -> Result<Covers, StoreError> {
    if let Some(played) = conn.played() {
        return Ok(played.ledger.covers().clone());
    }
    let rows =
        sqlx::query("SELECT digest, receiver, covered_until, schedule, in_force_since, left_at FROM digest_cover")
            .fetch_all(&mut **conn)
            .await?;
    let cover = |row: &SqliteRow| Cover {
        until: from_ms(row.get(2)),
        schedule: row.get(3),
        in_force_since: row.get::<Option<i64>, _>(4).map(from_ms),
        left_at: row.get::<Option<i64>, _>(5).map(from_ms),
    };
    Ok(rows.iter().map(|row| ((row.get(0), row.get(1)), cover(row))).collect())
}

/// Starts the first window of (digest, receiver).
pub async fn begin_cover(tx: &mut WriteTx, digest: &str, receiver: &str, cover: &Cover) -> Result<(), StoreError> {
    if let Some(played) = tx.played() {
        played.ledger.begin_cover((digest.to_owned(), receiver.to_owned()), cover);
        played.counters.note_told(cover.until);
        return Ok(());
    }
    sqlx::query(
        "INSERT INTO digest_cover (digest, receiver, covered_until, schedule, in_force_since) VALUES (?, ?, ?, ?, ?) ON CONFLICT DO NOTHING",
    )
    .bind(digest)
    .bind(receiver)
    .bind(to_ms(cover.until))
    .bind(&cover.schedule)
    .bind(cover.in_force_since.map(to_ms))
    .execute(&mut **tx)
    .await?;
    Ok(())
}

/// Another schedule is in force since `at`.
pub async fn note_schedule(
    tx: &mut SqliteConnection,
    digest: &str,
    receiver: &str,
    schedule: &str,
    at: DateTime<Utc>,
) -> Result<(), StoreError> {
    sqlx::query("UPDATE digest_cover SET schedule = ?3, in_force_since = ?4 WHERE digest = ?1 AND receiver = ?2")
        .bind(digest)
        .bind(receiver)
        .bind(schedule)
        .bind(to_ms(at))
        .execute(tx)
        .await?;
    Ok(())
}

/// Moves the cover from `from` to `to`. False when somebody else moved it: then this window is not ours.
pub async fn advance_cover(
    tx: &mut WriteTx,
    digest: &str,
    receiver: &str,
    from: DateTime<Utc>,
    to: DateTime<Utc>,
) -> Result<bool, StoreError> {
    if let Some(played) = tx.played() {
        let is_moved = played.ledger.advance_cover(&(digest.to_owned(), receiver.to_owned()), from, to);
        if is_moved {
            played.counters.note_told(to);
        }
        return Ok(is_moved);
    }

    let done = sqlx::query(
        "UPDATE digest_cover SET covered_until = ?4 WHERE digest = ?1 AND receiver = ?2 AND covered_until = ?3",
    )
    .bind(digest)
    .bind(receiver)
    .bind(to_ms(from))
    .bind(to_ms(to))
    .execute(&mut **tx)
    .await?;
    Ok(done.rows_affected() == 1)
}

/// Ends a cover whose window goes on elsewhere.
pub async fn end_cover(tx: &mut SqliteConnection, digest: &str, receiver: &str) -> Result<(), StoreError> {
    sqlx::query("DELETE FROM digest_cover WHERE digest = ? AND receiver = ?")
        .bind(digest)
        .bind(receiver)
        .execute(tx)
        .await?;
    Ok(())
}

/// Notes since when config does not name (digest, receiver); none when it does.
pub async fn note_left(
    tx: &mut SqliteConnection,
    digest: &str,
    receiver: &str,
    at: Option<DateTime<Utc>>,
) -> Result<(), StoreError> {
    sqlx::query("UPDATE digest_cover SET left_at = ?3 WHERE digest = ?1 AND receiver = ?2")
        .bind(digest)
        .bind(receiver)
        .bind(at.map(to_ms))
        .execute(tx)
        .await?;
    Ok(())
}

/// What was decided to be told by `old` is for `new` as well: what is not told yet, and dead letters that stay open.
pub async fn hand_over(
    tx: &mut SqliteConnection,
    old: &(String, String),
    new: &(String, String),
) -> Result<(), StoreError> {
    sqlx::query(
        "INSERT INTO decision_targets (digest, receiver, decision_id) \
         SELECT ?3, ?4, decision_id FROM decision_targets WHERE digest = ?1 AND receiver = ?2 ON CONFLICT DO NOTHING",
    )
    .bind(&old.0)
    .bind(&old.1)
    .bind(&new.0)
    .bind(&new.1)
    .execute(tx)
    .await?;
    Ok(())
}

/// Events since an instant that a digest was to tell a receiver, by workflow; what a silence hides is not counted.
pub async fn events_since(
    tx: &mut SqliteConnection,
    digest: &str,
    receiver: &str,
    since: DateTime<Utc>,
) -> Result<Vec<(WorkflowName, u64)>, StoreError> {
    let rows: Vec<(String, i64)> = sqlx::query_as(
        "SELECT w.name, sum(c.event_count) FROM counters c \
         JOIN decision_targets t ON t.digest = ?1 AND t.receiver = ?2 AND t.decision_id = c.decision_id \
         JOIN decisions d ON d.id = c.decision_id AND d.fate <> 'silenced' \
         JOIN causes k ON k.id = c.cause_id JOIN workflows w ON w.id = k.workflow_id \
         WHERE c.minute >= ?3 GROUP BY w.name ORDER BY w.name",
    )
    .bind(digest)
    .bind(receiver)
    .bind(to_ms(since))
    .fetch_all(tx)
    .await?;
    Ok(rows.into_iter().map(|(name, count)| (WorkflowName::new(name), count.unsigned_abs())).collect())
}

/// A composed window.
#[derive(Clone, Debug, PartialEq)]
pub struct DigestRow {
    /// Its row; 0 before it is stored.
    pub id: i64,
    /// Name of the digest.
    pub digest: String,
    /// Receiver, `<receiver>:<mailbox>` for an owner's own.
    pub receiver: String,
    /// Start of the window.
    pub window_start: DateTime<Utc>,
    /// End of the window, not inside.
    pub window_end: DateTime<Utc>,
    /// When it should have gone out.
    pub due_at: DateTime<Utc>,
    /// When it was composed.
    pub composed_at: DateTime<Utc>,
    /// `enqueued`, or `skipped` when it was empty.
    pub state: String,
    /// Whether it came late.
    pub late: bool,
    /// What was missing.
    pub incomplete: Option<String>,
    /// Its notification number.
    pub number: Option<i64>,
    /// The footer, JSON.
    pub counts: String,
    /// The frozen view, JSON.
    pub view: String,
}

/// Keeps a composed window.
pub async fn insert(tx: &mut WriteTx, row: &DigestRow) -> Result<i64, StoreError> {
    if let Some(played) = tx.played() {
        return Ok(played.ledger.insert_digest(row));
    }
    let (id,): (i64,) = sqlx::query_as(
        "INSERT INTO digests (digest, receiver, window_start, window_end, due_at, composed_at, state, late, incomplete, number, counts, view) \
         VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) RETURNING id",
    )
    .bind(&row.digest)
    .bind(&row.receiver)
    .bind(to_ms(row.window_start))
    .bind(to_ms(row.window_end))
    .bind(to_ms(row.due_at))
    .bind(to_ms(row.composed_at))
    .bind(&row.state)
    .bind(row.late)
    .bind(&row.incomplete)
    .bind(row.number)
    .bind(&row.counts)
    .bind(&row.view)
    .fetch_one(&mut **tx)
    .await?;
    Ok(id)
}

const DIGEST: &str = "SELECT id, digest, receiver, window_start, window_end, due_at, composed_at, state, late, incomplete, number, counts, view FROM digests";

fn digest(row: &SqliteRow) -> DigestRow {
    DigestRow {
        id: row.get(0),
        digest: row.get(1),
        receiver: row.get(2),
        window_start: from_ms(row.get(3)),
        window_end: from_ms(row.get(4)),
        due_at: from_ms(row.get(5)),
        composed_at: from_ms(row.get(6)),
        state: row.get(7),
        late: row.get(8),
        incomplete: row.get(9),
        number: row.get(10),
        counts: row.get(11),
        view: row.get(12),
    }
}

/// Windows with a row number below `before`, newest first, at most `limit`.
pub async fn list(pool: &SqlitePool, before: i64, limit: i64) -> Result<Vec<DigestRow>, StoreError> {
    // A list does not show what digests say, which may be much.
    let sql = format!("{} WHERE id < ? ORDER BY id DESC LIMIT ?", DIGEST.replace("counts, view", "counts, ''"));
    let rows = sqlx::query(sqlx::AssertSqlSafe(sql)).bind(before).bind(limit).fetch_all(pool).await?;
    Ok(rows.iter().map(digest).collect())
}

/// One window.
pub async fn get(pool: &SqlitePool, id: i64) -> Result<Option<DigestRow>, StoreError> {
    let sql = format!("{DIGEST} WHERE id = ?");
    let row = sqlx::query(sqlx::AssertSqlSafe(sql)).bind(id).fetch_optional(pool).await?;
    Ok(row.as_ref().map(digest))
}

/// The window of (digest, receiver) that holds `at`, once it was composed.
pub async fn covering(
    pool: &SqlitePool,
    name: &str,
    receiver: &str,
    at: DateTime<Utc>,
) -> Result<Option<DigestRow>, StoreError> {
    let sql = format!(
        "{DIGEST} WHERE digest = ?1 AND receiver = ?2 AND window_end > ?3 AND window_start <= ?3 ORDER BY window_end LIMIT 1"
    );
    let query = sqlx::query(sqlx::AssertSqlSafe(sql)).bind(name).bind(receiver).bind(to_ms(at));
    Ok(query.fetch_optional(pool).await?.as_ref().map(digest))
}

/// When each digest was last composed and enqueued.
pub async fn last_success(pool: &SqlitePool) -> Result<Vec<(String, DateTime<Utc>)>, StoreError> {
    let rows: Vec<(String, i64)> =
        sqlx::query_as("SELECT digest, max(composed_at) FROM digests GROUP BY digest ORDER BY digest")
            .fetch_all(pool)
            .await?;
    Ok(rows.into_iter().map(|(name, at)| (name, from_ms(at))).collect())
}
