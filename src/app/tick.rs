//! The tick: the store is looked at, and what is due is decided and written. The service does it once a second, a backtest at every
//! instant at which something can be due. Nothing waits in memory between ticks, so a restart loses nothing.

use crate::config::DigestSettings;
use crate::digest::Late;
use crate::digest::plan::{DigestRule, PlanDecision, plan};
use crate::digest_job::{self, Occasion, Target, Telling, WindowOutcome};
use crate::incident::{Incident, IncidentId, Reading, Transition, advance, next_change_at};
use crate::live::Live;
use crate::outbox::{NewEntry, queue};
use crate::store::catalogue::Catalogue;
use crate::store::ledger::Cover;
use crate::store::{Store, StoreError, WriteTx, incidents, ledger, letters};
use chrono::{DateTime, DurationRound, TimeDelta, Utc};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use tracing::{info, warn};

/// How soon the service looks again.
const NEXT_TICK: TimeDelta = TimeDelta::seconds(1);

/// Intake has passed an instant, or is not waited for any longer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Passed {
    /// What is missing, as a sentence without full stop; none when nothing is.
    pub incomplete: Option<String>,
}

/// Knows how far intake has come.
pub trait Watermark {
    /// Looks how far intake is now. Asked once a tick, and only when a digest is due.
    fn refresh(&mut self) -> impl Future<Output = ()> + Send;
    /// Whether intake has passed `instant`, as far as the last look says; none while it is worth waiting.
    fn passed(&mut self, instant: DateTime<Utc>, now: DateTime<Utc>) -> Option<Passed>;
    /// Forgets all instants but these: no digest waits for the others any more.
    fn keep_only(&mut self, waiting: &BTreeSet<DateTime<Utc>>);
}

/// What is remembered from tick to tick. All of it can be found again after a restart.
#[derive(Debug, Default)]
pub struct Ticker {
    /// Windows that are due and wait for intake. Kept, so that a slot or a closing time that passes meanwhile changes nothing.
    waiting: BTreeMap<Target, Occasion>,
    /// Version of the config, and until when nothing that it asks for is due.
    rest: Option<(String, DateTime<Utc>)>,
    /// What windows refer to.
    catalogue: Catalogue,
}

/// What a tick came to.
#[derive(Debug, Default)]
pub struct Ticked {
    /// Whether messages were put in the outbox.
    pub has_messages: bool,
    /// Digests that wait for open hours.
    pub holds: Vec<Held>,
    /// Whether an incident was told again, or ended.
    pub has_moved: bool,
    /// When something is due next if nothing arrives before; never later than it really is.
    pub next_at: Option<DateTime<Utc>>,
    /// Parts that failed; they are tried again at the next tick.
    pub failures: Vec<(&'static str, StoreError)>,
}

/// A digest that waits for open hours.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Held {
    /// Whom it is for.
    pub target: Target,
    /// The first slot held; the same for as long as the hold lasts.
    pub slot: DateTime<Utc>,
    /// When it is to go out.
    pub until: DateTime<Utc>,
}

impl Ticked {
    fn look_at(&mut self, at: Option<DateTime<Utc>>) {
        self.next_at = [self.next_at, at].into_iter().flatten().min();
    }
}

/// What is to be done about a digest now.
enum Due {
    Rest { next_at: Option<DateTime<Utc>> },
    Hold(Held),
    Tell(Occasion),
}

impl Ticker {
    /// One tick. Each part is tried even when another failed.
    pub async fn tick(
        &mut self,
        store: &Store,
        live: &Arc<Live>,
        watermark: &mut impl Watermark,
        now: DateTime<Utc>,
    ) -> Ticked {
        let mut ticked = Ticked::default();
        self.advance_incidents(store, live, now, &mut ticked).await;
        let due = self.find_due(store, live, now, &mut ticked).await;
        if !due.is_empty() {
            watermark.refresh().await;
            if let Err(error) = self.tell(store, live, watermark, due, now, &mut ticked).await {
                ticked.failures.push(("digest", error));
            }
        }
        watermark.keep_only(&self.waiting.values().map(|o| o.window.end_at).collect());
        ticked
    }

    /// Moves every incident that is due. One that can't be moved holds up no other.
    async fn advance_incidents(&mut self, store: &Store, live: &Live, now: DateTime<Utc>, ticked: &mut Ticked) {
        let open = match incidents::all_open(store.reader(), &mut self.catalogue.incidents).await {
            Ok(open) => open,
            Err(error) => return ticked.failures.push(("incidents", error)),
        };
        for (incident, open_letters) in open {
            let reading = Reading { open_letters };
            if advance(&incident, reading, now) == Transition::Rest {
                ticked.look_at(next_change_at(&incident, reading));
                continue;
            }
            // One transition a tick; the next may follow at once.
            ticked.look_at(Some(now + NEXT_TICK));
            match advance_one(store, live, incident.id, now).await {
                Ok(moved) => {
                    ticked.has_messages |= moved;
                    ticked.has_moved |= moved;
                }
                Err(error) => ticked.failures.push(("incident", error)),
            }
        }
    }

