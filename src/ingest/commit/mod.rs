//! TX1: a batch of events with everything that follows from them, in one transaction. The caller acks after it committed.
//! Decisions are made by the pure rooms; this is the order in which they are asked and written.

use super::Decoded;
use super::interned::{Fate, Interned};
use super::letter_ops::{LetterOps, letter_of, resolves};
use super::page::{OpenIncidents, Pager};
use crate::event::{Detail, Event, OutcomeCounts};
use crate::name::WorkflowName;
use crate::route::{Decision, Paging, Policy};
use crate::store::counters::{CounterRow, Sums, add_counters};
use crate::store::intake::{self, EventRow, NewTotals, QuarantineRow, StreamRow};
use crate::store::{Store, StoreError, WriteTx, hearing, key, symptoms, to_ms};
use crate::symptom::{Signal, What, fold};
use chrono::{DateTime, Utc};
use std::collections::{BTreeMap, BTreeSet};

const MINUTE_MS: i64 = 60_000;

/// An event that arrives so long after it happened counts as late.
const LATE_AFTER_MS: i64 = 3_600_000;

/// Where a batch comes from and how far it reaches.
#[derive(Clone, Debug)]
pub struct Progress {
    /// Stream.
    pub stream: String,
    /// When that stream was made.
    pub stream_made_at: DateTime<Utc>,
    /// Highest sequence of the batch.
    pub sequence: i64,
    /// Newest arrival of the batch.
    pub arrival_at: DateTime<Utc>,
    /// Messages that the stream still has for us after this batch.
    pub lag: u64,
}

/// One message of a batch.
#[derive(Debug)]
pub enum Item {
    /// A readable one, and whether it may have been read before.
    Event(Box<Decoded>, Redelivered),
    /// An unreadable one.
    Unreadable(QuarantineRow),
}

impl Item {
    /// It may have been read before.
    pub fn note_redelivered(&mut self) {
        match self {
            Self::Event(_, redelivered) => *redelivered = Redelivered::Yes,
            Self::Unreadable(_) => {}
        }
    }
}

/// Whether a message may have been read before: JetStream says so, or a consumer made anew begins from the start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Redelivered {
    /// It may: being stored already is no news.
    Yes,
    /// It was not: an event stored already was published twice.
    No,
}

/// What a batch came to.
#[derive(Debug, Default)]
pub struct Committed<'a> {
    /// Events stored for the first time, in order.
    pub events: Vec<&'a Event>,
    /// Events that were published again.
    pub duplicates: Vec<Duplicate>,
    /// Reasons of messages put in quarantine.
    pub quarantined: Vec<&'static str>,
    /// Whether messages were put in the outbox.
    pub has_messages: bool,
}

/// An event that was published again.
#[derive(Debug)]
pub struct Duplicate {
    /// Its id.
    pub id: String,
    /// Whether this time it says something else.
    pub differs: bool,
}

/// What is written beside what follows from events.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Keeping {
    /// The events themselves, how far their streams were read, and the signals that symptoms are told from.
    All,
    /// Nothing: whoever plays recorded events has them, hands over each but once, and has taken the signals already.
    Consequences,
}

/// Keeps what one process knows between batches.
#[derive(Debug)]
pub struct Intake {
    store: Store,
    keeping: Keeping,
    interned: Interned,
    /// None until it is read from the store, and after a failure.
    next_seq: Option<i64>,
}

/// An event of a batch on its way.
struct Draft<'a> {
    row: EventRow<'a>,
    event: &'a Event,
    decision: Decision,
    redelivered: Redelivered,
}

impl Intake {
    /// Nothing is read before the first batch.
    pub fn new(store: Store, keeping: Keeping) -> Self {
        Self { store, keeping, interned: Interned::default(), next_seq: None }
    }

    /// Where it commits to.
    pub fn store(&self) -> &Store {
        &self.store
    }

