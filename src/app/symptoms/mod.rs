//! Keeps the watch over symptoms between ticks: hands it what intake wrote, lets it look, and writes what came of that together with
//! the messages that follow. Whether a symptom fires is decided by the `symptom` room, whether it pages by `route`.

mod kept;
mod player;
mod settle;
mod shown;
mod told;

pub use kept::{kept, standings};

use crate::live::Live;
use crate::name::WorkflowName;
use crate::store::symptoms::{self, MemoryRow};
use crate::store::{Store, StoreError};
use crate::symptom::{
    Change, LOOK_SECONDS, Rules, Signal, SymptomKey, SymptomTold, ToldSymptom, WORKFLOWS_MAX, Watch, What,
};
use chrono::{DateTime, DurationRound as _, TimeDelta, Utc};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use tracing::error;

/// Symptoms are looked at when a multiple of this is reached; counts are kept by it.
pub const LOOK_EVERY: TimeDelta = TimeDelta::seconds(LOOK_SECONDS);
/// Batches of signals that are read at once.
const BATCHES: i64 = 64;
/// Parts of the memory in one transaction, so that intake never waits long for the one writer.
const PARTS: usize = 64;
/// The memory is saved so often, or when so much was written that is not in it yet: a start has to read no more than that.
const SAVE_EVERY: TimeDelta = TimeDelta::minutes(5);
const UNSAVED_MAX: usize = 16 << 20;
/// How often it is said that there are too many workflows.
const REFUSED_EVERY: TimeDelta = TimeDelta::hours(1);

/// The watch and how far it has come. All of it can be found again after a restart.
#[derive(Debug, Default)]
pub struct SymptomDesk {
    /// None until it was read from the store, and after a failure.
    watch: Option<Watch>,
    source: Source,
    /// Version of the config that its rules are of.
    version: String,
    /// The last signals taken.
    taken_id: i64,
    /// Bytes of signals that are not in the saved memory.
    unsaved: usize,
    saved_at: DateTime<Utc>,
    looked_at: Option<DateTime<Utc>>,
    /// Workflows whose dead letters may have changed since the store was asked.
    stale: BTreeSet<WorkflowName>,
    /// Changes that a look ahead found, and when; not written yet.
    pending: Vec<(DateTime<Utc>, Change)>,
    /// What was last written of each symptom.
    known: BTreeMap<SymptomKey, Known>,
    /// Those of them that are of an incident.
    paged: BTreeSet<SymptomKey>,
    /// Signals of workflows for which there was no room, not said yet.
    refused_count: u64,
    refused_said_at: DateTime<Utc>,
    /// Symptoms that fire, as they read at the last look; none before anybody has asked.
    firing: Option<Arc<Vec<ToldSymptom>>>,
}

/// What was written of a symptom.
#[derive(Clone, Debug, Default)]
struct Known {
    told: SymptomTold,
    tiers: Vec<String>,
}

/// Where signals come from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Source {
    /// Intake leaves them in the store.
    #[default]
    Store,
    /// Whoever plays recorded events hands them over, before they are committed.
    Player,
}

/// What a look came to.
#[derive(Debug, Default)]
pub struct Looked {
    /// What changed, and what became of it.
    pub changes: Vec<Settled>,
    /// Whether messages were put in the outbox.
    pub has_messages: bool,
    /// Whether it was time to look.
    pub has_looked: bool,
}

/// A change that is written.
#[derive(Clone, Debug)]
pub struct Settled {
    /// When.
    pub at: DateTime<Utc>,
    /// What changed.
    pub change: Change,
    /// The incident that it is part of, else why nobody was paged.
    pub told: SymptomTold,
    /// Whether it fires now, or a tier of it that did not before.
    pub is_worse: bool,
}

