//! A symptom together with what became of it when it fired.

use super::state::SymptomState;

/// What `told` begins with when the symptom is part of an incident.
const INCIDENT: &str = "incident:";

/// A symptom that fires, and who was told.
#[derive(Clone, Debug, PartialEq)]
pub struct ToldSymptom {
    /// The symptom.
    pub state: SymptomState,
    /// What became of it.
    pub told: SymptomTold,
}

/// What became of a symptom: as stored, `incident:7`, else the named reason why nobody was paged.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SymptomTold(String);

impl SymptomTold {
    /// It opened or joined the incident of this row.
    pub fn incident(id: i64) -> Self {
        Self(format!("{INCIDENT}{id}"))
    }

    /// Nobody was paged, for this named reason.
    pub fn reason(word: &str) -> Self {
        Self(word.to_owned())
    }

    /// From the store.
    pub fn stored(text: String) -> Self {
        Self(text)
    }

    /// As the store keeps it.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The incident that it is part of.
    pub fn incident_id(&self) -> Option<&str> {
        self.0.strip_prefix(INCIDENT)
    }

    /// The named reason why nobody was paged.
    pub fn why_not(&self) -> Option<&str> {
        self.incident_id().is_none().then_some(self.0.as_str()).filter(|word| !word.is_empty())
    }
}
