//! How far targets are told, written down: where a new one begins, what becomes of the open window of one that config no longer names,
//! and a word to the operator of what nobody tells.

use super::reload::operators;
use crate::config::{Config, DigestSettings};
use crate::digest_job::{Line, Succession, Target, Untold};
use crate::live::Live;
use crate::name::WorkflowName;
use crate::outbox::queue;
use crate::render::{OperatorFacts, words};
use crate::store::ledger::Cover;
use crate::store::{Store, StoreError, WriteTx, ledger};
use chrono::{DateTime, DurationRound, TimeDelta, Utc};
use tracing::{info, warn};

/// How far a target is told. One that is seen for the first time begins with the minute that runs; another schedule counts from when it
/// was first seen.
pub(super) async fn cover_of(
    store: &Store,
    target: &Target,
    settings: &DigestSettings,
    known: Option<Cover>,
    now: DateTime<Utc>,
) -> Result<Cover, StoreError> {
    let (digest, key) = (target.digest.as_str(), target.key());
    let schedule = format!("{} {}", settings.schedule.line(), settings.timezone);
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
            let cover = Cover { until, schedule, in_force_since: None, left_at: None };
            let mut tx = store.begin().await?;
            ledger::begin_cover(&mut tx, digest, &key, &cover).await?;
            tx.commit().await?;
            Ok(cover)
        }
    }
}

/// So long after a change of config, events may still be stored that the one before decided about.
const STRAGGLERS_FOR: TimeDelta = TimeDelta::seconds(5);

/// Who has just taken the place of whom, and until when what was decided for the old name is looked for.
#[derive(Debug, Default)]
pub(super) struct Handovers(Vec<(Line, Line, DateTime<Utc>)>);

impl Handovers {
    /// Whether there is nothing to look for.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Writes a change of config. One transaction, so that a window is neither lost nor told twice. Says whether there are messages to
    /// send.
    pub async fn write(
        &mut self,
        store: &Store,
        live: &Live,
        change: Succession,
        now: DateTime<Utc>,
    ) -> Result<bool, StoreError> {
        let mut tx = store.begin().await?;
        let mut has_messages = false;
        for untold in &change.untold {
            has_messages |= tell(&mut tx, live, untold, now).await?;
        }
        for (old, new) in &change.moved {
            has_messages |= hand_over(&mut tx, live, old, new, now).await?;
            info!(digest = new.0, receiver = new.1, "takes the place of digest {} to {}", old.0, old.1);
        }
        for (digest, receiver) in &change.ended {
            ledger::end_cover(&mut tx, digest, receiver).await?;
        }
        for (digest, receiver) in &change.left {
            ledger::note_left(&mut tx, digest, receiver, Some(now)).await?;
        }
        for (digest, receiver) in &change.back {
            ledger::note_left(&mut tx, digest, receiver, None).await?;
        }
        for (target, cover) in &change.begun {
            ledger::begin_cover(&mut tx, target.digest.as_str(), &target.key(), cover).await?;
        }
        tx.commit().await?;
        self.0.extend(change.moved.into_iter().map(|(old, new)| (old, new, now + STRAGGLERS_FOR)));
        Ok(has_messages)
    }

    /// Hands over what was decided for the old names meanwhile. Says whether there are messages to send; none when there is nothing to
    /// hand over.
    pub async fn repeat(&mut self, store: &Store, live: &Live, now: DateTime<Utc>) -> Result<Option<bool>, StoreError> {
        if self.0.is_empty() {
            return Ok(None);
        }
        let mut tx = store.begin().await?;
        let mut has_messages = false;
        for (old, new, _) in &self.0 {
            has_messages |= hand_over(&mut tx, live, old, new, now).await?;
        }
        tx.commit().await?;
        self.0.retain(|(_, _, until)| now < *until);
        Ok(Some(has_messages))
    }
}

/// Hands over what `old` was to tell, and what is on its way to a receiver that config no longer knows. True when there are messages.
async fn hand_over(
    tx: &mut WriteTx,
    live: &Live,
    old: &Line,
    new: &Line,
    now: DateTime<Utc>,
) -> Result<bool, StoreError> {
    ledger::hand_over(tx, old, new).await?;
    let (digest, receivers) = (old.0.as_str(), (old.1.as_str(), new.1.as_str()));
    if live.config.receivers.keys().any(|known| known.as_str() == receivers.0) {
        return Ok(false);
    }
    let count = queue::move_digests(tx, digest, receivers, now).await?;
    if count > 0 {
        info!(digest, receiver = receivers.1, count, "digests that were on their way to {} go there", receivers.0);
    }
    Ok(count > 0)
}

/// Tells the operator what nobody else tells. False when that is nothing.
async fn tell(tx: &mut WriteTx, live: &Live, untold: &Untold, now: DateTime<Utc>) -> Result<bool, StoreError> {
    let (digest, receiver) = &untold.line;
    let since = untold.since;
    let counts = ledger::events_since(tx, digest, receiver, since).await?;
    let is_untold = |workflow| !untold.without_owner || !has_owner(&live.config, workflow);
    let count: u64 = counts.iter().filter(|(workflow, _)| is_untold(workflow)).map(|(_, count)| count).sum();
    if count == 0 {
        return Ok(false);
    }
    warn!(digest, receiver, %since, count, "config no longer names whom these events are for; no digest tells them");
    let operators = operators(live);
    if operators.is_empty() {
        return Ok(false);
    }
    let facts = facts(live, untold, count, queue::next_numbers(tx, 1).await?, now);
    for operator in operators {
        if let Some(entry) = live.announcer.operator(&operator, &facts) {
            queue::enqueue(tx, &entry).await?;
        }
    }
    Ok(true)
}

fn has_owner(config: &Config, workflow: &WorkflowName) -> bool {
    config.workflows.find(workflow).is_some_and(|w| w.owner.is_some())
}

fn facts(live: &Live, untold: &Untold, count: u64, number: i64, now: DateTime<Utc>) -> OperatorFacts {
    let (digest, receiver) = &untold.line;
    let zone = live.announcer.zone();
    let (events, since) = (words::noun(count, "event"), words::date_time(untold.since, zone));
    let (title, what, action) = if untold.without_owner {
        (
            format!("Digest {digest} leaves out workflows without an owner"),
            format!(
                "An owner is gone from config. {events} since {since} of workflows that have no owner now are in no digest to {receiver}."
            ),
            "Give these workflows an owner in config, or see the events with: matins dead-letters list",
        )
    } else {
        (
            format!("Digest {digest} no longer goes to {receiver}"),
            format!(
                "{events} that came since {since} were not told there, and no one receiver of config takes its place."
            ),
            "If that was not meant, name it in a route again: its next digest then tells them",
        )
    };
    OperatorFacts { number, is_test: false, title, what, action: Some(action.to_owned()), url: None, now, zone }
}
