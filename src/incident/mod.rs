//! Incidents of protected workflows: one cause, one page, then updates. Pure: state, reading and `now` in, transition out.
//! Reading and writing incidents is `store`'s, wording them `render`'s.
//!
//! ```text
//!  failure of a new key ─► open ──────────acknowledge──────────► acknowledged
//!                           │ ▲ remind, escalate, grow              │ ▲ grow
//!                           │ └─┘                                   │ └─┘
//!                           └── nothing open, nothing new for resolve_after, or a person ──► resolved
//! ```

mod symptom;
mod terms;

pub use symptom::JoinedSymptom;
pub use terms::{EscalationStep, Terms, key_of};

use crate::event::Event;
use crate::name::WorkflowName;
use crate::workflow::Domain;
use chrono::{DateTime, TimeDelta, Utc};
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// Failures of several workflows that one downstream causes within this time share a page (CONTRACT 7).
pub const SHARED_CAUSE_WITHIN: Duration = Duration::from_secs(600);

/// How much an incident must have grown since it was last told before it is told again.
const GROWTH_FACTOR: u64 = 10;

/// Row number of an incident.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct IncidentId(pub i64);

/// Where an incident stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum IncidentState {
    /// Nobody has taken it.
    Open,
    /// A person has taken it.
    Acknowledged,
    /// It is over.
    Resolved,
}

impl IncidentState {
    /// The stable word.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Open => "open",
            Self::Acknowledged => "acknowledged",
            Self::Resolved => "resolved",
        }
    }
}

/// What was last told, and when.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Told {
    /// Events when it was last told.
    pub events: u64,
    /// When anything was last told.
    pub at: DateTime<Utc>,
    /// When it was paged or last reminded.
    pub reminded_at: DateTime<Utc>,
    /// Steps of the escalation already taken.
    pub escalated_count: usize,
    /// Number of the page, `#N`.
    pub page_number: i64,
}

/// What an incident did to one workflow.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Hit {
    /// The workflow.
    pub workflow: WorkflowName,
    /// Final failures of it.
    pub event_count: u64,
    /// Dead letters of it that were opened.
    pub item_count: u64,
}

/// An incident.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Incident {
    /// Its row.
    pub id: IncidentId,
    /// Where it stands.
    pub state: IncidentState,
    /// Workflows that it hit, in the order of their arrival; never empty.
    pub hits: Vec<Hit>,
    /// Domain of the first.
    pub domain: Domain,
    /// When the first failure arrived.
    pub opened_at: DateTime<Utc>,
    /// When the newest failure arrived.
    pub last_failure_at: DateTime<Utc>,
    /// When a person took it.
    pub acknowledged_at: Option<DateTime<Utc>>,
    /// Who took it.
    pub acknowledged_by: Option<String>,
    /// When it was over.
    pub resolved_at: Option<DateTime<Utc>>,
    /// Who said so; none when it resolved by itself.
    pub resolved_by: Option<String>,
    /// Page messages sent about it.
    pub page_count: u64,
    /// What was last told.
    pub told: Told,
    /// What the routes asked for.
    pub terms: Terms,
    /// The first failure, as sample; none when a symptom opened it.
    pub sample: Option<Event>,
    /// Symptoms that opened or joined it, in the order of their coming.
    #[serde(default)]
    pub symptoms: Vec<JoinedSymptom>,
}

/// What the store says about an incident now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reading {
    /// Its dead letters that are not resolved.
    pub open_letters: u64,
}

/// Why an incident is told again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ReminderReason {
    /// `remind_every` has passed and nobody has acknowledged it.
    Interval,
    /// It is ten times what was last told.
    Growth,
}

impl ReminderReason {
    /// The stable word.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Interval => "interval",
            Self::Growth => "growth",
        }
    }
}

/// What is to be done about an incident at a tick.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Transition {
    /// Nothing.
    Rest,
    /// Tell it again.
    Remind(ReminderReason),
    /// Tell the receivers of this step.
    Escalate(EscalationStep),
    /// It is over.
    Resolve,
}

