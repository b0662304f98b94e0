//! Forgets what is older than config keeps it. What is still needed stays however old it is: dead letters, incidents. Messages are the
//! outbox's to forget.

use super::{StoreError, WriteTx, to_ms};
use chrono::{DateTime, Utc};

/// Rows of a table that one call looks at: intake waits for the one writer meanwhile.
pub const ROWS_MAX: i64 = 5_000;

/// Since when things are kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Keep {
    /// Events and unreadable messages.
    pub events_since: DateTime<Utc>,
    /// Counters.
    pub counters_since: DateTime<Utc>,
    /// Digests.
    pub digests_since: DateTime<Utc>,
}

/// Picks the instant for a table.
type Since = fn(&Keep) -> DateTime<Utc>;

/// The statements, and which instant each is given. All look at the oldest rows alone, which are those that a table begins with.
const STATEMENTS: [(&str, Since); 5] = [
    ("DELETE FROM events WHERE received_at < ?1 AND seq < (SELECT min(seq) FROM events) + ?2", |k| k.events_since),
    (
        "DELETE FROM incident_events WHERE event_seq < min(coalesce((SELECT min(seq) FROM events), 9000000000000000), \
         (SELECT min(event_seq) FROM incident_events) + ?2)",
        |k| k.events_since,
    ),
    (
        "DELETE FROM quarantine WHERE id IN (SELECT id FROM quarantine WHERE received_at < ?1 ORDER BY received_at LIMIT ?2)",
        |k| k.events_since,
    ),
    // A minute has as many rows as there are causes.
    ("DELETE FROM counters WHERE minute < ?1 AND minute <= (SELECT min(minute) FROM counters) + ?2 * 720", |k| {
        k.counters_since
    }),
    ("DELETE FROM digests WHERE composed_at < ?1 AND id < (SELECT min(id) FROM digests) + ?2", |k| k.digests_since),
];

/// Forgets some of what is older. True when there may be more.
///
/// # Errors
/// When the database refuses.
pub async fn forget(tx: &mut WriteTx, keep: &Keep) -> Result<bool, StoreError> {
    if let Some(played) = tx.played() {
        played.counters.forget_before(keep.counters_since);
        played.intake.forget_before(keep.events_since);
        return Ok(false);
    }
    let mut forgotten = 0;
    for (sql, since) in STATEMENTS {
        let done = sqlx::query(sql).bind(to_ms(since(keep))).bind(ROWS_MAX).execute(&mut **tx).await?;
        forgotten += done.rows_affected();
    }
    Ok(forgotten > 0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::Store;

    fn at(ms: i64) -> DateTime<Utc> {
        DateTime::from_timestamp_millis(ms).unwrap()
    }

    async fn store() -> Store {
        let store = Store::open("sqlite::memory:").await.unwrap();
        let fill = "
            INSERT INTO workflows (id, name, first_heard_at, last_heard_at) VALUES (1, 'pay', 0, 0);
            INSERT INTO causes (id, key, fingerprint, workflow_id, event_type, class, disposition, sample, first_seen_at)
            VALUES (1, x'00', 'v1:0', 1, 'failure', 'persistent', 'dead_lettered', '', 0);
            INSERT INTO decisions (id, config_version, routes, page, digests, fate, fate_id, reason) VALUES (1, '', '', '', '', '', '', '');
            INSERT INTO incidents (id, state, opened_at, body) VALUES (1, 'resolved', 0, '{}');
            WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 20)
            INSERT INTO events SELECT i, CAST(i AS BLOB), 0, i * 100, i * 100, 1, 1, '', '{}' FROM n;
            INSERT INTO incident_events SELECT seq, 1 FROM events;
            INSERT INTO counters SELECT seq * 100, 1, 1, 1, 0, 0, 0, 0, 0 FROM events;
            INSERT INTO quarantine SELECT seq, 's', seq, '', '', '', '', seq * 100, x'' FROM events;
            INSERT INTO digests SELECT seq, 'd', 'r', seq, seq + 1, 0, seq * 100, 'enqueued', 0, NULL, NULL, '', '' FROM events;";
        let mut tx = store.begin().await.unwrap();
        sqlx::raw_sql(fill).execute(&mut *tx).await.unwrap();
        tx.commit().await.unwrap();
        store
    }

    async fn left(store: &Store, table: &str) -> Vec<i64> {
        let sql = format!("SELECT {table}");
        let rows: Vec<(i64,)> = sqlx::query_as(sqlx::AssertSqlSafe(sql)).fetch_all(store.reader()).await.unwrap();
        let mut ids: Vec<i64> = rows.into_iter().map(|(id,)| id).collect();
        ids.sort_unstable();
        ids
    }

    async fn forget_all(store: &Store, keep: &Keep) {
        loop {
            let mut tx = store.begin().await.unwrap();
            let has_more = forget(&mut tx, keep).await.unwrap();
            tx.commit().await.unwrap();
            if !has_more {
                return;
            }
        }
    }

    #[tokio::test]
    async fn what_is_older_goes() {
        let store = store().await;
        forget_all(&store, &Keep { events_since: at(500), counters_since: at(1_100), digests_since: at(1_000) }).await;
        let from = |first: i64| (first..=20).collect::<Vec<_>>();
        assert_eq!(left(&store, "seq FROM events").await, from(5));
        assert_eq!(left(&store, "event_seq FROM incident_events").await, from(5));
        assert_eq!(left(&store, "id FROM quarantine").await, from(5));
        assert_eq!(left(&store, "minute / 100 FROM counters").await, from(11));
        assert_eq!(left(&store, "id FROM digests").await, from(10));
    }

    #[tokio::test]
    async fn nothing_is_left_when_all_is_old_and_new_rows_find_their_place() {
        let store = store().await;
        let keep = Keep { events_since: at(9_000), counters_since: at(9_000), digests_since: at(9_000) };
        forget_all(&store, &keep).await;
        for table in ["seq FROM events", "event_seq FROM incident_events", "minute FROM counters", "id FROM digests"] {
            assert!(left(&store, table).await.is_empty(), "{table}");
        }
    }
}
