//! `breaker`: a downstream fails most of its calls, or a pipeline says that its circuit breaker is open.
//!
//! Calls are judged by the last few of them. What fires goes on until good calls say otherwise, or nothing is heard of the
//! downstream any more. What a pipeline says is taken as said: it lasts until it says otherwise, or a day after the last
//! word or failure.

use super::dead_letter::count as number;
use super::pattern::{Found, SharedLook};
use super::sentence;
use super::shared::{Call, Downstream, Said};
use super::state::{Finding, SymptomKey, SymptomState};
use crate::event::BreakerState;
use crate::name::WorkflowName;
use std::collections::{BTreeMap, BTreeSet};

/// Calls older than this say nothing of a downstream now, in s.
const CALL_AGE_MAX: i64 = 86_400;

/// The same, of a downstream that nobody ever reports a good call of: good ones may be missing.
const UNPRAISED_AGE_MAX: i64 = 3_600;

/// A breaker that was said to be open, and of which nothing was heard for so long, is nobody's any more, in s.
const OPEN_AGE_MAX: i64 = 86_400;

/// Calls of others that can speak for a downstream against one workflow that fails.
const OTHERS_MIN: usize = 3;

impl SharedLook<'_> {
    /// A downstream fails `ratio` or more of its last `of` calls, or a pipeline's breaker says that it is open.
    pub(super) fn breaker(&self, ratio: f64, of: u64) -> Found {
        let mut found = Found::default();
        for (name, downstream) in &self.shared.downstreams {
            let finding = match &downstream.said {
                Some(said) if self.is_open(downstream, said, &mut found) => self.said_open(name, downstream, said),
                Some(_) | None => self.fails(name, downstream, ratio, of, &mut found),
            };
            if let Some(finding) = finding {
                found.findings.insert((None, Some(subject(name))), finding);
            }
        }
        found
    }

    fn is_open(&self, downstream: &Downstream, said: &Said, found: &mut Found) -> bool {
        match said.state {
            BreakerState::Closed => return false,
            BreakerState::Open | BreakerState::HalfOpen => {}
        }
        let failed_at = downstream.calls.iter().rev().find(|call| !call.is_good).map(|call| call.at);
        let ends_at = said.at.max(downstream.hits.latest_at).max(failed_at.unwrap_or(said.at)) + OPEN_AGE_MAX;
        if self.at < ends_at {
            found.next(ends_at);
        }
        self.at < ends_at
    }

    /// Of whoever said so, and of whoever has called it since.
    fn said_open(&self, name: &str, downstream: &Downstream, said: &Said) -> Option<Finding> {
        let failed = downstream.hits.by.iter().filter(|(_, hit)| hit.at >= said.since).map(|(workflow, _)| workflow);
        let callers = downstream.calls.iter().map(|call| &call.workflow);
        let workflows = self.fitting(name, said.by.iter().chain(failed).chain(callers))?;
        let sentence = sentence::breaker_open(name, (self.at - said.since).max(0), &workflows);
        Some(self.finding(1, sentence, workflows))
    }

    fn fails(&self, name: &str, downstream: &Downstream, ratio: f64, of: u64, found: &mut Found) -> Option<Finding> {
        let (failed, calls) = self.calls_failed(downstream, self.fires(name), ratio, of, found)?;
        let workflows = self.fitting(name, calls.iter().map(|call| &call.workflow))?;
        let within = calls.last().map_or(0, |oldest| (self.at - oldest.at).max(0));
        let sentence = sentence::breaker(name, failed, calls.len() as u64, within, &workflows);
        Some(self.finding(failed, sentence, workflows))
    }

    /// The workflows that the rule is for, each once; none when there are none.
    fn fitting<'w>(
        &self,
        downstream: &str,
        workflows: impl Iterator<Item = &'w WorkflowName>,
    ) -> Option<Vec<WorkflowName>> {
        let all: BTreeSet<&WorkflowName> = workflows.collect();
        let fitting = all.into_iter().filter(|workflow| self.fits(workflow, Some(downstream)));
        let fitting: Vec<WorkflowName> = fitting.cloned().collect();
        (!fitting.is_empty()).then_some(fitting)
    }

    /// Whether the symptom of a downstream fires already.
    fn fires(&self, name: &str) -> bool {
        let key = SymptomKey { rule: self.rule.name.clone(), workflow: None, subject: Some(subject(name)) };
        self.before.get(&key).is_some_and(SymptomState::is_firing)
    }

    /// The failed ones of the last `of` calls, and those calls, newest first. When the calls of the workflow that fails most
    /// are left out, what others called must not speak against it.
    fn calls_failed<'d>(
        &self,
        downstream: &'d Downstream,
        fires: bool,
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
        let is_recent = |call: &Call| call.at > self.at - age_max;
        // One that fires and is still called is not forgotten because it is called more rarely now.
        let is_heard = fires && downstream.calls.back().is_some_and(is_recent);
        let counts = |call: &&Call| is_heard || is_recent(call);
        let last: Vec<&Call> = downstream.calls.iter().rev().take(take).filter(counts).collect();
        if (last.len() as u64) < of {
            return None;
        }
        let leaving = if is_heard { last.first() } else { last.last() };
        let others_leave = downstream.calls.iter().find(|call| is_recent(call));
        for call in leaving.copied().into_iter().chain(others_leave) {
            found.next(call.at + age_max);
        }
        let failed = last.iter().filter(|call| !call.is_good).count();
        (share(failed, last.len()) >= ratio && !is_contradicted(downstream, &last, is_recent, ratio))
            .then_some((failed as u64, last))
    }
}

fn is_contradicted(downstream: &Downstream, last: &[&Call], is_recent: impl Fn(&Call) -> bool, ratio: f64) -> bool {
    let mut failures: BTreeMap<&WorkflowName, usize> = BTreeMap::new();
    for call in last.iter().filter(|call| !call.is_good) {
        *failures.entry(&call.workflow).or_default() += 1;
    }
    let noisiest = failures.iter().max_by_key(|(_, count)| **count).map(|(name, _)| *name);
    let others = downstream.calls.iter().filter(|call| is_recent(call) && Some(&call.workflow) != noisiest);
    let others: Vec<&Call> = others.collect();
    let others_failed = others.iter().filter(|call| !call.is_good).count();
    others.len() >= OTHERS_MIN && share(others_failed, others.len()) < ratio
}

fn share(failed: usize, of: usize) -> f64 {
    number(failed as u64) / number(of.max(1) as u64)
}

fn subject(downstream: &str) -> String {
    format!("downstream:{downstream}")
}