impl SymptomDesk {
    /// Takes what intake wrote since the last call. Reads everything when nothing is known yet.
    ///
    /// # Errors
    /// When the store can't be read.
    pub async fn catch_up(&mut self, store: &Store, live: &Live, now: DateTime<Utc>) -> Result<(), StoreError> {
        match self.source {
            Source::Store => {}
            Source::Player => return Ok(()),
        }
        if self.watch.is_none() {
            *self = Self::load(store, live, now).await?;
        }
        loop {
            let rows = symptoms::signals_after(store.reader(), self.taken_id, BATCHES).await?;
            let Some(last) = rows.last() else { return Ok(()) };
            self.taken_id = last.id;
            for row in &rows {
                self.unsaved += row.signals.len();
                match serde_json::from_str::<Vec<Signal>>(&row.signals) {
                    Ok(signals) => signals.iter().for_each(|signal| self.take(signal)),
                    Err(error) => error!(%error, "stored signals can't be read; symptoms go without them"),
                }
            }
        }
    }

    async fn load(store: &Store, live: &Live, now: DateTime<Utc>) -> Result<Self, StoreError> {
        let mut desk = Self::fresh(live, now);
        desk.know(store, live, now).await?;
        let (parts, taken_id) = symptoms::memory(store.reader()).await?;
        let parts: Vec<(String, Vec<u8>)> = parts.into_iter().map(|row| (row.part, row.body)).collect();
        let mut states = Vec::new();
        for ToldSymptom { state, told } in kept(store).await? {
            desk.remember(&state, told);
            states.push(state);
        }
        if let Some(watch) = &mut desk.watch {
            for part in watch.thaw(&parts, states) {
                error!(part, "a part of the memory of symptoms can't be read; it begins anew");
            }
        }
        desk.taken_id = taken_id;
        let names = symptoms::workflows_with_letters(store.reader()).await?;
        desk.stale = names.into_iter().map(WorkflowName::new).collect();
        Ok(desk)
    }

    /// One that knows nothing but config.
    fn fresh(live: &Live, now: DateTime<Utc>) -> Self {
        let watch = Watch::new(rules(live));
        Self { watch: Some(watch), version: live.config.version.clone(), saved_at: now, ..Self::default() }
    }

    /// Names the workflows that are missed even when they were never heard.
    async fn know(&mut self, store: &Store, live: &Live, now: DateTime<Utc>) -> Result<(), StoreError> {
        match self.source {
            Source::Store => {}
            Source::Player => return Ok(()),
        }
        let Some(watch) = &mut self.watch else { return Ok(()) };
        let names: Vec<&str> = expected(live).collect();
        for (workflow, since) in symptoms::known_since(store, &names, now).await? {
            watch.know(&WorkflowName::new(workflow), since);
        }
        Ok(())
    }

    /// Nobody could be heard until `at`: who is not missed already is expected anew from then on.
    pub fn excuse(&mut self, live: &Live, at: DateTime<Utc>) {
        if let Some(watch) = &mut self.watch {
            expected(live).for_each(|name| watch.know(&WorkflowName::new(name), at));
        }
    }

    /// Takes one signal.
    pub fn take(&mut self, signal: &Signal) {
        let Some(watch) = &mut self.watch else { return };
        watch.take(signal);
        let is_asked = self.source == Source::Store && touches_letters(&signal.what);
        if is_asked && !self.stale.contains(&signal.workflow) {
            self.stale.insert(signal.workflow.clone());
        }
    }

    /// Looks, when the next multiple of `LOOK_EVERY` is reached at `at`, and writes what changed.
    ///
    /// # Errors
    /// When the store refuses. Nothing is then known any more; the next `catch_up` reads it again.
    pub async fn look(
        &mut self,
        store: &Store,
        live: &Live,
        at: DateTime<Utc>,
        now: DateTime<Utc>,
    ) -> Result<Looked, StoreError> {
        let at = at.duration_trunc(LOOK_EVERY).unwrap_or(at);
        if Some(at) <= self.looked_at && self.pending.is_empty() {
            return Ok(Looked::default());
        }
        let result = self.try_look(store, live, at, now).await;
        match result {
            Ok(_) => self.firing = None,
            // What fired at the last look is still told.
            Err(_) => self.watch = None,
        }
        result
    }

