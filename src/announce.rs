//! Messages that Matins sends of its own accord about incidents and itself: facts gathered, worded by `render`, one outbox entry a
//! receiver. Pure. When to send them is decided by `incident`, in intake and at ticks.

use crate::ack_link;
use crate::config::Config;
use crate::deliver::Receiver;
use crate::incident::{EscalationStep, Incident, IncidentState, ReminderReason};
use crate::ingest::page::Pager;
use crate::mailbox::Mailbox;
use crate::name::{ReceiverName, WorkflowName};
use crate::outbox::{MessageKind, NewEntry};
use crate::render::{
    Acknowledgement, Content, MailFrame, NextEscalation, OperatorFacts, OperatorView, PageFacts, PageKind, PageView,
    PagedWorkflow, Renderer, Resolution, page_sentence,
};
use crate::workflow::Workflow;
use chrono::{DateTime, TimeDelta, Utc};
use chrono_tz::Tz;
use serde_json::Value;
use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

/// How long an acknowledge link works.
const LINK_LIFE: TimeDelta = TimeDelta::days(7);

/// Words messages for one version of config.
pub struct Announcer {
    config: Arc<Config>,
    renderer: Arc<Renderer>,
    link_key: [u8; 32],
}

impl std::fmt::Debug for Announcer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Announcer").finish_non_exhaustive()
    }
}

/// One message about an incident.
struct Message<'a> {
    incident: &'a Incident,
    kind: PageKind,
    number: i64,
    open_letters: u64,
    now: DateTime<Utc>,
}

impl Announcer {
    /// Words with the workflows, receivers and templates of `config`.
    pub fn new(config: Arc<Config>, renderer: Arc<Renderer>, link_key: [u8; 32]) -> Self {
        Self { config, renderer, link_key }
    }

    /// A reminder to the page receivers.
    pub fn reminder(
        &self,
        incident: &Incident,
        reason: ReminderReason,
        open_letters: u64,
        number: i64,
        now: DateTime<Utc>,
    ) -> Vec<NewEntry> {
        let kind = match reason {
            ReminderReason::Interval => PageKind::Reminder,
            ReminderReason::Growth => PageKind::Growth,
        };
        self.tell(&Message { incident, kind, number, open_letters, now }, &incident.terms.page)
    }

    /// An escalation to the receivers of a step.
    pub fn escalation(
        &self,
        incident: &Incident,
        step: &EscalationStep,
        open_letters: u64,
        number: i64,
        now: DateTime<Utc>,
    ) -> Vec<NewEntry> {
        self.tell(&Message { incident, kind: PageKind::Escalation, number, open_letters, now }, &step.to)
    }

    /// The end of an incident, to all who were told of it.
    pub fn resolved(&self, incident: &Incident, open_letters: u64, number: i64, now: DateTime<Utc>) -> Vec<NewEntry> {
        let taken = incident.terms.escalate.iter().take(incident.told.escalated_count);
        let mut receivers = incident.terms.page.clone();
        for receiver in taken.flat_map(|step| &step.to) {
            if !receivers.contains(receiver) {
                receivers.push(receiver.clone());
            }
        }
        self.tell(&Message { incident, kind: PageKind::Resolved, number, open_letters, now }, &receivers)
    }

    /// A word of the service about itself, to one receiver; none when config does not know it.
    pub fn operator(&self, receiver: &ReceiverName, facts: &OperatorFacts) -> Option<NewEntry> {
        let receiver = self.config.receivers.get(receiver)?;
        let kind = if facts.is_test { MessageKind::Test } else { MessageKind::Operator };
        let view = serde_json::to_value(OperatorView::of(facts)).unwrap_or(Value::Null);
        let frame = self.frame(kind, facts.number, None, receiver);
        Some(self.entry(receiver, kind, "operator", facts.number, view, &frame, facts.now))
    }

    /// View and message of a word of the service about itself, for delivery to enqueue.
    pub fn operator_content(&self, receiver: &Receiver, facts: &OperatorFacts) -> (Value, Content) {
        let view = serde_json::to_value(OperatorView::of(facts)).unwrap_or(Value::Null);
        let frame = self.frame(MessageKind::Operator, facts.number, None, receiver);
        let content = self.renderer.render("operator", receiver.kind.channel(), &view, &frame).content;
        (view, content)
    }

    /// A test message.
    pub fn test(&self, receiver: &ReceiverName, number: i64, now: DateTime<Utc>) -> Option<NewEntry> {
        let facts = OperatorFacts {
            number,
            is_test: true,
            title: format!("Test of receiver {receiver}"),
            what: "This is a test. If you can read it, messages to this receiver arrive.".to_owned(),
            action: None,
            url: Some(self.config.http.public_url.clone()),
            now,
            zone: self.zone(),
        };
        self.operator(receiver, &facts)
    }

