//! One try of one claimed entry: send it with no transaction open, then settle it. What else follows is `aftermath`'s.

use super::aftermath::Aftermath;
use super::http::{ANSWER_TIMEOUT, Http};
use super::receiver::{Channel, Receiver, ReceiverKind, Recipients};
use super::{DeliverySettings, Observe, Render, Report};
use super::{email, file, nats, slack, smtp, webhook};
use crate::clock;
use crate::config::SmtpSettings;
use crate::name::ReceiverName;
use crate::outbox::policy::{self, Facts, RETRY_AFTER_MAX};
use crate::outbox::queue::Claimed;
use crate::outbox::queue::standing::{Standing, Target};
use crate::outbox::{DeadReason, Entry, Outcome, Recipient, RecipientState, Settlement, Transport, combine};
use crate::render::{Content, MailContent};
use crate::store::Store;
use chrono::{DateTime, Utc};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::sync::watch;
use tokio::time::timeout;

/// How long a claim holds.
pub const LEASE: Duration = Duration::from_secs(30);
/// What settling may take on a slow disk.
const LEASE_MARGIN: Duration = Duration::from_secs(5);
/// Longest try, whatever a receiver does: a lease must outlast it.
const TRY_MAX: Duration = LEASE.saturating_sub(LEASE_MARGIN);
const _: () = assert!(
    TRY_MAX.as_secs() > ANSWER_TIMEOUT.as_secs() && TRY_MAX.as_secs() > smtp::BUDGET.as_secs(),
    "the limits of a kind of receiver come before the one of all"
);

/// What every try shares.
pub(super) struct Shared {
    pub(super) store: Store,
    pub(super) http: Http,
    pub(super) nats: watch::Receiver<Option<async_nats::Client>>,
    pub(super) render: Arc<dyn Render>,
    pub(super) observe: Observe,
    standings: Mutex<BTreeMap<Target, Standing>>,
}

/// What the loop has to know of a try that is over.
pub(super) struct Finished {
    pub(super) receiver: ReceiverName,
    /// The receiver asked for quiet of this length.
    pub(super) hold_for: Option<Duration>,
}

impl Shared {
    pub(super) fn new(
        store: Store,
        http: Http,
        nats: watch::Receiver<Option<async_nats::Client>>,
        render: Arc<dyn Render>,
        observe: Observe,
    ) -> Self {
        Self { store, http, nats, render, observe, standings: Mutex::default() }
    }

    /// How a target stands; fine unless something is known.
    pub(super) fn standing(&self, target: &Target) -> Standing {
        self.standings.lock().unwrap_or_else(PoisonError::into_inner).get(target).cloned().unwrap_or_default()
    }

    pub(super) fn set_standing(&self, target: Target, standing: Option<Standing>) {
        let mut standings = self.standings.lock().unwrap_or_else(PoisonError::into_inner);
        match standing {
            Some(standing) => standings.insert(target, standing),
            None => standings.remove(&target),
        };
    }

    pub(super) fn targets(&self) -> Vec<Target> {
        self.standings.lock().unwrap_or_else(PoisonError::into_inner).keys().cloned().collect()
    }
}

/// The target of an entry: its mailbox counts when the receiver stands for owners.
pub(super) fn target(receiver: &ReceiverName, address: Option<&str>) -> Target {
    Target { receiver: receiver.clone(), address: address.unwrap_or_default().to_owned() }
}

/// Sends and settles one entry.
pub(super) async fn attempt(shared: Arc<Shared>, settings: Arc<DeliverySettings>, claimed: Claimed) -> Finished {
    let entry = claimed.entry();
    let receiver = settings.receivers.get(&entry.new.receiver);
    let tried = match receiver {
        Some(receiver) => send(&shared, &settings, receiver, &claimed).await,
        None => Tried::one(Outcome::Permanent { why: UNKNOWN.to_owned(), broken: true }),
    };
    let now = clock::now();
    let hold_for = match &tried.outcome {
        Outcome::Retry { after, .. } => after.map(|after| after.min(RETRY_AFTER_MAX)),
        Outcome::Delivered | Outcome::Permanent { .. } | Outcome::RejectedContent { .. } | Outcome::Unsure { .. } => {
            None
        }
    };
    let settlement = decide(entry, receiver, &tried, now);
    let aftermath = Aftermath { shared: &shared, settings: &settings, pause: hold_for.map(|hold| now + hold), now };
    aftermath.write(&claimed, &settlement, &tried.recipients).await;
    report(&shared, entry, &settlement, now);
    Finished { receiver: entry.new.receiver.clone(), hold_for }
}

