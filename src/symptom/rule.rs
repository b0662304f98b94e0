//! `[[symptoms]]` entries of config, parsed and checked. What they mean at run time lives in one file a kind.

use crate::matcher::Matcher;
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// How urgent a symptom is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Severity {
    /// At once for a protected workflow; first in the next digest for another.
    Page,
    /// In the next digest.
    Digest,
}

/// Whether a symptom tells anybody.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Mode {
    /// It does.
    #[default]
    Live,
    /// It records when it would have fired.
    Observe,
}

/// One tier of `burn_rate`: long and short window over the factor.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BurnTier {
    /// `page_fast`, `page_slow`, `ticket_fast`, `ticket_slow` or a name of one's own.
    pub name: String,
    /// Factor as an exact decimal text, such as `14.4`.
    pub burn: String,
    /// Long window.
    pub long: Duration,
    /// Short window.
    pub short: Duration,
    /// Page or digest.
    pub severity: Severity,
}

/// Kind of a symptom with the keys that it takes (CONTRACT 6). None: the default of the contract.
#[derive(Clone, Debug, PartialEq)]
pub enum SymptomKind {
    /// Error budget is spent too fast.
    BurnRate {
        /// Overrides the workflow's objective, exact decimal text.
        slo: Option<String>,
        /// Period of the objective.
        period: Option<Duration>,
        /// Floor of the denominator.
        expected_per_day: Option<u64>,
        /// Replace the four default tiers.
        tiers: Option<Vec<BurnTier>>,
        /// Fewest failures for a tier to fire.
        min_failures: Option<u64>,
    },
    /// The last outcomes all failed.
    FailingStreak {
        /// How many.
        count: Option<u64>,
        /// Over at least this long.
        over: Option<Duration>,
    },
    /// The last finished run failed.
    RunFailed,
    /// The oldest unresolved dead letter is too old.
    DeadLetterAge {
        /// Older than this.
        over: Option<Duration>,
    },
    /// Too many unresolved dead letters.
    DeadLetterDepth {
        /// More than this.
        over: Option<u64>,
    },
    /// Too many dead letters arrived.
    DeadLetterRate {
        /// More than this.
        over: u64,
        /// In so long.
        window: Duration,
    },
    /// Well above the baseline of that hour of the week.
    FailureTrend {
        /// Times the baseline.
        factor: Option<f64>,
        /// Measured over this long.
        window: Option<Duration>,
    },
    /// Too many retries per finished operation.
    RetryPressure {
        /// More than this.
        over: Option<f64>,
        /// Measured over this long.
        window: Option<Duration>,
    },
    /// Nothing heard for `every` + `grace`.
    Absence,
    /// The last heartbeat says so.
    Unhealthy {
        /// How long `degraded` may last.
        degraded_for: Option<Duration>,
    },
    /// One workflow has most of the last dead letters.
    RepeatOffender {
        /// So many …
        count: Option<u64>,
        /// … of the last so many.
        of: Option<u64>,
    },
    /// One downstream or error type hits several workflows.
    Systemic {
        /// So many workflows.
        count: Option<u64>,
        /// Within this long.
        window: Option<Duration>,
    },
    /// A downstream fails most of its calls.
    Breaker {
        /// Share that fails, 0 to 1.
        ratio: Option<f64>,
        /// Of the last so many calls.
        of: Option<u64>,
    },
    /// A watched queue is too old.
    QueueAge {
        /// Older than this.
        over: Duration,
    },
    /// A watched queue is too deep.
    QueueDepth {
        /// More than this.
        over: u64,
    },
}

/// A `[[symptoms]]` entry.
#[derive(Clone, Debug, PartialEq)]
pub struct SymptomRule {
    /// Unique.
    pub name: String,
    /// For which workflows.
    pub matcher: Matcher,
    /// What is watched.
    pub kind: SymptomKind,
    /// How urgent.
    pub severity: Severity,
    /// Whether it tells anybody.
    pub mode: Mode,
}
