//! A look: workflows with news or due, then what they share, then what is gone. Says when to look next.

use super::buckets::{TICK, floor};
use super::pattern::SharedLook;
use super::plan::SharedAsk;
use super::rule::SymptomRule;
use super::sentence::Sentence;
use super::span::{Holes, Span};
use super::state::{Change, Head, Reading, Seen, SymptomKey, SymptomState, Transition, advance, is_kept};
use super::watch::Watch;
use chrono::{DateTime, Utc};
use std::collections::BTreeSet;

impl Watch {
    pub(super) fn evaluate(&mut self, at: DateTime<Utc>) -> Vec<Change> {
        let tick = floor(at.timestamp(), TICK);
        let orphans = std::mem::take(&mut self.orphans);
        let mut seen = Seen::default();
        orphans.into_iter().for_each(|state| seen.dropped(state, at));
        for place in self.places_to_look(tick) {
            let Some(slot) = self.slots.get_mut(place) else { continue };
            let was_due = slot.due;
            slot.evaluate(at, &self.lost, &mut seen);
            if slot.due != was_due {
                was_due.map(|due| self.due.remove(&(due, place)));
                slot.due.map(|due| self.due.insert((due, place)));
            }
        }
        if self.has_shared_news || self.shared_due.is_some_and(|due| due <= tick) {
            self.has_shared_news = false;
            self.evaluate_shared(at, &mut seen);
        }
        let Seen { mut changes, gone } = seen;
        self.gone.extend(gone);
        changes.sort_by(|one, other| one.state().key.cmp(&other.state().key));
        changes
    }

    fn places_to_look(&mut self, tick: i64) -> Vec<usize> {
        let mut places = std::mem::take(&mut self.news);
        places.extend(self.due.range(..=(tick, usize::MAX)).map(|(_, place)| *place));
        places.sort_unstable();
        places.dedup();
        places
    }

    fn evaluate_shared(&mut self, at: DateTime<Utc>, seen: &mut Seen) {
        let tick = floor(at.timestamp(), TICK);
        let mut before = std::mem::take(&mut self.shared_states);
        self.shared_due = None;
        let mut kept = Vec::new();
        for (rule, ask) in self.rules.shared() {
            let look = SharedLook { rules: &self.rules, rule, shared: &self.shared, before: &before, at: tick };
            let found = look.read(&ask);
            let next = found.next_at.map(|next| floor(next.max(tick + 1) + TICK - 1, TICK));
            self.shared_due = [self.shared_due, next].into_iter().flatten().min();
            let is_of = |key: &&SymptomKey| key.rule == rule.name;
            let mut keys: BTreeSet<SymptomKey> = before.keys().filter(is_of).cloned().collect();
            let mut findings = found.findings;
            keys.extend(findings.keys().map(|(workflow, subject)| SymptomKey {
                rule: rule.name.clone(),
                workflow: workflow.clone(),
                subject: subject.clone(),
            }));
            for key in keys {
                let same = |state: &SymptomState| state.kind == ask.kind();
                let state = if before.get(&key).is_some_and(same) { before.remove(&key) } else { None };
                let finding = findings.remove(&(key.workflow.clone(), key.subject.clone()));
                let reading = finding.map_or(Reading::QUIET, Reading::Firing);
                let (transition, state) = advance(&head(rule, &ask, &key), state, reading, at);
                let Some(state) = state else {
                    seen.gone.push(key);
                    continue;
                };
                if transition == Transition::Rest {
                    kept.push(state);
                } else {
                    if is_kept(&state) {
                        kept.push(state.clone());
                    } else {
                        seen.gone.push(key);
                    }
                    seen.changes.extend(transition.told(state));
                }
            }
        }
        self.shared_states = kept.into_iter().map(|state| (state.key.clone(), state)).collect();
        // Of rules that are gone, or of another kind now.
        before.into_values().for_each(|state| seen.dropped(state, at));
    }

    /// The states with their sentences as they read at `at`: durations go on between two looks.
    pub fn states_at(&mut self, at: DateTime<Utc>, lost: &[Span]) -> Vec<SymptomState> {
        let (tick, lost) = (floor(at.timestamp(), TICK), Holes::of(lost));
        let mut states: Vec<SymptomState> = self.shared_states_at(tick);
        for slot in &mut self.slots {
            for place in 0..slot.states.len() {
                let Some(Some(state)) = slot.states.get(place) else { continue };
                let state = SymptomState::clone(state);
                let reading = slot.read(place, tick, &lost, true).map_or(Reading::QUIET, |(reading, _)| reading);
                states.push(reworded(state, reading));
            }
        }
        states.sort_by(|one, other| one.key.cmp(&other.key));
        states
    }

    /// The symptom with this key as it reads at `at`.
    pub fn state_at(&mut self, key: &SymptomKey, at: DateTime<Utc>, lost: &[Span]) -> Option<SymptomState> {
        let tick = floor(at.timestamp(), TICK);
        let Some((slot, place)) = self.slot_of(key) else {
            return self.shared_states_at(tick).into_iter().find(|state| state.key == *key);
        };
        let state = slot.states.get(place)?.as_deref()?.clone();
        let reading = slot.read(place, tick, &Holes::of(lost), true).map_or(Reading::QUIET, |(reading, _)| reading);
        Some(reworded(state, reading))
    }

    fn shared_states_at(&self, tick: i64) -> Vec<SymptomState> {
        let mut states = self.shared_states.clone();
        for (rule, ask) in self.rules.shared() {
            let before = &self.shared_states;
            let found = SharedLook { rules: &self.rules, rule, shared: &self.shared, before, at: tick }.read(&ask);
            for ((workflow, subject), finding) in found.findings {
                let key = SymptomKey { rule: rule.name.clone(), workflow, subject };
                if let Some(state) = states.remove(&key) {
                    states.insert(key, reworded(state, Reading::Firing(finding)));
                }
            }
        }
        states.into_values().collect()
    }
}

fn head<'a>(rule: &'a SymptomRule, ask: &SharedAsk, key: &'a SymptomKey) -> Head<'a> {
    Head {
        rule: &rule.name,
        workflow: key.workflow.as_ref(),
        subject: key.subject.as_deref(),
        kind: ask.kind(),
        mode: rule.mode,
    }
}

/// The same state with the words of now; whether it fires is decided at looks only.
fn reworded(state: SymptomState, reading: Reading) -> SymptomState {
    match reading {
        Reading::Firing(finding) if state.is_firing() && finding.tiers.first() == state.tier.as_ref() => {
            let words = finding.words.unwrap_or(Sentence { text: state.text, detail: state.detail });
            SymptomState { text: words.text, detail: words.detail, value: finding.value, ..state }
        }
        Reading::Unknown(why) if state.held.is_some() => SymptomState { held: Some(why), ..state },
        Reading::Firing(_) | Reading::Unknown(_) | Reading::Quiet { .. } => state,
    }
}
