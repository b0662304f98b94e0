//! A rule as it applies to one workflow, every default filled in, and what config says of the workflow for its sentences.

use super::exact::Ratio;
use super::input;
use super::rule::{BurnTier, Mode, Severity, SymptomKind};
use super::shared::{CALLS_MAX, LETTERS_MAX};
use crate::name::WorkflowName;
use crate::workflow::Domain;
use std::sync::Arc;
use std::time::Duration;

/// All rules of one workflow.
#[derive(Clone, Debug)]
pub struct Plan {
    /// The workflow.
    pub workflow: WorkflowName,
    /// What is at stake.
    pub domain: Domain,
    /// Singular noun of one item, when config gives one.
    pub item_noun: Option<String>,
    /// Rules in config order.
    pub rules: Vec<Applied>,
}

impl Plan {
    /// Its burn rates, in config order.
    pub fn burn_rates(&self) -> impl Iterator<Item = (&Applied, &BurnPlan)> {
        self.rules.iter().filter_map(|rule| {
            let Ask::BurnRate(plan) = &rule.ask else { return None };
            Some((rule, plan.as_ref()))
        })
    }
}

/// A rule that applies.
#[derive(Clone, Debug)]
pub struct Applied {
    /// Name of the rule.
    pub name: Arc<str>,
    /// How urgent; tiers of a burn rate have their own.
    pub severity: Severity,
    /// Whether anybody is told.
    pub mode: Mode,
    /// What is asked.
    pub ask: Ask,
}

/// What a rule asks of one workflow. Windows and ages in s.
#[derive(Clone, Debug)]
pub enum Ask {
    /// `burn_rate`
    BurnRate(Box<BurnPlan>),
    /// `failing_streak`
    FailingStreak {
        /// So many in a row …
        count: u64,
        /// … over at least so long.
        over: i64,
    },
    /// `run_failed`
    RunFailed,
    /// `dead_letter_age`
    DeadLetterAge {
        /// This old or older.
        over: i64,
    },
    /// `dead_letter_depth`
    DeadLetterDepth {
        /// More than this.
        over: u64,
    },
    /// `dead_letter_rate`
    DeadLetterRate {
        /// More than this …
        over: u64,
        /// … in so long.
        window: i64,
    },
    /// `failure_trend`
    FailureTrend {
        /// Times the baseline.
        factor: f64,
        /// Measured over so long.
        window: i64,
    },
    /// `retry_pressure`
    RetryPressure {
        /// More than this a finished run.
        over: f64,
        /// Measured over so long.
        window: i64,
    },
    /// `absence`
    Absence {
        /// Expected this often …
        every: i64,
        /// … and late by at most this.
        grace: i64,
    },
    /// `unhealthy`
    Unhealthy {
        /// How long `degraded` may last.
        degraded_for: i64,
    },
    /// `slo_input_missing`, of every burn rate.
    InputMissing {
        /// Told no sooner than this after the last report.
        after: i64,
    },
    /// `slo_input_inconsistent`, of every burn rate.
    InputInconsistent,
}

impl Ask {
    /// Whether it comes with a rule of kind `burn_rate` instead of being asked for.
    pub fn is_of_input(&self) -> bool {
        matches!(self, Self::InputMissing { .. } | Self::InputInconsistent)
    }

    /// The word of the kind.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::BurnRate(_) => "burn_rate",
            Self::FailingStreak { .. } => "failing_streak",
            Self::RunFailed => "run_failed",
            Self::DeadLetterAge { .. } => "dead_letter_age",
            Self::DeadLetterDepth { .. } => "dead_letter_depth",
            Self::DeadLetterRate { .. } => "dead_letter_rate",
            Self::FailureTrend { .. } => "failure_trend",
            Self::RetryPressure { .. } => "retry_pressure",
            Self::Absence { .. } => "absence",
            Self::Unhealthy { .. } => "unhealthy",
            Self::InputMissing { .. } => input::MISSING,
            Self::InputInconsistent => input::INCONSISTENT,
        }
    }
}

/// A burn rate with its thresholds.
#[derive(Clone, Debug)]
pub struct BurnPlan {
    /// The objective as written: `0.995`.
    pub slo: String,
    /// The share that may fail.
    pub budget: Ratio,
    /// Period of the objective, in s.
    pub period: i64,
    /// Runs a day that config expects.
    pub expected_per_day: Option<u64>,
    /// Tiers that can fire, most urgent first.
    pub tiers: Vec<Tier>,
    /// Tiers that can't fire or mean nothing here.
    pub off: Vec<TierOff>,
    /// All windows of tiers, those that are off too, in s, shortest first, each once.
    pub windows: Vec<i64>,
}

