//! The vectors of the specification: timelines with the intervals in which each tier has to fire, and formulas with their
//! results. They are part of the program, so that whoever runs it can see that it does what it says. A bucketed engine may
//! fire and clear late by what a bucket costs, never early, and may neither miss nor invent.

use super::buckets::TICK;
use super::defaults::Rules;
use super::exact::Ratio;
use super::rule::{BurnTier, Mode, Severity, SymptomKind, SymptomRule};
use super::signal::{Signal, What};
use super::trial::{Timeline, instant, play};
use super::watch::Watch;
use crate::matcher::Matcher;
use crate::name::WorkflowName;
use crate::workflow::Workflows;
use serde::Deserialize;
use std::collections::BTreeMap;
use std::time::Duration;

const VECTORS: &str = include_str!("testdata/vectors.json");

/// Timelines that the rules of config can't express, and why.
const NOT_OFFERED: &[(&str, &str)] = &[
    ("A1-total-outage-0.6s", "fires at a threshold, in tenths of a second"),
    ("A1-exact-threshold-10min", "fires at a threshold, not over it"),
    ("A3-for-1h-total-outage", "waits before it fires"),
    ("A3-spikes-never-alert", "waits before it fires"),
    ("B16-pyrra-60s-pages-after-recovery", "waits before it fires"),
    ("D1-gap-naive", "clears in a gap"),
    ("D5-heartbeats-lost-ratio", "takes lost good runs for a higher ratio"),
    ("D7-gap-floor-naive", "clears in a gap"),
    ("E5-clock-ahead-600s-unclamped", "believes times after arrival"),
    ("E8-replay-receive-time", "counts twice, and when events come in"),
];

/// When a tier fires and clears, in s; not at all before the timeline ends.
type Interval = (i64, Option<i64>);

/// What became of a vector.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum VectorOutcome {
    /// It holds.
    Pass,
    /// It does not, and how.
    Fail(Vec<String>),
    /// It is of a rule that there is none of here, and what that rule does.
    NotOffered(&'static str),
}

/// A vector and what became of it.
#[derive(Clone, Debug)]
pub struct VectorResult {
    /// `B1-total-outage-24h`
    pub id: String,
    /// What it shows.
    pub title: String,
    /// Whether it holds.
    pub outcome: VectorOutcome,
}

#[derive(Debug, Deserialize)]
struct Document {
    alert_sets: BTreeMap<String, Vec<Alert>>,
    vectors: Vec<Vector>,
    formula_vectors: Vec<Formula>,
}

#[derive(Debug, Deserialize)]
struct Vector {
    id: String,
    title: String,
    slo: String,
    alerts: Alerts,
    traffic: Vec<Traffic>,
    horizon: i64,
    #[serde(default)]
    config: Config,
    expected: BTreeMap<String, Vec<Interval>>,
}

#[derive(Debug, Deserialize)]
#[serde(untagged)]
enum Alerts {
    Set(String),
    Own(Vec<Alert>),
}

#[derive(Clone, Debug, Deserialize)]
struct Alert {
    id: String,
    kind: Option<String>,
    long: Option<i64>,
    short: Option<i64>,
    burn: Option<String>,
    severity: Option<String>,
    k: Option<u64>,
}

#[derive(Debug, Deserialize)]
struct Traffic {
    kind: String,
    #[serde(default)]
    from: i64,
    #[serde(default)]
    to: i64,
    every: Option<i64>,
    #[serde(default)]
    total: u64,
    #[serde(default)]
    bad: u64,
    #[serde(default)]
    recv_delay: i64,
    #[serde(default)]
    ts_offset: i64,
}

#[derive(Debug, Default, Deserialize)]
struct Config {
    denominator: Option<String>,
    expected_per_tick: Option<String>,
    min_bad: Option<u64>,
    history_from: Option<i64>,
    down: Option<(i64, i64)>,
    #[serde(default)]
    blackout: Vec<(i64, i64)>,
}

#[derive(Debug, Deserialize)]
struct Formula {
    id: String,
    kind: String,
    #[serde(rename = "in")]
    given: BTreeMap<String, serde_json::Value>,
    expected: String,
}

/// Runs every vector through the code that runs.
///
/// # Errors
/// When the vectors can't be read.
pub fn run_vectors() -> Result<Vec<VectorResult>, serde_json::Error> {
    let document: Document = serde_json::from_str(VECTORS)?;
    let timelines = document.vectors.iter().map(|vector| VectorResult {
        id: vector.id.clone(),
        title: vector.title.clone(),
        outcome: vector.outcome(&document.alert_sets),
    });
    let formulas = document.formula_vectors.iter().map(|formula| {
        let (got, expected) = (formula.value(), Ratio::parse(&formula.expected));
        let is_right = got.is_some() && got == expected;
        let why = || format!("{got:?} instead of {}", formula.expected);
        let outcome = if is_right { VectorOutcome::Pass } else { VectorOutcome::Fail(vec![why()]) };
        VectorResult { id: formula.id.clone(), title: format!("formula {}", formula.kind), outcome }
    });
    Ok(timelines.chain(formulas).collect())
}

