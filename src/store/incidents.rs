//! Incidents in the store. Their states are moved by the `incident` room; here they are read and written whole.

use super::bulk::Bulk;
use super::{ReadConn, StoreError, WriteTx, json, to_ms};
use crate::incident::{Incident, IncidentId, IncidentState};
use sqlx::{SqliteConnection, SqlitePool};
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use tracing::error;

fn read(body: &str) -> Result<Incident, StoreError> {
    serde_json::from_str(body).map_err(|e| StoreError::Corrupt { what: "incidents.body", why: e.to_string() })
}

/// An incident that can't be read is said and left out: the next failure then opens a new one. A page too many is better than an intake
/// that stands still.
fn readable(body: &str) -> Option<Incident> {
    read(body).inspect_err(|error| error!(%error, "a stored incident can't be read; it is left out")).ok()
}

fn write(incident: &Incident) -> Result<String, StoreError> {
    serde_json::to_string(incident).map_err(|e| StoreError::Corrupt { what: "incidents.body", why: e.to_string() })
}

/// The row number that the next incident will have.
pub async fn next_id(tx: &mut WriteTx) -> Result<IncidentId, StoreError> {
    if let Some(played) = tx.played() {
        return Ok(played.incidents.next_id());
    }
    let (last,): (Option<i64>,) = sqlx::query_as("SELECT max(id) FROM incidents").fetch_one(&mut **tx).await?;
    Ok(IncidentId(last.unwrap_or(0) + 1))
}

/// The unresolved incident that a key leads to.
pub async fn find_open(tx: &mut WriteTx, key: &str) -> Result<Option<Incident>, StoreError> {
    if let Some(played) = tx.played() {
        return Ok(played.incidents.of_key(key).cloned());
    }
    let row: Option<(String,)> =
        sqlx::query_as("SELECT i.body FROM incident_keys k JOIN incidents i ON i.id = k.incident_id WHERE k.key = ?")
            .bind(key)
            .fetch_optional(&mut **tx)
            .await?;
    Ok(row.and_then(|(body,)| readable(&body)))
}

/// Incidents of one downstream that are looked at.
const SHARING_MAX: usize = 20;

/// Unresolved incidents that a downstream caused, newest first, at most `SHARING_MAX`.
pub async fn open_of_downstream(tx: &mut WriteTx, downstream: &str) -> Result<Vec<Incident>, StoreError> {
    if let Some(played) = tx.played() {
        return Ok(played.incidents.of_downstream(downstream).take(SHARING_MAX).cloned().collect());
    }
    let rows: Vec<(String,)> = sqlx::query_as(
        "SELECT body FROM incidents WHERE state <> 'resolved' AND downstream = ? ORDER BY id DESC LIMIT ?",
    )
    .bind(downstream)
    .bind(SHARING_MAX as i64)
    .fetch_all(&mut **tx)
    .await?;
    Ok(rows.iter().filter_map(|(body,)| readable(body)).collect())
}

/// Incidents as they were last read, by row, each with its version: one that has not changed is not read again.
#[derive(Debug, Default)]
pub struct Known(HashMap<i64, (i64, Arc<Incident>)>);

/// Incidents that are kept when nobody asks for as many.
const KNOWN_MAX: usize = 500;

impl Known {
    /// Reads those of these (row, version) that are new or have changed.
    pub(super) async fn refresh(
        &mut self,
        conn: &mut SqliteConnection,
        wanted: &BTreeMap<i64, i64>,
    ) -> Result<(), StoreError> {
        if self.0.len() > KNOWN_MAX.max(wanted.len()) {
            self.0.retain(|id, _| wanted.contains_key(id));
        }
        let is_known = |id: &i64, version: &i64| self.0.get(id).is_some_and(|(known, _)| known == version);
        let missing: Vec<i64> =
            wanted.iter().filter(|(id, version)| !is_known(id, version)).map(|(id, _)| *id).collect();
        if missing.is_empty() {
            return Ok(());
        }
        let rows: Vec<(i64, i64, String)> =
            sqlx::query_as("SELECT id, version, body FROM incidents WHERE id IN (SELECT value FROM json_each(?))")
                .bind(json(&missing)?)
                .fetch_all(conn)
                .await?;
        for (id, version, body) in rows {
            match readable(&body) {
                Some(incident) => _ = self.0.insert(id, (version, Arc::new(incident))),
                None => _ = self.0.remove(&id),
            }
        }
        Ok(())
    }

