//! Timelines in virtual time, through the same watch as the service has: what would fire when, and for how long. What the
//! timelines are made of is here too, for those that try a config; the vectors of the specification live in `vector`.

use super::buckets::TICK;
use super::defaults::Rules;
use super::plan::{Applied, Ask};
use super::rule::{Mode, Severity};
use super::signal::{Signal, What};
use super::span::Span;
use super::state::SymptomState;
use super::watch::Watch;
use crate::name::WorkflowName;
use chrono::{DateTime, Utc};

/// Second 0 of every timeline: a Tuesday, 00:00 UTC.
const START: i64 = 1_798_588_800;
const MINUTE: i64 = 60;
const HOUR: i64 = 3_600;
const DAY: i64 = 86_400;
/// How long all was well before.
const HISTORY: i64 = 3 * DAY;
/// How long a night is.
const NIGHT: i64 = 8 * HOUR;
/// How long a timeline goes on after its fault; longer than any default window.
const AFTERMATH: i64 = 3 * DAY + 8 * HOUR;

/// A time in which a tier, or a rule without tiers, fired.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Firing {
    /// Name of the tier, else of the rule.
    pub name: String,
    /// As told.
    pub severity: Severity,
    /// Whether it tells anybody.
    pub mode: Mode,
    /// The second of the timeline at which it fired.
    pub from: i64,
    /// When it fired no more; none when it did until the end.
    pub to: Option<i64>,
    /// Whether it was only held for a while, because nothing was known.
    pub was_held: bool,
}

/// A timeline to play.
#[derive(Clone, Debug, Default)]
pub(super) struct Timeline {
    /// With the second at which each comes in, in that order.
    pub signals: Vec<(i64, Signal)>,
    /// [from, until], in s.
    pub span: (i64, i64),
    /// Seconds of which everything was lost.
    pub lost: Vec<(i64, i64)>,
    /// Seconds in which nobody looked.
    pub down: Option<(i64, i64)>,
}

/// The instant of a second of a timeline.
pub(super) fn instant(second: i64) -> DateTime<Utc> {
    DateTime::from_timestamp(START + second, 0).unwrap_or_default()
}

/// Plays a timeline, with a look wherever one could find something.
pub(super) fn play(watch: &mut Watch, line: &Timeline) -> Vec<Firing> {
    let mut firings: Vec<Firing> = Vec::new();
    let mut signals = line.signals.iter().peekable();
    let mut known_lost = 0;
    let mut now = line.span.0;
    while now <= line.span.1 {
        while let Some((_, signal)) = signals.next_if(|(arrives, _)| *arrives < now) {
            watch.take(signal);
        }
        let is_down = line.down.is_some_and(|(from, to)| (from..to).contains(&now));
        let lost: Vec<Span> = line
            .lost
            .iter()
            .filter(|(from, _)| *from < now)
            .map(|(from, to)| Span { start: instant(*from), end: instant(*to) })
            .collect();
        let is_due = watch.next_look_at().is_some_and(|at| at <= instant(now)) || lost.len() != known_lost;
        if is_due && !is_down {
            known_lost = lost.len();
            watch.look(instant(now), &lost);
            note(watch, now, &mut firings);
        }
        now += TICK;
    }
    firings
}

/// Compares what fires now with what did.
fn note(watch: &Watch, now: i64, firings: &mut Vec<Firing>) {
    let fires: Vec<(&str, &SymptomState)> =
        watch.firing().flat_map(|state| names(state).into_iter().map(move |name| (name, state))).collect();
    for firing in firings.iter_mut().filter(|firing| firing.to.is_none()) {
        match fires.iter().find(|(name, _)| *name == firing.name) {
            Some((_, state)) => firing.was_held |= state.held.is_some(),
            None => firing.to = Some(now),
        }
    }
    for (name, state) in fires {
        if !firings.iter().any(|firing| firing.to.is_none() && firing.name == name) {
            firings.push(Firing {
                name: name.to_owned(),
                severity: state.severity,
                mode: state.mode,
                from: now,
                to: None,
                was_held: state.held.is_some(),
            });
        }
    }
}

fn names(state: &SymptomState) -> Vec<&str> {
    if state.tiers.is_empty() {
        return vec![state.key.rule.as_str()];
    }
    state.tiers.iter().map(String::as_str).collect()
}

/// What goes wrong in a trial, from second 0 on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fault {
    /// Nothing.
    None,
    /// So many of a hundred runs fail.
    Fails(u64),
    /// All fail, and of the middle third nothing is told.
    FailsUnheard,
    /// The first run fails, and for a night a tenth of the usual runs come.
    OneAtNight,
    /// Nothing is told.
    Silence,
}

impl Fault {
    /// Whether the `run`th run since the fault began fails.
    fn fails(self, run: u64) -> bool {
        match self {
            Self::None | Self::Silence => false,
            Self::Fails(percent) => run * percent / 100 > (run - 1) * percent / 100,
            Self::FailsUnheard => true,
            Self::OneAtNight => run == 1,
        }
    }

    /// Whether runs of this second of a fault are told.
    fn is_told(self, at: i64, lasts: i64) -> bool {
        match self {
            Self::None | Self::Fails(_) | Self::OneAtNight => true,
            Self::FailsUnheard => !(lasts / 3..lasts * 2 / 3).contains(&at),
            Self::Silence => false,
        }
    }
}

/// What a fault would come to.
#[derive(Clone, Debug)]
pub struct Trial {
    /// What goes wrong.
    pub fault: &'static str,
    /// For how long, in s; 0 for a moment.
    pub lasts: i64,
    /// What fires, in the order of firing; seconds count from when it goes wrong.
    pub firings: Vec<Firing>,
}

