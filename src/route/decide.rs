//! What becomes of one event: who hears of it, or the named reason why not. Pure.
//! Incidents, digests and messages that follow from it are made elsewhere.

use super::{Resolved, Route, matching, resolve};
use crate::event::{Disposition, Event, EventType};
use crate::incident::{Terms, key_of};
use crate::matcher::Subject;
use crate::name::WorkflowName;
use crate::silence::Silence;
use crate::workflow::{Domain, Workflows};
use chrono::{DateTime, Utc};

/// Why nobody is paged for an event. One stable word in `explain`, store and metrics.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Suppression {
    /// Only money and compliance page.
    StandardWorkflow,
    /// The pipeline tries again.
    Retrying,
    /// Left out on purpose, such as a wait for a human.
    Skipped,
    /// A recovery, an outcome, a heartbeat …
    NotAFailure,
    /// A silence hides it.
    Silenced,
    /// No matching route names page receivers.
    NoPageRoute,
    /// A symptom that is told in digests only.
    DigestSeverity,
    /// A symptom that only records when it would have fired.
    Observed,
}

impl Suppression {
    /// The stable word.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::StandardWorkflow => "standard_workflow",
            Self::Retrying => "retrying",
            Self::Skipped => "skipped",
            Self::NotAFailure => "not_a_failure",
            Self::Silenced => "silenced",
            Self::NoPageRoute => "no_page_route",
            Self::DigestSeverity => "digest_severity",
            Self::Observed => "observed",
        }
    }

    /// A sentence for a person.
    pub fn explanation(self) -> &'static str {
        match self {
            Self::StandardWorkflow => "a standard workflow is not protected; it is told in digests and never pages",
            Self::Retrying => "the pipeline is retrying; only a final failure pages",
            Self::Skipped => "the step was skipped on purpose; that is no failure",
            Self::NotAFailure => "this event is no failure",
            Self::Silenced => "a silence hides it",
            Self::NoPageRoute => "no route that matches has page receivers",
            Self::DigestSeverity => "its severity is digest",
            Self::Observed => "it is only observed: config gives it mode = \"observe\"",
        }
    }
}

/// Whether an event pages.
#[derive(Clone, Debug, PartialEq)]
pub enum Paging {
    /// It opens or joins the incident of this key.
    Page {
        /// What makes failures one incident.
        key: String,
        /// What the routes ask for.
        terms: Terms,
    },
    /// Nobody is paged.
    Suppress(Suppression),
}

/// All that is decided about one event.
#[derive(Clone, Debug, PartialEq)]
pub struct Decision {
    /// Domain of its workflow.
    pub domain: Domain,
    /// Places of the matching routes in config; stands for them in caches.
    pub matched: Vec<usize>,
    /// Whether it pages.
    pub paging: Paging,
    /// The silence that hides it.
    pub silence_id: Option<String>,
}

/// What decisions are made from: the routing part of one config version, and the silences of now.
#[derive(Clone, Debug)]
pub struct Policy {
    /// Version of the config.
    pub config_version: String,
    /// Workflows of config.
    pub workflows: Workflows,
    /// Routes of config.
    pub routes: Vec<Route>,
    /// Silences of config and of people.
    pub silences: Vec<Silence>,
}

impl Policy {
    /// What becomes of `event` at `now`.
    pub fn decide(&self, event: &Event, now: DateTime<Utc>) -> Decision {
        let subject = self.subject(event);
        let matched = self.matched(subject);
        let silence = self.silences.iter().find(|s| s.hides(subject, now));
        let paging = match (suppression(event, subject.domain), silence) {
            (Some(reason), _) => Paging::Suppress(reason),
            (None, Some(_)) => Paging::Suppress(Suppression::Silenced),
            (None, None) => page(&self.routes_at(&matched), subject),
        };
        Decision { domain: subject.domain, matched, paging, silence_id: silence.map(|s| s.id.clone()) }
    }

    /// The event with what config says of its workflow.
    pub fn subject<'a>(&'a self, event: &'a Event) -> Subject<'a> {
        Subject { event: Some(event), ..self.subject_of(&event.workflow) }
    }

    /// A workflow with what config says of it.
    pub fn subject_of<'a>(&'a self, workflow: &'a WorkflowName) -> Subject<'a> {
        let known = self.workflows.find(workflow);
        let domain = known.map_or(Domain::Standard, |w| w.domain);
        Subject { workflow, event: None, domain, labels: known.map(|w| &w.labels) }
    }

    /// The routes at these places.
    pub fn routes_at(&self, matched: &[usize]) -> Vec<&Route> {
        matched.iter().filter_map(|at| self.routes.get(*at)).collect()
    }

    /// Receivers of the routes at these places, added up.
    pub fn resolved(&self, matched: &[usize]) -> Resolved {
        resolve(&self.routes_at(matched))
    }

    fn matched(&self, subject: Subject<'_>) -> Vec<usize> {
        matching(&self.routes, subject)
    }
}

fn suppression(event: &Event, domain: Domain) -> Option<Suppression> {
    match event.event_type {
        EventType::Failure => {}
        EventType::Recovery
        | EventType::Outcome
        | EventType::Heartbeat
        | EventType::Resolution
        | EventType::Breaker => return Some(Suppression::NotAFailure),
    }
    match event.disposition {
        Disposition::Retrying => Some(Suppression::Retrying),
        Disposition::Skipped => Some(Suppression::Skipped),
        Disposition::DeadLettered | Disposition::Failed if !domain.is_protected() => {
            Some(Suppression::StandardWorkflow)
        }
        Disposition::DeadLettered | Disposition::Failed => None,
    }
}

fn page(routes: &[&Route], subject: Subject<'_>) -> Paging {
    match (key_of(routes, subject), Terms::of(routes)) {
        (Some(key), Some(terms)) => Paging::Page { key, terms },
        (None, _) | (_, None) => Paging::Suppress(Suppression::NoPageRoute),
    }
}
