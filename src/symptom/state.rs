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
//! What is read lives in the files of the kinds.

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
    /// Still burning above what the objective allows, or held: an incident is not over yet. Delays neither firing nor
    /// clearing of the symptom.
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
