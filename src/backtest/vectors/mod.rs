//! Tests: the timelines of the specification's vectors, written as events and played as a file of them is. Only the highest tier of a
//! workflow is told, so each tier is played alone, with a config that has no other. Through the symptoms themselves, without intake and
//! without a file, they are run where those live.

mod timeline;

use super::line::LineKind;
use super::*;
use crate::render::Parts;
use crate::{app, config};
use chrono::TimeDelta;
use serde::Deserialize;
use std::collections::BTreeMap;

const VECTORS: &str = include_str!("../../symptom/testdata/vectors.json");

/// Vectors that no config or no file of events can say, and why.
const NOT_EXPRESSIBLE: &[(&str, &str)] = &[
    ("A1-total-outage-0.6s", "fires at a threshold, in tenths of a second; a tier fires over it, in steps of 10 s"),
    ("A1-exact-threshold-10min", "fires at a threshold; a tier fires over it"),
    ("A3-for-1h-total-outage", "waits before it fires; no tier does"),
    ("A3-spikes-never-alert", "waits before it fires; no tier does"),
    ("B16-pyrra-60s-pages-after-recovery", "waits before it fires; no tier does"),
    ("D1-gap-naive", "clears in a gap; a gap holds the state"),
    ("D5-heartbeats-lost-ratio", "takes lost good runs for a higher ratio; a gap holds the state"),
    ("D7-gap-floor-naive", "clears in a gap; a gap holds the state"),
    ("E5-clock-ahead-600s-unclamped", "believes times after arrival; they are clamped"),
    ("E8-replay-receive-time", "counts an event twice, and when it comes in; an id counts once, when it happened"),
];

/// How many of each kind are played.
const PLAYED: &[(&str, usize)] = &[("A", 4), ("B", 10), ("C", 6), ("D", 3), ("E", 6), ("F", 3)];

/// Tiers that config refuses, of vectors whose other tiers are played. They are not expected to fire.
const REFUSED: &[(&str, &str)] = &[("B11-slo-90-total-outage", "page_fast")];

/// Second 0 of every timeline: a midnight.
const START: &str = "2027-01-05T00:00:00Z";

/// Between two looks, in s.
const TICK: i64 = 10;

#[derive(Debug, Deserialize)]
struct Document {
    alert_sets: BTreeMap<String, Vec<Alert>>,
    vectors: Vec<Vector>,
}

#[derive(Debug, Deserialize)]
struct Vector {
    id: String,
    slo: String,
    alerts: Alerts,
    traffic: Vec<Traffic>,
    /// The last second.
    horizon: i64,
    #[serde(default)]
    config: Settings,
    expected: BTreeMap<String, Vec<Interval>>,
}

/// When a tier fires and clears, in s; not at all before the timeline ends.
type Interval = (i64, Option<i64>);

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
    /// Windows, in s.
    long: Option<i64>,
    short: Option<i64>,
    /// A decimal or a fraction.
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
    total: i64,
    #[serde(default)]
    bad: i64,
    #[serde(default)]
    recv_delay: i64,
    #[serde(default)]
    ts_offset: i64,
    copies: Option<usize>,
}

/// Of what is lost before it arrives nothing is said here: it shows as reports that do not come.
#[derive(Debug, Default, Deserialize)]
struct Settings {
    denominator: Option<String>,
    expected_per_tick: Option<String>,
    min_bad: Option<u64>,
    history_from: Option<i64>,
    down: Option<(i64, i64)>,
}

fn document() -> Document {
    serde_json::from_str(VECTORS).unwrap()
}

fn is_in(list: &[(&str, &str)], id: &str) -> bool {
    list.iter().any(|(listed, _)| *listed == id)
}

/// `14.4` or `14/15`.
fn number(text: &str) -> f64 {
    let (over, under) = text.split_once('/').unwrap_or((text, "1"));
    over.parse::<f64>().unwrap() / under.parse::<f64>().unwrap()
}

/// Size of the buckets that a window is made of, in s.
fn bucket(window: i64) -> i64 {
    match window {
        ..=3_600 => 10,
        3_601..=21_600 => 60,
        _ => 300,
    }
}

impl Alert {
    /// Both windows; a rule that judges run by run has none.
    fn windows(&self) -> Option<(i64, i64)> {
        // A window alone is a tier whose short window is a second shorter: both are made of the same buckets.
        self.long.map(|long| (long, self.short.unwrap_or(long - 1)))
    }

    fn largest_bucket(&self) -> i64 {
        self.windows().map_or(0, |(long, short)| bucket(long).max(bucket(short)))
    }
}

impl Vector {
    fn alerts(&self, sets: &BTreeMap<String, Vec<Alert>>) -> Vec<Alert> {
        match &self.alerts {
            Alerts::Set(name) => sets[name].clone(),
            Alerts::Own(own) => own.clone(),
        }
    }

