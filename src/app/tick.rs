//! The tick: once a second the store is looked at, and what is due is decided and written. Nothing waits in memory between ticks, so a
//! restart loses nothing.

use super::watermark::Watermark;
use crate::config::DigestSettings;
use crate::digest::Late;
use crate::digest::plan::{DigestRule, PlanDecision, plan};
use crate::digest_job::{self, Occasion, Target, WindowOutcome};
use crate::incident::{Incident, Reading, Transition, advance};
use crate::live::{Live, Shared};
use crate::outbox::{NewEntry, queue};
use crate::store::ledger::Cover;
use crate::store::{StoreError, WriteTx, incidents, ledger, letters};
use chrono::{DateTime, DurationRound, TimeDelta, Utc};
use std::collections::BTreeMap;
use std::sync::Arc;
use tracing::{error, info, warn};

/// What is remembered from tick to tick. All of it can be found again after a restart.
#[derive(Debug, Default)]
pub struct Ticker {
    watermark: Watermark,
    /// Windows that are due and wait for intake. Kept, so that a slot or a closing time that passes meanwhile changes nothing.
    waiting: BTreeMap<Target, Occasion>,
}

impl Ticker {
    /// One tick. Each part is tried even when another failed.
    pub async fn tick(&mut self, shared: &Arc<Shared>, now: DateTime<Utc>) {
        let live = shared.live.load_full();
        if let Err(error) = advance_incidents(shared, &live, now).await {
            error!(%error, "incidents could not be looked at");
        }
        if let Err(error) = self.tell_digests(shared, &live, now).await {
            error!(%error, "digests could not be looked at");
        }
    }

    async fn tell_digests(&mut self, shared: &Arc<Shared>, live: &Live, now: DateTime<Utc>) -> Result<(), StoreError> {
        let targets = digest_job::targets(&live.config);
        self.waiting.retain(|target, _| targets.contains(target));
        for target in targets {
            let Some(mut occasion) = self.due(shared, live, &target, now).await? else { continue };
            let Some(passed) = self.watermark.passed(shared, occasion.window.end_at, now).await else {
                self.waiting.insert(target, occasion);
                continue;
            };
            occasion.incomplete = passed.incomplete;
            self.waiting.remove(&target);
            let end_at = occasion.window.end_at;
            let outcome = digest_job::tell(&shared.store, live, &target, occasion, now).await?;
            note(&target, end_at, &outcome);
            shared.outbox_wake.notify_one();
        }
        self.watermark.forget_before(now - TimeDelta::days(1));
        Ok(())
    }

    /// The window of a target that is due, if one is.
    async fn due(
        &self,
        shared: &Shared,
        live: &Live,
        target: &Target,
        now: DateTime<Utc>,
    ) -> Result<Option<Occasion>, StoreError> {
        if let Some(occasion) = self.waiting.get(target) {
            return Ok(Some(occasion.clone()));
        }
        let Some(settings) = live.config.digests.get(&target.digest) else { return Ok(None) };
        let cover = cover_of(shared, target, settings, now).await?;
        let rule = DigestRule {
            schedule: &settings.schedule,
            timezone: settings.timezone,
            calendar: settings.calendar.as_ref().and_then(|name| live.config.calendars.get(name)),
            max_hold: settings.max_hold,
            in_force_since: cover.in_force_since,
        };
        Ok(match plan(&rule, cover.until, now) {
            PlanDecision::NotDue { .. } | PlanDecision::Hold { .. } => None,
            PlanDecision::Due { window, due_at, late, .. } => Some(Occasion {
                window,
                due_at,
                late: late.map(|l| Late { slots_count: l.slots_missed, away: None }),
                incomplete: None,
            }),
        })
    }
}

async fn advance_incidents(shared: &Shared, live: &Live, now: DateTime<Utc>) -> Result<(), StoreError> {
    let mut reader = shared.store.reader().acquire().await?;
    let mut due = Vec::new();
    for incident in incidents::all_open(&mut reader).await? {
        let open_letters = letters::open_of_incident(&mut reader, incident.id.0).await?;
        if advance(&incident, Reading { open_letters }, now) != Transition::Rest {
            due.push(incident.id);
        }
    }
    drop(reader);
    for id in due {
        let mut tx = shared.store.begin().await?;
        // It may have changed between the two looks: what is decided here is decided inside the transaction.
        let Some(incident) = incidents::find(&mut tx, id).await? else { continue };
        let open_letters = letters::open_of_incident(&mut tx, id.0).await?;
        let transition = advance(&incident, Reading { open_letters }, now);
        if carry_out(&mut tx, live, incident, &transition, open_letters, now).await? {
            tx.commit().await?;
            shared.outbox_wake.notify_one();
        }
    }
    Ok(())
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

fn note(target: &Target, end_at: DateTime<Utc>, outcome: &WindowOutcome) {
    let (digest, receiver) = (target.digest.as_str(), target.receiver.as_str());
    match outcome {
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
    shared: &Shared,
    target: &Target,
    settings: &DigestSettings,
    now: DateTime<Utc>,
) -> Result<Cover, StoreError> {
    let (digest, key) = (target.digest.as_str(), target.key());
    let schedule = format!("{} {}", settings.schedule.line(), settings.timezone);
    let known = ledger::cover(shared.store.reader(), digest, &key).await?;
    match known {
        Some(cover) if cover.schedule == schedule => Ok(cover),
        Some(cover) => {
            let mut tx = shared.store.begin().await?;
            ledger::note_schedule(&mut tx, digest, &key, &schedule, now).await?;
            tx.commit().await?;
            Ok(Cover { schedule, in_force_since: Some(now), ..cover })
        }
        None => {
            let until = now.duration_trunc(TimeDelta::minutes(1)).unwrap_or(now);
            let cover = Cover { until, schedule, in_force_since: None };
            let mut tx = shared.store.begin().await?;
            ledger::begin_cover(&mut tx, digest, &key, &cover).await?;
            tx.commit().await?;
            Ok(cover)
        }
    }
}