impl Incident {
    /// Opens one from its first failure. The page is told in the same transaction.
    pub fn open(id: IncidentId, event: &Event, domain: Domain, terms: Terms, page_number: i64) -> Self {
        let hits = vec![Hit { workflow: event.workflow.clone(), event_count: 1, item_count: 0 }];
        // The item itself is kept with its dead letter.
        let sample = Event { payload: None, ..event.clone() };
        Self { sample: Some(sample), ..Self::begin(id, hits, domain, terms, page_number, event.received_at) }
    }

    /// Opens one from a symptom of these workflows. The page is told in the same transaction.
    pub fn open_by_symptom(
        id: IncidentId,
        symptom: JoinedSymptom,
        workflows: &[WorkflowName],
        domain: Domain,
        terms: Terms,
        page_number: i64,
        now: DateTime<Utc>,
    ) -> Self {
        let hits = workflows.iter().map(|w| Hit { workflow: w.clone(), event_count: 0, item_count: 0 }).collect();
        Self { symptoms: vec![symptom], ..Self::begin(id, hits, domain, terms, page_number, now) }
    }

    fn begin(
        id: IncidentId,
        hits: Vec<Hit>,
        domain: Domain,
        terms: Terms,
        page_number: i64,
        at: DateTime<Utc>,
    ) -> Self {
        let events = hits.iter().map(|h| h.event_count).sum();
        Self {
            id,
            state: IncidentState::Open,
            hits,
            domain,
            opened_at: at,
            last_failure_at: at,
            acknowledged_at: None,
            acknowledged_by: None,
            resolved_at: None,
            resolved_by: None,
            page_count: 1,
            told: Told { events, at, reminded_at: at, escalated_count: 0, page_number },
            terms,
            sample: None,
            symptoms: Vec::new(),
        }
    }

    /// The dependency that its first failure names.
    pub fn downstream(&self) -> Option<&str> {
        self.sample.as_ref()?.downstream.as_deref()
    }

    /// Whether it is ten times what was last told.
    fn has_grown(&self) -> bool {
        self.event_count() >= self.told.events.max(1).saturating_mul(GROWTH_FACTOR)
    }

    /// Counts one more failure.
    pub fn add_failure(&mut self, event: &Event) {
        self.last_failure_at = self.last_failure_at.max(event.received_at);
        match self.hits.iter_mut().find(|h| h.workflow == event.workflow) {
            Some(hit) => hit.event_count += 1,
            None => self.hits.push(Hit { workflow: event.workflow.clone(), event_count: 1, item_count: 0 }),
        }
    }

    /// Counts one more dead letter of `workflow`.
    pub fn add_item(&mut self, workflow: &WorkflowName) {
        if let Some(hit) = self.hits.iter_mut().find(|h| h.workflow == *workflow) {
            hit.item_count += 1;
        }
    }

    /// Final failures that belong to it.
    pub fn event_count(&self) -> u64 {
        self.hits.iter().map(|h| h.event_count).sum()
    }

    /// Dead letters that were opened for it.
    pub fn item_count(&self) -> u64 {
        self.hits.iter().map(|h| h.item_count).sum()
    }

    /// Whether it hit `workflow`.
    pub fn has_hit(&self, workflow: &WorkflowName) -> bool {
        self.hits.iter().any(|h| h.workflow == *workflow)
    }

    /// Whether a failure of another workflow at `at` with this downstream shares its page.
    /// It does only when everybody whom `terms` would page was paged, and nobody has taken it as something smaller.
    pub fn shares_cause(&self, downstream: &str, terms: &Terms, at: DateTime<Utc>) -> bool {
        self.state == IncidentState::Open
            && self.downstream() == Some(downstream)
            && terms.page.iter().all(|receiver| self.terms.page.contains(receiver))
            && passed(self.opened_at, at) <= SHARED_CAUSE_WITHIN
    }

    /// A person takes it. False when it was taken or over already.
    pub fn acknowledge(&mut self, by: Option<String>, now: DateTime<Utc>) -> bool {
        match self.state {
            IncidentState::Open => {
                self.state = IncidentState::Acknowledged;
                self.acknowledged_at = Some(now);
                self.acknowledged_by = by;
                true
            }
            IncidentState::Acknowledged | IncidentState::Resolved => false,
        }
    }

