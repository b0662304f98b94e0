//! `repeat_offender` and `systemic`: what several workflows have in common. Workflows are counted, not events,
//! so that a single noisy one is never many.

use super::dead_letter::count as number;
use super::defaults::Rules;
use super::plan::SharedAsk;
use super::rule::SymptomRule;
use super::sentence::{self, Subject};
use super::shared::{Hit, Hits, Letter, Shared};
use super::state::{Finding, SymptomKey, SymptomState};
use crate::name::WorkflowName;
use std::collections::{BTreeMap, BTreeSet};

/// Dead letters older than this are no pattern of today, in s.
const LETTER_AGE_MAX: i64 = 7 * 86_400;

/// What a shared rule finds: by workflow and subject.
#[derive(Debug, Default)]
pub(super) struct Found {
    pub findings: BTreeMap<(Option<WorkflowName>, Option<String>), Finding>,
    /// When it could change without news, in s.
    pub next_at: Option<i64>,
}

impl Found {
    pub fn next(&mut self, at: i64) {
        self.next_at = Some(self.next_at.map_or(at, |next| next.min(at)));
    }
}

/// A look at what is shared, by one rule.
pub(super) struct SharedLook<'a> {
    pub rules: &'a Rules,
    pub rule: &'a SymptomRule,
    pub shared: &'a Shared,
    /// What was found at the last look.
    pub before: &'a BTreeMap<SymptomKey, SymptomState>,
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

    /// Whether the rule is for a workflow, as what it calls that downstream.
    pub(super) fn fits(&self, workflow: &WorkflowName, downstream: Option<&str>) -> bool {
        self.rules.fits(&self.rule.matcher, workflow, downstream)
    }

    pub(super) fn finding(&self, value: u64, sentence: sentence::Sentence, workflows: Vec<WorkflowName>) -> Finding {
        Finding {
            severity: self.rule.severity,
            tiers: Vec::new(),
            value: number(value),
            words: Some(sentence),
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
            if letters >= count && self.fits(workflow, None) {
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
            let fits = |workflow: &WorkflowName, _: &Hit| self.fits(workflow, Some(name));
            let hits = self.hit_within(&downstream.hits, window, fits, &mut found);
            if hits.len() as u64 >= count {
                explained.insert(name);
                let sentence = sentence::systemic(&Subject::Downstream(name), &hits, window);
                let finding = self.finding(hits.len() as u64, sentence, hits);
                found.findings.insert((None, Some(format!("downstream:{name}"))), finding);
            }
        }
        for (name, hits) in &self.shared.errors {
            let is_open = |hit: &Hit| hit.downstream.as_deref().is_none_or(|name| !explained.contains(name));
            let fits =
                |workflow: &WorkflowName, hit: &Hit| is_open(hit) && self.fits(workflow, hit.downstream.as_deref());
            let hits = self.hit_within(hits, window, fits, &mut found);
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
        counts: impl Fn(&WorkflowName, &Hit) -> bool,
        found: &mut Found,
    ) -> Vec<WorkflowName> {
        let from = self.at - window;
        if hits.latest_at <= from {
            return Vec::new();
        }
        let inside = |(name, hit): &(&WorkflowName, &Hit)| hit.at > from && counts(name, hit);
        let inside: Vec<(&WorkflowName, &Hit)> = hits.by.iter().filter(inside).collect();
        if let Some(oldest) = inside.iter().map(|(_, hit)| hit.at).min() {
            found.next(oldest + window);
        }
        inside.into_iter().map(|(name, _)| name.clone()).collect()
    }
}
