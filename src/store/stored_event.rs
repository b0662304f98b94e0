//! Stored events: one with what was decided about it, for `explain`, and many as they came in, for a backtest. Read only.

use super::key::key_of;
use super::{StoreError, from_ms, to_ms};
use crate::event::{Class, Disposition, Fingerprint};
use chrono::{DateTime, Utc};
use sqlx::{Row, SqlitePool};
use std::collections::BTreeMap;

/// A stored event.
#[derive(Clone, Debug)]
pub struct StoredEvent {
    /// When JetStream stored it.
    pub received_at: DateTime<Utc>,
    /// When it happened.
    pub occurred_at: DateTime<Utc>,
    /// Its class, as given then.
    pub class: Class,
    /// Why it has that class.
    pub class_rule: String,
    /// What became of it, as understood then.
    pub disposition: Disposition,
    /// Its cause.
    pub fingerprint: Fingerprint,
    /// The event as redacted JSON.
    pub body: String,
    /// Version of the config that decided.
    pub config_version: String,
    /// Routes that matched, JSON list.
    pub routes: String,
    /// Page receivers, JSON list.
    pub page: String,
    /// Digests and receivers, JSON list of pairs.
    pub digests: String,
    /// Digests and receivers that tell it by now, JSON list of pairs: those of the decision, and who took their places.
    pub tellers: String,
    /// `open`, `silenced` or `paged`.
    pub fate: String,
    /// The silence or incident.
    pub fate_id: String,
    /// Named reason.
    pub reason: String,
    /// The incident that it belongs to.
    pub incident_id: Option<i64>,
}

/// The event of this id; none when it is not stored.
pub async fn find(pool: &SqlitePool, id: &str) -> Result<Option<StoredEvent>, StoreError> {
    let row = sqlx::query(
        "SELECT e.received_at, e.occurred_at, k.class, e.class_rule, k.disposition, k.fingerprint, e.body, d.config_version, d.routes, \
         d.page, d.digests, d.fate, d.fate_id, d.reason, i.incident_id, \
         (SELECT json_group_array(json_array(t.digest, t.receiver)) FROM decision_targets t WHERE t.decision_id = d.id) \
         FROM events e JOIN causes k ON k.id = e.cause_id JOIN decisions d ON d.id = e.decision_id \
         LEFT JOIN incident_events i ON i.event_seq = e.seq WHERE e.key = ?",
    )
    .bind(&key_of(id)[..])
    .fetch_optional(pool)
    .await?;
    let Some(row) = row else { return Ok(None) };
    let (class, disposition): (String, String) = (row.get(2), row.get(4));
    let corrupt = |what, why: &str| StoreError::Corrupt { what, why: format!("unknown word {why:?}") };
    Ok(Some(StoredEvent {
        received_at: from_ms(row.get(0)),
        occurred_at: from_ms(row.get(1)),
        class: Class::parse(&class).ok_or_else(|| corrupt("causes.class", &class))?,
        class_rule: row.get(3),
        disposition: Disposition::parse(&disposition).ok_or_else(|| corrupt("causes.disposition", &disposition))?,
        fingerprint: Fingerprint(row.get::<String, _>(5).into()),
        body: row.get(6),
        config_version: row.get(7),
        routes: row.get(8),
        page: row.get(9),
        digests: row.get(10),
        fate: row.get(11),
        fate_id: row.get(12),
        reason: row.get(13),
        incident_id: row.get(14),
        tellers: row.get(15),
    }))
}

/// Rows and arrivals of the events that arrived from `from` on and before `to`, by arrival; arrivals are ms since 1970.
pub async fn arrivals(
    pool: &SqlitePool,
    from: DateTime<Utc>,
    to: DateTime<Utc>,
) -> Result<Vec<(i64, i64)>, StoreError> {
    let sql =
        "SELECT seq, received_at FROM events WHERE received_at >= ? AND received_at < ? ORDER BY received_at, seq";
    Ok(sqlx::query_as(sql).bind(to_ms(from)).bind(to_ms(to)).fetch_all(pool).await?)
}

/// A stored event as it came in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Recorded {
    /// Its workflow, which the body need not name.
    pub workflow: String,
    /// The event as redacted JSON.
    pub body: String,
}

/// Events by row; those that were forgotten meanwhile are left out.
pub async fn recorded(pool: &SqlitePool, rows: &[i64]) -> Result<BTreeMap<i64, Recorded>, StoreError> {
    let list = serde_json::to_string(rows).map_err(|e| StoreError::Corrupt { what: "events", why: e.to_string() })?;
    let found: Vec<(i64, String, String)> = sqlx::query_as(
        "SELECT e.seq, w.name, e.body FROM events e JOIN causes k ON k.id = e.cause_id JOIN workflows w ON w.id = k.workflow_id \
         WHERE e.seq IN (SELECT value FROM json_each(?))",
    )
    .bind(list)
    .fetch_all(pool)
    .await?;
    Ok(found.into_iter().map(|(seq, workflow, body)| (seq, Recorded { workflow, body })).collect())
}
