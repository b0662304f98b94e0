//! What follows from the outcome of one try: done, once more and when, or given up and why. This is the one layer that
//! retries; senders try once. Reading an outcome off a reply is `deliver::outcome`'s work, writing it down is `queue`'s.

use super::entry::MessageKind;
use chrono::{DateTime, Utc};
use std::time::Duration;

/// Longest wait that a receiver can ask for.
pub const RETRY_AFTER_MAX: Duration = Duration::from_secs(3600);
/// No wait is longer; a message that is due later was written by a clock that has been set back since.
pub const WAIT_MAX: Duration = Duration::from_secs(2 * 3600);
/// A page that is not delivered after this goes to the fallback as well.
pub const PAGE_PATIENCE: Duration = Duration::from_secs(120);
/// After this a message has lost its meaning and is given up.
pub const GIVE_UP_AFTER: Duration = Duration::from_secs(3 * 24 * 3600);
/// A broken receiver is tried again this much later.
pub const PROBE_AFTER: Duration = Duration::from_secs(600);
/// Crashes that one entry may be open in before it counts as unsure: it may be the cause of them.
const CRASHES_MAX: u32 = 5;
/// Tries for which a short wait that the receiver asks for is taken at its word.
const ASKED_TRUSTED_MAX: u32 = 3;
/// Shortest wait, so that no jitter makes a hot loop.
const WAIT_MIN: Duration = Duration::from_millis(500);

/// What came of one try.
#[derive(Clone, Debug, PartialEq)]
pub enum Outcome {
    /// The receiver confirmed it.
    Delivered,
    /// Not taken; it may be later.
    Retry {
        /// How long the receiver asks to wait.
        after: Option<Duration>,
        /// Why; free of secrets.
        why: String,
    },
    /// Refused for good.
    Permanent {
        /// Why; free of secrets.
        why: String,
        /// Whether the receiver itself is unusable, not just this message.
        broken: bool,
    },
    /// The form of this message was refused; plain text may do.
    RejectedContent {
        /// Why; free of secrets.
        why: String,
    },
    /// It was handed over and the answer was lost.
    Unsure {
        /// Why; free of secrets.
        why: String,
    },
}

/// How a lost answer is to be taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Transport {
    /// An answer is lost mostly because the request was not taken.
    Http,
    /// A server that has the whole mail and then falls silent has mostly taken it.
    Mail,
    /// NATS and files.
    Local,
}

/// What the policy looks at.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Facts {
    /// What the message is about.
    pub kind: MessageKind,
    /// How it travels.
    pub transport: Transport,
    /// Tries begun, this one included.
    pub attempts: u32,
    /// Earlier tries whose result nobody knows.
    pub unsure_attempts: u32,
    /// Whether there is a plainer form to fall back to.
    pub has_blocks: bool,
    /// When it was decided.
    pub created_at: DateTime<Utc>,
}

/// Why an entry is dead; the stable word is stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DeadReason {
    /// The receiver is unusable.
    ReceiverBroken,
    /// This message was refused.
    Refused,
    /// It was tried for days.
    GaveUp,
    /// Config no longer knows the receiver.
    UnknownReceiver,
}

impl DeadReason {
    /// The stable word.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::ReceiverBroken => "receiver_broken",
            Self::Refused => "refused",
            Self::GaveUp => "gave_up",
            Self::UnknownReceiver => "unknown_receiver",
        }
    }
}

/// What becomes of the entry.
#[derive(Clone, Debug, PartialEq)]
pub enum Settlement {
    /// Done.
    Sent {
        /// What is worth knowing all the same, such as one mailbox of several that refused.
        note: Option<String>,
    },
    /// Once more.
    Retry {
        /// Not before.
        due_at: DateTime<Utc>,
        /// Why the last try failed.
        why: String,
    },
    /// Once more, as plain text.
    RetryPlain {
        /// Not before.
        due_at: DateTime<Utc>,
        /// Why the last try failed.
        why: String,
    },
    /// Once more, though it may have arrived.
    Repeat {
        /// Not before.
        due_at: DateTime<Utc>,
        /// What is not known.
        why: String,
    },
    /// It may have arrived; not again.
    Unsure {
        /// What is not known.
        why: String,
    },
    /// Given up; the fallback, if there is one, gets a copy.
    Dead {
        /// The named reason.
        reason: DeadReason,
        /// Why the last try failed.
        why: String,
    },
}

impl Settlement {
    /// The stable word of metrics: what this try came to.
    pub fn as_str(&self) -> &'static str {
        match self {
            Self::Sent { .. } => "sent",
            Self::Retry { .. } | Self::RetryPlain { .. } | Self::Repeat { .. } => "retry",
            Self::Unsure { .. } => "unsure",
            Self::Dead { .. } => "dead",
        }
    }

    /// Whether the fallback is to be told instead. A test is of one receiver, and a digest prefers none to double.
    pub fn wants_fallback(&self, kind: MessageKind) -> bool {
        if kind == MessageKind::Test {
            return false;
        }
        match self {
            Self::Dead { .. } => true,
            Self::Unsure { .. } => kind.is_urgent(),
            Self::Sent { .. } | Self::Retry { .. } | Self::RetryPlain { .. } | Self::Repeat { .. } => false,
        }
    }
}

