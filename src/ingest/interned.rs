//! Row numbers of workflows, causes and decisions, kept in memory so that most events need no look-up.
//! Must be forgotten when the transaction that made them fails.

use crate::event::{Detail, Event, EventType};
use crate::route::{Decision, Paging, Policy};
use crate::store::hearing;
use crate::store::intake::{self, NewCause, NewDecision};
use crate::store::key::{Key, hash_key};
use crate::store::{StoreError, WriteTx};
use chrono::{DateTime, TimeDelta, Utc};
use std::collections::{BTreeMap, HashMap};

/// More rows of a kind than this are not kept in memory: an attacker can make one per event.
const ROWS_MAX: usize = 20_000;

/// `last_heard_at` is written at most this often per workflow.
const HEARD_EVERY: TimeDelta = TimeDelta::seconds(5);

/// What becomes of an event in digests.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Fate {
    /// Told by digests.
    Open,
    /// Hidden by this silence.
    Silenced(String),
    /// Belongs to this incident.
    Paged(i64),
}

/// What an interned decision is known by.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct DecisionKey {
    config_version: String,
    matched: Vec<usize>,
    fate: Fate,
    reason: &'static str,
}

/// The rows already known.
#[derive(Debug, Default)]
pub struct Interned {
    workflows: HashMap<String, (i64, DateTime<Utc>)>,
    causes: HashMap<Key, i64>,
    decisions: HashMap<DecisionKey, i64>,
    /// Workflows that were heard, not written yet.
    heard: BTreeMap<i64, DateTime<Utc>>,
}

impl Interned {
    /// Forgets everything, after a transaction failed.
    pub fn clear(&mut self) {
        *self = Self::default();
    }

    /// The row of the event's workflow, with a note that it was heard.
    pub async fn workflow(&mut self, tx: &mut WriteTx, event: &Event) -> Result<i64, StoreError> {
        let at = event.received_at;
        if let Some((id, noted_at)) = self.workflows.get_mut(event.workflow.as_str()) {
            if at - *noted_at >= HEARD_EVERY {
                *noted_at = at;
                self.heard.insert(*id, at);
            }
            return Ok(*id);
        }
        let id = intake::intern_workflow(tx, event.workflow.as_str(), at).await?;
        if self.workflows.len() >= ROWS_MAX {
            self.workflows.clear();
        }
        self.workflows.insert(event.workflow.to_string(), (id, at));
        Ok(id)
    }

    /// Writes which workflows were heard since it was last written.
    pub async fn flush_heard(&mut self, tx: &mut WriteTx) -> Result<(), StoreError> {
        let heard: Vec<_> = std::mem::take(&mut self.heard).into_iter().collect();
        if heard.is_empty() { Ok(()) } else { hearing::note_heard(tx, &heard).await }
    }

    /// The row of the event's cause.
    pub async fn cause(&mut self, tx: &mut WriteTx, workflow_id: i64, event: &Event) -> Result<i64, StoreError> {
        let cause = cause_of(workflow_id, event);
        if let Some(id) = self.causes.get(&cause.key) {
            return Ok(*id);
        }
        let id = intake::intern_cause(tx, &cause).await?;
        if self.causes.len() >= ROWS_MAX {
            self.causes.clear();
        }
        self.causes.insert(cause.key, id);
        Ok(id)
    }

    /// The row of a decision with this fate.
    pub async fn decision(
        &mut self,
        tx: &mut WriteTx,
        policy: &Policy,
        decision: &Decision,
        fate: Fate,
    ) -> Result<i64, StoreError> {
        let reason = match &decision.paging {
            Paging::Page { .. } => "page",
            Paging::Suppress(reason) => reason.as_str(),
        };
        let key = DecisionKey {
            config_version: policy.config_version.clone(),
            matched: decision.matched.clone(),
            fate,
            reason,
        };
        if let Some(id) = self.decisions.get(&key) {
            return Ok(*id);
        }
        let id = store_decision(tx, policy, &key).await?;
        if self.decisions.len() >= ROWS_MAX {
            self.decisions.clear();
        }
        self.decisions.insert(key, id);
        Ok(id)
    }
}

async fn store_decision(tx: &mut WriteTx, policy: &Policy, key: &DecisionKey) -> Result<i64, StoreError> {
    let resolved = policy.resolved(&key.matched);
    let (fate, fate_id) = match &key.fate {
        Fate::Open => ("open", String::new()),
        Fate::Silenced(id) => ("silenced", id.clone()),
        Fate::Paged(id) => ("paged", id.to_string()),
    };
    let decision = NewDecision {
        config_version: &key.config_version,
        routes: &names(&resolved.routes)?,
        page: &names(&resolved.page)?,
        digests: &resolved.digests,
        fate,
        fate_id: &fate_id,
        reason: key.reason,
    };
    intake::intern_decision(tx, &decision).await
}

fn cause_of(workflow_id: i64, event: &Event) -> NewCause<'_> {
    let error = &event.error;
    let error_type = error.kind.as_deref().or(error.code.as_deref());
    let strategy = match &event.detail {
        Detail::Recovery { strategy, .. } => strategy.as_deref(),
        Detail::Failure
        | Detail::Outcome(_)
        | Detail::Heartbeat { .. }
        | Detail::Resolution { .. }
        | Detail::Breaker { .. } => None,
    };
    let is_failure = event.event_type == EventType::Failure;
    NewCause {
        key: hash_key(&[
            event.workflow.as_str(),
            &event.fingerprint.0,
            event.event_type.as_str(),
            event.class.as_str(),
            event.disposition.as_str(),
            event.downstream.as_deref().unwrap_or(""),
            strategy.unwrap_or(""),
        ]),
        fingerprint: &event.fingerprint.0,
        workflow_id,
        event_type: event.event_type,
        class: event.class,
        disposition: event.disposition,
        step: event.step.as_deref().filter(|_| is_failure),
        downstream: event.downstream.as_deref(),
        error_type,
        strategy,
        sample: error.message.as_deref().or(error_type).unwrap_or(""),
        first_seen_at: event.received_at,
    }
}

fn names<T: serde::Serialize>(names: &[T]) -> Result<String, StoreError> {
    serde_json::to_string(names).map_err(|e| StoreError::Corrupt { what: "decisions", why: e.to_string() })
}
