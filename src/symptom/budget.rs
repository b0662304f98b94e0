//! How fast budgets burn and what is left of them, for metrics and digests: numbers, no decisions.

use super::buckets::{TICK, floor};
use super::plan::Ask;
use super::rule::Mode;
use super::sentence;
use super::watch::Watch;
use crate::name::WorkflowName;
use chrono::{DateTime, Utc};
use std::time::Duration;

/// The budget of one workflow by one rule, at one instant.
#[derive(Clone, Debug, PartialEq)]
pub struct Budget {
    /// Name of the rule.
    pub rule: String,
    /// Whether anybody is told.
    pub mode: Mode,
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
    /// What is left of it; none when nothing is known.
    pub left: Option<BudgetLeft>,
    /// Failed runs of the last 7 days.
    pub failed_lately: u64,
}

/// What is left of a budget.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct BudgetLeft {
    /// Failed runs that the objective allows in the period.
    pub allowed: f64,
    /// Share of the budget that is left, below 0 when more than all is spent.
    pub share: f64,
    /// How much of the period is known; with less than all of it, the rest is taken to be as busy and without a failure.
    pub known: Duration,
}

impl Budget {
    /// The objective as people read it: `99.5 %`.
    pub fn objective(&self) -> String {
        sentence::objective(&self.slo)
    }
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
            mode: context.applied.mode,
            workflow: context.plan.workflow.clone(),
            slo: plan.slo.clone(),
            period: Duration::from_secs(plan.period.unsigned_abs()),
            burns: numbers.burns,
            failed: numbers.failed,
            total: numbers.total,
            left: numbers.left.map(|left| BudgetLeft {
                allowed: left.allowed,
                share: left.share,
                known: Duration::from_secs(left.known.unsigned_abs()),
            }),
            failed_lately: numbers.failed_lately,
        })
    }
}
