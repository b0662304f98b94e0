//! The tick: the store is looked at, and what is due is decided and written. The service does it once a second, a backtest at every
//! instant at which something can be due. Nothing waits in memory between ticks, so a restart loses nothing.

use super::covers::{Handovers, cover_of};
use super::incidents;
pub use super::passed::{Passed, Reached, Watermark};
use super::symptoms::SymptomDesk;
use super::ticked::Agenda;
pub use super::ticked::{Held, Ticked};
use crate::config::DigestSettings;
use crate::digest::Late;
use crate::digest::plan::{DigestRule, PlanDecision, plan};
use crate::digest_job::{self, Composing, DueDigest, Lanes, Occasion, Succession, Target, Telling, WindowOutcome};
use crate::live::Live;
use crate::outbox::queue;
use crate::store::catalogue::Catalogue;
use crate::store::incidents::Known;
use crate::store::ledger::Covers;
use crate::store::retention::{self, Keep};
use crate::store::{Store, StoreError, ledger};
use crate::symptom::{Budget, ToldSymptom};
use chrono::{DateTime, TimeDelta, Utc};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;
use tracing::{info, warn};

/// How often what is old is looked for.
const FORGET_EVERY: TimeDelta = TimeDelta::hours(1);
/// How soon the service looks again.
pub(super) const NEXT_TICK: TimeDelta = TimeDelta::seconds(1);
/// Digests of a play are written so long after they were due at the latest, in its time.
const ON_THE_WAY_MAX: TimeDelta = TimeDelta::hours(6);

/// What is remembered from tick to tick. All of it can be found again after a restart.
#[derive(Debug)]
pub struct Ticker {
    /// Windows that are due and wait for intake. Kept, so that a slot or a closing time that passes meanwhile changes nothing.
    waiting: BTreeMap<Target, Occasion>,
    symptoms: SymptomDesk,
    /// Version of the config, and until when nothing that it asks for is due.
    rest: Option<(String, DateTime<Utc>)>,
    /// Version of the config whose names the ledger has.
    named: Option<String>,
    /// Who has just taken the place of whom.
    handovers: Handovers,
    /// What windows refer to.
    catalogue: Arc<Catalogue>,
    /// Incidents as they were last read.
    known: Known,
    /// When what is old is forgotten again, and how often that is.
    forget_at: DateTime<Utc>,
    forget_every: TimeDelta,
    /// Digests that are on their way.
    composing: Composing,
    lanes: Lanes,
}

/// What is to be done about a digest now.
enum Due {
    Rest { next_at: Option<DateTime<Utc>> },
    Hold(Held),
    Tell(Occasion),
}

impl Default for Ticker {
    fn default() -> Self {
        Self {
            waiting: BTreeMap::new(),
            symptoms: SymptomDesk::default(),
            rest: None,
            named: None,
            handovers: Handovers::default(),
            catalogue: Arc::default(),
            known: Known::default(),
            forget_at: DateTime::default(),
            forget_every: FORGET_EVERY,
            composing: Composing::default(),
            lanes: Lanes::default(),
        }
    }
}

impl Ticker {
    /// One whose symptoms are fed by a player of recorded events. In its time hours pass in an instant, and little is kept.
    pub fn played(live: &Live, now: DateTime<Utc>) -> Self {
        Self {
            symptoms: SymptomDesk::played(live, now),
            forget_every: TimeDelta::days(1),
            lanes: Lanes::ByDigest,
            ..Self::default()
        }
    }

    /// The symptoms, for a player.
    pub fn symptoms(&mut self) -> &mut SymptomDesk {
        &mut self.symptoms
    }

    /// Burn rates and what budgets have left, as of the last look.
    pub fn budgets(&mut self) -> Vec<Budget> {
        self.symptoms.budgets()
    }

    /// Symptoms that fire, as of the last look.
    pub fn firing(&mut self) -> Arc<Vec<ToldSymptom>> {
        self.symptoms.firing()
    }

    /// One tick. Each part is tried even when another failed.
    pub async fn tick(
        &mut self,
        store: &Store,
        live: &Arc<Live>,
        watermark: &mut impl Watermark,
        now: DateTime<Utc>,
    ) -> Ticked {
        let mut ticked = self.begin(store, live, watermark, now).await;
        self.finish(store, &mut ticked).await;
        ticked
    }

