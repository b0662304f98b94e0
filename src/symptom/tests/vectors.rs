//! The timelines of `testdata/vectors.json` through the room, looked at every 10 s. A bucketed engine may be late by what
//! a bucket costs, never early, and it may neither miss nor invent.

use super::*;
use serde_json::Value;

/// Timelines that the product has no way to do, and why.
const NOT_OFFERED: &[(&str, &str)] = &[
    ("A1-total-outage-0.6s", "at or over a threshold, in tenths of a second"),
    ("A1-exact-threshold-10min", "at or over a threshold"),
    ("A3-for-1h-total-outage", "a condition has to last before it fires"),
    ("A3-spikes-never-alert", "a condition has to last before it fires"),
    ("B16-pyrra-60s-pages-after-recovery", "a condition has to last before it fires"),
    ("D1-gap-naive", "a gap clears"),
    ("D5-heartbeats-lost-ratio", "lost good runs raise the ratio"),
    ("D7-gap-floor-naive", "a gap clears"),
    ("E5-clock-ahead-600s-unclamped", "times after arrival are believed"),
    ("E8-replay-receive-time", "events are counted when they come in, and twice"),
];

const TICK: i64 = 10;

type Intervals = BTreeMap<String, Vec<(i64, Option<i64>)>>;

fn document() -> Value {
    serde_json::from_str(include_str!("../testdata/vectors.json")).unwrap()
}

fn number(value: &Value, key: &str) -> Option<i64> {
    value.get(key).and_then(Value::as_i64)
}

fn text<'a>(value: &'a Value, key: &str) -> Option<&'a str> {
    value.get(key).and_then(Value::as_str)
}

fn alerts(document: &Value, vector: &Value) -> Vec<Value> {
    let alerts = &vector["alerts"];
    let named = alerts.as_str().map(|set| &document["alert_sets"][set]);
    named.unwrap_or(alerts).as_array().unwrap().clone()
}

/// Signals with the second at which they come in, in that order.
fn signals(vector: &Value) -> Vec<(i64, Signal)> {
    let horizon = number(vector, "horizon").unwrap();
    let hidden_before = number(&vector["config"], "history_from").unwrap_or(i64::MIN);
    let mut all: BTreeMap<(i64, i64), (u64, u64)> = BTreeMap::new();
    let mut events: Vec<(i64, Signal)> = Vec::new();
    for part in vector["traffic"].as_array().unwrap() {
        let (from, to) = (number(part, "from").unwrap(), number(part, "to").unwrap().min(horizon + 1));
        let every = number(part, "every").filter(|_| text(part, "kind") == Some("pulse")).unwrap_or(1);
        let total = u64::try_from(number(part, "total").unwrap()).unwrap();
        let bad = u64::try_from(number(part, "bad").unwrap()).unwrap();
        let delay = number(part, "recv_delay").unwrap_or(0);
        let offset = number(part, "ts_offset").unwrap_or(0);
        for second in (from..to).step_by(usize::try_from(every).unwrap()).filter(|s| *s >= hidden_before) {
            let is_apart = total == 0 || delay > 0 || offset > 0;
            let reported = if is_apart { 0 } else { bad };
            // Reports of 5 min far back, of 10 s later on, as of their last second.
            let step = if second < -25_200 { 300 } else { TICK };
            let bucket = second.div_euclid(step) * step;
            if total > 0 {
                let key = (bucket, if every == 1 { bucket + step - 1 } else { second });
                let sum = all.entry(key).or_default();
                sum.0 += total - bad;
                sum.1 += reported;
            }
            if is_apart && bad > 0 {
                let arrives = second + delay;
                let What::Failure { .. } = failure() else { unreachable!() };
                let happened = (second + offset).min(arrives);
                let mut what = failure();
                if let What::Failure { times, .. } = &mut what {
                    *times = bad;
                }
                events.push((arrives, signal("busy", happened, what)));
            }
        }
    }
    let reports = all.into_iter().map(|((_, second), (ok, failed))| (second, signal("busy", second, runs(ok, failed))));
    events.extend(reports);
    events.sort_by_key(|(arrives, _)| *arrives);
    events
}

