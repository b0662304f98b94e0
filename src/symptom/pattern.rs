//! `repeat_offender`, `systemic` and `breaker`: what several workflows have in common. Workflows are counted, not events,
//! so that a single noisy one is never many.

use super::dead_letter::count as number;
use super::defaults::Rules;
use super::plan::SharedAsk;
use super::rule::SymptomRule;
use super::sentence::{self, Subject};
use super::shared::{Call, Downstream, Hit, Hits, Letter, Shared};
use super::state::Finding;
use crate::event::BreakerState;
use crate::name::WorkflowName;
use std::collections::{BTreeMap, BTreeSet};

/// Dead letters older than this are no pattern of today, in s.
const LETTER_AGE_MAX: i64 = 7 * 86_400;

/// Calls older than this say nothing of a downstream now, in s.
const CALL_AGE_MAX: i64 = 86_400;

/// The same, of a downstream that nobody ever reports a good call of: good ones may be missing.
const UNPRAISED_AGE_MAX: i64 = 3_600;

/// Calls of others that can speak for a downstream against one workflow that fails.
const OTHERS_MIN: usize = 3;

/// What a shared rule finds: by workflow and subject.
#[derive(Debug, Default)]
pub(super) struct Found {
    pub findings: BTreeMap<(Option<WorkflowName>, Option<String>), Finding>,
    /// When it could change without news, in s.
    pub next_at: Option<i64>,
}

impl Found {
    fn next(&mut self, at: i64) {
        self.next_at = Some(self.next_at.map_or(at, |next| next.min(at)));
    }
}

/// A look at what is shared, by one rule.
pub(super) struct SharedLook<'a> {
    pub rules: &'a Rules,
    pub rule: &'a SymptomRule,
    pub shared: &'a Shared,
    /// In s.
    pub at: i64,
}

