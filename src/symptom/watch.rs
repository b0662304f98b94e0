//! Everything that symptoms know, in one place: rules, memory, standings and states, looked at now and then. The one
//! door of this room; what a kind means lives in its own file.

use super::buckets::{TICK, floor};
use super::codec;
use super::defaults::Rules;
use super::rule::Severity;
use super::shared::Shared;
use super::signal::Signal;
use super::slot::Slot;
use super::span::{Holes, Span};
use super::standing::Standing;
use super::state::{Change, SymptomKey, SymptomState};
use crate::name::WorkflowName;
use chrono::{DateTime, Utc};
use std::collections::{BTreeMap, BTreeSet, HashMap};

/// Name of the part that workflows share; a workflow's own is `w:` and its name.
const SHARED_PART: &str = "shared";
const WORKFLOW_PART: &str = "w:";

/// Workflows that are remembered, beside those of config: whoever writes the number of a run into the name of a workflow makes one each
/// time.
pub const WORKFLOWS_MAX: usize = 20_000;

/// Rules, memory and states of all symptoms.
#[derive(Clone, Debug, Default)]
pub struct Watch {
    pub(super) rules: Rules,
    places: HashMap<WorkflowName, usize>,
    pub(super) slots: Vec<Slot>,
    pub(super) shared: Shared,
    /// Of rules that ask of what is shared.
    pub(super) shared_states: BTreeMap<SymptomKey, SymptomState>,
    /// Of rules that are gone: they are dropped at the next look.
    pub(super) orphans: Vec<SymptomState>,
    /// Slots by when they have to be looked at, in s.
    pub(super) due: BTreeSet<(i64, usize)>,
    /// Slots with news.
    pub(super) news: Vec<usize>,
    /// Symptoms that neither fire nor are hot any more, since they were last taken.
    pub(super) gone: Vec<SymptomKey>,
    pub(super) shared_due: Option<i64>,
    pub(super) has_shared_news: bool,
    is_shared_dirty: bool,
    /// The first instant at which the news can be seen, in s.
    news_at: Option<i64>,
    refused_count: u64,
    /// Workflows that are remembered and that config does not name.
    unnamed_count: usize,
    /// The instant of the last look.
    pub(super) looked_at: Option<DateTime<Utc>>,
    pub(super) lost: Holes,
}

impl Watch {
    /// Knows nothing yet.
    pub fn new(rules: Rules) -> Self {
        Self { rules, ..Self::default() }
    }

    /// Rules as they apply.
    pub fn rules(&self) -> &Rules {
        &self.rules
    }

    /// New rules; counts and states are kept, symptoms of rules that are gone are dropped at the next look.
    pub fn set_rules(&mut self, rules: Rules) {
        self.rules = rules;
        for place in 0..self.slots.len() {
            if let Some(slot) = self.slots.get_mut(place) {
                self.orphans.extend(slot.set_plan(self.rules.plan(&slot.name)));
            }
            self.has_news(place);
        }
        self.has_shared_news = true;
    }

    /// Names a workflow that config describes, and when it was first known: it may never be heard.
    pub fn know(&mut self, workflow: &WorkflowName, first_known_at: DateTime<Utc>) {
        let Some(place) = self.place(workflow) else { return };
        if let Some(slot) = self.slots.get_mut(place) {
            slot.first_known_at = Some(first_known_at.timestamp());
        }
        self.has_news(place);
    }

    /// Remembers what was heard. Of a workflow for which there is no room, nothing is.
    pub fn take(&mut self, signal: &Signal) {
        let at = signal.at.timestamp();
        let Some(place) = self.place(&signal.workflow) else {
            self.refused_count += 1;
            return;
        };
        if let Some(slot) = self.slots.get_mut(place) {
            slot.memory.take(at, &signal.what);
            slot.memory.hear(signal.heard_at().timestamp(), &signal.what);
            slot.is_dirty = true;
        }
        if self.shared.take(&signal.workflow, at, &signal.what) {
            self.has_shared_news = true;
            self.is_shared_dirty = true;
        }
        let seen_at = floor(at, TICK) + TICK;
        self.news_at = Some(self.news_at.map_or(seen_at, |news| news.min(seen_at)));
        self.has_news(place);
    }

