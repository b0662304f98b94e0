//! The state of a symptom and how it changes.
//!
//! ```text
//!            Firing: Fired            Quiet: Cleared
//!   quiet ─────────────────► firing ─────────────────► quiet
//!     │ Quiet, Unknown: Rest    │ Firing: Rest, another tier: Moved
//!                               │ Unknown: Held (once), state kept
//!                               ▼
//!                             held ── Firing: as from firing · Quiet: Cleared · Unknown: Rest
//! ```
//! What has cleared but still burns is kept as `cooling`: for others to know, it is quiet. What is read lives in the files
//! of the kinds.

use super::rule::{Mode, Severity};
use crate::name::WorkflowName;
use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};

/// What a symptom is of: one rule, one workflow, one subject such as a downstream.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct SymptomKey {
    /// Name of the rule.
    pub rule: String,
    /// The workflow, none for what several share.
    pub workflow: Option<WorkflowName>,
    /// `downstream:hubspot`, `error:CertExpired`; none for what a workflow has only once.
    pub subject: Option<String>,
}

impl SymptomKey {
    /// A stable text: the parts joined by `/`, with `/` and `%` in them escaped.
    pub fn id(&self) -> String {
        let escape = |text: &str| text.replace('%', "%25").replace('/', "%2F");
        let workflow = self.workflow.as_ref().map(|name| escape(name.as_str())).unwrap_or_default();
        let mut id = format!("{}/{workflow}", escape(&self.rule));
        if let Some(subject) = &self.subject {
            id.push('/');
            id.push_str(&escape(subject));
        }
        id
    }
}

/// A symptom that fires, or that has just cleared and is still hot.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SymptomState {
    /// What it is of.
    pub key: SymptomKey,
    /// The word of its kind: `burn_rate`.
    pub kind: String,
    /// How urgent it is now; a tier has its own.
    pub severity: Severity,
    /// Whether anybody is told.
    pub mode: Mode,
    /// The highest tier that fires, of `burn_rate` only.
    pub tier: Option<String>,
    /// All tiers that fire, highest first.
    pub tiers: Vec<String>,
    /// When it fired.
    pub since: DateTime<Utc>,
    /// When it cleared; it is kept only while it is hot.
    pub cleared_at: Option<DateTime<Utc>>,
    /// The number behind it: a burn rate, a count, seconds; by kind.
    pub value: f64,
    /// The bold half of its sentence, without a full stop.
    pub text: String,
    /// The other sentences, each with its full stop.
    pub detail: String,
    /// Workflows that it speaks of.
    pub workflows: Vec<WorkflowName>,
    /// Why the state is only held: nothing is known at present.
    pub held: Option<String>,
    /// An incident of it is not over: it fires, but a burn rate that fires for a ticket only while it still burns above
    /// what the objective allows; or it has just cleared and still burns; or it is held. Delays neither firing nor clearing.
    pub is_hot: bool,
}

impl SymptomState {
    /// Whether it ends when the dead letters of its workflow do.
    pub fn is_of_letters(&self) -> bool {
        self.kind.starts_with("dead_letter")
    }

    /// Whether it fires; else it has cleared and is only hot.
    pub fn is_firing(&self) -> bool {
        self.cleared_at.is_none()
    }
}

/// What changed at a look.
#[derive(Clone, Debug, PartialEq)]
pub enum Change {
    /// It fires now.
    Fired(SymptomState),
    /// Another tier of it fires now.
    Moved(SymptomState),
    /// It fires no more.
    Cleared(SymptomState),
    /// It fires, but nothing new is known: told once.
    Held(SymptomState),
}

impl Change {
    /// The state after it.
    pub fn state(&self) -> &SymptomState {
        match self {
            Self::Fired(state) | Self::Moved(state) | Self::Cleared(state) | Self::Held(state) => state,
        }
    }
}

/// What one rule finds of one workflow or subject.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Reading {
    /// Nothing; hot when it still burns.
    Quiet { is_hot: bool },
    /// Nothing can be said, and why.
    Unknown(String),
    /// A symptom.
    Firing(Finding),
}

impl Reading {
    /// Nothing, and nothing burns.
    pub const QUIET: Self = Self::Quiet { is_hot: false };
}

/// A symptom as it is found.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Finding {
    pub severity: Severity,
    /// Highest first; only of a burn rate.
    pub tiers: Vec<String>,
    pub value: f64,
    pub text: String,
    pub detail: String,
    pub workflows: Vec<WorkflowName>,
    /// Part of it is only held.
    pub held: Option<String>,
    /// Whether an incident of it is not over.
    pub is_hot: bool,
}

