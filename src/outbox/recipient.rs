//! What a mail came to, by mailbox: who has it is not sent it again, and who refuses it holds up nobody.
//! Speaking to the mail server is `deliver`'s work.

use super::entry::MessageKind;
use super::policy::{Outcome, Transport, repeats_max};
use std::time::Duration;

/// Where one mailbox of a mail stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum RecipientState {
    /// Not taken yet.
    Waiting,
    /// The server confirmed it.
    Sent,
    /// The whole mail went out and the answer was lost.
    Unsure,
    /// The server will never take it.
    Refused,
}

impl RecipientState {
    /// The stable word.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Waiting => "waiting",
            Self::Sent => "sent",
            Self::Unsure => "unsure",
            Self::Refused => "refused",
        }
    }

    /// Reads the stable word.
    pub fn parse(word: &str) -> Option<Self> {
        [Self::Waiting, Self::Sent, Self::Unsure, Self::Refused].into_iter().find(|s| s.as_str() == word)
    }
}

/// One mailbox of a mail.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Recipient {
    /// `a@b`, without a name.
    pub address: String,
    /// Where it stands.
    pub state: RecipientState,
    /// Tries whose result nobody knows.
    pub unsure_attempts: u32,
    /// What was said last.
    pub last_error: Option<String>,
}

impl Recipient {
    /// A mailbox that was not written to yet.
    pub fn new(address: impl Into<String>) -> Self {
        Self { address: address.into(), state: RecipientState::Waiting, unsure_attempts: 0, last_error: None }
    }

    /// Whether the next try writes to it.
    pub fn is_open(&self, kind: MessageKind) -> bool {
        match self.state {
            RecipientState::Waiting => true,
            RecipientState::Unsure => self.unsure_attempts <= repeats_max(kind, Transport::Mail),
            RecipientState::Sent | RecipientState::Refused => false,
        }
    }

    /// Notes what one try came to.
    pub fn note(&mut self, outcome: &Outcome) {
        match outcome {
            Outcome::Delivered => self.state = RecipientState::Sent,
            Outcome::Retry { why, .. } => self.last_error = Some(why.clone()),
            Outcome::Permanent { why, .. } | Outcome::RejectedContent { why } => {
                self.state = RecipientState::Refused;
                self.last_error = Some(why.clone());
            }
            Outcome::Unsure { why } => {
                self.state = RecipientState::Unsure;
                self.unsure_attempts += 1;
                self.last_error = Some(why.clone());
            }
        }
    }
}

/// The outcome of a mail to several: a mailbox that can still be reached keeps it going, one that has it makes it
/// delivered, and it failed for good only when all refused. `broken` says whether the last refusal was of the receiver.
pub fn combine(recipients: &[Recipient], kind: MessageKind, after: Option<Duration>, broken: bool) -> Outcome {
    let said = |r: &Recipient| match &r.last_error {
        Some(why) => format!("{}: {why}", r.address),
        None => r.address.clone(),
    };
    let find = |state| recipients.iter().find(move |r| r.state == state);
    if let Some(r) = find(RecipientState::Waiting) {
        return Outcome::Retry { after, why: said(r) };
    }
    let unsure = find(RecipientState::Unsure);
    if let Some(r) = recipients.iter().find(|r| r.state == RecipientState::Unsure && r.is_open(kind)) {
        return Outcome::Unsure { why: said(r) };
    }
    match (find(RecipientState::Sent), unsure, find(RecipientState::Refused)) {
        (Some(_), _, _) => Outcome::Delivered,
        (None, Some(r), _) => Outcome::Unsure { why: said(r) },
        (None, None, Some(r)) => Outcome::Permanent { why: said(r), broken },
        (None, None, None) => Outcome::Permanent { why: "nobody to write to".to_owned(), broken: true },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with(states: &[RecipientState]) -> Vec<Recipient> {
        let one = |(n, state): (usize, &RecipientState)| Recipient {
            state: *state,
            unsure_attempts: u32::from(*state == RecipientState::Unsure),
            ..Recipient::new(format!("{n}@example.com"))
        };
        states.iter().enumerate().map(one).collect()
    }

    fn word(states: &[RecipientState], kind: MessageKind) -> &'static str {
        match combine(&with(states), kind, None, true) {
            Outcome::Delivered => "delivered",
            Outcome::Retry { .. } => "retry",
            Outcome::Permanent { .. } => "permanent",
            Outcome::RejectedContent { .. } => "content",
            Outcome::Unsure { .. } => "unsure",
        }
    }

    #[test]
    fn a_mail_to_several_is_over_when_no_mailbox_can_still_be_reached() {
        use RecipientState::{Refused, Sent, Unsure, Waiting};
        for (states, page, digest) in [
            (&[][..], "permanent", "permanent"),
            (&[Sent], "delivered", "delivered"),
            (&[Waiting], "retry", "retry"),
            (&[Refused], "permanent", "permanent"),
            (&[Unsure], "unsure", "unsure"),
            (&[Sent, Refused], "delivered", "delivered"),
            (&[Sent, Waiting], "retry", "retry"),
            (&[Refused, Waiting], "retry", "retry"),
            (&[Refused, Refused], "permanent", "permanent"),
            (&[Refused, Unsure], "unsure", "unsure"),
            // A page is repeated for the mailbox that may lack it; a digest is left at that.
            (&[Sent, Unsure], "unsure", "delivered"),
        ] {
            assert_eq!(word(states, MessageKind::Page), page, "{states:?}");
            assert_eq!(word(states, MessageKind::Digest), digest, "{states:?}");
        }
    }

    #[test]
    fn who_has_the_mail_or_refused_it_is_not_written_to_again() {
        let open = |state, unsure_attempts, kind| {
            Recipient { state, unsure_attempts, ..Recipient::new("a@example.com") }.is_open(kind)
        };
        assert!(open(RecipientState::Waiting, 0, MessageKind::Digest));
        assert!(!open(RecipientState::Sent, 0, MessageKind::Page));
        assert!(!open(RecipientState::Refused, 0, MessageKind::Page));
        assert!(open(RecipientState::Unsure, 1, MessageKind::Page));
        assert!(!open(RecipientState::Unsure, 2, MessageKind::Page));
        assert!(!open(RecipientState::Unsure, 1, MessageKind::Digest));
    }
}