    /// What the store says now of a workflow's dead letters.
    pub fn set_standing(&mut self, workflow: &WorkflowName, standing: Standing) {
        let Some(place) = self.place(workflow) else { return };
        let Some(slot) = self.slots.get_mut(place) else { return };
        if slot.standing != standing {
            slot.standing = standing;
            self.has_news(place);
        }
    }

    /// Evaluates what has news or is due at `at`; `lost` are the spans in which events were lost before they came in.
    /// An earlier `at` than before is taken as the last one. Changes are in the order of their keys.
    pub fn look(&mut self, at: DateTime<Utc>, lost: &[Span]) -> Vec<Change> {
        let at = self.looked_at.map_or(at, |last| last.max(at));
        self.looked_at = Some(at);
        let lost = Holes::of(lost);
        if lost != self.lost {
            self.lost = lost;
            (0..self.slots.len()).for_each(|place| self.has_news(place));
        }
        self.news_at = None;
        self.evaluate(at)
    }

    /// The earliest instant, a multiple of 10 s, at which a look could find something new without further news.
    pub fn next_look_at(&self) -> Option<DateTime<Utc>> {
        let after = self.looked_at.map(|at| floor(at.timestamp(), TICK) + TICK);
        let has_news = !self.news.is_empty() || self.has_shared_news || !self.orphans.is_empty();
        let news = has_news.then_some(self.news_at.max(after)).flatten();
        let due = self.due.first().map(|(at, _)| *at);
        let next = [news, due, self.shared_due].into_iter().flatten().min()?;
        DateTime::from_timestamp(next.max(after.unwrap_or(next)), 0)
    }

    /// Symptoms that fire, in the order of their keys. Texts are of the last look that had news.
    pub fn firing(&self) -> impl Iterator<Item = &SymptomState> {
        self.states().filter(|state| state.is_firing())
    }

    /// Symptoms that fire, and those that have cleared but are still hot, in the order of their keys.
    pub fn states(&self) -> impl Iterator<Item = &SymptomState> {
        let own = self.slots.iter().flat_map(|slot| slot.states.iter().flatten().map(Box::as_ref));
        let mut states: Vec<&SymptomState> =
            own.chain(self.shared_states.values()).chain(self.orphans.iter()).collect();
        states.sort_by(|one, other| one.key.cmp(&other.key));
        states.into_iter()
    }

    /// The symptom with this key, when it fires, or has cleared but is still hot.
    pub fn state(&self, key: &SymptomKey) -> Option<&SymptomState> {
        let place = key.workflow.as_ref().and_then(|workflow| self.places.get(workflow));
        let own = place.and_then(|place| self.slots.get(*place)).map(|slot| slot.states.as_slice()).unwrap_or_default();
        let own = own.iter().flatten().map(Box::as_ref).find(|state| state.key == *key);
        own.or_else(|| self.shared_states.get(key)).or_else(|| self.orphans.iter().find(|state| state.key == *key))
    }

    /// Symptoms that fire and may page, in no order.
    pub fn urgent(&self) -> impl Iterator<Item = &SymptomState> {
        let own = self.slots.iter().flat_map(|slot| slot.states.iter().flatten().map(Box::as_ref));
        let is_urgent = |state: &&SymptomState| state.severity == Severity::Page && state.is_firing();
        own.chain(self.shared_states.values()).filter(is_urgent)
    }

    /// Symptoms that neither fire nor are hot any more, since the last time.
    pub fn take_gone(&mut self) -> Vec<SymptomKey> {
        std::mem::take(&mut self.gone)
    }

