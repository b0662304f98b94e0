//! What symptoms are told from, kept over restarts: signals of each batch, the memory that they are folded into, states, and how
//! the dead letters of workflows stand. What they mean is decided by the `symptom` room.

use super::bulk::Bulk;
use super::{Store, StoreError, from_ms, to_ms};
use crate::symptom::Signal;
use chrono::{DateTime, Utc};
use sqlx::{SqliteConnection, SqlitePool};

/// Signals of one batch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SignalRow {
    /// Its number; a later batch has a higher one.
    pub id: i64,
    /// The signals, as JSON.
    pub signals: String,
}

/// A part of the memory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MemoryRow {
    /// Which part.
    pub part: String,
    /// As the `symptom` room writes it.
    pub body: Vec<u8>,
}

/// A symptom that fires.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StateRow {
    /// Its key.
    pub key: String,
    /// What became of it.
    pub told: String,
    /// Its state, as JSON.
    pub body: String,
}

/// How the dead letters of a workflow stand.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StandingRow {
    /// The workflow.
    pub workflow: String,
    /// Open ones.
    pub open_count: i64,
    /// The first failure of the oldest open one.
    pub oldest_failed_at: Option<DateTime<Utc>>,
    /// What the oldest is called: its item, else its step, else its class.
    pub oldest_name: Option<String>,
    /// When one was last resolved.
    pub last_resolved_at: Option<DateTime<Utc>>,
    /// The dependency that all open ones failed at, when there is just one.
    pub downstream: Option<String>,
}

/// Keeps the signals of a batch, in its own transaction.
pub async fn add_signals(tx: &mut SqliteConnection, signals: &[Signal]) -> Result<(), StoreError> {
    if signals.is_empty() {
        return Ok(());
    }
    let signals = serde_json::to_string(signals)
        .map_err(|e| StoreError::Corrupt { what: "symptom_signals.signals", why: e.to_string() })?;
    sqlx::query("INSERT INTO symptom_signals (signals) VALUES (?)").bind(signals).execute(tx).await?;
    Ok(())
}

/// Signals after the batch `after`, in order, at most `limit` batches.
pub async fn signals_after(pool: &SqlitePool, after: i64, limit: i64) -> Result<Vec<SignalRow>, StoreError> {
    let rows: Vec<(i64, String)> =
        sqlx::query_as("SELECT id, signals FROM symptom_signals WHERE id > ? ORDER BY id LIMIT ?")
            .bind(after)
            .bind(limit)
            .fetch_all(pool)
            .await?;
    Ok(rows.into_iter().map(|(id, signals)| SignalRow { id, signals }).collect())
}

/// The memory as it was last saved whole, and the last signals that are in it.
pub async fn memory(pool: &SqlitePool) -> Result<(Vec<MemoryRow>, i64), StoreError> {
    let (applied_id,): (i64,) =
        sqlx::query_as("SELECT CAST(value AS INTEGER) FROM settings WHERE name = 'symptom_memory'")
            .fetch_one(pool)
            .await?;
    let rows: Vec<(String, Vec<u8>, i64)> = sqlx::query_as(
        // The body beside a lone `max` is that of the row that has it.
        "SELECT part, body, max(applied_id) FROM symptom_memory WHERE applied_id <= ? GROUP BY part ORDER BY part",
    )
    .bind(applied_id)
    .fetch_all(pool)
    .await?;
    Ok((rows.into_iter().map(|(part, body, _)| MemoryRow { part, body }).collect(), applied_id))
}

static SAVE_MEMORY: Bulk = Bulk::new(
    "INSERT INTO symptom_memory (part, applied_id, body) VALUES",
    3,
    "ON CONFLICT (part, applied_id) DO UPDATE SET body = excluded.body",
);

/// Writes some parts of the memory, as of the signals up to `applied_id`. They count once `finish_memory` was committed.
pub async fn save_memory(tx: &mut SqliteConnection, rows: &[MemoryRow], applied_id: i64) -> Result<(), StoreError> {
    SAVE_MEMORY.execute(tx, rows, |query, row| query.bind(&row.part).bind(applied_id).bind(&row.body)).await?;
    Ok(())
}

