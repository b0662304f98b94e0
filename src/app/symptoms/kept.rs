//! What the store keeps of symptoms and dead letters, as the `symptom` room takes it.

use crate::name::WorkflowName;
use crate::store::symptoms::{self, StandingRow, StateRow};
use crate::store::{Store, StoreError, WriteTx};
use crate::symptom::{OldestLetter, Standing, SymptomState, SymptomTold, ToldSymptom};
use chrono::{DateTime, TimeDelta, Utc};
use tracing::error;

/// Symptoms as they were kept.
///
/// # Errors
/// When the store can't be read.
pub async fn kept(store: &Store) -> Result<Vec<ToldSymptom>, StoreError> {
    let mut kept = Vec::new();
    for row in symptoms::states(store.reader()).await? {
        match serde_json::from_str::<SymptomState>(&row.body) {
            Ok(state) => kept.push(ToldSymptom { state, told: SymptomTold::stored(row.told) }),
            Err(error) => error!(%error, key = row.key, "a stored symptom can't be read; it is left out"),
        }
    }
    Ok(kept)
}

/// How the dead letters of workflows stand; with when they arrived, as far back as `arrivals`.
///
/// # Errors
/// When the store can't be read.
pub async fn standings(
    store: &Store,
    workflows: &[&str],
    arrivals: Option<TimeDelta>,
    now: DateTime<Utc>,
) -> Result<Vec<(WorkflowName, Standing)>, StoreError> {
    let mut found = Vec::new();
    for row in symptoms::standings(store.reader(), workflows).await? {
        let arrived = match arrivals {
            Some(window) => symptoms::arrivals(store.reader(), &row.workflow, now - window).await?,
            None => Vec::new(),
        };
        found.push((WorkflowName::new(&row.workflow), standing(row, arrived)));
    }
    Ok(found)
}

fn standing(row: StandingRow, arrivals: Vec<DateTime<Utc>>) -> Standing {
    let name = row.oldest_name.unwrap_or_default();
    Standing {
        open_count: row.open_count.unsigned_abs(),
        oldest: row.oldest_failed_at.map(|failed_at| OldestLetter { failed_at, name }),
        last_resolved_at: row.last_resolved_at,
        downstream: row.downstream,
        arrivals,
    }
}

/// Keeps a symptom and what became of it.
pub(super) async fn save(tx: &mut WriteTx, state: &SymptomState, told: &SymptomTold) -> Result<(), StoreError> {
    let body = serde_json::to_string(state)
        .map_err(|e| StoreError::Corrupt { what: "symptom_states.body", why: e.to_string() })?;
    symptoms::save_state(tx, &StateRow { key: state.key.id(), told: told.as_str().to_owned(), body }).await
}
