//! What counters and dead letters refer to, read once and kept: causes, decisions, and how many dead letters of each are open. Rows of
//! causes and decisions do not change once written; of open dead letters only what changed since the last look is read again.

use super::{ReadConn, StoreError, from_ms, json};
use crate::digest::{Fate, FingerprintInfo};
use crate::event::{Class, Disposition, EventType, Fingerprint};
use crate::name::WorkflowName;
use chrono::{DateTime, Utc};
use foldhash::fast::FixedState;
use sqlx::Row;
use sqlx::sqlite::SqliteRow;
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::sync::Arc;

/// More rows of a kind than this are not kept from tick to tick: an attacker can make one per event.
const ROWS_MAX: usize = 20_000;

/// What events are counted by.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cause {
    /// Its workflow.
    pub workflow: WorkflowName,
    /// Failure, recovery …
    pub event_type: EventType,
    /// Kind of fault.
    pub class: Class,
    /// What becomes of its events.
    pub disposition: Disposition,
    /// What failures of one kind share.
    pub fingerprint: Fingerprint,
    /// Of recoveries: what worked.
    pub strategy: Option<String>,
    /// The dependency that failed.
    pub downstream: Option<String>,
    /// The same for all causes of one workflow and fingerprint, and for no other.
    pub group: usize,
}

/// Open dead letters of one cause and decision.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OpenLetters {
    /// How many, at least 1.
    pub count: u64,
    /// The one that is open for longest.
    pub oldest: Oldest,
}

/// The oldest of some dead letters.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Oldest {
    /// When it became one.
    pub at: DateTime<Utc>,
    /// Its row.
    pub id: i64,
    /// Its item.
    pub item: Option<String>,
}

/// A cause and a decision.
pub type Pair = (i64, i64);

/// What is known of rows. Their numbers are ours, so nobody can choose them to collide.
type RowMap<T> = HashMap<i64, T, FixedState>;

/// Numbers of rows.
pub type RowSet = HashSet<i64, FixedState>;

/// The rows already known.
#[derive(Clone, Debug, Default)]
pub struct Catalogue {
    causes: RowMap<Arc<Cause>>,
    fates: RowMap<Fate>,
    /// Decisions by the digest and receiver that they are for.
    by_target: HashMap<(String, String), RowSet>,
    /// Numbers of workflows and fingerprints.
    groups: HashMap<(WorkflowName, Fingerprint), usize>,
    infos: HashMap<Fingerprint, FingerprintInfo>,
    /// Failures of which nothing is known yet.
    unknown: BTreeSet<Fingerprint>,
    letters: BTreeMap<Pair, OpenLetters>,
    letters_version: i64,
}

impl Catalogue {
    /// Forgets what has grown too large. Asked for before a look, never within one.
    pub fn trim(&mut self) {
        if self.causes.len().max(self.fates.len()).max(self.infos.len()) > ROWS_MAX {
            *self = Self::default();
        }
    }

    /// A cause that was learnt.
    ///
    /// # Errors
    /// When it was not: the store refers to a row that is not there.
    pub fn cause(&self, id: i64) -> Result<&Arc<Cause>, StoreError> {
        self.causes.get(&id).ok_or_else(|| StoreError::missing("causes", id))
    }

    /// The fate of the events of a decision that was learnt.
    ///
    /// # Errors
    /// When it was not: the store refers to a row that is not there.
    pub fn fate(&self, id: i64) -> Result<&Fate, StoreError> {
        self.fates.get(&id).ok_or_else(|| StoreError::missing("decisions", id))
    }

    /// The decisions that send to this digest and receiver, of those that were learnt.
    pub fn decisions_for(&self, digest: &str, receiver: &str) -> Option<&RowSet> {
        self.by_target.get(&(digest.to_owned(), receiver.to_owned()))
    }

    /// Open dead letters, as of the last look.
    pub fn letters(&self) -> &BTreeMap<Pair, OpenLetters> {
        &self.letters
    }

    /// Reads the causes and decisions that are not known yet.
    pub async fn learn(&mut self, conn: &mut ReadConn, pairs: impl Iterator<Item = Pair>) -> Result<(), StoreError> {
        let (mut causes, mut decisions) = (BTreeSet::new(), BTreeSet::new());
        for (cause, decision) in pairs {
            if !self.causes.contains_key(&cause) {
                causes.insert(cause);
            }
            if !self.fates.contains_key(&decision) {
                decisions.insert(decision);
            }
        }
        self.learn_causes(conn, &causes).await?;
        self.learn_decisions(conn, decisions.into_iter()).await
    }

