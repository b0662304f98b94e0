//! Adds up what a digest is given: by workflow and by cause, with the zone and addresses that every sentence needs.
//! What is said about the sums is composed elsewhere.

use super::input::{Cell, DigestInput, Fate, Totals, WorkflowInfo, WorkflowSums};
use super::view::{Contact, DigestCounts, Link};
use crate::event::{Class, Fingerprint};
use crate::name::WorkflowName;
use crate::render::words;
use chrono::{DateTime, Utc};
use foldhash::{HashMap, HashMapExt, HashSet};
use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::time::Duration;

/// A digest's input, added up.
pub(super) struct Tally<'a> {
    pub input: &'a DigestInput,
    pub totals: Totals,
    pub workflows: BTreeMap<&'a WorkflowName, WorkflowTally>,
    /// Workflows that this window has news of. Dead letters of the others are counted, never listed by name: they were
    /// when they came, and naming them again when they wait for too long is the work of symptoms.
    current: HashSet<&'a WorkflowName>,
    /// Most final failures first, then most failures.
    pub causes: Vec<CauseTally<'a>>,
}

/// One workflow, and what is known of it otherwise.
#[derive(Clone, Debug, Default)]
pub(super) struct WorkflowTally {
    pub sums: WorkflowSums,
    /// Failures that no silence hid.
    pub classes: BTreeMap<Class, u64>,
    /// Whether anything arrived that no silence hid.
    pub told: bool,
    /// Whether anything arrived at all.
    pub arrived: bool,
    /// Whether this window has news of it.
    pub is_current: bool,
    /// Whether it is heard at regular intervals.
    pub is_expected: bool,
    pub hearing: Hearing,
    /// Dead letters open at the end.
    pub open_count: u64,
    /// When the oldest of them became one.
    pub oldest_at: Option<DateTime<Utc>>,
}

/// One cause: failures that this digest is to tell.
#[derive(Clone, Debug)]
pub(super) struct CauseTally<'a> {
    pub fingerprint: &'a Fingerprint,
    pub workflow: &'a WorkflowName,
    pub class: Class,
    pub count: u64,
    pub final_count: u64,
    pub kind: CauseKind,
}

/// What is known of a cause from before the window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum CauseKind {
    /// First seen in the window.
    New,
    /// Came back after it was resolved.
    Regressed,
    /// Seen before.
    Known,
}

/// Whether a workflow that is expected was heard.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Hearing {
    /// It was, or nothing was expected of it.
    #[default]
    Heard,
    /// Nothing for so long.
    Missing(Duration),
    /// Nothing ever.
    Never,
}

impl Hearing {
    fn of(info: &WorkflowInfo, now: DateTime<Utc>) -> Self {
        let Some(every) = info.every else { return Self::Heard };
        match info.last_heard_at.map(|at| words::between(at, now)) {
            None => Self::Never,
            Some(age) if age > every + info.grace => Self::Missing(age),
            Some(_) => Self::Heard,
        }
    }
}

impl<'a> Tally<'a> {
    pub fn new(input: &'a DigestInput) -> Self {
        let window = input.window;
        let pages = input.pages.iter().filter(|p| window.start_at <= p.opened_at && p.opened_at < window.end_at);
        let current = input.news();
        let workflows = tally_workflows(input, &current);
        let sums = workflows.iter().map(|(workflow, tally)| (*workflow, &tally.sums));
        Self {
            input,
            totals: Totals::of(sums, &input.letter_flow, pages.count() as u64),
            current,
            workflows,
            causes: tally_causes(input),
        }
    }

    /// Whether this window has news of a workflow: an event, a dead letter, an incident or a firing symptom.
    pub fn is_current(&self, workflow: &WorkflowName) -> bool {
        self.current.contains(workflow)
    }

