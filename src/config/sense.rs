//! Whether the parts of a config make sense together: routes that are reached, protected workflows that page, receivers
//! with something behind them. Symptoms that can fire are looked at in `thresholds`. Reads the checked tree and what was put together from it.

use super::form::names;
use super::keys::Defined;
use super::overlap::{covers, overlap, swallows};
use super::reader::Cursor;
use super::schema::Config;
use super::source::{Place, Report};
use super::thresholds;
use super::tree::Node;
use crate::matcher::{Glob, MatchKey};
use crate::name::ReceiverName;
use crate::route::Route;
use crate::workflow::{Domain, Workflow};

/// Reports everything that makes no sense.
pub(super) fn check(root: &Cursor<'_>, config: &Config, report: &Report) {
    let sense = Sense { root, config, report };
    sense.routes();
    sense.protected();
    sense.receivers();
    thresholds::check(root, config, report);
    sense.unused();
}

/// What a route does for a workflow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fit {
    /// It is for another workflow.
    No,
    /// It takes every event of the workflow.
    All,
    /// It takes those events that have a certain class, step, downstream or label.
    Some,
}

/// Whether a route takes events of a workflow with this name and domain.
pub(super) fn fit(route: &Route, name: &Glob, domain: Domain) -> Fit {
    let mut fit = Fit::All;
    for (key, globs) in route.matcher.keys() {
        match key {
            MatchKey::Workflow if globs.iter().any(|g| covers(g, name)) => {}
            MatchKey::Domain if globs.iter().any(|g| g.matches(domain.as_str())) => {}
            MatchKey::Workflow | MatchKey::Domain => return Fit::No,
            MatchKey::Class | MatchKey::Step | MatchKey::Downstream | MatchKey::Label(_) => fit = Fit::Some,
        }
    }
    fit
}

/// The routes of a workflow in order, up to the first that takes all the rest.
pub(super) fn routes_of<'c>(config: &'c Config, workflow: &Workflow) -> Vec<(&'c Route, Fit)> {
    let mut found = Vec::new();
    for route in &config.routes {
        let fit = fit(route, &workflow.name, workflow.domain);
        if fit != Fit::No {
            found.push((route, fit));
        }
        if fit == Fit::All && !route.continues {
            break;
        }
    }
    found
}

/// Receivers of pages that every event of a workflow reaches.
pub(super) fn pages_of<'c>(config: &'c Config, workflow: &Workflow) -> Vec<&'c ReceiverName> {
    let mut pages: Vec<&ReceiverName> = Vec::new();
    for (route, _) in routes_of(config, workflow).into_iter().filter(|(_, fit)| *fit == Fit::All) {
        for name in route.page.iter().filter(|name| reaches(config, name, workflow)) {
            if !pages.contains(&name) {
                pages.push(name);
            }
        }
    }
    pages
}

/// Routes, with their places in the list, that keep some events of a workflow from all later routes, before a route has
/// taken every event to a receiver of pages.
fn keepers_of<'c>(config: &'c Config, workflow: &Workflow) -> Vec<(usize, &'c Route)> {
    let mut keepers = Vec::new();
    for (n, route) in config.routes.iter().enumerate() {
        let pages = route.page.iter().any(|name| reaches(config, name, workflow));
        match fit(route, &workflow.name, workflow.domain) {
            Fit::All if pages || !route.continues => break,
            Fit::Some if !route.continues => keepers.push((n, route)),
            Fit::No if !route.continues && takes_names_of(config, route, workflow) => keepers.push((n, route)),
            Fit::All | Fit::Some | Fit::No => {}
        }
    }
    keepers
}

/// Whether a route that does not take each name that a workflow stands for takes one that is no other workflow's.
fn takes_names_of(config: &Config, route: &Route, workflow: &Workflow) -> bool {
    let in_domain =
        route.matcher.globs(&MatchKey::Domain).is_none_or(|g| g.iter().any(|g| g.matches(workflow.domain.as_str())));
    let is_taken = |glob: &Glob| {
        let mut others = config.workflows.iter().filter(|w| w.name != workflow.name && covers(&w.name, glob));
        overlap(glob, &workflow.name) && others.next().is_none_or(|other| covers(&other.name, &workflow.name))
    };
    in_domain && route.matcher.globs(&MatchKey::Workflow).is_some_and(|globs| globs.iter().any(is_taken))
}

