//! What the routes ask of an incident, and the key that makes failures one.

use crate::matcher::{Subject, value_of};
use crate::name::ReceiverName;
use crate::route::{GroupKey, Route};
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// What the routes asked for when the incident opened. Kept with it, so that a reload changes nothing in flight.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Terms {
    /// Names of the routes that matched.
    pub routes: Vec<String>,
    /// Who is paged.
    pub page: Vec<ReceiverName>,
    /// Reminders until acknowledged.
    pub remind_every: Option<Duration>,
    /// Quiet time before it resolves by itself.
    pub resolve_after: Duration,
    /// Growth messages at most this often.
    pub growth_every: Duration,
    /// Who hears when nobody acknowledges, in order of time.
    pub escalate: Vec<EscalationStep>,
}

/// One step of an escalation.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct EscalationStep {
    /// Time since the incident opened.
    pub after: Duration,
    /// Who hears.
    pub to: Vec<ReceiverName>,
}

impl Terms {
    /// The terms of the matching `routes`: pages and escalations add up; the first route that pages gives the times.
    /// None when no route pages.
    pub fn of(routes: &[&Route]) -> Option<Self> {
        let first = routes.iter().find(|r| !r.page.is_empty())?;
        let mut page = Vec::new();
        for receiver in routes.iter().flat_map(|r| &r.page) {
            if !page.contains(receiver) {
                page.push(receiver.clone());
            }
        }
        let steps = routes.iter().flat_map(|r| &r.escalate);
        let mut escalate: Vec<EscalationStep> =
            steps.map(|e| EscalationStep { after: e.after, to: e.to.clone() }).collect();
        escalate.sort_by_key(|e| e.after);
        Some(Self {
            routes: routes.iter().map(|r| r.name.to_string()).collect(),
            page,
            remind_every: first.remind_every,
            resolve_after: first.resolve_after,
            growth_every: first.growth_every,
            escalate,
        })
    }
}

/// The key that makes failures one incident, from the `group_by` of the first route that pages.
pub fn key_of(routes: &[&Route], subject: Subject<'_>) -> Option<String> {
    let first = routes.iter().find(|r| !r.page.is_empty())?;
    let values = first.group_by.iter().map(|key| match key {
        GroupKey::Match(key) => (key.to_string(), value_of(key, subject)),
        GroupKey::Fingerprint => ("fingerprint".to_owned(), subject.event.map(|e| &*e.fingerprint.0)),
    });
    let mut parts: Vec<(String, Option<&str>)> = values.collect();
    if parts.iter().all(|(_, value)| value.is_none()) {
        // Events that have nothing to be grouped by are not one cause for that.
        parts.push(("workflow".to_owned(), Some(subject.workflow.as_str())));
    }
    let written = parts.iter().map(|(key, value)| match value {
        Some(value) => format!("{key}={value}"),
        None => key.clone(),
    });
    Some(written.collect::<Vec<_>>().join("\u{1f}"))
}
