//! Time to look at the symptoms of 10,000 busy workflows, all of them with news, and of a year of 1,000,000 failures of
//! 200 workflows, looked at when there is news or something is due. `cargo bench --bench symptoms`

use chrono::{DateTime, Utc};
use matins::matcher::Glob;
use matins::name::WorkflowName;
use matins::symptom::{Rules, Signal, Watch, What};
use matins::workflow::{Domain, Workflow, Workflows};
use std::collections::BTreeMap;
use std::hint::black_box;
use std::time::{Duration, Instant};

const START: i64 = 1_798_588_800;

fn at(second: i64) -> DateTime<Utc> {
    DateTime::from_timestamp(START + second, 0).unwrap_or_default()
}

fn watch() -> Watch {
    let every = Workflow {
        name: Glob::new("*"),
        domain: Domain::Standard,
        owner: None,
        runbook: None,
        slo: Some("0.995".to_owned()),
        every: Some(Duration::from_secs(86_400)),
        grace: Duration::ZERO,
        item_noun: None,
        expected_per_day: None,
        labels: BTreeMap::new(),
    };
    Watch::new(Rules::new(None, &Workflows::new(vec![every])))
}

fn runs(name: &WorkflowName, second: i64, ok: u64, failed: u64) -> Signal {
    Signal {
        workflow: name.clone(),
        at: at(second),
        arrived_at: None,
        what: What::Runs { ok, failed, downstream: None },
    }
}

/// 3 days of a busy workflow: fine buckets full, some failures, near no threshold.
fn busy(name: &WorkflowName) -> Vec<Signal> {
    let old = (-3 * 86_400..-21_600).step_by(300).map(|second| runs(name, second, 300, 0));
    let recent = (-21_600..-3_600).step_by(60).map(|second| runs(name, second, 60, 0));
    let fresh = (-3_600..0).step_by(10).map(|second| runs(name, second, 10, u64::from(second % 600 == 0)));
    old.chain(recent).chain(fresh).collect()
}

#[allow(clippy::disallowed_methods, reason = "a benchmark reads the clock")]
fn tick(workflows: usize) {
    let mut watch = watch();
    let names: Vec<WorkflowName> = (0..workflows).map(|n| WorkflowName::new(format!("workflow-{n}"))).collect();
    for name in &names {
        busy(name).iter().for_each(|signal| watch.take(signal));
    }
    watch.look(at(0), &[]);
    let (mut best, mut worst) = (f64::INFINITY, 0f64);
    for round in 1..=12 {
        names.iter().for_each(|name| watch.take(&runs(name, round * 10 - 5, 10, u64::from(round == 3))));
        let began = Instant::now();
        black_box(watch.look(at(round * 10), &[]));
        let took = began.elapsed().as_secs_f64() * 1e3;
        (best, worst) = (best.min(took), worst.max(took));
    }
    let size: usize = names.iter().filter_map(|name| watch.memory_size(name)).sum();
    println!("tick: {workflows} workflows looked at in {best:.0} to {worst:.0} ms, {} bytes each", size / workflows);
    let began = Instant::now();
    let parts = watch.freeze_dirty();
    let bytes: usize = parts.iter().map(|(_, bytes)| bytes.len()).sum();
    println!(
        "freeze: {} parts of {} bytes in {:.0} ms",
        parts.len(),
        bytes / parts.len(),
        began.elapsed().as_secs_f64() * 1e3
    );
}

#[allow(clippy::disallowed_methods, reason = "a benchmark reads the clock")]
fn year(events: i64, workflows: i64) {
    let mut watch = watch();
    let names: Vec<WorkflowName> = (0..workflows).map(|n| WorkflowName::new(format!("workflow-{n}"))).collect();
    let began = Instant::now();
    let (mut looks, mut changes) = (0u64, 0usize);
    let look_until = |watch: &mut Watch, until: i64, looks: &mut u64, changes: &mut usize| {
        while let Some(next) = watch.next_look_at().filter(|next| *next <= at(until)) {
            *changes += watch.look(next, &[]).len();
            *looks += 1;
        }
    };
    let mut seed = 1u64;
    for n in 0..events {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let pick = (seed >> 33).cast_signed();
        let second = n * 365 * 86_400 / events;
        look_until(&mut watch, second, &mut looks, &mut changes);
        let Some(name) = names.get(usize::try_from(pick % workflows).unwrap_or(0)) else { continue };
        let what = match pick / workflows % 10 {
            0..7 => What::Runs { ok: 100, failed: 0, downstream: None },
            kind => What::Failure {
                is_final: kind == 7,
                letter: (kind == 7).then_some(seed),
                run: None,
                is_redriven: false,
                downstream: Some(format!("downstream-{}", pick % 20)),
                error_type: Some(format!("Error{}", pick % 50)),
                times: 1,
            },
        };
        watch.take(&Signal { workflow: name.clone(), at: at(second), arrived_at: None, what });
    }
    look_until(&mut watch, 365 * 86_400, &mut looks, &mut changes);
    println!(
        "year: {events} events of {workflows} workflows, {looks} looks, {changes} changes in {:.1} s",
        began.elapsed().as_secs_f64()
    );
}

fn main() {
    tick(10_000);
    year(1_000_000, 200);
}
