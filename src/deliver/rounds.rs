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
use crate::outbox::policy::PAGE_PATIENCE;
use crate::outbox::queue::standing::{self, Target};
use crate::outbox::queue::{self, Abandoned, Admit, Lease};
use crate::store::{Store, StoreError};
use chrono::{DateTime, TimeDelta, Utc};
use secrecy::ExposeSecret;
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{Notify, watch};
use tokio::task::{self, JoinSet};

/// Longest sleep with nothing to do; the rows are looked at anyway.
const IDLE: TimeDelta = TimeDelta::seconds(30);
/// How often pages that wait too long and lost leases are looked for.
const SWEEP: TimeDelta = TimeDelta::seconds(2);
/// Least time between two messages to one Slack channel.
const SLACK_SPACING: TimeDelta = TimeDelta::seconds(1);
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
    started_at: DateTime<Utc>,
    swept_at: DateTime<Utc>,
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
        let now = clock::now();
        Ok(Self {
            shared: Arc::new(Shared::new(store, Http::new()?, nats, render, observe)),
            settings,
            wake: Arc::new(Notify::new()),
            owner: format!("{}-{}", std::process::id(), now.timestamp_millis()),
            lanes: BTreeMap::new(),
            flights: JoinSet::new(),
            in_flight: HashMap::new(),
            started_at: now,
            swept_at: now,
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
            let sleep = match self.round().await {
                Ok(wake_at) => (wake_at - clock::now()).to_std().unwrap_or_default(),
                Err(e) => {
                    tracing::error!(error = %e, "the outbox can't be read");
                    STORE_PAUSE
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
                () = tokio::time::sleep(sleep) => {}
            }
        }
        while let Some(finished) = self.flights.join_next_with_id().await {
            self.land(finished);
        }
        Ok(())
    }

    /// Takes back what a dead process had claimed, and recalls how receivers stand.
    async fn recover(&mut self) -> Result<(), StoreError> {
        for (target, standing) in standing::read_all(self.shared.store.reader()).await? {
            if let Some(until) = standing.paused_until {
                self.lanes.entry(target.receiver.clone()).or_default().hold_until(until);
            }
            self.shared.set_standing(target, Some(standing));
        }
        let settings = self.settings.borrow().clone();
        let aftermath = Aftermath { shared: &self.shared, settings: &settings, pause: None, now: clock::now() };
        let released = aftermath.release(Abandoned::All).await?;
        if released > 0 {
            tracing::warn!(released, "tries were open when the service stopped");
        }
        Ok(())
    }

    /// Starts what can start; answers when to look again.
    async fn round(&mut self) -> Result<DateTime<Utc>, StoreError> {
        let now = clock::now();
        let settings = self.settings.borrow().clone();
        let waiting = queue::waiting_receivers(self.shared.store.reader()).await?;
        let mut wake_at = now + IDLE;
        if !waiting.is_empty() {
            self.sweep(&settings, &waiting, now).await?;
            wake_at = now + SWEEP;
        }
        let mut ids = Vec::new();
        for receiver in &waiting {
            match self.next(&settings, receiver, now).await? {
                Next::Claim(id) => ids.push(id),
                Next::Diverted => wake_at = now,
                Next::At(at) => wake_at = wake_at.min(at),
                Next::Landing => {}
            }
        }
        if !ids.is_empty() {
            self.start(&settings, &ids, now).await?;
        }
        Ok(wake_at)
    }

    async fn next(
        &mut self,
        settings: &DeliverySettings,
        receiver: &ReceiverName,
        now: DateTime<Utc>,
    ) -> Result<Next, StoreError> {
        let lane = self.lanes.entry(receiver.clone()).or_default();
        let is_broken = self.shared.standing(&target(receiver, None)).is_broken(now);
        let admit = match lane.room(now) {
            Room::Now(admit) => admit,
            // What is not sent needs no room.
            Room::At(_) if is_broken => Admit::All,
            Room::At(at) => return Ok(Next::At(at)),
            Room::Busy => return Ok(Next::Landing),
        };
        let reader = self.shared.store.reader();
        let Some((id, address)) = queue::next_due(reader, receiver, admit, now).await? else {
            let due_at = queue::earliest_due(reader, receiver).await?.filter(|at| *at > now);
            return Ok(Next::At(due_at.or_else(|| lane.retry_at()).unwrap_or(now + SWEEP)));
        };
        let standing = self.shared.standing(&target(receiver, address.as_deref()));
        if !standing.is_broken(now) {
            return Ok(Next::Claim(id));
        }
        if let Some(entry) = queue::find(reader, id).await? {
            let aftermath = Aftermath { shared: &self.shared, settings, pause: None, now };
            aftermath.divert(&entry, &standing).await?;
        }
        Ok(Next::Diverted)
    }

    async fn start(
        &mut self,
        settings: &Arc<DeliverySettings>,
        ids: &[EntryId],
        now: DateTime<Utc>,
    ) -> Result<(), StoreError> {
        let lease = Lease { owner: self.owner.clone(), until: now + LEASE };
        for claimed in queue::claim(&self.shared.store, ids, &lease).await? {
            let receiver = &claimed.entry().new.receiver;
            let spacing = settings.receivers.get(receiver).map_or(TimeDelta::zero(), spacing);
            let lane = self.lanes.entry(receiver.clone()).or_default();
            lane.start(clock::now(), claimed.entry().attempts > 1, spacing);
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
                if let Some(until) = finished.hold_until {
                    lane.hold_until(until);
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
        now: DateTime<Utc>,
    ) -> Result<(), StoreError> {
        if now - self.swept_at < SWEEP {
            return Ok(());
        }
        self.swept_at = now;
        let before = now - PAGE_PATIENCE;
        let has_fallback = |r: &&ReceiverName| settings.receivers.get(r).is_some_and(|r| r.fallback.is_some());
        for receiver in waiting.iter().filter(has_fallback) {
            for entry in queue::overdue(self.shared.store.reader(), receiver, before).await? {
                // After a stop of our own the receiver first gets its chance.
                if entry.attempts > 0 || self.started_at <= before {
                    let aftermath = Aftermath { shared: &self.shared, settings, pause: None, now };
                    aftermath.copy_overdue(&entry).await?;
                }
            }
        }
        let aftermath = Aftermath { shared: &self.shared, settings, pause: None, now };
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
    At(DateTime<Utc>),
    /// The try in flight wakes the loop when it is back.
    Landing,
}

fn spacing(receiver: &Receiver) -> TimeDelta {
    match &receiver.kind {
        ReceiverKind::SlackWebhook { .. } | ReceiverKind::SlackBot { .. } => SLACK_SPACING,
        ReceiverKind::Email { .. }
        | ReceiverKind::Webhook { .. }
        | ReceiverKind::Nats { .. }
        | ReceiverKind::File { .. } => TimeDelta::zero(),
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