    async fn learn_causes(&mut self, conn: &mut ReadConn, ids: &BTreeSet<i64>) -> Result<(), StoreError> {
        if ids.is_empty() {
            return Ok(());
        }
        if let Some(played) = conn.played() {
            ids.iter()
                .filter_map(|id| Some((*id, played.intake.read_cause(*id)?)))
                .for_each(|(id, cause)| self.add_cause(id, cause));
            return Ok(());
        }
        let rows = sqlx::query(
            "SELECT k.id, w.name, k.event_type, k.class, k.disposition, k.fingerprint, k.strategy, k.downstream \
             FROM causes k JOIN workflows w ON w.id = k.workflow_id WHERE k.id IN (SELECT value FROM json_each(?))",
        )
        .bind(json(ids)?)
        .fetch_all(&mut **conn)
        .await?;
        for row in &rows {
            self.add_cause(row.get(0), read_cause(row)?);
        }
        Ok(())
    }

    fn add_cause(&mut self, id: i64, mut cause: Cause) {
        let next = self.groups.len();
        if cause.event_type == EventType::Failure && !self.infos.contains_key(&cause.fingerprint) {
            self.unknown.insert(cause.fingerprint.clone());
        }
        cause.group = *self.groups.entry((cause.workflow.clone(), cause.fingerprint.clone())).or_insert(next);
        self.causes.insert(id, Arc::new(cause));
    }

    /// Reads the decisions that are not known yet.
    pub async fn learn_decisions(
        &mut self,
        conn: &mut ReadConn,
        ids: impl Iterator<Item = i64>,
    ) -> Result<(), StoreError> {
        let unknown: BTreeSet<i64> = ids.filter(|id| !self.fates.contains_key(id)).collect();
        if unknown.is_empty() {
            return Ok(());
        }
        if let Some(played) = conn.played() {
            for (id, (fate, targets)) in unknown.iter().filter_map(|id| Some((*id, played.intake.read_decision(*id)?)))
            {
                self.fates.insert(id, fate.clone());
                targets.iter().for_each(|target| _ = self.by_target.entry(target.clone()).or_default().insert(id));
            }
            return Ok(());
        }
        type Row = (i64, String, String, Option<String>, Option<String>);
        let rows: Vec<Row> = sqlx::query_as(
            "SELECT d.id, d.fate, d.fate_id, t.digest, t.receiver \
             FROM decisions d LEFT JOIN decision_targets t ON t.decision_id = d.id \
             WHERE d.id IN (SELECT value FROM json_each(?))",
        )
        .bind(json(&unknown)?)
        .fetch_all(&mut **conn)
        .await?;
        for (id, fate, fate_id, digest, receiver) in rows {
            self.fates.entry(id).or_insert_with(|| read_fate(&fate, &fate_id));
            if let (Some(digest), Some(receiver)) = (digest, receiver) {
                self.by_target.entry((digest, receiver)).or_default().insert(id);
            }
        }
        Ok(())
    }

    /// Brings the open dead letters up to date, and learns what they refer to.
    pub async fn look_at_letters(&mut self, conn: &mut ReadConn) -> Result<(), StoreError> {
        if let Some(played) = conn.played() {
            let (version, changed) = played.letters.changed_groups(self.letters_version);
            self.letters_version = version;
            let pairs: Vec<Pair> = changed.iter().filter(|(_, open)| open.is_some()).map(|(pair, _)| *pair).collect();
            for (pair, open) in changed {
                match open {
                    Some(open) => _ = self.letters.insert(pair, open),
                    None => _ = self.letters.remove(&pair),
                }
            }
            return self.learn(conn, pairs.into_iter()).await;
        }
        let rows = sqlx::query(
            "SELECT g.version, g.cause_id, g.decision_id, g.open_count, d.dead_lettered_at, d.id, d.item \
             FROM letter_groups g LEFT JOIN dead_letters d ON d.id = (SELECT l.id FROM dead_letters l \
             WHERE l.cause_id = g.cause_id AND l.decision_id = g.decision_id AND l.resolved_at IS NULL \
             ORDER BY l.dead_lettered_at, l.id LIMIT 1) WHERE g.version > ? ORDER BY g.version",
        )
        .bind(self.letters_version)
        .fetch_all(&mut **conn)
        .await?;
        let mut changed = Vec::with_capacity(rows.len());
        for row in &rows {
            let pair = (row.get(1), row.get(2));
            self.letters_version = row.get(0);
            match row.get::<Option<i64>, _>(4) {
                Some(at) => {
                    let oldest = Oldest { at: from_ms(at), id: row.get(5), item: row.get(6) };
                    let count = row.get::<i64, _>(3).unsigned_abs();
                    self.letters.insert(pair, OpenLetters { count, oldest });
                    changed.push(pair);
                }
                None => {
                    self.letters.remove(&pair);
                }
            }
        }
        self.learn(conn, changed.into_iter()).await
    }

