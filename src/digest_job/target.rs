//! Whom digests go to: the digests and receivers that routes name, an owner's own once per owner. Pure.

use crate::config::Config;
use crate::mailbox::Mailbox;
use crate::name::{DigestName, ReceiverName};
use std::collections::{BTreeMap, BTreeSet};

/// Whom a digest goes to.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Target {
    /// Which digest.
    pub digest: DigestName,
    /// Receiver as in the routes.
    pub receiver: ReceiverName,
    /// The owner, when the receiver stands for owners.
    pub owner: Option<String>,
}

impl Target {
    /// How the ledger calls the receiver: its name, and the mailbox of an owner.
    pub fn key(&self) -> String {
        receiver_key(self.receiver.as_str(), self.owner.as_deref())
    }
}

/// A receiver's name, and the mailbox when it stands for owners.
pub fn receiver_key(receiver: &str, owner: Option<&str>) -> String {
    match owner {
        Some(owner) => format!("{receiver}:{}", mailbox(owner)),
        None => receiver.to_owned(),
    }
}

/// The address in `Name <address>`, in lower case, so that one owner written in two ways is one.
pub(super) fn mailbox(owner: &str) -> String {
    Mailbox::parse(owner).map_or_else(|| owner.trim().to_lowercase(), |mailbox| mailbox.key())
}

/// Every digest and receiver that a route names, an owner's own once per owner.
pub fn targets(config: &Config) -> Vec<Target> {
    let named: BTreeSet<(&DigestName, &ReceiverName)> = config
        .routes
        .iter()
        .flat_map(|route| route.digest.iter())
        .flat_map(|(digest, receivers)| receivers.iter().map(move |r| (digest, r)))
        .collect();
    let mut found = Vec::new();
    for (digest, name) in named {
        let Some(receiver) = config.receivers.get(name) else { continue };
        let target = |owner| Target { digest: digest.clone(), receiver: name.clone(), owner };
        if receiver.kind.is_owner() {
            found.extend(owners(config).into_values().map(|owner| target(Some(owner))));
        } else {
            found.push(target(None));
        }
    }
    found
}

/// Owners by mailbox, each as first written.
fn owners(config: &Config) -> BTreeMap<String, String> {
    let mut found = BTreeMap::new();
    for owner in config.workflows.iter().filter_map(|w| w.owner.as_deref()) {
        found.entry(mailbox(owner)).or_insert_with(|| owner.to_owned());
    }
    found
}