    /// The windows that are due. A target that can't be looked at holds up no other.
    async fn find_due(
        &mut self,
        store: &Store,
        live: &Live,
        now: DateTime<Utc>,
        ticked: &mut Ticked,
    ) -> Vec<(Target, Occasion)> {
        let version = &live.config.version;
        if let Some((_, until)) = self.rest.as_ref().filter(|(seen, until)| seen == version && now < *until) {
            ticked.look_at(Some(*until));
            return Vec::new();
        }
        self.waiting.retain(|target, _| live.targets.contains(target));
        let (mut found, mut next_at, failed_before) = (Vec::new(), None, ticked.failures.len());
        for target in live.targets.iter() {
            let Some(settings) = live.config.digests.get(&target.digest) else { continue };
            let due = self.due(store, live, settings, target, now).await;
            let at = match due {
                Ok(Due::Tell(occasion)) => {
                    found.push((target.clone(), occasion));
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
            next_at = [next_at, at].into_iter().flatten().min();
        }
        ticked.look_at(next_at);
        // What is told now is looked at again, and so is what failed.
        let is_at_rest = found.is_empty() && ticked.failures.len() == failed_before;
        self.rest = next_at.filter(|_| is_at_rest).map(|at| (version.clone(), at));
        found
    }

    async fn tell(
        &mut self,
        store: &Store,
        live: &Arc<Live>,
        watermark: &mut impl Watermark,
        due: Vec<(Target, Occasion)>,
        now: DateTime<Utc>,
        ticked: &mut Ticked,
    ) -> Result<(), StoreError> {
        let mut ready = Vec::with_capacity(due.len());
        for (target, mut occasion) in due {
            match watermark.passed(occasion.window.end_at, now) {
                Some(passed) => {
                    occasion.incomplete = passed.incomplete;
                    self.waiting.remove(&target);
                    ready.push((target, occasion));
                }
                None => {
                    self.waiting.insert(target, occasion);
                    ticked.look_at(Some(now + NEXT_TICK));
                }
            }
        }
        if ready.is_empty() {
            return Ok(());
        }
        for telling in digest_job::tell(store, live, &mut self.catalogue, ready, now).await? {
            match telling {
                Ok(telling) => {
                    note(&telling);
                    ticked.has_messages |= telling.outcome == WindowOutcome::Enqueued;
                    if let Some(settings) = live.config.digests.get(&telling.target.digest) {
                        ticked.look_at(settings.schedule.next_after(now, settings.timezone));
                    }
                }
                Err(error) => ticked.failures.push(("digest", error)),
            }
        }
        Ok(())
    }

    /// What is to be done about the digest of a target.
    async fn due(
        &self,
        store: &Store,
        live: &Live,
        settings: &DigestSettings,
        target: &Target,
        now: DateTime<Utc>,
    ) -> Result<Due, StoreError> {
        if let Some(occasion) = self.waiting.get(target) {
            return Ok(Due::Tell(occasion.clone()));
        }
        let cover = cover_of(store, target, settings, now).await?;
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
            }),
        })
    }
}

/// It may have changed between the two looks: what is decided here is decided inside the transaction.
async fn advance_one(store: &Store, live: &Live, id: IncidentId, now: DateTime<Utc>) -> Result<bool, StoreError> {
    let mut tx = store.begin().await?;
    let Some(incident) = incidents::find(&mut tx, id).await? else { return Ok(false) };
    let open_letters = letters::open_of_incident(&mut tx, id.0).await?;
    let transition = advance(&incident, Reading { open_letters }, now);
    let moved = carry_out(&mut tx, live, incident, &transition, open_letters, now).await?;
    if moved {
        tx.commit().await?;
    }
    Ok(moved)
}

/// Writes a transition and its messages. False when there was nothing to do.
async fn carry_out(
    tx: &mut WriteTx,
    live: &Live,
    mut incident: Incident,
    transition: &Transition,
    open_letters: u64,
    now: DateTime<Utc>,
) -> Result<bool, StoreError> {
    if *transition == Transition::Rest {
        return Ok(false);
    }
    let number = queue::next_numbers(tx, 1).await?;
    let entries: Vec<NewEntry> = match transition {
        Transition::Rest => Vec::new(),
        Transition::Remind(reason) => live.announcer.reminder(&incident, *reason, open_letters, number, now),
        Transition::Escalate(step) => live.announcer.escalation(&incident, step, open_letters, number, now),
        Transition::Resolve => {
            incident.resolve(None, now);
            live.announcer.resolved(&incident, open_letters, number, now)
        }
    };
    incident.note_told(transition, now);
    incidents::save(tx, &incident).await?;
    for entry in &entries {
        queue::enqueue(tx, entry).await?;
    }
    info!(incident = incident.id.0, state = incident.state.as_str(), ?transition, "incident moved");
    Ok(true)
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

/// How far a target is told. One that is seen for the first time begins with the minute that runs; another schedule counts from when it
/// was first seen.
async fn cover_of(
    store: &Store,
    target: &Target,
    settings: &DigestSettings,
    now: DateTime<Utc>,
) -> Result<Cover, StoreError> {
    let (digest, key) = (target.digest.as_str(), target.key());
    let schedule = format!("{} {}", settings.schedule.line(), settings.timezone);
    let known = ledger::cover(store.reader(), digest, &key).await?;
    match known {
        Some(cover) if cover.schedule == schedule => Ok(cover),
        Some(cover) => {
            let mut tx = store.begin().await?;
            ledger::note_schedule(&mut tx, digest, &key, &schedule, now).await?;
            tx.commit().await?;
            Ok(Cover { schedule, in_force_since: Some(now), ..cover })
        }
        None => {
            let until = now.duration_trunc(TimeDelta::minutes(1)).unwrap_or(now);
            let cover = Cover { until, schedule, in_force_since: None };
            let mut tx = store.begin().await?;
            ledger::begin_cover(&mut tx, digest, &key, &cover).await?;
            tx.commit().await?;
            Ok(cover)
        }
    }
}