    /// It is over: by a person, or by itself when `by` is none. False when it was over already.
    pub fn resolve(&mut self, by: Option<String>, now: DateTime<Utc>) -> bool {
        match self.state {
            IncidentState::Open | IncidentState::Acknowledged => {
                self.state = IncidentState::Resolved;
                self.resolved_at = Some(now);
                self.resolved_by = by;
                true
            }
            IncidentState::Resolved => false,
        }
    }

    /// Keeps what a transition tells, in the transaction that enqueues it.
    pub fn note_told(&mut self, transition: &Transition, now: DateTime<Utc>) {
        match transition {
            Transition::Rest | Transition::Resolve => {}
            Transition::Remind(ReminderReason::Growth) => {
                self.told.events = self.event_count();
                self.told.at = now;
            }
            Transition::Remind(ReminderReason::Interval) => {
                self.told.events = self.event_count();
                self.told.at = now;
                self.told.reminded_at = now;
            }
            Transition::Escalate(_) => {
                self.told.at = now;
                self.told.escalated_count += 1;
            }
        }
    }
}

/// Time from `from` to `to`, zero when the clock was stepped back.
fn passed(from: DateTime<Utc>, to: DateTime<Utc>) -> Duration {
    (to - from).to_std().unwrap_or_default()
}

/// What is to be done about `incident` at `now`. One transition a tick: the most final first.
pub fn advance(incident: &Incident, reading: Reading, now: DateTime<Utc>) -> Transition {
    let acknowledged = match incident.state {
        IncidentState::Resolved => return Transition::Rest,
        IncidentState::Open => false,
        IncidentState::Acknowledged => true,
    };
    let terms = &incident.terms;
    let is_over = reading.open_letters == 0 && !incident.has_symptom();
    if is_over && passed(incident.last_news_at(), now) >= terms.resolve_after {
        return Transition::Resolve;
    }
    if !acknowledged
        && let Some(step) = terms.escalate.get(incident.told.escalated_count)
        && passed(incident.opened_at, now) >= step.after
    {
        return Transition::Escalate(step.clone());
    }
    if incident.has_grown() && passed(incident.told.at, now) >= terms.growth_every {
        return Transition::Remind(ReminderReason::Growth);
    }
    match terms.remind_every {
        Some(every) if !acknowledged && passed(incident.told.reminded_at, now) >= every => {
            Transition::Remind(ReminderReason::Interval)
        }
        _ => Transition::Rest,
    }
}

/// When `advance` next gives something else than `Rest`, if nothing happens before; for an incident that rests now.
pub fn next_change_at(incident: &Incident, reading: Reading) -> Option<DateTime<Utc>> {
    let waits_for_somebody = match incident.state {
        IncidentState::Resolved => return None,
        IncidentState::Open => true,
        IncidentState::Acknowledged => false,
    };
    let (terms, told) = (&incident.terms, &incident.told);
    let is_over = reading.open_letters == 0 && !incident.has_symptom();
    let resolved = is_over.then(|| (incident.last_news_at(), terms.resolve_after));
    let grows = incident.has_grown().then_some((told.at, terms.growth_every));
    let step = terms.escalate.get(told.escalated_count).map(|step| (incident.opened_at, step.after));
    let reminds = terms.remind_every.map(|every| (told.reminded_at, every));
    let unheard = [step, reminds].into_iter().filter(|_| waits_for_somebody);
    let waits = [resolved, grows].into_iter().chain(unheard).flatten();
    waits.filter_map(|(from, wait)| from.checked_add_signed(TimeDelta::from_std(wait).ok()?)).min()
}

/// How many more failures make `incident` worth telling again.
pub fn failures_until_grown(incident: &Incident) -> u64 {
    incident.told.events.max(1).saturating_mul(GROWTH_FACTOR).saturating_sub(incident.event_count())
}

#[cfg(test)]
mod tests;