    /// Workflows without news that have open dead letters.
    pub fn with_old_letters(&self) -> impl Iterator<Item = (&'a WorkflowName, &WorkflowTally)> {
        self.workflows
            .iter()
            .map(|(workflow, tally)| (*workflow, tally))
            .filter(|(_, t)| t.open_count > 0 && !t.is_current)
    }

    /// End of the window: "now", for every age and time in the digest.
    pub fn end_at(&self) -> DateTime<Utc> {
        self.input.window.end_at
    }

    pub fn time(&self, at: DateTime<Utc>) -> String {
        words::time(at, self.end_at(), self.input.zone)
    }

    pub fn age(&self, since: DateTime<Utc>) -> Duration {
        words::between(since, self.end_at())
    }

    pub fn info(&self, workflow: &WorkflowName) -> Option<&'a WorkflowInfo> {
        self.input.workflows.get(workflow)
    }

    /// Singular noun of an item of `workflow`.
    pub fn noun(&self, workflow: &WorkflowName) -> &'a str {
        self.info(workflow).and_then(|i| i.item_noun.as_deref()).unwrap_or("item")
    }

    pub fn is_protected(&self, workflow: &WorkflowName) -> bool {
        self.info(workflow).is_some_and(|i| i.domain.is_protected())
    }

    /// Whom to ask about `workflow`; `links` come before its runbook.
    pub fn contact(&self, workflow: &WorkflowName, mut links: Vec<Link>) -> Contact {
        let info = self.info(workflow);
        let owner = info.and_then(|i| i.owner.as_deref()).map(words::owner_name);
        let domain = info.map(|i| i.domain).filter(|d| d.is_protected());
        let url = links.first().map(|l| l.url.clone()).unwrap_or_default();
        if let Some(runbook) = info.and_then(|i| i.runbook.clone()) {
            links.push(Link { text: "Runbook".to_owned(), url: runbook });
        }
        Contact {
            owner: owner.unwrap_or("none set").to_owned(),
            domain: domain.map(|d| d.as_str().to_owned()).unwrap_or_default(),
            url,
            links,
        }
    }

    /// An address of the web page: `path` below the public one, with `query` encoded.
    pub fn url(&self, path: &str, query: &[(&str, &str)]) -> String {
        let mut url = format!("{}/{path}", self.input.public_url.trim_end_matches('/'));
        if !query.is_empty() {
            let encoded = url::form_urlencoded::Serializer::new(String::new()).extend_pairs(query).finish();
            url.push('?');
            url.push_str(&encoded);
        }
        url
    }

    /// A link to open dead letters, named by their number.
    pub fn letters_link(&self, count: u64, query: &[(&str, &str)]) -> Link {
        Link { text: words::noun(count, "dead letter"), url: self.url("dead-letters", query) }
    }

    /// Share of what ended well without a person, as (healed, ended).
    pub fn healed(totals: &Totals) -> (u64, u64) {
        (totals.recoveries, totals.recoveries + totals.final_failures)
    }

    /// Where every event went, when `listed` of them have one of the causes with a line of their own.
    pub fn counts(&self, listed: u64) -> DigestCounts {
        let mut counts = DigestCounts { listed, ..DigestCounts::default() };
        for cell in &self.input.cells {
            counts.received += cell.count;
            match &cell.fate {
                Fate::Silenced(id) => *counts.silenced.entry(id.clone()).or_default() += cell.count,
                Fate::Paged(_) => counts.paged += cell.count,
                Fate::Digest => counts.folded += cell.count,
            }
        }
        counts.folded -= listed;
        counts
    }
}

impl WorkflowTally {
    fn add(&mut self, cell: &Cell) {
        self.arrived = true;
        if cell.is_silenced() {
            return;
        }
        self.told = true;
        self.sums.add(cell);
        if cell.is_failure() {
            *self.classes.entry(cell.class).or_default() += cell.count;
        }
    }
}

