//! The part of a snapshot that one digest and receiver is told, counted. Nothing is read, decided or written here.

use super::folded::{Folded, OpenCount};
use super::input::Reading;
use super::reader::Reader;
use super::snapshot::WindowSnapshot;
use super::target::Target;
use crate::digest::{
    Cell, DownstreamCount, Fate, LetterCount, LetterFlow, LetterStep, PageRecord, PageState, Totals, has_patterns,
};
use crate::event::{Class, Fingerprint};
use crate::incident::{Hit, Incident, IncidentState};
use crate::live::Live;
use crate::name::WorkflowName;
use crate::store::StoreError;
use crate::store::catalogue::{Catalogue, Cause, Pair, RowSet};
use crate::store::digest_input::{Count, LetterChanges, Lists, OpenIncident};
use chrono::{DateTime, Utc};
use foldhash::{HashMap, HashSet};
use std::collections::BTreeMap;
use std::sync::Arc;

/// The part of a snapshot that one digest and receiver is told.
pub(super) struct Scope<'a> {
    catalogue: &'a Catalogue,
    decisions: Option<&'a RowSet>,
    /// Only these workflows; none means all. An owner's own digest covers the owner's workflows.
    workflows: Option<Arc<HashSet<WorkflowName>>>,
    reader: &'a Reader<'a>,
    has_patterns: bool,
}

/// Counters, and what is known of their causes.
#[derive(Default)]
pub(super) struct Counted<'a> {
    /// One cell per bucket, cause and fate.
    pub cells: Vec<Cell>,
    pub downstreams: Vec<DownstreamCount>,
    /// Events that arrived an hour or more after they happened.
    pub late_count: u64,
    /// First arrival in the window, by what causes of one workflow and fingerprint share.
    pub first_at: HashMap<usize, (&'a Fingerprint, DateTime<Utc>)>,
}

impl<'a> Scope<'a> {
    pub fn new(reading: &'a Reading, live: &Live, target: &Target, reader: &'a Reader<'a>) -> Self {
        let Reading { catalogue, snapshot } = reading;
        Self {
            catalogue,
            decisions: catalogue.decisions_for(target.digest.as_str(), target.receiver.as_str()),
            workflows: target.owner.as_ref().map(|owner| snapshot.owned_by(&live.config, owner)),
            reader,
            has_patterns: has_patterns(&target.digest),
        }
    }

    pub fn covers(&self, workflow: &WorkflowName) -> bool {
        self.workflows.as_ref().is_none_or(|only| only.contains(workflow))
    }

