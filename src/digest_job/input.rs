//! What a digest is composed from, picked from the snapshot of its window for one receiver. Nothing is decided or written here.

use super::folded::{Folded, OpenCount};
use super::snapshot::{Snapshot, WindowSnapshot};
use super::target::Target;
use super::urgent::{budgets, is_news, reads, urgent};
use crate::config::Config;
use crate::digest::plan::Window;
use crate::digest::{
    Cell, DigestInput, DownstreamCount, Fate, LETTERS_MAX, Late, LetterFlow, LetterGroup, LetterStep, OlderLetters,
    PageRecord, PageState, SilenceLine, Totals, WorkflowInfo, has_patterns,
};
use crate::event::{Class, Fingerprint};
use crate::incident::{Hit, Incident, IncidentState};
use crate::live::Live;
use crate::name::{RouteName, WorkflowName};
use crate::route::Route;
use crate::store::StoreError;
use crate::store::catalogue::{Catalogue, Cause, Pair, RowSet};
use crate::store::digest_input::{self as read, Count, LetterChanges, Lists, OpenIncident};
use crate::symptom::{Budget, ToldSymptom};
use chrono::{DateTime, Utc};
use sqlx::SqliteConnection;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

/// What `compose` is told beside the store.
#[derive(Clone, Debug)]
pub struct Occasion {
    /// What it covers.
    pub window: Window,
    /// When it should go out.
    pub due_at: DateTime<Utc>,
    /// Set when it comes late.
    pub late: Option<Late>,
    /// What is missing.
    pub incomplete: Option<String>,
    /// Symptoms that fire.
    pub firing: Arc<Vec<ToldSymptom>>,
    /// Error budgets at the end of the window, when it is long enough to tell of them.
    pub budgets: Arc<Vec<Budget>>,
}

/// Last letters of a workflow that patterns look at.
const LAST_LETTERS_MAX: usize = 20;

/// What the digests of one look are picked from: one state of the store.
pub struct Reading {
    /// What its rows refer to.
    pub catalogue: Arc<Catalogue>,
    /// Its windows.
    pub snapshot: Snapshot,
}

/// Workflows of the last dead letters that the digest of `target` told, for patterns; none when it looks at none.
///
/// # Errors
/// When the store can't be read.
pub async fn last_letters(
    conn: &mut SqliteConnection,
    target: &Target,
    occasion: &Occasion,
) -> Result<Vec<WorkflowName>, StoreError> {
    if !has_patterns(&target.digest) {
        return Ok(Vec::new());
    }
    read::last_letters(conn, target.digest.as_str(), target.receiver.as_str(), occasion.window.end_at).await
}

impl Reading {
    /// Whether nothing arrived, readable or not, no symptom began, and config asks to skip such digests. What stays open from earlier
    /// windows was told in them.
    ///
    /// # Errors
    /// When the snapshot does not hold the window.
    pub fn is_skipped(&self, live: &Live, target: &Target, occasion: &Occasion) -> Result<bool, StoreError> {
        let of_window = self.window(occasion)?;
        let send_empty = live.config.digests.get(&target.digest).is_some_and(|d| d.send_empty);
        if send_empty || occasion.incomplete.is_some() || has_unreadable(of_window, target) {
            return Ok(false);
        }
        let reads = |workflow: &WorkflowName| reads(live, target, workflow, occasion.window);
        let scope = Scope::new(self, live, target, &reads);
        for count in &of_window.lists.counts {
            if scope.told(count.pair)?.is_some() {
                return Ok(false);
            }
        }
        let pages = scope.pages(live, of_window);
        Ok(!is_news(live, target, occasion.window, &occasion.firing, &pages))
    }