/// Decides what follows from one try. `jitter` is in [0, 1).
pub fn settle(facts: &Facts, outcome: Outcome, now: DateTime<Utc>, jitter: f64) -> Settlement {
    match outcome {
        Outcome::Delivered => Settlement::Sent { note: None },
        Outcome::Retry { after, why } => {
            if now - facts.created_at >= delta(GIVE_UP_AFTER) {
                return Settlement::Dead { reason: DeadReason::GaveUp, why };
            }
            Settlement::Retry { due_at: now + delta(wait(facts, after, jitter)), why }
        }
        Outcome::RejectedContent { why } if facts.has_blocks => {
            Settlement::RetryPlain { due_at: now + delta(WAIT_MIN), why }
        }
        Outcome::RejectedContent { why } => Settlement::Dead { reason: DeadReason::Refused, why },
        Outcome::Permanent { why, broken } => {
            let reason = if broken { DeadReason::ReceiverBroken } else { DeadReason::Refused };
            Settlement::Dead { reason, why }
        }
        Outcome::Unsure { why } => {
            if facts.unsure_attempts < repeats_max(facts.kind, facts.transport) {
                Settlement::Repeat { due_at: now + delta(wait(facts, None, jitter)), why }
            } else {
                Settlement::Unsure { why }
            }
        }
    }
}

/// What follows from a try that was open when the process died: it is repeated, at most once a crash (CONTRACT 1.3).
pub fn settle_lost(unsure_attempts: u32, now: DateTime<Utc>) -> Settlement {
    let why = "the service stopped during the try".to_owned();
    if unsure_attempts < CRASHES_MAX { Settlement::Repeat { due_at: now, why } } else { Settlement::Unsure { why } }
}

/// How often a message is repeated although it may have arrived. A page prefers double to none, a digest none to double.
pub fn repeats_max(kind: MessageKind, transport: Transport) -> u32 {
    match (transport, kind) {
        (Transport::Mail, MessageKind::Page | MessageKind::Escalation) => 1,
        (Transport::Mail, MessageKind::Reminder | MessageKind::Resolved | MessageKind::Digest) => 0,
        (Transport::Mail, MessageKind::Operator | MessageKind::Test) => 0,
        (Transport::Http | Transport::Local, MessageKind::Page | MessageKind::Escalation) => u32::MAX,
        (Transport::Http | Transport::Local, MessageKind::Reminder | MessageKind::Resolved | MessageKind::Digest) => 1,
        (Transport::Http | Transport::Local, MessageKind::Operator | MessageKind::Test) => 1,
    }
}

/// Capped exponential wait with full jitter; never less than what the receiver asked for, which is capped itself.
fn wait(facts: &Facts, asked: Option<Duration>, jitter: f64) -> Duration {
    let (floor, base, cap) = pace(facts.kind, facts.transport);
    let doublings = facts.attempts.saturating_sub(1).min(20);
    let ceiling = base.saturating_mul(1 << doublings).min(cap);
    let own = floor + ceiling.mul_f64(jitter.clamp(0.0, 1.0));
    let Some(asked) = asked else { return own };
    let asked = asked.min(RETRY_AFTER_MAX).max(WAIT_MIN) + Duration::from_millis(500).mul_f64(jitter.clamp(0.0, 1.0));
    // Who says "in a second" time and again does not know either.
    if facts.attempts > ASKED_TRUSTED_MAX { asked.max(own) } else { asked }
}

/// Shortest wait, first ceiling and last ceiling.
fn pace(kind: MessageKind, transport: Transport) -> (Duration, Duration, Duration) {
    let seconds = Duration::from_secs;
    match kind {
        MessageKind::Page | MessageKind::Escalation => (WAIT_MIN, Duration::from_millis(4400), seconds(300)),
        MessageKind::Reminder | MessageKind::Resolved | MessageKind::Operator | MessageKind::Test => match transport {
            Transport::Mail => (seconds(20), seconds(40), seconds(1800)),
            Transport::Http | Transport::Local => (WAIT_MIN, seconds(8), seconds(600)),
        },
        MessageKind::Digest => match transport {
            Transport::Mail => (seconds(60), seconds(60), seconds(3600)),
            Transport::Http | Transport::Local => (seconds(2), seconds(15), seconds(900)),
        },
    }
}

