//! Receivers as config describes them. How each is spoken to lives in the file of its kind.

use crate::name::ReceiverName;
use secrecy::SecretString;
use std::path::PathBuf;

/// A `[receivers.<name>]` entry.
#[derive(Clone, Debug)]
pub struct Receiver {
    /// Its name in config.
    pub name: ReceiverName,
    /// How to reach it.
    pub kind: ReceiverKind,
    /// Who is told instead when it is broken or away.
    pub fallback: Option<ReceiverName>,
}

/// How a receiver is reached. Addresses that are credentials are secrets: never in a log, an error or a page.
#[derive(Clone, Debug)]
pub enum ReceiverKind {
    /// Slack incoming webhook; the address is the credential.
    SlackWebhook {
        /// `https://hooks.slack.com/services/…`
        url: SecretString,
    },
    /// Slack Web API.
    SlackBot {
        /// `xoxb-…`
        token: SecretString,
        /// `#oncall` or an id.
        channel: String,
        /// Base address, `https://slack.com/api` unless given.
        api_url: String,
    },
    /// E-mail.
    Email {
        /// Whom to.
        to: Recipients,
    },
    /// JSON by HTTP POST.
    Webhook {
        /// Where to; may carry a credential.
        url: SecretString,
    },
    /// A message on a NATS subject.
    Nats {
        /// Where to.
        subject: String,
    },
    /// One file per message, in a folder.
    File {
        /// The folder.
        dir: PathBuf,
    },
}

/// Whom an e-mail receiver writes to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Recipients {
    /// Fixed mailboxes, each `Name <a@b>` or `a@b`.
    Fixed(Vec<String>),
    /// The owner of the workflow; a digest goes to each owner apart.
    Owner,
}

impl ReceiverKind {
    /// Whether it stands for owners: it writes to the owner of the workflow, and to nobody when there is none.
    pub fn is_owner(&self) -> bool {
        match self {
            Self::Email { to: Recipients::Owner } => true,
            Self::Email { to: Recipients::Fixed(_) }
            | Self::SlackWebhook { .. }
            | Self::SlackBot { .. }
            | Self::Webhook { .. }
            | Self::Nats { .. }
            | Self::File { .. } => false,
        }
    }

    /// The channel whose escaping, limits and templates apply.
    pub fn channel(&self) -> Channel {
        match self {
            Self::SlackWebhook { .. } | Self::SlackBot { .. } => Channel::Slack,
            Self::Email { .. } => Channel::Email,
            Self::Webhook { .. } | Self::Nats { .. } => Channel::Json,
            Self::File { .. } => Channel::Text,
        }
    }
}

/// Form of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Channel {
    /// Block Kit.
    Slack,
    /// multipart/alternative.
    Email,
    /// The view as JSON.
    Json,
    /// Plain text.
    Text,
}
