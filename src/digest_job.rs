//! Making digests: whom they go to, what they are read from, and writing a composed one with its message in one transaction.
//! What is due is decided by `digest::plan`, what is said by `digest::compose`.

use crate::config::Config;
use crate::deliver::{Channel, Receiver, ReceiverKind, Recipients};
use crate::digest::plan::Window;
use crate::digest::{
    DigestInput, DigestView, Fate, Late, PageRecord, PageState, SilenceLine, Totals, WorkflowInfo, compose,
};
use crate::event::Fingerprint;
use crate::incident::{Incident, IncidentState};
use crate::live::Live;
use crate::name::{DigestName, ReceiverName, RouteName, WorkflowName};
use crate::outbox::{EntryId, MessageKind, NewEntry, queue};
use crate::render::{Content, MailFrame};
use crate::store::digest_input::{self as read, Counted, Scope};
use crate::store::ledger::{self, DigestRow};
use crate::store::{Store, StoreError, letters, silences};
use chrono::{DateTime, Utc};
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
        match &self.owner {
            Some(owner) => format!("{}:{}", self.receiver, mailbox(owner)),
            None => self.receiver.to_string(),
        }
    }
}

/// The address in `Name <address>`, in lower case, so that one owner written in two ways is one.
fn mailbox(owner: &str) -> String {
    let inner = owner.rsplit_once('<').map_or(owner, |(_, rest)| rest.trim_end_matches('>'));
    inner.trim().to_lowercase()
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
        if is_owner(receiver) {
            found.extend(owners(config).into_values().map(|owner| target(Some(owner))));
        } else {
            found.push(target(None));
        }
    }
    found
}

fn is_owner(receiver: &Receiver) -> bool {
    matches!(&receiver.kind, ReceiverKind::Email { to: Recipients::Owner })
}

