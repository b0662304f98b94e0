//! The loop: each round finds the next entry of every free receiver, claims them and starts one task for each. Wake-ups only
//! make it look; the rows are what it acts on, so a lost wake-up costs time and no message.

use super::aftermath::Aftermath;
use super::attempt::{Finished, LEASE, Shared, attempt, target};
use super::http::Http;
use super::lane::{Lane, Room};
use super::receiver::{Receiver, ReceiverKind};
use super::{DeliverySettings, Observe, Render};
use crate::clock;
use crate::name::ReceiverName;
use crate::outbox::EntryId;
use crate::outbox::policy::{PAGE_PATIENCE, RETRY_AFTER_MAX};
use crate::outbox::queue::standing::{self, Target};
use crate::outbox::queue::{self, Abandoned, Admit, Lease};
use crate::store::{Store, StoreError};
use chrono::{DateTime, TimeDelta, Utc};
use secrecy::ExposeSecret;
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::sync::{Notify, watch};
use tokio::task::{self, JoinSet};

/// Longest sleep with nothing to do; the rows are looked at anyway.
const IDLE: Duration = Duration::from_secs(30);
/// How often pages that wait too long and lost leases are looked for.
const SWEEP: Duration = Duration::from_secs(2);
/// Least time between two messages to one Slack channel.
const SLACK_SPACING: Duration = Duration::from_secs(1);
/// A wall clock set back by less than this makes nothing late that anybody would miss.
const STEP_MIN: TimeDelta = TimeDelta::seconds(2);
/// Pause after the store could not be read.
const STORE_PAUSE: Duration = Duration::from_secs(1);

/// The delivery loop, ready to run.
pub struct Deliverer {
    shared: Arc<Shared>,
    settings: watch::Receiver<Arc<DeliverySettings>>,
    wake: Arc<Notify>,
    owner: String,
    lanes: BTreeMap<ReceiverName, Lane>,
    flights: JoinSet<Finished>,
    /// Whose try a task is, for when it ends without saying so.
    in_flight: HashMap<task::Id, ReceiverName>,
    started_at: Instant,
    swept_at: Instant,
    last: Now,
}

/// One moment by both clocks: rows go by the wall, what lives with the process goes by the one that is never set.
#[derive(Clone, Copy)]
struct Now {
    wall: DateTime<Utc>,
    instant: Instant,
}

impl Now {
    fn read() -> Self {
        Self { wall: clock::now(), instant: clock::instant() }
    }

    /// How far the wall clock was set back since `earlier`, when it is worth a word.
    fn set_back_since(self, earlier: Self) -> Option<TimeDelta> {
        let passed = TimeDelta::from_std(self.instant.duration_since(earlier.instant)).ok()?;
        Some(earlier.wall + passed - self.wall).filter(|step| *step >= STEP_MIN)
    }

    /// The instant of a time on the wall clock, at once when it is over and never more than `most` away.
    fn until(self, at: DateTime<Utc>, most: Duration) -> Instant {
        self.instant + (at - self.wall).to_std().unwrap_or_default().min(most)
    }
}

impl Deliverer {
    /// Sets up delivery. A new value in `settings` is a reload; `nats` holds the client while there is one.
    ///
    /// # Errors
    /// When TLS can't be set up.
    pub fn new(
        store: Store,
        settings: watch::Receiver<Arc<DeliverySettings>>,
        nats: watch::Receiver<Option<async_nats::Client>>,
        render: Arc<dyn Render>,
        observe: Observe,
    ) -> Result<Self, reqwest::Error> {
        let now = Now::read();
        Ok(Self {
            shared: Arc::new(Shared::new(store, Http::new()?, nats, render, observe)),
            settings,
            wake: Arc::new(Notify::new()),
            owner: format!("{}-{}", std::process::id(), now.wall.timestamp_millis()),
            lanes: BTreeMap::new(),
            flights: JoinSet::new(),
            in_flight: HashMap::new(),
            started_at: now.instant,
            swept_at: now.instant,
            last: now,
        })
    }

    /// To be notified after a commit that enqueued something.
    pub fn waker(&self) -> Arc<Notify> {
        self.wake.clone()
    }

    /// Delivers until `shutdown`, then waits for what is in flight, which takes no longer than a lease.
    ///
    /// # Errors
    /// When the store can't be read at start.
    pub async fn run(mut self, shutdown: impl Future<Output = ()>) -> Result<(), StoreError> {
        self.recover().await?;
        let mut shutdown = std::pin::pin!(shutdown);
        let mut settings = self.settings.clone();
        let mut known = settings.borrow_and_update().clone();
        loop {
            let wake_at = match self.round().await {
                Ok(wake_at) => wake_at,
                Err(e) => {
                    tracing::error!(error = %e, "the outbox can't be read");
                    clock::instant() + STORE_PAUSE
                }
            };
            tokio::select! {
                () = &mut shutdown => break,
                () = self.wake.notified() => {}
                Some(finished) = self.flights.join_next_with_id() => self.land(finished),
                Ok(()) = settings.changed() => {
                    let new = settings.borrow_and_update().clone();
                    self.reload(&known, &new).await;
                    known = new;
                }
                () = tokio::time::sleep_until(wake_at.into()) => {}
            }
        }
        while let Some(finished) = self.flights.join_next_with_id().await {
            self.land(finished);
        }
        Ok(())
    }

