//! Reads what digests are composed from, once for all that cover the same window. SQL adds up by cause and decision; whom a number is
//! for is decided from the catalogue, and sentences, orders and caps are `digest::compose`'s work.

use super::catalogue::{Oldest, Pair};
use super::{ReadConn, StoreError, from_ms, incidents, list, to_ms};
use crate::digest::{UnreadableLine, Window};
use crate::event::Fingerprint;
use crate::incident::Incident;
use crate::name::WorkflowName;
use chrono::{DateTime, TimeDelta, Utc};
use sqlx::Row;
use sqlx::sqlite::SqliteRow;
use std::collections::BTreeMap;
use std::sync::{Arc, LazyLock};

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
fn bucket_of(window: Window) -> TimeDelta {
    let is_long = window.end_at - window.start_at > TimeDelta::hours(6);
    if is_long { TimeDelta::hours(1) } else { TimeDelta::minutes(5) }
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

/// What happened in a window, by bucket, cause and decision, in that order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Lists {
    /// Events.
    pub counts: Vec<Count>,
    /// Dead letters that came.
    pub opened: Vec<LetterChanges>,
    /// Dead letters that were resolved.
    pub resolved: Vec<LetterChanges>,
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

/// One statement for a window and the one before: each statement is a step between two threads. The parameters from `first` on are start,
/// end and bucket.
fn list_sql(first: usize) -> String {
    let (start, end, bucket) = (format!("?{first}"), format!("?{}", first + 1), format!("?{}", first + 2));
    let letters = |column: &str, index: &str| {
        format!(
            "(SELECT json_group_array(json_array(at, cause_id, decision_id, n, redriven)) FROM ( \
             SELECT {start} + ({column} - {start}) / {bucket} * {bucket} AS at, cause_id, decision_id, count(*) AS n, \
             sum(redrive_count > 0) AS redriven FROM dead_letters INDEXED BY {index} \
             WHERE {column} >= {start} AND {column} < {end} GROUP BY 1, 2, 3))"
        )
    };
    format!(
        "(SELECT json_group_array(json_array(at, cause_id, decision_id, events, ok, failed, took_ms, took, late, first)) FROM ( \
         SELECT {start} + (minute - {start}) / {bucket} * {bucket} AS at, cause_id, decision_id, sum(event_count) AS events, \
         sum(ok_count) AS ok, sum(failed_count) AS failed, sum(took_ms) AS took_ms, sum(took_count) AS took, sum(late_count) AS late, \
         min(minute) AS first FROM counters WHERE minute >= {start} AND minute < {end} GROUP BY 1, 2, 3 ORDER BY 1, 2, 3)), {}, {}",
        letters("dead_lettered_at", "dead_letters_arrived"),
        letters("resolved_at", "dead_letters_resolved"),
    )
}

static LISTS: LazyLock<String> = LazyLock::new(|| {
    format!(
        "SELECT {}, {}, (SELECT json_group_array(json_array(later, cause_id, decision_id, n)) FROM ( \
         SELECT dead_lettered_at >= ?2 AS later, cause_id, decision_id, count(*) AS n FROM dead_letters \
         INDEXED BY dead_letters_arrived WHERE dead_lettered_at >= ?1 AND resolved_at IS NULL GROUP BY 1, 2, 3)), \
         (SELECT json_group_array(json_array(cause_id, decision_id, dead_lettered_at, id, item)) FROM ( \
         SELECT cause_id, decision_id, dead_lettered_at, id, item FROM dead_letters INDEXED BY dead_letters_resolved \
         WHERE resolved_at >= ?2 AND dead_lettered_at < ?2 ORDER BY id)), \
         (SELECT json_group_array(json_array(fingerprint, since)) FROM ( \
         SELECT fingerprint, max(regressed_from) AS since FROM causes INDEXED BY causes_regressed WHERE regressed_at >= ?1 \
         AND regressed_at < ?2 AND regressed_from IS NOT NULL AND event_type = 'failure' GROUP BY fingerprint)), \
         (SELECT json_group_array(json_array(subject, n)) FROM (SELECT subject, count(*) AS n FROM quarantine \
         WHERE received_at >= ?1 AND received_at < ?2 GROUP BY subject ORDER BY n DESC, subject))",
        list_sql(1),
        list_sql(4),
    )
});

/// What happened in a window and in the one before.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Happened {
    /// In the window.
    pub lists: Lists,
    /// In the one before, as one bucket.
    pub before: Lists,
    /// How dead letters differ now.
    pub shift: LetterShift,
    /// Causes that came back in the window after they were resolved, and when that was.
    pub regressed: BTreeMap<Fingerprint, DateTime<Utc>>,
    /// Unreadable messages of the window, by subject, most first.
    pub unreadable: Vec<UnreadableLine>,
}