    /// The zone that times are shown in: that of the first calendar or digest of config, else UTC.
    pub fn zone(&self) -> Tz {
        let calendar = self.config.calendars.values().next().map(|c| c.timezone);
        calendar.or_else(|| self.config.digests.values().next().map(|d| d.timezone)).unwrap_or(Tz::UTC)
    }

    /// The sentence that a page about `incident` would open with now.
    pub fn sentence(&self, incident: &Incident, open_letters: u64, now: DateTime<Utc>) -> String {
        let number = incident.told.page_number;
        page_sentence(&self.facts(&Message { incident, kind: PageKind::Page, number, open_letters, now }))
    }

    /// The message again, for another receiver: what a fallback gets.
    pub fn render_for(&self, entry: &NewEntry, receiver: &Receiver) -> Content {
        let frame = self.frame(entry.kind, entry.number, entry.incident_id, receiver);
        self.renderer.render(&entry.template, receiver.kind.channel(), &entry.view, &frame).content
    }

    fn tell(&self, message: &Message<'_>, receivers: &[ReceiverName]) -> Vec<NewEntry> {
        let view = PageView::of(&self.facts(message)).to_json();
        let kind = match message.kind {
            PageKind::Page => MessageKind::Page,
            PageKind::Reminder | PageKind::Growth => MessageKind::Reminder,
            PageKind::Escalation => MessageKind::Escalation,
            PageKind::Resolved => MessageKind::Resolved,
        };
        let mut entries = Vec::new();
        for receiver in self.known(receivers) {
            for address in self.addresses(receiver, message.incident) {
                entries.push(self.about(message, receiver, address, kind, view.clone()));
            }
        }
        entries
    }

    /// The receivers that config still knows. When a reload took all of them away, those who are paged now hear instead: somebody must.
    fn known(&self, receivers: &[ReceiverName]) -> Vec<&Receiver> {
        let known: Vec<&Receiver> = receivers.iter().filter_map(|r| self.config.receivers.get(r)).collect();
        if !known.is_empty() {
            return known;
        }
        let mut instead = self.config.routes.iter().flat_map(|r| &r.page).chain(&self.config.operator);
        instead.find_map(|r| self.config.receivers.get(r)).into_iter().collect()
    }

    /// A message about an incident: its mail joins the thread of the page.
    fn about(
        &self,
        message: &Message<'_>,
        receiver: &Receiver,
        address: Option<String>,
        kind: MessageKind,
        view: Value,
    ) -> NewEntry {
        let incident = message.incident;
        let mut frame = self.frame(kind, message.number, Some(incident.id.0), receiver);
        if message.number != incident.told.page_number {
            frame.references = vec![self.message_id(incident.told.page_number, receiver)];
        }
        NewEntry {
            address,
            workflow: incident.hits.first().map(|h| h.workflow.clone()),
            incident_id: Some(incident.id.0),
            ..self.entry(receiver, kind, message.kind.template(), message.number, view, &frame, message.now)
        }
    }

    #[expect(clippy::too_many_arguments, reason = "each is a field of the entry")]
    fn entry(
        &self,
        receiver: &Receiver,
        kind: MessageKind,
        template: &str,
        number: i64,
        view: Value,
        frame: &MailFrame,
        now: DateTime<Utc>,
    ) -> NewEntry {
        let content = self.renderer.render(template, receiver.kind.channel(), &view, frame).content;
        NewEntry {
            number,
            kind,
            receiver: receiver.name.clone(),
            address: None,
            workflow: None,
            incident_id: None,
            digest_id: None,
            template: template.to_owned(),
            view,
            content,
            fallback_of: None,
            due_at: now,
            created_at: now,
        }
    }

    fn frame(&self, kind: MessageKind, number: i64, incident_id: Option<i64>, receiver: &Receiver) -> MailFrame {
        let host = self.mail_host();
        let list = if incident_id.is_some() { "incidents" } else { kind.as_str() };
        MailFrame {
            message_id: self.message_id(number, receiver),
            references: Vec::new(),
            list_id: format!("{list}.matins.{host}"),
            images: Vec::new(),
        }
    }