    /// Commits a batch. After an error nothing of it is stored, and the same batch can be tried again.
    ///
    /// # Errors
    /// When the store refuses.
    pub async fn commit<'a>(
        &mut self,
        batch: &'a [Item],
        progress: &Progress,
        policy: &Policy,
        pager: &dyn Pager,
        now: DateTime<Utc>,
    ) -> Result<Committed<'a>, StoreError> {
        let result = self.try_commit(batch, progress, policy, pager, now).await;
        if result.is_err() {
            self.interned.clear();
            self.next_seq = None;
        }
        result
    }

    async fn try_commit<'a>(
        &mut self,
        batch: &'a [Item],
        progress: &Progress,
        policy: &Policy,
        pager: &dyn Pager,
        now: DateTime<Utc>,
    ) -> Result<Committed<'a>, StoreError> {
        let mut tx = self.store.begin().await?;
        let mut committed = Committed::default();
        let drafts = self.draft(&mut tx, batch, policy, now).await?;
        let fresh = match self.keeping {
            Keeping::All => keep_events(&mut tx, drafts, &mut committed).await?,
            Keeping::Consequences => drafts,
        };
        let progressed = self.follow(&mut tx, &fresh, policy, pager, now, &mut committed).await?;
        quarantine(&mut tx, batch, &mut committed).await?;
        self.interned.flush_heard(&mut tx).await?;
        match self.keeping {
            Keeping::All => {
                keep_signals(&mut tx, &fresh, progressed, now).await?;
                keep_progress(&mut tx, progress, fresh.len(), &committed).await?;
            }
            Keeping::Consequences => {}
        }
        tx.commit().await?;
        committed.events = fresh.into_iter().map(|d| d.event).collect();
        Ok(committed)
    }

    async fn draft<'a>(
        &mut self,
        tx: &mut WriteTx,
        batch: &'a [Item],
        policy: &Policy,
        now: DateTime<Utc>,
    ) -> Result<Vec<Draft<'a>>, StoreError> {
        let mut seq = match self.next_seq {
            Some(seq) => seq,
            None => intake::last_seq(tx).await? + 1,
        };
        let mut drafts = Vec::with_capacity(batch.len());
        for item in batch {
            let Item::Event(decoded, redelivered) = item else { continue };
            let event = &decoded.event;
            let workflow_id = self.interned.workflow(tx, event).await?;
            let cause_id = self.interned.cause(tx, workflow_id, event).await?;
            let decision = policy.decide(event, now);
            let decision_id = self.interned.decision(tx, policy, &decision, plain_fate(&decision)).await?;
            let row = EventRow {
                seq,
                key: key::key_of(&event.id.0),
                content_hash: decoded.content_hash.cast_signed(),
                received_at: event.received_at,
                occurred_at: event.occurred_at,
                cause_id,
                decision_id,
                class_rule: &event.class_rule,
                body: &decoded.body,
            };
            drafts.push(Draft { row, event, decision, redelivered: *redelivered });
            seq += 1;
        }
        self.next_seq = Some(seq);
        Ok(drafts)
    }

    /// Counters, dead letters, incidents and pages that follow from new events, in their order. Gives workflows of which a letter was
    /// resolved by number.
    async fn follow(
        &mut self,
        tx: &mut WriteTx,
        fresh: &[Draft<'_>],
        policy: &Policy,
        pager: &dyn Pager,
        now: DateTime<Utc>,
        committed: &mut Committed<'_>,
    ) -> Result<BTreeSet<WorkflowName>, StoreError> {
        let mut counters: BTreeMap<(i64, i64, i64), Sums> = BTreeMap::new();
        let mut letters = LetterOps::default();
        let mut incidents = OpenIncidents::default();
        for draft in fresh {
            let (event, row) = (draft.event, &draft.row);
            let mut decision_id = row.decision_id;
            let mut incident_id = None;
            if let Paging::Page { key, terms } = &draft.decision.paging {
                let id = incidents.add(tx, key, terms, event, draft.decision.domain).await?;
                match self.keeping {
                    Keeping::All => incidents.add_event(row.seq, id),
                    Keeping::Consequences => {}
                }
                decision_id = self.interned.decision(tx, policy, &draft.decision, Fate::Paged(id.0)).await?;
                incident_id = Some(id);
            }
            if let Some(letter) = letter_of(event, row.cause_id, decision_id, incident_id.map(|id| id.0)) {
                match incident_id {
                    Some(id) if letters.open_for(tx, &letter, id).await? => incidents.add_item(id, &event.workflow),
                    Some(_) => {}
                    None => letters.open(tx, letter).await?,
                }
            }
            if let Some(what) = resolves(event) {
                letters.resolve(tx, what).await?;
            }
            let sums = self.sums(tx, event).await?;
            let minute = to_ms(event.received_at).div_euclid(MINUTE_MS) * MINUTE_MS;
            counters.entry((minute, row.cause_id, decision_id)).or_default().add(sums);
        }
        let progressed = letters.flush(tx, now).await?;
        committed.has_messages = incidents.flush(tx, pager, now).await?;
        let rows: Vec<CounterRow> = counters
            .into_iter()
            .map(|((minute, cause_id, decision_id), sums)| CounterRow { minute, cause_id, decision_id, sums })
            .collect();
        add_counters(tx, &rows).await?;
        Ok(progressed)
    }

    /// What one event adds to its counter.
    async fn sums(&mut self, tx: &mut WriteTx, event: &Event) -> Result<Sums, StoreError> {
        let late = to_ms(event.received_at) - to_ms(event.occurred_at) >= LATE_AFTER_MS;
        let mut sums = Sums { events: 1, late: i64::from(late), ..Sums::default() };
        match &event.detail {
            Detail::Outcome(OutcomeCounts::Delta { ok, failed }) => {
                sums.ok = count(*ok);
                sums.failed = count(*failed);
            }
            Detail::Outcome(OutcomeCounts::Cumulative { producer, epoch, ok_total, failed_total }) => {
                let workflow_id = self.interned.workflow(tx, event).await?;
                let totals = (count(*ok_total), count(*failed_total));
                (sums.ok, sums.failed) = intake::advance_producer(tx, workflow_id, producer, epoch, totals).await?;
            }
            Detail::Recovery { took_ms: Some(took_ms), .. } => {
                sums.took_ms = count(*took_ms);
                sums.took = 1;
            }
            Detail::Heartbeat { status, .. } => {
                let workflow_id = self.interned.workflow(tx, event).await?;
                hearing::note_heartbeat(tx, workflow_id, status.as_str(), event.occurred_at).await?;
            }
            Detail::Failure
            | Detail::Recovery { took_ms: None, .. }
            | Detail::Resolution { .. }
            | Detail::Breaker { .. } => {}
        }
        Ok(sums)
    }
}

