//! Reads what digests are composed from, once for all that cover the same window. SQL adds up by cause and decision; whom a number is
//! for is decided from the catalogue, and sentences, orders and caps are `digest::compose`'s work.

use super::catalogue::{Oldest, Pair};
use super::{StoreError, from_ms, incidents, to_ms};
use crate::digest::{UnreadableLine, Window};
use crate::event::Fingerprint;
use crate::incident::Incident;
use crate::name::WorkflowName;
use chrono::{DateTime, TimeDelta, Utc};
use serde::de::DeserializeOwned;
use sqlx::{Row, SqliteConnection};
use std::collections::BTreeMap;
use std::sync::Arc;

/// A list that SQLite wrote as JSON: one row, because each row is a step between two threads.
fn list<T: DeserializeOwned>(text: &str) -> Result<Vec<T>, StoreError> {
    serde_json::from_str(text).map_err(|e| StoreError::Corrupt { what: "list", why: e.to_string() })
}

/// Events of one cause and decision in one bucket of a window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Count {
    /// Start of the bucket.
    pub at: DateTime<Utc>,
    /// What is counted, and for whom.
    pub pair: Pair,
    /// Events.
    pub events: u64,
    /// Good runs that outcomes reported.
    pub ok: u64,
    /// Failed runs that outcomes reported.
    pub failed: u64,
    /// Times of recoveries added up, in ms.
    pub took_ms: u64,
    /// Recoveries that said how long they took.
    pub took: u64,
    /// Events that arrived an hour or more after they happened.
    pub late: u64,
    /// Arrival of the first, to the minute.
    pub first_at: DateTime<Utc>,
}

impl Count {
    /// Adds what was counted for the same cause in the same bucket by another decision.
    pub fn add(&mut self, other: &Self) {
        self.events += other.events;
        self.ok += other.ok;
        self.failed += other.failed;
        self.took_ms += other.took_ms;
        self.took += other.took;
        self.late += other.late;
        self.first_at = self.first_at.min(other.first_at);
    }
}

/// Width of the buckets that plots of a window are drawn from; they begin where the window does.
pub fn bucket_of(window: Window) -> TimeDelta {
    let is_long = window.end_at - window.start_at > TimeDelta::hours(6);
    if is_long { TimeDelta::hours(1) } else { TimeDelta::minutes(5) }
}

/// Adds up the counters of a window, in the order of bucket, cause and decision.
pub async fn counts(conn: &mut SqliteConnection, window: Window, bucket: TimeDelta) -> Result<Vec<Count>, StoreError> {
    let (text,): (String,) = sqlx::query_as(
        "SELECT json_group_array(json_array(at, cause_id, decision_id, events, ok, failed, took_ms, took, late, first)) FROM ( \
         SELECT ?1 + (minute - ?1) / ?3 * ?3 AS at, cause_id, decision_id, sum(event_count) AS events, sum(ok_count) AS ok, \
         sum(failed_count) AS failed, sum(took_ms) AS took_ms, sum(took_count) AS took, sum(late_count) AS late, min(minute) AS first \
         FROM counters WHERE minute >= ?1 AND minute < ?2 GROUP BY 1, 2, 3 ORDER BY 1, 2, 3)",
    )
    .bind(to_ms(window.start_at))
    .bind(to_ms(window.end_at))
    .bind(bucket.num_milliseconds())
    .fetch_one(conn)
    .await?;
    type Row = (i64, i64, i64, u64, u64, u64, u64, u64, u64, i64);
    let rows = list::<Row>(&text)?.into_iter();
    let count = |(at, cause, decision, events, ok, failed, took_ms, took, late, first): Row| Count {
        at: from_ms(at),
        pair: (cause, decision),
        events,
        ok,
        failed,
        took_ms,
        took,
        late,
        first_at: from_ms(first),
    };
    Ok(rows.map(count).collect())
}

/// Which change of dead letters is counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LetterChange {
    /// They came.
    Opened,
    /// They were resolved.
    Resolved,
}

/// Dead letters that came, or were resolved, in one bucket of a window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LetterChanges {
    /// Start of the bucket.
    pub at: DateTime<Utc>,
    /// Their cause and decision.
    pub pair: Pair,
    /// How many.
    pub count: u64,
    /// Of those, after a redrive.
    pub redriven_count: u64,
}