/// A tier of a burn rate.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tier {
    /// `page_fast`, or a name of one's own.
    pub name: String,
    /// Factor as written.
    pub burn: String,
    /// Share of failed runs that both windows must exceed.
    pub threshold: Ratio,
    /// Long window, in s.
    pub long: i64,
    /// Short window, in s.
    pub short: i64,
    /// As told.
    pub severity: Severity,
    /// Whether it would page by itself; then it is warmed up first.
    pub is_page: bool,
    /// Fewest failures in the long window.
    pub min_failures: u64,
}

/// A tier that is off.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TierOff {
    /// Its name.
    pub tier: String,
    /// Why.
    pub why: OffReason,
}

/// Why a tier is off.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OffReason {
    /// Not even a run that always fails reaches the factor.
    Unreachable,
    /// The budget of a whole period is less than one failure: such a workflow is judged run by run.
    PerRun,
    /// At the expected volume so few failures trip it that the ratio means nothing.
    TooFewRuns {
        /// Failures that the tier needs to mean something.
        min_failures: u64,
        /// Runs a day from which on it means something.
        needed_per_day: u64,
    },
}

impl OffReason {
    /// The stable word.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Unreachable => "unreachable",
            Self::PerRun => "per_run",
            Self::TooFewRuns { .. } => "too_few_runs",
        }
    }
}

const DAY: u64 = 86_400;

/// What `burn_rate` takes from its rule and its workflow.
pub(super) struct BurnGiven<'a> {
    pub slo: &'a str,
    pub period: Option<Duration>,
    pub expected_per_day: Option<u64>,
    pub tiers: Option<&'a [BurnTier]>,
    pub min_failures: Option<u64>,
    pub severity: Severity,
}

impl BurnPlan {
    /// Judges every tier by the budget in events. None when the objective is no share.
    pub(super) fn new(given: &BurnGiven<'_>) -> Option<Self> {
        let budget = Ratio::parse(given.slo)?.complement()?;
        let period = given.period.map_or(30 * 86_400, seconds);
        let (mut tiers, mut off, mut windows) = (Vec::new(), Vec::new(), Vec::new());
        let defaults = default_tiers();
        for tier in given.tiers.unwrap_or(&defaults) {
            let made = made_tier(tier, budget, given)?;
            windows.extend([made.short, made.long]);
            match why_off(&made, budget, period, given.expected_per_day) {
                Some(why) => off.push(TierOff { tier: made.name, why }),
                None => tiers.push(made),
            }
        }
        tiers.sort_by(|one, other| {
            let rank = |tier: &Tier| !tier.is_page;
            rank(one).cmp(&rank(other)).then_with(|| other.threshold.compare(one.threshold))
        });
        windows.sort_unstable();
        windows.dedup();
        let slo = given.slo.to_owned();
        Some(Self { slo, budget, period, expected_per_day: given.expected_per_day, tiers, off, windows })
    }

    /// Share of the budget of a period that one failure spends, at the expected volume.
    pub fn share_of_one(&self) -> Option<Ratio> {
        let runs = runs_in(self.expected_per_day?, self.period)?;
        Ratio::ONE.over(self.budget.times(runs)?)
    }
}

pub(super) fn seconds(length: Duration) -> i64 {
    i64::try_from(length.as_secs()).unwrap_or(i64::MAX)
}

fn made_tier(tier: &BurnTier, budget: Ratio, given: &BurnGiven<'_>) -> Option<Tier> {
    let is_page = tier.severity == Severity::Page;
    Some(Tier {
        name: tier.name.clone(),
        burn: tier.burn.clone(),
        threshold: Ratio::parse(&tier.burn)?.times(budget)?,
        long: seconds(tier.long),
        short: seconds(tier.short),
        severity: if given.severity == Severity::Digest { Severity::Digest } else { tier.severity },
        is_page,
        min_failures: given.min_failures.unwrap_or(if is_page { 2 } else { 1 }),
    })
}

/// Runs that are expected in so many seconds.
fn runs_in(per_day: u64, length: i64) -> Option<Ratio> {
    Ratio::new(u128::from(per_day) * u128::from(length.unsigned_abs()), DAY.into())
}

