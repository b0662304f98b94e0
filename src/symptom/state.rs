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
//! of the kinds. Where a rule is gone, what it found is dropped: that is no clearing.

use super::rule::{Mode, Severity};
use super::sentence::Sentence;
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

    /// The key with this text, none when it is not one.
    pub fn of_id(id: &str) -> Option<Self> {
        let unescape = |text: &str| text.replace("%2F", "/").replace("%25", "%");
        let (rule, rest) = id.split_once('/')?;
        let (workflow, subject) = match rest.split_once('/') {
            Some((workflow, subject)) => (workflow, Some(unescape(subject))),
            None => (rest, None),
        };
        let workflow = (!workflow.is_empty()).then(|| WorkflowName::new(unescape(workflow)));
        Some(Self { rule: unescape(rule), workflow, subject })
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
    /// Nobody watches it any more: its rule is gone, or is no longer for its workflow. Whether it still fires is not known.
    Dropped(SymptomState),
}

impl Change {
    /// The end of a state whose rule is gone; none when it did not fire.
    pub(super) fn dropped(state: SymptomState, at: DateTime<Utc>) -> Option<Self> {
        let is_firing = state.is_firing();
        let dropped = SymptomState { cleared_at: Some(at), held: None, is_hot: false, ..state };
        is_firing.then_some(Self::Dropped(dropped))
    }

    /// The state after it.
    pub fn state(&self) -> &SymptomState {
        match self {
            Self::Fired(state)
            | Self::Moved(state)
            | Self::Cleared(state)
            | Self::Held(state)
            | Self::Dropped(state) => state,
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
    /// None when those of before will do.
    pub words: Option<Sentence>,
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

/// What a look finds.
#[derive(Debug, Default)]
pub(super) struct Seen {
    /// What changed.
    pub changes: Vec<Change>,
    /// Symptoms that are remembered no more.
    pub gone: Vec<SymptomKey>,
}

impl Seen {
    /// The rule of a symptom is gone.
    pub fn dropped(&mut self, state: SymptomState, at: DateTime<Utc>) {
        self.gone.push(state.key.clone());
        self.changes.extend(Change::dropped(state, at));
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
    let Some(before) = before else { return (Transition::Fired, Some(state_of(head, finding, at))) };
    let transition =
        match (before.tier.as_ref() == finding.tiers.first(), before.held.is_some(), finding.held.is_some()) {
            (false, _, _) => Transition::Moved,
            (true, false, true) => Transition::Held,
            (true, true, _) | (true, false, false) => Transition::Rest,
        };
    let Sentence { text, detail } = finding.words.unwrap_or(Sentence { text: before.text, detail: before.detail });
    let now = SymptomState {
        severity: finding.severity,
        mode: head.mode,
        tier: finding.tiers.first().cloned(),
        tiers: finding.tiers,
        value: finding.value,
        text,
        detail,
        workflows: finding.workflows,
        is_hot: finding.is_hot || finding.held.is_some(),
        held: finding.held,
        ..before
    };
    (transition, Some(now))
}

fn state_of(head: &Head<'_>, finding: Finding, at: DateTime<Utc>) -> SymptomState {
    let Sentence { text, detail } = finding.words.unwrap_or_default();
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
        text,
        detail,
        workflows: finding.workflows,
        is_hot: finding.is_hot || finding.held.is_some(),
        held: finding.held,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(second: i64) -> DateTime<Utc> {
        DateTime::from_timestamp(1_798_588_800 + second, 0).unwrap()
    }

    fn finding(tier: &str) -> Finding {
        Finding {
            severity: Severity::Page,
            tiers: vec![tier.to_owned()],
            value: 1.0,
            words: Some(Sentence { text: format!("over {tier}"), detail: String::new() }),
            workflows: vec![],
            held: None,
            is_hot: true,
        }
    }

    fn step(before: Option<SymptomState>, reading: Reading) -> (Transition, Option<SymptomState>) {
        let head = Head { rule: "burn", workflow: None, subject: None, kind: "burn_rate", mode: Mode::Live };
        let (transition, after) = advance(&head, before, reading, at(60));
        (transition, after.filter(is_kept))
    }

    /// A state of each phase, with its word.
    fn states() -> Vec<(&'static str, Option<SymptomState>)> {
        let head = Head { rule: "burn", workflow: None, subject: None, kind: "burn_rate", mode: Mode::Live };
        let firing = state_of(&head, finding("slow"), at(0));
        let held = SymptomState { held: Some("no runs".to_owned()), ..firing.clone() };
        let cooling = SymptomState { cleared_at: Some(at(30)), ..firing.clone() };
        vec![("quiet", None), ("firing", Some(firing)), ("held", Some(held)), ("cooling", Some(cooling))]
    }

    #[test]
    fn every_state_answers_every_reading() {
        let readings = || {
            vec![
                ("quiet", Reading::QUIET),
                ("hot", Reading::Quiet { is_hot: true }),
                ("unknown", Reading::Unknown("no runs".to_owned())),
                ("same", Reading::Firing(finding("slow"))),
                ("other", Reading::Firing(finding("fast"))),
            ]
        };
        let mut table = String::new();
        for (from, before) in states() {
            for (word, reading) in readings() {
                let (transition, after) = step(before.clone(), reading);
                let to = ["quiet", "firing", "held", "cooling"][phase(after.as_ref()) as usize];
                table.push_str(&format!("{from:8}{word:8}{transition:?} {to}\n"));
            }
        }
        insta::assert_snapshot!(table, @r"
        quiet   quiet   Rest quiet
        quiet   hot     Rest quiet
        quiet   unknown Rest quiet
        quiet   same    Fired firing
        quiet   other   Fired firing
        firing  quiet   Cleared quiet
        firing  hot     Cleared cooling
        firing  unknown Held held
        firing  same    Rest firing
        firing  other   Moved firing
        held    quiet   Cleared quiet
        held    hot     Cleared cooling
        held    unknown Rest held
        held    same    Rest firing
        held    other   Moved firing
        cooling quiet   Rest quiet
        cooling hot     Rest cooling
        cooling unknown Rest quiet
        cooling same    Fired firing
        cooling other   Fired firing
        ");
    }

    #[test]
    fn a_symptom_that_goes_on_keeps_when_it_began_and_its_words_unless_there_are_new_ones() {
        let before = states().remove(1).1;
        let (_, after) = step(before, Reading::Firing(Finding { words: None, value: 2.0, ..finding("slow") }));
        let after = after.unwrap();
        assert_eq!((after.since, after.text.as_str(), after.value), (at(0), "over slow", 2.0));
        let (_, again) =
            step(Some(SymptomState { cleared_at: Some(at(30)), ..after }), Reading::Firing(finding("slow")));
        assert_eq!(again.unwrap().since, at(60), "it fires anew");
    }

    #[test]
    fn an_id_is_stable_and_has_one_reading() {
        let key = |rule: &str, workflow: Option<&str>, subject: Option<&str>| {
            let (workflow, subject) = (workflow.map(WorkflowName::from), subject.map(str::to_owned));
            SymptomKey { rule: rule.to_owned(), workflow, subject }.id()
        };
        assert_eq!(key("burn_rate", Some("order-to-crm"), None), "burn_rate/order-to-crm");
        assert_eq!(key("systemic", None, Some("downstream:a/b%")), "systemic//downstream:a%2Fb%25");
        assert_ne!(key("a/b", Some("c"), None), key("a", Some("b/c"), None));
    }
}
