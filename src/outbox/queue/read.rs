//! Rows of the outbox, read: what is due, what is overdue, what lists show. Nothing here writes.

use crate::name::{ReceiverName, WorkflowName};
use crate::outbox::policy::WAIT_MAX;
use crate::outbox::{Entry, EntryId, EntrySummary, MessageKind, NewEntry, State};
use crate::store::{StoreError, from_ms, to_ms};
use chrono::{DateTime, Utc};
use serde::de::DeserializeOwned;
use sqlx::sqlite::SqliteRow;
use sqlx::{Row, SqlitePool};

/// Receivers that something waits for, due or not.
///
/// # Errors
/// When the database refuses.
pub async fn waiting_receivers(reader: &SqlitePool) -> Result<Vec<ReceiverName>, StoreError> {
    // One seek a receiver, however long their queues are.
    let sql = "WITH RECURSIVE waiting (receiver) AS ( \
                 SELECT min(receiver) FROM outbox WHERE state = 'pending' \
                 UNION ALL \
                 SELECT (SELECT min(o.receiver) FROM outbox o WHERE o.state = 'pending' AND o.receiver > waiting.receiver) \
                 FROM waiting WHERE waiting.receiver IS NOT NULL) \
               SELECT receiver FROM waiting WHERE receiver IS NOT NULL";
    let rows = sqlx::query(sql).fetch_all(reader).await?;
    rows.iter().map(|row| Ok(ReceiverName::new(row.try_get::<String, _>(0)?))).collect()
}

/// Which tries a receiver can take now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Admit {
    /// Any.
    All,
    /// First tries only: it has had its retries of this minute.
    FirstTries,
}

/// The next entry of a receiver, by priority, then by how long it has been due; with its mailbox, when it has its own.
/// What is due later than any wait counts as due: the clock has been set back since.
///
/// # Errors
/// When the database refuses.
pub async fn next_due(
    reader: &SqlitePool,
    receiver: &ReceiverName,
    admit: Admit,
    now: DateTime<Utc>,
) -> Result<Option<(EntryId, Option<String>)>, StoreError> {
    let sql = "SELECT id, address FROM outbox WHERE state = 'pending' AND receiver = ? \
               AND (due_at <= ? OR due_at > ?) AND lease_owner IS NULL AND attempts <= ? ORDER BY priority, due_at, id LIMIT 1";
    let attempts_max = match admit {
        Admit::All => i64::MAX,
        Admit::FirstTries => 0,
    };
    let query =
        sqlx::query(sql).bind(receiver.as_str()).bind(to_ms(now)).bind(to_ms(now + WAIT_MAX)).bind(attempts_max);
    let row = query.fetch_optional(reader).await?;
    row.map(|row| Ok((EntryId(row.try_get(0)?), row.try_get(1)?))).transpose()
}

/// When the earliest unclaimed entry of a receiver is due.
///
/// # Errors
/// When the database refuses.
pub async fn earliest_due(reader: &SqlitePool, receiver: &ReceiverName) -> Result<Option<DateTime<Utc>>, StoreError> {
    let sql = "SELECT min(due_at) FROM outbox WHERE state = 'pending' AND receiver = ? AND lease_owner IS NULL";
    let at: Option<i64> = sqlx::query(sql).bind(receiver.as_str()).fetch_one(reader).await?.try_get(0)?;
    Ok(at.map(from_ms))
}

/// Urgent entries of a receiver that are of the given age, not delivered, and have no copy at a fallback; at most 20.
///
/// # Errors
/// When the database refuses or a row can't be read.
pub async fn overdue(
    reader: &SqlitePool,
    receiver: &ReceiverName,
    created_before: DateTime<Utc>,
) -> Result<Vec<Entry>, StoreError> {
    let sql = "SELECT * FROM outbox WHERE state = 'pending' AND receiver = ? AND priority <= ? AND fallback_id IS NULL \
               AND created_at <= ? ORDER BY id LIMIT 20";
    let priority = MessageKind::Escalation.priority();
    let query = sqlx::query(sql).bind(receiver.as_str()).bind(priority).bind(to_ms(created_before));
    query.fetch_all(reader).await?.iter().map(read_entry).collect()
}

/// How much waits, for metrics.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PendingCounts {
    /// Pending entries.
    pub pending_count: u64,
    /// When the oldest of them was decided.
    pub oldest_at: Option<DateTime<Utc>>,
}

/// Counts what waits.
///
/// # Errors
/// When the database refuses.
pub async fn pending_counts(reader: &SqlitePool) -> Result<PendingCounts, StoreError> {
    let sql = "SELECT count(*), min(created_at) FROM outbox WHERE state = 'pending'";
    let (pending, oldest): (i64, Option<i64>) = sqlx::query_as(sql).fetch_one(reader).await?;
    Ok(PendingCounts { pending_count: u64::try_from(pending).unwrap_or(0), oldest_at: oldest.map(from_ms) })
}

