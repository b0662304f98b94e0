//! Tests of the room through its door: timelines in virtual time, and what they are made with.

mod breaker;
mod burn;
mod hot;
mod input;
mod kinds;
mod lazy;
mod properties;
mod series;

use super::*;
use crate::matcher::{Glob, Matcher};
use crate::name::WorkflowName;
use crate::workflow::{Domain, Workflow, Workflows};
use chrono::{DateTime, Utc};
use std::collections::BTreeMap;
use std::time::Duration;

/// A Tuesday, 00:00 UTC.
const T0: i64 = 1_798_588_800;

fn at(second: i64) -> DateTime<Utc> {
    DateTime::from_timestamp(T0 + second, 0).unwrap()
}

fn since_t0(instant: DateTime<Utc>) -> i64 {
    instant.timestamp() - T0
}

fn signal(workflow: &str, second: i64, what: What) -> Signal {
    Signal { workflow: WorkflowName::new(workflow), at: at(second), arrived_at: None, what }
}

fn runs(ok: u64, failed: u64) -> What {
    What::Runs { ok, failed, downstream: None }
}

fn failure() -> What {
    What::Failure {
        is_final: true,
        letter: None,
        run: None,
        is_redriven: false,
        downstream: None,
        error_type: None,
        times: 1,
    }
}

pub(super) fn workflow(name: &str) -> Workflow {
    Workflow {
        name: Glob::new(name),
        domain: Domain::Standard,
        owner: None,
        runbook: None,
        slo: None,
        every: None,
        grace: Duration::ZERO,
        item_noun: None,
        expected_per_day: None,
        labels: BTreeMap::new(),
    }
}

pub(super) fn rule(name: &str, kind: SymptomKind) -> SymptomRule {
    SymptomRule { name: name.to_owned(), matcher: Matcher::default(), kind, severity: Severity::Page, mode: Mode::Live }
}

fn watch(workflows: Vec<Workflow>, rules: &[SymptomRule]) -> Watch {
    Watch::new(Rules::new(Some(rules), &Workflows::new(workflows)))
}
