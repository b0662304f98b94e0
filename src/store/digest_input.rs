//! Reads what a digest is composed from. SQL adds up; sentences, orders and caps are `digest::compose`'s work.

use super::{StoreError, from_ms, incidents, to_ms};
use crate::digest::{
    Cell, DownstreamCount, Fate, FingerprintInfo, LetterCount, LetterFlow, LetterGroup, LetterStep, UnreadableLine,
};
use crate::event::{Class, Disposition, EventType, Fingerprint};
use crate::incident::Incident;
use crate::name::WorkflowName;
use chrono::{DateTime, Utc};
use sqlx::sqlite::SqliteRow;
use sqlx::{Row, SqlitePool};
use std::collections::{BTreeMap, BTreeSet};

/// Which part of the store a digest covers.
#[derive(Clone, Debug)]
pub struct Scope {
    /// Digest as in the routes.
    pub digest: String,
    /// Receiver as in the routes.
    pub receiver: String,
    /// First instant.
    pub start_at: DateTime<Utc>,
    /// First instant after it.
    pub end_at: DateTime<Utc>,
    /// Only these workflows; none means all. An owner's own digest covers the owner's workflows.
    pub workflows: Option<BTreeSet<WorkflowName>>,
}

impl Scope {
    /// The covered workflows as a JSON list, for SQL: what is left out there need not be read.
    fn workflow_list(&self) -> Result<Option<String>, StoreError> {
        let write = |only: &BTreeSet<WorkflowName>| serde_json::to_string(only);
        let list = self.workflows.as_ref().map(write).transpose();
        list.map_err(|e| StoreError::Corrupt { what: "workflows", why: e.to_string() })
    }

    fn covers(&self, workflow: &WorkflowName) -> bool {
        self.workflows.as_ref().is_none_or(|only| only.contains(workflow))
    }

    /// Width of the buckets that plots are drawn from, in ms; they begin where the scope does.
    fn bucket_ms(&self) -> i64 {
        const FINE: i64 = 300_000;
        const HOUR: i64 = 3_600_000;
        if self.end_at - self.start_at > chrono::TimeDelta::hours(6) { HOUR } else { FINE }
    }
}

fn parsed<T>(what: &'static str, word: &str, value: Option<T>) -> Result<T, StoreError> {
    value.ok_or_else(|| StoreError::Corrupt { what, why: format!("unknown word {word:?}") })
}

/// Counters, what is known of their causes, and failures by downstream.
#[derive(Clone, Debug, Default)]
pub struct Counted {
    /// One cell per bucket, cause and fate.
    pub cells: Vec<Cell>,
    /// Failures by downstream and workflow.
    pub downstreams: Vec<DownstreamCount>,
    /// Events that arrived an hour or more after they happened.
    pub late_count: u64,
    /// First arrival in the window, by fingerprint.
    pub first_at: BTreeMap<Fingerprint, DateTime<Utc>>,
}

const COUNTED: &str = "SELECT ?3 + (c.minute - ?3) / ?5 * ?5, w.name, k.event_type, k.class, k.disposition, k.fingerprint, d.fate, d.fate_id, \
    k.strategy, k.downstream, sum(c.event_count), sum(c.ok_count), sum(c.failed_count), sum(c.took_ms), sum(c.took_count), \
    sum(c.late_count), min(c.minute) \
    FROM counters c CROSS JOIN decision_targets t ON t.digest = ?1 AND t.receiver = ?2 AND t.decision_id = c.decision_id \
    JOIN decisions d ON d.id = c.decision_id JOIN causes k ON k.id = c.cause_id JOIN workflows w ON w.id = k.workflow_id \
    WHERE c.minute >= ?3 AND c.minute < ?4 AND (?6 IS NULL OR w.name IN (SELECT value FROM json_each(?6))) GROUP BY 1, k.id, d.fate, d.fate_id ORDER BY 1, k.id, d.fate, d.fate_id";

