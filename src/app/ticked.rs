//! What a tick comes to. How it comes to that is `tick`'s.

use super::symptoms::Settled;
use crate::digest_job::{Occasion, Target};
use crate::incident::Incident;
use crate::store::StoreError;
use chrono::{DateTime, Utc};
use std::sync::Arc;

/// What a tick came to.
#[derive(Debug, Default)]
pub struct Ticked {
    /// Whether messages were put in the outbox.
    pub has_messages: bool,
    /// Digests that wait for open hours.
    pub holds: Vec<Held>,
    /// Whether symptoms were looked at.
    pub has_looked: bool,
    /// Symptoms that changed, and what became of each.
    pub symptoms: Vec<Settled>,
    /// Incidents that are open now.
    pub open: Vec<Arc<Incident>>,
    /// When something is due next if nothing arrives before; never later than it really is.
    pub next_at: Option<DateTime<Utc>>,
    /// Parts that failed; they are tried again at the next tick.
    pub failures: Vec<(&'static str, StoreError)>,
}

/// A digest that waits for open hours.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Held {
    /// Whom it is for.
    pub target: Target,
    /// The first slot held; the same for as long as the hold lasts.
    pub slot: DateTime<Utc>,
    /// When it is to go out.
    pub until: DateTime<Utc>,
}

impl Ticked {
    /// Something may be due then.
    pub(super) fn look_at(&mut self, at: Option<DateTime<Utc>>) {
        self.next_at = [self.next_at, at].into_iter().flatten().min();
    }
}

/// Digests that are due, and when others are.
#[derive(Debug, Default)]
pub(super) struct Agenda {
    pub due: Vec<(Target, Occasion)>,
    /// Never later than it really is; none when there is no other.
    pub next_at: Option<DateTime<Utc>>,
}

impl Agenda {
    /// Something may be due then.
    pub fn look_at(&mut self, at: Option<DateTime<Utc>>) {
        self.next_at = [self.next_at, at].into_iter().flatten().min();
    }
}
