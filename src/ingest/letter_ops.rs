//! Dead letters of one batch: opened, repeated and resolved in the order of the events, in as few statements as that allows.

use crate::event::{Detail, Disposition, Event, EventType};
use crate::incident::IncidentId;
use crate::name::WorkflowName;
use crate::store::key::{Key, hash_key};
use crate::store::letters::{self, LetterRow, ResolutionRow, Returned};
use crate::store::{StoreError, WriteTx};
use chrono::{DateTime, Utc};
use std::collections::{BTreeMap, BTreeSet, HashMap};

/// The key of an event's dead letter.
pub fn letter_key(event: &Event) -> Key {
    match &event.item {
        Some(item) => hash_key(&["item", event.workflow.as_str(), item]),
        None => hash_key(&["event", &event.id.0]),
    }
}

/// Whether an event opens or repeats a dead letter.
pub fn keeps_letter(event: &Event) -> bool {
    event.event_type == EventType::Failure && event.disposition == Disposition::DeadLettered
}

/// The letter that a final failure opens or repeats; none when it is not kept.
pub fn letter_of(event: &Event, cause_id: i64, decision_id: i64, incident_id: Option<i64>) -> Option<LetterRow> {
    keeps_letter(event).then(|| LetterRow {
        key: letter_key(event),
        cause_id,
        decision_id,
        item: event.item.clone(),
        error_message: event.error.message.clone(),
        links: serde_json::to_string(&event.links).unwrap_or_default(),
        payload: event.payload.as_ref().map(ToString::to_string),
        payload_cut: event.payload_cut,
        failed_at: event.occurred_at,
        arrived_at: event.received_at,
        attempt_count: event.attempt.map_or(1, i64::from),
        times: 1,
        incident_id,
        redrive_count: event.redrive_count.map_or(0, i64::from),
    })
}

/// What an event resolves.
#[derive(Clone, Debug)]
pub enum Resolves {
    /// The letter of this key.
    Key(ResolutionRow),
    /// The letter of this row.
    Row {
        /// Its number.
        id: i64,
        /// What was done.
        note: Option<String>,
        /// Who did it.
        by: Option<String>,
        /// When.
        at: DateTime<Utc>,
    },
}

/// The letter that a resolution or a recovery resolves; none when the event names none.
pub fn resolves(event: &Event) -> Option<Resolves> {
    let at = event.received_at;
    match &event.detail {
        Detail::Resolution { note, by, dead_letter_id } => {
            if let Some(id) = dead_letter_id.as_deref().and_then(|id| id.parse().ok()) {
                return Some(Resolves::Row { id, note: note.clone(), by: by.clone(), at });
            }
            event.item.as_ref()?;
            Some(Resolves::Key(ResolutionRow { key: letter_key(event), note: note.clone(), by: by.clone(), at }))
        }
        Detail::Recovery { strategy, .. } => {
            event.item.as_ref()?;
            let note = format!("recovered by {}", strategy.as_deref().unwrap_or("the pipeline"));
            Some(Resolves::Key(ResolutionRow { key: letter_key(event), note: Some(note), by: None, at }))
        }
        Detail::Failure | Detail::Outcome(_) | Detail::Heartbeat { .. } | Detail::Breaker { .. } => None,
    }
}

/// Pending statements. A key is in at most one of the two sets, so each key's order is kept.
#[derive(Debug, Default)]
pub struct LetterOps {
    /// In order of arrival, which becomes the order of their rows.
    opening: Vec<LetterRow>,
    opening_at: HashMap<Key, usize>,
    resolving: BTreeMap<Key, ResolutionRow>,
    returned: BTreeSet<i64>,
    /// Workflows of letters that were resolved by number: it need not be the event's own.
    progressed: BTreeSet<WorkflowName>,
}

