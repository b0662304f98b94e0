//! Explains a stored event: what was decided when it came in, with what a decision of today would be beside it. Reads the store only.

use super::{Explanation, Facts, StoredDecision, ToldDigest, explain};
use crate::digest_job::receiver_key;
use crate::event::{Event, EventId};
use crate::incident::IncidentId;
use crate::ingest::{DecodeOutcome, Inbound};
use crate::live::Live;
use crate::store::stored_event::{self, StoredEvent};
use crate::store::{Store, StoreError, incidents, ledger};
use crate::symptom::ToldSymptom;
use chrono::{DateTime, Utc};
use serde::de::DeserializeOwned;
use std::sync::Arc;

/// Explains the event of this id; none when it is not stored. `at` is when it came in unless given.
///
/// # Errors
/// When the store can't be read.
pub async fn explain_stored(
    store: &Store,
    live: &Live,
    id: &str,
    at: Option<DateTime<Utc>>,
    firing: Arc<Vec<ToldSymptom>>,
) -> Result<Option<Explanation>, StoreError> {
    let Some(stored) = stored_event::find(store.reader(), id).await? else { return Ok(None) };
    let event = event_of(live, id, &stored)?;
    let decision = StoredDecision {
        config_version: stored.config_version.clone(),
        routes: json("decisions.routes", &stored.routes)?,
        page: json("decisions.page", &stored.page)?,
        digests: json("decisions.digests", &stored.digests)?,
        fate: stored.fate.clone(),
        fate_id: stored.fate_id.clone(),
        reason: stored.reason.clone(),
    };
    let incident = match stored.incident_id {
        Some(id) => incidents::get(store.reader(), IncidentId(id)).await?,
        None => None,
    };
    let tellers: Vec<(String, String)> = json("decision_targets", &stored.tellers)?;
    let told = told(store, live, &event, &tellers).await?;
    let facts = Facts { decision: Some(decision), incident, told, firing };
    Ok(Some(explain(&live.config, &live.policy, &event, &facts, at.unwrap_or(stored.received_at))))
}

/// The stored body read again, with what was understood of it then.
fn event_of(live: &Live, id: &str, stored: &StoredEvent) -> Result<Event, StoreError> {
    let inbound = Inbound {
        subject: "",
        headers: &[],
        payload: stored.body.as_bytes(),
        stream: "",
        sequence: 0,
        received_at: stored.received_at,
    };
    match live.reader.read(inbound) {
        DecodeOutcome::Event(decoded) => Ok(Event {
            id: EventId(id.to_owned()),
            class: stored.class,
            class_rule: stored.class_rule.clone(),
            disposition: stored.disposition,
            fingerprint: stored.fingerprint.clone(),
            occurred_at: stored.occurred_at,
            ..decoded.event
        }),
        DecodeOutcome::Quarantine { reason } => {
            Err(StoreError::Corrupt { what: "events.body", why: reason.to_string() })
        }
    }
}

async fn told(
    store: &Store,
    live: &Live,
    event: &Event,
    tellers: &[(String, String)],
) -> Result<Vec<ToldDigest>, StoreError> {
    let owner = live.config.workflows.find(&event.workflow).and_then(|w| w.owner.as_deref());
    let mut told = Vec::new();
    for (digest, receiver) in tellers {
        let mut keys = vec![receiver.clone()];
        keys.extend(owner.map(|owner| receiver_key(receiver, Some(owner))));
        for key in keys {
            if let Some(row) = ledger::covering(store.reader(), digest, &key, event.received_at).await? {
                let (digest, receiver) = (row.digest, row.receiver);
                told.push(ToldDigest { digest, receiver, number: row.number, window_end: row.window_end });
            }
        }
    }
    Ok(told)
}

fn json<T: DeserializeOwned>(what: &'static str, text: &str) -> Result<T, StoreError> {
    serde_json::from_str(text).map_err(|e| StoreError::Corrupt { what, why: e.to_string() })
}
