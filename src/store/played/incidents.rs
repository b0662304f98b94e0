//! The tables `incidents` and `incident_keys` of a store that is played into.

use crate::digest::Window;
use crate::incident::{Incident, IncidentId, IncidentState};
use crate::store::{to_ms, to_the_ms};
use chrono::{DateTime, Utc};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// Incidents, and the keys that lead to them.
#[derive(Debug, Default)]
pub struct IncidentTable {
    rows: BTreeMap<IncidentId, Row>,
    unresolved: BTreeSet<IncidentId>,
    resolved: BTreeSet<(DateTime<Utc>, IncidentId)>,
    keys: BTreeMap<String, IncidentId>,
}

/// An incident, and how often it was written.
#[derive(Clone, Debug)]
pub struct Row {
    /// As it was last written.
    pub incident: Arc<Incident>,
    /// Grows with each change.
    pub version: i64,
    downstream: Option<String>,
}

impl IncidentTable {
    /// The row number that the next incident will have.
    pub fn next_id(&self) -> IncidentId {
        self.rows.last_key_value().map_or(IncidentId(1), |(id, _)| IncidentId(id.0 + 1))
    }

    /// One incident.
    pub fn get(&self, id: IncidentId) -> Option<&Row> {
        self.rows.get(&id)
    }

    /// The unresolved incident that a key leads to.
    pub fn of_key(&self, key: &str) -> Option<&Incident> {
        self.keys.get(key).and_then(|id| self.get(*id)).map(|row| &*row.incident)
    }

    /// Unresolved incidents, oldest first.
    pub fn unresolved(&self) -> impl DoubleEndedIterator<Item = &Row> {
        self.unresolved.iter().filter_map(|id| self.rows.get(id))
    }

    /// Unresolved incidents that a downstream caused, newest first.
    pub fn of_downstream(&self, downstream: &str) -> impl Iterator<Item = &Incident> {
        let is_of = move |row: &&Row| row.downstream.as_deref() == Some(downstream);
        self.unresolved().rev().filter(is_of).map(|row| &*row.incident)
    }

    /// Incidents that were open at some instant of a window, oldest first.
    pub fn open_in(&self, window: Window) -> Vec<&Row> {
        let resolved = self.resolved.range((window.start_at, IncidentId(0))..).map(|(_, id)| *id);
        let ids: BTreeSet<IncidentId> = self.unresolved.iter().copied().chain(resolved).collect();
        let rows = ids.iter().filter_map(|id| self.rows.get(id));
        rows.filter(|row| to_the_ms(row.incident.opened_at) < window.end_at).collect()
    }

    /// Writes an incident whole; one that is resolved loses its keys.
    pub fn save(&mut self, incident: Incident) {
        let (id, incident) = (incident.id, Arc::new(incident));
        match self.rows.get_mut(&id) {
            Some(row) => {
                if let Some(at) = row.incident.resolved_at {
                    self.resolved.remove(&(to_the_ms(at), id));
                }
                row.incident = incident.clone();
                row.version += 1;
            }
            None => {
                let (version, downstream) = (to_ms(incident.opened_at), incident.downstream().map(str::to_owned));
                self.rows.insert(id, Row { incident: incident.clone(), version, downstream });
            }
        }
        if let Some(at) = incident.resolved_at {
            self.resolved.insert((to_the_ms(at), id));
        }
        match incident.state {
            IncidentState::Open | IncidentState::Acknowledged => _ = self.unresolved.insert(id),
            IncidentState::Resolved => {
                self.unresolved.remove(&id);
                self.keys.retain(|_, of| *of != id);
            }
        }
    }

    /// Leads a key to an incident.
    pub fn add_key(&mut self, key: &str, id: IncidentId) {
        self.keys.insert(key.to_owned(), id);
    }

    /// Every key that leads to an unresolved incident, in order.
    pub fn keys(&self) -> &BTreeMap<String, IncidentId> {
        &self.keys
    }
}
