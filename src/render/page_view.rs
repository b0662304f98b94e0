//! The view of messages about incidents: facts to words, as templates see them. How it looks is the templates' choice.

use super::escape::web_address;
use super::page_facts::{FailureSample, PageFacts, PagedWorkflow, Resolution};
use super::page_words::{
    SAMPLE_MAX, ending, more, name, next, notice, owner, rows, sample_text, sentence, several, subject, title,
};
use super::words;
use crate::event::ErrorInfo;
use serde::Serialize;
use serde_json::Value;

const LINKS_MAX: usize = 5;
const WORKFLOWS_MAX: usize = 10;
const SYMPTOMS_MAX: usize = 5;

/// What templates of pages, reminders, escalations and resolutions see. A value that is not known is null.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct PageView {
    /// `#N` of this message.
    pub number: i64,
    /// `#N` of the incident's first page.
    pub first_number: i64,
    /// `page`, `reminder`, `escalation` or `resolved`.
    pub kind: &'static str,
    /// Why within the kind: `opened`, `remind_every`, `growth`, `unacknowledged`, `resolved`.
    pub reason: &'static str,
    /// The sentence that opens the message, such as `Page: order-to-crm, 1 order has not reached hubspot`.
    pub title: String,
    /// What has happened: `1 order has not reached hubspot`.
    pub sentence: String,
    /// One line for lock screens.
    pub notice: String,
    /// Subject of the mail.
    pub subject: String,
    /// First workflow of the incident.
    pub workflow: String,
    /// `money` or `compliance`.
    pub domain: &'static str,
    /// Stable word of the class.
    pub class: Option<&'static str>,
    /// The class in plain words.
    pub class_words: Option<&'static str>,
    /// `page` or `digest`.
    pub severity: String,
    /// Where it failed.
    pub step: Option<String>,
    /// What failed.
    pub item: Option<String>,
    /// What has waited longest.
    pub oldest_item: Option<String>,
    /// Which dependency failed.
    pub downstream: Option<String>,
    /// How many.
    pub counts: CountsView,
    /// `Tue 21:41`.
    pub since: String,
    /// How long, from one minute on: `1 h 12 min`.
    pub lasted: Option<String>,
    /// From when to when, once resolved: `Tue 21:41 to 22:53`.
    pub span: Option<String>,
    /// How the sample ended: `final after 3 attempts, transient`.
    pub ending: Option<String>,
    /// The sample's error.
    pub error: ErrorView,
    /// Status, type and message of the sample in one text.
    pub sample: Option<String>,
    /// The same, line by line.
    pub sample_rows: Vec<String>,
    /// Name of the first workflow's owner; `none set`.
    pub owner: String,
    /// http(s) address.
    pub runbook: Option<String>,
    /// Links of the event.
    pub links: Vec<LinkView>,
    /// Signed address of the acknowledge page.
    pub acknowledge_url: Option<String>,
    /// The incident on the web.
    pub incident_url: Option<String>,
    /// Everything to click, in order: acknowledge, incident, dead letters, runbook, links.
    pub actions: Vec<LinkView>,
    /// Cause of the sample.
    pub fingerprint: Option<String>,
    /// Sentences of symptoms.
    pub symptoms: Vec<TextView>,
    /// Symptoms that are not listed.
    pub symptoms_more: Option<u64>,
    /// The workflows of an incident that has several; empty when there is one.
    pub workflows: Vec<PagedWorkflowView>,
    /// Workflows that are not listed.
    pub workflows_more: Option<u64>,
    /// Who took it on.
    pub acknowledged: Option<AcknowledgedView>,
    /// What happens next: `reminder in 4 h, to oncall-mail in 30 min unless acknowledged`.
    pub next: Option<String>,
    /// How it ended.
    pub resolution: Option<ResolutionView>,
    /// Short name of the zone that times are in.
    pub zone: String,
}

