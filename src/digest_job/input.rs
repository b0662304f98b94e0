//! What a digest is composed from, picked from the snapshot of its window for one receiver. Nothing is decided or written here.

use super::reader::Reader;
use super::scope::Scope;
use super::snapshot::{Snapshot, WindowSnapshot};
use super::target::Target;
use super::urgent::{budgets, is_news, urgent};
use crate::config::Config;
use crate::digest::plan::Window;
use crate::digest::{
    Cell, DigestInput, Fate, LETTERS_MAX, Late, LetterGroup, OlderLetters, SilenceLine, WorkflowInfo, has_patterns,
};
use crate::event::Fingerprint;
use crate::live::Live;
use crate::name::{RouteName, WorkflowName};
use crate::route::Route;
use crate::store::catalogue::Catalogue;
use crate::store::digest_input as read;
use crate::store::{ReadConn, StoreError};
use crate::symptom::{Budget, ToldSymptom};
use chrono::{DateTime, Utc};
use foldhash::{HashMap, HashSet};
use std::collections::{BTreeMap, BTreeSet};
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
    conn: &mut ReadConn,
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
        let reader = Reader::new(live, target, occasion.window.end_at);
        let scope = Scope::new(self, live, target, &reader);
        for count in &of_window.lists.counts {
            if scope.told(count.pair)?.is_some() {
                return Ok(false);
            }
        }
        let pages = scope.pages(live, of_window);
        Ok(!is_news(&reader, occasion.window, &occasion.firing, &pages))
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
        let reader = Reader::new(live, target, occasion.window.end_at);
        let scope = Scope::new(self, live, target, &reader);
        let counted = scope.count(&of_window.lists.counts)?;
        let folded = scope.fold_letters(of_window)?;
        let flow = scope.flow(&of_window.lists, folded.by_workflow())?;
        let pages = scope.pages(live, of_window);
        let urgent = urgent(live, &reader, occasion.window, &occasion.firing, &counted.cells, &pages);
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
            workflows: HashMap::default(),
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
            budgets: budgets(&reader, &occasion.budgets),
            unreadable: if has_unreadable(of_window, target) { of_window.unreadable.clone() } else { Vec::new() },
            service: Vec::new(),
        };
        folded.tell(&mut input);
        input.workflows = workflow_infos(live, &input, &self.snapshot.last_heard);
        let mut infos = self.catalogue.infos(&named(&input));
        for (fingerprint, first_at) in counted.first_at.into_values() {
            if let Some(info) = infos.get_mut(fingerprint) {
                info.first_in_window_at = Some(info.first_in_window_at.map_or(first_at, |at| at.min(first_at)));
            }
        }
        for (fingerprint, at) in &of_window.regressed {
            if let Some(info) = infos.get_mut(fingerprint) {
                info.resolved_at = Some(*at);
            }
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
    let oldest = groups.into_iter().take(LETTERS_MAX).map(|g| &g.fingerprint);
    // There are many more failures than causes.
    failed.chain(sole).chain(oldest).collect::<HashSet<_>>().into_iter().collect()
}

fn routes(config: &Config, target: &Target) -> Vec<RouteName> {
    let sends = |r: &&Route| r.digest.get(&target.digest).is_some_and(|to| to.contains(&target.receiver));
    config.routes.iter().filter(sends).map(|r| r.name.clone()).collect()
}

fn workflow_infos(
    live: &Live,
    input: &DigestInput,
    last_heard: &BTreeMap<WorkflowName, DateTime<Utc>>,
) -> HashMap<WorkflowName, WorkflowInfo> {
    let open = input.letter_flow.by_workflow.iter().filter(|(_, c)| c.open_count > 0).map(|(name, _)| name);
    let names: HashSet<&WorkflowName> = input
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