impl LetterOps {
    /// Opens or repeats a letter.
    pub async fn open(&mut self, tx: &mut WriteTx, row: LetterRow) -> Result<(), StoreError> {
        if self.resolving.contains_key(&row.key) {
            self.flush_resolving(tx).await?;
        }
        self.returned.insert(row.cause_id);
        match self.opening_at.get(&row.key).and_then(|at| self.opening.get_mut(*at)) {
            Some(known) => repeat(known, row),
            None => {
                self.opening_at.insert(row.key, self.opening.len());
                self.opening.push(row);
            }
        }
        Ok(())
    }

    /// Opens or repeats a letter of an incident now. True when it is new to the incident.
    pub async fn open_for(
        &mut self,
        tx: &mut WriteTx,
        row: &LetterRow,
        incident: IncidentId,
    ) -> Result<bool, StoreError> {
        if self.resolving.contains_key(&row.key) {
            self.flush_resolving(tx).await?;
        }
        // Also what has nothing to do with it: rows are numbered in the order of arrival.
        if !self.opening.is_empty() {
            self.flush_opening(tx).await?;
        }
        self.returned.insert(row.cause_id);
        letters::open_for(tx, row, incident.0).await
    }

    /// Resolves a letter.
    pub async fn resolve(&mut self, tx: &mut WriteTx, what: Resolves) -> Result<(), StoreError> {
        match what {
            Resolves::Key(row) => {
                if self.opening_at.contains_key(&row.key) {
                    self.flush_opening(tx).await?;
                }
                self.resolving.entry(row.key).or_insert(row);
            }
            Resolves::Row { id, note, by, at } => {
                let cause = letters::resolve_by_id(tx, id, note.as_deref(), by.as_deref(), at).await?;
                if let Some(cause) = cause {
                    letters::note_resolved(tx, &[(cause, at)]).await?;
                    self.progressed.insert(letters::workflow_of_cause(tx, cause).await?);
                }
            }
        }
        Ok(())
    }

    /// Writes what is pending, and marks causes that came back after they were resolved. Gives the workflows of letters that were
    /// resolved by number.
    pub async fn flush(mut self, tx: &mut WriteTx, now: DateTime<Utc>) -> Result<BTreeSet<WorkflowName>, StoreError> {
        self.flush_opening(tx).await?;
        let resolved = self.take_resolved(tx).await?;
        if !resolved.is_empty() || !self.returned.is_empty() {
            let returned = Returned { causes: &self.returned, at: now };
            letters::note_changes(tx, &resolved, Some(returned)).await?;
        }
        Ok(self.progressed)
    }

    async fn flush_opening(&mut self, tx: &mut WriteTx) -> Result<(), StoreError> {
        self.opening_at.clear();
        letters::open(tx, &std::mem::take(&mut self.opening)).await
    }

    async fn flush_resolving(&mut self, tx: &mut WriteTx) -> Result<(), StoreError> {
        // Whether a cause has open letters left is asked below: none may be pending then.
        self.flush_opening(tx).await?;
        let resolved = self.take_resolved(tx).await?;
        if resolved.is_empty() { Ok(()) } else { letters::note_resolved(tx, &resolved).await }
    }

    /// Writes what is to be resolved. Gives the cause of each that was open, and when.
    async fn take_resolved(&mut self, tx: &mut WriteTx) -> Result<Vec<(i64, DateTime<Utc>)>, StoreError> {
        if self.resolving.is_empty() {
            return Ok(Vec::new());
        }
        let rows: Vec<ResolutionRow> = std::mem::take(&mut self.resolving).into_values().collect();
        let resolved = letters::resolve_by_keys(tx, &rows).await?;
        for (cause, _) in &resolved {
            self.returned.remove(cause);
        }
        Ok(resolved)
    }
}

fn repeat(known: &mut LetterRow, newer: LetterRow) {
    let times = known.times + newer.times;
    let failed_at = known.failed_at.min(newer.failed_at);
    let arrived_at = known.arrived_at;
    let attempt_count = known.attempt_count.max(newer.attempt_count);
    let payload = newer.payload.clone().or_else(|| known.payload.take());
    *known = LetterRow { times, failed_at, arrived_at, attempt_count, payload, ..newer };
}
