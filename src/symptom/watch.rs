//! Everything that symptoms know, in one place: rules, memory, standings and states, looked at now and then. The one
//! door of this room; what a kind means lives in its own file.

use super::defaults::Rules;
use super::signal::Signal;
use super::span::Span;
use super::standing::Standing;
use super::state::{Change, SymptomState};
use crate::name::WorkflowName;
use chrono::{DateTime, Utc};

/// Rules, memory and states of all symptoms.
#[derive(Clone, Debug, Default)]
pub struct Watch {
    rules: Rules,
    states: Vec<SymptomState>,
}

impl Watch {
    /// Knows nothing yet.
    pub fn new(rules: Rules) -> Self {
        Self { rules, states: Vec::new() }
    }

    /// Rules as they apply.
    pub fn rules(&self) -> &Rules {
        &self.rules
    }

    /// New rules; counts and states are kept, symptoms of rules that are gone clear at the next look.
    pub fn set_rules(&mut self, rules: Rules) {
        self.rules = rules;
    }

    /// Names a workflow that config describes, and when it was first known: it may never be heard.
    pub fn know(&mut self, _workflow: &WorkflowName, _first_known_at: DateTime<Utc>) {}

    /// Remembers what was heard.
    pub fn take(&mut self, _signal: &Signal) {}

    /// What the store says now of a workflow's dead letters.
    pub fn set_standing(&mut self, _workflow: &WorkflowName, _standing: Standing) {}

    /// Evaluates what has news or is due at `at`; `lost` are the spans in which events were lost before they came in.
    /// An earlier `at` than before is taken as the last one. Changes are in the order of their keys.
    pub fn look(&mut self, _at: DateTime<Utc>, _lost: &[Span]) -> Vec<Change> {
        Vec::new()
    }

    /// The earliest instant, a multiple of 10 s, at which a look could find something new without further news.
    pub fn next_look_at(&self) -> Option<DateTime<Utc>> {
        None
    }

    /// Symptoms that fire, in the order of their keys. Texts are of the last look.
    pub fn firing(&self) -> impl Iterator<Item = &SymptomState> {
        self.states.iter().filter(|state| state.is_firing())
    }

    /// Symptoms that fire, and those that have cleared but are still hot, in the order of their keys.
    pub fn states(&self) -> impl Iterator<Item = &SymptomState> {
        self.states.iter()
    }

    /// The states with their sentences as they read at `at`.
    pub fn states_at(&self, _at: DateTime<Utc>, _lost: &[Span]) -> Vec<SymptomState> {
        self.states.clone()
    }

    /// What has changed since the last time, as named parts; each replaces the part of that name.
    pub fn freeze_dirty(&mut self) -> Vec<(String, Vec<u8>)> {
        Vec::new()
    }

    /// Takes frozen parts and the states that were kept beside them. A part that can't be read is left out and named in
    /// the answer.
    pub fn thaw(&mut self, _parts: &[(String, Vec<u8>)], states: Vec<SymptomState>) -> Vec<String> {
        self.states = states;
        Vec::new()
    }
}
