//! Symptoms of a play: signals are taken as events are read, and looked at on the way, so that a batch ends where one changes.
//! Whether an event was read before is known here, because the store is asked later.

use super::book::LetterBook;
use super::line::{Line, LineKind};
use crate::app::symptoms::{LOOK_EVERY, Settled, SymptomDesk};
use crate::event::{Detail, Event};
use crate::live::Live;
use crate::name::WorkflowName;
use crate::store::key::{Key, key_of};
use crate::symptom::{Change, Signal};
use chrono::{DateTime, DurationRound, Utc};
use std::collections::HashSet;

/// Ids of the events that were read, and the dead letters that they leave.
#[derive(Debug)]
pub(super) struct Heard {
    ids: HashSet<u64>,
    book: LetterBook,
    /// When the newest of them arrived.
    arrived_at: Option<DateTime<Utc>>,
}

impl Heard {
    pub fn new(desk: &SymptomDesk) -> Self {
        Self { ids: HashSet::new(), book: LetterBook::new(desk.arrivals_wanted()), arrived_at: None }
    }

    /// Takes what an event says, unless it was read before: then false.
    pub fn take(&mut self, desk: &mut SymptomDesk, event: &Event) -> bool {
        self.arrived_at = self.arrived_at.max(Some(event.received_at));
        // Half of the key tells ten million events apart well enough, in half of the memory.
        let [a, b, c, d, e, f, g, h, ..] = key_of(&event.id.0);
        if !self.ids.insert(u64::from_le_bytes([a, b, c, d, e, f, g, h])) {
            return false;
        }
        if let Some(signal) = Signal::of(event) {
            desk.take(&signal);
        }
        if let Some(standing) = self.book.take(event) {
            desk.set_standing(&event.workflow, standing);
        }
        true
    }

    /// Takes that a letter which the store has is resolved.
    pub fn resolve(&mut self, desk: &mut SymptomDesk, workflow: &WorkflowName, key: &Key, at: DateTime<Utc>) {
        if let Some(standing) = self.book.resolve(workflow, key, at) {
            desk.set_standing(workflow, standing);
        }
    }

    /// Looks at what is due up to `until`, and stops where an incident begins or may end: gives when that is. What came late is seen
    /// at the first look after it arrived, whenever it happened.
    pub fn look_ahead(
        &self,
        desk: &mut SymptomDesk,
        live: &Live,
        until: DateTime<Utc>,
        end_at: DateTime<Utc>,
    ) -> Option<DateTime<Utc>> {
        let seen_at = self.arrived_at.and_then(|at| Some(at.duration_trunc(LOOK_EVERY).ok()? + LOOK_EVERY));
        let next_look_at = |desk: &SymptomDesk| desk.next_look_at().map(|at| seen_at.map_or(at, |seen| at.max(seen)));
        while let Some(at) = next_look_at(desk).filter(|at| *at <= until && *at < end_at) {
            if desk.look_ahead(live, at) {
                return Some(at);
            }
        }
        None
    }
}

/// The row of a dead letter that an event asks to resolve by its number.
pub(super) fn named_row(event: &Event) -> Option<i64> {
    match &event.detail {
        Detail::Resolution { dead_letter_id, .. } => dead_letter_id.as_deref()?.parse().ok(),
        Detail::Failure
        | Detail::Recovery { .. }
        | Detail::Outcome(_)
        | Detail::Heartbeat { .. }
        | Detail::Breaker { .. } => None,
    }
}

/// The line of a change. A symptom that falls to a lower tier goes on, and one that is held as well: neither has a line.
pub(super) fn symptom_line(settled: &Settled) -> Option<Line> {
    let kind = match settled.change {
        Change::Fired(_) => LineKind::SymptomFiring,
        Change::Moved(_) if settled.is_worse => LineKind::SymptomFiring,
        Change::Cleared(_) | Change::Dropped(_) => LineKind::SymptomCleared,
        Change::Moved(_) | Change::Held(_) => return None,
    };
    let (state, told) = (settled.change.state(), &settled.told);
    Some(Line {
        workflow: state.key.workflow.as_ref().map(ToString::to_string),
        symptom: Some(state.key.rule.clone()),
        tier: state.tier.clone(),
        incident: told.incident_id().map(str::to_owned),
        reason: told.why_not().map(str::to_owned),
        text: Some(format!("{}. {}", state.text, state.detail).trim_end().to_owned()),
        ..Line::new(settled.at, kind)
    })
}
