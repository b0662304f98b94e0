//! What others see of symptoms: incidents, digests, API, metrics.

use super::SymptomDesk;
use crate::symptom::{Budget, SymptomKey, SymptomState, ToldSymptom};
use chrono::{DateTime, Utc};
use std::sync::Arc;

impl SymptomDesk {
    /// Whether a symptom is over for its incident: it neither fires nor flickers. False while nothing is known.
    pub fn is_over(&self, id: &str) -> bool {
        let Some(watch) = &self.watch else { return false };
        SymptomKey::of_id(id).is_none_or(|key| !watch.state(&key).is_some_and(|state| state.is_hot))
    }

    /// The sentence of a symptom that fires, as it reads at the last look.
    pub fn sentence(&mut self, id: &str) -> Option<String> {
        let (key, watch) = (SymptomKey::of_id(id)?, self.watch.as_mut()?);
        let state = match self.looked_at {
            None => watch.state(&key).cloned(),
            Some(looked_at) => watch.state_at(&key, looked_at, &[]),
        };
        state.filter(SymptomState::is_firing).map(|state| state.text)
    }

    /// Symptoms that fire, with their sentences as they read at the last look.
    pub fn firing(&mut self) -> Arc<Vec<ToldSymptom>> {
        let firing = self.firing.take().unwrap_or_else(|| Arc::new(self.read_firing()));
        self.firing = Some(firing.clone());
        firing
    }

    fn read_firing(&mut self) -> Vec<ToldSymptom> {
        let Some(watch) = &mut self.watch else { return Vec::new() };
        // Before the first look they read as they were kept.
        let states = match self.looked_at {
            None => watch.states().cloned().collect(),
            Some(looked_at) => watch.states_at(looked_at, &[]),
        };
        let states = states.into_iter().filter(SymptomState::is_firing);
        let told = |key: &SymptomKey| self.known.get(key).map(|known| known.told.clone()).unwrap_or_default();
        let mut firing: Vec<_> = states.map(|state| ToldSymptom { told: told(&state.key), state }).collect();
        // Lists go on after the last id that they gave.
        firing.sort_by_cached_key(|symptom| symptom.state.key.id());
        firing
    }

    /// Burn rates and what budgets have left, as of the last look.
    pub fn budgets(&mut self) -> Vec<Budget> {
        self.looked_at.map(|at| self.budgets_at(at)).unwrap_or_default()
    }

    /// The same as of `at`, with what was taken so far.
    pub fn budgets_at(&mut self, at: DateTime<Utc>) -> Vec<Budget> {
        self.watch.as_mut().map(|watch| watch.budgets(at)).unwrap_or_default()
    }
}