/// Says what a try came to, in the log and to whoever observes.
pub(super) fn report(shared: &Shared, entry: &Entry, settlement: &Settlement, now: DateTime<Utc>) {
    log(entry, settlement);
    let latency = (now - entry.new.created_at).to_std().unwrap_or_default();
    (shared.observe)(&Report { entry, outcome: settlement.as_str(), latency });
}

const UNKNOWN: &str = "config no longer knows this receiver";

/// What becomes of an entry whose receiver is gone from config.
pub(super) fn unknown_receiver() -> Settlement {
    Settlement::Dead { reason: DeadReason::UnknownReceiver, why: UNKNOWN.to_owned() }
}

fn decide(entry: &Entry, receiver: Option<&Receiver>, tried: &Tried, now: DateTime<Utc>) -> Settlement {
    let Some(receiver) = receiver else {
        return unknown_receiver();
    };
    let facts = Facts {
        kind: entry.new.kind,
        transport: receiver.kind.transport(),
        attempts: entry.attempts,
        unsure_attempts: entry.unsure_attempts,
        has_blocks: matches!(&entry.new.content, Content::Slack(message) if !message.blocks.is_empty()),
        created_at: entry.new.created_at,
    };
    let settlement = policy::settle(&facts, tried.outcome.clone(), now, clock::jitter());
    if matches!(settlement, Settlement::Sent { .. }) { Settlement::Sent { note: tried.refused() } } else { settlement }
}

fn log(entry: &Entry, settlement: &Settlement) {
    let (receiver, kind, number) = (entry.new.receiver.as_str(), entry.new.kind.as_str(), entry.new.number);
    let (outcome, attempt) = (settlement.as_str(), entry.attempts);
    match settlement {
        Settlement::Sent { note: None } => {
            tracing::info!(receiver, kind, number, attempt, outcome, "message delivered")
        }
        Settlement::Sent { note: Some(why) } => {
            tracing::warn!(receiver, kind, number, attempt, outcome, why, "message delivered, but not to everybody");
        }
        Settlement::Retry { why, .. } | Settlement::RetryPlain { why, .. } => {
            tracing::warn!(receiver, kind, number, attempt, outcome, why, "message not delivered yet");
        }
        Settlement::Repeat { why, .. } => {
            tracing::warn!(receiver, kind, number, attempt, outcome, why, "delivery unsure; it is repeated");
        }
        Settlement::Unsure { why } => {
            tracing::error!(receiver, kind, number, attempt, outcome, why, "delivery unsure; not sent again");
        }
        Settlement::Dead { why, .. } => {
            tracing::error!(receiver, kind, number, attempt, outcome, why, "message not delivered");
        }
    }
}

/// What a try came to; of a mail also by mailbox.
struct Tried {
    outcome: Outcome,
    recipients: Vec<Recipient>,
}

impl Tried {
    fn one(outcome: Outcome) -> Self {
        Self { outcome, recipients: Vec::new() }
    }

    /// Mailboxes that refused while others took the mail.
    fn refused(&self) -> Option<String> {
        let refused = self.recipients.iter().filter(|r| r.state == RecipientState::Refused);
        let words: Vec<_> =
            refused.map(|r| format!("{}: {}", r.address, r.last_error.as_deref().unwrap_or("refused"))).collect();
        (!words.is_empty()).then(|| words.join("; "))
    }
}

async fn send(shared: &Shared, settings: &DeliverySettings, receiver: &Receiver, claimed: &Claimed) -> Tried {
    let mut entry = claimed.entry().clone();
    let channel = receiver.kind.channel();
    if channel != Channel::Text && channel_of(&entry.new.content) != channel {
        // Config has given the receiver another kind since.
        entry.new.content = shared.render.copy(&entry, receiver);
    }
    if let (ReceiverKind::Email { to }, Content::Email(mail)) = (&receiver.kind, &entry.new.content) {
        let mailboxes = match to {
            Recipients::Fixed(mailboxes) => mailboxes.clone(),
            Recipients::Owner => entry.new.address.clone().into_iter().collect(),
        };
        return send_mail(settings.smtp.as_ref(), mail, &mailboxes, claimed).await;
    }
    Tried::one(within(TRY_MAX, &receiver.kind, hand_over(shared, receiver, &entry)).await)
}

/// Ends a try that a receiver drags out.
async fn within(limit: Duration, kind: &ReceiverKind, sending: impl Future<Output = Outcome>) -> Outcome {
    let Ok(outcome) = timeout(limit, sending).await else {
        let why = format!("the try was not over after {} s", limit.as_secs());
        return match kind {
            // Writing the same file again does no harm.
            ReceiverKind::File { .. } => Outcome::Retry { after: None, why },
            ReceiverKind::SlackWebhook { .. }
            | ReceiverKind::SlackBot { .. }
            | ReceiverKind::Email { .. }
            | ReceiverKind::Webhook { .. }
            | ReceiverKind::Nats { .. } => Outcome::Unsure { why },
        };
    };
    outcome
}

