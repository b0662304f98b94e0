//! Forgetting messages that are long settled.

use crate::store::retention::ROWS_MAX;
use crate::store::{StoreError, WriteTx, to_ms};
use chrono::{DateTime, Utc};

/// Forgets some of the settled entries that were made before `since`; what stands in for one that waits stays with it. True when there
/// may be more.
///
/// # Errors
/// When the database refuses.
pub async fn forget_settled(tx: &mut WriteTx, since: DateTime<Utc>) -> Result<bool, StoreError> {
    if tx.played().is_some() {
        // What was taken from it is gone.
        return Ok(false);
    }
    let old = "created_at < ?1 AND state <> 'pending' AND id < (SELECT min(id) FROM outbox) + ?2";
    let statements = [
        format!("UPDATE outbox SET fallback_of = NULL WHERE fallback_of IN (SELECT id FROM outbox WHERE {old})"),
        format!("DELETE FROM outbox WHERE {old} AND fallback_of IS NULL"),
    ];
    let mut forgotten = 0;
    for sql in statements {
        let done = sqlx::query(sqlx::AssertSqlSafe(sql)).bind(to_ms(since)).bind(ROWS_MAX).execute(&mut **tx).await?;
        forgotten += done.rows_affected();
    }
    Ok(forgotten > 0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::Store;

    #[tokio::test]
    async fn what_is_settled_and_old_goes_and_what_waits_stays_with_what_stands_in_for_it() {
        let store = Store::open("sqlite::memory:").await.unwrap();
        let mut tx = store.begin().await.unwrap();
        let fill = "WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 20) \
            INSERT INTO outbox (id, number, kind, priority, receiver, template, view, content, state, due_at, created_at) \
            SELECT i, i, 'digest', 4, 'ops', '', '', '', CASE WHEN i = 2 THEN 'pending' ELSE 'sent' END, 0, i * 100 FROM n; \
            UPDATE outbox SET fallback_id = id + 1 WHERE id IN (2, 4, 9); UPDATE outbox SET fallback_of = id - 1 WHERE id IN (3, 5, 10);";
        sqlx::raw_sql(fill).execute(&mut *tx).await.unwrap();
        while forget_settled(&mut tx, DateTime::from_timestamp_millis(1_000).unwrap()).await.unwrap() {}
        tx.commit().await.unwrap();
        let rows: Vec<(i64,)> =
            sqlx::query_as("SELECT id FROM outbox ORDER BY id").fetch_all(store.reader()).await.unwrap();
        let ids: Vec<i64> = rows.into_iter().map(|(id,)| id).collect();
        assert_eq!(ids, [vec![2, 3], (10..=20).collect()].concat());
    }
}