impl Vector {
    fn outcome(&self, sets: &BTreeMap<String, Vec<Alert>>) -> VectorOutcome {
        if let Some((_, why)) = NOT_OFFERED.iter().find(|(id, _)| *id == self.id) {
            return VectorOutcome::NotOffered(why);
        }
        let alerts = match &self.alerts {
            Alerts::Set(name) => sets.get(name).cloned().unwrap_or_default(),
            Alerts::Own(own) => own.clone(),
        };
        let Some(rules) = self.rules(&alerts) else {
            return VectorOutcome::Fail(vec!["its rules can't be read".to_owned()]);
        };
        let mut watch = Watch::new(Rules::new(Some(&rules), &Workflows::default()));
        let (lost, down) = (self.config.blackout.clone(), self.config.down);
        let line = Timeline { signals: self.signals(), span: (0, self.horizon), lost, down };
        let firings = play(&mut watch, &line);
        let problems: Vec<String> = alerts
            .iter()
            .filter_map(|alert| {
                let own = firings.iter().filter(|firing| firing.name == alert.id);
                self.problem(alert, &own.map(|firing| (firing.from, firing.to)).collect::<Vec<_>>())
            })
            .collect();
        if problems.is_empty() { VectorOutcome::Pass } else { VectorOutcome::Fail(problems) }
    }

    fn rules(&self, alerts: &[Alert]) -> Option<Vec<SymptomRule>> {
        if alerts.iter().any(|alert| alert.kind.is_some()) {
            return alerts.iter().map(run_rule).collect();
        }
        let tiers = alerts.iter().map(tier).collect::<Option<Vec<BurnTier>>>()?;
        let is_declared = self.config.denominator.as_deref() == Some("floor");
        let per_tick = self.config.expected_per_tick.as_deref().filter(|_| is_declared);
        let per_day = per_tick.map(|n| Ratio::parse(n)?.times(Ratio::from(86_400)));
        let kind = SymptomKind::BurnRate {
            slo: Some(self.slo.clone()),
            period: None,
            expected_per_day: match per_day {
                Some(per_day) => Some(u64::try_from(per_day.filter(|n| n.den == 1)?.num).ok()?),
                None => None,
            },
            tiers: Some(tiers),
            min_failures: Some(self.config.min_bad.unwrap_or(1).max(1)),
        };
        Some(vec![rule("burn", kind)])
    }

    /// Signals with the second at which they come in, in that order. Runs are reported every 10 s, long ago every 5 min;
    /// failures that are late, ahead of their time or without runs come as events.
    fn signals(&self) -> Vec<(i64, Signal)> {
        let mut reports: BTreeMap<(i64, i64), (u64, u64)> = BTreeMap::new();
        let mut signals = Vec::new();
        let hidden_before = self.config.history_from.unwrap_or(i64::MIN);
        for part in &self.traffic {
            let every = part.every.filter(|_| part.kind == "pulse").unwrap_or(1).max(1);
            let seconds = (part.from..part.to.min(self.horizon + 1)).step_by(usize::try_from(every).unwrap_or(1));
            for second in seconds.filter(|second| *second >= hidden_before) {
                let is_apart = part.total == 0 || part.recv_delay > 0 || part.ts_offset > 0;
                let step = if second < -25_200 { 300 } else { TICK };
                let bucket = second.div_euclid(step) * step;
                if part.total > 0 {
                    let told = if every == 1 { bucket + step - 1 } else { second };
                    let sum = reports.entry((bucket, told)).or_default();
                    sum.0 += part.total - part.bad;
                    sum.1 += if is_apart { 0 } else { part.bad };
                }
                if is_apart && part.bad > 0 {
                    let arrives = second + part.recv_delay;
                    let happened = (second + part.ts_offset).min(arrives);
                    signals.push((arrives, signal(happened, failures(part.bad))));
                }
            }
        }
        let report =
            |((_, second), (ok, failed))| (second, signal(second, What::Runs { ok, failed, downstream: None }));
        signals.extend(reports.into_iter().map(report));
        signals.sort_by_key(|(arrives, _)| *arrives);
        signals
    }

    fn problem(&self, alert: &Alert, got: &[Interval]) -> Option<String> {
        let expected = self.expected.get(&alert.id).map(Vec::as_slice).unwrap_or_default();
        let largest = [alert.long, alert.short].into_iter().flatten().map(bucket).max().unwrap_or(0);
        let slack = self.fire_slack(alert);
        let is_right = |((fired, reset), (must_fire, must_reset)): (&Interval, &Interval)| {
            let is_reset_right = match (reset, must_reset) {
                (None, None) => true,
                (Some(reset), Some(must)) => (*must..=must + largest + TICK).contains(reset),
                (None, Some(must)) => must + largest + TICK > self.horizon,
                (Some(_), None) => false,
            };
            (*must_fire..=must_fire + slack).contains(fired) && is_reset_right
        };
        let holds = got.len() == expected.len() && got.iter().zip(expected).all(is_right);
        (!holds).then(|| format!("{} fires in {got:?} instead of {expected:?}", alert.id))
    }

