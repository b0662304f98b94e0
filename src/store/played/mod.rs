//! What a store that is played into keeps in memory instead of in its database: each statement is a step between two threads, which
//! took longer than all the rest of a play, and nothing of a play has to survive a kill. The statements beside each call say what is
//! right; what is here gives the same, with instants cut to the millisecond as they are. Without counterpart are events, heartbeats, and
//! when workflows were first heard and last had a letter resolved: nothing of a play asks for them.

mod counters;
mod incidents;
mod intake;
mod ledger;
mod letters;

pub use counters::Counters;
pub use incidents::IncidentTable;
pub use intake::IntakeTables;
pub use ledger::Ledger;
pub use letters::{LetterStep, LetterTable, Resolved};

use super::digest_input::{Happened, Lists, OpenIncident};
use super::incidents::Unresolved;
use super::key::Key;
use super::letters::Returned;
use crate::digest::Window;
use crate::event::Class;
use crate::name::WorkflowName;
use chrono::{DateTime, TimeDelta, Utc};
use sqlx::SqliteConnection;
use std::collections::BTreeMap;

/// All that a store which is played into has.
#[derive(Debug)]
pub struct Played {
    /// To a database without tables.
    pub(super) connection: SqliteConnection,
    /// Counters.
    pub counters: Counters,
    /// Workflows, causes, decisions.
    pub intake: IntakeTables,
    /// Dead letters.
    pub letters: LetterTable,
    /// Incidents.
    pub incidents: IncidentTable,
    /// Digests and the outbox.
    pub ledger: Ledger,
}

impl Played {
    pub(super) fn new(connection: SqliteConnection) -> Self {
        Self {
            connection,
            counters: Counters::default(),
            intake: IntakeTables::default(),
            letters: LetterTable::default(),
            incidents: IncidentTable::default(),
            ledger: Ledger::default(),
        }
    }

    /// Letters of causes were resolved: causes that have no open letter left are marked, and those that have returned.
    pub fn note_changes(&mut self, resolved: &[Resolved], returned: Option<Returned<'_>>) {
        let mut newest: BTreeMap<i64, DateTime<Utc>> = BTreeMap::new();
        for (cause, at) in resolved {
            let last = newest.entry(*cause).or_insert(*at);
            *last = at.max(last).to_owned();
        }
        for (id, at) in newest {
            if self.letters.open_of_cause(id) == 0
                && let Some(cause) = self.intake.cause_mut(id)
            {
                cause.resolved_at = Some(at);
            }
        }
        if let Some(Returned { causes, at }) = returned {
            self.intake.note_returned(causes, at);
        }
    }

    /// What happened in a window, and in the one before as one bucket.
    pub fn happened(&self, (window, bucket): (Window, TimeDelta), before: Window) -> Happened {
        let lists = |window: Window, bucket: TimeDelta| {
            let (opened, resolved) = self.letters.lists(window, bucket);
            Lists { counts: self.counters.counts(window, bucket), opened, resolved }
        };
        Happened {
            lists: lists(window, bucket),
            before: lists(before, before.end_at - before.start_at),
            shift: self.letters.shift(window),
            regressed: self.intake.regressed(window),
            unreadable: self.intake.unreadable(window),
        }
    }

    /// Incidents that were open at some instant of a window, oldest first.
    pub fn incidents_in(&self, window: Window) -> Vec<OpenIncident> {
        let open = |row: &incidents::Row| OpenIncident {
            incident: row.incident.clone(),
            open_letters: self.letters.open_of_incident(row.incident.id.0),
            decisions: self.intake.decisions_of(row.incident.id.0),
        };
        self.incidents.open_in(window).into_iter().map(open).collect()
    }

    /// Every unresolved incident with its open dead letters, oldest first.
    pub fn unresolved(&self) -> Vec<Unresolved> {
        self.incidents.unresolved().map(|row| self.with_letters(row)).collect()
    }

    pub(super) fn with_letters(&self, row: &incidents::Row) -> Unresolved {
        let open_letters = self.letters.open_of_incident(row.incident.id.0);
        Unresolved { incident: row.incident.clone(), version: row.version, open_letters }
    }

    /// Workflows of the newest letters for a digest and receiver that arrived before `until`, newest first, at most `limit`.
    pub fn last_letters(
        &self,
        (digest, receiver): (&str, &str),
        until: DateTime<Utc>,
        limit: usize,
    ) -> Vec<WorkflowName> {
        let Some(decisions) = self.intake.decisions_for(digest, receiver) else { return Vec::new() };
        let ours = self.letters.newest(until).filter(|letter| decisions.contains(&letter.pair.1));
        let workflows = ours.filter_map(|letter| Some(self.intake.cause_of(letter.pair.0)?.workflow.clone()));
        workflows.take(limit).collect()
    }

    /// Key and workflow of an open letter.
    pub fn open_key(&self, id: i64) -> Option<(Key, WorkflowName)> {
        let letter = self.letters.row(id).filter(|letter| letter.resolved_at.is_none())?;
        Some((letter.key, self.intake.cause_of(letter.pair.0)?.workflow.clone()))
    }

    /// The workflow of a cause.
    pub fn workflow_of_cause(&self, id: i64) -> Option<WorkflowName> {
        Some(self.intake.cause_of(id)?.workflow.clone())
    }

    /// Letters that were opened or resolved since the last call, in order.
    pub fn take_letter_news(&mut self) -> Vec<LetterNews> {
        let told = |news: letters::News| {
            let cause = self.intake.cause_of(news.cause)?;
            Some(LetterNews {
                at: news.at,
                step: news.step,
                workflow: cause.workflow.clone(),
                class: cause.class,
                item: news.item,
                text: news.text,
                incident_id: news.incident_id,
            })
        };
        self.letters.take_news().into_iter().filter_map(told).collect()
    }
}

/// A dead letter that was opened or resolved.
#[derive(Clone, Debug, PartialEq)]
pub struct LetterNews {
    /// When.
    pub at: DateTime<Utc>,
    /// Which of the two.
    pub step: LetterStep,
    /// Pipeline.
    pub workflow: WorkflowName,
    /// Kind of fault.
    pub class: Class,
    /// Business key.
    pub item: Option<String>,
    /// Words of the fault, or what was done.
    pub text: Option<String>,
    /// The incident that it failed for.
    pub incident_id: Option<i64>,
}

#[cfg(test)]
mod tests;
