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
