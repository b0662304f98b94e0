//! What dead letters that come or go could change, for whoever hears of them before the store can be asked how they stand.

use super::plan::Ask;
use super::watch::Watch;
use crate::name::WorkflowName;
use chrono::{DateTime, TimeDelta, Utc};

/// What the symptoms of a workflow ask of its dead letters, and how these stood when the store was last asked.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LetterTerms {
    /// Whether any symptom asks.
    pub is_asked: bool,
    /// Whether one of them fires: a letter that is resolved may end it.
    pub is_firing: bool,
    /// When one of them fires if no letter comes or goes.
    pub due_at: Option<DateTime<Utc>>,
    /// A letter of this age fires; the least, when several ask.
    pub age: Option<TimeDelta>,
    /// So many more letters can come before there are too many; none when nobody counts, or too many are there.
    pub room: Option<u64>,
    /// Whether each letter that comes may be one too many in its time.
    pub is_rated: bool,
}

impl Watch {
    /// What the symptoms of a workflow ask of its dead letters.
    pub fn letter_terms(&mut self, workflow: &WorkflowName) -> LetterTerms {
        let place = self.place(workflow);
        let Some(slot) = self.slots.get(place) else { return LetterTerms::default() };
        let mut terms = LetterTerms::default();
        for (applied, state) in slot.plan.rules.iter().zip(&slot.states) {
            let is_asking = terms.add(&applied.ask, slot.standing.open_count);
            terms.is_firing |= is_asking && state.is_some();
        }
        let standing = &slot.standing;
        let waits_since = standing.oldest.as_ref().map(|oldest| standing.last_resolved_at.max(Some(oldest.failed_at)));
        terms.due_at = waits_since.flatten().zip(terms.age).and_then(|(since, age)| since.checked_add_signed(age));
        terms
    }
}

impl LetterTerms {
    /// Adds what a rule asks. False when it asks nothing of dead letters.
    fn add(&mut self, ask: &Ask, open_count: u64) -> bool {
        match ask {
            Ask::DeadLetterAge { over } => {
                let age = TimeDelta::try_seconds(*over).unwrap_or(TimeDelta::MAX);
                self.age = Some(self.age.map_or(age, |known| known.min(age)));
            }
            Ask::DeadLetterDepth { over } => {
                let room = over.checked_sub(open_count);
                self.room = [self.room, room].into_iter().flatten().min();
            }
            Ask::DeadLetterRate { .. } => self.is_rated = true,
            Ask::BurnRate(_)
            | Ask::FailingStreak { .. }
            | Ask::RunFailed
            | Ask::FailureTrend { .. }
            | Ask::RetryPressure { .. }
            | Ask::Absence { .. }
            | Ask::Unhealthy { .. } => return false,
        }
        self.is_asked = true;
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::symptom::{Mode, OldestLetter, Rules, Severity, Standing, SymptomKind, SymptomRule};
    use crate::workflow::Workflows;
    use std::time::Duration;

    fn at(seconds: i64) -> DateTime<Utc> {
        DateTime::from_timestamp(1_796_000_000 + seconds, 0).unwrap()
    }

    fn watch(kinds: Vec<SymptomKind>) -> Watch {
        let rule = |(n, kind)| SymptomRule {
            name: format!("rule-{n}"),
            matcher: crate::matcher::Matcher::default(),
            kind,
            severity: Severity::Digest,
            mode: Mode::Live,
        };
        let rules: Vec<SymptomRule> = kinds.into_iter().enumerate().map(rule).collect();
        Watch::new(Rules::new(Some(&rules), &Workflows::default()))
    }

    #[test]
    fn what_asks_nothing_of_dead_letters_is_no_reason_to_ask_the_store() {
        let mut watch = watch(vec![SymptomKind::RunFailed, SymptomKind::Absence]);
        assert_eq!(watch.letter_terms(&WorkflowName::new("pay")), LetterTerms::default());
    }

    #[test]
    fn the_oldest_letter_or_the_last_progress_says_when_an_age_is_reached() {
        let hour = Some(Duration::from_secs(3_600));
        let age = SymptomKind::DeadLetterAge { over: hour };
        let mut watch = watch(vec![age, SymptomKind::DeadLetterDepth { over: Some(10) }]);
        let pay = WorkflowName::new("pay");
        let oldest = Some(OldestLetter { failed_at: at(0), name: "order-1".to_owned() });
        watch.set_standing(&pay, Standing { open_count: 4, oldest, ..Standing::default() });
        let terms = watch.letter_terms(&pay);
        assert_eq!((terms.due_at, terms.room, terms.is_firing), (Some(at(3_600)), Some(6), false));
        let oldest = Some(OldestLetter { failed_at: at(0), name: "order-1".to_owned() });
        let worked_on = Standing { open_count: 11, oldest, last_resolved_at: Some(at(60)), ..Standing::default() };
        watch.set_standing(&pay, worked_on);
        watch.look(at(60), &[]);
        let terms = watch.letter_terms(&pay);
        assert_eq!((terms.due_at, terms.room, terms.is_firing), (Some(at(3_660)), None, true));
    }
}
