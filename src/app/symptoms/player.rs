//! What a player of recorded events needs of the desk: it hands over signals and dead letters before they are committed, and looks ahead,
//! so that a batch has to end only where an incident begins or may end.

use super::told::pages;
use super::{Source, SymptomDesk, expected};
use crate::live::Live;
use crate::name::WorkflowName;
use crate::symptom::{Change, Standing};
use chrono::{DateTime, TimeDelta, Utc};

impl SymptomDesk {
    /// One that a player of recorded events feeds.
    pub fn played(live: &Live, now: DateTime<Utc>) -> Self {
        let mut desk = Self { source: Source::Player, ..Self::fresh(live, now) };
        if let Some(watch) = &mut desk.watch {
            expected(live).for_each(|name| watch.know(&WorkflowName::new(name), now));
            // From here on it knows when it has to look again, also when nothing is ever heard.
            watch.look(now, &[]);
        }
        desk
    }

    /// Takes how the dead letters of a workflow stand, from a player.
    pub fn set_standing(&mut self, workflow: &WorkflowName, standing: Standing) {
        if let Some(watch) = &mut self.watch {
            watch.set_standing(workflow, standing);
        }
    }

    /// How far back a player has to remember when dead letters arrived.
    pub fn arrivals_wanted(&self) -> Option<TimeDelta> {
        self.watch.as_ref()?.rules().arrivals_wanted().and_then(|window| TimeDelta::from_std(window).ok())
    }

    /// Looks before what was taken is committed. True when an incident opens, or may end: then it must be committed first. What else
    /// changed is written at the next `look`.
    pub fn look_ahead(&mut self, live: &Live, at: DateTime<Utc>) -> bool {
        let before = self.active_count();
        let Some(watch) = &mut self.watch else { return false };
        let changes = watch.look(at, &[]);
        (self.looked_at, self.firing) = (Some(at), None);
        // One that no longer burns, or has only just ceased to flicker, is over for its incident without a change.
        let has_ended = self.active_count() < before;
        let matters = has_ended || changes.iter().any(|change| self.moves_incident(live, change, at));
        self.pending.extend(changes.into_iter().map(|change| (at, change)));
        matters
    }

    /// Symptoms of incidents that are not over.
    fn active_count(&self) -> usize {
        let Some(watch) = &self.watch else { return 0 };
        self.paged.iter().filter(|key| watch.state(key).is_some_and(|state| state.is_hot)).count()
    }

    /// Whether a change opens or joins an incident, or is of one that has one.
    fn moves_incident(&self, live: &Live, change: &Change, at: DateTime<Utc>) -> bool {
        let state = change.state();
        let has_one = || self.paged.contains(&state.key);
        match change {
            Change::Fired(_) | Change::Moved(_) => has_one() || pages(live, state, at),
            Change::Cleared(_) | Change::Held(_) | Change::Dropped(_) => has_one(),
        }
    }

    /// When a look could find something new without further news.
    pub fn next_look_at(&self) -> Option<DateTime<Utc>> {
        self.watch.as_ref()?.next_look_at()
    }
}