impl SharedLook<'_> {
    /// All that the rule finds.
    pub fn read(&self, ask: &SharedAsk) -> Found {
        match ask {
            SharedAsk::RepeatOffender { count, of } => self.repeat_offender(*count, *of),
            SharedAsk::Systemic { count, window } => self.systemic(*count, *window),
            SharedAsk::Breaker { ratio, of } => self.breaker(*ratio, *of),
        }
    }

    fn fits(&self, workflow: &WorkflowName) -> bool {
        self.rules.fits(&self.rule.matcher, workflow)
    }

    fn finding(&self, value: u64, sentence: sentence::Sentence, workflows: Vec<WorkflowName>) -> Finding {
        Finding {
            severity: self.rule.severity,
            tiers: Vec::new(),
            value: number(value),
            text: sentence.text,
            detail: sentence.detail,
            workflows,
            held: None,
            is_hot: true,
        }
    }

    /// One workflow left `count` or more of the last `of` dead letters, of the last 7 days; each dead letter once.
    fn repeat_offender(&self, count: u64, of: u64) -> Found {
        let mut found = Found::default();
        let take = usize::try_from(of).unwrap_or(usize::MAX);
        let is_recent = |letter: &&Letter| letter.at > self.at - LETTER_AGE_MAX;
        let last: Vec<&Letter> = self.shared.letters.iter().rev().take(take).filter(is_recent).collect();
        let Some(oldest) = last.last() else { return found };
        let mut own: BTreeMap<&WorkflowName, u64> = BTreeMap::new();
        for letter in &last {
            *own.entry(&letter.workflow).or_default() += 1;
        }
        found.next(oldest.at + LETTER_AGE_MAX);
        for (workflow, letters) in own {
            if letters >= count && self.fits(workflow) {
                let within = (self.at - oldest.at).max(0);
                let sentence = sentence::repeat_offender(workflow, letters, last.len() as u64, within);
                let finding = self.finding(letters, sentence, vec![workflow.clone()]);
                found.findings.insert((Some(workflow.clone()), None), finding);
            }
        }
        found
    }

    /// Final failures at one downstream, or with one error type, in `count` or more workflows within `window`. An error
    /// type that a downstream explains is not told again.
    fn systemic(&self, count: u64, window: i64) -> Found {
        let mut found = Found::default();
        let mut explained: BTreeSet<&str> = BTreeSet::new();
        for (name, downstream) in &self.shared.downstreams {
            let hits = self.hit_within(&downstream.hits, window, |_| true, &mut found);
            if hits.len() as u64 >= count {
                explained.insert(name);
                let sentence = sentence::systemic(&Subject::Downstream(name), &hits, window);
                let finding = self.finding(hits.len() as u64, sentence, hits);
                found.findings.insert((None, Some(format!("downstream:{name}"))), finding);
            }
        }
        for (name, hits) in &self.shared.errors {
            let is_open = |hit: &Hit| hit.downstream.as_deref().is_none_or(|name| !explained.contains(name));
            let hits = self.hit_within(hits, window, is_open, &mut found);
            if hits.len() as u64 >= count {
                let sentence = sentence::systemic(&Subject::Error(name), &hits, window);
                let finding = self.finding(hits.len() as u64, sentence, hits);
                found.findings.insert((None, Some(format!("error:{name}"))), finding);
            }
        }
        found
    }

    fn hit_within(
        &self,
        hits: &Hits,
        window: i64,
        counts: impl Fn(&Hit) -> bool,
        found: &mut Found,
    ) -> Vec<WorkflowName> {
        let from = self.at - window;
        if hits.latest_at <= from {
            return Vec::new();
        }
        let inside = |(name, hit): &(&WorkflowName, &Hit)| hit.at > from && counts(hit) && self.fits(name);
        let inside: Vec<(&WorkflowName, &Hit)> = hits.by.iter().filter(inside).collect();
        if let Some(oldest) = inside.iter().map(|(_, hit)| hit.at).min() {
            found.next(oldest + window);
        }
        inside.into_iter().map(|(name, _)| name.clone()).collect()
    }

    /// A downstream fails `ratio` or more of its last `of` calls, or a pipeline's breaker says that it is open. When the
    /// calls of the workflow that fails most are left out, what others called must not speak against it.
    fn breaker(&self, ratio: f64, of: u64) -> Found {
        let mut found = Found::default();
        for (name, downstream) in &self.shared.downstreams {
            let subject = || (None, Some(format!("downstream:{name}")));
            match downstream.said {
                Some((BreakerState::Open | BreakerState::HalfOpen, since)) => {
                    let sentence = sentence::breaker_open(name, (self.at - since).max(0));
                    found.findings.insert(subject(), self.finding(1, sentence, Vec::new()));
                    continue;
                }
                Some((BreakerState::Closed, _)) | None => {}
            }
            if let Some((failed, calls)) = self.calls_failed(downstream, ratio, of, &mut found) {
                let within = calls.last().map_or(0, |oldest| (self.at - oldest.at).max(0));
                let workflows: BTreeSet<&WorkflowName> = calls.iter().map(|call| &call.workflow).collect();
                let workflows: Vec<WorkflowName> = workflows.into_iter().cloned().collect();
                let sentence = sentence::breaker(name, failed, calls.len() as u64, within, &workflows);
                found.findings.insert(subject(), self.finding(failed, sentence, workflows));
            }
        }
        found
    }

    fn calls_failed<'d>(
        &self,
        downstream: &'d Downstream,
        ratio: f64,
        of: u64,
        found: &mut Found,
    ) -> Option<(u64, Vec<&'d Call>)> {
        let take = usize::try_from(of).unwrap_or(usize::MAX);
        let bad = downstream.calls.iter().rev().take(take).filter(|call| !call.is_good).count();
        if number(bad as u64) < ratio * number(of) {
            return None;
        }
        let is_praised = downstream.calls.iter().any(|call| call.is_good);
        let age_max = if is_praised { CALL_AGE_MAX } else { UNPRAISED_AGE_MAX };
        let is_recent = |call: &&Call| call.at > self.at - age_max;
        let last: Vec<&Call> = downstream.calls.iter().rev().take(take).filter(is_recent).collect();
        if (last.len() as u64) < of || !last.iter().any(|call| self.fits(&call.workflow)) {
            return None;
        }
        found.next(last.last().map_or(self.at, |oldest| oldest.at) + age_max);
        let failed = last.iter().filter(|call| !call.is_good).count();
        let share = |failed: usize, of: usize| number(failed as u64) / number(of.max(1) as u64);
        if share(failed, last.len()) < ratio {
            return None;
        }
        let mut failures: BTreeMap<&WorkflowName, usize> = BTreeMap::new();
        for call in last.iter().filter(|call| !call.is_good) {
            *failures.entry(&call.workflow).or_default() += 1;
        }
        let noisiest = failures.iter().max_by_key(|(_, count)| **count).map(|(name, _)| *name);
        let others: Vec<&Call> =
            downstream.calls.iter().filter(|call| is_recent(call) && Some(&call.workflow) != noisiest).collect();
        let others_failed = others.iter().filter(|call| !call.is_good).count();
        let is_contradicted = others.len() >= OTHERS_MIN && share(others_failed, others.len()) < ratio;
        (!is_contradicted).then_some((failed as u64, last))
    }
}
