//! What symptoms are told from, kept over restarts: signals of each batch, the memory that they are folded into, states, and how
//! the dead letters of workflows stand. What they mean is decided by the `symptom` room.

use super::bulk::Bulk;
use super::{StoreError, from_ms, to_ms};
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
    /// The last signals that are in it.
    pub applied_id: i64,
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
    /// What the oldest is called: its item, else its row.
    pub oldest_name: Option<String>,
    /// When one was last resolved.
    pub last_resolved_at: Option<DateTime<Utc>>,
}

/// Keeps the signals of a batch, in its own transaction.
pub async fn add_signals(tx: &mut SqliteConnection, signals: &str) -> Result<(), StoreError> {
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

/// Forgets signals before the batch `id`: all memory has them.
pub async fn forget_signals(tx: &mut SqliteConnection, before: i64) -> Result<(), StoreError> {
    sqlx::query("DELETE FROM symptom_signals WHERE id < ?").bind(before).execute(tx).await?;
    Ok(())
}

/// All of the memory.
pub async fn memory(pool: &SqlitePool) -> Result<Vec<MemoryRow>, StoreError> {
    let rows: Vec<(String, i64, Vec<u8>)> =
        sqlx::query_as("SELECT part, applied_id, body FROM symptom_memory ORDER BY part").fetch_all(pool).await?;
    Ok(rows.into_iter().map(|(part, applied_id, body)| MemoryRow { part, applied_id, body }).collect())
}

static SAVE_MEMORY: Bulk = Bulk::new(
    "INSERT INTO symptom_memory (part, applied_id, body) VALUES",
    3,
    "ON CONFLICT (part) DO UPDATE SET applied_id = excluded.applied_id, body = excluded.body",
);

/// Writes parts of the memory whole.
pub async fn save_memory(tx: &mut SqliteConnection, rows: &[MemoryRow]) -> Result<(), StoreError> {
    SAVE_MEMORY.execute(tx, rows, |query, row| query.bind(&row.part).bind(row.applied_id).bind(&row.body)).await?;
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

/// How the dead letters of these workflows stand, given as a JSON list of names. Of a tie the older row is the oldest.
pub async fn standings(pool: &SqlitePool, workflows: &[&str]) -> Result<Vec<StandingRow>, StoreError> {
    let names =
        serde_json::to_string(workflows).map_err(|e| StoreError::Corrupt { what: "workflows", why: e.to_string() })?;
    let rows: Vec<(String, i64, Option<i64>, Option<String>, Option<i64>)> = sqlx::query_as(
        // The columns beside a lone `min` are those of the row that has it.
        "SELECT w.name, count(d.id), min(d.failed_at * 1000000 + d.id % 1000000) / 1000000, coalesce(d.item, 'letter ' || d.id), \
         w.letter_resolved_at FROM json_each(?1) n JOIN workflows w ON w.name = n.value \
         LEFT JOIN causes c ON c.workflow_id = w.id AND c.disposition = 'dead_lettered' \
         LEFT JOIN dead_letters d ON d.cause_id = c.id AND d.resolved_at IS NULL \
         GROUP BY w.id ORDER BY w.name",
    )
    .bind(names)
    .fetch_all(pool)
    .await?;
    let row =
        |(workflow, open_count, oldest, name, resolved): (String, i64, Option<i64>, Option<String>, Option<i64>)| {
            StandingRow {
                workflow,
                open_count,
                oldest_failed_at: oldest.map(from_ms),
                oldest_name: name.filter(|_| oldest.is_some()),
                last_resolved_at: resolved.map(from_ms),
            }
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
    use crate::store::Store;
    use crate::store::letters::{self, LetterRow, ResolutionRow};

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
            "INSERT INTO causes (id, key, fingerprint, workflow_id, event_type, class, disposition, sample, first_seen_at) \
             VALUES (1, x'00', 'v1:0', 1, 'failure', 'persistent', 'dead_lettered', '', 0)",
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
        for signals in ["[1]", "[2]", "[3]"] {
            add_signals(&mut tx, signals).await.unwrap();
        }
        forget_signals(&mut tx, 4).await.unwrap();
        add_signals(&mut tx, "[4]").await.unwrap();
        tx.commit().await.unwrap();
        let rows = signals_after(store.reader(), 0, 10).await.unwrap();
        assert_eq!(rows, [SignalRow { id: 4, signals: "[4]".to_owned() }]);
        assert_eq!(signals_after(store.reader(), 4, 10).await.unwrap(), []);
    }
}