    /// An incident was written and is known without being read.
    pub fn note(&mut self, version: i64, incident: Arc<Incident>) {
        self.0.insert(incident.id.0, (version, incident));
    }

    /// The incident of a row as it was last read, with its version; none when it can't be read.
    pub(super) fn get(&self, id: i64) -> Option<(i64, Arc<Incident>)> {
        self.0.get(&id).cloned()
    }
}

/// An incident that is not resolved.
#[derive(Clone, Debug)]
pub struct Unresolved {
    /// As it was read.
    pub incident: Arc<Incident>,
    /// Grows with each change.
    pub version: i64,
    /// Its open dead letters.
    pub open_letters: u64,
}

/// Every unresolved incident with its open dead letters, oldest first. Of one instant only in a transaction.
pub async fn all_open(conn: &mut ReadConn, known: &mut Known) -> Result<Vec<Unresolved>, StoreError> {
    if let Some(played) = conn.played() {
        return Ok(played.unresolved());
    }
    let (text,): (String,) = sqlx::query_as(
        "SELECT json_group_array(json_array(id, version, open)) FROM ( \
         SELECT i.id, i.version, coalesce(l.open_count, 0) AS open FROM incidents i \
         LEFT JOIN incident_letters l ON l.incident_id = i.id WHERE i.state <> 'resolved' ORDER BY i.id)",
    )
    .fetch_one(&mut **conn)
    .await?;
    let rows: Vec<(i64, i64, i64)> = super::list(&text)?;
    known.refresh(conn, &rows.iter().map(|(id, version, _)| (*id, *version)).collect()).await?;
    let unresolved = |(id, _, open): (i64, i64, i64)| {
        let (version, incident) = known.get(id)?;
        Some(Unresolved { incident, version, open_letters: open.unsigned_abs() })
    };
    Ok(rows.into_iter().filter_map(unresolved).collect())
}

/// Every unresolved incident, oldest first.
pub async fn unresolved(tx: &mut WriteTx) -> Result<Vec<Incident>, StoreError> {
    if let Some(played) = tx.played() {
        return Ok(played.incidents.unresolved().map(|row| Incident::clone(&row.incident)).collect());
    }
    let rows: Vec<(String,)> =
        sqlx::query_as("SELECT body FROM incidents WHERE state <> 'resolved' ORDER BY id").fetch_all(&mut **tx).await?;
    Ok(rows.iter().filter_map(|(body,)| readable(body)).collect())
}

/// One incident, inside a transaction.
pub async fn find(tx: &mut WriteTx, id: IncidentId) -> Result<Option<Incident>, StoreError> {
    if let Some(played) = tx.played() {
        return Ok(played.incidents.get(id).map(|row| Incident::clone(&row.incident)));
    }
    let row: Option<(String,)> =
        sqlx::query_as("SELECT body FROM incidents WHERE id = ?").bind(id.0).fetch_optional(&mut **tx).await?;
    row.map(|(body,)| read(&body)).transpose()
}

/// One incident with how many of its dead letters are open, inside a transaction, whether it is resolved or not.
pub async fn find_again(tx: &mut WriteTx, id: IncidentId) -> Result<Option<Unresolved>, StoreError> {
    if let Some(played) = tx.played() {
        return Ok(played.incidents.get(id).map(|row| played.with_letters(row)));
    }
    let row: Option<(String, i64, i64)> = sqlx::query_as(
        "SELECT body, version, (SELECT coalesce(sum(open_count), 0) FROM incident_letters WHERE incident_id = ?1) \
         FROM incidents WHERE id = ?1",
    )
    .bind(id.0)
    .fetch_optional(&mut **tx)
    .await?;
    let read = |(body, version, open): (String, i64, i64)| {
        Ok(Unresolved { incident: Arc::new(read(&body)?), version, open_letters: open.unsigned_abs() })
    };
    row.map(read).transpose()
}