/// Adds up the counters of a scope.
pub async fn counted(pool: &SqlitePool, scope: &Scope) -> Result<Counted, StoreError> {
    let rows = sqlx::query(COUNTED)
        .bind(&scope.digest)
        .bind(&scope.receiver)
        .bind(to_ms(scope.start_at))
        .bind(to_ms(scope.end_at))
        .bind(scope.bucket_ms())
        .bind(scope.workflow_list()?)
        .fetch_all(pool)
        .await?;
    let mut counted = Counted::default();
    let mut downstreams: BTreeMap<(String, WorkflowName), (u64, u64)> = BTreeMap::new();
    for row in &rows {
        let cell = cell(row)?;
        if !scope.covers(&cell.workflow) {
            continue;
        }
        counted.late_count += unsigned(row, 15);
        let first_at = from_ms(row.get(16));
        let seen = counted.first_at.entry(cell.fingerprint.clone()).or_insert(first_at);
        *seen = (*seen).min(first_at);
        if let Some(downstream) = row.get::<Option<String>, _>(9).filter(|_| cell.is_failure()) {
            let sums = downstreams.entry((downstream, cell.workflow.clone())).or_default();
            sums.0 += cell.count;
            sums.1 += if cell.is_final_failure() { cell.count } else { 0 };
        }
        counted.cells.push(cell);
    }
    counted.downstreams = downstreams
        .into_iter()
        .map(|((downstream, workflow), (failures_count, final_count))| DownstreamCount {
            downstream,
            workflow,
            failures_count,
            final_count,
        })
        .collect();
    Ok(counted)
}

fn unsigned(row: &SqliteRow, column: usize) -> u64 {
    row.get::<i64, _>(column).unsigned_abs()
}

fn cell(row: &SqliteRow) -> Result<Cell, StoreError> {
    let (event_type, class, disposition): (String, String, String) = (row.get(2), row.get(3), row.get(4));
    let (fate, fate_id): (String, String) = (row.get(6), row.get(7));
    let fate = match fate.as_str() {
        "silenced" => Fate::Silenced(fate_id),
        "paged" => Fate::Paged(fate_id),
        _ => Fate::Digest,
    };
    Ok(Cell {
        at: from_ms(row.get(0)),
        workflow: WorkflowName::new(row.get::<String, _>(1)),
        event_type: parsed("causes.event_type", &event_type, EventType::parse(&event_type))?,
        class: parsed("causes.class", &class, Class::parse(&class))?,
        disposition: parsed("causes.disposition", &disposition, Disposition::parse(&disposition))?,
        fingerprint: Fingerprint(row.get(5)),
        fate,
        count: unsigned(row, 10),
        ok_count: unsigned(row, 11),
        failed_count: unsigned(row, 12),
        strategy: row.get(8),
        took_count: unsigned(row, 14),
        took_ms_sum: unsigned(row, 13),
        attempts_count: 0,
        attempts_sum: 0,
    })
}

/// Dead letters that are open at the end of a scope, by workflow and cause, oldest first.
pub async fn open_letters(pool: &SqlitePool, scope: &Scope) -> Result<Vec<LetterGroup>, StoreError> {
    // Open ones are added up by an index that holds nothing else; those that were resolved after the end are few.
    // With min() SQLite takes the other columns from the row that has the minimum.
    let rows = sqlx::query(
        "WITH waiting (cause_id, decision_id, n, fresh, oldest) AS ( \
           SELECT cause_id, decision_id, count(*), sum(dead_lettered_at >= ?3), min(dead_lettered_at) FROM dead_letters \
           WHERE resolved_at IS NULL AND dead_lettered_at < ?4 GROUP BY cause_id, decision_id \
           UNION ALL \
           SELECT cause_id, decision_id, count(*), sum(dead_lettered_at >= ?3), min(dead_lettered_at) FROM dead_letters \
           WHERE resolved_at >= ?4 AND dead_lettered_at < ?4 GROUP BY cause_id, decision_id) \
         SELECT g.name, g.fingerprint, g.n, g.fresh, g.oldest, l.item, l.id FROM ( \
           SELECT w.name, k.fingerprint, sum(o.n) AS n, sum(o.fresh) AS fresh, min(o.oldest) AS oldest, o.cause_id, o.decision_id \
           FROM waiting o JOIN causes k ON k.id = o.cause_id JOIN workflows w ON w.id = k.workflow_id \
           JOIN decision_targets t ON t.digest = ?1 AND t.receiver = ?2 AND t.decision_id = o.decision_id \
           WHERE ?5 IS NULL OR w.name IN (SELECT value FROM json_each(?5)) \
           GROUP BY w.id, k.fingerprint) g \
         JOIN dead_letters l ON l.id = (SELECT d.id FROM dead_letters d WHERE d.dead_lettered_at = g.oldest \
           AND d.cause_id = g.cause_id AND d.decision_id = g.decision_id ORDER BY d.id LIMIT 1) ORDER BY 5, 7",
    )
    .bind(&scope.digest)
    .bind(&scope.receiver)
    .bind(to_ms(scope.start_at))
    .bind(to_ms(scope.end_at))
    .bind(scope.workflow_list()?)
    .fetch_all(pool)
    .await?;
    let groups = rows.iter().map(|row| LetterGroup {
        workflow: WorkflowName::new(row.get::<String, _>(0)),
        fingerprint: Fingerprint(row.get(1)),
        count: unsigned(row, 2),
        new_count: unsigned(row, 3),
        oldest_at: from_ms(row.get(4)),
        oldest_item: row.get(5),
        oldest_id: row.get::<i64, _>(6).to_string(),
    });
    Ok(groups.filter(|g| scope.covers(&g.workflow)).collect())
}

