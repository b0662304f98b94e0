//! Which rules apply to which workflow, with every default filled in. What a rule finds lives in the files of the kinds.

use super::plan::{Applied, Ask, BurnGiven, BurnPlan, Plan, SharedAsk, seconds};
use super::rule::{Mode, Severity, SymptomKind, SymptomRule};
use crate::matcher::{MatchKey, Matcher};
use crate::name::WorkflowName;
use crate::workflow::{Domain, Workflow, Workflows};
use std::sync::Arc;
use std::time::Duration;

/// The rules of config, or the defaults of the contract, as they apply to workflows.
#[derive(Clone, Debug, Default)]
pub struct Rules {
    rules: Vec<SymptomRule>,
    workflows: Workflows,
}

impl Rules {
    /// From `[[symptoms]]`, none when config has no such key, and the workflows of config.
    pub fn new(given: Option<&[SymptomRule]>, workflows: &Workflows) -> Self {
        Self { rules: given.map_or_else(defaults, <[SymptomRule]>::to_vec), workflows: workflows.clone() }
    }

    /// Whether config describes this workflow by its name.
    pub(super) fn names(&self, workflow: &WorkflowName) -> bool {
        self.workflows.iter().any(|known| known.name.is_literal() && known.name.as_str() == workflow.as_str())
    }

    /// Every rule, in config order.
    pub fn iter(&self) -> impl Iterator<Item = &SymptomRule> {
        self.rules.iter()
    }

    /// The longest window of a `dead_letter_rate` rule: as far back as arrivals are wanted in standings.
    pub fn arrivals_wanted(&self) -> Option<Duration> {
        let window = |rule: &SymptomRule| {
            let SymptomKind::DeadLetterRate { window, .. } = rule.kind else { return None };
            Some(window)
        };
        self.rules.iter().filter_map(window).max()
    }

    /// What applies to a workflow.
    pub fn plan(&self, name: &WorkflowName) -> Plan {
        let entry = self.workflows.find(name);
        let domain = entry.map(|w| w.domain).unwrap_or_default();
        let applied = |rule: &SymptomRule| {
            let ask = ask(rule, entry, domain)?;
            self.fits(&rule.matcher, name, None).then(|| Applied {
                name: Arc::from(rule.name.as_str()),
                severity: rule.severity,
                mode: rule.mode,
                ask,
            })
        };
        let mut rules: Vec<Applied> = self.rules.iter().filter_map(applied).collect();
        rules.extend(self.of_input(&rules));
        Plan { workflow: name.clone(), domain, item_noun: entry.and_then(|w| w.item_noun.clone()), rules }
    }

    /// What comes with the first burn rate: whether that has anything to count from. A rule of such a name has its own say.
    fn of_input(&self, rules: &[Applied]) -> Vec<Applied> {
        let of = |rule: &Applied| {
            let Ask::BurnRate(plan) = &rule.ask else { return None };
            Some((rule.mode, plan.noticed_after()?))
        };
        let Some((mode, after)) = rules.iter().find_map(of) else { return Vec::new() };
        let asks = [Ask::InputMissing { after }, Ask::InputInconsistent].into_iter();
        let free = asks.filter(|ask| self.rules.iter().all(|rule| rule.name != ask.kind()));
        free.map(|ask| Applied { name: Arc::from(ask.kind()), severity: Severity::Digest, mode, ask }).collect()
    }

    /// Rules that ask of what workflows have in common.
    pub(super) fn shared(&self) -> impl Iterator<Item = (&SymptomRule, SharedAsk)> {
        self.rules.iter().filter_map(|rule| Some((rule, SharedAsk::of(&rule.kind)?)))
    }

    /// Whether a matcher fits a workflow by what config says of it, and the downstream that is meant, if one is. A key that
    /// only events have does not fit.
    pub(super) fn fits(&self, matcher: &Matcher, name: &WorkflowName, downstream: Option<&str>) -> bool {
        let entry = self.workflows.find(name);
        matcher.keys().all(|(key, globs)| {
            let value = match key {
                MatchKey::Workflow => Some(name.as_str()),
                MatchKey::Domain => Some(entry.map(|w| w.domain).unwrap_or_default().as_str()),
                MatchKey::Label(label) => entry.and_then(|w| w.labels.get(label)).map(String::as_str),
                MatchKey::Downstream => downstream,
                MatchKey::Class | MatchKey::Step => None,
            };
            value.is_some_and(|value| globs.iter().any(|glob| glob.matches(value)))
        })
    }
}