/// Counts of an incident.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct CountsView {
    /// Final failures.
    pub events: u64,
    /// Different items.
    pub items: u64,
    /// Open dead letters.
    pub dead_letters_open: u64,
}

/// An error; null where the event said nothing.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct ErrorView {
    /// Exception or error type.
    pub r#type: Option<String>,
    /// Human words.
    pub message: Option<String>,
    /// Machine code.
    pub code: Option<String>,
    /// HTTP status.
    pub http_status: Option<u16>,
}

/// Something to click.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct LinkView {
    /// What opens.
    pub name: String,
    /// http(s) address.
    pub url: String,
    /// Whether it is what the reader is asked to do.
    pub main: bool,
}

/// One sentence.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct TextView {
    /// The sentence.
    pub text: String,
}

/// One of several workflows.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct PagedWorkflowView {
    /// Its name.
    pub name: String,
    /// `money` or `compliance`.
    pub domain: &'static str,
    /// `14 orders`.
    pub count_words: String,
    /// Owner's name; `none set`.
    pub owner: String,
    /// http(s) address.
    pub runbook: Option<String>,
}

/// Who took an incident on.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct AcknowledgedView {
    /// The name.
    pub by: String,
    /// `21:45`, or with the day when it was another.
    pub at: String,
    /// `acknowledged at 21:45`, with the name when it is not the owner's.
    pub words: String,
}

/// How an incident ended.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ResolutionView {
    /// The person who closed it.
    pub by: Option<String>,
    /// What the person wrote.
    pub note: Option<String>,
    /// `14 dead letters, 14 redriven, 0 open`.
    pub words: String,
}

impl PageView {
    /// Puts facts into words.
    pub fn of(facts: &PageFacts) -> Self {
        let sample = facts.sample.as_ref();
        let first = facts.workflows.first();
        let title = title(facts);
        let shown = sample.and_then(|s| sample_text(&s.error));
        let runbook = first.and_then(|w| w.runbook.as_deref()).and_then(web_address);
        let links = sample.map(links).unwrap_or_default();
        let lasted = words::between(facts.since, facts.resolution.as_ref().map_or(facts.now, |r| r.at));
        Self {
            number: facts.number,
            first_number: facts.first_number,
            kind: facts.kind.template(),
            reason: facts.kind.reason(),
            sentence: sentence(facts),
            notice: notice(facts, &title),
            subject: subject(facts, &title),
            title,
            workflow: first.map(|w| name(w.name.as_str())).unwrap_or_default(),
            domain: first.map_or("standard", |w| w.domain.as_str()),
            class: sample.map(|s| s.class.as_str()),
            class_words: sample.map(|s| words::class(s.class)),
            severity: facts.severity.clone(),
            step: sample.and_then(|s| s.step.as_deref()).map(name),
            item: sample.and_then(|s| s.item.as_deref()).map(name),
            oldest_item: facts.oldest_item.as_deref().map(name),
            downstream: sample.and_then(|s| s.downstream.as_deref()).map(name),
            counts: CountsView {
                events: facts.workflows.iter().map(|w| w.events).sum(),
                items: facts.workflows.iter().map(|w| w.items).sum(),
                dead_letters_open: facts.open_dead_letters,
            },
            since: words::time(facts.since, facts.now, facts.zone),
            lasted: (lasted.as_secs() >= 60).then(|| words::duration(lasted)),
            span: facts.resolution.as_ref().map(|r| words::span(facts.since, r.at, facts.now, facts.zone)),
            ending: sample.map(ending),
            error: sample.map(|s| error_view(&s.error)).unwrap_or_default(),
            sample_rows: shown.as_deref().map(rows).unwrap_or_default(),
            sample: shown,
            owner: owner(first),
            actions: actions(facts, runbook.as_deref(), &links),
            runbook,
            links,
            acknowledge_url: facts.acknowledge_url.as_deref().and_then(web_address),
            incident_url: facts.incident_url.as_deref().and_then(web_address),
            fingerprint: sample.map(|s| s.fingerprint.0.to_string()),
            symptoms: facts.symptoms.iter().take(SYMPTOMS_MAX).map(|s| TextView { text: words::cut(s, 300) }).collect(),
            symptoms_more: more(facts.symptoms.len(), SYMPTOMS_MAX),
            workflows: several(facts).iter().take(WORKFLOWS_MAX).map(workflow_view).collect(),
            workflows_more: more(several(facts).len(), WORKFLOWS_MAX),
            acknowledged: acknowledged(facts),
            next: next(facts),
            resolution: facts.resolution.as_ref().map(resolution_view),
            zone: words::zone_name(facts.zone, facts.now),
        }
    }