/// Hands a message to a receiver of any kind but e-mail.
async fn hand_over(shared: &Shared, receiver: &Receiver, entry: &Entry) -> Outcome {
    let now = clock::now();
    match (&receiver.kind, &entry.new.content) {
        (ReceiverKind::SlackWebhook { url }, Content::Slack(message)) => {
            slack::send_webhook(&shared.http, url, message, now).await
        }
        (ReceiverKind::SlackBot { token, channel, api_url }, Content::Slack(message)) => {
            slack::send_bot(&shared.http, api_url, token, channel, message, now).await
        }
        (ReceiverKind::Webhook { url }, Content::Json(view)) => {
            webhook::send(&shared.http, url, entry, view, now).await
        }
        (ReceiverKind::Nats { subject }, Content::Json(view)) => {
            let client = shared.nats.borrow().clone();
            nats::send(client.as_ref(), subject, entry, view).await
        }
        (ReceiverKind::File { dir }, _) => file::send(dir, entry).await,
        (_, Content::Slack(_) | Content::Email(_) | Content::Json(_) | Content::Text(_)) => {
            Outcome::Permanent { why: "the message has no form for this receiver".to_owned(), broken: false }
        }
    }
}

fn channel_of(content: &Content) -> Channel {
    match content {
        Content::Slack(_) => Channel::Slack,
        Content::Email(_) => Channel::Email,
        Content::Json(_) => Channel::Json,
        Content::Text(_) => Channel::Text,
    }
}

async fn send_mail(
    smtp: Option<&SmtpSettings>,
    content: &MailContent,
    mailboxes: &[String],
    claimed: &Claimed,
) -> Tried {
    let wrong = |why: String| Tried::one(Outcome::Permanent { why, broken: true });
    let Some(smtp) = smtp else {
        return wrong("config has no [smtp]".to_owned());
    };
    let entry = claimed.entry();
    let prepared = email::read_mailbox(&smtp.from).and_then(|from| {
        let to: Vec<_> = mailboxes.iter().map(|m| email::read_mailbox(m)).collect::<Result<_, _>>()?;
        Ok((from.email, to, email::eml(content, &smtp.from, mailboxes, entry.new.created_at)?))
    });
    let (from, to, mail) = match prepared {
        Ok(prepared) => prepared,
        Err(e) => return wrong(e.to_string()),
    };
    let mut recipients: Vec<Recipient> = Vec::new();
    let mut open = Vec::new();
    for address in to.into_iter().map(|mailbox| mailbox.email) {
        let text = address.to_string();
        if recipients.iter().any(|r| r.address == text) {
            continue;
        }
        let known = claimed.recipients().iter().find(|r| r.address == text);
        let recipient = known.cloned().unwrap_or_else(|| Recipient::new(text));
        if recipient.is_open(entry.new.kind) {
            open.push(address);
        }
        recipients.push(recipient);
    }
    let mut broken = false;
    for (address, outcome) in smtp::send(smtp, &from, &open, &mail, TRY_MAX).await {
        broken |= matches!(outcome, Outcome::Permanent { broken: true, .. });
        let address = address.to_string();
        recipients.iter_mut().filter(|r| r.address == address).for_each(|r| r.note(&outcome));
    }
    let outcome = combine(&recipients, entry.new.kind, None, broken);
    Tried { outcome, recipients }
}

impl ReceiverKind {
    /// How a lost answer is to be taken.
    fn transport(&self) -> Transport {
        match self {
            Self::SlackWebhook { .. } | Self::SlackBot { .. } | Self::Webhook { .. } => Transport::Http,
            Self::Email { .. } => Transport::Mail,
            Self::Nats { .. } | Self::File { .. } => Transport::Local,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_try_that_never_ends_is_ended_and_is_unsure_unless_repeating_does_no_harm() {
        let nats = ReceiverKind::Nats { subject: "pages".to_owned() };
        let file = ReceiverKind::File { dir: "pages".into() };
        let drag = std::future::pending::<Outcome>;
        assert!(matches!(within(Duration::ZERO, &nats, drag()).await, Outcome::Unsure { .. }));
        assert!(matches!(within(Duration::ZERO, &file, drag()).await, Outcome::Retry { after: None, .. }));
        assert_eq!(within(TRY_MAX, &nats, std::future::ready(Outcome::Delivered)).await, Outcome::Delivered);
    }
}