    /// Takes back what a dead process had claimed, and recalls how receivers stand.
    async fn recover(&mut self) -> Result<(), StoreError> {
        let now = Now::read();
        for (target, standing) in standing::read_all(self.shared.store.reader()).await? {
            if let Some(until) = standing.paused_until {
                self.lanes.entry(target.receiver.clone()).or_default().hold_until(now.until(until, RETRY_AFTER_MAX));
            }
            self.shared.set_standing(target, Some(standing));
        }
        let settings = self.settings.borrow().clone();
        let aftermath = Aftermath { shared: &self.shared, settings: &settings, pause: None, now: now.wall };
        let released = aftermath.release(Abandoned::All).await?;
        if released > 0 {
            tracing::warn!(released, "tries were open when the service stopped");
        }
        Ok(())
    }

    /// Starts what can start; answers when to look again.
    async fn round(&mut self) -> Result<Instant, StoreError> {
        let now = Now::read();
        self.notice_step(now).await?;
        let settings = self.settings.borrow().clone();
        let waiting = queue::waiting_receivers(self.shared.store.reader()).await?;
        let mut wake_at = now.instant + IDLE;
        if !waiting.is_empty() {
            self.sweep(&settings, &waiting, now).await?;
            wake_at = now.instant + SWEEP;
        }
        let mut ids = Vec::new();
        for receiver in &waiting {
            match self.next(&settings, receiver, now).await? {
                Next::Claim(id) => ids.push(id),
                Next::Diverted => wake_at = now.instant,
                Next::At(at) => wake_at = wake_at.min(at),
                Next::Landing => {}
            }
        }
        if !ids.is_empty() {
            self.start(&settings, &ids, now).await?;
        }
        Ok(wake_at)
    }

    /// What waits must not wait longer because the wall clock was set back.
    async fn notice_step(&mut self, now: Now) -> Result<(), StoreError> {
        if let Some(step) = now.set_back_since(self.last) {
            tracing::warn!(seconds = step.num_seconds(), "the clock was set back; what waits is moved along");
            queue::set_back(&self.shared.store, step).await?;
        }
        self.last = now;
        Ok(())
    }

    async fn next(
        &mut self,
        settings: &DeliverySettings,
        receiver: &ReceiverName,
        now: Now,
    ) -> Result<Next, StoreError> {
        let lane = self.lanes.entry(receiver.clone()).or_default();
        let is_broken = self.shared.standing(&target(receiver, None)).is_broken(now.wall);
        let admit = match lane.room(now.instant) {
            Room::Now(admit) => admit,
            // What is not sent needs no room.
            Room::At(_) if is_broken => Admit::All,
            Room::At(at) => return Ok(Next::At(at)),
            Room::Busy => return Ok(Next::Landing),
        };
        let reader = self.shared.store.reader();
        let Some((id, address)) = queue::next_due(reader, receiver, admit, now.wall).await? else {
            let due_at = queue::earliest_due(reader, receiver).await?.filter(|at| *at > now.wall);
            let due_at = due_at.map(|at| now.until(at, SWEEP));
            return Ok(Next::At(due_at.or_else(|| lane.retry_at()).unwrap_or(now.instant + SWEEP)));
        };
        let standing = self.shared.standing(&target(receiver, address.as_deref()));
        if !standing.is_broken(now.wall) {
            return Ok(Next::Claim(id));
        }
        if let Some(entry) = queue::find(reader, id).await? {
            let aftermath = Aftermath { shared: &self.shared, settings, pause: None, now: now.wall };
            aftermath.divert(&entry, &standing).await?;
        }
        Ok(Next::Diverted)
    }

    async fn start(&mut self, settings: &Arc<DeliverySettings>, ids: &[EntryId], now: Now) -> Result<(), StoreError> {
        let lease = Lease { owner: self.owner.clone(), until: now.wall + LEASE };
        for claimed in queue::claim(&self.shared.store, ids, &lease).await? {
            let receiver = &claimed.entry().new.receiver;
            let spacing = settings.receivers.get(receiver).map_or(Duration::ZERO, spacing);
            let lane = self.lanes.entry(receiver.clone()).or_default();
            lane.start(clock::instant(), claimed.entry().attempts > 1, spacing);
            let receiver = receiver.clone();
            let task = self.flights.spawn(attempt(self.shared.clone(), settings.clone(), claimed));
            self.in_flight.insert(task.id(), receiver);
        }
        Ok(())
    }

