//! What is known about an incident when a message about it is due: the input of `page_view`. No words here, and no layout.

use crate::event::{Class, Disposition, ErrorInfo, Event, Fingerprint};
use crate::name::WorkflowName;
use crate::workflow::Domain;
use chrono::{DateTime, Utc};
use chrono_tz::Tz;
use std::collections::BTreeMap;
use std::time::Duration;

/// Why an incident is spoken of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum PageKind {
    /// It opened.
    Page,
    /// It is still open, and `remind_every` has passed.
    Reminder,
    /// It grew to ten times what was last told; sent as a reminder.
    Growth,
    /// Nobody acknowledged it.
    Escalation,
    /// It is over.
    Resolved,
}

impl PageKind {
    /// Every kind.
    pub const ALL: [Self; 5] = [Self::Page, Self::Reminder, Self::Growth, Self::Escalation, Self::Resolved];

    /// The stable word, which is also the folder of its template.
    pub fn template(self) -> &'static str {
        match self {
            Self::Page => "page",
            Self::Reminder | Self::Growth => "reminder",
            Self::Escalation => "escalation",
            Self::Resolved => "resolved",
        }
    }

    /// The stable word for why, within a kind.
    pub fn reason(self) -> &'static str {
        match self {
            Self::Page => "opened",
            Self::Reminder => "remind_every",
            Self::Growth => "growth",
            Self::Escalation => "unacknowledged",
            Self::Resolved => "resolved",
        }
    }
}

/// A workflow that an incident is about.
#[derive(Clone, Debug, PartialEq)]
pub struct PagedWorkflow {
    /// Its name.
    pub name: WorkflowName,
    /// What is at stake.
    pub domain: Domain,
    /// As config writes it.
    pub owner: Option<String>,
    /// As config writes it.
    pub runbook: Option<String>,
    /// Singular noun of one item; `item` when none is set.
    pub item_noun: Option<String>,
    /// Final failures of it in the incident.
    pub events: u64,
    /// Different items among them; zero when none was named.
    pub items: u64,
}

/// The failure that a page shows.
#[derive(Clone, Debug, PartialEq)]
pub struct FailureSample {
    /// Where it failed.
    pub step: Option<String>,
    /// What failed.
    pub item: Option<String>,
    /// Which dependency failed.
    pub downstream: Option<String>,
    /// Kind of fault.
    pub class: Class,
    /// What it said.
    pub error: ErrorInfo,
    /// 1-based try.
    pub attempt: Option<u32>,
    /// What became of it.
    pub disposition: Disposition,
    /// Its cause.
    pub fingerprint: Fingerprint,
    /// Name to address.
    pub links: BTreeMap<String, String>,
}

impl From<&Event> for FailureSample {
    fn from(event: &Event) -> Self {
        Self {
            step: event.step.clone(),
            item: event.item.clone(),
            downstream: event.downstream.clone(),
            class: event.class,
            error: event.error.clone(),
            attempt: event.attempt,
            disposition: event.disposition,
            fingerprint: event.fingerprint.clone(),
            links: event.links.clone(),
        }
    }
}

/// Who took an incident on.
#[derive(Clone, Debug, PartialEq)]
pub struct Acknowledgement {
    /// The name that the person gave or signed in with.
    pub by: String,
    /// When.
    pub at: DateTime<Utc>,
}

/// What comes next when nobody acknowledges.
#[derive(Clone, Debug, PartialEq)]
pub struct NextEscalation {
    /// Names of the receivers.
    pub to: Vec<String>,
    /// From now.
    pub after: Duration,
}

/// How an incident ended.
#[derive(Clone, Debug, PartialEq)]
pub struct Resolution {
    /// When the last of it was over.
    pub at: DateTime<Utc>,
    /// The person who closed it; none when it closed by itself.
    pub by: Option<String>,
    /// What the person wrote.
    pub note: Option<String>,
    /// Dead letters of it that are resolved.
    pub resolved: u64,
    /// Those among them that went through in the end: recovered or redriven.
    pub recovered: u64,
    /// Dead letters of it that are still open.
    pub open: u64,
    /// How long nothing new has come.
    pub quiet_for: Option<Duration>,
    /// Whether it ended because the rules of its symptoms are gone from config, not because anything is known to be over.
    pub is_dropped: bool,
}

/// Everything that a message about an incident says.
#[derive(Clone, Debug, PartialEq)]
pub struct PageFacts {
    /// `#N` of this message.
    pub number: i64,
    /// `#N` of the incident's first page; the same as `number` on that page.
    pub first_number: i64,
    /// Why it is sent.
    pub kind: PageKind,
    /// `page` or `digest`.
    pub severity: String,
    /// The instant at which it was decided.
    pub now: DateTime<Utc>,
    /// The zone that times are shown in.
    pub zone: Tz,
    /// When the incident's first failure happened.
    pub since: DateTime<Utc>,
    /// The workflows that it is about, the first opened first. Never empty in practice; empty reads as an unnamed one.
    pub workflows: Vec<PagedWorkflow>,
    /// A failure; none when only symptoms opened it.
    pub sample: Option<FailureSample>,
    /// The item that has waited longest.
    pub oldest_item: Option<String>,
    /// Sentences of the symptoms that belong to it.
    pub symptoms: Vec<String>,
    /// Dead letters of it that are open now.
    pub open_dead_letters: u64,
    /// Signed address of the acknowledge page; none once acknowledged or resolved.
    pub acknowledge_url: Option<String>,
    /// The incident on the web.
    pub incident_url: Option<String>,
    /// Its dead letters on the web.
    pub dead_letters_url: Option<String>,
    /// Who took it on.
    pub acknowledged: Option<Acknowledgement>,
    /// When the next reminder is due, from now.
    pub remind_in: Option<Duration>,
    /// Who is told next, unless somebody acknowledges.
    pub escalation: Option<NextEscalation>,
    /// How it ended; only for `Resolved`.
    pub resolution: Option<Resolution>,
}