    /// Picks what the digest of `target` is composed from; it has no number yet.
    ///
    /// # Errors
    /// When the snapshot does not hold the window, or a row refers to one that is not there.
    pub fn input(
        &self,
        live: &Live,
        target: &Target,
        occasion: &Occasion,
        last_letters: Vec<WorkflowName>,
    ) -> Result<DigestInput, StoreError> {
        let of_window = self.window(occasion)?;
        let reads = |workflow: &WorkflowName| reads(live, target, workflow, occasion.window);
        let scope = Scope::new(self, live, target, &reads);
        let counted = scope.count(&of_window.lists.counts)?;
        let folded = scope.fold_letters(of_window)?;
        let flow = scope.flow(&of_window.lists, folded.by_workflow())?;
        let pages = scope.pages(live, of_window);
        let urgent = urgent(live, target, occasion.window, &occasion.firing, &counted.cells, &pages);
        let settings = live.config.digests.get(&target.digest);
        let mut input = DigestInput {
            digest: target.digest.clone(),
            receiver: target.key(),
            routes: routes(&live.config, target),
            window: occasion.window,
            previous: scope.previous(of_window, flow.open_at_start)?,
            due_at: occasion.due_at,
            late: occasion.late.clone(),
            incomplete: occasion.incomplete.clone(),
            zone: settings.map_or(chrono_tz::Tz::UTC, |d| d.timezone),
            number: 0,
            public_url: live.config.http.public_url.clone(),
            workflows: BTreeMap::new(),
            last_letters: last_letters.into_iter().filter(|w| scope.covers(w)).take(LAST_LETTERS_MAX).collect(),
            fingerprints: BTreeMap::new(),
            late_count: counted.late_count,
            downstreams: counted.downstreams,
            silences: self.silence_lines(live, &counted.cells),
            cells: counted.cells,
            open_letters: Vec::new(),
            older_letters: OlderLetters::default(),
            letter_flow: flow,
            pages,
            urgent,
            budgets: budgets(live, target, occasion.window, &occasion.budgets),
            unreadable: if has_unreadable(of_window, target) { of_window.unreadable.clone() } else { Vec::new() },
            service: Vec::new(),
        };
        folded.tell(&mut input);
        input.workflows = workflow_infos(live, &input, &self.snapshot.last_heard);
        let mut infos = self.catalogue.infos(&named(&input));
        for (fingerprint, info) in &mut infos {
            info.first_in_window_at = counted.first_at.get(fingerprint).copied();
            info.resolved_at = of_window.regressed.get(fingerprint).copied();
        }
        input.fingerprints = infos;
        Ok(input)
    }

    fn window(&self, occasion: &Occasion) -> Result<&WindowSnapshot, StoreError> {
        let missing = || StoreError::Corrupt { what: "window", why: "it was not read".to_owned() };
        self.snapshot.windows.get(&occasion.window).ok_or_else(missing)
    }

    fn silence_lines(&self, live: &Live, cells: &[Cell]) -> Vec<SilenceLine> {
        let ids: BTreeSet<&str> = cells
            .iter()
            .filter_map(|c| match &c.fate {
                Fate::Silenced(id) => Some(id.as_str()),
                Fate::Digest | Fate::Paged(_) => None,
            })
            .collect();
        let known = |id: &str| live.policy.silences.iter().find(|s| s.id == id);
        ids.into_iter()
            .filter_map(|id| known(id).or_else(|| self.snapshot.silences.get(id)))
            .map(|s| SilenceLine { id: s.id.clone(), reason: s.reason.clone(), by: s.by.clone(), until: s.until })
            .collect()
    }
}

/// Nobody owns what can't be read.
fn has_unreadable(window: &WindowSnapshot, target: &Target) -> bool {
    target.owner.is_none() && !window.unreadable.is_empty()
}

/// Causes that the digest may say something of.
fn named(input: &DigestInput) -> BTreeSet<&Fingerprint> {
    let failed = input.cells.iter().filter(|c| c.is_failure()).map(|c| &c.fingerprint);
    let mut groups: Vec<&LetterGroup> = input.open_letters.iter().collect();
    groups.sort_by_key(|g| (g.oldest_at, &g.workflow, &g.fingerprint));
    let open_of = |w: &WorkflowName| input.letter_flow.by_workflow.get(w).map_or(0, |c| c.open_count);
    let is_sole = |g: &&LetterGroup| g.count == open_of(&g.workflow);
    let sole = input.open_letters.iter().filter(is_sole).map(|g| &g.fingerprint);
    failed.chain(sole).chain(groups.into_iter().take(LETTERS_MAX).map(|g| &g.fingerprint)).collect()
}