/// Every workflow that is known or occurs, with all that is known of it: later nobody has to look for anything by its name.
fn tally_workflows<'a>(
    input: &'a DigestInput,
    current: &HashSet<&'a WorkflowName>,
) -> BTreeMap<&'a WorkflowName, WorkflowTally> {
    let mut tallies: HashMap<&WorkflowName, WorkflowTally> = HashMap::with_capacity(input.workflows.len());
    for (workflow, info) in &input.workflows {
        let tally = tallies.entry(workflow).or_default();
        tally.is_expected = info.every.is_some();
        tally.hearing = Hearing::of(info, input.window.end_at);
    }
    for cell in &input.cells {
        tallies.entry(&cell.workflow).or_default().add(cell);
    }
    for (workflow, letters) in input.letter_flow.by_workflow.iter().filter(|(_, letters)| letters.open_count > 0) {
        let tally = tallies.entry(workflow).or_default();
        tally.open_count = letters.open_count;
        tally.oldest_at = letters.oldest_at;
    }
    for workflow in current {
        if let Some(tally) = tallies.get_mut(workflow) {
            tally.is_current = true;
        }
    }
    tallies.into_iter().collect()
}

fn tally_causes(input: &DigestInput) -> Vec<CauseTally<'_>> {
    let mut causes: HashMap<&Fingerprint, CauseTally<'_>> = HashMap::new();
    for cell in input.cells.iter().filter(|c| c.fate == Fate::Digest && c.is_failure() && c.count > 0) {
        let cause = causes.entry(&cell.fingerprint).or_insert_with(|| CauseTally {
            fingerprint: &cell.fingerprint,
            workflow: &cell.workflow,
            class: cell.class,
            count: 0,
            final_count: 0,
            kind: cause_kind(input, &cell.fingerprint),
        });
        cause.count += cell.count;
        cause.final_count += if cell.is_final_failure() { cell.count } else { 0 };
    }
    let mut causes: Vec<_> = causes.into_values().collect();
    causes.sort_unstable_by_key(|c| (Reverse((c.final_count, c.count)), c.fingerprint));
    causes
}

/// A cause that nothing is known of is taken as seen before: no mark without proof.
fn cause_kind(input: &DigestInput, fingerprint: &Fingerprint) -> CauseKind {
    let start_at = input.window.start_at;
    match input.fingerprints.get(fingerprint) {
        Some(info) if info.first_seen_at >= start_at => CauseKind::New,
        Some(info) if info.resolved_at.is_some_and(|at| info.last_seen_before_at.is_none_or(|seen| seen <= at)) => {
            CauseKind::Regressed
        }
        Some(_) | None => CauseKind::Known,
    }
}

/// "And 12 more." or nothing.
pub(super) fn and_more(shown: usize, all: usize) -> String {
    match all.saturating_sub(shown) {
        0 => String::new(),
        left => format!("And {} more.", words::count(left as u64)),
    }
}

/// "a, b and c"; with more than `max` names "a, b and 3 more".
pub(super) fn name_some(names: &[&str], max: usize) -> String {
    let shown = if names.len() > max { max } else { names.len() };
    let left = names.len() - shown;
    let (last, rest) = match (names[..shown].split_last(), left) {
        (None, _) => return String::new(),
        (Some((last, rest)), 0) => ((*last).to_owned(), rest),
        (Some(_), left) => (format!("{} more", words::count(left as u64)), &names[..shown]),
    };
    match rest {
        [] => last,
        rest => format!("{} and {last}", rest.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_joined_and_capped() {
        assert_eq!(name_some(&[], 3), "");
        assert_eq!(name_some(&["a"], 3), "a");
        assert_eq!(name_some(&["a", "b", "c"], 3), "a, b and c");
        assert_eq!(name_some(&["a", "b", "c", "d"], 2), "a, b and 2 more");
    }

    #[test]
    fn what_is_left_out_is_counted() {
        assert_eq!(and_more(10, 10), "");
        assert_eq!(and_more(10, 1_210), "And 1,200 more.");
    }
}