/// Dead letters that came and went in a scope; `open` are those open at its end.
pub async fn letter_flow(pool: &SqlitePool, scope: &Scope, open: &[LetterGroup]) -> Result<LetterFlow, StoreError> {
    let mut flow = LetterFlow::default();
    for group in open {
        let count = flow.by_workflow.entry(group.workflow.clone()).or_default();
        count.open_count += group.count;
        count.oldest_at = Some(count.oldest_at.map_or(group.oldest_at, |at| at.min(group.oldest_at)));
        flow.open_at_end += group.count;
    }
    let mut steps: BTreeMap<DateTime<Utc>, (u64, u64)> = BTreeMap::new();
    for change in changes(pool, scope, "dead_lettered_at").await? {
        flow.opened_count += change.count;
        entry(&mut flow.by_workflow, &change).opened_count += change.count;
        steps.entry(change.at).or_default().0 += change.count;
    }
    for change in changes(pool, scope, "resolved_at").await? {
        flow.resolved_count += change.count;
        flow.redriven_count += change.redriven_count;
        entry(&mut flow.by_workflow, &change).resolved_count += change.count;
        steps.entry(change.at).or_default().1 += change.count;
    }
    flow.open_at_start = (flow.open_at_end + flow.resolved_count).saturating_sub(flow.opened_count);
    flow.steps = steps
        .into_iter()
        .map(|(at, (opened_count, resolved_count))| LetterStep { at, opened_count, resolved_count })
        .collect();
    Ok(flow)
}

struct Change {
    at: DateTime<Utc>,
    workflow: WorkflowName,
    count: u64,
    redriven_count: u64,
}

fn entry<'a>(by: &'a mut BTreeMap<WorkflowName, LetterCount>, change: &Change) -> &'a mut LetterCount {
    by.entry(change.workflow.clone()).or_default()
}

async fn changes(pool: &SqlitePool, scope: &Scope, column: &'static str) -> Result<Vec<Change>, StoreError> {
    let sql = format!(
        "SELECT ?3 + (d.{column} - ?3) / ?5 * ?5, w.name, count(*), sum(d.redrive_count > 0) \
         FROM dead_letters d JOIN causes k ON k.id = d.cause_id JOIN workflows w ON w.id = k.workflow_id \
         JOIN decision_targets t ON t.digest = ?1 AND t.receiver = ?2 AND t.decision_id = d.decision_id \
         WHERE d.{column} >= ?3 AND d.{column} < ?4 \
         AND (?6 IS NULL OR w.name IN (SELECT value FROM json_each(?6))) GROUP BY 1, w.id ORDER BY 1, w.name"
    );
    let rows = sqlx::query(sqlx::AssertSqlSafe(sql))
        .bind(&scope.digest)
        .bind(&scope.receiver)
        .bind(to_ms(scope.start_at))
        .bind(to_ms(scope.end_at))
        .bind(scope.bucket_ms())
        .bind(scope.workflow_list()?)
        .fetch_all(pool)
        .await?;
    let changes = rows.iter().map(|row| Change {
        at: from_ms(row.get(0)),
        workflow: WorkflowName::new(row.get::<String, _>(1)),
        count: unsigned(row, 2),
        redriven_count: unsigned(row, 3),
    });
    Ok(changes.filter(|c| scope.covers(&c.workflow)).collect())
}

/// Workflows of the newest letters that arrived before the end of a scope, newest first, at most 20.
pub async fn last_letters(pool: &SqlitePool, scope: &Scope) -> Result<Vec<WorkflowName>, StoreError> {
    let rows: Vec<(String,)> = sqlx::query_as(
        "SELECT w.name FROM dead_letters d JOIN causes k ON k.id = d.cause_id JOIN workflows w ON w.id = k.workflow_id \
         JOIN decision_targets t ON t.digest = ?1 AND t.receiver = ?2 AND t.decision_id = d.decision_id \
         WHERE d.dead_lettered_at < ?3 ORDER BY d.dead_lettered_at DESC, d.id DESC LIMIT 200",
    )
    .bind(&scope.digest)
    .bind(&scope.receiver)
    .bind(to_ms(scope.end_at))
    .fetch_all(pool)
    .await?;
    Ok(rows.into_iter().map(|(name,)| WorkflowName::new(name)).filter(|w| scope.covers(w)).take(20).collect())
}