/// Entries, newest first, before the cursor.
///
/// # Errors
/// When the database refuses or a row can't be read.
pub async fn list(reader: &SqlitePool, cursor: Option<EntryId>, limit: u32) -> Result<Vec<EntrySummary>, StoreError> {
    let sql = "SELECT id, number, kind, receiver, address, workflow, state, reason, attempts, due_at, created_at, sent_at, \
               last_error, fallback_of, fallback_id FROM outbox WHERE id < ? ORDER BY id DESC LIMIT ?";
    let rows = sqlx::query(sql).bind(cursor.map_or(i64::MAX, |c| c.0)).bind(limit).fetch_all(reader).await?;
    rows.iter().map(read_summary).collect()
}

/// One entry, whole.
///
/// # Errors
/// When the database refuses or the row can't be read.
pub async fn find(reader: &SqlitePool, id: EntryId) -> Result<Option<Entry>, StoreError> {
    let row = sqlx::query("SELECT * FROM outbox WHERE id = ?").bind(id.0).fetch_optional(reader).await?;
    row.as_ref().map(read_entry).transpose()
}

/// The notification number that the next message will have, without taking it.
///
/// # Errors
/// When the database refuses.
pub async fn peek_number(reader: &SqlitePool) -> Result<i64, StoreError> {
    let sql = "SELECT CAST(value AS INTEGER) FROM settings WHERE name = 'next_number'";
    Ok(sqlx::query(sql).fetch_one(reader).await?.try_get(0)?)
}

fn read_summary(row: &SqliteRow) -> Result<EntrySummary, StoreError> {
    Ok(EntrySummary {
        id: EntryId(row.try_get("id")?),
        number: row.try_get("number")?,
        kind: kind(row)?,
        receiver: ReceiverName::new(row.try_get::<String, _>("receiver")?),
        address: row.try_get("address")?,
        workflow: row.try_get::<Option<String>, _>("workflow")?.map(WorkflowName::new),
        state: state(row)?,
        reason: row.try_get("reason")?,
        attempts: count(row, "attempts")?,
        due_at: from_ms(row.try_get("due_at")?),
        created_at: from_ms(row.try_get("created_at")?),
        sent_at: row.try_get::<Option<i64>, _>("sent_at")?.map(from_ms),
        last_error: row.try_get("last_error")?,
        fallback_of: row.try_get::<Option<i64>, _>("fallback_of")?.map(EntryId),
        fallback_id: row.try_get::<Option<i64>, _>("fallback_id")?.map(EntryId),
    })
}

pub(super) fn read_entry(row: &SqliteRow) -> Result<Entry, StoreError> {
    let summary = read_summary(row)?;
    let new = NewEntry {
        number: summary.number,
        kind: summary.kind,
        receiver: summary.receiver,
        address: summary.address,
        workflow: summary.workflow,
        incident_id: row.try_get("incident_id")?,
        digest_id: row.try_get("digest_id")?,
        template: row.try_get("template")?,
        view: json(row, "view", "outbox.view")?,
        content: json(row, "content", "outbox.content")?,
        fallback_of: summary.fallback_of,
        due_at: summary.due_at,
        created_at: summary.created_at,
    };
    Ok(Entry {
        id: summary.id,
        new,
        state: summary.state,
        attempts: summary.attempts,
        sent_at: summary.sent_at,
        last_error: summary.last_error,
        unsure_attempts: count(row, "unsure_attempts")?,
        fallback_id: summary.fallback_id,
    })
}

fn kind(row: &SqliteRow) -> Result<MessageKind, StoreError> {
    let word: String = row.try_get("kind")?;
    MessageKind::parse(&word).ok_or_else(|| StoreError::Corrupt { what: "outbox.kind", why: word })
}

fn state(row: &SqliteRow) -> Result<State, StoreError> {
    let word: String = row.try_get("state")?;
    State::parse(&word).ok_or_else(|| StoreError::Corrupt { what: "outbox.state", why: word })
}

pub(super) fn count(row: &SqliteRow, column: &str) -> Result<u32, StoreError> {
    Ok(u32::try_from(row.try_get::<i64, _>(column)?).unwrap_or(u32::MAX))
}

fn json<T: DeserializeOwned>(row: &SqliteRow, column: &str, what: &'static str) -> Result<T, StoreError> {
    let text: String = row.try_get(column)?;
    serde_json::from_str(&text).map_err(|e| StoreError::Corrupt { what, why: e.to_string() })
}