/// The part of a snapshot that one digest and receiver is told.
struct Scope<'a> {
    catalogue: &'a Catalogue,
    decisions: Option<&'a RowSet>,
    /// Only these workflows; none means all. An owner's own digest covers the owner's workflows.
    workflows: Option<BTreeSet<WorkflowName>>,
    /// Whether the reader is told of a workflow itself.
    reads: &'a dyn Fn(&WorkflowName) -> bool,
}

/// Counters, what is known of their causes, and failures by downstream.
#[derive(Default)]
struct Counted {
    /// One cell per bucket, cause and fate.
    cells: Vec<Cell>,
    downstreams: Vec<DownstreamCount>,
    /// Events that arrived an hour or more after they happened.
    late_count: u64,
    /// First arrival in the window.
    first_at: HashMap<Fingerprint, DateTime<Utc>>,
}

impl<'a> Scope<'a> {
    fn new(reading: &'a Reading, live: &Live, target: &Target, reads: &'a dyn Fn(&WorkflowName) -> bool) -> Self {
        let Reading { catalogue, snapshot } = reading;
        Self {
            catalogue,
            decisions: catalogue.decisions_for(target.digest.as_str(), target.receiver.as_str()),
            workflows: target.owner.as_ref().map(|owner| snapshot.owned_by(&live.config, owner)),
            reads,
        }
    }

    fn covers(&self, workflow: &WorkflowName) -> bool {
        self.workflows.as_ref().is_none_or(|only| only.contains(workflow))
    }

