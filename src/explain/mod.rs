//! Why an event is what it is, and who hears of it when, or the named reason why not. What the store knows is handed in; `stored`
//! fetches it. The rules themselves live in the rooms that are asked.

mod stored;

pub use stored::explain_stored;

use crate::config::{Config, DigestSettings};
use crate::deliver::{ReceiverKind, Recipients};
use crate::digest::plan::{DigestRule, PlanDecision, plan};
use crate::digest_job::receiver_key;
use crate::event::{Event, EventType};
use crate::incident::Incident;
use crate::name::{DigestName, ReceiverName};
use crate::render::words;
use crate::route::{Decision, Paging, Policy, Suppression};
use crate::symptom::ToldSymptom;
use chrono::{DateTime, SecondsFormat, Utc};
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::sync::Arc;

/// What was decided when the event came in.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct StoredDecision {
    /// Version of the config that decided.
    pub config_version: String,
    /// Routes that matched.
    pub routes: Vec<String>,
    /// Who was to be paged.
    pub page: Vec<String>,
    /// Digests and receivers.
    pub digests: Vec<(String, String)>,
    /// `open`, `silenced` or `paged`.
    pub fate: String,
    /// The silence or incident.
    pub fate_id: String,
    /// Named reason.
    pub reason: String,
}

/// A digest that told the event.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ToldDigest {
    /// Its name.
    pub digest: String,
    /// Whom it went to.
    pub receiver: String,
    /// `#N`.
    pub number: Option<i64>,
    /// End of its window.
    pub window_end: DateTime<Utc>,
}

/// What the store knows of an event.
#[derive(Clone, Debug, Default)]
pub struct Facts {
    /// None when it is not stored.
    pub decision: Option<StoredDecision>,
    /// The incident that it belongs to.
    pub incident: Option<Incident>,
    /// Digests that told it.
    pub told: Vec<ToldDigest>,
    /// Symptoms that fire now, of its workflow and of others.
    pub firing: Arc<Vec<ToldSymptom>>,
}

/// One thing that is known, and in which words.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct Point {
    /// What it is about: `event`, `class`, `route`, `page`, `silence`, `digest` …
    pub about: String,
    /// Stable word, where there is one: a class, a reason, a rule.
    pub word: Option<String>,
    /// A sentence.
    pub text: String,
}

/// An event, explained.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct Explanation {
    /// Id of the event.
    pub event: String,
    /// Its workflow.
    pub workflow: String,
    /// The instant that it is explained for, RFC 3339.
    pub at: String,
    /// What is known, in the order of the decisions.
    pub points: Vec<Point>,
}

/// Explains `event` as of `at`.
pub fn explain(config: &Config, policy: &Policy, event: &Event, facts: &Facts, at: DateTime<Utc>) -> Explanation {
    let decision = policy.decide(event, at);
    let mut points = vec![event_point(event), class_point(event)];
    points.push(point("fingerprint", None, event.fingerprint.0.to_string()));
    points.push(workflow_point(config, event));
    points.extend(stored_points(facts));
    points.push(route_point(policy, &decision));
    points.extend(silence_point(policy, &decision));
    points.push(page_point(policy, event, &decision));
    points.extend(facts.incident.as_ref().map(incident_point));
    let of_workflow = |s: &&ToldSymptom| s.state.workflows.contains(&event.workflow);
    points.extend(facts.firing.iter().filter(of_workflow).map(symptom_point));
    points.extend(facts.told.iter().map(told_point));
    points.extend(digest_points(config, policy, event, &decision, at));
    Explanation {
        event: event.id.0.clone(),
        workflow: event.workflow.to_string(),
        at: at.to_rfc3339_opts(SecondsFormat::AutoSi, true),
        points,
    }
}

fn point(about: &str, word: Option<&str>, text: String) -> Point {
    Point { about: about.to_owned(), word: word.map(str::to_owned), text }
}

