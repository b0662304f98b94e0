//! Symptoms of an incident: it stays open while one fires, and for the quiet time after.

use super::Incident;
use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};

/// A symptom that belongs to an incident.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct JoinedSymptom {
    /// Its key, the same for as long as its rule and workflow are.
    pub key: String,
    /// Its sentence when it joined or was last told.
    pub text: String,
    /// When it began.
    pub since: DateTime<Utc>,
    /// When it was over; none while it fires.
    pub ended_at: Option<DateTime<Utc>>,
    /// Whether it was over because nobody watches it any more: its rule was taken out of the config.
    #[serde(default)]
    pub is_dropped: bool,
    /// Whether its end is the same as that of the incident's dead letters, which are counted for themselves.
    pub is_of_letters: bool,
}

impl Incident {
    /// A symptom joins it, or fires again; nobody is told for that alone.
    pub fn join(&mut self, symptom: JoinedSymptom) {
        match self.symptoms.iter_mut().find(|s| s.key == symptom.key) {
            Some(known) => *known = JoinedSymptom { since: known.since.min(symptom.since), ..symptom },
            None => self.symptoms.push(symptom),
        }
    }

    /// A symptom of it is over. False when it is none of its own, or was over.
    pub fn end_symptom(&mut self, key: &str, now: DateTime<Utc>) -> bool {
        match self.symptoms.iter_mut().find(|s| s.key == key && s.ended_at.is_none()) {
            Some(symptom) => {
                symptom.ended_at = Some(now);
                true
            }
            None => false,
        }
    }

    /// The rule of a symptom of it is gone. False when it is none of its own, or was over.
    pub fn drop_symptom(&mut self, key: &str, now: DateTime<Utc>) -> bool {
        let has_ended = self.end_symptom(key, now);
        self.symptoms.iter_mut().filter(|s| s.key == key && has_ended).for_each(|s| s.is_dropped = true);
        has_ended
    }

    /// Whether it ended without anything being known to be over: what was left of it was symptoms whose rules are gone.
    pub fn was_dropped(&self) -> bool {
        let ended_at = self.symptoms.iter().filter_map(|s| s.ended_at).max();
        self.sample.is_none() && self.symptoms.iter().any(|s| s.is_dropped && s.ended_at == ended_at)
    }

    /// Whether a symptom of it fires.
    pub fn has_symptom(&self) -> bool {
        self.symptoms.iter().any(|s| s.ended_at.is_none())
    }

    /// When the newest failure arrived, or the last symptom was over: from then on it is quiet. A symptom of its dead letters is over
    /// when they are, which is no news.
    pub fn last_news_at(&self) -> DateTime<Utc> {
        let counts = |s: &&JoinedSymptom| !s.is_of_letters || self.sample.is_none();
        let ends = self.symptoms.iter().filter(counts).filter_map(|s| s.ended_at);
        ends.fold(self.last_failure_at, DateTime::max)
    }
}