    /// How late firing may be: what a bucket of the long window lets in, and a tick.
    fn fire_slack(&self, alert: &Alert) -> i64 {
        let threshold =
            alert.burn.as_deref().and_then(|burn| Ratio::parse(burn)?.times(Ratio::parse(&self.slo)?.complement()?));
        let (Some(threshold), Some(long)) = (threshold, alert.long) else { return TICK };
        let share = |part: &Traffic| if part.total > 0 { part.bad as f64 / part.total as f64 } else { 1.0 };
        let failing = self.traffic.iter().filter(|part| part.bad > 0);
        let least = failing.map(share).fold(f64::INFINITY, f64::min);
        (bucket(long) as f64 * threshold.to_f64() / least).min(300.0) as i64 + TICK
    }
}

fn signal(second: i64, what: What) -> Signal {
    Signal { workflow: WorkflowName::new("busy"), at: instant(second), arrived_at: None, what }
}

fn failures(times: u64) -> What {
    What::Failure {
        is_final: true,
        letter: None,
        run: None,
        is_redriven: false,
        downstream: None,
        error_type: None,
        times,
    }
}

fn rule(name: &str, kind: SymptomKind) -> SymptomRule {
    let (matcher, severity, mode) = (Matcher::default(), Severity::Page, Mode::Live);
    SymptomRule { name: name.to_owned(), matcher, kind, severity, mode }
}

fn run_rule(alert: &Alert) -> Option<SymptomRule> {
    let kind = match alert.kind.as_deref()? {
        "last_outcome" => SymptomKind::RunFailed,
        "consecutive" => SymptomKind::FailingStreak { count: alert.k, over: Some(Duration::ZERO) },
        _ => return None,
    };
    Some(rule(&alert.id, kind))
}

fn tier(alert: &Alert) -> Option<BurnTier> {
    let seconds = |length: i64| Duration::from_secs(length.unsigned_abs());
    Some(BurnTier {
        name: alert.id.clone(),
        burn: alert.burn.clone()?,
        long: seconds(alert.long?),
        short: seconds(alert.short.or(alert.long)?),
        severity: if alert.severity.as_deref() == Some("ticket") { Severity::Digest } else { Severity::Page },
    })
}

/// Size of the buckets that a window is made of, in s.
fn bucket(window: i64) -> i64 {
    match window {
        ..=3_600 => 10,
        3_601..=21_600 => 60,
        _ => 300,
    }
}

impl Formula {
    fn value(&self) -> Option<Ratio> {
        let given = |key: &str| {
            let value = self.given.get(key)?;
            Ratio::parse(&value.as_str().map_or_else(|| value.to_string(), str::to_owned))
        };
        let budget = || given("slo")?.complement();
        let volume = || budget()?.times(given("events_per_period")?);
        match self.kind.as_str() {
            "burn_for_budget" => given("budget")?.times(given("period_h")?)?.over(given("window_h")?),
            "budget_spent" => given("burn")?.times(given("window_h")?)?.over(given("period_h")?),
            "exhaustion_s" => given("period_s")?.over(given("burn")?),
            "detect_s" => given("burn")?.times(budget()?)?.over(given("error")?)?.times(given("window_s")?),
            "full_outage_budget_s" => budget()?.times(given("period_s")?),
            "budget_of_n_failures" => given("n")?.over(volume()?),
            "burn_of_ratio" => given("bad")?.over(given("total")?)?.over(budget()?),
            "budget_of_outage" => {
                given("error")?.times(given("duration_s")?)?.over(budget()?.times(given("period_s")?)?)
            }
            "min_events_nontrivial" => Ratio::ONE.over(given("budget")?.times(budget()?)?),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_vector_of_the_specification_holds() {
        let results = run_vectors().unwrap();
        let failed: Vec<&VectorResult> =
            results.iter().filter(|result| matches!(result.outcome, VectorOutcome::Fail(_))).collect();
        assert!(failed.is_empty(), "{failed:#?}");
        let passed = results.iter().filter(|result| result.outcome == VectorOutcome::Pass).count();
        assert_eq!(passed + NOT_OFFERED.len(), results.len());
        assert_eq!(results.len(), 60);
    }

    #[test]
    fn a_vector_that_does_not_hold_says_how() {
        let mut document: Document = serde_json::from_str(VECTORS).unwrap();
        let vector = document.vectors.iter_mut().find(|vector| vector.id == "C4-night-floor-one-failure").unwrap();
        vector.expected.insert("page_fast".to_owned(), vec![(10, None)]);
        let VectorOutcome::Fail(problems) = vector.outcome(&document.alert_sets) else { panic!("it must fail") };
        assert_eq!(problems, ["page_fast fires in [] instead of [(10, None)]"]);
    }
}
