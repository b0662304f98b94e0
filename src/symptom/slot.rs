//! One workflow under watch: its rules, its memory, its dead letters and the states of its symptoms.

use super::buckets::{HOUR, TICK, floor};
use super::burn_rate;
use super::exact::Ratio;
use super::memory::Memory;
use super::plan::{Applied, Ask, Plan};
use super::reading::{Context, Read, read};
use super::rule::Severity;
use super::span::Holes;
use super::standing::Standing;
use super::state::{Head, Seen, SymptomState, Transition, advance, is_kept};
use crate::name::WorkflowName;
use chrono::{DateTime, Utc};

/// A workflow under watch.
#[derive(Clone, Debug)]
pub(super) struct Slot {
    pub name: WorkflowName,
    pub plan: Plan,
    pub memory: Memory,
    pub standing: Standing,
    pub first_known_at: Option<i64>,
    /// By place in the plan's rules.
    pub states: Vec<Option<Box<SymptomState>>>,
    /// When it has to be looked at, in s.
    pub due: Option<i64>,
    pub has_news: bool,
    pub is_dirty: bool,
    /// Runs a second as learned, for which hour and period.
    learned: Option<(i64, i64, Ratio)>,
}

impl Slot {
    pub fn new(plan: Plan) -> Self {
        Self {
            name: plan.workflow.clone(),
            states: vec![None; plan.rules.len()],
            plan,
            memory: Memory::default(),
            standing: Standing::default(),
            first_known_at: None,
            due: None,
            has_news: false,
            is_dirty: false,
            learned: None,
        }
    }

    /// Takes another plan; states of rules that are in it are kept, the others are returned.
    pub fn set_plan(&mut self, plan: Plan) -> Vec<SymptomState> {
        let states = std::mem::take(&mut self.states);
        self.states = vec![None; plan.rules.len()];
        self.plan = plan;
        states.into_iter().flatten().filter_map(|state| self.put_state(*state)).collect()
    }

    /// Puts a state to its rule, or gives it back when there is no such rule.
    pub fn put_state(&mut self, state: SymptomState) -> Option<SymptomState> {
        let is_of = |rule: &Applied| *rule.name == *state.key.rule && rule.ask.kind() == state.kind;
        let place = self.plan.rules.iter().position(is_of);
        match place.and_then(|place| self.states.get_mut(place)) {
            Some(kept) => {
                *kept = Some(Box::new(state));
                None
            }
            None => Some(state),
        }
    }

    /// Evaluates all rules at `at`; what changed goes to `seen`, in the order of the rules.
    pub fn evaluate(&mut self, at: DateTime<Utc>, lost: &Holes, seen: &mut Seen) {
        let tick = floor(at.timestamp(), TICK);
        self.memory.counts.age(tick);
        let has_news = std::mem::take(&mut self.has_news);
        if has_news {
            self.memory.reports.look(tick);
        }
        // What has come in since the tick is seen at the next one.
        let pending = self.memory.counts.newest_at;
        let mut due = (pending >= tick).then(|| floor(pending, TICK) + TICK);
        for place in 0..self.plan.rules.len() {
            let Some((reading, next)) = self.read(place, tick, lost, has_news) else { continue };
            due = [due, next.map(|next| next.max(tick + 1))].into_iter().flatten().min();
            let (Some(rule), Some(kept)) = (self.plan.rules.get(place), self.states.get_mut(place)) else { continue };
            let head = Head {
                rule: &rule.name,
                workflow: Some(&self.name),
                subject: None,
                kind: rule.ask.kind(),
                mode: rule.mode,
            };
            // Only what fires no more can be forgotten without a change.
            let cooling = kept.as_ref().filter(|state| !state.is_firing()).map(|state| state.key.clone());
            let (transition, state) = advance(&head, kept.take().map(|state| *state), reading, at);
            let Some(state) = state else {
                seen.gone.extend(cooling);
                continue;
            };
            if transition == Transition::Rest {
                *kept = Some(Box::new(state));
            } else {
                if is_kept(&state) {
                    *kept = Some(Box::new(state.clone()));
                } else {
                    seen.gone.push(state.key.clone());
                }
                seen.changes.extend(transition.told(state));
            }
        }
        self.due = due.map(|due| floor(due + TICK - 1, TICK));
    }

    /// What a rule finds now, without taking it.
    pub fn read(&mut self, place: usize, tick: i64, lost: &Holes, has_news: bool) -> Option<Read> {
        Some(read(&self.context(place, tick, lost, has_news)?))
    }

    /// What a rule is given to read.
    pub fn context<'a>(&'a mut self, place: usize, tick: i64, lost: &'a Holes, has_news: bool) -> Option<Context<'a>> {
        let learned = self.learned(place, tick);
        Some(Context {
            plan: &self.plan,
            applied: self.plan.rules.get(place)?,
            memory: &self.memory,
            standing: &self.standing,
            first_known_at: self.first_known_at,
            at: tick,
            lost,
            before: self.states.get(place)?.as_deref(),
            holds_page: self
                .states
                .iter()
                .flatten()
                .any(|state| state.is_firing() && state.severity == Severity::Page && state.tier.is_some()),
            learned,
            has_news,
        })
    }

    /// Runs a second as learned: counted anew once an hour, so that it does not drift with every look.
    fn learned(&mut self, place: usize, tick: i64) -> Ratio {
        let Some(Ask::BurnRate(burn)) = self.plan.rules.get(place).map(|rule| &rule.ask) else { return Ratio::ZERO };
        if burn.expected_per_day.is_some() {
            return Ratio::ZERO;
        }
        let hour = floor(tick, HOUR);
        if let Some((known, period, rate)) = self.learned
            && known == hour
            && period == burn.period
        {
            return rate;
        }
        let rate = burn_rate::learned(tick, &self.memory, burn.period);
        self.learned = Some((hour, burn.period, rate));
        rate
    }
}
