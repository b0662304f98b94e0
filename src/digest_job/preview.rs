//! A digest as it would be, without writing anything.

use super::input::{Occasion, Reading, last_letters};
use super::render;
use super::snapshot::Snapshot;
use super::target::{Target, targets};
use crate::deliver::Channel;
use crate::digest::plan::Window;
use crate::digest::{DigestInput, compose};
use crate::live::Live;
use crate::outbox::queue;
use crate::render::Content;
use crate::store::catalogue::Catalogue;
use crate::store::incidents::Known;
use crate::store::{Store, StoreError, ledger};
use crate::symptom::{Budget, ToldSymptom};
use chrono::{DateTime, Utc};
use std::collections::BTreeSet;
use std::sync::Arc;

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
#[expect(clippy::too_many_arguments, reason = "each is a choice of who asks")]
pub async fn preview(
    store: &Store,
    live: &Live,
    digest: &str,
    receiver: &str,
    end: Option<DateTime<Utc>>,
    channel: Channel,
    firing: Arc<Vec<ToldSymptom>>,
    budgets: Arc<Vec<Budget>>,
    now: DateTime<Utc>,
) -> Result<Content, PreviewError> {
    let all = targets(&live.config);
    let found =
        all.iter().find(|t| t.digest.as_str() == digest && (t.key() == receiver || t.receiver.as_str() == receiver));
    let Some(target) = found else {
        let known: Vec<String> = all.iter().map(|t| format!("{} {}", t.digest, t.key())).collect();
        return Err(PreviewError::Unknown {
            digest: digest.to_owned(),
            receiver: receiver.to_owned(),
            known: known.join(", "),
        });
    };
    let window = preview_window(store, live, target, end, now).await?;
    // Only what is left of them now is known.
    let budgets = if end.is_some_and(|end| end < now) { Arc::default() } else { budgets };
    let occasion = Occasion { window, due_at: window.end_at, late: None, incomplete: None, firing, budgets };
    let mut input = read_one(store, live, target, &occasion).await?;
    input.number = queue::peek_number(store.reader()).await?;
    let composed = compose(&input);
    let view = super::json(&composed)?;
    Ok(render(live, target, &composed, view, input.number, channel))
}

/// Reads what one digest is composed from.
///
/// # Errors
/// When the store can't be read.
pub async fn read_one(
    store: &Store,
    live: &Live,
    target: &Target,
    occasion: &Occasion,
) -> Result<DigestInput, StoreError> {
    let mut conn = store.read_snapshot().await?;
    let mut catalogue = Catalogue::default();
    let windows = BTreeSet::from([occasion.window]);
    let snapshot = Snapshot::read(&mut conn, (&mut catalogue, &mut Known::default()), live, &windows).await?;
    let last_letters = last_letters(&mut conn, target, occasion).await?;
    Reading { catalogue: Arc::new(catalogue), snapshot }.input(live, target, occasion, last_letters)
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
    let cover = ledger::cover(&mut store.read().await?, target.digest.as_str(), &target.key()).await?;
    let start_at = cover.map_or(now - chrono::TimeDelta::days(1), |c| c.until);
    // Counters are kept by the minute: the one that runs is inside.
    let end_at = end.unwrap_or(now + chrono::TimeDelta::minutes(1));
    if end_at <= start_at {
        return Err(PreviewError::End(start_at));
    }
    Ok(Window { start_at, end_at })
}
