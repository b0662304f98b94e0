//! Dead letters in the store: opened, repeated, resolved, listed. What opens or resolves one is decided in `ingest` and by people.

use super::bulk::Bulk;
use super::key::Key;
use super::{StoreError, WriteTx, from_ms, json, to_ms};
use crate::name::WorkflowName;
use chrono::{DateTime, Utc};
use sqlx::sqlite::SqliteRow;
use sqlx::{Row, SqlitePool};
use std::collections::BTreeSet;

/// A failed item that is given up: opens a dead letter, or repeats the open one of the same key.
#[derive(Clone, Debug)]
pub struct LetterRow {
    /// Key of workflow and item, else of the event id.
    pub key: Key,
    /// What went wrong.
    pub cause_id: i64,
    /// Who was to hear of it.
    pub decision_id: i64,
    /// Business key.
    pub item: Option<String>,
    /// Its words.
    pub error_message: Option<String>,
    /// Name to address, JSON.
    pub links: String,
    /// The item itself, JSON.
    pub payload: Option<String>,
    /// Whether that was cut.
    pub payload_cut: bool,
    /// When it happened.
    pub failed_at: DateTime<Utc>,
    /// When it arrived here.
    pub arrived_at: DateTime<Utc>,
    /// Tries that the pipeline made.
    pub attempt_count: i64,
    /// How often it came in this batch.
    pub times: i64,
    /// The incident that it failed for last.
    pub incident_id: Option<i64>,
    /// How often it was redriven.
    pub redrive_count: i64,
}

/// Asks for a letter to be resolved.
#[derive(Clone, Debug)]
pub struct ResolutionRow {
    /// Its key.
    pub key: Key,
    /// What was done.
    pub note: Option<String>,
    /// Who did it.
    pub by: Option<String>,
    /// When.
    pub at: DateTime<Utc>,
}

static OPEN_LETTERS: Bulk = Bulk::new(
    "INSERT INTO dead_letters (key, cause_id, decision_id, item, error_message, links, payload, payload_cut, failed_at, dead_lettered_at, \
     last_failed_at, attempt_count, times, incident_id, redrive_count) VALUES",
    15,
    "ON CONFLICT (key) WHERE resolved_at IS NULL DO UPDATE SET times = times + excluded.times, cause_id = excluded.cause_id, decision_id = excluded.decision_id, \
     error_message = excluded.error_message, links = excluded.links, payload = coalesce(excluded.payload, payload), \
     payload_cut = CASE WHEN excluded.payload IS NULL THEN payload_cut ELSE excluded.payload_cut END, \
     last_failed_at = max(last_failed_at, excluded.last_failed_at), failed_at = min(failed_at, excluded.failed_at), \
     attempt_count = max(attempt_count, excluded.attempt_count), incident_id = coalesce(excluded.incident_id, incident_id), \
     redrive_count = max(redrive_count, excluded.redrive_count)",
);

/// Opens or repeats letters; no two of `rows` have the same key.
pub async fn open(tx: &mut WriteTx, rows: &[LetterRow]) -> Result<(), StoreError> {
    if let Some(played) = tx.played() {
        rows.iter().for_each(|row| played.letters.open(row));
        return Ok(());
    }
    OPEN_LETTERS
        .execute(tx, rows, |query, row| {
            query
                .bind(&row.key[..])
                .bind(row.cause_id)
                .bind(row.decision_id)
                .bind(&row.item)
                .bind(&row.error_message)
                .bind(&row.links)
                .bind(&row.payload)
                .bind(row.payload_cut)
                .bind(to_ms(row.failed_at))
                .bind(to_ms(row.arrived_at))
                .bind(to_ms(row.failed_at))
                .bind(row.attempt_count)
                .bind(row.times)
                .bind(row.incident_id)
                .bind(row.redrive_count)
        })
        .await?;
    Ok(())
}

/// Opens or repeats one letter of an incident. True when it is new to that incident: an item that fails of several causes is of several.
pub async fn open_for(tx: &mut WriteTx, row: &LetterRow, incident_id: i64) -> Result<bool, StoreError> {
    if let Some(played) = tx.played() {
        played.letters.open(row);
        return Ok(played.letters.join(&row.key, incident_id));
    }
    open(tx, std::slice::from_ref(row)).await?;
    let joined = sqlx::query(
        "INSERT INTO letter_incidents (incident_id, letter_id) SELECT ?1, id FROM dead_letters WHERE key = ?2 AND resolved_at IS NULL \
         ON CONFLICT DO NOTHING",
    )
    .bind(incident_id)
    .bind(&row.key[..])
    .execute(&mut **tx)
    .await?;
    Ok(joined.rows_affected() == 1)
}