/// All parts that changed were written: older ones, and the signals that are in the memory now, are forgotten.
pub async fn finish_memory(tx: &mut SqliteConnection, applied_id: i64) -> Result<(), StoreError> {
    sqlx::query("UPDATE settings SET value = ? WHERE name = 'symptom_memory'")
        .bind(applied_id.to_string())
        .execute(&mut *tx)
        .await?;
    sqlx::query(
        "DELETE FROM symptom_memory WHERE applied_id < ?1 AND part IN (SELECT part FROM symptom_memory WHERE applied_id = ?1)",
    )
    .bind(applied_id)
    .execute(&mut *tx)
    .await?;
    sqlx::query("DELETE FROM symptom_signals WHERE id <= ?").bind(applied_id).execute(tx).await?;
    Ok(())
}

/// Every symptom that fires.
pub async fn states(pool: &SqlitePool) -> Result<Vec<StateRow>, StoreError> {
    let rows: Vec<(String, String, String)> =
        sqlx::query_as("SELECT key, told, body FROM symptom_states ORDER BY key").fetch_all(pool).await?;
    Ok(rows.into_iter().map(|(key, told, body)| StateRow { key, told, body }).collect())
}

/// Keeps a symptom that fires.
pub async fn save_state(tx: &mut SqliteConnection, row: &StateRow) -> Result<(), StoreError> {
    sqlx::query(
        "INSERT INTO symptom_states (key, told, body) VALUES (?, ?, ?) \
         ON CONFLICT (key) DO UPDATE SET told = excluded.told, body = excluded.body",
    )
    .bind(&row.key)
    .bind(&row.told)
    .bind(&row.body)
    .execute(tx)
    .await?;
    Ok(())
}

/// Forgets a symptom that is over.
pub async fn remove_state(tx: &mut SqliteConnection, key: &str) -> Result<(), StoreError> {
    sqlx::query("DELETE FROM symptom_states WHERE key = ?").bind(key).execute(tx).await?;
    Ok(())
}

/// Since when each of these workflows is known; from `now` on when it was not.
pub async fn known_since(
    store: &Store,
    workflows: &[&str],
    now: DateTime<Utc>,
) -> Result<Vec<(String, DateTime<Utc>)>, StoreError> {
    let names =
        serde_json::to_string(workflows).map_err(|e| StoreError::Corrupt { what: "workflows", why: e.to_string() })?;
    let mut tx = store.begin().await?;
    sqlx::query("INSERT INTO symptom_known (workflow, since) SELECT value, ?2 FROM json_each(?1) WHERE true ON CONFLICT DO NOTHING")
        .bind(&names)
        .bind(to_ms(now))
        .execute(&mut *tx)
        .await?;
    // One that config has no more and has again later is new then.
    sqlx::query("DELETE FROM symptom_known WHERE workflow NOT IN (SELECT value FROM json_each(?1))")
        .bind(&names)
        .execute(&mut *tx)
        .await?;
    let rows: Vec<(String, i64)> =
        sqlx::query_as("SELECT workflow, since FROM symptom_known ORDER BY workflow").fetch_all(&mut *tx).await?;
    tx.commit().await?;
    Ok(rows.into_iter().map(|(workflow, since)| (workflow, from_ms(since))).collect())
}

