//! What the service counts of itself, and the messages in quarantine, read. Writing them is `intake`'s.

use super::{StoreError, from_ms, to_ms};
use chrono::{DateTime, Utc};
use sqlx::sqlite::SqliteRow;
use sqlx::{Row, SqlitePool};

/// Totals since the store was made, and how far intake has come.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Totals {
    /// Events, each counted once.
    pub events: i64,
    /// Events that were published again.
    pub duplicates: i64,
    /// Messages that can't be read.
    pub quarantined: i64,
    /// Arrival of the newest committed message; none before the first.
    pub watermark: Option<DateTime<Utc>>,
}

/// Reads the totals.
///
/// # Errors
/// When the database refuses.
pub async fn totals(pool: &SqlitePool) -> Result<Totals, StoreError> {
    let rows: Vec<(String, i64)> = sqlx::query_as("SELECT name, value FROM totals").fetch_all(pool).await?;
    let (watermark,): (Option<i64>,) =
        sqlx::query_as("SELECT max(last_arrival_at) FROM streams").fetch_one(pool).await?;
    let value = |name: &str| rows.iter().find(|(n, _)| n == name).map_or(0, |(_, value)| *value);
    Ok(Totals {
        events: value("events"),
        duplicates: value("duplicates"),
        quarantined: value("quarantined"),
        watermark: watermark.map(from_ms),
    })
}

/// Up to where this life of a stream was read; 0 when it is new.
///
/// # Errors
/// When the database refuses.
pub async fn reached(pool: &SqlitePool, stream: &str, made_at: DateTime<Utc>) -> Result<i64, StoreError> {
    let row: Option<(i64,)> = sqlx::query_as("SELECT last_sequence FROM streams WHERE name = ? AND stream_made_at = ?")
        .bind(stream)
        .bind(to_ms(made_at))
        .fetch_optional(pool)
        .await?;
    Ok(row.map_or(0, |(sequence,)| sequence))
}

/// A message in quarantine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Quarantined {
    /// Its row.
    pub id: i64,
    /// Stream that it came from.
    pub stream: String,
    /// Its place there.
    pub sequence: i64,
    /// Its subject.
    pub subject: String,
    /// Its headers, JSON list of name and value.
    pub headers: String,
    /// Stable word.
    pub reason: String,
    /// Sentence for a person.
    pub explanation: String,
    /// When JetStream stored it.
    pub received_at: DateTime<Utc>,
    /// Its bytes.
    pub raw: Vec<u8>,
}

const QUARANTINED: &str =
    "SELECT id, stream, sequence, subject, headers, reason, explanation, received_at, raw FROM quarantine";

fn quarantined(row: &SqliteRow) -> Quarantined {
    Quarantined {
        id: row.get(0),
        stream: row.get(1),
        sequence: row.get(2),
        subject: row.get(3),
        headers: row.get(4),
        reason: row.get(5),
        explanation: row.get(6),
        received_at: from_ms(row.get(7)),
        raw: row.get(8),
    }
}

/// Messages in quarantine with a row number below `before`, newest first, at most `limit`.
///
/// # Errors
/// When the database refuses.
pub async fn list_quarantine(pool: &SqlitePool, before: i64, limit: i64) -> Result<Vec<Quarantined>, StoreError> {
    let sql = format!("{QUARANTINED} WHERE id < ? ORDER BY id DESC LIMIT ?");
    let rows = sqlx::query(sqlx::AssertSqlSafe(sql)).bind(before).bind(limit).fetch_all(pool).await?;
    Ok(rows.iter().map(quarantined).collect())
}

/// One message in quarantine.
///
/// # Errors
/// When the database refuses.
pub async fn get_quarantined(pool: &SqlitePool, id: i64) -> Result<Option<Quarantined>, StoreError> {
    let sql = format!("{QUARANTINED} WHERE id = ?");
    let row = sqlx::query(sqlx::AssertSqlSafe(sql)).bind(id).fetch_optional(pool).await?;
    Ok(row.as_ref().map(quarantined))
}
