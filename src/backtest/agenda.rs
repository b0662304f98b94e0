//! When a batch must end, so that virtual time loses nothing of what the service would have done second by second: where a page goes out,
//! an incident grows or may end, a silence begins or ends. Pure. Slots, reminders and the like are known by the tick.

use crate::event::{Detail, Event};
use crate::incident::{Incident, IncidentId, failures_until_grown};
use crate::name::WorkflowName;
use crate::route::{Decision, Paging};
use crate::silence::Silence;
use chrono::{DateTime, DurationRound, TimeDelta, Utc};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// The service looks once a second.
const LOOK_EVERY: TimeDelta = TimeDelta::seconds(1);

/// What asks for a look earlier than the tick does.
#[derive(Debug, Default)]
pub(super) struct Agenda {
    /// Instants at which what is silenced changes.
    changes: BTreeSet<DateTime<Utc>>,
    keys: BTreeMap<String, IncidentId>,
    /// How many more failures make an open incident worth telling again.
    until_grown: BTreeMap<IncidentId, u64>,
    /// Workflows with an open incident.
    hit: BTreeSet<WorkflowName>,
}

impl Agenda {
    pub fn new(silences: &[Silence]) -> Self {
        Self { changes: silences.iter().flat_map(|s| [s.since, s.until]).collect(), ..Self::default() }
    }

    /// Also looks at these instants.
    #[cfg(test)]
    pub fn with(mut self, instants: impl Iterator<Item = DateTime<Utc>>) -> Self {
        self.changes.extend(instants);
        self
    }

    /// The next change of silences after `now`.
    pub fn next_after(&self, now: DateTime<Utc>) -> Option<DateTime<Utc>> {
        use std::ops::Bound::{Excluded, Unbounded};
        self.changes.range((Excluded(now), Unbounded)).next().copied()
    }

    /// Takes the incidents that are open now, and the keys that lead to them when there may be new ones.
    pub fn note_incidents(&mut self, open: &[Arc<Incident>], keys: Option<BTreeMap<String, IncidentId>>) {
        if let Some(keys) = keys {
            self.keys = keys;
        }
        self.until_grown = open.iter().map(|i| (i.id, failures_until_grown(i))).collect();
        self.keys.retain(|_, id| self.until_grown.contains_key(id));
        self.hit = open.iter().flat_map(|i| &i.hits).map(|h| h.workflow.clone()).collect();
    }

    /// When to look because of this event; none when the next tick is early enough.
    pub fn look_at(&mut self, event: &Event, decision: &Decision) -> Option<DateTime<Utc>> {
        let asks = match &decision.paging {
            Paging::Page { key, .. } => self.opens_or_grows(key),
            Paging::Suppress(_) => self.may_end(event),
        };
        asks.then(|| event.received_at.duration_trunc(LOOK_EVERY).unwrap_or(event.received_at) + LOOK_EVERY)
    }

    fn opens_or_grows(&mut self, key: &str) -> bool {
        let Some(id) = self.keys.get(key) else { return true };
        let Some(left) = self.until_grown.get_mut(id).filter(|left| **left > 0) else { return false };
        *left -= 1;
        *left == 0
    }

    /// What resolves a dead letter may end the incident that it belongs to.
    fn may_end(&self, event: &Event) -> bool {
        match &event.detail {
            Detail::Resolution { dead_letter_id: Some(_), .. } => !self.hit.is_empty(),
            Detail::Resolution { dead_letter_id: None, .. } | Detail::Recovery { .. } => {
                event.item.is_some() && self.hit.contains(&event.workflow)
            }
            Detail::Failure | Detail::Outcome(_) | Detail::Heartbeat { .. } | Detail::Breaker { .. } => false,
        }
    }
}
