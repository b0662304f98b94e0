//! A symptom as the API shows it.

use crate::symptom::{Severity, ToldSymptom};
use crate::web::input::At;
use serde::Serialize;
use utoipa::ToSchema;

/// A symptom that fires.
#[derive(Debug, Serialize, ToSchema)]
pub struct SymptomView {
    /// Its name.
    pub symptom: String,
    /// `burn_rate`, `absence` …
    pub kind: String,
    /// The workflow it speaks of.
    pub workflow: Option<String>,
    /// Of `burn_rate`: the tier.
    pub tier: Option<String>,
    /// `firing`.
    pub state: &'static str,
    /// Since when.
    pub since: At,
    /// What was measured: a burn rate, a count, seconds; by kind.
    pub value: f64,
    /// A sentence with numbers.
    pub text: String,
    /// Numbers behind it, in sentences.
    pub detail: String,
    /// All workflows that it speaks of.
    pub workflows: Vec<String>,
    /// What several workflows share: `downstream:hubspot`.
    pub subject: Option<String>,
    /// `page` or `digest`.
    pub severity: &'static str,
    /// Why nothing new is known of it, when that is so.
    pub held: Option<String>,
    /// The incident that it is part of.
    pub incident: Option<String>,
    /// The named reason why nobody was paged.
    pub reason: Option<String>,
}

impl SymptomView {
    /// As of the last look.
    pub fn new(symptom: &ToldSymptom) -> Self {
        let state = &symptom.state;
        Self {
            symptom: state.key.rule.clone(),
            kind: state.kind.clone(),
            workflow: state.key.workflow.as_ref().map(ToString::to_string),
            tier: state.tier.clone(),
            state: "firing",
            since: At(state.since),
            value: state.value,
            text: state.text.clone(),
            detail: state.detail.clone(),
            workflows: state.workflows.iter().map(ToString::to_string).collect(),
            subject: state.key.subject.clone(),
            severity: match state.severity {
                Severity::Page => "page",
                Severity::Digest => "digest",
            },
            held: state.held.clone(),
            incident: symptom.told.incident_id().map(str::to_owned),
            reason: symptom.told.why_not().map(str::to_owned),
        }
    }
}