/// Resolves the open letters of some keys, none twice. Gives the cause of each that was open, and when it was resolved.
pub async fn resolve_by_keys(
    tx: &mut WriteTx,
    resolutions: &[ResolutionRow],
) -> Result<Vec<(i64, DateTime<Utc>)>, StoreError> {
    if let Some(played) = tx.played() {
        return Ok(resolutions.iter().filter_map(|resolution| played.letters.resolve(resolution)).collect());
    }
    let rows: Vec<_> = resolutions.iter().map(|r| (hex(&r.key), to_ms(r.at), &r.note, &r.by)).collect();
    let resolved: Vec<(i64, i64)> = sqlx::query_as(
        "UPDATE dead_letters SET resolved_at = max(r.at, dead_lettered_at), resolution_note = r.note, resolved_by = r.by \
         FROM (SELECT unhex(value ->> 0) AS key, value ->> 1 AS at, value ->> 2 AS note, value ->> 3 AS by FROM json_each(?)) r \
         WHERE dead_letters.key = r.key AND resolved_at IS NULL RETURNING cause_id, resolved_at",
    )
    .bind(json(&rows)?)
    .fetch_all(&mut **tx)
    .await?;
    Ok(resolved.into_iter().map(|(cause, at)| (cause, from_ms(at))).collect())
}

fn hex(key: &Key) -> String {
    key.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Resolves an open letter by its row. Gives its cause, none when it is not there or resolved already.
pub async fn resolve_by_id(
    tx: &mut WriteTx,
    id: i64,
    note: Option<&str>,
    by: Option<&str>,
    at: DateTime<Utc>,
) -> Result<Option<i64>, StoreError> {
    if let Some(played) = tx.played() {
        return Ok(played.letters.resolve_row(id, note, at).map(|(cause, _)| cause));
    }
    let row: Option<(i64,)> = sqlx::query_as(
        "UPDATE dead_letters SET resolved_at = max(?2, dead_lettered_at), resolution_note = ?3, resolved_by = ?4 \
         WHERE id = ?1 AND resolved_at IS NULL RETURNING cause_id",
    )
    .bind(id)
    .bind(to_ms(at))
    .bind(note)
    .bind(by)
    .fetch_optional(&mut **tx)
    .await?;
    Ok(row.map(|(cause,)| cause))
}

/// Letters of causes were resolved: their workflows have made progress, and causes that have no open letter left are marked, so that
/// their return shows.
pub async fn note_resolved(tx: &mut WriteTx, resolved: &[(i64, DateTime<Utc>)]) -> Result<(), StoreError> {
    note_changes(tx, resolved, None).await
}

/// Causes that came, and when: those of them that were resolved are back.
#[derive(Clone, Copy, Debug)]
pub struct Returned<'a> {
    /// Their rows.
    pub causes: &'a BTreeSet<i64>,
    /// When.
    pub at: DateTime<Utc>,
}

/// Letters of causes were resolved, as [`note_resolved`] says, and causes have returned.
pub async fn note_changes(
    tx: &mut WriteTx,
    resolved: &[(i64, DateTime<Utc>)],
    returned: Option<Returned<'_>>,
) -> Result<(), StoreError> {
    if let Some(played) = tx.played() {
        played.note_changes(resolved, returned);
        return Ok(());
    }
    let rows: Vec<(i64, i64)> = resolved.iter().map(|(cause, at)| (*cause, to_ms(*at))).collect();
    sqlx::query(
        "UPDATE workflows SET letter_resolved_at = max(coalesce(letter_resolved_at, r.at), r.at) \
         FROM (SELECT k.workflow_id AS id, max(j.value ->> 1) AS at FROM json_each(?1) j CROSS JOIN causes k ON k.id = j.value ->> 0 \
         GROUP BY 1) r WHERE workflows.id = r.id; \
         UPDATE causes SET resolved_at = r.at FROM (SELECT value ->> 0 AS id, max(value ->> 1) AS at FROM json_each(?1) GROUP BY 1) r \
         WHERE causes.id = r.id AND NOT EXISTS \
         (SELECT 1 FROM dead_letters d WHERE d.cause_id = causes.id AND d.resolved_at IS NULL); \
         UPDATE causes SET regressed_at = ?3, regressed_from = resolved_at, resolved_at = NULL \
         WHERE id IN (SELECT value FROM json_each(?2)) AND resolved_at IS NOT NULL",
    )
    .bind(json(&rows)?)
    .bind(returned.map(|r| json(r.causes)).transpose()?)
    .bind(returned.map(|r| to_ms(r.at)))
    .execute(&mut **tx)
    .await?;
    Ok(())
}

