//! Writing what came in: events, causes, decisions, quarantine, totals. One transaction a batch.
//! What follows from an event is decided in `ingest`, before and between these statements.

use super::bulk::Bulk;
use super::key::Key;
use super::{StoreError, WriteTx, to_ms};
use crate::event::{Class, Disposition, EventType};
use crate::name::{DigestName, ReceiverName};
use chrono::{DateTime, Utc};
use sqlx::SqliteConnection;
use std::collections::{BTreeSet, HashSet};

/// A row of `events`.
#[derive(Clone, Debug)]
pub struct EventRow<'a> {
    /// Row number, handed out in order of arrival.
    pub seq: i64,
    /// Key of the event's id.
    pub key: Key,
    /// Tells another content under the same id.
    pub content_hash: i64,
    /// When JetStream stored it.
    pub received_at: DateTime<Utc>,
    /// When it happened.
    pub occurred_at: DateTime<Utc>,
    /// What it counts as.
    pub cause_id: i64,
    /// Who was to hear of it.
    pub decision_id: i64,
    /// Why it has its class.
    pub class_rule: &'a str,
    /// The event as redacted JSON.
    pub body: &'a str,
}

/// A row of `causes`, not yet stored.
#[derive(Clone, Debug)]
pub struct NewCause<'a> {
    /// Key of all that makes it a cause of its own.
    pub key: Key,
    /// `v1:…`
    pub fingerprint: &'a str,
    /// Row of its workflow.
    pub workflow_id: i64,
    /// Type of its events.
    pub event_type: EventType,
    /// Their class.
    pub class: Class,
    /// What becomes of them.
    pub disposition: Disposition,
    /// Their step.
    pub step: Option<&'a str>,
    /// Their downstream.
    pub downstream: Option<&'a str>,
    /// Error type or code.
    pub error_type: Option<&'a str>,
    /// Of recoveries: what worked.
    pub strategy: Option<&'a str>,
    /// A message of one of them.
    pub sample: &'a str,
    /// Arrival of the first.
    pub first_seen_at: DateTime<Utc>,
}

/// A row of `decisions`, not yet stored.
#[derive(Clone, Debug)]
pub struct NewDecision<'a> {
    /// Version of the config that decided.
    pub config_version: &'a str,
    /// Routes that matched, JSON list.
    pub routes: &'a str,
    /// Page receivers, JSON list.
    pub page: &'a str,
    /// Digests and receivers.
    pub digests: &'a BTreeSet<(DigestName, ReceiverName)>,
    /// `open`, `silenced` or `paged`.
    pub fate: &'a str,
    /// Silence or incident.
    pub fate_id: &'a str,
    /// Named reason, for `explain`.
    pub reason: &'a str,
}

/// A message that could not be decoded.
#[derive(Clone, Debug)]
pub struct QuarantineRow {
    /// Stream it came from.
    pub stream: String,
    /// Its place there.
    pub sequence: i64,
    /// Its subject.
    pub subject: String,
    /// Its headers, JSON.
    pub headers: String,
    /// Stable word.
    pub reason: &'static str,
    /// Sentence for a person.
    pub explanation: String,
    /// When JetStream stored it.
    pub received_at: DateTime<Utc>,
    /// Its bytes.
    pub raw: Vec<u8>,
}

static INSERT_EVENTS: Bulk = Bulk::new(
    "INSERT INTO events (seq, key, content_hash, received_at, occurred_at, cause_id, decision_id, class_rule, body) VALUES",
    9,
    "ON CONFLICT (key) DO NOTHING",
);

