//! The tables `workflows`, `causes`, `decisions`, `producers` and `quarantine` of a store that is played into. Rows are numbered from 1.

use crate::digest::{Fate, FingerprintInfo, UnreadableLine, Window};
use crate::event::{Class, Disposition, EventType, Fingerprint};
use crate::fingerprint::parametrise;
use crate::name::WorkflowName;
use crate::store::catalogue::{Cause, read_fate};
use crate::store::intake::{NewCause, NewDecision, QuarantineRow};
use crate::store::key::Key;
use crate::store::to_the_ms;
use chrono::{DateTime, Utc};
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

/// A digest and a receiver.
type TargetKey = (String, String);

/// What events are counted by, and whom they are for.
#[derive(Debug, Default)]
pub struct IntakeTables {
    workflows: Vec<WorkflowRow>,
    workflow_ids: HashMap<String, i64>,
    causes: Vec<CauseRow>,
    cause_ids: HashMap<Key, i64>,
    by_fingerprint: HashMap<Fingerprint, Vec<i64>>,
    /// Causes by when they came back.
    by_return: BTreeSet<(DateTime<Utc>, i64)>,
    decisions: Vec<DecisionRow>,
    decision_ids: HashMap<[String; 5], i64>,
    by_target: HashMap<TargetKey, HashSet<i64>>,
    /// Decisions of the events of an incident.
    of_incident: HashMap<String, Vec<i64>>,
    producers: HashMap<(i64, String, String), (i64, i64)>,
    /// Stream, sequence and subject by arrival.
    quarantine: BTreeMap<DateTime<Utc>, Vec<(String, i64, String)>>,
}

#[derive(Debug)]
struct WorkflowRow {
    name: WorkflowName,
    last_heard_at: DateTime<Utc>,
}

/// A row of `causes`.
#[derive(Debug)]
pub(super) struct CauseRow {
    fingerprint: Fingerprint,
    pub workflow: WorkflowName,
    event_type: EventType,
    pub class: Class,
    disposition: Disposition,
    step: Option<String>,
    downstream: Option<String>,
    error_type: Option<String>,
    strategy: Option<String>,
    sample: String,
    first_seen_at: DateTime<Utc>,
    pub resolved_at: Option<DateTime<Utc>>,
    /// When it came back, and when it had been resolved.
    pub regressed: Option<(DateTime<Utc>, DateTime<Utc>)>,
}

#[derive(Debug)]
struct DecisionRow {
    fate: Fate,
    targets: Vec<TargetKey>,
}

/// The number of the row that was pushed last.
fn last_id<T>(rows: &[T]) -> i64 {
    i64::try_from(rows.len()).unwrap_or(i64::MAX)
}

/// The row of a number.
fn row<T>(rows: &[T], id: i64) -> Option<&T> {
    rows.get(usize::try_from(id).ok()?.checked_sub(1)?)
}

impl IntakeTables {
    /// The row of a workflow, made when it is new.
    pub fn workflow(&mut self, name: &str, at: DateTime<Utc>) -> i64 {
        let at = to_the_ms(at);
        if let Some(id) = self.workflow_ids.get(name).copied() {
            self.note_heard(id, at);
            return id;
        }
        self.workflows.push(WorkflowRow { name: WorkflowName::new(name), last_heard_at: at });
        let id = last_id(&self.workflows);
        self.workflow_ids.insert(name.to_owned(), id);
        id
    }

    /// A workflow was heard.
    pub fn note_heard(&mut self, id: i64, at: DateTime<Utc>) {
        let place = usize::try_from(id).ok().and_then(|id| id.checked_sub(1));
        if let Some(workflow) = place.and_then(|place| self.workflows.get_mut(place)) {
            workflow.last_heard_at = workflow.last_heard_at.max(to_the_ms(at));
        }
    }

    /// When each workflow was last heard.
    pub fn last_heard(&self) -> BTreeMap<WorkflowName, DateTime<Utc>> {
        self.workflows.iter().map(|workflow| (workflow.name.clone(), workflow.last_heard_at)).collect()
    }

    /// The row of a cause, made when it is new; none when there is no such workflow.
    pub fn cause(&mut self, new: &NewCause<'_>) -> Option<i64> {
        if let Some(id) = self.cause_ids.get(&new.key) {
            return Some(*id);
        }
        let owned = |text: Option<&str>| text.map(str::to_owned);
        let fingerprint = Fingerprint(new.fingerprint.into());
        self.causes.push(CauseRow {
            fingerprint: fingerprint.clone(),
            workflow: row(&self.workflows, new.workflow_id)?.name.clone(),
            event_type: new.event_type,
            class: new.class,
            disposition: new.disposition,
            step: owned(new.step),
            downstream: owned(new.downstream),
            error_type: owned(new.error_type),
            strategy: owned(new.strategy),
            sample: new.sample.to_owned(),
            first_seen_at: to_the_ms(new.first_seen_at),
            resolved_at: None,
            regressed: None,
        });
        let id = last_id(&self.causes);
        self.cause_ids.insert(new.key, id);
        self.by_fingerprint.entry(fingerprint).or_default().push(id);
        Some(id)
    }

    pub(super) fn cause_of(&self, id: i64) -> Option<&CauseRow> {
        row(&self.causes, id)
    }

    pub(super) fn cause_mut(&mut self, id: i64) -> Option<&mut CauseRow> {
        self.causes.get_mut(usize::try_from(id).ok()?.checked_sub(1)?)
    }