/// Adds up dead letters that came, or were resolved, in a window.
pub async fn letter_changes(
    conn: &mut SqliteConnection,
    window: Window,
    bucket: TimeDelta,
    change: LetterChange,
) -> Result<Vec<LetterChanges>, StoreError> {
    let sql = match change {
        LetterChange::Opened => {
            "SELECT json_group_array(json_array(at, cause_id, decision_id, n, redriven)) FROM ( \
             SELECT ?1 + (dead_lettered_at - ?1) / ?3 * ?3 AS at, cause_id, decision_id, count(*) AS n, sum(redrive_count > 0) AS redriven \
             FROM dead_letters INDEXED BY dead_letters_arrived WHERE dead_lettered_at >= ?1 AND dead_lettered_at < ?2 GROUP BY 1, 2, 3)"
        }
        LetterChange::Resolved => {
            "SELECT json_group_array(json_array(at, cause_id, decision_id, n, redriven)) FROM ( \
             SELECT ?1 + (resolved_at - ?1) / ?3 * ?3 AS at, cause_id, decision_id, count(*) AS n, sum(redrive_count > 0) AS redriven \
             FROM dead_letters INDEXED BY dead_letters_resolved WHERE resolved_at >= ?1 AND resolved_at < ?2 GROUP BY 1, 2, 3)"
        }
    };
    let (text,): (String,) = sqlx::query_as(sql)
        .bind(to_ms(window.start_at))
        .bind(to_ms(window.end_at))
        .bind(bucket.num_milliseconds())
        .fetch_one(conn)
        .await?;
    let rows = list::<(i64, i64, i64, u64, u64)>(&text)?.into_iter();
    Ok(rows
        .map(|(at, cause, decision, count, redriven_count)| LetterChanges {
            at: from_ms(at),
            pair: (cause, decision),
            count,
            redriven_count,
        })
        .collect())
}

/// How the dead letters that are open now differ from those that were open at the end of a window.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LetterShift {
    /// Come in it and open now, by cause and decision.
    pub fresh: BTreeMap<Pair, u64>,
    /// Come since its end, and open now.
    pub later: BTreeMap<Pair, u64>,
    /// Open at its end, and resolved since.
    pub gone: Vec<(Pair, Oldest)>,
}

/// Reads how the dead letters of the end of a window differ from those of now.
pub async fn letter_shift(conn: &mut SqliteConnection, window: Window) -> Result<LetterShift, StoreError> {
    let (text,): (String,) = sqlx::query_as(
        "SELECT json_group_array(json_array(dead_lettered_at >= ?2, cause_id, decision_id, n)) FROM ( \
         SELECT dead_lettered_at, cause_id, decision_id, count(*) AS n FROM dead_letters INDEXED BY dead_letters_arrived \
         WHERE dead_lettered_at >= ?1 AND resolved_at IS NULL \
         GROUP BY dead_lettered_at >= ?2, cause_id, decision_id)",
    )
    .bind(to_ms(window.start_at))
    .bind(to_ms(window.end_at))
    .fetch_one(&mut *conn)
    .await?;
    let mut shift = LetterShift::default();
    for (is_later, cause, decision, count) in list::<(u8, i64, i64, u64)>(&text)? {
        let counts = if is_later == 1 { &mut shift.later } else { &mut shift.fresh };
        counts.insert((cause, decision), count);
    }
    let rows: Vec<(i64, i64, i64, i64, Option<String>)> = sqlx::query_as(
        "SELECT cause_id, decision_id, dead_lettered_at, id, item FROM dead_letters INDEXED BY dead_letters_resolved \
         WHERE resolved_at >= ?1 AND dead_lettered_at < ?1 ORDER BY id",
    )
    .bind(to_ms(window.end_at))
    .fetch_all(conn)
    .await?;
    shift.gone = rows
        .into_iter()
        .map(|(cause, decision, at, id, item)| ((cause, decision), Oldest { at: from_ms(at), id, item }))
        .collect();
    Ok(shift)
}

/// Workflows of the newest letters for a digest and receiver that arrived before the end of a window, newest first, at most 200.
pub async fn last_letters(
    conn: &mut SqliteConnection,
    digest: &str,
    receiver: &str,
    end_at: DateTime<Utc>,
) -> Result<Vec<WorkflowName>, StoreError> {
    let rows: Vec<(String,)> = sqlx::query_as(
        "SELECT w.name FROM dead_letters d JOIN causes k ON k.id = d.cause_id JOIN workflows w ON w.id = k.workflow_id \
         JOIN decision_targets t ON t.digest = ?1 AND t.receiver = ?2 AND t.decision_id = d.decision_id \
         WHERE d.dead_lettered_at < ?3 ORDER BY d.dead_lettered_at DESC, d.id DESC LIMIT 200",
    )
    .bind(digest)
    .bind(receiver)
    .bind(to_ms(end_at))
    .fetch_all(conn)
    .await?;
    Ok(rows.into_iter().map(|(name,)| WorkflowName::new(name)).collect())
}