    /// Reads what is to be known of failures that were learnt.
    pub async fn learn_infos(&mut self, conn: &mut ReadConn) -> Result<(), StoreError> {
        if self.unknown.is_empty() {
            return Ok(());
        }
        if let Some(played) = conn.played() {
            for fingerprint in std::mem::take(&mut self.unknown) {
                if let Some(info) = played.intake.info(&fingerprint) {
                    self.infos.insert(fingerprint, info);
                }
            }
            return Ok(());
        }
        // With one min() SQLite takes the other columns from the row that has the minimum.
        let rows = sqlx::query(
            "SELECT k.fingerprint, w.name, k.step, k.class, k.error_type, k.sample, k.downstream, min(k.first_seen_at) \
             FROM causes k JOIN workflows w ON w.id = k.workflow_id \
             WHERE k.fingerprint IN (SELECT value FROM json_each(?1)) AND k.event_type = 'failure' GROUP BY k.fingerprint",
        )
        .bind(json(&self.unknown)?)
        .fetch_all(&mut **conn)
        .await?;
        for row in &rows {
            self.infos.insert(Fingerprint(row.get::<String, _>(0).into()), read_info(row)?);
        }
        self.unknown.clear();
        Ok(())
    }

    /// What is known of these failures, but for what happened in a window.
    pub fn infos(&self, wanted: &BTreeSet<&Fingerprint>) -> BTreeMap<Fingerprint, FingerprintInfo> {
        wanted.iter().filter_map(|f| Some(((*f).clone(), self.infos.get(f)?.clone()))).collect()
    }
}

pub(super) fn read_fate(word: &str, id: &str) -> Fate {
    match word {
        "silenced" => Fate::Silenced(id.to_owned()),
        "paged" => Fate::Paged(id.to_owned()),
        _ => Fate::Digest,
    }
}

fn parsed<T>(what: &'static str, word: &str, value: Option<T>) -> Result<T, StoreError> {
    value.ok_or_else(|| StoreError::Corrupt { what, why: format!("unknown word {word:?}") })
}

fn read_cause(row: &SqliteRow) -> Result<Cause, StoreError> {
    let (event_type, class, disposition): (String, String, String) = (row.get(2), row.get(3), row.get(4));
    Ok(Cause {
        workflow: WorkflowName::new(row.get::<String, _>(1)),
        event_type: parsed("causes.event_type", &event_type, EventType::parse(&event_type))?,
        class: parsed("causes.class", &class, Class::parse(&class))?,
        disposition: parsed("causes.disposition", &disposition, Disposition::parse(&disposition))?,
        fingerprint: Fingerprint(row.get::<String, _>(5).into()),
        strategy: row.get(6),
        downstream: row.get(7),
        group: 0,
    })
}

fn read_info(row: &SqliteRow) -> Result<FingerprintInfo, StoreError> {
    let class: String = row.get(3);
    let sample: String = row.get(5);
    Ok(FingerprintInfo {
        workflow: WorkflowName::new(row.get::<String, _>(1)),
        step: row.get(2),
        class: parsed("causes.class", &class, Class::parse(&class))?,
        error_type: row.get(4),
        pattern: crate::fingerprint::parametrise(&sample),
        sample,
        sample_event_id: None,
        downstream: row.get(6),
        first_seen_at: from_ms(row.get(7)),
        first_in_window_at: None,
        last_seen_before_at: None,
        resolved_at: None,
    })
}
