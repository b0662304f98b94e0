//! Making digests: whom they go to, what they are read from, and writing composed ones with their messages in one transaction.
//! What is due is decided by `digest::plan`, what is said by `digest::compose`.

mod folded;
mod input;
mod preview;
mod reader;
mod scope;
mod snapshot;
mod succession;
mod target;
mod urgent;

pub use input::Occasion;
pub use preview::{PreviewError, preview, read_one};
pub use succession::{Line, Succession, Untold};
pub use target::{Target, receiver_key, targets};

use crate::deliver::Channel;
use crate::digest::plan::Window;
use crate::digest::{DigestCounts, DigestInput, DigestView, compose};
use crate::live::Live;
use crate::name::{DigestName, WorkflowName};
use crate::outbox::{EntryId, MessageKind, NewEntry, queue};
use crate::render::{Content, MailFrame};
use crate::store::catalogue::Catalogue;
use crate::store::incidents::Known;
use crate::store::ledger::{self, DigestRow};
use crate::store::{ReadConn, Store, StoreError};
use chrono::{DateTime, Utc};
use input::{Reading, last_letters};
use serde_json::Value;
use snapshot::Snapshot;
use std::collections::BTreeMap;
use std::sync::Arc;
use tokio::task::JoinHandle;

/// Digests that are written at once: intake waits for the one writer meanwhile.
const AT_ONCE: usize = 16;

/// What became of a window that was due.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WindowOutcome {
    /// Composed, and its message enqueued.
    Enqueued,
    /// Nothing happened in it, and config asks to skip such digests. The ledger has a row that says so.
    SkippedEmpty,
    /// Somebody else has taken it.
    NotOurs,
}

/// A window that was due, and what became of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Telling {
    /// Whom it is for.
    pub target: Target,
    /// What it covers.
    pub window: Window,
    /// What became of it.
    pub outcome: WindowOutcome,
}

/// A digest on its way from the snapshot to the ledger.
struct Draft {
    target: Target,
    occasion: Occasion,
    due_again_at: Option<DateTime<Utc>>,
    /// None when it is skipped.
    number: Option<i64>,
    last_letters: Vec<WorkflowName>,
}

/// A digest that is due.
#[derive(Clone, Debug)]
pub struct DueDigest {
    /// Whom it is for.
    pub target: Target,
    /// What it covers, and why now.
    pub occasion: Occasion,
    /// When the next one of its kind is due, if ever.
    pub due_again_at: Option<DateTime<Utc>>,
}

/// How many threads compose.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Lanes {
    /// As many as there are digests: the sooner all are done the better.
    #[default]
    Each,
    /// One for each kind of digest, so that the few of an hour do not wait for the many of a day.
    ByDigest,
}

/// Digests that are being composed, to be written in the order of their numbers.
#[derive(Debug, Default)]
pub struct Composing {
    made: Vec<Making>,
    failures: Vec<StoreError>,
}

/// Digests that one thread composes.
#[derive(Debug)]
struct Making {
    begun_at: DateTime<Utc>,
    /// Each with when it is due again.
    targets: Vec<(Target, Option<DateTime<Utc>>)>,
    task: JoinHandle<Vec<Result<Made, StoreError>>>,
}

/// Reads what the digests of `due` are composed from, numbers them, and has them composed beside the caller. One that can't be read holds
/// up no other.
///
/// # Errors
/// When the snapshot of the windows can't be read, or there are no numbers.
pub async fn compose_all(
    store: &Store,
    live: &Arc<Live>,
    (catalogue, known): (&mut Arc<Catalogue>, &mut Known),
    due: Vec<DueDigest>,
    lanes: Lanes,
    now: DateTime<Utc>,
) -> Result<Composing, StoreError> {
    let windows = due.iter().map(|digest| digest.occasion.window).collect();
    // One state of the store for all that is read, whatever intake commits meanwhile.
    let mut conn = store.read_snapshot().await?;
    // Nobody composes between two looks, so this copies nothing.
    let snapshot = Snapshot::read(&mut conn, (Arc::make_mut(catalogue), known), live, &windows).await?;
    let reading = Arc::new(Reading { catalogue: catalogue.clone(), snapshot });
    let (mut drafts, mut composing) = (Vec::with_capacity(due.len()), Composing::default());
    for digest in due {
        match draft(&mut conn, &reading, live, digest).await {
            Ok(draft) => drafts.push(draft),
            Err(error) => composing.failures.push(error),
        }
    }
    // A store in memory has one connection: it is given back before the writer asks for it.
    conn.end().await.map_err(StoreError::from)?;
    let composed_count = drafts.iter().filter(|draft| draft.number.is_some()).count();
    let mut numbers = first_number(store, composed_count).await?..;
    for draft in &mut drafts {
        draft.number = draft.number.and_then(|_| numbers.next());
    }
    for drafts in shared_out(drafts, lanes) {
        let (live, reading) = (live.clone(), reading.clone());
        let targets: Vec<_> = drafts.iter().map(|draft| (draft.target.clone(), draft.due_again_at)).collect();
        composing.made.push(Making {
            begun_at: now,
            targets,
            // Composing and drawing take long: not on a thread that intake needs.
            task: tokio::task::spawn_blocking(move || {
                drafts.into_iter().map(|draft| draft.make(&reading, &live, now)).collect()
            }),
        });
    }
    Ok(composing)
}