fn burn_rule(vector: &Value, alerts: &[Value]) -> SymptomRule {
    let seconds = |alert: &Value, key: &str| number(alert, key).map(|n| Duration::from_secs(n.unsigned_abs()));
    let tiers = alerts.iter().map(|alert| BurnTier {
        name: text(alert, "id").unwrap().to_owned(),
        burn: text(alert, "burn").unwrap().to_owned(),
        long: seconds(alert, "long").unwrap(),
        short: seconds(alert, "short").or(seconds(alert, "long")).unwrap(),
        severity: if text(alert, "severity") == Some("ticket") { Severity::Digest } else { Severity::Page },
    });
    let config = &vector["config"];
    let per_day = |per_second: &str| {
        let per_day = Ratio::parse(per_second).unwrap().times(Ratio::from(86_400)).unwrap();
        assert_eq!(per_day.den, 1);
        u64::try_from(per_day.num).unwrap()
    };
    let declared = text(config, "denominator") == Some("floor");
    rule(
        "burn",
        SymptomKind::BurnRate {
            slo: Some(text(vector, "slo").unwrap().to_owned()),
            period: None,
            expected_per_day: declared.then(|| per_day(text(config, "expected_per_tick").unwrap())),
            tiers: Some(tiers.collect()),
            min_failures: Some(number(config, "min_bad").unwrap_or(1).max(1).unsigned_abs()),
        },
    )
}

fn run_rules(alerts: &[Value]) -> Vec<SymptomRule> {
    let made = |alert: &Value| {
        let kind = match text(alert, "kind").unwrap() {
            "last_outcome" => SymptomKind::RunFailed,
            "consecutive" => SymptomKind::FailingStreak {
                count: number(alert, "k").map(i64::unsigned_abs),
                over: Some(Duration::ZERO),
            },
            other => panic!("{other}"),
        };
        rule(text(alert, "id").unwrap(), kind)
    };
    alerts.iter().map(made).collect()
}

/// By tier, else by rule: when it fired and cleared.
fn play(vector: &Value, rules: &[SymptomRule]) -> Intervals {
    let mut watch = watch(vec![workflow("busy")], rules);
    let config = &vector["config"];
    let pair = |value: &Value| (value[0].as_i64().unwrap(), value[1].as_i64().unwrap());
    let down = config.get("down").map(pair);
    let blackouts = config.get("blackout").and_then(Value::as_array).cloned().unwrap_or_default();
    let lost: Vec<Span> = blackouts.iter().map(pair).map(|(from, to)| Span { start: at(from), end: at(to) }).collect();
    let mut signals = signals(vector).into_iter().peekable();
    let mut intervals = Intervals::new();
    for now in (0..=number(vector, "horizon").unwrap()).step_by(TICK as usize) {
        while let Some((_, signal)) = signals.next_if(|(arrives, _)| *arrives < now) {
            watch.take(&signal);
        }
        if down.is_some_and(|(from, to)| (from..to).contains(&now)) {
            continue;
        }
        let known: Vec<Span> = lost.iter().filter(|span| span.start < at(now)).copied().collect();
        watch.look(at(now), &known);
        record(&watch, now, &mut intervals);
    }
    intervals
}

fn record(watch: &Watch, now: i64, intervals: &mut Intervals) {
    let names = |state: &SymptomState| {
        if state.tiers.is_empty() { vec![state.key.rule.clone()] } else { state.tiers.clone() }
    };
    let firing: Vec<String> = watch.firing().flat_map(names).collect();
    for (name, known) in intervals.iter_mut() {
        if let Some((_, reset @ None)) = known.last_mut().filter(|_| !firing.contains(name)) {
            *reset = Some(now);
        }
    }
    for name in firing {
        let known = intervals.entry(name).or_default();
        if known.last().is_none_or(|(_, reset)| reset.is_some()) {
            known.push((now, None));
        }
    }
}

fn bucket(window: i64) -> i64 {
    match window {
        ..3_601 => 10,
        3_601..21_601 => 60,
        _ => 300,
    }
}

/// How late firing may be: what a bucket of the long window lets in, and a tick.
fn fire_slack(vector: &Value, alert: &Value) -> f64 {
    let Some(burn) = text(alert, "burn") else { return TICK as f64 };
    let budget = 1.0 - text(vector, "slo").unwrap().parse::<f64>().unwrap();
    let threshold = Ratio::parse(burn).unwrap().to_f64() * budget;
    let share = |part: &Value| {
        let (bad, total) = (number(part, "bad")? as f64, number(part, "total")? as f64);
        (bad > 0.0).then(|| if total > 0.0 { bad / total } else { 1.0 })
    };
    let parts = vector["traffic"].as_array().unwrap();
    let worst = parts.iter().filter_map(share).fold(f64::INFINITY, f64::min);
    (bucket(number(alert, "long").unwrap()) as f64 * threshold / worst).min(300.0) + TICK as f64
}