/// One incident.
pub async fn get(pool: &SqlitePool, id: IncidentId) -> Result<Option<Incident>, StoreError> {
    let row: Option<(String,)> =
        sqlx::query_as("SELECT body FROM incidents WHERE id = ?").bind(id.0).fetch_optional(pool).await?;
    row.map(|(body,)| read(&body)).transpose()
}

/// Incidents with a row number below `before`, newest first, at most `limit`.
pub async fn list(pool: &SqlitePool, before: i64, limit: i64) -> Result<Vec<Incident>, StoreError> {
    let rows: Vec<(String,)> = sqlx::query_as("SELECT body FROM incidents WHERE id < ? ORDER BY id DESC LIMIT ?")
        .bind(before)
        .bind(limit)
        .fetch_all(pool)
        .await?;
    Ok(rows.iter().filter_map(|(body,)| readable(body)).collect())
}

/// Writes an incident whole; one that is resolved loses its keys, so that the next failure opens a new one. Versions begin with the instant
/// of opening: a row number comes again when the last rows were forgotten, and must not pass for what it was.
pub async fn save(tx: &mut WriteTx, incident: &Incident) -> Result<(), StoreError> {
    if let Some(played) = tx.played() {
        played.incidents.save(incident.clone());
        return Ok(());
    }
    sqlx::query(
        "INSERT INTO incidents (id, state, downstream, opened_at, resolved_at, body, version) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?4) \
         ON CONFLICT (id) DO UPDATE SET state = excluded.state, resolved_at = excluded.resolved_at, body = excluded.body, \
         version = version + 1",
    )
    .bind(incident.id.0)
    .bind(incident.state.as_str())
    .bind(incident.downstream())
    .bind(to_ms(incident.opened_at))
    .bind(incident.resolved_at.map(to_ms))
    .bind(write(incident)?)
    .execute(&mut **tx)
    .await?;
    drop_keys(tx, incident).await
}

/// Writes an incident whole, as [`save`] does, if it is still of this version. False when it is not.
pub async fn save_if(tx: &mut WriteTx, incident: &Incident, version: i64) -> Result<bool, StoreError> {
    if let Some(played) = tx.played() {
        let is_same = played.incidents.get(incident.id).is_some_and(|row| row.version == version);
        if is_same {
            played.incidents.save(incident.clone());
        }
        return Ok(is_same);
    }
    let done = sqlx::query(
        "UPDATE incidents SET state = ?, resolved_at = ?, body = ?, version = version + 1 WHERE id = ? AND version = ?",
    )
    .bind(incident.state.as_str())
    .bind(incident.resolved_at.map(to_ms))
    .bind(write(incident)?)
    .bind(incident.id.0)
    .bind(version)
    .execute(&mut **tx)
    .await?;
    if done.rows_affected() == 0 {
        return Ok(false);
    }
    drop_keys(tx, incident).await?;
    Ok(true)
}

async fn drop_keys(tx: &mut WriteTx, incident: &Incident) -> Result<(), StoreError> {
    match incident.state {
        IncidentState::Open | IncidentState::Acknowledged => {}
        IncidentState::Resolved => {
            sqlx::query("DELETE FROM incident_keys WHERE incident_id = ?")
                .bind(incident.id.0)
                .execute(&mut **tx)
                .await?;
        }
    }
    Ok(())
}

/// Leads a key to an incident.
pub async fn add_key(tx: &mut WriteTx, key: &str, id: IncidentId) -> Result<(), StoreError> {
    if let Some(played) = tx.played() {
        played.incidents.add_key(key, id);
        return Ok(());
    }
    sqlx::query("INSERT INTO incident_keys (key, incident_id) VALUES (?, ?) ON CONFLICT (key) DO UPDATE SET incident_id = excluded.incident_id")
        .bind(key)
        .bind(id.0)
        .execute(&mut **tx)
        .await?;
    Ok(())
}

