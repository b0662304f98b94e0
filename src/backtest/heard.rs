//! Symptoms of a play: signals are taken as events are read, and looked at on the way, so that a batch ends where one changes.
//! Whether an event was read before is known here, because the store is asked later.

use super::line::{Line, LineKind};
use crate::app::symptoms::{LOOK_EVERY, Settled, SymptomDesk};
use crate::event::Event;
use crate::store::key::key_of;
use crate::symptom::{Change, Signal};
use chrono::{DateTime, DurationRound as _, Utc};
use std::collections::HashSet;

/// Ids of the events that were read.
#[derive(Debug, Default)]
pub(super) struct Heard(HashSet<u64>);

impl Heard {
    /// Takes what an event says, unless it was read before. Gives when to look because of it; none when that can wait.
    pub fn take(&mut self, desk: &mut SymptomDesk, event: &Event) -> Option<DateTime<Utc>> {
        // Half of the key tells ten million events apart well enough, in half of the memory.
        let [a, b, c, d, e, f, g, h, ..] = key_of(&event.id.0);
        if !self.0.insert(u64::from_le_bytes([a, b, c, d, e, f, g, h])) {
            return None;
        }
        let signal = Signal::of(event)?;
        desk.take(&signal).then(|| next_look_after(event.received_at))
    }
}

/// Looks at what is due up to `until`, and stops where something changes: gives when that is.
pub(super) fn look_ahead(desk: &mut SymptomDesk, until: DateTime<Utc>, end_at: DateTime<Utc>) -> Option<DateTime<Utc>> {
    while let Some(at) = desk.next_look_at().filter(|at| *at <= until && *at < end_at) {
        if desk.look_ahead(at) {
            return Some(at);
        }
    }
    None
}

fn next_look_after(at: DateTime<Utc>) -> DateTime<Utc> {
    at.duration_trunc(LOOK_EVERY).unwrap_or(at) + LOOK_EVERY
}

/// The line of a change. A symptom that falls to a lower tier goes on, and one that is held as well: neither has a line.
pub(super) fn symptom_line(settled: &Settled, at: DateTime<Utc>) -> Option<Line> {
    let kind = match settled.change {
        Change::Fired(_) => LineKind::SymptomFiring,
        Change::Moved(_) if settled.is_worse => LineKind::SymptomFiring,
        Change::Cleared(_) => LineKind::SymptomCleared,
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
        ..Line::new(at, kind)
    })
}