/// The workflow of a cause.
pub async fn workflow_of_cause(tx: &mut WriteTx, cause_id: i64) -> Result<WorkflowName, StoreError> {
    if let Some(played) = tx.played() {
        return played.workflow_of_cause(cause_id).ok_or_else(|| StoreError::missing("causes", cause_id));
    }
    let (name,): (String,) =
        sqlx::query_as("SELECT w.name FROM causes c JOIN workflows w ON w.id = c.workflow_id WHERE c.id = ?")
            .bind(cause_id)
            .fetch_one(&mut **tx)
            .await?;
    Ok(WorkflowName::new(name))
}

/// A dead letter as lists show it.
#[derive(Clone, Debug, PartialEq)]
pub struct Letter {
    /// Its row.
    pub id: i64,
    /// Pipeline.
    pub workflow: String,
    /// Step that failed.
    pub step: Option<String>,
    /// Business key.
    pub item: Option<String>,
    /// Kind of fault.
    pub class: String,
    /// Dependency that failed.
    pub downstream: Option<String>,
    /// Words of the fault.
    pub error_message: Option<String>,
    /// Its cause.
    pub fingerprint: String,
    /// First failure.
    pub failed_at: DateTime<Utc>,
    /// Arrival of the first.
    pub dead_lettered_at: DateTime<Utc>,
    /// Newest failure.
    pub last_failed_at: DateTime<Utc>,
    /// Tries that the pipeline made.
    pub attempt_count: i64,
    /// How often the item was given up.
    pub times: i64,
    /// When it was done with.
    pub resolved_at: Option<DateTime<Utc>>,
    /// What was done.
    pub resolution_note: Option<String>,
    /// Who did it.
    pub resolved_by: Option<String>,
    /// The item, JSON text.
    pub payload: Option<String>,
    /// Whether it was cut.
    pub payload_cut: bool,
    /// Name to address, JSON text.
    pub links: String,
    /// The incident that it failed for last.
    pub incident_id: Option<i64>,
    /// How often it was redriven.
    pub redrive_count: i64,
}

const LETTER: &str = "SELECT d.id, w.name, c.step, d.item, c.class, c.downstream, d.error_message, c.fingerprint, d.failed_at, \
    d.dead_lettered_at, d.last_failed_at, d.attempt_count, d.times, d.resolved_at, d.resolution_note, d.resolved_by, d.payload, \
    d.payload_cut, d.links, d.incident_id, d.redrive_count \
    FROM dead_letters d JOIN causes c ON c.id = d.cause_id JOIN workflows w ON w.id = c.workflow_id";

fn letter(row: &SqliteRow) -> Letter {
    Letter {
        id: row.get(0),
        workflow: row.get(1),
        step: row.get(2),
        item: row.get(3),
        class: row.get(4),
        downstream: row.get(5),
        error_message: row.get(6),
        fingerprint: row.get(7),
        failed_at: from_ms(row.get(8)),
        dead_lettered_at: from_ms(row.get(9)),
        last_failed_at: from_ms(row.get(10)),
        attempt_count: row.get(11),
        times: row.get(12),
        resolved_at: row.get::<Option<i64>, _>(13).map(from_ms),
        resolution_note: row.get(14),
        resolved_by: row.get(15),
        payload: row.get(16),
        payload_cut: row.get(17),
        links: row.get(18),
        incident_id: row.get(19),
        redrive_count: row.get(20),
    }
}

/// Which letters a list asks for.
#[derive(Clone, Debug, Default)]
pub struct LetterFilter {
    /// Only of this workflow.
    pub workflow: Option<String>,
    /// Only of this fingerprint.
    pub fingerprint: Option<String>,
    /// Only of this incident.
    pub incident_id: Option<i64>,
    /// Only open ones.
    pub open_only: bool,
}

