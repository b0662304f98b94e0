//! Making digests: whom they go to, what they are read from, and writing a composed one with its message in one transaction.
//! What is due is decided by `digest::plan`, what is said by `digest::compose`.

mod input;
mod preview;
mod target;
mod urgent;

pub use input::{Occasion, read_input};
pub use preview::{PreviewError, preview};
pub use target::{Target, receiver_key, targets};

use crate::deliver::Channel;
use crate::digest::{DigestInput, DigestView, compose};
use crate::live::Live;
use crate::outbox::{EntryId, MessageKind, NewEntry, queue};
use crate::render::{Content, MailFrame};
use crate::store::ledger::{self, DigestRow};
use crate::store::{Store, StoreError};
use chrono::{DateTime, Utc};

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
    let (digest, key, window) = (target.digest.as_str(), target.key(), occasion.window);
    let news = urgent::is_news(input.urgent.len(), window, &occasion.firing);
    if !send_empty && !news && is_quiet(&input) {
        let mut tx = store.begin().await?;
        let ours = ledger::advance_cover(&mut tx, digest, &key, window.start_at, window.end_at).await?;
        tx.commit().await?;
        return Ok(if ours { WindowOutcome::SkippedEmpty } else { WindowOutcome::NotOurs });
    }
    // Composing and drawing take longer than intake should wait for the one writer, so the number is taken first.
    let mut tx = store.begin().await?;
    input.number = queue::next_numbers(&mut tx, 1).await?;
    tx.commit().await?;
    let view = compose(&input);
    let content = render(live, target, &view, input.number, receiver.kind.channel());
    let row = ledger_row(&input, &view, &occasion, now)?;
    let mut tx = store.begin().await?;
    if !ledger::advance_cover(&mut tx, digest, &key, window.start_at, window.end_at).await? {
        return Ok(WindowOutcome::NotOurs);
    }
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
        content,
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
        // Drawing takes longer than all the rest, and only a mail shows what was drawn.
        images: if channel == Channel::Email { view.plot.images() } else { Vec::new() },
    };
    let view = serde_json::to_value(view).unwrap_or_default();
    live.renderer.render(&format!("digest-{}", target.digest), channel, &view, &frame).content
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