/// Inserts what is new and gives its row numbers. An id seen before, or twice in `rows`, is left out.
pub async fn insert_events(tx: &mut SqliteConnection, rows: &[&EventRow<'_>]) -> Result<HashSet<i64>, StoreError> {
    let inserted = INSERT_EVENTS
        .execute(&mut *tx, rows, |query, row| {
            query
                .bind(row.seq)
                .bind(&row.key[..])
                .bind(row.content_hash)
                .bind(to_ms(row.received_at))
                .bind(to_ms(row.occurred_at))
                .bind(row.cause_id)
                .bind(row.decision_id)
                .bind(row.class_rule)
                .bind(row.body)
        })
        .await?;
    // Nearly always all are new; asking which costs as much as inserting them.
    let first = rows.iter().map(|row| row.seq).min().unwrap_or(0);
    if inserted == rows.len() as u64 {
        return Ok(rows.iter().map(|row| row.seq).collect());
    }
    let sql = "SELECT seq FROM events WHERE seq >= ?";
    let new: Vec<(i64,)> = sqlx::query_as(sql).bind(first).fetch_all(tx).await?;
    Ok(new.into_iter().map(|(seq,)| seq).collect())
}

/// The content hash of the stored event of this key.
pub async fn content_hash(tx: &mut SqliteConnection, key: &Key) -> Result<Option<i64>, StoreError> {
    let row: Option<(i64,)> =
        sqlx::query_as("SELECT content_hash FROM events WHERE key = ?").bind(&key[..]).fetch_optional(tx).await?;
    Ok(row.map(|(hash,)| hash))
}

/// The row of a workflow, made when it is new.
pub async fn intern_workflow(tx: &mut WriteTx, name: &str, at: DateTime<Utc>) -> Result<i64, StoreError> {
    if let Some(played) = tx.played() {
        return Ok(played.intake.workflow(name, at));
    }
    let (id,): (i64,) = sqlx::query_as(
        "INSERT INTO workflows (name, first_heard_at, last_heard_at) VALUES (?, ?2, ?2) \
         ON CONFLICT (name) DO UPDATE SET last_heard_at = max(last_heard_at, excluded.last_heard_at) RETURNING id",
    )
    .bind(name)
    .bind(to_ms(at))
    .fetch_one(&mut **tx)
    .await?;
    Ok(id)
}

/// The row of a cause, made when it is new.
pub async fn intern_cause(tx: &mut WriteTx, cause: &NewCause<'_>) -> Result<i64, StoreError> {
    if let Some(played) = tx.played() {
        return played.intake.cause(cause).ok_or_else(|| StoreError::missing("workflows", cause.workflow_id));
    }
    let (id,): (i64,) = sqlx::query_as(
        "INSERT INTO causes (key, fingerprint, workflow_id, event_type, class, disposition, step, downstream, error_type, strategy, sample, first_seen_at) \
         VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT (key) DO UPDATE SET key = excluded.key RETURNING id",
    )
    .bind(&cause.key[..])
    .bind(cause.fingerprint)
    .bind(cause.workflow_id)
    .bind(cause.event_type.as_str())
    .bind(cause.class.as_str())
    .bind(cause.disposition.as_str())
    .bind(cause.step)
    .bind(cause.downstream)
    .bind(cause.error_type)
    .bind(cause.strategy)
    .bind(cause.sample)
    .bind(to_ms(cause.first_seen_at))
    .fetch_one(&mut **tx)
    .await?;
    Ok(id)
}

/// The row of a decision, made when it is new, with the digests that it is for.
pub async fn intern_decision(tx: &mut WriteTx, decision: &NewDecision<'_>) -> Result<i64, StoreError> {
    if let Some(played) = tx.played() {
        return Ok(played.intake.decision(decision));
    }
    let digests = serde_json::to_string(decision.digests)
        .map_err(|e| StoreError::Corrupt { what: "decisions.digests", why: e.to_string() })?;
    let (id,): (i64,) = sqlx::query_as(
        "INSERT INTO decisions (config_version, routes, page, digests, fate, fate_id, reason) VALUES (?, ?, ?, ?, ?, ?, ?) \
         ON CONFLICT (config_version, routes, fate, fate_id, reason) DO UPDATE SET page = excluded.page RETURNING id",
    )
    .bind(decision.config_version)
    .bind(decision.routes)
    .bind(decision.page)
    .bind(digests)
    .bind(decision.fate)
    .bind(decision.fate_id)
    .bind(decision.reason)
    .fetch_one(&mut **tx)
    .await?;
    for (digest, receiver) in decision.digests {
        sqlx::query(
            "INSERT INTO decision_targets (digest, receiver, decision_id) VALUES (?, ?, ?) ON CONFLICT DO NOTHING",
        )
        .bind(digest.as_str())
        .bind(receiver.as_str())
        .bind(id)
        .execute(&mut **tx)
        .await?;
    }
    Ok(id)
}

/// Takes new totals of a producer and gives what they add: nothing when they were overtaken by a newer report.
pub async fn advance_producer(
    tx: &mut WriteTx,
    workflow_id: i64,
    producer: &str,
    epoch: &str,
    totals: (i64, i64),
) -> Result<(i64, i64), StoreError> {
    if let Some(played) = tx.played() {
        return Ok(played.intake.advance_producer((workflow_id, producer.to_owned(), epoch.to_owned()), totals));
    }
    let known: Option<(i64, i64)> = sqlx::query_as(
        "SELECT ok_total, failed_total FROM producers WHERE workflow_id = ? AND producer = ? AND epoch = ?",
    )
    .bind(workflow_id)
    .bind(producer)
    .bind(epoch)
    .fetch_optional(&mut **tx)
    .await?;
    let (ok, failed) = known.unwrap_or((0, 0));
    let added = ((totals.0 - ok).max(0), (totals.1 - failed).max(0));
    sqlx::query(
        "INSERT INTO producers (workflow_id, producer, epoch, ok_total, failed_total) VALUES (?, ?, ?, ?, ?) \
         ON CONFLICT (workflow_id, producer, epoch) DO UPDATE SET ok_total = max(ok_total, excluded.ok_total), \
         failed_total = max(failed_total, excluded.failed_total)",
    )
    .bind(workflow_id)
    .bind(producer)
    .bind(epoch)
    .bind(totals.0)
    .bind(totals.1)
    .execute(&mut **tx)
    .await?;
    Ok(added)
}

/// Keeps an unreadable message. False when it is kept already, because it was delivered before.
pub async fn insert_quarantine(tx: &mut WriteTx, row: &QuarantineRow) -> Result<bool, StoreError> {
    if let Some(played) = tx.played() {
        return Ok(played.intake.quarantine(row));
    }
    let done = sqlx::query(
        "INSERT INTO quarantine (stream, sequence, subject, headers, reason, explanation, received_at, raw) \
         VALUES (?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT DO NOTHING",
    )
    .bind(&row.stream)
    .bind(row.sequence)
    .bind(&row.subject)
    .bind(&row.headers)
    .bind(row.reason)
    .bind(&row.explanation)
    .bind(to_ms(row.received_at))
    .bind(&row.raw)
    .execute(&mut **tx)
    .await?;
    Ok(done.rows_affected() == 1)
}

/// How far a stream was read. `made_at` tells a stream that was deleted and made again.
#[derive(Clone, Copy, Debug)]
pub struct StreamRow<'a> {
    /// Its name.
    pub name: &'a str,
    /// When it was made.
    pub made_at: DateTime<Utc>,
    /// Its highest sequence that was read.
    pub sequence: i64,
    /// The newest arrival that was read.
    pub arrival_at: DateTime<Utc>,
}