    /// The cause of what this digest is to tell; none when it is not.
    fn told(&self, pair: Pair) -> Result<Option<&'a Cause>, StoreError> {
        if !self.decisions.is_some_and(|decisions| decisions.contains(&pair.1)) {
            return Ok(None);
        }
        let cause = self.catalogue.cause(pair.0)?;
        Ok(Some(&**cause).filter(|c| self.covers(&c.workflow)))
    }

    fn cells(&self, counts: &[Count]) -> Result<Vec<(Count, &'a Cause, &'a Fate)>, StoreError> {
        let mut sums: BTreeMap<(DateTime<Utc>, i64, &Fate), (Count, &Cause)> = BTreeMap::new();
        for count in counts {
            let Some(cause) = self.told(count.pair)? else { continue };
            let key = (count.at, count.pair.0, self.catalogue.fate(count.pair.1)?);
            match sums.get_mut(&key) {
                Some((sum, _)) => sum.add(count),
                None => {
                    sums.insert(key, (*count, cause));
                }
            }
        }
        Ok(sums.into_iter().map(|((_, _, fate), (count, cause))| (count, cause, fate)).collect())
    }

    fn count(&self, counts: &[Count]) -> Result<Counted, StoreError> {
        let mut counted = Counted::default();
        let mut downstreams: BTreeMap<(&str, &WorkflowName), (u64, u64)> = BTreeMap::new();
        for (count, cause, fate) in self.cells(counts)? {
            let cell = cell(&count, cause, fate);
            counted.late_count += count.late;
            match counted.first_at.get_mut(&cell.fingerprint) {
                Some(first) => *first = count.first_at.min(*first),
                None => {
                    counted.first_at.insert(cell.fingerprint.clone(), count.first_at);
                }
            }
            if let Some(downstream) = cause.downstream.as_deref().filter(|_| cell.is_failure()) {
                let sums = downstreams.entry((downstream, &cause.workflow)).or_default();
                sums.0 += cell.count;
                sums.1 += if cell.is_final_failure() { cell.count } else { 0 };
            }
            counted.cells.push(cell);
        }
        let downstream = |((name, workflow), (failures_count, final_count)): ((&str, &WorkflowName), (u64, u64))| {
            DownstreamCount { downstream: name.to_owned(), workflow: workflow.clone(), failures_count, final_count }
        };
        counted.downstreams = downstreams.into_iter().map(downstream).collect();
        Ok(counted)
    }

    /// Dead letters that are open at the end of the window, by cause.
    fn fold_letters(&self, window: &'a WindowSnapshot) -> Result<Folded<'a>, StoreError> {
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
    fn flow(&self, changes: &Lists, open: BTreeMap<WorkflowName, OpenCount>) -> Result<LetterFlow, StoreError> {
        let mut flow = LetterFlow::default();
        for (workflow, open) in open {
            let count = flow.by_workflow.entry(workflow).or_default();
            count.open_count = open.count;
            count.oldest_at = open.oldest_at;
            flow.open_at_end += open.count;
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
    fn previous(&self, window: &WindowSnapshot, open_at_end: u64) -> Result<Option<Totals>, StoreError> {
        let Some(before) = &window.previous else { return Ok(None) };
        let cells: Vec<Cell> =
            self.cells(&before.lists.counts)?.iter().map(|(count, c, fate)| cell(count, c, fate)).collect();
        let flow = LetterFlow { open_at_end, ..self.flow(&before.lists, BTreeMap::new())? };
        let (start_at, end_at) = (before.window.start_at, before.window.end_at);
        let opened = self.incidents(window).map(|i| i.incident.opened_at).filter(|at| start_at <= *at && *at < end_at);
        Ok(Some(Totals::measure(&cells, &flow, opened.count() as u64)))
    }

    fn incidents<'w>(&self, window: &'w WindowSnapshot) -> impl Iterator<Item = &'w OpenIncident> {
        let told = |i: &&OpenIncident| {
            let is_for_us = i.decisions.iter().any(|d| self.decisions.is_some_and(|decisions| decisions.contains(d)));
            // One that a symptom opened may have no event that was decided about.
            let is_told = |h: &Hit| self.covers(&h.workflow) && (is_for_us || (self.reads)(&h.workflow));
            (is_for_us || i.incident.sample.is_none()) && i.incident.hits.iter().any(is_told)
        };
        window.incidents.iter().filter(told)
    }

    fn pages(&self, live: &Live, snapshot: &WindowSnapshot) -> Vec<PageRecord> {
        let window = snapshot.window;
        let was_open = |i: &&OpenIncident| i.incident.resolved_at.is_none_or(|at| at >= window.start_at);
        let record = |i: &OpenIncident| page_record(live, &i.incident, i.open_letters, window.end_at);
        self.incidents(snapshot).filter(was_open).map(record).collect()
    }
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

fn routes(config: &Config, target: &Target) -> Vec<RouteName> {
    let sends = |r: &&Route| r.digest.get(&target.digest).is_some_and(|to| to.contains(&target.receiver));
    config.routes.iter().filter(sends).map(|r| r.name.clone()).collect()
}

fn workflow_infos(
    live: &Live,
    input: &DigestInput,
    last_heard: &BTreeMap<WorkflowName, DateTime<Utc>>,
) -> BTreeMap<WorkflowName, WorkflowInfo> {
    let open = input.letter_flow.by_workflow.iter().filter(|(_, c)| c.open_count > 0).map(|(name, _)| name);
    let names: BTreeSet<&WorkflowName> = input
        .cells
        .iter()
        .map(|c| &c.workflow)
        .chain(open)
        .chain(input.pages.iter().flat_map(|p| &p.workflows))
        .chain(input.urgent.iter().map(|s| &s.workflow))
        .collect();
    let info = |name: &WorkflowName| {
        let known = live.config.workflows.find(name);
        WorkflowInfo {
            owner: known.and_then(|w| w.owner.clone()),
            domain: known.map(|w| w.domain).unwrap_or_default(),
            runbook: known.and_then(|w| w.runbook.clone()),
            item_noun: known.and_then(|w| w.item_noun.clone()),
            last_heard_at: last_heard.get(name).copied(),
            every: known.and_then(|w| w.every),
            grace: known.map(|w| w.grace).unwrap_or_default(),
        }
    };
    names.into_iter().map(|name| (name.clone(), info(name))).collect()
}