/// How a state changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Transition {
    Rest,
    Fired,
    Moved,
    Cleared,
    Held,
}

impl Transition {
    /// The change to tell; none when there is nothing to tell.
    pub fn told(self, state: SymptomState) -> Option<Change> {
        match self {
            Self::Rest => None,
            Self::Fired => Some(Change::Fired(state)),
            Self::Moved => Some(Change::Moved(state)),
            Self::Cleared => Some(Change::Cleared(state)),
            Self::Held => Some(Change::Held(state)),
        }
    }
}

/// What a symptom is called, whatever its state.
pub(super) struct Head<'a> {
    pub rule: &'a str,
    pub workflow: Option<&'a WorkflowName>,
    pub subject: Option<&'a str>,
    pub kind: &'a str,
    pub mode: Mode,
}

/// The phase of a state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    Quiet,
    Firing,
    Held,
    Cooling,
}

fn phase(state: Option<&SymptomState>) -> Phase {
    match state {
        None => Phase::Quiet,
        Some(state) if state.cleared_at.is_some() => Phase::Cooling,
        Some(state) if state.held.is_some() => Phase::Held,
        Some(_) => Phase::Firing,
    }
}

/// One reading later: how it changed, and the state to tell of. Whether it is kept is said by [`is_kept`].
pub(super) fn advance(
    head: &Head<'_>,
    before: Option<SymptomState>,
    reading: Reading,
    at: DateTime<Utc>,
) -> (Transition, Option<SymptomState>) {
    match (phase(before.as_ref()), reading) {
        (Phase::Quiet, Reading::Quiet { .. } | Reading::Unknown(_)) => (Transition::Rest, None),
        (Phase::Quiet | Phase::Cooling, Reading::Firing(finding)) => {
            (Transition::Fired, Some(state_of(head, finding, at)))
        }
        (Phase::Cooling, Reading::Quiet { is_hot }) => (Transition::Rest, before.filter(|_| is_hot)),
        // Nobody can say that it still burns, and it does not fire.
        (Phase::Cooling, Reading::Unknown(_)) => (Transition::Rest, None),
        (Phase::Firing | Phase::Held, Reading::Firing(finding)) => burns_on(head, before, finding, at),
        (Phase::Firing | Phase::Held, Reading::Quiet { is_hot }) => {
            let cleared = before.map(|state| SymptomState { cleared_at: Some(at), held: None, is_hot, ..state });
            (Transition::Cleared, cleared)
        }
        (Phase::Firing, Reading::Unknown(why)) => {
            (Transition::Held, before.map(|state| SymptomState { held: Some(why), is_hot: true, ..state }))
        }
        (Phase::Held, Reading::Unknown(why)) => {
            (Transition::Rest, before.map(|state| SymptomState { held: Some(why), ..state }))
        }
    }
}

/// Whether a state is remembered: it fires, or it is still hot.
pub(super) fn is_kept(state: &SymptomState) -> bool {
    state.cleared_at.is_none() || state.is_hot
}

fn burns_on(
    head: &Head<'_>,
    before: Option<SymptomState>,
    finding: Finding,
    at: DateTime<Utc>,
) -> (Transition, Option<SymptomState>) {
    let was_tier = before.as_ref().and_then(|state| state.tier.clone());
    let was_held = before.as_ref().is_some_and(|state| state.held.is_some());
    let since = before.map_or(at, |state| state.since);
    let now = SymptomState { since, ..state_of(head, finding, at) };
    let transition = match (was_tier == now.tier, was_held, now.held.is_some()) {
        (false, _, _) => Transition::Moved,
        (true, false, true) => Transition::Held,
        (true, true, _) | (true, false, false) => Transition::Rest,
    };
    (transition, Some(now))
}

fn state_of(head: &Head<'_>, finding: Finding, at: DateTime<Utc>) -> SymptomState {
    SymptomState {
        key: SymptomKey {
            rule: head.rule.to_owned(),
            workflow: head.workflow.cloned(),
            subject: head.subject.map(str::to_owned),
        },
        kind: head.kind.to_owned(),
        severity: finding.severity,
        mode: head.mode,
        tier: finding.tiers.first().cloned(),
        tiers: finding.tiers,
        since: at,
        cleared_at: None,
        value: finding.value,
        text: finding.text,
        detail: finding.detail,
        workflows: finding.workflows,
        held: finding.held,
        is_hot: finding.is_hot,
    }
}