    fn expected(&self, alert: &Alert) -> &[Interval] {
        self.expected.get(&alert.id).map(Vec::as_slice).unwrap_or_default()
    }

    fn config(&self, alert: &Alert) -> String {
        format!(
            r#"
[receivers.ops]
kind = "file"
dir = "out"
[digests.yearly]
cron = "0 9 1 7 *"
[[workflows]]
name = "busy"
owner = "Ben <ben@example.com>"
slo = {}
[[routes]]
name = "everything"
match = {{}}
digest.yearly = ["ops"]
[[symptoms]]
name = "{}"
match = {{ workflow = ["busy"] }}
severity = "digest"
{}
"#,
            self.slo,
            alert.id,
            self.rule(alert)
        )
    }

    fn rule(&self, alert: &Alert) -> String {
        match (alert.kind.as_deref(), alert.windows()) {
            (Some("last_outcome"), _) => "kind = \"run_failed\"".to_owned(),
            (Some("consecutive"), _) => {
                format!("kind = \"failing_streak\"\ncount = {}\nover = \"0s\"", alert.k.unwrap())
            }
            (None, Some((long, short))) => {
                // A factor that is no decimal differs from these digits by less than one run in all runs of a vector.
                let burn = alert.burn.as_ref().unwrap();
                let burn = if burn.contains('/') { format!("{:.10}", number(burn)) } else { burn.clone() };
                let severity = if alert.severity.as_deref() == Some("ticket") { "digest" } else { "page" };
                let tier = format!(
                    r#"{{ name = "{}", burn = {burn}, long = "{long}s", short = "{short}s", severity = "{severity}" }}"#,
                    alert.id
                );
                let least = self.config.min_bad.unwrap_or(1);
                let per_day = self.expected_per_day().map(|n| format!("expected_per_day = {n}\n")).unwrap_or_default();
                format!("kind = \"burn_rate\"\nmin_failures = {least}\n{per_day}tiers = [{tier}]")
            }
            (kind, windows) => panic!("{}: {kind:?} with {windows:?}", self.id),
        }
    }

    fn expected_per_day(&self) -> Option<f64> {
        let is_declared = self.config.denominator.as_deref() == Some("floor");
        let per_tick = self.config.expected_per_tick.as_deref().filter(|_| is_declared)?;
        Some((number(per_tick) * 86_400.0).round())
    }

    /// How late firing may be: what a bucket of the long window lets in, and a look.
    fn fire_slack(&self, alert: &Alert) -> i64 {
        let (Some(burn), Some(long)) = (&alert.burn, alert.long) else { return TICK };
        let threshold = number(burn) * (1.0 - number(&self.slo));
        let failing = self.traffic.iter().filter(|part| part.bad > 0);
        let share = |part: &Traffic| if part.total > 0 { part.bad as f64 / part.total as f64 } else { 1.0 };
        let least = failing.map(share).fold(f64::INFINITY, f64::min);
        let late = bucket(long) as f64 * threshold / least;
        late.min(bucket(long) as f64) as i64 + TICK
    }

    /// What is wrong with these intervals: none when they hold within the tolerance.
    fn problem(&self, alert: &Alert, got: &[Interval]) -> Option<String> {
        let (expected, fire_slack) = (self.expected(alert), self.fire_slack(alert));
        let reset_slack = alert.largest_bucket() + TICK;
        let is_right = |((fired, reset), (must_fire, must_reset)): (&Interval, &Interval)| {
            let is_reset_right = match (reset, must_reset) {
                (None, None) => true,
                (Some(reset), Some(must)) => (*must..=must + reset_slack).contains(reset),
                (None, Some(must)) => must + reset_slack > self.horizon,
                (Some(_), None) => false,
            };
            (*must_fire..=must_fire + fire_slack).contains(fired) && is_reset_right
        };
        let holds = got.len() == expected.len() && got.iter().zip(expected).all(is_right);
        (!holds).then(|| format!("{}: {} fires in {got:?} instead of {expected:?}", self.id, alert.id))
    }

    /// Plays the timeline with one tier, and gives the intervals in which that is told.
    async fn play(&self, alert: &Alert) -> Vec<Interval> {
        let live = live(&self.config(alert)).unwrap();
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), self.lines(alert).join("\n")).unwrap();
        let input = Input::open(file.path(), &live.reader).unwrap();
        let span = Span { from: instant(self.first_second()), to: instant(self.horizon) };
        let mut told = Told { tier: alert.long.map(|_| alert.id.clone()), intervals: Vec::new() };
        play(&live, &input, span, &mut told).await.unwrap();
        told.intervals
    }
}

fn instant(second: i64) -> DateTime<Utc> {
    START.parse::<DateTime<Utc>>().unwrap() + TimeDelta::seconds(second)
}