    async fn try_look(
        &mut self,
        store: &Store,
        live: &Live,
        at: DateTime<Utc>,
        now: DateTime<Utc>,
    ) -> Result<Looked, StoreError> {
        // What config says of a symptom is asked at the first look, and when it changes.
        let mut has_new_rules = self.looked_at.is_none();
        if self.version != live.config.version {
            has_new_rules = true;
            self.version.clone_from(&live.config.version);
            if let Some(watch) = &mut self.watch {
                watch.set_rules(rules(live));
            }
            self.know(store, live, now).await?;
        }
        let mut changes = std::mem::take(&mut self.pending);
        // What a look ahead has seen is not looked at again: it knew what there was to know then.
        if Some(at) > self.looked_at {
            self.ask_standings(store, at).await?;
            let Some(watch) = &mut self.watch else { return Ok(Looked::default()) };
            // News from after `at` waits for the next look. The first look takes in what was kept, also when nothing is heard any more.
            let is_due = watch.next_look_at().is_some_and(|next| next <= at) || self.looked_at.is_none();
            if is_due {
                changes.extend(watch.look(at, &[]).into_iter().map(|change| (at, change)));
            }
            self.refused_count += watch.take_refused_count();
            self.note_refused(at);
            self.looked_at = Some(at);
        }
        let untold = self.untold(live, at, &changes, has_new_rules);
        changes.extend(untold);
        let looked = Looked { has_looked: true, ..self.settle(store, live, changes, now).await? };
        if self.unsaved >= UNSAVED_MAX || (self.unsaved > 0 && now - self.saved_at >= SAVE_EVERY) {
            self.save_memory(store, now).await?;
        }
        Ok(looked)
    }

    /// Says, once in a while, that there are too many workflows.
    fn note_refused(&mut self, at: DateTime<Utc>) {
        if self.refused_count > 0 && at - self.refused_said_at >= REFUSED_EVERY {
            let (count, max) = (self.refused_count, WORKFLOWS_MAX);
            error!(
                count,
                max, "symptoms go without the events of some workflows: there are too many names of workflows"
            );
            (self.refused_count, self.refused_said_at) = (0, at);
        }
    }

    /// Tells the watch how the dead letters stand that have changed.
    async fn ask_standings(&mut self, store: &Store, at: DateTime<Utc>) -> Result<(), StoreError> {
        if self.stale.is_empty() {
            return Ok(());
        }
        let stale: Vec<&str> = self.stale.iter().map(WorkflowName::as_str).collect();
        let found = standings(store, &stale, self.arrivals_wanted(), at).await?;
        found.into_iter().for_each(|(workflow, standing)| self.set_standing(&workflow, standing));
        self.stale.clear();
        Ok(())
    }

    /// Saves the memory in small transactions. One that is cut short counts for nothing.
    async fn save_memory(&mut self, store: &Store, now: DateTime<Utc>) -> Result<(), StoreError> {
        let Some(watch) = &mut self.watch else { return Ok(()) };
        let parts: Vec<MemoryRow> =
            watch.freeze_dirty().into_iter().map(|(part, body)| MemoryRow { part, body }).collect();
        for chunk in parts.chunks(PARTS) {
            let mut tx = store.begin().await?;
            symptoms::save_memory(&mut tx, chunk, self.taken_id).await?;
            tx.commit().await?;
        }
        let mut tx = store.begin().await?;
        symptoms::finish_memory(&mut tx, self.taken_id).await?;
        tx.commit().await?;
        (self.unsaved, self.saved_at) = (0, now);
        Ok(())
    }
}

/// Workflows that are expected to be heard.
fn expected(live: &Live) -> impl Iterator<Item = &str> {
    live.config.workflows.iter().filter(|w| w.name.is_literal() && w.every.is_some()).map(|w| w.name.as_str())
}

fn rules(live: &Live) -> Rules {
    Rules::new(live.config.symptoms.as_deref(), &live.config.workflows)
}

/// Whether a signal may open or resolve a dead letter.
fn touches_letters(what: &What) -> bool {
    match what {
        What::Failure { letter, .. } => letter.is_some(),
        What::Recovery { .. } | What::Resolved => true,
        What::Runs { .. } | What::Totals { .. } | What::Heartbeat { .. } | What::Breaker { .. } | What::Alive => false,
    }
}