/// What is known of these causes, at the end of a scope.
pub async fn fingerprints(
    pool: &SqlitePool,
    scope: &Scope,
    wanted: &BTreeSet<Fingerprint>,
    first_at: &BTreeMap<Fingerprint, DateTime<Utc>>,
) -> Result<BTreeMap<Fingerprint, FingerprintInfo>, StoreError> {
    let list =
        serde_json::to_string(wanted).map_err(|e| StoreError::Corrupt { what: "fingerprints", why: e.to_string() })?;
    let rows = sqlx::query(
        "SELECT k.fingerprint, w.name, k.step, k.class, k.error_type, k.sample, k.downstream, min(k.first_seen_at), \
         max(CASE WHEN k.regressed_at >= ?2 AND k.regressed_at < ?3 THEN k.regressed_from END) \
         FROM causes k JOIN workflows w ON w.id = k.workflow_id \
         WHERE k.fingerprint IN (SELECT value FROM json_each(?1)) AND k.event_type = 'failure' GROUP BY k.fingerprint",
    )
    .bind(list)
    .bind(to_ms(scope.start_at))
    .bind(to_ms(scope.end_at))
    .fetch_all(pool)
    .await?;
    let mut known = BTreeMap::new();
    for row in &rows {
        let fingerprint = Fingerprint(row.get(0));
        let class: String = row.get(3);
        let sample: String = row.get(5);
        let info = FingerprintInfo {
            workflow: WorkflowName::new(row.get::<String, _>(1)),
            step: row.get(2),
            class: parsed("causes.class", &class, Class::parse(&class))?,
            error_type: row.get(4),
            pattern: crate::fingerprint::parametrise(&sample),
            sample,
            sample_event_id: None,
            downstream: row.get(6),
            first_seen_at: from_ms(row.get(7)),
            first_in_window_at: first_at.get(&fingerprint).copied(),
            last_seen_before_at: None,
            resolved_at: row.get::<Option<i64>, _>(8).map(from_ms),
        };
        known.insert(fingerprint, info);
    }
    Ok(known)
}

/// Unreadable messages of a scope, by subject.
pub async fn unreadable(pool: &SqlitePool, scope: &Scope) -> Result<Vec<UnreadableLine>, StoreError> {
    let rows: Vec<(String, i64)> = sqlx::query_as(
        "SELECT subject, count(*) FROM quarantine WHERE received_at >= ? AND received_at < ? GROUP BY subject ORDER BY 2 DESC, 1",
    )
    .bind(to_ms(scope.start_at))
    .bind(to_ms(scope.end_at))
    .fetch_all(pool)
    .await?;
    Ok(rows.into_iter().map(|(subject, count)| UnreadableLine { subject, count: count.unsigned_abs() }).collect())
}

/// Incidents whose events go to this digest, and that were open in the scope.
pub async fn incidents(pool: &SqlitePool, scope: &Scope) -> Result<Vec<Incident>, StoreError> {
    let rows: Vec<(i64,)> = sqlx::query_as(
        "SELECT i.id FROM incidents i WHERE i.opened_at < ?4 AND (i.resolved_at IS NULL OR i.resolved_at >= ?3) AND i.id IN \
         (SELECT CAST(d.fate_id AS INTEGER) FROM decisions d JOIN decision_targets t ON t.decision_id = d.id \
          WHERE d.fate = 'paged' AND t.digest = ?1 AND t.receiver = ?2) ORDER BY i.id",
    )
    .bind(&scope.digest)
    .bind(&scope.receiver)
    .bind(to_ms(scope.start_at))
    .bind(to_ms(scope.end_at))
    .fetch_all(pool)
    .await?;
    let mut found = Vec::with_capacity(rows.len());
    for (id,) in rows {
        if let Some(incident) = incidents::get(pool, crate::incident::IncidentId(id)).await?
            && incident.hits.iter().any(|h| scope.covers(&h.workflow))
        {
            found.push(incident);
        }
    }
    Ok(found)
}

/// When each workflow was last heard.
pub async fn last_heard(pool: &SqlitePool) -> Result<BTreeMap<WorkflowName, DateTime<Utc>>, StoreError> {
    let rows: Vec<(String, i64)> =
        sqlx::query_as("SELECT name, last_heard_at FROM workflows ORDER BY name").fetch_all(pool).await?;
    Ok(rows.into_iter().map(|(name, at)| (WorkflowName::new(name), from_ms(at))).collect())
}

/// When the first event ever arrived, to the minute.
pub async fn first_minute(pool: &SqlitePool) -> Result<Option<DateTime<Utc>>, StoreError> {
    let (minute,): (Option<i64>,) = sqlx::query_as("SELECT min(minute) FROM counters").fetch_one(pool).await?;
    Ok(minute.map(from_ms))
}