    /// All of a tick but writing its digests, which are composed meanwhile: `finish` comes before the next one that may compose, see
    /// `rests`.
    pub async fn begin(
        &mut self,
        store: &Store,
        live: &Arc<Live>,
        watermark: &mut impl Watermark,
        now: DateTime<Utc>,
    ) -> Ticked {
        let mut ticked = Ticked::default();
        if let Err(error) = self.look_at_symptoms(store, live, watermark, now, &mut ticked).await {
            ticked.failures.push(("symptoms", error));
        }
        incidents::advance_all(store, live, &mut self.symptoms, &mut self.known, now, &mut ticked).await;
        if let Err(error) = self.forget(store, live, now).await {
            ticked.failures.push(("retention", error));
        }
        let failures_before = ticked.failures.len();
        let mut agenda = self.find_due(store, live, now, &mut ticked).await;
        if !agenda.due.is_empty() {
            watermark.refresh().await;
            if let Err(error) = self.compose(store, live, watermark, &mut agenda, now).await {
                ticked.failures.push(("digest", error));
            }
        }
        ticked.look_at(agenda.next_at);
        // What failed is looked at again.
        let is_at_rest = self.handovers.is_empty() && ticked.failures.len() == failures_before;
        self.rest = agenda.next_at.filter(|_| is_at_rest).map(|at| (live.config.version.clone(), at));
        watermark.keep_only(&self.waiting.values().map(|o| o.window.end_at).collect());
        ticked
    }

    /// Writes the digests that are being composed.
    pub async fn finish(&mut self, store: &Store, ticked: &mut Ticked) {
        let composing = std::mem::take(&mut self.composing);
        self.write(store, composing, ticked).await;
    }

    /// Writes the digests that must be written before the next are composed at `now`: those whose target may be due again, and those that
    /// have been on their way for so long that too much waits for them.
    pub async fn finish_due(&mut self, store: &Store, now: DateTime<Utc>, ticked: &mut Ticked) {
        let due = self.composing.take_due(now, now - ON_THE_WAY_MAX);
        self.write(store, due, ticked).await;
    }

    async fn write(&mut self, store: &Store, composing: Composing, ticked: &mut Ticked) {
        for telling in composing.write(store).await {
            match telling {
                Ok(telling) => {
                    note(&telling);
                    ticked.has_messages |= telling.outcome == WindowOutcome::Enqueued;
                }
                Err(error) => {
                    self.rest = None;
                    ticked.failures.push(("digest", error));
                }
            }
        }
    }

    /// Whether no digest can be due at `now`, as of the last look.
    pub fn rests(&self, live: &Live, now: DateTime<Utc>) -> bool {
        self.rest.as_ref().is_some_and(|(version, until)| *version == live.config.version && now < *until)
    }

    /// When the digests became due that have been on their way for longest.
    pub fn composing_since(&self) -> Option<DateTime<Utc>> {
        self.composing.since()
    }

    async fn look_at_symptoms(
        &mut self,
        store: &Store,
        live: &Live,
        watermark: &mut impl Watermark,
        now: DateTime<Utc>,
        ticked: &mut Ticked,
    ) -> Result<(), StoreError> {
        self.symptoms.catch_up(store, live, now).await?;
        if let Some(Reached { at, was_away }) = watermark.reached(now).await {
            if was_away {
                self.symptoms.excuse(live, at);
            }
            let looked = self.symptoms.look(store, live, at, now).await?;
            ticked.has_messages |= looked.has_messages;
            ticked.has_looked = looked.has_looked;
            ticked.symptoms = looked.changes;
        }
        Ok(())
    }

    /// Forgets what is older than config keeps it, little by little.
    async fn forget(&mut self, store: &Store, live: &Live, now: DateTime<Utc>) -> Result<(), StoreError> {
        if now < self.forget_at {
            return Ok(());
        }
        let kept = &live.config.store;
        let since = |length: Duration| {
            let at = TimeDelta::from_std(length).ok().and_then(|length| now.checked_sub_signed(length));
            at.unwrap_or(DateTime::<Utc>::MIN_UTC)
        };
        let keep = Keep {
            events_since: since(kept.keep_events),
            counters_since: since(kept.keep_counters),
            digests_since: since(kept.keep_digests),
        };
        let mut tx = store.begin().await?;
        let has_more =
            retention::forget(&mut tx, &keep).await? | queue::forget_settled(&mut tx, keep.digests_since).await?;
        tx.commit().await?;
        self.forget_at = if has_more { now } else { now + self.forget_every };
        Ok(())
    }

    /// The windows that are due. A target that can't be looked at holds up no other.
    async fn find_due(&mut self, store: &Store, live: &Live, now: DateTime<Utc>, ticked: &mut Ticked) -> Agenda {
        if let (true, Some((_, until))) = (self.rests(live, now), &self.rest) {
            return Agenda { due: Vec::new(), next_at: Some(*until) };
        }
        self.waiting.retain(|target, _| live.targets.contains(target));
        let covers = match self.covers(store, live, now, ticked).await {
            Ok(covers) => covers,
            Err(error) => {
                ticked.failures.push(("digest", error));
                return Agenda::default();
            }
        };
        let mut agenda = Agenda::default();
        for target in live.targets.iter() {
            let Some(settings) = live.config.digests.get(&target.digest) else { continue };
            let due = self.due(store, live, settings, target, &covers, now).await;
            let at = match due {
                Ok(Due::Tell(occasion)) => {
                    agenda.due.push((target.clone(), occasion));
                    None
                }
                Ok(Due::Rest { next_at }) => next_at,
                Ok(Due::Hold(held)) => {
                    let until = held.until;
                    ticked.holds.push(held);
                    Some(until)
                }
                Err(error) => {
                    ticked.failures.push(("digest", error));
                    None
                }
            };
            agenda.look_at(at);
        }
        agenda
    }