    /// The slot of a symptom that one workflow has, and the place of its rule.
    pub(super) fn slot_of(&mut self, key: &SymptomKey) -> Option<(&mut Slot, usize)> {
        let slot = self.slots.get_mut(*self.places.get(key.workflow.as_ref()?)?)?;
        let place = slot.states.iter().position(|state| state.as_ref().is_some_and(|state| state.key == *key))?;
        Some((slot, place))
    }

    /// What has changed since the last time, as named parts; each replaces the part of that name.
    pub fn freeze_dirty(&mut self) -> Vec<(String, Vec<u8>)> {
        let mut parts = Vec::new();
        for slot in self.slots.iter_mut().filter(|slot| slot.is_dirty) {
            slot.is_dirty = false;
            parts.push((format!("{WORKFLOW_PART}{}", slot.name), codec::write_memory(&slot.memory)));
        }
        if std::mem::take(&mut self.is_shared_dirty) {
            parts.push((SHARED_PART.to_owned(), codec::write_shared(&self.shared)));
        }
        parts.sort();
        parts
    }

    /// Takes frozen parts and the states that were kept beside them. A part that can't be read is left out and named in
    /// the answer.
    pub fn thaw(&mut self, parts: &[(String, Vec<u8>)], states: Vec<SymptomState>) -> Vec<String> {
        let mut unread = Vec::new();
        for (name, bytes) in parts {
            let is_read = match name.strip_prefix(WORKFLOW_PART) {
                Some(workflow) => self.thaw_workflow(&WorkflowName::new(workflow), bytes),
                None if name == SHARED_PART => codec::read_shared(bytes).map(|shared| self.shared = shared).is_some(),
                None => false,
            };
            if !is_read {
                unread.push(name.clone());
            }
        }
        for state in states {
            self.put_state(state);
        }
        (0..self.slots.len()).for_each(|place| self.has_news(place));
        self.has_shared_news = true;
        unread
    }

    /// Bytes that the memory of a workflow takes; none when it was never heard of.
    pub fn memory_size(&self, workflow: &WorkflowName) -> Option<usize> {
        self.places.get(workflow).and_then(|place| self.slots.get(*place)).map(|slot| slot.memory.size())
    }

    fn thaw_workflow(&mut self, workflow: &WorkflowName, bytes: &[u8]) -> bool {
        let Some(memory) = codec::read_memory(bytes) else { return false };
        let Some(place) = self.place(workflow) else { return false };
        if let Some(slot) = self.slots.get_mut(place) {
            slot.memory = memory;
        }
        true
    }

    fn put_state(&mut self, state: SymptomState) {
        let is_own = self.rules.shared().all(|(rule, _)| rule.name != state.key.rule);
        if let (true, Some(workflow)) = (is_own, state.key.workflow.clone()) {
            let refused = match self.place(&workflow).and_then(|place| self.slots.get_mut(place)) {
                Some(slot) => slot.put_state(state),
                None => Some(state),
            };
            self.orphans.extend(refused);
        } else {
            self.shared_states.insert(state.key.clone(), state);
        }
    }

    /// Signals that were not remembered since the last time, because there is no room for their workflows.
    pub fn take_refused_count(&mut self) -> u64 {
        std::mem::take(&mut self.refused_count)
    }

    /// The place of a workflow; none when there is no room for another.
    pub(super) fn place(&mut self, workflow: &WorkflowName) -> Option<usize> {
        if let Some(place) = self.places.get(workflow) {
            return Some(*place);
        }
        if !self.rules.names(workflow) {
            if self.unnamed_count >= WORKFLOWS_MAX {
                return None;
            }
            self.unnamed_count += 1;
        }
        Some(self.open_place(workflow))
    }

    fn open_place(&mut self, workflow: &WorkflowName) -> usize {
        let place = self.slots.len();
        self.slots.push(Slot::new(self.rules.plan(workflow)));
        self.places.insert(workflow.clone(), place);
        place
    }

    fn has_news(&mut self, place: usize) {
        if let Some(slot) = self.slots.get_mut(place).filter(|slot| !slot.has_news) {
            slot.has_news = true;
            self.news.push(place);
        }
    }
}