    fn land(&mut self, finished: Result<(task::Id, Finished), task::JoinError>) {
        match finished {
            Ok((id, finished)) => {
                self.in_flight.remove(&id);
                let lane = self.lanes.entry(finished.receiver).or_default();
                lane.finish();
                if let Some(hold) = finished.hold_for {
                    lane.hold_until(clock::instant() + hold);
                }
            }
            Err(e) => {
                // Its row comes back when the lease runs out.
                let receiver = self.in_flight.remove(&e.id());
                let name = receiver.as_ref().map(ReceiverName::as_str);
                tracing::error!(receiver = name, error = %e, "a try ended badly");
                if let Some(lane) = receiver.and_then(|receiver| self.lanes.get_mut(&receiver)) {
                    lane.finish();
                }
            }
        }
    }

    /// Copies pages that wait too long to their fallback, and takes back leases that ran out.
    async fn sweep(
        &mut self,
        settings: &DeliverySettings,
        waiting: &[ReceiverName],
        now: Now,
    ) -> Result<(), StoreError> {
        if now.instant.duration_since(self.swept_at) < SWEEP {
            return Ok(());
        }
        self.swept_at = now.instant;
        let before = now.wall - PAGE_PATIENCE;
        let had_its_chance = now.instant.duration_since(self.started_at) >= PAGE_PATIENCE;
        let has_fallback = |r: &&ReceiverName| settings.receivers.get(r).is_some_and(|r| r.fallback.is_some());
        for receiver in waiting.iter().filter(has_fallback) {
            for entry in queue::overdue(self.shared.store.reader(), receiver, before).await? {
                // After a stop of our own the receiver first gets its chance.
                if entry.attempts > 0 || had_its_chance {
                    let aftermath = Aftermath { shared: &self.shared, settings, pause: None, now: now.wall };
                    aftermath.copy_overdue(&entry).await?;
                }
            }
        }
        let aftermath = Aftermath { shared: &self.shared, settings, pause: None, now: now.wall };
        aftermath.release(Abandoned::Expired).await.map(drop)
    }

    /// A receiver whose address changed is no longer known to be broken.
    async fn reload(&mut self, old: &DeliverySettings, new: &DeliverySettings) {
        let changed = |target: &Target| match (old.receivers.get(&target.receiver), new.receivers.get(&target.receiver))
        {
            (Some(old), Some(new)) => address(old) != address(new),
            (None, _) | (_, None) => true,
        };
        for target in self.shared.targets().into_iter().filter(changed) {
            if let Err(e) = self.forget(&target).await {
                tracing::error!(receiver = target.receiver.as_str(), error = %e, "its standing can't be cleared");
            }
        }
    }

    async fn forget(&mut self, target: &Target) -> Result<(), StoreError> {
        let mut tx = self.shared.store.begin().await?;
        standing::clear(&mut tx, target).await?;
        tx.commit().await?;
        self.shared.set_standing(target.clone(), None);
        Ok(())
    }
}

/// What a receiver does in this round.
enum Next {
    /// This entry goes now.
    Claim(EntryId),
    /// An entry went to the fallback; there may be more.
    Diverted,
    /// Nothing before then.
    At(Instant),
    /// The try in flight wakes the loop when it is back.
    Landing,
}

fn spacing(receiver: &Receiver) -> Duration {
    match &receiver.kind {
        ReceiverKind::SlackWebhook { .. } | ReceiverKind::SlackBot { .. } => SLACK_SPACING,
        ReceiverKind::Email { .. }
        | ReceiverKind::Webhook { .. }
        | ReceiverKind::Nats { .. }
        | ReceiverKind::File { .. } => Duration::ZERO,
    }
}

/// Where a receiver is, compared in memory only: it may be a credential.
fn address(receiver: &Receiver) -> String {
    match &receiver.kind {
        ReceiverKind::SlackWebhook { url } | ReceiverKind::Webhook { url } => url.expose_secret().to_owned(),
        ReceiverKind::SlackBot { token, channel, api_url } => format!("{} {channel} {api_url}", token.expose_secret()),
        ReceiverKind::Email { to } => format!("{to:?}"),
        ReceiverKind::Nats { subject } => subject.clone(),
        ReceiverKind::File { dir } => dir.display().to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_clock_set_back_is_noticed_and_one_that_goes_or_jumps_ahead_is_not() {
        let earlier = Now::read();
        let later = |wall| Now { wall: earlier.wall + wall, instant: earlier.instant + Duration::from_secs(10) };
        let hour = TimeDelta::hours(1);
        assert_eq!(later(TimeDelta::seconds(10) - hour).set_back_since(earlier), Some(hour));
        assert_eq!(later(TimeDelta::seconds(10)).set_back_since(earlier), None);
        assert_eq!(later(hour).set_back_since(earlier), None);
    }

    #[test]
    fn a_quiet_that_was_asked_for_by_another_clock_ends_within_the_longest() {
        let now = Now::read();
        assert_eq!(now.until(now.wall + TimeDelta::days(400), RETRY_AFTER_MAX), now.instant + RETRY_AFTER_MAX);
        assert_eq!(now.until(now.wall - TimeDelta::days(400), RETRY_AFTER_MAX), now.instant);
    }
}