/// How the dead letters of these workflows stand, given as a JSON list of names. Of a tie the older row is the oldest.
pub async fn standings(pool: &SqlitePool, workflows: &[&str]) -> Result<Vec<StandingRow>, StoreError> {
    let names =
        serde_json::to_string(workflows).map_err(|e| StoreError::Corrupt { what: "workflows", why: e.to_string() })?;
    type Row = (String, i64, Option<i64>, Option<String>, Option<i64>, Option<String>);
    let rows: Vec<Row> = sqlx::query_as(
        // The columns beside a lone `min` are those of the row that has it.
        "SELECT w.name, count(d.id), min(d.failed_at * 1000000 + d.id % 1000000) / 1000000, \
         coalesce(d.item, d.step, 'a failure that is ' || d.class), w.letter_resolved_at, \
         CASE WHEN count(DISTINCT d.downstream) = 1 AND count(d.downstream) = count(d.id) THEN group_concat(DISTINCT d.downstream) END \
         FROM json_each(?1) n JOIN workflows w ON w.name = n.value LEFT JOIN \
         (SELECT l.id, l.failed_at, l.item, c.step, c.class, c.downstream, c.workflow_id \
          FROM causes c JOIN dead_letters l ON l.cause_id = c.id AND l.resolved_at IS NULL) d ON d.workflow_id = w.id \
         GROUP BY w.id ORDER BY w.name",
    )
    .bind(names)
    .fetch_all(pool)
    .await?;
    let row = |(workflow, open_count, oldest, name, resolved, downstream): Row| StandingRow {
        workflow,
        open_count,
        oldest_failed_at: oldest.map(from_ms),
        oldest_name: name.filter(|_| oldest.is_some()),
        last_resolved_at: resolved.map(from_ms),
        downstream,
    };
    Ok(rows.into_iter().map(row).collect())
}

/// Workflows that ever had a dead letter.
pub async fn workflows_with_letters(pool: &SqlitePool) -> Result<Vec<String>, StoreError> {
    let rows: Vec<(String,)> = sqlx::query_as(
        "SELECT w.name FROM workflows w WHERE EXISTS \
         (SELECT 1 FROM causes c WHERE c.workflow_id = w.id AND c.disposition = 'dead_lettered') ORDER BY w.name",
    )
    .fetch_all(pool)
    .await?;
    Ok(rows.into_iter().map(|(name,)| name).collect())
}

