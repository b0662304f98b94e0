//! When workflows were last heard, and what their heartbeats say.

use super::{StoreError, json, to_ms};
use chrono::{DateTime, Utc};
use sqlx::SqliteConnection;

/// Workflows were heard, each at its instant.
pub async fn note_heard(tx: &mut SqliteConnection, heard: &[(i64, DateTime<Utc>)]) -> Result<(), StoreError> {
    let pairs: Vec<(i64, i64)> = heard.iter().map(|(id, at)| (*id, to_ms(*at))).collect();
    sqlx::query(
        "UPDATE workflows SET last_heard_at = max(last_heard_at, h.value ->> 1) FROM json_each(?1) h WHERE workflows.id = h.value ->> 0",
    )
    .bind(json(&pairs)?)
    .execute(tx)
    .await?;
    Ok(())
}

/// Keeps the newest heartbeat of a workflow.
pub async fn note_heartbeat(
    tx: &mut SqliteConnection,
    workflow_id: i64,
    status: &str,
    at: DateTime<Utc>,
) -> Result<(), StoreError> {
    sqlx::query(
        "UPDATE workflows SET heartbeat_status = ?2, heartbeat_at = ?3 \
         WHERE id = ?1 AND coalesce(heartbeat_at, 0) <= ?3",
    )
    .bind(workflow_id)
    .bind(status)
    .bind(to_ms(at))
    .execute(tx)
    .await?;
    Ok(())
}