/// Reads what happened in a window and in the one before.
pub async fn happened(conn: &mut ReadConn, window: Window, before: Window) -> Result<Happened, StoreError> {
    if let Some(played) = conn.played() {
        return Ok(played.happened((window, bucket_of(window)), before));
    }
    let length = before.end_at - before.start_at;
    let row = sqlx::query(sqlx::AssertSqlSafe(LISTS.as_str()))
        .bind(to_ms(window.start_at))
        .bind(to_ms(window.end_at))
        .bind(bucket_of(window).num_milliseconds())
        .bind(to_ms(before.start_at))
        .bind(to_ms(before.end_at))
        .bind(length.num_milliseconds().max(1))
        .fetch_one(&mut **conn)
        .await?;
    let mut shift = LetterShift::default();
    for (is_later, cause, decision, count) in list::<(u8, i64, i64, u64)>(row.get(6))? {
        let counts = if is_later == 1 { &mut shift.later } else { &mut shift.fresh };
        counts.insert((cause, decision), count);
    }
    shift.gone = list::<(i64, i64, i64, i64, Option<String>)>(row.get(7))?
        .into_iter()
        .map(|(cause, decision, at, id, item)| ((cause, decision), Oldest { at: from_ms(at), id, item }))
        .collect();
    let regressed = list::<(String, i64)>(row.get(8))?.into_iter();
    let unreadable = list::<(String, u64)>(row.get(9))?.into_iter();
    Ok(Happened {
        lists: read_lists(&row, 0)?,
        before: read_lists(&row, 3)?,
        shift,
        regressed: regressed.map(|(print, at)| (Fingerprint(print.into()), from_ms(at))).collect(),
        unreadable: unreadable.map(|(subject, count)| UnreadableLine { subject, count }).collect(),
    })
}

fn read_lists(row: &SqliteRow, first: usize) -> Result<Lists, StoreError> {
    type Row = (i64, i64, i64, u64, u64, u64, u64, u64, u64, i64);
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
    let changes = |text: &str| -> Result<Vec<LetterChanges>, StoreError> {
        let rows = list::<(i64, i64, i64, u64, u64)>(text)?.into_iter();
        let change = |(at, cause, decision, count, redriven_count)| LetterChanges {
            at: from_ms(at),
            pair: (cause, decision),
            count,
            redriven_count,
        };
        Ok(rows.map(change).collect())
    };
    Ok(Lists {
        counts: list::<Row>(row.get(first))?.into_iter().map(count).collect(),
        opened: changes(row.get(first + 1))?,
        resolved: changes(row.get(first + 2))?,
    })
}

/// Letters that patterns are looked for in, at most, before an owner's own are picked.
const LETTERS_LOOKED_AT_MAX: usize = 200;

/// Workflows of the newest letters for a digest and receiver that arrived before the end of a window, newest first, at most 200.
pub async fn last_letters(
    conn: &mut ReadConn,
    digest: &str,
    receiver: &str,
    end_at: DateTime<Utc>,
) -> Result<Vec<WorkflowName>, StoreError> {
    if let Some(played) = conn.played() {
        return Ok(played.last_letters((digest, receiver), end_at, LETTERS_LOOKED_AT_MAX));
    }
    let rows: Vec<(String,)> = sqlx::query_as(
        "SELECT w.name FROM dead_letters d JOIN causes k ON k.id = d.cause_id JOIN workflows w ON w.id = k.workflow_id \
         JOIN decision_targets t ON t.digest = ?1 AND t.receiver = ?2 AND t.decision_id = d.decision_id \
         WHERE d.dead_lettered_at < ?3 ORDER BY d.dead_lettered_at DESC, d.id DESC LIMIT ?4",
    )
    .bind(digest)
    .bind(receiver)
    .bind(to_ms(end_at))
    .bind(LETTERS_LOOKED_AT_MAX as i64)
    .fetch_all(&mut **conn)
    .await?;
    Ok(rows.into_iter().map(|(name,)| WorkflowName::new(name)).collect())
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
    conn: &mut ReadConn,
    known: &mut incidents::Known,
    window: Window,
) -> Result<Vec<OpenIncident>, StoreError> {
    if let Some(played) = conn.played() {
        return Ok(played.incidents_in(window));
    }
    let rows = sqlx::query(
        "SELECT i.id, i.version, coalesce(l.open_count, 0), \
         (SELECT json_group_array(d.id) FROM decisions d INDEXED BY decisions_paged \
         WHERE d.fate = 'paged' AND d.fate_id = CAST(i.id AS TEXT)) \
         FROM incidents i LEFT JOIN incident_letters l ON l.incident_id = i.id \
         WHERE i.opened_at < ?2 AND (i.resolved_at IS NULL OR i.resolved_at >= ?1) ORDER BY i.id",
    )
    .bind(to_ms(window.start_at))
    .bind(to_ms(window.end_at))
    .fetch_all(&mut **conn)
    .await?;
    known.refresh(conn, &rows.iter().map(|row| (row.get(0), row.get(1))).collect()).await?;
    let mut found = Vec::with_capacity(rows.len());
    for row in &rows {
        let Some((_, incident)) = known.get(row.get(0)) else { continue };
        found.push(OpenIncident {
            incident,
            open_letters: row.get::<i64, _>(2).unsigned_abs(),
            decisions: list(row.get(3))?,
        });
    }
    Ok(found)
}

/// When each workflow was last heard, and when the first event ever arrived, to the minute.
pub async fn hearing(
    conn: &mut ReadConn,
) -> Result<(BTreeMap<WorkflowName, DateTime<Utc>>, Option<DateTime<Utc>>), StoreError> {
    if let Some(played) = conn.played() {
        return Ok((played.intake.last_heard(), played.counters.first_minute()));
    }
    let sql =
        "SELECT json_group_array(json_array(name, last_heard_at)), (SELECT min(minute) FROM counters) FROM workflows";
    let (text, first_minute): (String, Option<i64>) = sqlx::query_as(sql).fetch_one(&mut **conn).await?;
    let rows = list::<(String, i64)>(&text)?.into_iter();
    let last_heard = rows.map(|(name, at)| (WorkflowName::new(name), from_ms(at))).collect();
    Ok((last_heard, first_minute.map(from_ms)))
}