impl LetterFilter {
    /// The query with the conditions asked for and no other, so that an index fits.
    fn query(&self) -> String {
        let asked = [
            (self.workflow.is_some(), " AND w.name = ?3"),
            (self.fingerprint.is_some(), " AND c.fingerprint = ?4"),
            (
                self.incident_id.is_some(),
                " AND d.id IN (SELECT letter_id FROM letter_incidents WHERE incident_id = ?5)",
            ),
            (self.open_only, " AND d.resolved_at IS NULL"),
        ];
        let given = asked.iter().filter(|(is_asked, _)| *is_asked).map(|(_, condition)| *condition);
        format!("{LETTER} WHERE d.id < ?1{} ORDER BY d.id DESC LIMIT ?2", given.collect::<String>())
    }
}

/// Letters with a row number below `before`, newest first, at most `limit`.
pub async fn list(
    pool: &SqlitePool,
    filter: &LetterFilter,
    before: i64,
    limit: i64,
) -> Result<Vec<Letter>, StoreError> {
    // What a filter does not ask for is bound and not looked at.
    let rows = sqlx::query(sqlx::AssertSqlSafe(filter.query()))
        .bind(before)
        .bind(limit)
        .bind(&filter.workflow)
        .bind(&filter.fingerprint)
        .bind(filter.incident_id)
        .fetch_all(pool)
        .await?;
    Ok(rows.iter().map(letter).collect())
}

/// One letter.
pub async fn get(pool: &SqlitePool, id: i64) -> Result<Option<Letter>, StoreError> {
    let sql = format!("{LETTER} WHERE d.id = ?1");
    let row = sqlx::query(sqlx::AssertSqlSafe(sql)).bind(id).fetch_optional(pool).await?;
    Ok(row.as_ref().map(letter))
}

/// How many letters of an incident are open.
pub async fn open_of_incident(tx: &mut WriteTx, incident_id: i64) -> Result<u64, StoreError> {
    let (count,): (i64,) =
        sqlx::query_as("SELECT coalesce(sum(open_count), 0) FROM incident_letters WHERE incident_id = ?")
            .bind(incident_id)
            .fetch_one(&mut **tx)
            .await?;
    Ok(count.unsigned_abs())
}

/// Open letters of a workflow.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Backlog {
    /// Pipeline.
    pub workflow: String,
    /// Open letters.
    pub open: i64,
    /// Arrival of the oldest.
    pub oldest_at: Option<DateTime<Utc>>,
}

/// Every workflow that ever had a letter, with its open ones. Reads open letters only, which have an index of their own.
pub async fn backlog(pool: &SqlitePool) -> Result<Vec<Backlog>, StoreError> {
    let rows: Vec<(String, i64, Option<i64>)> = sqlx::query_as(
        "SELECT w.name, coalesce(o.open, 0), o.oldest FROM workflows w LEFT JOIN \
         (SELECT c.workflow_id, count(*) AS open, min(d.dead_lettered_at) AS oldest \
          FROM dead_letters d INDEXED BY dead_letters_waiting JOIN causes c ON c.id = d.cause_id \
          WHERE d.resolved_at IS NULL GROUP BY c.workflow_id) o ON o.workflow_id = w.id \
         WHERE o.open IS NOT NULL OR EXISTS \
         (SELECT 1 FROM causes k WHERE k.workflow_id = w.id AND k.disposition = 'dead_lettered') ORDER BY w.name",
    )
    .fetch_all(pool)
    .await?;
    Ok(rows
        .into_iter()
        .map(|(workflow, open, oldest)| Backlog { workflow, open, oldest_at: oldest.map(from_ms) })
        .collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::Store;

    #[tokio::test]
    async fn letters_of_an_incident_are_found_by_its_index_and_every_filter_can_be_asked() {
        let store = Store::open("sqlite::memory:").await.unwrap();
        for bits in 0..16 {
            let filter = LetterFilter {
                workflow: (bits & 1 > 0).then(|| "pay".to_owned()),
                fingerprint: (bits & 2 > 0).then(|| "v1:0".to_owned()),
                incident_id: (bits & 4 > 0).then_some(7),
                open_only: bits & 8 > 0,
            };
            assert_eq!(list(store.reader(), &filter, i64::MAX, 10).await.unwrap(), []);
        }
        let filter = LetterFilter { incident_id: Some(7), ..LetterFilter::default() };
        let plan = format!("EXPLAIN QUERY PLAN {}", filter.query());
        let rows = sqlx::query(sqlx::AssertSqlSafe(plan)).fetch_all(store.reader()).await.unwrap();
        let steps: Vec<String> = rows.iter().map(|row| row.get("detail")).collect();
        assert!(steps.iter().any(|step| step.contains("SEARCH letter_incidents")), "{steps:?}");
        assert!(!steps.iter().any(|step| step.contains("SCAN d")), "{steps:?}");
    }
}