    /// The cause of what this digest is to tell; none when it is not.
    pub fn told(&self, pair: Pair) -> Result<Option<&'a Cause>, StoreError> {
        if !self.decisions.is_some_and(|decisions| decisions.contains(&pair.1)) {
            return Ok(None);
        }
        let cause = self.catalogue.cause(pair.0)?;
        Ok(Some(&**cause).filter(|c| self.covers(&c.workflow)))
    }

    /// Counters by bucket, cause and fate, in that order.
    fn counts(&self, counts: &[Count]) -> Result<Vec<(Count, &'a Cause, &'a Fate)>, StoreError> {
        let mut sums = Vec::new();
        for count in counts {
            if let Some(cause) = self.told(count.pair)? {
                sums.push((*count, cause, self.catalogue.fate(count.pair.1)?));
            }
        }
        // They come by bucket, cause and decision, so there is hardly ever anything to sort.
        let key = |(count, _, fate): &(Count, &'a Cause, &'a Fate)| (count.at, count.pair.0, *fate);
        if !sums.is_sorted_by_key(key) {
            sums.sort_by_key(key);
        }
        sums.dedup_by(|next, sum| {
            let is_same = key(&*next) == key(&*sum);
            if is_same {
                sum.0.add(&next.0);
            }
            is_same
        });
        Ok(sums)
    }

    pub fn count(&self, counts: &[Count]) -> Result<Counted<'a>, StoreError> {
        let counts = self.counts(counts)?;
        let mut counted = Counted { cells: Vec::with_capacity(counts.len()), ..Counted::default() };
        for (count, cause, fate) in &counts {
            counted.late_count += count.late;
            let (_, first_at) = counted.first_at.entry(cause.group).or_insert((&cause.fingerprint, count.first_at));
            *first_at = count.first_at.min(*first_at);
            counted.cells.push(cell(count, cause, fate));
        }
        if self.has_patterns {
            counted.downstreams = downstreams(counts.iter().map(|(_, cause, _)| *cause).zip(&counted.cells));
        }
        Ok(counted)
    }

    /// Dead letters that are open at the end of the window, by cause.
    pub fn fold_letters(&self, window: &'a WindowSnapshot) -> Result<Folded<'a>, StoreError> {
        let mut folded = Folded::default();
        for (pair, open) in self.catalogue.letters() {
            let Some(cause) = self.told(*pair)? else { continue };
            let later = window.shift.later.get(pair).copied().unwrap_or(0);
            let fresh = window.shift.fresh.get(pair).copied().unwrap_or(0);
            if let Some(count) = open.count.checked_sub(later).filter(|n| *n > 0) {
                folded.add(cause, count, fresh, &open.oldest);
            }
        }
        for (pair, letter) in &window.shift.gone {
            if let Some(cause) = self.told(*pair)? {
                folded.add(cause, 1, u64::from(letter.at >= window.window.start_at), letter);
            }
        }
        Ok(folded)
    }

    /// Dead letters that came and went; `open` are those open at the end, by workflow.
    pub fn flow<'o>(
        &self,
        changes: &Lists,
        open: impl Iterator<Item = (&'o WorkflowName, OpenCount)>,
    ) -> Result<LetterFlow, StoreError> {
        let mut flow = LetterFlow::default();
        for (workflow, open) in open {
            let count =
                LetterCount { open_count: open.count, oldest_at: Some(open.oldest_at), ..LetterCount::default() };
            flow.open_at_end += open.count;
            flow.by_workflow.insert(workflow.clone(), count);
        }
        let mut steps: BTreeMap<DateTime<Utc>, (u64, u64)> = BTreeMap::new();
        for (change, cause) in self.changes(&changes.opened)? {
            flow.opened_count += change.count;
            flow.by_workflow.entry(cause.workflow.clone()).or_default().opened_count += change.count;
            steps.entry(change.at).or_default().0 += change.count;
        }
        for (change, cause) in self.changes(&changes.resolved)? {
            flow.resolved_count += change.count;
            flow.redriven_count += change.redriven_count;
            flow.by_workflow.entry(cause.workflow.clone()).or_default().resolved_count += change.count;
            steps.entry(change.at).or_default().1 += change.count;
        }
        flow.open_at_start = (flow.open_at_end + flow.resolved_count).saturating_sub(flow.opened_count);
        flow.steps = steps
            .into_iter()
            .map(|(at, (opened_count, resolved_count))| LetterStep { at, opened_count, resolved_count })
            .collect();
        Ok(flow)
    }

    fn changes<'c>(&self, changes: &'c [LetterChanges]) -> Result<Vec<(&'c LetterChanges, &'a Cause)>, StoreError> {
        let told = |change: &'c LetterChanges| Ok(self.told(change.pair)?.map(|cause| (change, cause)));
        changes.iter().filter_map(|change| told(change).transpose()).collect()
    }

    /// The window of the same length before, when Matins ran in it. `open_at_end` is how many dead letters were open between the two.
    pub fn previous(&self, window: &WindowSnapshot, open_at_end: u64) -> Result<Option<Totals>, StoreError> {
        let Some(before) = &window.previous else { return Ok(None) };
        let counts = self.counts(&before.lists.counts)?;
        let cells = counts.iter().map(|(count, cause, fate)| cell(count, cause, fate));
        let flow = LetterFlow { open_at_end, ..self.flow(&before.lists, std::iter::empty())? };
        let (start_at, end_at) = (before.window.start_at, before.window.end_at);
        let opened = self.incidents(window).map(|i| i.incident.opened_at).filter(|at| start_at <= *at && *at < end_at);
        Ok(Some(Totals::measure(cells, &flow, opened.count() as u64)))
    }

    fn incidents<'w>(&self, window: &'w WindowSnapshot) -> impl Iterator<Item = &'w OpenIncident> {
        let told = |i: &&OpenIncident| {
            let is_for_us = i.decisions.iter().any(|d| self.decisions.is_some_and(|decisions| decisions.contains(d)));
            // One that a symptom opened may have no event that was decided about.
            let is_told = |h: &Hit| self.covers(&h.workflow) && (is_for_us || self.reader.reads(&h.workflow));
            (is_for_us || i.incident.sample.is_none()) && i.incident.hits.iter().any(is_told)
        };
        window.incidents.iter().filter(told)
    }

    pub fn pages(&self, live: &Live, snapshot: &WindowSnapshot) -> Vec<PageRecord> {
        let window = snapshot.window;
        let was_open = |i: &&OpenIncident| i.incident.resolved_at.is_none_or(|at| at >= window.start_at);
        let record = |i: &OpenIncident| page_record(live, &i.incident, i.open_letters, window.end_at);
        self.incidents(snapshot).filter(was_open).map(record).collect()
    }
}