/// A receiver that writes to owners reaches nobody for a workflow without one.
fn reaches(config: &Config, name: &ReceiverName, workflow: &Workflow) -> bool {
    workflow.owner.is_some() || config.receivers.get(name).is_none_or(|r| !r.kind.is_owner())
}

struct Sense<'a> {
    root: &'a Cursor<'a>,
    config: &'a Config,
    report: &'a Report,
}

impl Sense<'_> {
    fn routes(&self) {
        let (routes, cursors) = (&self.config.routes, self.root.tables("routes"));
        match routes.last() {
            None => self.report.error(self.root.at, format!("no [[routes]]: {LAST_ROUTE}")),
            Some(last) if !last.matcher.is_empty() => {
                let at = cursors.last().map_or(self.root.at, |c| c.place("match"));
                self.report.error(at, format!("no catch-all: the last route matches only some events; {LAST_ROUTE}"));
            }
            Some(last) if !last.page.iter().chain(last.digest.values().flatten()).any(|name| self.is_fixed(name)) => {
                let at = cursors.last().map_or(self.root.at, |c| c.place("name"));
                let message = format!(
                    "route {:?} is the last one and reaches nobody for sure: workflows may have no owner; give it a digest or page receiver that is not to = \"owner\"",
                    last.name.as_str()
                );
                self.report.error(at, message);
            }
            Some(_) => {}
        }
        self.escalations();
        for (n, (route, cursor)) in routes.iter().zip(&cursors).enumerate() {
            let earlier = routes[..n].iter().find(|e| !e.continues && swallows(&e.matcher, &route.matcher));
            if let Some(earlier) = earlier {
                let why =
                    if earlier.matcher.is_empty() { "matches everything" } else { "matches all that this one does" };
                let message = format!(
                    "route {:?} is never reached: route {:?} before it {why} and does not continue",
                    route.name.as_str(),
                    earlier.name.as_str()
                );
                self.report.error(cursor.place("name"), message);
            }
        }
    }

    /// A receiver that could not be read was reported; it is not reported twice.
    fn is_fixed(&self, name: &ReceiverName) -> bool {
        self.config.receivers.get(name).is_none_or(|receiver| !receiver.kind.is_owner())
    }

    /// Refuses escalations to owners when there are none.
    fn escalations(&self) {
        if self.config.workflows.iter().any(|workflow| workflow.owner.is_some()) {
            return;
        }
        for (route, cursor) in self.config.routes.iter().zip(self.root.tables("routes")) {
            let names = route.escalate.iter().flat_map(|step| &step.to);
            let is_owner = |name: &&ReceiverName| self.config.receivers.get(*name).is_some_and(|r| r.kind.is_owner());
            if let Some(name) = names.into_iter().find(is_owner) {
                let message = format!(
                    "route {:?} escalates to receiver {:?}, which writes to owners, and no workflow has one",
                    route.name.as_str(),
                    name.as_str()
                );
                self.report.error(cursor.place("escalate"), message);
            }
        }
    }

    fn protected(&self) {
        for (workflow, cursor) in self.config.workflows.iter().zip(self.root.tables("workflows")) {
            if workflow.domain.is_protected() {
                self.pages(workflow, cursor.place("name"));
            }
        }
    }

    fn pages(&self, workflow: &Workflow, at: Place) {
        let (name, domain) = (workflow.name.as_str(), workflow.domain.as_str());
        let pages = pages_of(self.config, workflow);
        if pages.is_empty() {
            let message = format!(
                "workflow {name:?} is protected (domain {domain}), but no route gives each of its failures a page receiver; add page = [\"…\"] to a route that matches it"
            );
            self.report.error(at, message);
        }
        self.all_have_fallback(pages, workflow);
        self.kept_from_paging(workflow);
    }

    /// Refuses a route that takes some failures for itself before anybody is paged for all of them.
    fn kept_from_paging(&self, workflow: &Workflow) {
        let cursors = self.root.tables("routes");
        for (n, route) in keepers_of(self.config, workflow) {
            let pages: Vec<_> = route.page.iter().filter(|name| reaches(self.config, name, workflow)).collect();
            if pages.is_empty() {
                let message = format!(
                    "route {:?} takes some failures of workflow {:?} (domain {}) and nobody is paged for them; add continue = true, or page receivers",
                    route.name.as_str(),
                    workflow.name.as_str(),
                    workflow.domain.as_str()
                );
                self.report.error(cursors.get(n).map_or(self.root.at, |c| c.place("name")), message);
            }
            self.all_have_fallback(pages, workflow);
        }
    }

    fn all_have_fallback(&self, pages: Vec<&ReceiverName>, workflow: &Workflow) {
        let alone = |name: &&ReceiverName| self.config.receivers.get(*name).is_some_and(|r| r.fallback.is_none());
        for page in pages.into_iter().filter(alone) {
            self.without_fallback(page, workflow);
        }
    }

    fn without_fallback(&self, page: &ReceiverName, workflow: &Workflow) {
        let at = self.receiver(page.as_str()).map_or(self.root.at, |c| c.at);
        let message = format!(
            "receiver {:?} gets pages of workflow {:?}, but has no fallback behind it; add fallback = \"…\"",
            page.as_str(),
            workflow.name.as_str()
        );
        self.report.error(at, message);
    }

    fn receiver(&self, name: &str) -> Option<Cursor<'_>> {
        self.root.named("receivers").into_iter().find(|(n, _)| *n == name).map(|(_, cursor)| cursor)
    }

    fn receivers(&self) {
        for (name, cursor) in self.root.named("receivers") {
            if cursor.text("fallback") == Some(name) {
                self.report.error(cursor.place("fallback"), format!("receiver {name:?} is its own fallback"));
            }
            if cursor.text("kind") == Some("email") && self.root.node("smtp").is_none() {
                let message = format!("receiver {name:?} sends e-mail, but there is no [smtp] with host and from");
                self.report.error(cursor.place("kind"), message);
            }
            self.owner_behind(name, &cursor);
        }
        let unowned =
            self.config.workflows.iter().zip(self.root.tables("workflows")).filter(|(w, _)| w.owner.is_none());
        for (workflow, cursor) in unowned {
            let routes = routes_of(self.config, workflow);
            let receivers = routes.iter().flat_map(|(r, _)| r.digest.values().flatten());
            let mut owners = receivers.filter(|r| self.config.receivers.get(*r).is_some_and(|r| r.kind.is_owner()));
            if let Some(receiver) = owners.next() {
                let message = format!(
                    "workflow {:?} has no owner: receiver {:?} tells nobody of it",
                    workflow.name.as_str(),
                    receiver.as_str()
                );
                self.report.warn(cursor.place("name"), message);
            }
        }
    }

    /// A message to a fixed receiver has no owner that a fallback could write to.
    fn owner_behind(&self, name: &str, cursor: &Cursor<'_>) {
        let receivers = &self.config.receivers;
        let own = receivers.get(&ReceiverName::from(name));
        let behind = own.and_then(|r| r.fallback.as_ref()).and_then(|fallback| receivers.get(fallback));
        if let (Some(own), Some(behind)) = (own, behind)
            && behind.kind.is_owner()
            && !own.kind.is_owner()
        {
            let message = format!(
                "receiver {:?} writes to owners and can't stand in for {name:?}, whose messages have none; name another fallback",
                behind.name.as_str()
            );
            self.report.error(cursor.place("fallback"), message);
        }
    }

    /// Warns of what is defined and never used.
    fn unused(&self) {
        for (digest, cursor) in self.root.named(Defined::Digest.section()) {
            let used = self.config.routes.iter().any(|r| r.digest.keys().any(|d| d.as_str() == digest));
            if !used {
                self.report.warn(cursor.at, format!("no route puts anything into digest {digest:?}"));
            }
        }
        let calendars = names(self.root.table, Defined::Calendar.section());
        for calendar in calendars {
            let used =
                self.config.digests.values().any(|d| d.calendar.as_ref().is_some_and(|c| c.as_str() == calendar));
            let at =
                self.root.node("calendars").and_then(Node::table).and_then(|t| t.entry(calendar)).map(|e| e.node.at);
            if !used {
                self.report.warn(at.unwrap_or(self.root.at), format!("no digest keeps to calendar {calendar:?}"));
            }
        }
        if let Err(missing) = self.config.require_auth() {
            self.report.error(self.root.inside("http").place("listen"), missing.to_string());
        }
    }
}

const LAST_ROUTE: &str =
    "add a last route with an empty match, so that each failure reaches somebody: name = \"everything\", match = {}";