fn live(text: &str) -> Result<Arc<Live>, String> {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("matins.toml");
    std::fs::write(&path, text).unwrap();
    let loaded = config::load(&path, &|_| None, instant(0)).map_err(|e| e.to_string())?;
    Ok(Arc::new(app::compile(loaded, Vec::new(), &KEYS, Parts::Words).0))
}

/// When a symptom is said to fire and to clear.
struct Told {
    tier: Option<String>,
    intervals: Vec<Interval>,
}

impl Sink for Told {
    fn line(&mut self, line: &Line) -> io::Result<()> {
        let second = (line.at - instant(0)).num_seconds();
        assert_ne!(line.kind, LineKind::Quarantined, "{line:?}");
        // What comes with a burn rate has no vector.
        if line.symptom.as_deref().is_some_and(|symptom| symptom.starts_with("slo_input_")) {
            return Ok(());
        }
        if line.kind == LineKind::SymptomFiring {
            assert_eq!(line.tier, self.tier, "only this tier is in the config");
            self.intervals.push((second, None));
        } else if line.kind == LineKind::SymptomCleared {
            self.intervals.last_mut().unwrap().1 = Some(second);
        }
        Ok(())
    }

    fn event(&mut self, _: u32, _: Verdict) {}

    fn progress(&mut self, _: DateTime<Utc>, _: usize) {}
}

/// Plays the vectors of a kind, each of their tiers alone.
fn assert_hold(kind: &str) {
    let document = document();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let is_played = |vector: &&Vector| vector.id.starts_with(kind) && !is_in(NOT_EXPRESSIBLE, &vector.id);
    let vectors: Vec<&Vector> = document.vectors.iter().filter(is_played).collect();
    let mut problems = Vec::new();
    for vector in &vectors {
        for alert in vector.alerts(&document.alert_sets) {
            if !REFUSED.contains(&(vector.id.as_str(), alert.id.as_str())) {
                problems.extend(vector.problem(&alert, &runtime.block_on(vector.play(&alert))));
            }
        }
    }
    assert!(problems.is_empty(), "{problems:#?}");
    assert!(PLAYED.contains(&(kind, vectors.len())), "{} of kind {kind}", vectors.len());
}

#[test]
fn rules_of_the_workbook_fire_and_clear_on_time() {
    assert_hold("A");
}

#[test]
fn tiers_with_two_windows_fire_and_clear_on_time() {
    assert_hold("B");
}

#[test]
fn few_runs_and_a_cold_start_burn_as_they_should() {
    assert_hold("C");
}

#[test]
fn a_gap_in_the_reports_holds_the_state() {
    assert_hold("D");
}

#[test]
fn late_early_and_repeated_events_and_a_restart_change_nothing_else() {
    assert_hold("E");
}

#[test]
fn a_batch_is_judged_run_by_run() {
    assert_hold("F");
}

#[test]
fn every_vector_is_played_or_named_with_why_not() {
    let document = document();
    let is_known = |vector: &Vector| PLAYED.iter().any(|(kind, _)| vector.id.starts_with(kind));
    assert!(document.vectors.iter().all(is_known));
    let count: usize = PLAYED.iter().map(|(_, count)| count).sum();
    assert_eq!(count + NOT_EXPRESSIBLE.len(), document.vectors.len());
    for (id, why) in NOT_EXPRESSIBLE {
        assert!(document.vectors.iter().any(|vector| vector.id == *id), "{id}: {why}");
    }
}

#[test]
fn a_tier_that_is_left_out_is_refused_by_config_and_expected_to_be_quiet() {
    let document = document();
    for (id, tier) in REFUSED {
        let vector = document.vectors.iter().find(|vector| vector.id == *id).unwrap();
        let alerts = vector.alerts(&document.alert_sets);
        let alert = alerts.iter().find(|alert| alert.id == *tier).unwrap();
        let Err(why) = live(&vector.config(alert)) else { panic!("{id}: {tier} is taken") };
        assert!(why.contains("even a total failure burns"), "{why}");
        assert!(vector.expected(alert).is_empty());
    }
}

#[test]
fn a_tier_that_fires_early_late_or_not_at_all_is_found() {
    let document = document();
    let vector = document.vectors.iter().find(|vector| vector.id == "A6-15pct-10min").unwrap();
    let alerts = vector.alerts(&document.alert_sets);
    let holds = |got: &[Interval]| vector.problem(&alerts[0], got).is_none();
    assert!(holds(&[(346, Some(872))]) && holds(&[(356, Some(892))]));
    for wrong in [(345, Some(872)), (357, Some(872)), (346, Some(871)), (346, Some(893)), (346, None)] {
        assert!(!holds(&[wrong]), "{wrong:?}");
    }
    assert!(!holds(&[]) && !holds(&[(346, Some(872)), (900, None)]));
}