    /// What a cause is, without its group.
    pub fn read_cause(&self, id: i64) -> Option<Cause> {
        let cause = self.cause_of(id)?;
        Some(Cause {
            workflow: cause.workflow.clone(),
            event_type: cause.event_type,
            class: cause.class,
            disposition: cause.disposition,
            fingerprint: cause.fingerprint.clone(),
            strategy: cause.strategy.clone(),
            downstream: cause.downstream.clone(),
            group: 0,
        })
    }

    /// What is known of a failure: of its causes, the first to be seen.
    pub fn info(&self, fingerprint: &Fingerprint) -> Option<FingerprintInfo> {
        let causes = self.by_fingerprint.get(fingerprint)?.iter().filter_map(|id| self.cause_of(*id));
        let first = causes.filter(|c| c.event_type == EventType::Failure).min_by_key(|c| c.first_seen_at)?;
        Some(FingerprintInfo {
            workflow: first.workflow.clone(),
            step: first.step.clone(),
            class: first.class,
            error_type: first.error_type.clone(),
            pattern: parametrise(&first.sample),
            sample: first.sample.clone(),
            sample_event_id: None,
            downstream: first.downstream.clone(),
            first_seen_at: first.first_seen_at,
            first_in_window_at: None,
            last_seen_before_at: None,
            resolved_at: None,
        })
    }

    /// Failures that came back in a window after they were resolved, and when that was.
    pub fn regressed(&self, window: Window) -> BTreeMap<Fingerprint, DateTime<Utc>> {
        let mut found = BTreeMap::new();
        let returned = self.by_return.range((window.start_at, 0)..(window.end_at, 0));
        let causes = returned.filter_map(|(_, id)| self.cause_of(*id));
        for cause in causes.filter(|c| c.event_type == EventType::Failure) {
            let Some((_, from)) = cause.regressed else { continue };
            let since = found.entry(cause.fingerprint.clone()).or_insert(from);
            *since = from.max(*since);
        }
        found
    }

    /// The row of a decision, made when it is new.
    pub fn decision(&mut self, new: &NewDecision<'_>) -> i64 {
        let key = [new.config_version, new.routes, new.fate, new.fate_id, new.reason].map(str::to_owned);
        if let Some(id) = self.decision_ids.get(&key) {
            return *id;
        }
        let targets = new.digests.iter().map(|(digest, receiver)| (digest.to_string(), receiver.to_string()));
        let targets: Vec<TargetKey> = targets.collect();
        self.decisions.push(DecisionRow { fate: read_fate(new.fate, new.fate_id), targets: targets.clone() });
        let id = last_id(&self.decisions);
        self.decision_ids.insert(key, id);
        for target in targets {
            self.by_target.entry(target).or_default().insert(id);
        }
        if new.fate == "paged" {
            self.of_incident.entry(new.fate_id.to_owned()).or_default().push(id);
        }
        id
    }

    /// What became of the events of a decision, and the digests and receivers that it is for.
    pub fn read_decision(&self, id: i64) -> Option<(&Fate, &[(String, String)])> {
        row(&self.decisions, id).map(|decision| (&decision.fate, &decision.targets[..]))
    }

    /// The decisions that are for a digest and receiver.
    pub(super) fn decisions_for(&self, digest: &str, receiver: &str) -> Option<&HashSet<i64>> {
        self.by_target.get(&(digest.to_owned(), receiver.to_owned()))
    }

    /// The decisions of the events of an incident.
    pub(super) fn decisions_of(&self, incident: i64) -> Vec<i64> {
        self.of_incident.get(&incident.to_string()).cloned().unwrap_or_default()
    }

    /// Takes new totals of a producer and gives what they add.
    pub fn advance_producer(&mut self, key: (i64, String, String), totals: (i64, i64)) -> (i64, i64) {
        let known = self.producers.entry(key).or_default();
        let added = ((totals.0 - known.0).max(0), (totals.1 - known.1).max(0));
        *known = (known.0.max(totals.0), known.1.max(totals.1));
        added
    }

    /// Keeps an unreadable message. False when it is kept already.
    pub fn quarantine(&mut self, new: &QuarantineRow) -> bool {
        let rows = self.quarantine.entry(to_the_ms(new.received_at)).or_default();
        let is_new = !rows.iter().any(|(stream, sequence, _)| *stream == new.stream && *sequence == new.sequence);
        if is_new {
            rows.push((new.stream.clone(), new.sequence, new.subject.clone()));
        }
        is_new
    }

    /// Unreadable messages of a window by subject, most first.
    pub fn unreadable(&self, window: Window) -> Vec<UnreadableLine> {
        let mut counts: BTreeMap<&str, u64> = BTreeMap::new();
        for (_, _, subject) in self.quarantine.range(window.start_at..window.end_at).flat_map(|(_, rows)| rows) {
            *counts.entry(subject).or_default() += 1;
        }
        let line = |(subject, count): (&str, u64)| UnreadableLine { subject: subject.to_owned(), count };
        let mut lines: Vec<UnreadableLine> = counts.into_iter().map(line).collect();
        lines.sort_by_key(|line| Reverse(line.count));
        lines
    }

    /// Forgets what could not be read before `at`.
    pub fn forget_before(&mut self, at: DateTime<Utc>) {
        self.quarantine = self.quarantine.split_off(&at);
    }

    /// Causes that came: those that were resolved are back.
    pub(super) fn note_returned(&mut self, causes: &BTreeSet<i64>, at: DateTime<Utc>) {
        let at = to_the_ms(at);
        for id in causes {
            let Some(cause) = self.cause_mut(*id) else { continue };
            let Some(resolved_at) = cause.resolved_at.take() else { continue };
            let before = cause.regressed.replace((at, resolved_at));
            if let Some((before, _)) = before {
                self.by_return.remove(&(before, *id));
            }
            self.by_return.insert((at, *id));
        }
    }
}
