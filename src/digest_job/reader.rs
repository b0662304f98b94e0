//! Who reads a digest, and which workflows are told to them. Pure.

use super::target::{Target, mailbox};
use crate::live::Live;
use crate::name::WorkflowName;
use crate::route::Route;
use chrono::{DateTime, Utc};
use std::collections::BTreeSet;

/// Who reads a digest that ends at an instant.
pub(super) struct Reader<'a> {
    live: &'a Live,
    target: &'a Target,
    end_at: DateTime<Utc>,
    /// The ways in which config writes the owner whose digest it is.
    owner: Option<BTreeSet<&'a str>>,
}

impl<'a> Reader<'a> {
    pub fn new(live: &'a Live, target: &'a Target, end_at: DateTime<Utc>) -> Self {
        let owner = target.owner.as_deref().map(|owner| {
            let wanted = mailbox(owner);
            let mut owners: BTreeSet<&str> = live.config.workflows.iter().filter_map(|w| w.owner.as_deref()).collect();
            owners.retain(|owner| mailbox(owner) == wanted);
            owners
        });
        Self { live, target, end_at, owner }
    }

    /// Whether they are told of a workflow itself.
    pub fn reads(&self, workflow: &WorkflowName) -> bool {
        let sends = |route: &&Route| {
            route.digest.get(&self.target.digest).is_some_and(|receivers| receivers.contains(&self.target.receiver))
        };
        self.owner.as_ref().is_none_or(|owner| self.is_owned_by(owner, workflow))
            && self.live.policy.routes_of(workflow).iter().any(sends)
            && self.live.policy.silence_of(workflow, self.end_at).is_none()
    }

    fn is_owned_by(&self, owner: &BTreeSet<&str>, workflow: &WorkflowName) -> bool {
        let known = self.live.config.workflows.find(workflow).and_then(|w| w.owner.as_deref());
        known.is_some_and(|known| owner.contains(known))
    }
}