/// Causes that came back in a window after they were resolved, and when that was.
pub async fn regressed(
    conn: &mut SqliteConnection,
    window: Window,
) -> Result<BTreeMap<Fingerprint, DateTime<Utc>>, StoreError> {
    let rows: Vec<(String, i64)> = sqlx::query_as(
        "SELECT fingerprint, max(regressed_from) FROM causes INDEXED BY causes_regressed \
         WHERE regressed_at >= ? AND regressed_at < ? AND regressed_from IS NOT NULL AND event_type = 'failure' GROUP BY fingerprint",
    )
    .bind(to_ms(window.start_at))
    .bind(to_ms(window.end_at))
    .fetch_all(conn)
    .await?;
    Ok(rows.into_iter().map(|(fingerprint, at)| (Fingerprint(fingerprint), from_ms(at))).collect())
}

/// Unreadable messages of a window, by subject.
pub async fn unreadable(conn: &mut SqliteConnection, window: Window) -> Result<Vec<UnreadableLine>, StoreError> {
    let rows: Vec<(String, i64)> = sqlx::query_as(
        "SELECT subject, count(*) FROM quarantine WHERE received_at >= ? AND received_at < ? GROUP BY subject ORDER BY 2 DESC, 1",
    )
    .bind(to_ms(window.start_at))
    .bind(to_ms(window.end_at))
    .fetch_all(conn)
    .await?;
    Ok(rows.into_iter().map(|(subject, count)| UnreadableLine { subject, count: count.unsigned_abs() }).collect())
}

/// An incident, and what digests need beside it.
#[derive(Clone, Debug)]
pub struct OpenIncident {
    /// As it is now.
    pub incident: Arc<Incident>,
    /// Its open dead letters, now.
    pub open_letters: u64,
    /// The decisions of its events: whoever hears of them hears of it.
    pub decisions: Vec<i64>,
}

/// Incidents that were open at some instant of a window, oldest first.
pub async fn incidents(
    conn: &mut SqliteConnection,
    known: &mut incidents::Known,
    window: Window,
) -> Result<Vec<OpenIncident>, StoreError> {
    let rows = sqlx::query(
        "SELECT i.body, coalesce(l.open_count, 0), (SELECT json_group_array(d.id) FROM decisions d INDEXED BY decisions_paged \
         WHERE d.fate = 'paged' AND d.fate_id = CAST(i.id AS TEXT)) \
         FROM incidents i LEFT JOIN incident_letters l ON l.incident_id = i.id \
         WHERE i.opened_at < ?2 AND (i.resolved_at IS NULL OR i.resolved_at >= ?1) ORDER BY i.id",
    )
    .bind(to_ms(window.start_at))
    .bind(to_ms(window.end_at))
    .fetch_all(conn)
    .await?;
    let mut found = Vec::with_capacity(rows.len());
    for row in &rows {
        let Some(incident) = known.read(row.get(0)) else { continue };
        found.push(OpenIncident {
            incident,
            open_letters: row.get::<i64, _>(1).unsigned_abs(),
            decisions: list(row.get(2))?,
        });
    }
    Ok(found)
}

/// When each workflow was last heard.
pub async fn last_heard(conn: &mut SqliteConnection) -> Result<BTreeMap<WorkflowName, DateTime<Utc>>, StoreError> {
    let sql = "SELECT json_group_array(json_array(name, last_heard_at)) FROM workflows";
    let (text,): (String,) = sqlx::query_as(sql).fetch_one(conn).await?;
    let rows = list::<(String, i64)>(&text)?.into_iter();
    Ok(rows.map(|(name, at)| (WorkflowName::new(name), from_ms(at))).collect())
}

/// When the first event ever arrived, to the minute.
pub async fn first_minute(conn: &mut SqliteConnection) -> Result<Option<DateTime<Utc>>, StoreError> {
    let (minute,): (Option<i64>,) = sqlx::query_as("SELECT min(minute) FROM counters").fetch_one(conn).await?;
    Ok(minute.map(from_ms))
}