/// What each thread composes.
fn shared_out(drafts: Vec<Draft>, lanes: Lanes) -> Vec<Vec<Draft>> {
    match lanes {
        Lanes::Each => drafts.into_iter().map(|draft| vec![draft]).collect(),
        Lanes::ByDigest => {
            let mut by_digest: BTreeMap<DigestName, Vec<Draft>> = BTreeMap::new();
            for draft in drafts {
                by_digest.entry(draft.target.digest.clone()).or_default().push(draft);
            }
            by_digest.into_values().collect()
        }
    }
}

impl Composing {
    /// When those began that have been on their way for longest.
    pub fn since(&self) -> Option<DateTime<Utc>> {
        self.made.iter().map(|making| making.begun_at).min()
    }

    /// When a target is due again of which a digest is on its way; none when there is no such digest.
    pub fn due_again(&self, target: &Target) -> Option<Option<DateTime<Utc>>> {
        let mut targets = self.made.iter().flat_map(|making| &making.targets);
        targets.find(|(known, _)| known == target).map(|(_, due_again_at)| *due_again_at)
    }

    /// Others are on their way as well.
    pub fn add(&mut self, others: Self) {
        self.made.extend(others.made);
        self.failures.extend(others.failures);
    }

    /// Takes those that are due again at `now`, or that began at `begun_until` or before.
    pub fn take_due(&mut self, now: DateTime<Utc>, begun_until: DateTime<Utc>) -> Self {
        let is_due = |making: &mut Making| {
            let mut due_again = making.targets.iter().filter_map(|(_, due_again_at)| *due_again_at);
            making.begun_at <= begun_until || due_again.any(|at| at <= now)
        };
        Self { made: self.made.extract_if(.., is_due).collect(), failures: std::mem::take(&mut self.failures) }
    }

    /// Writes each digest with its message and the move of its cover in one transaction: a window is told once.
    pub async fn write(self, store: &Store) -> Vec<Result<Telling, StoreError>> {
        let mut told: Vec<_> = self.failures.into_iter().map(Err).collect();
        let mut made = Vec::with_capacity(self.made.len());
        for making in self.made {
            match making.task.await {
                Ok(digests) => {
                    for digest in digests {
                        match digest {
                            Ok(digest) => made.push(digest),
                            Err(error) => told.push(Err(error)),
                        }
                    }
                }
                Err(error) => told.push(Err(StoreError::Corrupt { what: "digest", why: error.to_string() })),
            }
        }
        let mut made = made.into_iter().peekable();
        while made.peek().is_some() {
            match write(store, made.by_ref().take(AT_ONCE)).await {
                Ok(some) => told.extend(some.into_iter().map(Ok)),
                Err(error) => told.push(Err(error)),
            }
        }
        told
    }
}

/// Composing takes longer than intake should wait for the one writer, so numbers are taken first.
async fn first_number(store: &Store, count: usize) -> Result<i64, StoreError> {
    if count == 0 {
        return Ok(0);
    }
    let mut tx = store.begin().await?;
    let number = queue::next_numbers(&mut tx, i64::try_from(count).unwrap_or(i64::MAX)).await?;
    tx.commit().await?;
    Ok(number)
}

/// A digest as it is to be written.
#[derive(Debug)]
struct Made {
    target: Target,
    window: Window,
    row: DigestRow,
    /// None when it is skipped.
    entry: Option<NewEntry>,
}

/// Asks whether there is anything to tell, and for what only the store can pick. Its number is a place holder.
async fn draft(
    conn: &mut ReadConn,
    reading: &Reading,
    live: &Live,
    DueDigest { target, occasion, due_again_at }: DueDigest,
) -> Result<Draft, StoreError> {
    let is_skipped = reading.is_skipped(live, &target, &occasion)?;
    let last_letters = if is_skipped { Vec::new() } else { last_letters(conn, &target, &occasion).await? };
    Ok(Draft { number: (!is_skipped).then_some(0), target, occasion, due_again_at, last_letters })
}