/// When dead letters of a workflow arrived, from `from` on.
pub async fn arrivals(
    pool: &SqlitePool,
    workflow: &str,
    from: DateTime<Utc>,
) -> Result<Vec<DateTime<Utc>>, StoreError> {
    let rows: Vec<(i64,)> = sqlx::query_as(
        "SELECT d.dead_lettered_at FROM dead_letters d JOIN causes c ON c.id = d.cause_id \
         JOIN workflows w ON w.id = c.workflow_id WHERE d.dead_lettered_at >= ? AND w.name = ? ORDER BY 1",
    )
    .bind(to_ms(from))
    .bind(workflow)
    .fetch_all(pool)
    .await?;
    Ok(rows.into_iter().map(|(at,)| from_ms(at)).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::name::WorkflowName;
    use crate::store::Store;
    use crate::store::letters::{self, LetterRow, ResolutionRow};
    use crate::symptom::What;

    fn at(seconds: i64) -> DateTime<Utc> {
        DateTime::from_timestamp(1_796_000_000 + seconds, 0).unwrap()
    }

    fn letter(number: u8, failed_at: i64, item: Option<&str>) -> LetterRow {
        LetterRow {
            key: [number; 16],
            cause_id: 1,
            decision_id: 1,
            item: item.map(str::to_owned),
            error_message: None,
            links: "{}".to_owned(),
            payload: None,
            payload_cut: false,
            failed_at: at(failed_at),
            arrived_at: at(failed_at),
            attempt_count: 1,
            times: 1,
            incident_id: None,
            redrive_count: 0,
        }
    }

    async fn store() -> Store {
        let store = Store::open("sqlite::memory:").await.unwrap();
        for sql in [
            "INSERT INTO workflows (id, name, first_heard_at, last_heard_at) VALUES (1, 'pay', 0, 0), (2, 'report', 0, 0)",
            "INSERT INTO causes (id, key, fingerprint, workflow_id, event_type, class, disposition, downstream, sample, first_seen_at) \
             VALUES (1, x'00', 'v1:0', 1, 'failure', 'persistent', 'dead_lettered', 'hubspot', '', 0)",
            "INSERT INTO decisions (id, config_version, routes, page, digests, fate, fate_id, reason) VALUES (1, '', '', '', '', '', '', '')",
        ] {
            sqlx::query(sql).execute(store.reader()).await.unwrap();
        }
        store
    }

    #[tokio::test]
    async fn the_oldest_open_letter_is_named_and_progress_is_kept() {
        let store = store().await;
        let mut tx = store.begin().await.unwrap();
        let rows = [letter(1, 60, Some("order-2")), letter(2, 0, Some("order-1")), letter(3, 0, None)];
        letters::open(&mut tx, &rows).await.unwrap();
        tx.commit().await.unwrap();
        let standing = |open_count, oldest: Option<i64>, name: Option<&str>, resolved: Option<i64>| StandingRow {
            workflow: "pay".to_owned(),
            open_count,
            oldest_failed_at: oldest.map(at),
            oldest_name: name.map(str::to_owned),
            last_resolved_at: resolved.map(at),
            downstream: (open_count > 0).then(|| "hubspot".to_owned()),
        };
        let found = standings(store.reader(), &["pay", "unknown"]).await.unwrap();
        assert_eq!(found, [standing(3, Some(0), Some("order-1"), None)]);
        for (number, seconds) in [(2, 90), (3, 95)] {
            let mut tx = store.begin().await.unwrap();
            let resolution = ResolutionRow { key: [number; 16], note: None, by: None, at: at(seconds) };
            let resolved = letters::resolve_by_keys(&mut tx, &[resolution]).await.unwrap();
            letters::note_resolved(&mut tx, &resolved).await.unwrap();
            tx.commit().await.unwrap();
        }
        let found = standings(store.reader(), &["pay"]).await.unwrap();
        assert_eq!(found, [standing(1, Some(60), Some("order-2"), Some(95))]);
        let none = StandingRow { workflow: "report".to_owned(), ..standing(0, None, None, None) };
        assert_eq!(standings(store.reader(), &["report"]).await.unwrap(), [none]);
        assert_eq!(workflows_with_letters(store.reader()).await.unwrap(), ["pay"]);
        assert_eq!(arrivals(store.reader(), "pay", at(30)).await.unwrap(), [at(60)]);
    }

    #[tokio::test]
    async fn signals_are_read_in_order_and_numbers_are_not_used_again() {
        let store = store().await;
        let mut tx = store.begin().await.unwrap();
        let signal = Signal { workflow: WorkflowName::new("pay"), at: at(0), arrived_at: None, what: What::Resolved };
        add_signals(&mut tx, &[]).await.unwrap();
        for _ in 0..3 {
            add_signals(&mut tx, std::slice::from_ref(&signal)).await.unwrap();
        }
        finish_memory(&mut tx, 3).await.unwrap();
        add_signals(&mut tx, std::slice::from_ref(&signal)).await.unwrap();
        tx.commit().await.unwrap();
        let rows = signals_after(store.reader(), 0, 10).await.unwrap();
        assert_eq!(rows.len(), 1);
        assert_eq!((rows[0].id, serde_json::from_str(&rows[0].signals).ok()), (4, Some(vec![signal])));
        assert_eq!(signals_after(store.reader(), 4, 10).await.unwrap(), []);
    }

    #[tokio::test]
    async fn a_save_that_was_cut_short_counts_for_nothing() {
        let store = store().await;
        let row = |part: &str, body: u8| MemoryRow { part: part.to_owned(), body: vec![body] };
        for (rows, applied_id, is_whole) in
            [(vec![row("a", 1), row("b", 1)], 5, true), (vec![row("a", 2)], 7, true), (vec![row("b", 3)], 9, false)]
        {
            let mut tx = store.begin().await.unwrap();
            save_memory(&mut tx, &rows, applied_id).await.unwrap();
            if is_whole {
                finish_memory(&mut tx, applied_id).await.unwrap();
            }
            tx.commit().await.unwrap();
        }
        assert_eq!(memory(store.reader()).await.unwrap(), (vec![row("a", 2), row("b", 1)], 7));
    }
}