    /// The view as templates and webhooks get it.
    pub fn to_json(&self) -> Value {
        serde_json::to_value(self).unwrap_or_default()
    }
}

fn error_view(error: &ErrorInfo) -> ErrorView {
    ErrorView {
        r#type: error.kind.as_deref().map(name),
        message: error.message.as_deref().map(|m| words::cut(m, SAMPLE_MAX)),
        code: error.code.as_deref().map(name),
        http_status: error.http_status,
    }
}

fn links(sample: &FailureSample) -> Vec<LinkView> {
    let usable = sample.links.iter().filter_map(|(name, url)| Some((name, web_address(url)?)));
    usable
        .map(|(name, url)| LinkView { name: words::cut(&words::one_line(name), 40), url, main: false })
        .filter(|link| !link.name.is_empty())
        .take(LINKS_MAX)
        .collect()
}

fn actions(facts: &PageFacts, runbook: Option<&str>, links: &[LinkView]) -> Vec<LinkView> {
    let letters = words::noun(facts.open_dead_letters, "dead letter");
    let letters_url = facts.dead_letters_url.as_deref().filter(|_| facts.open_dead_letters > 1);
    let own = [
        ("Acknowledge", facts.acknowledge_url.as_deref(), true),
        ("Incident", facts.incident_url.as_deref(), false),
        (letters.as_str(), letters_url, false),
        ("Runbook", runbook, false),
    ];
    let own = own
        .into_iter()
        .filter_map(|(name, url, main)| Some(LinkView { name: name.to_owned(), url: web_address(url?)?, main }));
    own.chain(links.iter().cloned()).collect()
}

fn workflow_view(workflow: &PagedWorkflow) -> PagedWorkflowView {
    let count_words = match workflow.items {
        0 => words::noun(workflow.events, "run"),
        n => words::noun(n, workflow.item_noun.as_deref().unwrap_or("item")),
    };
    PagedWorkflowView {
        name: name(workflow.name.as_str()),
        domain: workflow.domain.as_str(),
        count_words,
        owner: owner(Some(workflow)),
        runbook: workflow.runbook.as_deref().and_then(web_address),
    }
}

fn acknowledged(facts: &PageFacts) -> Option<AcknowledgedView> {
    let taken = facts.acknowledged.as_ref()?;
    let same_day = words::date(taken.at, facts.zone) == words::date(facts.since, facts.zone);
    let at = if same_day { words::clock(taken.at, facts.zone) } else { words::time(taken.at, facts.now, facts.zone) };
    let by = name(words::owner_name(&taken.by));
    let words = match by == owner(facts.workflows.first()) {
        true => format!("acknowledged at {at}"),
        false => format!("acknowledged by {by} at {at}"),
    };
    Some(AcknowledgedView { by, at, words })
}

fn resolution_view(resolution: &Resolution) -> ResolutionView {
    let total = resolution.resolved + resolution.open;
    let words = match total {
        0 => "no dead letters".to_owned(),
        n => format!(
            "{}, {} went through, {} open",
            words::noun(n, "dead letter"),
            words::count(resolution.recovered),
            words::count(resolution.open)
        ),
    };
    ResolutionView {
        by: resolution.by.as_deref().map(name),
        note: resolution.note.as_deref().map(|n| words::cut(n, 500)),
        words,
    }
}
