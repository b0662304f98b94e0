//! What every kind is given to read a workflow, and the kinds by name. Each kind's meaning lives in its own file.

use super::exact::Ratio;
use super::memory::Memory;
use super::plan::{Applied, Ask, Plan};
use super::rule::Severity;
use super::sentence::Sentence;
use super::span::Holes;
use super::standing::Standing;
use super::state::{Finding, Reading, SymptomState};
use super::{absence, burn_rate, dead_letter, input, streak, trend};

/// One look at one workflow by one rule. Instants in s since 1970.
pub(super) struct Context<'a> {
    pub plan: &'a Plan,
    pub applied: &'a Applied,
    pub memory: &'a Memory,
    pub standing: &'a Standing,
    /// Since when the workflow is known.
    pub first_known_at: Option<i64>,
    /// The instant of the look, a multiple of 10 s.
    pub at: i64,
    pub lost: &'a Holes,
    /// What was found at the last look.
    pub before: Option<&'a SymptomState>,
    /// Runs a second as learned; zero before anything was.
    pub learned: Ratio,
    /// Whether a burn rate of the workflow fires that pages.
    pub holds_page: bool,
    /// Whether what fires is said anew: there is news, or somebody asks.
    pub has_news: bool,
}

/// What was found, and when that could change without news.
pub(super) type Read = (Reading, Option<i64>);

impl Context<'_> {
    /// A finding of this workflow; its sentence is only made when it is needed.
    pub fn finding(&self, value: f64, sentence: impl FnOnce() -> Sentence) -> Reading {
        self.finding_of(self.applied.severity, value, sentence)
    }

    /// The same, of a severity that is its own.
    pub fn finding_of(&self, severity: Severity, value: f64, sentence: impl FnOnce() -> Sentence) -> Reading {
        Reading::Firing(Finding {
            severity,
            tiers: Vec::new(),
            value,
            words: self.wants_words(&[]).then(sentence),
            workflows: vec![self.plan.workflow.clone()],
            held: None,
            is_hot: true,
        })
    }

    /// Whether a finding of these tiers needs words: without news those of before will do.
    pub fn wants_words(&self, tiers: &[String]) -> bool {
        let same = |state: &SymptomState| state.is_firing() && state.tier.as_ref() == tiers.first();
        self.has_news || !self.before.is_some_and(same)
    }

    /// Singular noun of what fails for good.
    pub fn item_noun(&self) -> &str {
        self.plan.item_noun.as_deref().unwrap_or("item")
    }

    /// Singular noun of what runs.
    pub fn run_noun(&self) -> &str {
        self.plan.item_noun.as_deref().unwrap_or("run")
    }

    /// Whether it fires, or is still hot.
    pub fn is_known(&self) -> bool {
        self.before.is_some()
    }
}

/// Reads a workflow by a rule.
pub(super) fn read(context: &Context<'_>) -> Read {
    match &context.applied.ask {
        Ask::BurnRate(plan) => burn_rate::read(context, plan),
        Ask::FailingStreak { count, over } => streak::read_streak(context, *count, *over),
        Ask::RunFailed => streak::read_run_failed(context),
        Ask::DeadLetterAge { over } => dead_letter::read_age(context, *over),
        Ask::DeadLetterDepth { over } => dead_letter::read_depth(context, *over),
        Ask::DeadLetterRate { over, window } => dead_letter::read_rate(context, *over, *window),
        Ask::FailureTrend { factor, window } => trend::read_trend(context, *factor, *window),
        Ask::RetryPressure { over, window } => trend::read_retry_pressure(context, *over, *window),
        Ask::Absence { every, grace } => absence::read_absence(context, *every, *grace),
        Ask::Unhealthy { degraded_for } => absence::read_unhealthy(context, *degraded_for),
        Ask::InputMissing { after } => input::read_missing(context, *after),
        Ask::InputInconsistent => input::read_inconsistent(context),
    }
}