/// Owners by mailbox, each as first written.
fn owners(config: &Config) -> BTreeMap<String, String> {
    let mut found = BTreeMap::new();
    for owner in config.workflows.iter().filter_map(|w| w.owner.as_deref()) {
        found.entry(mailbox(owner)).or_insert_with(|| owner.to_owned());
    }
    found
}

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
    let settings = live.config.digests.get(&target.digest);
    Ok(DigestInput {
        digest: target.digest.clone(),
        receiver: target.key(),
        routes: routes(&live.config, target),
        window: crate::digest::Window { start_at: occasion.window.start_at, end_at: occasion.window.end_at },
        previous: previous(store, &scope).await?,
        due_at: occasion.due_at,
        late: occasion.late.clone(),
        incomplete: occasion.incomplete.clone(),
        zone: settings.map_or(chrono_tz::Tz::UTC, |d| d.timezone),
        number: 0,
        public_url: live.config.http.public_url.clone(),
        workflows: workflow_infos(live, &counted, &open, &pages, &last_heard),
        last_letters: read::last_letters(pool, &scope).await?,
        fingerprints: read::fingerprints(pool, &scope, &causes, &counted.first_at).await?,
        late_count: counted.late_count,
        downstreams: counted.downstreams,
        cells: counted.cells,
        open_letters: open,
        letter_flow: flow,
        pages,
        urgent: Vec::new(),
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

/// The window of the same length before, when Matins ran in it.
async fn previous(store: &Store, scope: &Scope) -> Result<Option<Totals>, StoreError> {
    let pool = store.reader();
    let start_at = scope.start_at - (scope.end_at - scope.start_at);
    if read::first_minute(pool).await?.is_none_or(|first| first >= scope.start_at) {
        return Ok(None);
    }
    let before = Scope { start_at, end_at: scope.start_at, ..scope.clone() };
    let counted = read::counted(pool, &before).await?;
    let open = read::open_letters(pool, &before).await?;
    let flow = read::letter_flow(pool, &before, &open).await?;
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
        class: incident.sample.class,
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
    let sends = |r: &&crate::route::Route| r.digest.get(&target.digest).is_some_and(|to| to.contains(&target.receiver));
    config.routes.iter().filter(sends).map(|r| r.name.clone()).collect()
}

fn workflow_infos(
    live: &Live,
    counted: &Counted,
    open: &[crate::digest::LetterGroup],
    pages: &[PageRecord],
    last_heard: &BTreeMap<WorkflowName, DateTime<Utc>>,
) -> BTreeMap<WorkflowName, WorkflowInfo> {
    let names: BTreeSet<&WorkflowName> = counted
        .cells
        .iter()
        .map(|c| &c.workflow)
        .chain(open.iter().map(|g| &g.workflow))
        .chain(pages.iter().flat_map(|p| &p.workflows))
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

/// What became of a window that was due.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WindowOutcome {
    /// Composed, and its message enqueued.
    Enqueued,
    /// Nothing happened in it, and config asks to skip such digests.
    SkippedEmpty,
    /// Somebody else has taken it.
    NotOurs,
}

/// Composes a window and enqueues its message, with the move of the cover in one transaction: a window is told once.
///
/// # Errors
/// When the store refuses.
pub async fn tell(
    store: &Store,
    live: &Live,
    target: &Target,
    occasion: Occasion,
    now: DateTime<Utc>,
) -> Result<WindowOutcome, StoreError> {
    let mut input = read_input(store, live, target, &occasion).await?;
    let Some(receiver) = live.config.receivers.get(&target.receiver) else { return Ok(WindowOutcome::NotOurs) };
    let send_empty = live.config.digests.get(&target.digest).is_some_and(|d| d.send_empty);
    let mut tx = store.begin().await?;
    let (digest, key, window) = (target.digest.as_str(), target.key(), occasion.window);
    if !ledger::advance_cover(&mut tx, digest, &key, window.start_at, window.end_at).await? {
        return Ok(WindowOutcome::NotOurs);
    }
    if !send_empty && is_quiet(&input) {
        tx.commit().await?;
        return Ok(WindowOutcome::SkippedEmpty);
    }
    input.number = queue::next_numbers(&mut tx, 1).await?;
    let view = compose(&input);
    let row = ledger_row(&input, &view, &occasion, now)?;
    let id = ledger::insert(&mut tx, &row).await?;
    let entry = NewEntry {
        number: input.number,
        kind: MessageKind::Digest,
        receiver: receiver.name.clone(),
        address: target.owner.clone(),
        workflow: None,
        incident_id: None,
        digest_id: Some(id),
        template: format!("digest-{}", target.digest),
        content: render(live, target, &view, input.number, receiver.kind.channel()),
        view: json(&view)?,
        fallback_of: None,
        due_at: now,
        created_at: now,
    };
    queue::enqueue(&mut tx, &entry).await?;
    tx.commit().await?;
    Ok(WindowOutcome::Enqueued)
}

/// Whether nothing arrived, readable or not. What stays open from earlier windows was told in them.
fn is_quiet(input: &DigestInput) -> bool {
    input.cells.is_empty() && input.unreadable.is_empty() && input.incomplete.is_none()
}

fn json<T: serde::Serialize>(value: &T) -> Result<serde_json::Value, StoreError> {
    serde_json::to_value(value).map_err(|e| StoreError::Corrupt { what: "digest", why: e.to_string() })
}

fn ledger_row(
    input: &DigestInput,
    view: &DigestView,
    occasion: &Occasion,
    now: DateTime<Utc>,
) -> Result<DigestRow, StoreError> {
    Ok(DigestRow {
        id: 0,
        digest: input.digest.to_string(),
        receiver: input.receiver.clone(),
        window_start: input.window.start_at,
        window_end: input.window.end_at,
        due_at: occasion.due_at,
        composed_at: now,
        state: "enqueued".to_owned(),
        late: occasion.late.is_some(),
        incomplete: occasion.incomplete.clone(),
        number: Some(input.number),
        counts: json(view.counts())?.to_string(),
        view: json(view)?.to_string(),
    })
}

fn render(live: &Live, target: &Target, view: &DigestView, number: i64, channel: Channel) -> Content {
    let host = live.announcer.mail_host();
    let frame = MailFrame {
        message_id: format!("matins.{number}.digest@{host}"),
        references: Vec::new(),
        list_id: format!("{}.matins.{host}", target.digest),
        images: view.plot.images(),
    };
    let view = serde_json::to_value(view).unwrap_or_default();
    live.renderer.render(&format!("digest-{}", target.digest), channel, &view, &frame).content
}

/// Why there is no preview.
#[derive(Debug, thiserror::Error)]
pub enum PreviewError {
    /// Config has no such digest for such a receiver.
    #[error("no route sends digest {digest:?} to receiver {receiver:?}; there are: {known}")]
    Unknown {
        /// As asked for.
        digest: String,
        /// As asked for.
        receiver: String,
        /// What there is.
        known: String,
    },
    /// The window would end before it begins.
    #[error("the window begins at {0}; --end must be after that")]
    End(DateTime<Utc>),
    /// The store can't be read.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// The digest as it would be now, or of the window that ends at `end`. Nothing is written.
///
/// # Errors
/// When there is no such digest, or the store can't be read.
pub async fn preview(
    store: &Store,
    live: &Live,
    digest: &str,
    receiver: &str,
    end: Option<DateTime<Utc>>,
    channel: Channel,
    now: DateTime<Utc>,
) -> Result<Content, PreviewError> {
    let all = targets(&live.config);
    let found = all.iter().find(|t| {
        t.digest.as_str() == digest && (t.key() == receiver || t.receiver.as_str() == receiver)
    });
    let Some(target) = found else {
        let known: Vec<String> = all.iter().map(|t| format!("{} {}", t.digest, t.key())).collect();
        return Err(PreviewError::Unknown {
            digest: digest.to_owned(),
            receiver: receiver.to_owned(),
            known: known.join(", "),
        });
    };
    let window = preview_window(store, live, target, end, now).await?;
    let occasion = Occasion { window, due_at: window.end_at, late: None, incomplete: None };
    let input = read_input(store, live, target, &occasion).await?;
    Ok(render(live, target, &compose(&input), input.number, channel))
}

async fn preview_window(
    store: &Store,
    live: &Live,
    target: &Target,
    end: Option<DateTime<Utc>>,
    now: DateTime<Utc>,
) -> Result<Window, PreviewError> {
    if let (Some(end_at), Some(settings)) = (end, live.config.digests.get(&target.digest)) {
        let before = end_at - chrono::TimeDelta::milliseconds(1);
        let slot = settings.schedule.latest_at_or_before(before, settings.timezone);
        return Ok(Window { start_at: slot.unwrap_or(end_at - chrono::TimeDelta::days(1)), end_at });
    }
    let covered = ledger::covered_until(store.reader(), target.digest.as_str(), &target.key()).await?;
    let start_at = covered.unwrap_or(now - chrono::TimeDelta::days(1));
    // Counters are kept by the minute: the one that runs is inside.
    let end_at = end.unwrap_or(now + chrono::TimeDelta::minutes(1));
    if end_at <= start_at {
        return Err(PreviewError::End(start_at));
    }
    Ok(Window { start_at, end_at })
}

/// Enqueues the message of a told window again, the same to the byte. False when there is no such window.
///
/// # Errors
/// When the store refuses.
pub async fn resend(store: &Store, id: i64, now: DateTime<Utc>) -> Result<bool, StoreError> {
    let row: Option<(i64,)> =
        sqlx::query_as("SELECT id FROM outbox WHERE digest_id = ? AND fallback_of IS NULL ORDER BY id LIMIT 1")
            .bind(id)
            .fetch_optional(store.reader())
            .await?;
    let Some((entry_id,)) = row else { return Ok(false) };
    let Some(entry) = queue::find(store.reader(), EntryId(entry_id)).await? else { return Ok(false) };
    let again = NewEntry { due_at: now, created_at: now, ..entry.new };
    let mut tx = store.begin().await?;
    queue::enqueue(&mut tx, &again).await?;
    tx.commit().await?;
    Ok(true)
}
