//! How fast budgets burn and what is left of them, for metrics, digests and `check`: numbers and words, no decisions.

use super::buckets::{TICK, floor};
use super::plan::{Ask, BurnPlan, OffReason, TierOff};
use super::sentence::{listed, objective, percent, span};
use super::watch::Watch;
use crate::name::WorkflowName;
use crate::render::words;
use chrono::{DateTime, Utc};
use std::time::Duration;

/// The budget of one workflow by one rule, at one instant.
#[derive(Clone, Debug, PartialEq)]
pub struct Budget {
    /// Name of the rule.
    pub rule: String,
    /// The workflow.
    pub workflow: WorkflowName,
    /// The objective as written.
    pub slo: String,
    /// Period of the objective.
    pub period: Duration,
    /// Burn rate by window, shortest first: 1.0 spends the budget in just the period. None when nothing is known.
    pub burns: Vec<(Duration, Option<f64>)>,
    /// Failed runs of the period.
    pub failed: u64,
    /// Finished runs of the period.
    pub total: u64,
    /// Share of the budget that is left, below 0 when more than all is spent; none when nothing is known.
    pub left: Option<f64>,
}

impl Watch {
    /// The budgets of all workflows that have an objective, in the order of their names.
    pub fn budgets(&mut self, at: DateTime<Utc>) -> Vec<Budget> {
        let tick = floor(at.timestamp(), TICK);
        let lost = self.lost.clone();
        let mut budgets: Vec<Budget> = self.slots.iter_mut().flat_map(|slot| slot.budgets(tick, &lost)).collect();
        budgets.sort_by(|one, other| (&one.workflow, &one.rule).cmp(&(&other.workflow, &other.rule)));
        budgets
    }
}

impl BurnPlan {
    /// What the tiers mean in the workflow's own traffic, in one sentence, or two; none when all of them mean something.
    pub fn explain(&self) -> Option<String> {
        if self.off.is_empty() {
            return None;
        }
        let period = span(self.period);
        let mut said = String::new();
        if let (Some(per_day), Some(share)) = (self.expected_per_day, self.share_of_one()) {
            let (runs, slo) = (words::noun(per_day, "run"), objective(&self.slo));
            let share = percent(share.to_f64());
            said = format!("at {runs} a day and {slo} one failure spends {share} of the budget of {period}: ");
        }
        let mut reasons: Vec<String> = Vec::new();
        let named = |pick: &dyn Fn(&TierOff) -> bool| {
            let names: Vec<&str> = self.off.iter().filter(|off| pick(off)).map(|off| off.tier.as_str()).collect();
            (!names.is_empty()).then(|| {
                let be = if names.len() == 1 { "is" } else { "are" };
                format!("{} {be} off", listed(names.into_iter()))
            })
        };
        if let Some(off) = named(&|off| matches!(off.why, OffReason::PerRun)) {
            reasons.push(format!("{off}, every run is judged by itself: failing_streak and run_failed stand in"));
        }
        if let Some(off) = named(&|off| matches!(off.why, OffReason::TooFewRuns { .. })) {
            let mut rest = vec!["failing_streak"];
            rest.extend(self.tiers.iter().map(|tier| tier.name.as_str()));
            let stand = if rest.len() == 1 { "stands" } else { "stand" };
            reasons.push(format!("{off}, {} {stand} in", listed(rest.into_iter())));
        }
        if let Some(off) = named(&|off| matches!(off.why, OffReason::Unreachable)) {
            reasons.push(format!("{off}, not even a total failure is over the factor"));
        }
        Some(format!("{said}{}", reasons.join("; ")))
    }
}

impl super::slot::Slot {
    fn budgets(&mut self, tick: i64, lost: &super::span::Holes) -> Vec<Budget> {
        let places: Vec<usize> = (0..self.plan.rules.len()).collect();
        places.into_iter().filter_map(|place| self.budget(place, tick, lost)).collect()
    }

    fn budget(&mut self, place: usize, tick: i64, lost: &super::span::Holes) -> Option<Budget> {
        let context = self.context(place, tick, lost, false)?;
        let Ask::BurnRate(plan) = &context.applied.ask else { return None };
        let numbers = super::burn_rate::numbers(&context, plan);
        Some(Budget {
            rule: context.applied.name.to_string(),
            workflow: context.plan.workflow.clone(),
            slo: plan.slo.clone(),
            period: Duration::from_secs(plan.period.unsigned_abs()),
            burns: numbers.burns,
            failed: numbers.failed,
            total: numbers.total,
            left: numbers.left,
        })
    }
}