fn why_off(tier: &Tier, budget: Ratio, period: i64, expected_per_day: Option<u64>) -> Option<OffReason> {
    use std::cmp::Ordering::Less;
    if !is_within_reach(tier.threshold) {
        return Some(OffReason::Unreachable);
    }
    let per_day = expected_per_day?;
    if budget.times(runs_in(per_day, period)?)?.compare(Ratio::ONE) == Less {
        return Some(OffReason::PerRun);
    }
    let needed = Ratio::from(tier.min_failures);
    if tier.threshold.times(runs_in(per_day, tier.long)?)?.compare(needed) == Less {
        let exact = needed.over(tier.threshold.times(runs_in(1, tier.long)?)?)?;
        let needed_per_day = u64::try_from(exact.num.div_ceil(exact.den)).unwrap_or(u64::MAX);
        return Some(OffReason::TooFewRuns { min_failures: tier.min_failures, needed_per_day });
    }
    None
}

impl BurnTier {
    /// Whether a total failure exceeds it at this objective, exactly. Yes when a number can't be read.
    pub fn can_fire(&self, slo: &str) -> bool {
        let threshold = || Ratio::parse(&self.burn)?.times(Ratio::parse(slo)?.complement()?);
        threshold().is_none_or(is_within_reach)
    }

    /// Whether it fires at less than the objective allows, exactly.
    pub(super) fn is_within_objective(&self) -> bool {
        Ratio::parse(&self.burn).is_some_and(|burn| burn.compare(Ratio::ONE) == std::cmp::Ordering::Less)
    }
}

fn is_within_reach(threshold: Ratio) -> bool {
    threshold.compare(Ratio::ONE) == std::cmp::Ordering::Less
}

/// The four tiers of the contract.
pub(super) fn default_tiers() -> [BurnTier; 4] {
    let tier = |name: &str, burn: &str, long, short, severity| BurnTier {
        name: name.to_owned(),
        burn: burn.to_owned(),
        long: Duration::from_secs(long),
        short: Duration::from_secs(short),
        severity,
    };
    [
        tier("page_fast", "14.4", 3_600, 300, Severity::Page),
        tier("page_slow", "6", 21_600, 1_800, Severity::Page),
        tier("ticket_fast", "3", 86_400, 7_200, Severity::Digest),
        tier("ticket_slow", "1", 259_200, 21_600, Severity::Digest),
    ]
}

/// What workflows have in common is asked once for all of them.
#[derive(Clone, Debug)]
pub enum SharedAsk {
    /// `repeat_offender`
    RepeatOffender {
        /// So many …
        count: u64,
        /// … of the last so many.
        of: u64,
    },
    /// `systemic`
    Systemic {
        /// So many workflows …
        count: u64,
        /// … within so long, in s.
        window: i64,
    },
    /// `breaker`
    Breaker {
        /// This share or more fails …
        ratio: f64,
        /// … of the last so many calls.
        of: u64,
    },
}

impl SharedAsk {
    /// From a rule; none when it asks of one workflow.
    pub(super) fn of(kind: &SymptomKind) -> Option<Self> {
        match kind {
            SymptomKind::RepeatOffender { count, of } => {
                Some(Self::RepeatOffender { count: count.unwrap_or(3), of: of.unwrap_or(20).min(LETTERS_MAX as u64) })
            }
            SymptomKind::Systemic { count, window } => {
                Some(Self::Systemic { count: count.unwrap_or(3), window: window.map_or(900, seconds) })
            }
            SymptomKind::Breaker { ratio, of } => {
                Some(Self::Breaker { ratio: ratio.unwrap_or(0.5), of: of.unwrap_or(10).min(CALLS_MAX as u64) })
            }
            SymptomKind::BurnRate { .. }
            | SymptomKind::FailingStreak { .. }
            | SymptomKind::RunFailed
            | SymptomKind::DeadLetterAge { .. }
            | SymptomKind::DeadLetterDepth { .. }
            | SymptomKind::DeadLetterRate { .. }
            | SymptomKind::FailureTrend { .. }
            | SymptomKind::RetryPressure { .. }
            | SymptomKind::Absence
            | SymptomKind::Unhealthy { .. }
            | SymptomKind::QueueAge { .. }
            | SymptomKind::QueueDepth { .. } => None,
        }
    }

    /// The word of the kind.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::RepeatOffender { .. } => "repeat_offender",
            Self::Systemic { .. } => "systemic",
            Self::Breaker { .. } => "breaker",
        }
    }
}
