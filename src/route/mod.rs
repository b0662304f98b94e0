//! Routes: who is to hear of an event. `resolve` finds the matching routes and adds up their receivers.
//! Whether something is sent now is decided per incident and digest, not here.

mod decide;
mod symptom;

pub use decide::{Decision, Paging, Policy, Suppression};
pub use symptom::SymptomPaging;

use crate::matcher::{MatchKey, Matcher, Subject};
use crate::name::{DigestName, ReceiverName, RouteName};
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

/// One step of an escalation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Escalation {
    /// Time since the page, unless it was acknowledged.
    pub after: Duration,
    /// Who hears of it then.
    pub to: Vec<ReceiverName>,
}

/// A `[[routes]]` entry.
#[derive(Clone, Debug)]
pub struct Route {
    /// Unique.
    pub name: RouteName,
    /// What it is for; empty fits everything.
    pub matcher: Matcher,
    /// Receivers of pages; without effect on a standard workflow.
    pub page: Vec<ReceiverName>,
    /// Receivers by digest.
    pub digest: BTreeMap<DigestName, Vec<ReceiverName>>,
    /// What makes two failures one incident.
    pub group_by: Vec<GroupKey>,
    /// Reminders until acknowledged.
    pub remind_every: Option<Duration>,
    /// An incident with nothing new for so long, and nothing open, is resolved.
    pub resolve_after: Duration,
    /// Growth messages at most this often.
    pub growth_every: Duration,
    /// Who hears when nobody acknowledges.
    pub escalate: Vec<Escalation>,
    /// Whether later routes are looked at too.
    pub continues: bool,
}

/// A `group_by` key.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum GroupKey {
    /// A key that `match` knows too.
    Match(MatchKey),
    /// The cause.
    Fingerprint,
}

/// Where an event goes: the sum of its matching routes.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Resolved {
    /// Names of the routes that matched, in config order.
    pub routes: Vec<RouteName>,
    /// Receivers of pages, without doubles, in config order.
    pub page: Vec<ReceiverName>,
    /// Digests and their receivers.
    pub digests: BTreeSet<(DigestName, ReceiverName)>,
}

/// Adds up the receivers of `routes`.
pub fn resolve(routes: &[&Route]) -> Resolved {
    let mut found = Resolved::default();
    for route in routes {
        found.routes.push(route.name.clone());
        for receiver in &route.page {
            if !found.page.contains(receiver) {
                found.page.push(receiver.clone());
            }
        }
        for (digest, receivers) in &route.digest {
            found.digests.extend(receivers.iter().map(|r| (digest.clone(), r.clone())));
        }
    }
    found
}

/// Places of the matching routes of `subject` in config order, up to and with the first that does not continue.
pub fn matching(routes: &[Route], subject: Subject<'_>) -> Vec<usize> {
    let mut found = Vec::new();
    for (at, route) in routes.iter().enumerate() {
        if route.matcher.matches(subject) {
            found.push(at);
            if !route.continues {
                break;
            }
        }
    }
    found
}