fn event_point(event: &Event) -> Point {
    let item = event.item.as_ref().map(|i| format!(", item {i}")).unwrap_or_default();
    let step = event.step.as_ref().map(|s| format!(", step {s}")).unwrap_or_default();
    let text = format!(
        "{} of {}{step}{item}, happened {}",
        event.event_type.as_str(),
        event.workflow,
        instant(event.occurred_at)
    );
    point("event", Some(event.event_type.as_str()), text)
}

fn class_point(event: &Event) -> Point {
    if event.event_type != EventType::Failure {
        return point("class", None, "it is no failure, so it has no class".to_owned());
    }
    let (class, disposition) = (event.class.as_str(), event.disposition.as_str());
    point("class", Some(class), format!("{class} by rule {}, {disposition}", event.class_rule))
}

fn workflow_point(config: &Config, event: &Event) -> Point {
    let Some(workflow) = config.workflows.find(&event.workflow) else {
        return point("workflow", Some("standard"), format!("{} is not in config: standard, no owner", event.workflow));
    };
    let protected = if workflow.domain.is_protected() { "protected" } else { "not protected" };
    let owner = workflow.owner.as_deref().unwrap_or("none set");
    let domain = workflow.domain.as_str();
    point("workflow", Some(domain), format!("{} is {domain}, {protected}; owner: {owner}", event.workflow))
}

/// What was decided then; a config that has changed since may decide otherwise.
fn stored_points(facts: &Facts) -> Option<Point> {
    let stored = facts.decision.as_ref()?;
    let routes = list(&stored.routes);
    let page = if stored.reason == "page" {
        format!("page {}", list(&stored.page))
    } else {
        format!("no page ({})", stored.reason)
    };
    let fate = match stored.fate.as_str() {
        "silenced" => format!(", silenced by {}", stored.fate_id),
        _ => String::new(),
    };
    let text = format!("when it came in, config {} took it by {routes}: {page}{fate}", stored.config_version);
    Some(point("decision", Some(&stored.reason), text))
}

fn route_point(policy: &Policy, decision: &Decision) -> Point {
    let names: Vec<String> = policy.routes_at(&decision.matched).iter().map(|r| r.name.to_string()).collect();
    point("route", None, format!("{} (config {})", list(&names), policy.config_version))
}

fn silence_point(policy: &Policy, decision: &Decision) -> Option<Point> {
    let id = decision.silence_id.as_ref()?;
    let silence = policy.silences.iter().find(|s| s.id == *id)?;
    let (by, reason, until) = (&silence.by, &silence.reason, instant(silence.until));
    Some(point("silence", Some(id), format!("silenced by {id} until {until}: {reason} ({by})")))
}

fn page_point(policy: &Policy, event: &Event, decision: &Decision) -> Point {
    match &decision.paging {
        Paging::Page { terms, .. } => {
            let to: Vec<String> = terms.page.iter().map(ToString::to_string).collect();
            point("page", Some("page"), format!("a page to {} at once, once per incident", list(&to)))
        }
        Paging::Suppress(reason) => {
            // A silence comes last among the reasons; it is worth a word also where there was another.
            let silenced = decision.silence_id.is_some() && *reason != Suppression::Silenced;
            let also = if silenced { ", and a silence hides it" } else { "" };
            let told = !policy.resolved(&decision.matched).digests.is_empty() && event.event_type == EventType::Failure;
            let digest = if told { "; digests tell it" } else { "" };
            point("page", Some(reason.as_str()), format!("nobody is paged: {}{also}{digest}", reason.explanation()))
        }
    }
}

fn incident_point(incident: &Incident) -> Point {
    let (id, state) = (incident.id.0, incident.state.as_str());
    let opened = instant(incident.opened_at);
    let text = format!(
        "incident {id}, {state}, opened {opened}, page #{}, {}",
        incident.told.page_number,
        words::noun(incident.event_count(), "event")
    );
    point("incident", Some(state), text)
}