/// Stores the events, and gives those that are new.
async fn keep_events<'a>(
    tx: &mut WriteTx,
    drafts: Vec<Draft<'a>>,
    committed: &mut Committed<'a>,
) -> Result<Vec<Draft<'a>>, StoreError> {
    let rows: Vec<&EventRow<'_>> = drafts.iter().map(|d| &d.row).collect();
    let new = intake::insert_events(tx, &rows).await?;
    let (fresh, again) = drafts.into_iter().partition::<Vec<_>, _>(|d| new.contains(&d.row.seq));
    committed.duplicates = duplicates(tx, again).await?;
    Ok(fresh)
}

/// Keeps what symptoms are told from, so that no kill can part it from the events.
async fn keep_signals(
    tx: &mut WriteTx,
    fresh: &[Draft<'_>],
    progressed: BTreeSet<WorkflowName>,
    now: DateTime<Utc>,
) -> Result<(), StoreError> {
    let heard = fresh.iter().filter_map(|draft| Signal::of(draft.event));
    let resolved =
        progressed.into_iter().map(|workflow| Signal { workflow, at: now, arrived_at: None, what: What::Resolved });
    symptoms::add_signals(tx, &fold(heard.chain(resolved).collect())).await
}

/// Keeps how far the stream was read, and what the batch adds to the totals.
async fn keep_progress(
    tx: &mut WriteTx,
    progress: &Progress,
    fresh_count: usize,
    committed: &Committed<'_>,
) -> Result<(), StoreError> {
    let stream = StreamRow {
        name: &progress.stream,
        made_at: progress.stream_made_at,
        sequence: progress.sequence,
        arrival_at: progress.arrival_at,
    };
    let totals = NewTotals {
        events: fresh_count as i64,
        duplicates: committed.duplicates.len() as i64,
        quarantined: committed.quarantined.len() as i64,
    };
    intake::note_progress(tx, stream, totals).await
}

/// A count from outside as the store keeps it; what no pipeline can mean is cut, so that sums can't overflow.
fn count(value: u64) -> i64 {
    const COUNT_MAX: i64 = 1 << 40;
    i64::try_from(value).map_or(COUNT_MAX, |v| v.min(COUNT_MAX))
}

/// The fate of an event before it is known whether it opens or joins an incident.
fn plain_fate(decision: &Decision) -> Fate {
    match &decision.silence_id {
        Some(id) => Fate::Silenced(id.clone()),
        None => Fate::Open,
    }
}

async fn duplicates(tx: &mut WriteTx, drafts: Vec<Draft<'_>>) -> Result<Vec<Duplicate>, StoreError> {
    let mut found = Vec::new();
    for draft in drafts {
        match draft.redelivered {
            Redelivered::Yes => continue,
            Redelivered::No => {}
        }
        let stored = intake::content_hash(tx, &draft.row.key).await?;
        let differs = stored.is_some_and(|hash| hash != draft.row.content_hash);
        found.push(Duplicate { id: draft.event.id.0.clone(), differs });
    }
    Ok(found)
}

async fn quarantine(tx: &mut WriteTx, batch: &[Item], committed: &mut Committed<'_>) -> Result<(), StoreError> {
    for item in batch {
        if let Item::Unreadable(row) = item
            && intake::insert_quarantine(tx, row).await?
        {
            committed.quarantined.push(row.reason);
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests;