/// What a batch adds to the totals since the store was made.
#[derive(Clone, Copy, Debug)]
pub struct NewTotals {
    /// Events stored.
    pub events: i64,
    /// Events that were published again.
    pub duplicates: i64,
    /// Messages put in quarantine.
    pub quarantined: i64,
}

/// Notes how far a stream was read, and adds to the totals: two statements in one step.
pub async fn note_progress(
    tx: &mut SqliteConnection,
    stream: StreamRow<'_>,
    totals: NewTotals,
) -> Result<(), StoreError> {
    sqlx::query(
        "INSERT INTO streams (name, stream_made_at, last_sequence, last_arrival_at) VALUES (?1, ?2, ?3, ?4) \
         ON CONFLICT (name) DO UPDATE SET \
         last_sequence = CASE WHEN stream_made_at = excluded.stream_made_at THEN max(last_sequence, excluded.last_sequence) ELSE excluded.last_sequence END, \
         last_arrival_at = max(last_arrival_at, excluded.last_arrival_at), stream_made_at = excluded.stream_made_at; \
         UPDATE totals SET value = value + CASE name WHEN 'events' THEN ?5 WHEN 'duplicates' THEN ?6 WHEN 'quarantined' THEN ?7 ELSE 0 END",
    )
    .bind(stream.name)
    .bind(to_ms(stream.made_at))
    .bind(stream.sequence)
    .bind(to_ms(stream.arrival_at))
    .bind(totals.events)
    .bind(totals.duplicates)
    .bind(totals.quarantined)
    .execute(tx)
    .await?;
    Ok(())
}

/// The highest row number of `events`, 0 when there is none.
pub async fn last_seq(tx: &mut WriteTx) -> Result<i64, StoreError> {
    if tx.played().is_some() {
        // A play keeps no events.
        return Ok(0);
    }
    let (seq,): (Option<i64>,) = sqlx::query_as("SELECT max(seq) FROM events").fetch_one(&mut **tx).await?;
    Ok(seq.unwrap_or(0))
}
