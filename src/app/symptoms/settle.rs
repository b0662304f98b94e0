//! What becomes of what a look found: states, incidents and pages in one transaction. Whether a symptom pages is decided by `route`.

use super::kept::save;
use super::told::{drop_symptom, note, pages, tell};
use super::{Known, Looked, Settled, Source, SymptomDesk};
use crate::live::Live;
use crate::route::Suppression;
use crate::store::{LateTx, Store, StoreError, symptoms};
use crate::symptom::{Change, Severity, SymptomKey, SymptomState, SymptomTold};
use chrono::{DateTime, Utc};
use std::collections::BTreeSet;

impl SymptomDesk {
    /// Symptoms that fire and page nobody so far, though now somebody is to be paged: a silence ended, config changed, a protected workflow
    /// was hit too, or it has become urgent. Of one workflow, only the first two can change who hears of it. Each as it reads at `at`.
    pub(super) fn untold(
        &mut self,
        live: &Live,
        at: DateTime<Utc>,
        changes: &[(DateTime<Utc>, Change)],
        has_new_rules: bool,
    ) -> Vec<(DateTime<Utc>, Change)> {
        let Some(watch) = &self.watch else { return Vec::new() };
        let is_changed = |state: &SymptomState| changes.iter().any(|(_, change)| change.state().key == state.key);
        let is_unpaged = |state: &SymptomState| {
            self.known.get(&state.key).and_then(|known| known.told.why_not()).is_some_and(|why| {
                let may_change = [Suppression::Silenced, Suppression::DigestSeverity].iter().any(|s| s.as_str() == why);
                has_new_rules || may_change || state.key.workflow.is_none()
            })
        };
        let is_untold = |state: &&SymptomState| is_unpaged(state) && !is_changed(state) && pages(live, state, at);
        let mut untold: Vec<SymptomKey> = watch.urgent().filter(is_untold).map(|state| state.key.clone()).collect();
        untold.sort();
        let Some(watch) = &mut self.watch else { return Vec::new() };
        let moved = |key: &SymptomKey| Some((at, Change::Moved(watch.state_at(key, at, &[])?)));
        untold.iter().filter_map(moved).collect()
    }

    /// What is now written of a symptom.
    pub(super) fn remember(&mut self, state: &SymptomState, told: SymptomTold) {
        if told.incident_id().is_some() {
            self.paged.insert(state.key.clone());
        } else {
            self.paged.remove(&state.key);
        }
        self.known.insert(state.key.clone(), Known { told, tiers: state.tiers.clone() });
    }

    /// A lower tier that fires or ends beneath the highest is no change, but must not pass for news later.
    fn note_lower_tiers(&mut self, changes: &[(DateTime<Utc>, Change)]) {
        let Some(watch) = &self.watch else { return };
        let changed: BTreeSet<&SymptomKey> = changes.iter().map(|(_, change)| &change.state().key).collect();
        let tiered = self.known.iter_mut().filter(|(_, known)| !known.tiers.is_empty());
        for (key, known) in tiered.filter(|(key, _)| !changed.contains(key)) {
            if let Some(state) = watch.state(key).filter(|state| state.tiers != known.tiers) {
                known.tiers.clone_from(&state.tiers);
            }
        }
    }

    /// Writes changed states with the incidents and pages that follow, in one transaction.
    pub(super) async fn settle(
        &mut self,
        store: &Store,
        live: &Live,
        changes: Vec<(DateTime<Utc>, Change)>,
        now: DateTime<Utc>,
    ) -> Result<Looked, StoreError> {
        self.note_lower_tiers(&changes);
        let Some(watch) = &mut self.watch else { return Ok(Looked::default()) };
        let mut gone = watch.take_gone();
        // One that came back while changes waited to be written is still there.
        gone.retain(|key| watch.state(key).is_none());
        let mut looked = Looked::default();
        if changes.is_empty() && gone.is_empty() {
            return Ok(looked);
        }
        let mut tx = LateTx::new(store);
        for (at, change) in changes {
            let settled = self.settle_one(&mut tx, live, (at, change), now, &mut looked.has_messages).await?;
            self.remember(settled.change.state(), settled.told.clone());
            note(&settled);
            looked.changes.push(settled);
        }
        match self.source {
            Source::Store => {
                for key in &gone {
                    symptoms::remove_state(tx.begun().await?, &key.id()).await?;
                }
            }
            Source::Player => {}
        }
        tx.commit().await?;
        for key in &gone {
            self.known.remove(key);
            self.paged.remove(key);
        }
        Ok(looked)
    }

    /// Writes one change, with what becomes of the symptom.
    async fn settle_one(
        &self,
        tx: &mut LateTx<'_>,
        live: &Live,
        (at, change): (DateTime<Utc>, Change),
        now: DateTime<Utc>,
        has_messages: &mut bool,
    ) -> Result<Settled, StoreError> {
        let state = change.state();
        let known = self.known.get(&state.key).cloned().unwrap_or_default();
        let is_worse = match &change {
            Change::Fired(_) => true,
            Change::Moved(state) => state.tier.as_ref().is_some_and(|tier| !known.tiers.contains(tier)),
            Change::Cleared(_) | Change::Held(_) | Change::Dropped(_) => false,
        };
        let is_paging = is_worse && state.severity == Severity::Page;
        let told = match &change {
            // One that flickers fires again before its incident is over, and rejoins it.
            Change::Fired(_) => tell(tx, live, state, now, has_messages).await?,
            // A tier that pages may come when the incident of an earlier one is over.
            Change::Moved(_) if is_paging || known.told.incident_id().is_none() => {
                tell(tx, live, state, now, has_messages).await?
            }
            Change::Dropped(_) => {
                drop_symptom(tx, state, &known.told, now).await?;
                known.told
            }
            Change::Moved(_) | Change::Cleared(_) | Change::Held(_) => known.told,
        };
        match self.source {
            Source::Store => save(tx.begun().await?, state, &told).await?,
            // What is played is played once.
            Source::Player => {}
        }
        Ok(Settled { at, change, told, is_worse })
    }
}