/// Failures by downstream and workflow.
fn downstreams<'c>(cells: impl Iterator<Item = (&'c Cause, &'c Cell)>) -> Vec<DownstreamCount> {
    let mut sums: BTreeMap<(&str, &WorkflowName), (u64, u64)> = BTreeMap::new();
    for (cause, cell) in cells {
        if let Some(downstream) = cause.downstream.as_deref().filter(|_| cell.is_failure()) {
            let sum = sums.entry((downstream, &cause.workflow)).or_default();
            sum.0 += cell.count;
            sum.1 += if cell.is_final_failure() { cell.count } else { 0 };
        }
    }
    let downstream = |((name, workflow), (failures_count, final_count)): ((&str, &WorkflowName), (u64, u64))| {
        DownstreamCount { downstream: name.to_owned(), workflow: workflow.clone(), failures_count, final_count }
    };
    sums.into_iter().map(downstream).collect()
}

fn cell(count: &Count, cause: &Cause, fate: &Fate) -> Cell {
    Cell {
        at: count.at,
        workflow: cause.workflow.clone(),
        event_type: cause.event_type,
        class: cause.class,
        disposition: cause.disposition,
        fingerprint: cause.fingerprint.clone(),
        fate: fate.clone(),
        count: count.events,
        ok_count: count.ok,
        failed_count: count.failed,
        strategy: cause.strategy.clone(),
        took_count: count.took,
        took_ms_sum: count.took_ms,
        attempts_count: 0,
        attempts_sum: 0,
    }
}

fn page_record(live: &Live, incident: &Incident, open_letters: u64, end_at: DateTime<Utc>) -> PageRecord {
    let state = match incident.state {
        IncidentState::Resolved if incident.resolved_at.is_some_and(|at| at < end_at) => PageState::Resolved,
        IncidentState::Open => PageState::Open,
        IncidentState::Acknowledged | IncidentState::Resolved => PageState::Acknowledged,
    };
    PageRecord {
        incident_id: incident.id.0.to_string(),
        number: incident.told.page_number,
        workflows: incident.hits.iter().map(|h| h.workflow.clone()).collect(),
        class: incident.sample.as_ref().map_or(Class::Unclassified, |s| s.class),
        opened_at: incident.opened_at,
        acknowledged_at: incident.acknowledged_at,
        resolved_at: incident.resolved_at,
        state,
        events_count: incident.event_count(),
        items_count: incident.item_count(),
        open_letters_count: open_letters,
        sentence: live.announcer.sentence(incident, open_letters, end_at),
    }
}