/// Tries the rules of a workflow that is healthy for three days at so many runs a day, evenly spread, and then is not.
pub fn try_rules(rules: &Rules, workflow: &WorkflowName, per_day: u64) -> Vec<Trial> {
    let per_day = per_day.max(1);
    let mut healthy = Watch::new(rules.clone());
    healthy.know(workflow, instant(-HISTORY));
    play(&mut healthy, &timeline(workflow, per_day, (-HISTORY, 0), (Fault::None, 0)));
    // Long enough for a row of failures where runs are rare.
    let long = HOUR.max(i64::try_from(8 * 86_400 / per_day).unwrap_or(DAY));
    let absence = |rule: &Applied| match rule.ask {
        Ask::Absence { every, grace } => Some(every.saturating_add(grace).saturating_add(HOUR)),
        Ask::BurnRate(_)
        | Ask::FailingStreak { .. }
        | Ask::RunFailed
        | Ask::DeadLetterAge { .. }
        | Ask::DeadLetterDepth { .. }
        | Ask::DeadLetterRate { .. }
        | Ask::FailureTrend { .. }
        | Ask::RetryPressure { .. }
        | Ask::Unhealthy { .. }
        | Ask::InputMissing { .. }
        | Ask::InputInconsistent => None,
    };
    // Long enough to be missed, but not for ever.
    let silent = rules.plan(workflow).rules.iter().filter_map(absence).max().unwrap_or(long).min(8 * DAY);
    let faults = [
        ("total outage", Fault::Fails(100), long),
        ("half of the runs fail", Fault::Fails(50), HOUR),
        ("15 % of the runs fail", Fault::Fails(15), 10 * MINUTE),
        ("1 % of the runs fail", Fault::Fails(1), 4 * HOUR),
        ("one failure at night", Fault::OneAtNight, 0),
        ("total outage with no reports in its middle third", Fault::FailsUnheard, 3 * long),
        ("nothing is reported", Fault::Silence, silent),
    ];
    let trial = |(name, fault, lasts): (&'static str, Fault, i64)| {
        let line = timeline(workflow, per_day, (0, lasts + AFTERMATH), (fault, lasts));
        Trial { fault: name, lasts, firings: play(&mut healthy.clone(), &line) }
    };
    faults.into_iter().map(trial).collect()
}

/// Runs of a span, evenly spread, told every 10 s or when one is over. A fault begins at second 0 and lasts so long.
fn timeline(workflow: &WorkflowName, per_day: u64, span: (i64, i64), (fault, lasts): (Fault, i64)) -> Timeline {
    let mut signals = Vec::new();
    // The first run is over at once.
    let (mut due, mut run) = (86_399, 0);
    for start in (span.0..span.1).step_by(TICK.unsigned_abs() as usize) {
        let is_night = fault == Fault::OneAtNight && start < NIGHT;
        due += TICK.unsigned_abs() * per_day / if is_night { 10 } else { 1 };
        let n = due / 86_400;
        due %= 86_400;
        let is_on = (0..lasts.max(TICK)).contains(&start);
        let mut failed = 0;
        for _ in 0..n {
            run += 1;
            failed += u64::from(is_on && fault.fails(run));
        }
        if n > 0 && (!is_on || fault.is_told(start, lasts)) {
            let what = What::Runs { ok: n - failed, failed, downstream: None };
            let at = start + TICK - 1;
            signals.push((at, Signal { workflow: workflow.clone(), at: instant(at), arrived_at: None, what }));
        }
    }
    Timeline { signals, span, ..Timeline::default() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::symptom::tests::workflow;

    fn rules(slo: &str, per_day: Option<u64>) -> Rules {
        let mut busy = workflow("busy");
        busy.slo = Some(slo.to_owned());
        busy.expected_per_day = per_day;
        Rules::new(None, &crate::workflow::Workflows::new(vec![busy]))
    }

    fn firings(trials: &[Trial], fault: &str) -> Vec<(String, i64, Option<i64>)> {
        let trial = trials.iter().find(|trial| trial.fault == fault).unwrap();
        trial.firings.iter().map(|f| (f.name.clone(), f.from, f.to.map(|to| to - trial.lasts))).collect()
    }

    #[test]
    fn a_total_outage_of_a_busy_workflow_fires_at_once_and_resets_with_the_short_window() {
        let trials = try_rules(&rules("0.999", Some(86_400)), &WorkflowName::new("busy"), 86_400);
        let fired = firings(&trials, "total outage");
        assert_eq!(fired[0], ("page_fast".to_owned(), 60, Some(300)));
        assert!(fired.iter().any(|(name, ..)| name == "failing_streak"), "{fired:?}");
        assert_eq!(firings(&trials, "one failure at night"), []);
    }

    #[test]
    fn silence_in_an_outage_holds_what_fires_instead_of_firing_again() {
        let trials = try_rules(&rules("0.999", Some(86_400)), &WorkflowName::new("busy"), 86_400);
        let trial = &trials[5];
        let fast: Vec<&Firing> = trial.firings.iter().filter(|f| f.name == "page_fast").collect();
        assert_eq!(fast.len(), 1);
        assert!(fast[0].was_held);
    }

    #[test]
    fn a_rare_workflow_is_told_by_its_streak() {
        let trials = try_rules(&rules("0.995", Some(40)), &WorkflowName::new("busy"), 40);
        let fired = firings(&trials, "total outage");
        assert!(fired.iter().any(|(name, ..)| name == "failing_streak"), "{fired:?}");
        assert!(!fired.iter().any(|(name, ..)| name.starts_with("page_")), "{fired:?}");
    }
}
