//! Whether a symptom pages, and whom, or the named reason why not. Pure. Whether it fires is decided by the `symptom` room, which
//! incident it opens or joins by the store.

use super::decide::{Policy, Suppression};
use super::{Route, matching};
use crate::incident::Terms;
use crate::name::WorkflowName;
use crate::symptom::{Mode, Severity};
use crate::workflow::Domain;
use chrono::{DateTime, Utc};

/// Whether a symptom pages.
#[derive(Clone, Debug, PartialEq)]
pub enum SymptomPaging {
    /// It opens or joins an incident.
    Page {
        /// The protected ones of its workflows.
        workflows: Vec<WorkflowName>,
        /// Domain of the first.
        domain: Domain,
        /// What the routes ask for.
        terms: Terms,
    },
    /// Nobody is paged.
    Suppress(Suppression),
}

impl Policy {
    /// Whether a symptom of `workflows` pages when it begins to fire at `now`.
    ///
    /// One that speaks of several workflows pages for those that are protected and not silenced, all on one page.
    pub fn page_symptom(
        &self,
        workflows: &[WorkflowName],
        severity: Severity,
        mode: Mode,
        now: DateTime<Utc>,
    ) -> SymptomPaging {
        use SymptomPaging::Suppress;
        match (mode, severity) {
            (Mode::Observe, _) => return Suppress(Suppression::Observed),
            (Mode::Live, Severity::Digest) => return Suppress(Suppression::DigestSeverity),
            (Mode::Live, Severity::Page) => {}
        }
        let protected: Vec<&WorkflowName> =
            workflows.iter().filter(|w| self.subject_of(w).domain.is_protected()).collect();
        if protected.is_empty() {
            return Suppress(Suppression::StandardWorkflow);
        }
        let heard: Vec<&WorkflowName> = protected.into_iter().filter(|w| self.silence_of(w, now).is_none()).collect();
        let Some(first) = heard.first() else { return Suppress(Suppression::Silenced) };
        let routes: Vec<&Route> = heard.iter().flat_map(|w| self.page_routes_of(w)).collect();
        match Terms::of(&without_repeats(routes)) {
            Some(terms) => SymptomPaging::Page {
                domain: self.subject_of(first).domain,
                workflows: heard.into_iter().cloned().collect(),
                terms,
            },
            None => Suppress(Suppression::NoPageRoute),
        }
    }

    /// The silence that hides what is told of a workflow itself.
    pub fn silence_of(&self, workflow: &WorkflowName, now: DateTime<Utc>) -> Option<&str> {
        let subject = self.subject_of(workflow);
        self.silences.iter().find(|s| s.hides(subject, now)).map(|s| s.id.as_str())
    }

    /// The routes of what is told of a workflow itself.
    pub fn routes_of(&self, workflow: &WorkflowName) -> Vec<&Route> {
        self.routes_at(&matching(&self.routes, self.subject_of(workflow)))
    }

    /// The routes that page for a workflow itself. When those that fit page nobody, the first that pages for some failure of it does:
    /// a page too many is better than one that nobody gets.
    fn page_routes_of(&self, workflow: &WorkflowName) -> Vec<&Route> {
        let fitting = self.routes_of(workflow);
        if fitting.iter().any(|r| !r.page.is_empty()) {
            return fitting;
        }
        let subject = self.subject_of(workflow);
        let pages_for_some = |r: &&Route| !r.page.is_empty() && r.matcher.fits_some_event_of(subject);
        self.routes.iter().find(pages_for_some).into_iter().collect()
    }
}

