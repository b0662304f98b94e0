//! Digests on their way to a receiver that has another name now.

use crate::outbox::policy::{DeadReason, GIVE_UP_AFTER};
use crate::store::{StoreError, WriteTx, to_ms};
use chrono::{DateTime, Utc};

/// Sends what waits of `digest` for receiver `old` to the one that took its place, and what was given up because config did not know
/// `old` any more. Answers how many messages that were.
///
/// # Errors
/// When the database refuses.
pub async fn move_digests(
    tx: &mut WriteTx,
    digest: &str,
    (old, new): (&str, &str),
    now: DateTime<Utc>,
) -> Result<u64, StoreError> {
    let sql = "UPDATE outbox SET receiver = ?3, state = 'pending', reason = NULL, last_error = NULL, due_at = ?4 \
               WHERE kind = 'digest' AND receiver = ?2 AND created_at >= ?5 AND lease_owner IS NULL \
               AND digest_id IN (SELECT id FROM digests WHERE digest = ?1) \
               AND (state = 'pending' OR (state = 'dead' AND reason = ?6))";
    let done = sqlx::query(sql)
        .bind(digest)
        .bind(old)
        .bind(new)
        .bind(to_ms(now))
        .bind(to_ms(now - GIVE_UP_AFTER))
        .bind(DeadReason::UnknownReceiver.as_str())
        .execute(&mut **tx)
        .await?;
    Ok(done.rows_affected())
}