fn delta(duration: Duration) -> chrono::TimeDelta {
    chrono::TimeDelta::from_std(duration).unwrap_or(chrono::TimeDelta::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn at() -> DateTime<Utc> {
        "2026-03-02T09:00:00Z".parse().unwrap()
    }

    fn facts(kind: MessageKind, transport: Transport, attempts: u32) -> Facts {
        Facts { kind, transport, attempts, unsure_attempts: 0, has_blocks: true, created_at: at() }
    }

    fn retry(after: Option<u64>) -> Outcome {
        Outcome::Retry { after: after.map(Duration::from_secs), why: "503".into() }
    }

    fn waited(settlement: &Settlement) -> f64 {
        match settlement {
            Settlement::Retry { due_at, .. }
            | Settlement::Repeat { due_at, .. }
            | Settlement::RetryPlain { due_at, .. } => (*due_at - at()).as_seconds_f64(),
            Settlement::Sent { .. } | Settlement::Unsure { .. } | Settlement::Dead { .. } => panic!("{settlement:?}"),
        }
    }

    #[test]
    fn a_lost_answer_of_a_mailed_page_is_repeated_once() {
        let mut f = facts(MessageKind::Page, Transport::Mail, 1);
        let unsure = || Outcome::Unsure { why: "silence".into() };
        assert!(matches!(settle(&f, unsure(), at(), 0.5), Settlement::Repeat { .. }));
        f.unsure_attempts = 1;
        let last = settle(&f, unsure(), at(), 0.5);
        assert!(matches!(last, Settlement::Unsure { .. }));
        assert!(last.wants_fallback(f.kind), "a page prefers double to none");
    }

    #[test]
    fn a_lost_answer_of_a_mailed_digest_is_not_repeated() {
        let f = facts(MessageKind::Digest, Transport::Mail, 1);
        let settlement = settle(&f, Outcome::Unsure { why: "silence".into() }, at(), 0.5);
        assert!(matches!(settlement, Settlement::Unsure { .. }));
        assert!(!settlement.wants_fallback(f.kind), "a digest prefers none to double");
    }

    #[test]
    fn refused_blocks_are_retried_once_as_plain_text() {
        let mut f = facts(MessageKind::Page, Transport::Http, 1);
        let refused = || Outcome::RejectedContent { why: "invalid_blocks".into() };
        assert!(matches!(settle(&f, refused(), at(), 0.5), Settlement::RetryPlain { .. }));
        f.has_blocks = false;
        let last = settle(&f, refused(), at(), 0.5);
        assert_eq!(last, Settlement::Dead { reason: DeadReason::Refused, why: "invalid_blocks".into() });
        assert!(last.wants_fallback(f.kind));
    }

    #[test]
    fn a_message_of_three_days_is_given_up_and_goes_to_the_fallback() {
        let f = facts(MessageKind::Page, Transport::Http, 900);
        let settlement = settle(&f, retry(None), at() + delta(GIVE_UP_AFTER), 0.5);
        assert_eq!(settlement, Settlement::Dead { reason: DeadReason::GaveUp, why: "503".into() });
        assert!(settlement.wants_fallback(f.kind));
    }

    #[test]
    fn a_try_lost_in_a_crash_is_repeated_at_once_but_not_for_ever() {
        assert!(matches!(settle_lost(0, at()), Settlement::Repeat { due_at, .. } if due_at == at()));
        assert!(matches!(settle_lost(CRASHES_MAX, at()), Settlement::Unsure { .. }));
    }

    #[test]
    fn waits_grow_to_their_cap() {
        let longest = |n| waited(&settle(&facts(MessageKind::Digest, Transport::Mail, n), retry(None), at(), 0.999));
        assert!(longest(1) < longest(2) && longest(2) < longest(5));
        assert!(longest(60) <= 3660.0);
    }

    proptest! {
        #[test]
        fn a_pages_first_retry_comes_within_five_seconds(jitter in 0.0..1.0f64) {
            for transport in [Transport::Http, Transport::Mail, Transport::Local] {
                let wait = waited(&settle(&facts(MessageKind::Page, transport, 1), retry(None), at(), jitter));
                prop_assert!((0.5..5.0).contains(&wait), "{wait}");
            }
        }

        #[test]
        fn no_wait_is_longer_than_the_longest(jitter in 0.0..1.0f64, attempts in 1u32..100, asked: Option<u64>) {
            for kind in MessageKind::ALL {
                for transport in [Transport::Http, Transport::Mail, Transport::Local] {
                    let wait = waited(&settle(&facts(kind, transport, attempts), retry(asked), at(), jitter));
                    prop_assert!(wait < WAIT_MAX.as_secs_f64(), "{wait}");
                }
            }
        }

        #[test]
        fn a_digest_refused_by_mail_waits_a_minute_and_more(jitter in 0.0..1.0f64, attempts in 1u32..100) {
            let f = facts(MessageKind::Digest, Transport::Mail, attempts);
            prop_assert!(waited(&settle(&f, retry(None), at(), jitter)) >= 60.0);
        }

        #[test]
        fn what_the_receiver_asks_for_is_honoured_up_to_an_hour(jitter in 0.0..1.0f64, asked in 0u64..1_000_000) {
            for kind in MessageKind::ALL {
                let wait = waited(&settle(&facts(kind, Transport::Http, 3), retry(Some(asked)), at(), jitter));
                prop_assert!(wait >= asked.min(3600) as f64 && wait <= 3601.0, "{wait}");
            }
        }
    }
}