fn without_repeats(routes: Vec<&Route>) -> Vec<&Route> {
    let mut kept: Vec<&Route> = Vec::new();
    for route in routes {
        if kept.iter().all(|k| k.name != route.name) {
            kept.push(route);
        }
    }
    kept
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::matcher::{Glob, MatchKey, Matcher};
    use crate::name::{ReceiverName, RouteName};
    use crate::silence::Silence;
    use crate::workflow::{Workflow, Workflows};
    use chrono::TimeDelta;
    use std::collections::BTreeMap;
    use std::time::Duration;

    fn now() -> DateTime<Utc> {
        DateTime::from_timestamp(1_796_000_000, 0).unwrap()
    }

    fn matcher(key: MatchKey, glob: &str) -> Matcher {
        Matcher::new(BTreeMap::from([(key, vec![Glob::new(glob)])]))
    }

    fn policy(page_matcher: Matcher) -> Policy {
        let workflow = |name: &str, domain| Workflow {
            name: Glob::new(name),
            domain,
            owner: None,
            runbook: None,
            slo: None,
            every: None,
            grace: Duration::ZERO,
            item_noun: None,
            expected_per_day: None,
            labels: BTreeMap::new(),
        };
        let route = |name: &str, matcher, page: &[&str]| Route {
            name: RouteName::new(name),
            matcher,
            page: page.iter().copied().map(ReceiverName::new).collect(),
            digest: BTreeMap::new(),
            group_by: Vec::new(),
            remind_every: None,
            resolve_after: Duration::from_secs(900),
            growth_every: Duration::from_secs(300),
            escalate: Vec::new(),
            continues: true,
        };
        Policy {
            config_version: "v".to_owned(),
            workflows: Workflows::new(vec![workflow("pay", Domain::Money), workflow("payout", Domain::Money)]),
            routes: vec![route("protected", page_matcher, &["oncall"]), route("rest", Matcher::default(), &[])],
            silences: Vec::new(),
        }
    }

    fn names(names: &[&str]) -> Vec<WorkflowName> {
        names.iter().copied().map(WorkflowName::new).collect()
    }

    fn reason(policy: &Policy, workflows: &[&str], severity: Severity, mode: Mode) -> Option<&'static str> {
        match policy.page_symptom(&names(workflows), severity, mode, now()) {
            SymptomPaging::Page { .. } => None,
            SymptomPaging::Suppress(reason) => Some(reason.as_str()),
        }
    }

    #[test]
    fn only_protected_workflows_page_and_each_other_outcome_has_its_reason() {
        use {Mode::*, Severity::*};
        let policy = policy(matcher(MatchKey::Domain, "money"));
        for (workflows, severity, mode, wanted) in [
            (&["pay"][..], Page, Live, None),
            (&["pay"], Digest, Live, Some("digest_severity")),
            (&["pay"], Page, Observe, Some("observed")),
            (&["report"], Page, Live, Some("standard_workflow")),
            (&["report", "pay"], Page, Live, None),
            (&[], Page, Live, Some("standard_workflow")),
        ] {
            assert_eq!(reason(&policy, workflows, severity, mode), wanted, "{workflows:?} {severity:?} {mode:?}");
        }
    }

    #[test]
    fn a_symptom_of_several_workflows_pages_for_those_that_are_protected_and_not_silenced() {
        let mut policy = policy(matcher(MatchKey::Domain, "money"));
        policy.silences.push(Silence {
            id: "S-1".to_owned(),
            matcher: matcher(MatchKey::Workflow, "pay"),
            since: now(),
            until: now() + TimeDelta::hours(1),
            reason: "r".to_owned(),
            by: "asha".to_owned(),
            protected: true,
        });
        let page = policy.page_symptom(&names(&["pay", "payout", "report"]), Severity::Page, Mode::Live, now());
        let SymptomPaging::Page { workflows, terms, .. } = page else { panic!("{page:?}") };
        assert_eq!((workflows, terms.page), (names(&["payout"]), vec![ReceiverName::new("oncall")]));
        assert_eq!(reason(&policy, &["pay"], Severity::Page, Mode::Live), Some("silenced"));
    }

    #[test]
    fn a_page_route_that_asks_for_more_than_a_workflow_has_pages_rather_than_nobody() {
        let policy_of = |key, glob| policy(matcher(key, glob));
        assert_eq!(reason(&policy_of(MatchKey::Class, "persistent"), &["pay"], Severity::Page, Mode::Live), None);
        let other = policy_of(MatchKey::Workflow, "ledger");
        assert_eq!(reason(&other, &["pay"], Severity::Page, Mode::Live), Some("no_page_route"));
    }
}
