//! Whether symptoms can fire with the workflows, labels and queues that config has. What is wrong with a rule by itself is
//! found in the `symptom` room.

use super::overlap::may_fit;
use super::reader::Cursor;
use super::schema::Config;
use super::source::Report;
use crate::matcher::{MatchKey, Matcher};
use crate::name::WorkflowName;
use crate::symptom::{LOOK_SECONDS, OffReason, Rules, SymptomKind, SymptomRule, TierOff};
use crate::workflow::Workflow;

/// Reports symptoms that can't fire, tiers that are out of reach, and workflows that are missed too soon.
pub(super) fn check(root: &Cursor<'_>, config: &Config, report: &Report) {
    let thresholds = Thresholds { root, config, report };
    thresholds.symptoms();
    thresholds.tiers_out_of_reach();
    thresholds.hasty();
}

struct Thresholds<'a> {
    root: &'a Cursor<'a>,
    config: &'a Config,
    report: &'a Report,
}

impl Thresholds<'_> {
    fn symptoms(&self) {
        let rules = self.config.symptoms.iter().flatten();
        for (rule, cursor) in rules.zip(self.root.tables("symptoms")) {
            if let Some(why) = self.never_fires(rule) {
                self.report.error(cursor.place("kind"), format!("symptom {:?} can't fire: {why}", rule.name));
            }
        }
    }

    fn never_fires(&self, rule: &SymptomRule) -> Option<String> {
        let fitting: Vec<&Workflow> = self.config.workflows.iter().filter(|w| may_fit(&rule.matcher, w)).collect();
        if let Some(label) = self.missing_label(&rule.matcher) {
            return Some(format!(
                "no workflow has a label {label:?} that it matches; symptoms know labels from [[workflows]] only"
            ));
        }
        match &rule.kind {
            SymptomKind::Absence if fitting.iter().all(|w| w.every.is_none()) => {
                Some("no workflow that it is for says \"every\"".to_owned())
            }
            SymptomKind::BurnRate { slo: None, .. } if fitting.iter().all(|w| w.slo.is_none()) => {
                Some("no workflow that it is for says \"slo\", nor does it".to_owned())
            }
            SymptomKind::QueueAge { .. } | SymptomKind::QueueDepth { .. } => {
                let watch = &self.config.watch;
                (watch.streams.is_empty() && watch.sql.is_empty())
                    .then(|| "no queue is watched; add [[watch.streams]] or [[watch.sql]]".to_owned())
            }
            SymptomKind::Absence
            | SymptomKind::BurnRate { .. }
            | SymptomKind::FailingStreak { .. }
            | SymptomKind::RunFailed
            | SymptomKind::DeadLetterAge { .. }
            | SymptomKind::DeadLetterDepth { .. }
            | SymptomKind::DeadLetterRate { .. }
            | SymptomKind::FailureTrend { .. }
            | SymptomKind::RetryPressure { .. }
            | SymptomKind::Unhealthy { .. }
            | SymptomKind::RepeatOffender { .. }
            | SymptomKind::Systemic { .. }
            | SymptomKind::Breaker { .. } => None,
        }
    }

    /// A label that is asked for and that no workflow has: symptoms are of workflows, not of events.
    fn missing_label<'m>(&self, matcher: &'m Matcher) -> Option<&'m str> {
        matcher.keys().find_map(|(key, globs)| {
            let MatchKey::Label(label) = key else { return None };
            let has = |w: &&Workflow| w.labels.get(label).is_some_and(|value| globs.iter().any(|g| g.matches(value)));
            self.config.workflows.iter().find(has).is_none().then_some(label.as_str())
        })
    }

    /// Warns of a workflow that is missed sooner than anybody looks.
    fn hasty(&self) {
        for (workflow, cursor) in self.config.workflows.iter().zip(self.root.tables("workflows")) {
            let patience = workflow.every.map(|every| every + workflow.grace);
            if patience.is_some_and(|patience| patience.as_secs() < LOOK_SECONDS.unsigned_abs()) {
                let words = format!(
                    "\"every\" and \"grace\" are shorter than the {LOOK_SECONDS} s between two looks: it is missed no sooner than that"
                );
                self.report.warn(cursor.place("every"), words);
            }
        }
    }

    /// Explains default tiers that the objective of a workflow puts out of reach, and refuses those that config names.
    fn tiers_out_of_reach(&self) {
        let rules = Rules::new(self.config.symptoms.as_deref(), &self.config.workflows);
        let named = |rule: &str| {
            let rules = self.config.symptoms.iter().flatten().zip(self.root.tables("symptoms"));
            let has_tiers =
                |kind: &SymptomKind| matches!(kind, SymptomKind::BurnRate { tiers: Some(_), slo: None, .. });
            rules.into_iter().find(|(own, _)| own.name == rule && has_tiers(&own.kind)).map(|(_, cursor)| cursor)
        };
        for (workflow, cursor) in self.config.workflows.iter().zip(self.root.tables("workflows")) {
            let plan = rules.plan(&WorkflowName::new(workflow.name.as_str()));
            for (rule, burn) in plan.burn_rates().filter(|(_, burn)| workflow.slo.as_ref() == Some(&burn.slo)) {
                let is_out = |off: &&TierOff| off.why == OffReason::Unreachable;
                let out: Vec<&str> = burn.off.iter().filter(is_out).map(|off| off.tier.as_str()).collect();
                if out.is_empty() {
                    continue;
                }
                let (slo, out) = (&burn.slo, out.join(" and "));
                let message = format!("at slo {slo} even a total failure burns too slowly for {out}; they can't fire");
                match named(&rule.name) {
                    Some(own) => {
                        let name = workflow.name.as_str();
                        self.report.error(own.place("tiers"), format!("workflow {name:?}: {message}"));
                    }
                    None => self.report.warn(cursor.place("slo"), message),
                }
            }
        }
    }
}
