//! What others see of symptoms: incidents, digests, API, metrics.

use super::SymptomDesk;
use crate::symptom::{Budget, SymptomState, ToldSymptom};
use std::collections::BTreeSet;

impl SymptomDesk {
    /// Keys of symptoms whose incidents are not over for them: those that fire, and those that still flicker. None while nothing is known.
    pub fn active_keys(&self) -> Option<BTreeSet<String>> {
        Some(self.watch.as_ref()?.states().filter(|s| s.is_hot).map(|s| s.key.id()).collect())
    }

    /// Symptoms that fire, with their sentences as they read at the last look.
    pub fn firing(&mut self) -> Vec<ToldSymptom> {
        let Some(watch) = &mut self.watch else { return Vec::new() };
        // Before the first look they read as they were kept.
        let states = match self.looked_at {
            None => watch.states().cloned().collect(),
            Some(looked_at) => watch.states_at(looked_at, &[]),
        };
        let states = states.into_iter().filter(SymptomState::is_firing);
        let told = |key: &str| self.known.get(key).map(|known| known.told.clone()).unwrap_or_default();
        let named = states.map(|state| (state.key.id(), state));
        let mut firing: Vec<(String, ToldSymptom)> =
            named.map(|(key, state)| (key.clone(), ToldSymptom { told: told(&key), state })).collect();
        // Lists go on after the last id that they gave.
        firing.sort_by(|one, other| one.0.cmp(&other.0));
        firing.into_iter().map(|(_, symptom)| symptom).collect()
    }

    /// Burn rates and what budgets have left, as of the last look.
    pub fn budgets(&mut self) -> Vec<Budget> {
        match (&mut self.watch, self.looked_at) {
            (Some(watch), Some(at)) => watch.budgets(at),
            (None, _) | (_, None) => Vec::new(),
        }
    }
}