/// What a rule asks of a workflow; none when it asks nothing of this one.
fn ask(rule: &SymptomRule, entry: Option<&Workflow>, domain: Domain) -> Option<Ask> {
    Some(match &rule.kind {
        SymptomKind::BurnRate { slo, period, expected_per_day, tiers, min_failures } => {
            Ask::BurnRate(Box::new(BurnPlan::new(&BurnGiven {
                slo: slo.as_deref().or_else(|| entry?.slo.as_deref())?,
                period: *period,
                expected_per_day: expected_per_day.or_else(|| entry?.expected_per_day).filter(|runs| *runs > 0),
                tiers: tiers.as_deref(),
                min_failures: *min_failures,
                severity: rule.severity,
            })?))
        }
        SymptomKind::FailingStreak { count, over } => {
            Ask::FailingStreak { count: count.unwrap_or(5), over: over.map_or(300, seconds) }
        }
        SymptomKind::RunFailed => Ask::RunFailed,
        SymptomKind::DeadLetterAge { over } => {
            let default = if domain.is_protected() { 3_600 } else { 86_400 };
            Ask::DeadLetterAge { over: over.map_or(default, seconds) }
        }
        SymptomKind::DeadLetterDepth { over } => Ask::DeadLetterDepth { over: over.unwrap_or(10) },
        SymptomKind::DeadLetterRate { over, window } => Ask::DeadLetterRate { over: *over, window: seconds(*window) },
        SymptomKind::FailureTrend { factor, window } => {
            Ask::FailureTrend { factor: factor.unwrap_or(3.0), window: window.map_or(3_600, seconds) }
        }
        SymptomKind::RetryPressure { over, window } => {
            Ask::RetryPressure { over: over.unwrap_or(2.0), window: window.map_or(3_600, seconds) }
        }
        SymptomKind::Absence => {
            let entry = entry?;
            Ask::Absence { every: seconds(entry.every?), grace: seconds(entry.grace) }
        }
        SymptomKind::Unhealthy { degraded_for } => Ask::Unhealthy { degraded_for: degraded_for.map_or(300, seconds) },
        SymptomKind::RepeatOffender { .. } | SymptomKind::Systemic { .. } | SymptomKind::Breaker { .. } => return None,
        // Queues that are watched have their own snapshots.
        SymptomKind::QueueAge { .. } | SymptomKind::QueueDepth { .. } => return None,
    })
}

/// The rules of the contract for a config without any.
fn defaults() -> Vec<SymptomRule> {
    use Severity::{Digest, Page};
    let rule = |name: &str, severity, kind| SymptomRule {
        name: name.to_owned(),
        matcher: Matcher::default(),
        kind,
        severity,
        mode: Mode::Live,
    };
    let burn_rate =
        SymptomKind::BurnRate { slo: None, period: None, expected_per_day: None, tiers: None, min_failures: None };
    vec![
        rule("burn_rate", Page, burn_rate),
        rule("failing_streak", Page, SymptomKind::FailingStreak { count: None, over: None }),
        rule("dead_letter_age", Page, SymptomKind::DeadLetterAge { over: None }),
        rule("dead_letter_depth", Digest, SymptomKind::DeadLetterDepth { over: None }),
        rule("absence", Page, SymptomKind::Absence),
        rule("unhealthy", Page, SymptomKind::Unhealthy { degraded_for: None }),
        rule("systemic", Digest, SymptomKind::Systemic { count: None, window: None }),
        rule("repeat_offender", Digest, SymptomKind::RepeatOffender { count: None, of: None }),
        rule("breaker", Digest, SymptomKind::Breaker { ratio: None, of: None }),
        rule("failure_trend", Digest, SymptomKind::FailureTrend { factor: None, window: None }),
        rule("retry_pressure", Digest, SymptomKind::RetryPressure { over: None, window: None }),
    ]
}
