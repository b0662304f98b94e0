//! Reads from the store what a digest is composed from. Nothing is decided or written here.

use super::target::{Target, mailbox};
use super::urgent::urgent;
use crate::config::Config;
use crate::digest::plan::Window;
use crate::digest::{
    DigestInput, Fate, Late, LetterFlow, PageRecord, PageState, SilenceLine, SymptomLine, Totals, WorkflowInfo,
};
use crate::event::{Class, Fingerprint};
use crate::incident::{Incident, IncidentState};
use crate::live::Live;
use crate::name::{RouteName, WorkflowName};
use crate::route::Route;
use crate::store::digest_input::{self as read, Counted, Scope};
use crate::store::{Store, StoreError, letters, silences};
use crate::symptom::ToldSymptom;
use chrono::{DateTime, Utc};
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
}

/// Reads what the digest of `target` is composed from.
///
/// # Errors
/// When the store can't be read.
pub async fn read_input(
    store: &Store,
    live: &Live,
    target: &Target,
    occasion: &Occasion,
) -> Result<DigestInput, StoreError> {
    let pool = store.reader();
    let last_heard = read::last_heard(pool).await?;
    let scope = scope(live, target, occasion.window.start_at, occasion.window.end_at, last_heard.keys());
    let counted = read::counted(pool, &scope).await?;
    let open = read::open_letters(pool, &scope).await?;
    let flow = read::letter_flow(pool, &scope, &open).await?;
    let causes: BTreeSet<Fingerprint> = counted
        .cells
        .iter()
        .filter(|c| c.is_failure())
        .map(|c| c.fingerprint.clone())
        .chain(open.iter().map(|g| g.fingerprint.clone()))
        .collect();
    let mut pages = Vec::new();
    for incident in read::incidents(pool, &scope).await? {
        let mut tx = pool.acquire().await?;
        let open_letters = letters::open_of_incident(&mut tx, incident.id.0).await?;
        pages.push(page_record(live, &incident, open_letters, occasion.window.end_at));
    }
    let silences = silence_lines(store, live, &counted).await?;
    let unreadable = if target.owner.is_none() { read::unreadable(pool, &scope).await? } else { Vec::new() };
    let urgent = urgent(live, target, occasion.window, &occasion.firing, &counted.cells);
    let settings = live.config.digests.get(&target.digest);
    Ok(DigestInput {
        digest: target.digest.clone(),
        receiver: target.key(),
        routes: routes(&live.config, target),
        window: occasion.window,
        previous: previous(store, &scope, flow.open_at_start).await?,
        due_at: occasion.due_at,
        late: occasion.late.clone(),
        incomplete: occasion.incomplete.clone(),
        zone: settings.map_or(chrono_tz::Tz::UTC, |d| d.timezone),
        number: 0,
        public_url: live.config.http.public_url.clone(),
        workflows: workflow_infos(live, &counted, &open, &pages, &urgent, &last_heard),
        last_letters: read::last_letters(pool, &scope).await?,
        fingerprints: read::fingerprints(pool, &scope, &causes, &counted.first_at).await?,
        late_count: counted.late_count,
        downstreams: counted.downstreams,
        cells: counted.cells,
        open_letters: open,
        letter_flow: flow,
        pages,
        urgent,
        unreadable,
        silences,
        service: Vec::new(),
    })
}

fn scope<'a>(
    live: &Live,
    target: &Target,
    start_at: DateTime<Utc>,
    end_at: DateTime<Utc>,
    known: impl Iterator<Item = &'a WorkflowName>,
) -> Scope {
    let workflows = target.owner.as_ref().map(|owner| {
        let wanted = mailbox(owner);
        let owned = |w: &&WorkflowName| {
            let found = live.config.workflows.find(w);
            found.and_then(|w| w.owner.as_deref()).is_some_and(|o| mailbox(o) == wanted)
        };
        known.filter(owned).cloned().collect()
    });
    Scope { digest: target.digest.to_string(), receiver: target.receiver.to_string(), start_at, end_at, workflows }
}

/// The window of the same length before, when Matins ran in it. `open_at_end` is how many dead letters were open between the two.
async fn previous(store: &Store, scope: &Scope, open_at_end: u64) -> Result<Option<Totals>, StoreError> {
    let pool = store.reader();
    let start_at = scope.start_at - (scope.end_at - scope.start_at);
    if read::first_minute(pool).await?.is_none_or(|first| first >= scope.start_at) {
        return Ok(None);
    }
    let before = Scope { start_at, end_at: scope.start_at, ..scope.clone() };
    let counted = read::counted(pool, &before).await?;
    let flow = LetterFlow { open_at_end, ..read::letter_flow(pool, &before, &[]).await? };
    let incidents = read::incidents(pool, &before).await?;
    let opened = incidents.iter().filter(|i| i.opened_at >= start_at).count();
    Ok(Some(Totals::measure(&counted.cells, &flow, opened as u64)))
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

async fn silence_lines(store: &Store, live: &Live, counted: &Counted) -> Result<Vec<SilenceLine>, StoreError> {
    let ids: BTreeSet<&str> = counted
        .cells
        .iter()
        .filter_map(|c| match &c.fate {
            Fate::Silenced(id) => Some(id.as_str()),
            Fate::Digest | Fate::Paged(_) => None,
        })
        .collect();
    let mut lines = Vec::new();
    for id in ids {
        let known = live.policy.silences.iter().find(|s| s.id == id).cloned();
        let silence = match known {
            Some(silence) => Some(silence),
            None => silences::find(store.reader(), id).await?,
        };
        if let Some(s) = silence {
            lines.push(SilenceLine { id: s.id, reason: s.reason, by: s.by, until: s.until });
        }
    }
    Ok(lines)
}

fn routes(config: &Config, target: &Target) -> Vec<RouteName> {
    let sends = |r: &&Route| r.digest.get(&target.digest).is_some_and(|to| to.contains(&target.receiver));
    config.routes.iter().filter(sends).map(|r| r.name.clone()).collect()
}

fn workflow_infos(
    live: &Live,
    counted: &Counted,
    open: &[crate::digest::LetterGroup],
    pages: &[PageRecord],
    urgent: &[SymptomLine],
    last_heard: &BTreeMap<WorkflowName, DateTime<Utc>>,
) -> BTreeMap<WorkflowName, WorkflowInfo> {
    let names: BTreeSet<&WorkflowName> = counted
        .cells
        .iter()
        .map(|c| &c.workflow)
        .chain(open.iter().map(|g| &g.workflow))
        .chain(pages.iter().flat_map(|p| &p.workflows))
        .chain(urgent.iter().map(|s| &s.workflow))
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