fn compare(vector: &Value, alert: &Value, got: &[(i64, Option<i64>)], problems: &mut Vec<String>) {
    let id = format!("{} {}", text(vector, "id").unwrap(), text(alert, "id").unwrap());
    let expected = vector["expected"].get(text(alert, "id").unwrap()).and_then(Value::as_array);
    let expected: Vec<(i64, Option<i64>)> =
        expected.into_iter().flatten().map(|pair| (pair[0].as_i64().unwrap(), pair[1].as_i64())).collect();
    if got.len() != expected.len() {
        problems.push(format!("{id}: {got:?} instead of {expected:?}"));
        return;
    }
    let largest = [number(alert, "long"), number(alert, "short")].into_iter().flatten().map(bucket).max().unwrap_or(0);
    for ((fired, reset), (must_fire, must_reset)) in got.iter().zip(&expected) {
        let late = (*fired - must_fire) as f64;
        let is_reset_right = match (reset, must_reset) {
            (None, None) => true,
            (Some(reset), Some(must)) => (*must..=must + largest + TICK).contains(reset),
            (None, Some(must)) => must + largest + TICK > number(vector, "horizon").unwrap(),
            (Some(_), None) => false,
        };
        if late < 0.0 || late > fire_slack(vector, alert) || !is_reset_right {
            problems.push(format!("{id}: {got:?} instead of {expected:?}"));
        }
    }
}

#[test]
fn every_timeline_fires_and_clears_on_time() {
    let document = document();
    let mut problems = Vec::new();
    let mut played = 0;
    for vector in document["vectors"].as_array().unwrap() {
        let id = text(vector, "id").unwrap();
        if NOT_OFFERED.iter().any(|(other, _)| *other == id) {
            continue;
        }
        let alerts = alerts(&document, vector);
        let is_burn = alerts.iter().all(|alert| alert.get("kind").is_none());
        let rules = if is_burn { vec![burn_rule(vector, &alerts)] } else { run_rules(&alerts) };
        let got = play(vector, &rules);
        for alert in &alerts {
            let own = got.get(text(alert, "id").unwrap()).cloned().unwrap_or_default();
            compare(vector, alert, &own, &mut problems);
        }
        played += 1;
    }
    assert!(problems.is_empty(), "{}", problems.join("\n"));
    assert_eq!(played + NOT_OFFERED.len(), document["vectors"].as_array().unwrap().len());
}

#[test]
fn every_formula_is_exact() {
    let document = document();
    for vector in document["formula_vectors"].as_array().unwrap() {
        let given = |key: &str| Ratio::parse(text(&vector["in"], key).unwrap()).unwrap();
        let budget = |slo: &str| given(slo).complement().unwrap();
        let (times, over) = (|a: Ratio, b: Ratio| a.times(b).unwrap(), |a: Ratio, b: Ratio| a.over(b).unwrap());
        let got = match text(vector, "kind").unwrap() {
            "burn_for_budget" => over(times(given("budget"), given("period_h")), given("window_h")),
            "budget_spent" => over(times(given("burn"), given("window_h")), given("period_h")),
            "exhaustion_s" => over(given("period_s"), given("burn")),
            "detect_s" => times(over(times(given("burn"), budget("slo")), given("error")), given("window_s")),
            "full_outage_budget_s" => times(budget("slo"), given("period_s")),
            "budget_of_n_failures" => over(given("n"), times(budget("slo"), given("events_per_period"))),
            "burn_of_ratio" => over(over(given("bad"), given("total")), budget("slo")),
            "budget_of_outage" => {
                over(times(given("error"), given("duration_s")), times(budget("slo"), given("period_s")))
            }
            "min_events_nontrivial" => over(Ratio::ONE, times(given("budget"), budget("slo"))),
            other => panic!("{other}"),
        };
        assert_eq!(got, Ratio::parse(text(vector, "expected").unwrap()).unwrap(), "{}", text(vector, "id").unwrap());
    }
}
