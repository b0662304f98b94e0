//! When workflows were last heard, and what their heartbeats say.

use super::{StoreError, WriteTx, json, to_ms};
use chrono::{DateTime, Utc};

/// Workflows were heard, each at its instant.
pub async fn note_heard(tx: &mut WriteTx, heard: &[(i64, DateTime<Utc>)]) -> Result<(), StoreError> {
    if let Some(played) = tx.played() {
        heard.iter().for_each(|(id, at)| played.intake.note_heard(*id, *at));
        return Ok(());
    }
    let pairs: Vec<(i64, i64)> = heard.iter().map(|(id, at)| (*id, to_ms(*at))).collect();
    sqlx::query(
        "UPDATE workflows SET last_heard_at = max(last_heard_at, h.value ->> 1) FROM json_each(?1) h WHERE workflows.id = h.value ->> 0",
    )
    .bind(json(&pairs)?)
    .execute(&mut **tx)
    .await?;
    Ok(())
}

/// Keeps the newest heartbeat of a workflow.
pub async fn note_heartbeat(
    tx: &mut WriteTx,
    workflow_id: i64,
    status: &str,
    at: DateTime<Utc>,
) -> Result<(), StoreError> {
    if tx.played().is_some() {
        // Nothing of a play asks for it.
        return Ok(());
    }
    sqlx::query(
        "UPDATE workflows SET heartbeat_status = ?2, heartbeat_at = ?3 \
         WHERE id = ?1 AND coalesce(heartbeat_at, 0) <= ?3",
    )
    .bind(workflow_id)
    .bind(status)
    .bind(to_ms(at))
    .execute(&mut **tx)
    .await?;
    Ok(())
}