impl Draft {
    fn make(mut self, reading: &Reading, live: &Live, now: DateTime<Utc>) -> Result<Made, StoreError> {
        let Some(number) = self.number else {
            let row = self.row("skipped", &DigestCounts::default(), &Value::Null, now)?;
            return Ok(Made { window: self.occasion.window, row, entry: None, target: self.target });
        };
        let last_letters = std::mem::take(&mut self.last_letters);
        let input = DigestInput { number, ..reading.input(live, &self.target, &self.occasion, last_letters)? };
        let composed = compose(&input);
        let view = json(&composed)?;
        let receiver = live.config.receivers.get(&self.target.receiver);
        let channel = receiver.map_or(Channel::Text, |r| r.kind.channel());
        let kept = live.renderer.kept(&view);
        let content = render(live, &self.target, &composed, view, number, channel);
        let row = self.row("enqueued", composed.counts(), &kept, now)?;
        let entry = NewEntry {
            number,
            kind: MessageKind::Digest,
            receiver: self.target.receiver.clone(),
            address: self.target.owner.clone(),
            workflow: None,
            incident_id: None,
            digest_id: None,
            template: format!("digest-{}", self.target.digest),
            content,
            view: kept,
            fallback_of: None,
            due_at: now,
            created_at: now,
        };
        Ok(Made { window: self.occasion.window, row, entry: Some(entry), target: self.target })
    }

    fn row(
        &self,
        state: &str,
        counts: &DigestCounts,
        view: &Value,
        now: DateTime<Utc>,
    ) -> Result<DigestRow, StoreError> {
        let occasion = &self.occasion;
        Ok(DigestRow {
            id: 0,
            digest: self.target.digest.to_string(),
            receiver: self.target.key(),
            window_start: occasion.window.start_at,
            window_end: occasion.window.end_at,
            due_at: occasion.due_at,
            composed_at: now,
            state: state.to_owned(),
            late: occasion.late.is_some(),
            incomplete: occasion.incomplete.clone(),
            number: self.number,
            counts: json(counts)?.to_string(),
            view: view.to_string(),
        })
    }
}

async fn write(store: &Store, made: impl Iterator<Item = Made>) -> Result<Vec<Telling>, StoreError> {
    let mut tellings = Vec::new();
    let mut tx = store.begin().await?;
    for Made { target, window, row, entry } in made {
        let (digest, key) = (target.digest.as_str(), target.key());
        let outcome = if !ledger::advance_cover(&mut tx, digest, &key, window.start_at, window.end_at).await? {
            WindowOutcome::NotOurs
        } else {
            let id = ledger::insert(&mut tx, &row).await?;
            match entry {
                Some(entry) => {
                    queue::enqueue(&mut tx, &NewEntry { digest_id: Some(id), ..entry }).await?;
                    WindowOutcome::Enqueued
                }
                None => WindowOutcome::SkippedEmpty,
            }
        };
        tellings.push(Telling { target, window, outcome });
    }
    tx.commit().await?;
    Ok(tellings)
}

fn json<T: serde::Serialize>(value: &T) -> Result<Value, StoreError> {
    serde_json::to_value(value).map_err(|e| StoreError::Corrupt { what: "digest", why: e.to_string() })
}

fn render(live: &Live, target: &Target, composed: &DigestView, view: Value, number: i64, channel: Channel) -> Content {
    let host = live.announcer.mail_host();
    let frame = MailFrame {
        message_id: format!("matins.{number}.digest@{host}"),
        references: Vec::new(),
        list_id: format!("{}.matins.{host}", target.digest),
        // Drawing takes longer than all the rest.
        images: if live.renderer.draws(channel) { composed.plot.images() } else { Vec::new() },
    };
    live.renderer.render_last(&format!("digest-{}", target.digest), channel, view, &frame).content
}

/// The message of a told window; none when there is no such window.
///
/// # Errors
/// When the store refuses.
pub async fn sent(store: &Store, id: i64) -> Result<Option<NewEntry>, StoreError> {
    let row: Option<(i64,)> =
        sqlx::query_as("SELECT id FROM outbox WHERE digest_id = ? AND fallback_of IS NULL ORDER BY id LIMIT 1")
            .bind(id)
            .fetch_optional(store.reader())
            .await?;
    let Some((entry_id,)) = row else { return Ok(None) };
    Ok(queue::find(store.reader(), EntryId(entry_id)).await?.map(|entry| entry.new))
}

/// Enqueues the message of a told window again, the same to the byte.
///
/// # Errors
/// When the store refuses.
pub async fn resend(store: &Store, sent: NewEntry, now: DateTime<Utc>) -> Result<(), StoreError> {
    let mut tx = store.begin().await?;
    queue::enqueue(&mut tx, &NewEntry { due_at: now, created_at: now, ..sent }).await?;
    Ok(tx.commit().await?)
}
