//! Delivery: one loop that claims, sends and settles; one file a kind of receiver.
//! What is to be said, and to whom, is decided elsewhere.
//!
//! ```text
//!  outbox ── next due of each free receiver ─► claim (one short transaction) ─► one task a receiver in flight
//!    ▲                                                                             │ send, no transaction open
//!    └── settle + copy to the fallback + word to the operator (one transaction) ◄──┘ outcome ─► policy
//! ```

mod aftermath;
mod attempt;
mod bounded;
pub mod email;
mod file;
mod http;
pub mod lane;
mod nats;
pub mod outcome;
mod receiver;
mod rounds;
mod slack;
mod smtp;
mod webhook;

pub use attempt::LEASE;
pub use receiver::{Channel, Receiver, ReceiverKind, Recipients};
pub use rounds::Deliverer;

use crate::config::{Config, SmtpSettings};
use crate::name::ReceiverName;
use crate::outbox::Entry;
use crate::render::Content;
use chrono::{DateTime, Utc};
use serde::Serialize;
use serde_json::Value;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

/// What delivery needs of a config. A try in flight finishes on the version that it started with.
#[derive(Clone, Debug, Default)]
pub struct DeliverySettings {
    /// Whom there is to tell.
    pub receivers: BTreeMap<ReceiverName, Receiver>,
    /// Whom to tell about Matins itself, in order of trial.
    pub operator: Vec<ReceiverName>,
    /// Whom routes page, each once: they get the pages, and what follows them, of a receiver that config no longer knows.
    pub pages: Vec<ReceiverName>,
    /// The mail server.
    pub smtp: Option<SmtpSettings>,
}

impl From<&Config> for DeliverySettings {
    fn from(config: &Config) -> Self {
        let mut pages: Vec<ReceiverName> = Vec::new();
        for name in config.routes.iter().flat_map(|route| &route.page) {
            if !pages.contains(name) {
                pages.push(name.clone());
            }
        }
        Self {
            receivers: config.receivers.clone(),
            operator: config.operator.clone(),
            pages,
            smtp: config.smtp.clone(),
        }
    }
}

/// What Matins says to its operator about delivery.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct DeliveryNews {
    /// What happened.
    pub what: DeliveryTrouble,
    /// The receiver that it happened to.
    pub receiver: ReceiverName,
    /// The mailbox, when the receiver stands for owners.
    pub address: Option<String>,
    /// What it said; free of secrets.
    pub reason: String,
    /// Who is told instead; empty when nobody is.
    pub instead: Vec<ReceiverName>,
    /// When it was noticed.
    pub at: DateTime<Utc>,
}

/// What can go wrong for good with a receiver.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum DeliveryTrouble {
    /// It takes nothing any more.
    ReceiverBroken,
    /// It refused a message for good.
    MessageRefused,
    /// Messages wait for it that were given up.
    GaveUp,
    /// Config no longer knows it.
    UnknownReceiver,
}

/// Renders again what delivery can't send as it is. Can't fail: the last resort is built-in plain text.
pub trait Render: Send + Sync {
    /// The message of an entry, for another receiver than it was rendered for.
    fn copy(&self, entry: &Entry, receiver: &Receiver) -> Content;
    /// A message of kind `operator`: its view and its content.
    fn news(&self, news: &DeliveryNews, number: i64, receiver: &Receiver) -> (Value, Content);
}

/// What one try came to, for metrics and for `matins.notify.…`.
#[derive(Clone, Copy, Debug)]
pub struct Report<'a> {
    /// The entry as it was claimed.
    pub entry: &'a Entry,
    /// `sent`, `retry`, `unsure` or `dead`.
    pub outcome: &'static str,
    /// From the decision to the end of the try.
    pub latency: Duration,
}

/// Is told of every try. Must not block.
pub type Observe = Arc<dyn Fn(&Report<'_>) + Send + Sync>;