static ADD_EVENTS: Bulk = Bulk::new("INSERT INTO incident_events (event_seq, incident_id) VALUES", 2, "");

/// Events belong to incidents.
pub async fn add_events(tx: &mut SqliteConnection, rows: &[(i64, IncidentId)]) -> Result<(), StoreError> {
    ADD_EVENTS.execute(tx, rows, |query, (seq, id)| query.bind(*seq).bind(id.0)).await?;
    Ok(())
}

/// Unresolved incidents by domain.
pub async fn open_by_domain(pool: &SqlitePool) -> Result<Vec<(String, i64)>, StoreError> {
    let rows = sqlx::query_as(
        "SELECT json_extract(body, '$.domain'), count(*) FROM incidents WHERE state <> 'resolved' GROUP BY 1 ORDER BY 1",
    )
    .fetch_all(pool)
    .await?;
    Ok(rows)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::incident::{JoinedSymptom, Terms};
    use crate::store::Store;
    use crate::workflow::Domain;
    use chrono::DateTime;
    use std::time::Duration;

    fn incident(id: i64) -> Incident {
        let at = DateTime::from_timestamp(1_796_000_000 + id, 0).unwrap();
        let symptom = JoinedSymptom {
            key: format!("absence/w{id}"),
            text: "it has not been heard".to_owned(),
            since: at,
            ended_at: None,
            is_dropped: false,
            is_of_letters: false,
        };
        let terms = Terms {
            routes: Vec::new(),
            page: vec!["oncall".into()],
            remind_every: None,
            resolve_after: Duration::from_secs(60),
            growth_every: Duration::from_secs(60),
            escalate: Vec::new(),
        };
        Incident::open_by_symptom(IncidentId(id), symptom, &["pay".into()], Domain::Money, terms, id, at)
    }

    async fn open(store: &Store, known: &mut Known) -> Vec<(i64, i64)> {
        let mut reader = store.read().await.unwrap();
        let open = all_open(&mut reader, known).await.unwrap();
        open.iter().map(|open| (open.incident.id.0, open.version)).collect()
    }

    async fn save_all(store: &Store, incidents: impl Iterator<Item = Incident>) {
        let mut tx = store.begin().await.unwrap();
        for incident in incidents {
            save(&mut tx, &incident).await.unwrap();
        }
        tx.commit().await.unwrap();
    }

    #[tokio::test]
    async fn however_many_are_open_and_whichever_has_changed_all_are_given() {
        let (store, mut known) = (Store::open("sqlite::memory:").await.unwrap(), Known::default());
        let count = KNOWN_MAX as i64 + 2;
        save_all(&store, (1..=count).map(incident)).await;
        let all = open(&store, &mut known).await;
        assert_eq!(all.len() as i64, count);
        save_all(&store, std::iter::once(incident(1))).await;
        let again = open(&store, &mut known).await;
        assert_eq!(again[0], (all[0].0, all[0].1 + 1));
        assert_eq!(again[1..], all[1..]);
    }

    #[tokio::test]
    async fn what_has_changed_since_it_was_read_is_not_overwritten() {
        for store in [Store::open("sqlite::memory:").await.unwrap(), Store::open_to_play().await.unwrap()] {
            let mut known = Known::default();
            save_all(&store, std::iter::once(incident(1))).await;
            let (_, version) = open(&store, &mut known).await[0];
            let mut tx = store.begin().await.unwrap();
            assert!(save_if(&mut tx, &incident(1), version).await.unwrap());
            assert!(!save_if(&mut tx, &incident(1), version).await.unwrap());
            let again = find_again(&mut tx, IncidentId(1)).await.unwrap().unwrap();
            assert_eq!((again.version, again.open_letters), (version + 1, 0));
            assert!(save_if(&mut tx, &again.incident, again.version).await.unwrap());
        }
    }
}