/// A symptom of its workflow: what it says, and who heard of it or why nobody was paged.
fn symptom_point(symptom: &ToldSymptom) -> Point {
    let (state, told) = (&symptom.state, &symptom.told);
    let became = match (told.incident_id(), told.why_not()) {
        (Some(id), _) => format!("part of incident {id}"),
        (None, Some(reason)) => format!("nobody was paged: {reason}"),
        (None, None) => "not told yet".to_owned(),
    };
    let since = instant(state.since);
    point("symptom", Some(&state.key.rule), format!("{} fires since {since}: {}; {became}", state.key.rule, state.text))
}

fn told_point(told: &ToldDigest) -> Point {
    let number = told.number.map(|n| format!(" (#{n})")).unwrap_or_default();
    let text = format!("{} digest to {} told it at {}{number}", told.digest, told.receiver, instant(told.window_end));
    point("digest", Some("told"), text)
}

fn digest_points(
    config: &Config,
    policy: &Policy,
    event: &Event,
    decision: &Decision,
    at: DateTime<Utc>,
) -> Vec<Point> {
    let targets = policy.resolved(&decision.matched).digests;
    if targets.is_empty() {
        return vec![point(
            "digest",
            Some("unrouted"),
            "no digest tells it: no route that matches names one".to_owned(),
        )];
    }
    targets.iter().filter_map(|(digest, receiver)| digest_point(config, event, digest, receiver, at)).collect()
}

fn digest_point(
    config: &Config,
    event: &Event,
    digest: &DigestName,
    receiver: &ReceiverName,
    at: DateTime<Utc>,
) -> Option<Point> {
    let settings = config.digests.get(digest)?;
    let owners =
        matches!(config.receivers.get(receiver).map(|r| &r.kind), Some(ReceiverKind::Email { to: Recipients::Owner }));
    let owner = config.workflows.find(&event.workflow).and_then(|w| w.owner.as_deref()).filter(|_| owners);
    if owners && owner.is_none() {
        let text = format!("{digest} digest to {receiver}: nobody, the workflow has no owner");
        return Some(point("digest", Some("no_owner"), text));
    }
    let to = receiver_key(receiver.as_str(), owner);
    Some(point("digest", None, format!("{digest} digest to {to}: {}", due_words(config, settings, at))))
}

/// When the next digest after `at` goes out, and what holds it.
fn due_words(config: &Config, settings: &DigestSettings, at: DateTime<Utc>) -> String {
    let calendar = settings.calendar.as_ref().and_then(|name| config.calendars.get(name));
    let (schedule, timezone) = (&settings.schedule, settings.timezone);
    let Some(slot) = schedule.next_after(at, timezone) else { return "its schedule has run out".to_owned() };
    let rule = DigestRule { schedule, timezone, calendar, max_hold: settings.max_hold, in_force_since: None };
    let when = words::date_time(slot, timezone);
    let zone = words::zone_name(timezone, slot);
    match plan(&rule, at, slot) {
        PlanDecision::Hold { until, .. } => {
            let calendar = settings.calendar.as_ref().map(ToString::to_string).unwrap_or_default();
            let opening = words::date_time(until, timezone);
            format!("next slot {when} {zone}, held until {opening} by calendar {calendar}")
        }
        PlanDecision::NotDue { .. } | PlanDecision::Due { .. } => format!("next slot {when} {zone}"),
    }
}

fn list(names: &[String]) -> String {
    let unique: BTreeSet<&String> = names.iter().collect();
    match names {
        [] => "none".to_owned(),
        names if unique.len() == names.len() => names.join(", "),
        _ => unique.into_iter().cloned().collect::<Vec<_>>().join(", "),
    }
}

fn instant(at: DateTime<Utc>) -> String {
    at.to_rfc3339_opts(SecondsFormat::Secs, true)
}

/// For people: one line a point, what it is about first.
pub fn write(explanation: &Explanation) -> String {
    let mut text = format!("{} at {}\n", explanation.event, explanation.at);
    for point in &explanation.points {
        text.push_str(&format!("  {:<12} {}\n", point.about, point.text));
    }
    text
}
