//! What follows from a settlement, in its transaction: the copy for the fallback, the word to the operator, the standing of
//! the receiver. Whether anything follows is `outbox::policy`'s to say.

use super::attempt::{self, Shared, target};
use super::{DeliveryNews, DeliverySettings, DeliveryTrouble, Receiver};
use crate::name::ReceiverName;
use crate::outbox::policy::PROBE_AFTER;
use crate::outbox::queue::standing::{self, BrokenTransition, Standing, Target};
use crate::outbox::queue::{self, Abandoned, Claimed, ReleaseOutcome, SettleOutcome};
use crate::outbox::{DeadReason, Entry, MessageKind, NewEntry, Recipient, Settlement};
use crate::store::{StoreError, WriteTx};
use chrono::{DateTime, Utc};
use std::time::Duration;

/// Writes a settlement with all that follows from it.
pub(super) struct Aftermath<'a> {
    pub(super) shared: &'a Shared,
    pub(super) settings: &'a DeliverySettings,
    /// The receiver asked for quiet until then.
    pub(super) pause: Option<DateTime<Utc>>,
    pub(super) now: DateTime<Utc>,
}

/// Times that a settlement is tried to be written; after that the lease runs out and the try counts as unsure.
const WRITES_MAX: u32 = 3;

impl Aftermath<'_> {
    pub(super) async fn write(&self, claimed: &Claimed, settlement: &Settlement, recipients: &[Recipient]) {
        for round in 1..=WRITES_MAX {
            match self.try_write(claimed, settlement, recipients).await {
                Ok(()) => return,
                Err(e) => {
                    tracing::error!(entry = claimed.entry().id.0, round, error = %e, "a settlement was not stored")
                }
            }
            tokio::time::sleep(Duration::from_millis(500)).await;
        }
    }

    async fn try_write(
        &self,
        claimed: &Claimed,
        settlement: &Settlement,
        recipients: &[Recipient],
    ) -> Result<(), StoreError> {
        let mut tx = self.shared.store.begin().await?;
        let outcome = queue::settle(&mut tx, claimed, settlement, recipients, self.now).await?;
        let standing = match outcome {
            SettleOutcome::Settled => self.follow_up(&mut tx, claimed.entry(), settlement).await?,
            SettleOutcome::LeaseLost => None,
        };
        tx.commit().await?;
        self.remember(standing);
        Ok(())
    }

    /// Sends an entry to its fallback without a try, because its receiver is known to be broken. Without a fallback it
    /// waits for the next probe.
    pub(super) async fn divert(&self, entry: &Entry, standing: &Standing) -> Result<(), StoreError> {
        let why = standing.reason.clone().unwrap_or_default();
        let settlement = if !self.is_known(entry) {
            attempt::unknown_receiver()
        } else if self.fallback(entry).is_some() {
            Settlement::Dead { reason: DeadReason::ReceiverBroken, why }
        } else {
            Settlement::Retry { due_at: standing.probe_at.unwrap_or(self.now + PROBE_AFTER), why }
        };
        let mut tx = self.shared.store.begin().await?;
        if queue::settle_unclaimed(&mut tx, entry.id, &settlement, self.now).await? == SettleOutcome::Settled {
            let heirs = self.tell_fallback(&mut tx, entry, &settlement).await?;
            if let Settlement::Dead { reason: DeadReason::UnknownReceiver, why } = &settlement {
                let target = target(&entry.new.receiver, entry.new.address.as_deref());
                let what = DeliveryTrouble::UnknownReceiver;
                self.tell_refusal(&mut tx, entry, &target, what, why, heirs).await?;
            }
        }
        tx.commit().await.map_err(StoreError::from)
    }

    /// Copies a page that waits too long to its fallback; the original is tried on.
    pub(super) async fn copy_overdue(&self, entry: &Entry) -> Result<(), StoreError> {
        let Some(copy) = self.fallback(entry) else { return Ok(()) };
        let mut tx = self.shared.store.begin().await?;
        if queue::stand_in(&mut tx, entry.id, &copy).await?.is_some() {
            let (receiver, fallback) = (entry.new.receiver.as_str(), copy.receiver.as_str());
            tracing::warn!(
                receiver,
                fallback,
                number = entry.new.number,
                "a page waits too long; its fallback is told"
            );
        }
        Ok(tx.commit().await?)
    }

    /// Takes back claims whose claimer is gone, and does what follows for those that are given up; answers how many.
    pub(super) async fn release(&self, which: Abandoned) -> Result<usize, StoreError> {
        let lost = queue::lost_claims(self.shared.store.reader(), which, self.now).await?;
        for claim in &lost {
            let mut tx = self.shared.store.begin().await?;
            let outcome = queue::release(&mut tx, claim, self.now).await?;
            let standing = match &outcome {
                ReleaseOutcome::GivenUp(entry, settlement) => self.follow_up(&mut tx, entry, settlement).await?,
                ReleaseOutcome::Repeated | ReleaseOutcome::Left => None,
            };
            tx.commit().await?;
            self.remember(standing);
            if let ReleaseOutcome::GivenUp(entry, settlement) = &outcome {
                attempt::report(self.shared, entry, settlement, self.now);
            }
        }
        Ok(lost.len())
    }

    async fn follow_up(
        &self,
        tx: &mut WriteTx,
        entry: &Entry,
        settlement: &Settlement,
    ) -> Result<Option<(Target, Option<Standing>)>, StoreError> {
        let heirs = self.tell_fallback(tx, entry, settlement).await?;
        let target = target(&entry.new.receiver, entry.new.address.as_deref());
        match settlement {
            Settlement::Sent { note } => {
                if let Some(why) = note {
                    self.tell_refusal(tx, entry, &target, DeliveryTrouble::MessageRefused, why, heirs).await?;
                }
                if self.shared.standing(&target) == Standing::default() {
                    return Ok(None);
                }
                standing::clear(tx, &target).await?;
                Ok(Some((target, None)))
            }
            Settlement::Retry { .. } => {
                let Some(until) = self.pause else { return Ok(None) };
                standing::pause(tx, &target, until).await?;
                let standing = Standing { paused_until: Some(until), ..self.shared.standing(&target) };
                Ok(Some((target, Some(standing))))
            }
            Settlement::Dead { reason: DeadReason::ReceiverBroken, why } => {
                self.mark_broken(tx, entry, target, why).await.map(Some)
            }
            Settlement::Dead { reason, why } => {
                let what = match reason {
                    DeadReason::UnknownReceiver => DeliveryTrouble::UnknownReceiver,
                    DeadReason::GaveUp => DeliveryTrouble::GaveUp,
                    DeadReason::Refused | DeadReason::ReceiverBroken => DeliveryTrouble::MessageRefused,
                };
                self.tell_refusal(tx, entry, &target, what, why, heirs).await?;
                Ok(None)
            }
            Settlement::RetryPlain { .. } | Settlement::Repeat { .. } | Settlement::Unsure { .. } => Ok(None),
        }
    }

    fn remember(&self, change: Option<(Target, Option<Standing>)>) {
        if let Some((target, standing)) = change {
            self.shared.set_standing(target, standing);
        }
    }

    async fn mark_broken(
        &self,
        tx: &mut WriteTx,
        entry: &Entry,
        target: Target,
        why: &str,
    ) -> Result<(Target, Option<Standing>), StoreError> {
        let probe_at = self.now + PROBE_AFTER;
        let transition = standing::mark_broken(tx, &target, why, self.now, probe_at).await?;
        if transition == BrokenTransition::Broke {
            self.tell_operator(tx, entry, DeliveryTrouble::ReceiverBroken, why, Vec::new()).await?;
        }
        let known = self.shared.standing(&target);
        let standing = Standing {
            broken_since: known.broken_since.or(Some(self.now)),
            reason: Some(why.to_owned()),
            probe_at: Some(probe_at),
            paused_until: known.paused_until,
        };
        Ok((target, Some(standing)))
    }

    async fn tell_refusal(
        &self,
        tx: &mut WriteTx,
        entry: &Entry,
        target: &Target,
        what: DeliveryTrouble,
        why: &str,
        heirs: Vec<ReceiverName>,
    ) -> Result<(), StoreError> {
        match standing::note_refusal(tx, target, self.now).await? {
            BrokenTransition::Broke => self.tell_operator(tx, entry, what, why, heirs).await,
            BrokenTransition::StillBroken => Ok(()),
        }
    }

    /// Tells who stands in for the receiver. Answers who does for one that config no longer knows.
    async fn tell_fallback(
        &self,
        tx: &mut WriteTx,
        entry: &Entry,
        settlement: &Settlement,
    ) -> Result<Vec<ReceiverName>, StoreError> {
        if !settlement.wants_fallback(entry.new.kind) {
            return Ok(Vec::new());
        }
        if is_of_incident(entry.new.kind) && !self.is_known(entry) {
            return self.tell_heirs(tx, entry).await;
        }
        if let Some(copy) = self.fallback(entry) {
            queue::stand_in(tx, entry.id, &copy).await?;
        }
        Ok(Vec::new())
    }

    fn is_known(&self, entry: &Entry) -> bool {
        self.settings.receivers.contains_key(&entry.new.receiver)
    }

    /// Copies an urgent message, whose receiver and so its fallback are gone from config, to everybody whom routes page
    /// now; when they page nobody, to the operator. A renamed receiver is among them.
    async fn tell_heirs(&self, tx: &mut WriteTx, entry: &Entry) -> Result<Vec<ReceiverName>, StoreError> {
        let copies = |names: &[ReceiverName]| -> Vec<NewEntry> {
            let receivers = names.iter().filter_map(|name| self.settings.receivers.get(name));
            receivers.filter_map(|receiver| self.copy(entry, receiver)).collect()
        };
        let mut heirs = copies(&self.settings.pages);
        if heirs.is_empty() {
            heirs = copies(&self.settings.operator);
            heirs.truncate(1);
        }
        let mut told = Vec::new();
        for copy in heirs {
            // The first one is linked to the original, which thereby is copied once only.
            let id = if told.is_empty() {
                queue::stand_in(tx, entry.id, &copy).await?
            } else {
                Some(queue::enqueue(tx, &copy).await?)
            };
            told.extend(id.map(|_| copy.receiver));
        }
        if told.is_empty() {
            let receiver = entry.new.receiver.as_str();
            tracing::warn!(
                receiver,
                number = entry.new.number,
                "nobody new is told of a message for an unknown receiver"
            );
        }
        Ok(told)
    }

    /// The copy of an entry for the fallback of its receiver.
    fn fallback(&self, entry: &Entry) -> Option<NewEntry> {
        let name = self.fallback_name(entry)?;
        let no_way = |why: &str| {
            let (receiver, fallback) = (entry.new.receiver.as_str(), name.as_str());
            tracing::error!(receiver, fallback, number = entry.new.number, why, "the fallback can't be told");
        };
        let Some(receiver) = self.settings.receivers.get(name) else {
            no_way("config does not know it");
            return None;
        };
        let copy = self.copy(entry, receiver);
        if copy.is_none() {
            no_way("it writes to owners, and this message has none");
        }
        copy
    }

    /// The same message for another receiver; none for one that writes to owners when the message has none.
    fn copy(&self, entry: &Entry, receiver: &Receiver) -> Option<NewEntry> {
        let address = entry.new.address.clone().filter(|_| receiver.kind.is_owner());
        if receiver.kind.is_owner() && address.is_none() {
            return None;
        }
        Some(NewEntry {
            receiver: receiver.name.clone(),
            address,
            content: self.shared.render.copy(entry, receiver),
            fallback_of: Some(entry.id),
            due_at: self.now,
            created_at: self.now,
            ..entry.new.clone()
        })
    }

    /// Whom an entry goes to instead; word to the operator goes on to the operator's next receiver.
    fn fallback_name(&self, entry: &Entry) -> Option<&ReceiverName> {
        let own = self.settings.receivers.get(&entry.new.receiver).and_then(|receiver| receiver.fallback.as_ref());
        let next = || self.settings.operator.iter().skip_while(|name| **name != entry.new.receiver).nth(1);
        own.or_else(|| (entry.new.kind == MessageKind::Operator).then(next).flatten())
    }

    /// Tells the operator by the first way that is not the broken one and works as far as we know.
    async fn tell_operator(
        &self,
        tx: &mut WriteTx,
        entry: &Entry,
        what: DeliveryTrouble,
        why: &str,
        heirs: Vec<ReceiverName>,
    ) -> Result<(), StoreError> {
        let works = |name: &&ReceiverName| {
            **name != entry.new.receiver && !self.shared.standing(&target(name, None)).is_broken(self.now)
        };
        let mut ways = self.settings.operator.iter().filter(works).filter_map(|name| self.settings.receivers.get(name));
        // Matins itself has no owner.
        let way = ways.find(|receiver| !receiver.kind.is_owner());
        let Some(receiver) = way else {
            tracing::error!(receiver = entry.new.receiver.as_str(), why, "no receiver is left to tell the operator by");
            return Ok(());
        };
        let own = self.settings.receivers.get(&entry.new.receiver);
        let news = DeliveryNews {
            what,
            receiver: entry.new.receiver.clone(),
            address: entry.new.address.clone(),
            reason: why.to_owned(),
            instead: if heirs.is_empty() { own.and_then(|r| r.fallback.clone()).into_iter().collect() } else { heirs },
            at: self.now,
        };
        let number = queue::next_numbers(tx, 1).await?;
        let (view, content) = self.shared.render.news(&news, number, receiver);
        let message = NewEntry {
            number,
            kind: MessageKind::Operator,
            receiver: receiver.name.clone(),
            address: None,
            workflow: None,
            incident_id: None,
            digest_id: None,
            template: "operator".to_owned(),
            view,
            content,
            fallback_of: None,
            due_at: self.now,
            created_at: self.now,
        };
        queue::enqueue(tx, &message).await.map(drop)
    }
}

/// Messages that somebody who is paged waits for.
fn is_of_incident(kind: MessageKind) -> bool {
    match kind {
        MessageKind::Page | MessageKind::Escalation | MessageKind::Reminder | MessageKind::Resolved => true,
        MessageKind::Digest | MessageKind::Operator | MessageKind::Test => false,
    }
}