    /// How far each target is told, with whoever is new in place of somebody else.
    async fn covers(
        &mut self,
        store: &Store,
        live: &Live,
        now: DateTime<Utc>,
        ticked: &mut Ticked,
    ) -> Result<Covers, StoreError> {
        let mut covers = ledger::covers(&mut store.read().await?).await?;
        if self.named.as_ref() != Some(&live.config.version) {
            let change = Succession::find(&covers, &live.targets);
            if !change.is_empty() {
                ticked.has_messages |= self.handovers.write(store, live, change, now).await?;
                covers = ledger::covers(&mut store.read().await?).await?;
            }
            self.named = Some(live.config.version.clone());
        }
        if let Some(has_messages) = self.handovers.repeat(store, live, now).await? {
            ticked.has_messages |= has_messages;
            // It knows decisions by whom they were for.
            self.catalogue = Arc::default();
        }
        Ok(covers)
    }

    /// Has the digests composed for which intake has come far enough.
    async fn compose(
        &mut self,
        store: &Store,
        live: &Arc<Live>,
        watermark: &mut impl Watermark,
        agenda: &mut Agenda,
        now: DateTime<Utc>,
    ) -> Result<(), StoreError> {
        let (firing, mut budgets) = (self.firing(), BTreeMap::<_, Arc<Vec<Budget>>>::new());
        let mut ready = Vec::with_capacity(agenda.due.len());
        for (target, mut occasion) in std::mem::take(&mut agenda.due) {
            match watermark.passed(occasion.window.end_at, now) {
                Some(passed) => {
                    occasion.incomplete = passed.incomplete;
                    occasion.firing = firing.clone();
                    if occasion.window.tells_budgets() {
                        let end_at = occasion.window.end_at;
                        let budgets = budgets.entry(end_at).or_insert_with(|| self.symptoms.budgets_at(end_at).into());
                        occasion.budgets = budgets.clone();
                    }
                    self.waiting.remove(&target);
                    let settings = live.config.digests.get(&target.digest);
                    let next = settings.and_then(|s| s.schedule.next_after(occasion.window.end_at, s.timezone));
                    // A slot that passed while it waited is due at the next tick.
                    let due_again_at = next.map(|at| at.max(now + NEXT_TICK));
                    agenda.look_at(due_again_at);
                    ready.push(DueDigest { target, occasion, due_again_at });
                }
                None => {
                    self.waiting.insert(target, occasion);
                    agenda.look_at(Some(now + NEXT_TICK));
                }
            }
        }
        if ready.is_empty() {
            return Ok(());
        }
        let known = (&mut self.catalogue, &mut self.known);
        self.composing.add(digest_job::compose_all(store, live, known, ready, self.lanes, now).await?);
        Ok(())
    }

    /// What is to be done about the digest of a target.
    async fn due(
        &self,
        store: &Store,
        live: &Live,
        settings: &DigestSettings,
        target: &Target,
        covers: &Covers,
        now: DateTime<Utc>,
    ) -> Result<Due, StoreError> {
        if let Some(occasion) = self.waiting.get(target) {
            return Ok(Due::Tell(occasion.clone()));
        }
        if let Some(next_at) = self.composing.due_again(target) {
            return Ok(Due::Rest { next_at });
        }
        let known = covers.get(&(target.digest.to_string(), target.key())).cloned();
        let cover = cover_of(store, target, settings, known, now).await?;
        let rule = DigestRule {
            schedule: &settings.schedule,
            timezone: settings.timezone,
            calendar: settings.calendar.as_ref().and_then(|name| live.config.calendars.get(name)),
            max_hold: settings.max_hold,
            in_force_since: cover.in_force_since,
        };
        Ok(match plan(&rule, cover.until, now) {
            PlanDecision::NotDue { next_at } => Due::Rest { next_at },
            PlanDecision::Hold { slot, until } => Due::Hold(Held { target: target.clone(), slot, until }),
            PlanDecision::Due { window, due_at, late, .. } => Due::Tell(Occasion {
                window,
                due_at,
                late: late.map(|l| Late { slots_count: l.slots_missed, away: None }),
                incomplete: None,
                firing: Arc::default(),
                budgets: Arc::default(),
            }),
        })
    }
}

fn note(telling: &Telling) {
    let (digest, receiver) = (telling.target.digest.as_str(), telling.target.receiver.as_str());
    let end_at = telling.window.end_at;
    match telling.outcome {
        WindowOutcome::Enqueued => info!(digest, receiver, window_end = %end_at, "digest composed"),
        WindowOutcome::SkippedEmpty => info!(digest, receiver, window_end = %end_at, "nothing to tell, digest skipped"),
        WindowOutcome::NotOurs => {
            warn!(digest, receiver, window_end = %end_at, "another process has taken this window")
        }
    }
}