    /// The same for every try of one notification to one receiver.
    fn message_id(&self, number: i64, receiver: &Receiver) -> String {
        let who: String =
            receiver.name.as_str().chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '-' }).collect();
        format!("matins.{number}.{who}@{}", self.mail_host())
    }

    /// The domain of the sender, which is ours to make ids under.
    pub fn mail_host(&self) -> String {
        let from = self.config.smtp.as_ref().map_or("", |smtp| smtp.from.as_str());
        let domain = Mailbox::parse(from).map(|mailbox| mailbox.host().to_owned()).unwrap_or_default();
        let plain = !domain.is_empty() && domain.chars().all(|c| c.is_ascii_alphanumeric() || c == '.' || c == '-');
        if plain { domain } else { "matins.invalid".to_owned() }
    }

    /// Whom a receiver stands for: one mailbox per owner when it is `to = "owner"`.
    fn addresses(&self, receiver: &Receiver, incident: &Incident) -> Vec<Option<String>> {
        if !receiver.kind.is_owner() {
            return vec![None];
        }
        let known = incident.hits.iter().filter_map(|h| self.config.workflows.find(&h.workflow));
        let owners: BTreeSet<String> = known.filter_map(|w| w.owner.clone()).collect();
        owners.into_iter().map(Some).collect()
    }

    fn facts(&self, message: &Message<'_>) -> PageFacts {
        let incident = message.incident;
        let base = &self.config.http.public_url;
        let id = incident.id.0;
        let link = ack_link::sign(&self.link_key, id, message.now + LINK_LIFE);
        let open = incident.state == IncidentState::Open;
        PageFacts {
            number: message.number,
            first_number: incident.told.page_number,
            kind: message.kind,
            severity: "page".to_owned(),
            now: message.now,
            zone: self.zone(),
            since: since(incident),
            workflows: incident.hits.iter().map(|h| self.paged(h)).collect(),
            sample: incident.sample.as_ref().map(Into::into),
            oldest_item: incident.sample.as_ref().and_then(|s| s.item.clone()),
            symptoms: incident
                .symptoms
                .iter()
                .filter(|s| s.ended_at.is_none() || incident.sample.is_none())
                .map(|s| s.text.clone())
                .collect(),
            open_dead_letters: message.open_letters,
            acknowledge_url: open.then(|| format!("{base}{link}")),
            incident_url: Some(format!("{base}/api/v1/incidents/{id}")),
            dead_letters_url: Some(format!("{base}/api/v1/dead-letters?incident={id}")),
            acknowledged: incident.acknowledged_at.map(|at| Acknowledgement {
                by: incident.acknowledged_by.clone().unwrap_or_else(|| "somebody".to_owned()),
                at,
            }),
            remind_in: incident.terms.remind_every.filter(|_| open),
            escalation: next_escalation(incident, message.now).filter(|_| open),
            resolution: incident.resolved_at.map(|at| resolution(incident, message.open_letters, at)),
        }
    }

    fn paged(&self, hit: &crate::incident::Hit) -> PagedWorkflow {
        let known: Option<&Workflow> = self.config.workflows.find(&hit.workflow);
        PagedWorkflow {
            name: WorkflowName::clone(&hit.workflow),
            domain: known.map(|w| w.domain).unwrap_or_default(),
            owner: known.and_then(|w| w.owner.clone()),
            runbook: known.and_then(|w| w.runbook.clone()),
            item_noun: known.and_then(|w| w.item_noun.clone()),
            events: hit.event_count,
            items: hit.item_count,
        }
    }
}

impl Pager for Announcer {
    fn page(&self, incident: &Incident, now: DateTime<Utc>) -> Vec<NewEntry> {
        let number = incident.told.page_number;
        let open_letters = incident.item_count();
        self.tell(&Message { incident, kind: PageKind::Page, number, open_letters, now }, &incident.terms.page)
    }
}

/// When the first failure happened, or the first symptom began; an event that arrives late says so by its time.
fn since(incident: &Incident) -> DateTime<Utc> {
    let symptom = incident.symptoms.first().map_or(incident.opened_at, |s| s.since);
    incident.sample.as_ref().map_or(symptom, |sample| sample.occurred_at)
}

fn next_escalation(incident: &Incident, now: DateTime<Utc>) -> Option<NextEscalation> {
    let step = incident.terms.escalate.get(incident.told.escalated_count)?;
    let passed = (now - incident.opened_at).to_std().unwrap_or_default();
    // The moments between a failure and its page don't make 30 minutes 29.
    let passed = if passed < Duration::from_secs(30) { Duration::ZERO } else { passed };
    Some(NextEscalation {
        to: step.to.iter().map(ToString::to_string).collect(),
        after: step.after.saturating_sub(passed),
    })
}

fn resolution(incident: &Incident, open_letters: u64, at: DateTime<Utc>) -> Resolution {
    let resolved = incident.item_count().saturating_sub(open_letters);
    let by_itself = incident.resolved_by.is_none();
    let quiet: Duration = (at - incident.last_news_at()).to_std().unwrap_or_default();
    Resolution {
        at,
        by: incident.resolved_by.clone(),
        note: None,
        resolved,
        recovered: 0,
        open: open_letters,
        quiet_for: by_itself.then_some(quiet),
        is_dropped: incident.was_dropped(),
    }
}
