//! The rows of the outbox: enqueue in the decision's transaction, claim with a lease, settle, redrive, list. Nothing else
//! writes them. What follows from an outcome is `policy`'s; nothing here waits for a network.

mod forget;
mod mailbox;
mod moved;
mod read;
pub mod standing;

pub use forget::forget_settled;
pub use moved::move_digests;
pub use read::{
    Admit, PendingCounts, earliest_due, find, list, next_due, overdue, peek_number, pending_counts, waiting_receivers,
};

use super::entry::{Entry, EntryId, NewEntry, State};
use super::policy::{self, Settlement};
use super::recipient::Recipient;
use crate::name::WorkflowName;
use crate::render::Content;
use crate::store::{Store, StoreError, WriteTx, to_ms};
use chrono::{DateTime, TimeDelta, Utc};
use sqlx::sqlite::SqliteRow;
use sqlx::{Row, SqlitePool};

/// Longest error text that is kept, in bytes.
const ERROR_MAX: usize = 500;

/// Who may settle an entry, and until when nobody else takes it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lease {
    /// One claimer.
    pub owner: String,
    /// When the claimer counts as lost.
    pub until: DateTime<Utc>,
}

/// An entry that is ours to send; only `claim` makes one, and `settle` takes nothing else.
#[derive(Clone, Debug, PartialEq)]
pub struct Claimed {
    entry: Entry,
    recipients: Vec<Recipient>,
    lease: Lease,
}

impl Claimed {
    /// The entry, this try counted.
    pub fn entry(&self) -> &Entry {
        &self.entry
    }

    /// What earlier tries of a mail came to, by mailbox.
    pub fn recipients(&self) -> &[Recipient] {
        &self.recipients
    }
}

/// Writes a message in the transaction of the decision that asks for it.
///
/// # Errors
/// When the database refuses.
pub async fn enqueue(tx: &mut WriteTx, new: &NewEntry) -> Result<EntryId, StoreError> {
    if let Some(played) = tx.played() {
        return Ok(played.ledger.enqueue(new));
    }
    let row = sqlx::query(
        "INSERT INTO outbox (number, kind, priority, receiver, address, workflow, incident_id, digest_id, template, view, \
         content, state, due_at, created_at, fallback_of) \
         VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, 'pending', ?, ?, ?) RETURNING id",
    )
    .bind(new.number)
    .bind(new.kind.as_str())
    .bind(new.kind.priority())
    .bind(new.receiver.as_str())
    .bind(new.address.as_deref())
    .bind(new.workflow.as_ref().map(WorkflowName::as_str))
    .bind(new.incident_id)
    .bind(new.digest_id)
    .bind(&new.template)
    .bind(new.view.to_string())
    .bind(content_json(&new.content)?)
    .bind(to_ms(new.due_at))
    .bind(to_ms(new.created_at))
    .bind(new.fallback_of.map(|id| id.0))
    .fetch_one(&mut **tx)
    .await?;
    Ok(EntryId(row.try_get(0)?))
}

/// Takes `count` notification numbers; answers the first of them.
///
/// # Errors
/// When the database refuses or the counter can't be read.
pub async fn next_numbers(tx: &mut WriteTx, count: i64) -> Result<i64, StoreError> {
    if let Some(played) = tx.played() {
        return Ok(played.ledger.next_numbers(count));
    }
    let sql = "UPDATE settings SET value = CAST(CAST(value AS INTEGER) + ? AS TEXT) WHERE name = 'next_number' \
               RETURNING CAST(value AS INTEGER)";
    let after: i64 = sqlx::query(sql).bind(count).fetch_one(&mut **tx).await?.try_get(0)?;
    Ok(after - count)
}

/// Claims entries in one short transaction. The try is counted here, so that a kill can't hide it. What somebody else
/// has taken meanwhile is left out.
///
/// # Errors
/// When the database refuses or a row can't be read.
pub async fn claim(store: &Store, ids: &[EntryId], lease: &Lease) -> Result<Vec<Claimed>, StoreError> {
    let mut tx = store.begin().await?;
    let mut claimed = Vec::with_capacity(ids.len());
    for id in ids {
        let sql = "UPDATE outbox SET attempts = attempts + 1, lease_owner = ?, lease_until = ? \
                   WHERE id = ? AND state = 'pending' AND lease_owner IS NULL RETURNING *";
        let query = sqlx::query(sql).bind(&lease.owner).bind(to_ms(lease.until)).bind(id.0);
        if let Some(row) = query.fetch_optional(&mut *tx).await? {
            let entry = read::read_entry(&row)?;
            let recipients = match &entry.new.content {
                Content::Email(_) => mailbox::read(&mut tx, *id).await?,
                Content::Slack(_) | Content::Json(_) | Content::Text(_) => Vec::new(),
            };
            claimed.push(Claimed { entry, recipients, lease: lease.clone() });
        }
    }
    tx.commit().await?;
    Ok(claimed)
}

/// Whether a settlement counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SettleOutcome {
    /// It is written.
    Settled,
    /// The lease ran out and the entry is somebody else's.
    LeaseLost,
}

/// Writes what a try came to, and what each mailbox of a mail said.
///
/// # Errors
/// When the database refuses.
pub async fn settle(
    tx: &mut WriteTx,
    claimed: &Claimed,
    settlement: &Settlement,
    recipients: &[Recipient],
    now: DateTime<Utc>,
) -> Result<SettleOutcome, StoreError> {
    let id = claimed.entry.id;
    mailbox::write(tx, id, recipients).await?;
    let change = Change::of(settlement, now);
    let done = write_change(tx, id, Some(&claimed.lease.owner), &change).await?;
    if done == 0 {
        return Ok(SettleOutcome::LeaseLost);
    }
    if let (Settlement::RetryPlain { .. }, Content::Slack(message)) = (settlement, &claimed.entry.new.content) {
        let mut plain = message.clone();
        plain.blocks.clear();
        let content = content_json(&Content::Slack(plain))?;
        sqlx::query("UPDATE outbox SET content = ? WHERE id = ?").bind(content).bind(id.0).execute(&mut **tx).await?;
    }
    Ok(SettleOutcome::Settled)
}

/// Settles an entry that nobody has claimed, without a try: its receiver is known to be broken.
///
/// # Errors
/// When the database refuses.
pub async fn settle_unclaimed(
    tx: &mut WriteTx,
    id: EntryId,
    settlement: &Settlement,
    now: DateTime<Utc>,
) -> Result<SettleOutcome, StoreError> {
    let done = write_change(tx, id, None, &Change::of(settlement, now)).await?;
    Ok(if done == 0 { SettleOutcome::LeaseLost } else { SettleOutcome::Settled })
}

/// Columns that a settlement sets.
struct Change {
    state: State,
    reason: Option<&'static str>,
    due_at: Option<i64>,
    sent_at: Option<i64>,
    unsure: i64,
    error: Option<String>,
}

impl Change {
    fn of(settlement: &Settlement, now: DateTime<Utc>) -> Self {
        let pending = |due_at: &DateTime<Utc>, unsure, why: &str| Self {
            state: State::Pending,
            reason: None,
            due_at: Some(to_ms(*due_at)),
            sent_at: None,
            unsure,
            error: Some(cut(why)),
        };
        let last = |state, reason, unsure, why: Option<&str>| Self {
            state,
            reason,
            due_at: None,
            sent_at: (state == State::Sent).then(|| to_ms(now)),
            unsure,
            error: why.map(cut),
        };
        match settlement {
            Settlement::Sent { note } => last(State::Sent, None, 0, note.as_deref()),
            Settlement::Retry { due_at, why } | Settlement::RetryPlain { due_at, why } => pending(due_at, 0, why),
            Settlement::Repeat { due_at, why } => pending(due_at, 1, why),
            Settlement::Unsure { why } => last(State::Unsure, Some("answer_lost"), 1, Some(why)),
            Settlement::Dead { reason, why } => last(State::Dead, Some(reason.as_str()), 0, Some(why)),
        }
    }
}

async fn write_change(tx: &mut WriteTx, id: EntryId, owner: Option<&str>, change: &Change) -> Result<u64, StoreError> {
    // A success keeps the last error: how it went is worth knowing.
    let sql = "UPDATE outbox SET state = ?, reason = ?, due_at = coalesce(?, due_at), sent_at = ?, \
               unsure_attempts = unsure_attempts + ?, last_error = coalesce(?, last_error), \
               lease_owner = NULL, lease_until = NULL \
               WHERE id = ? AND state = 'pending' AND lease_owner IS ?";
    let done = sqlx::query(sql)
        .bind(change.state.as_str())
        .bind(change.reason)
        .bind(change.due_at)
        .bind(change.sent_at)
        .bind(change.unsure)
        .bind(change.error.as_deref())
        .bind(id.0)
        .bind(owner)
        .execute(&mut **tx)
        .await?;
    Ok(done.rows_affected())
}

/// Writes the copy of an entry for its fallback receiver: once for each entry, and to no receiver that it came from.
///
/// # Errors
/// When the database refuses.
pub async fn stand_in(tx: &mut WriteTx, original: EntryId, copy: &NewEntry) -> Result<Option<EntryId>, StoreError> {
    let sql = "WITH RECURSIVE line (id, receiver, fallback_of) AS ( \
                 SELECT id, receiver, fallback_of FROM outbox WHERE id = ?1 AND fallback_id IS NULL \
                 UNION SELECT o.id, o.receiver, o.fallback_of FROM outbox o JOIN line ON o.id = line.fallback_of) \
               SELECT count(*), coalesce(sum(receiver = ?2), 0) FROM line";
    let query = sqlx::query_as(sql).bind(original.0).bind(copy.receiver.as_str());
    let (line, same): (i64, i64) = query.fetch_one(&mut **tx).await?;
    if line == 0 || same > 0 {
        return Ok(None);
    }
    let id = enqueue(tx, copy).await?;
    let link = sqlx::query("UPDATE outbox SET fallback_id = ? WHERE id = ?").bind(id.0).bind(original.0);
    link.execute(&mut **tx).await?;
    Ok(Some(id))
}

/// Moves what waits back by `step`, by which the wall clock was set back: else it would wait that much longer, and so would
/// claims that are lost.
///
/// # Errors
/// When the database refuses.
pub async fn set_back(store: &Store, step: TimeDelta) -> Result<(), StoreError> {
    let sql = "UPDATE outbox SET due_at = due_at - ?1, created_at = created_at - ?1, lease_until = lease_until - ?1 \
               WHERE state = 'pending'";
    let mut tx = store.begin().await?;
    sqlx::query(sql).bind(step.num_milliseconds()).execute(&mut *tx).await?;
    Ok(tx.commit().await?)
}

/// Which claims are taken back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Abandoned {
    /// All: at start, when the process that made them is gone.
    All,
    /// Those whose lease has run out.
    Expired,
}

/// A claim whose claimer is gone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LostClaim {
    id: EntryId,
    unsure_attempts: u32,
    owner: String,
}

/// Claims whose claimer is gone, to be released.
///
/// # Errors
/// When the database refuses.
pub async fn lost_claims(
    reader: &SqlitePool,
    which: Abandoned,
    now: DateTime<Utc>,
) -> Result<Vec<LostClaim>, StoreError> {
    let before = match which {
        Abandoned::All => i64::MAX,
        Abandoned::Expired => to_ms(now),
    };
    let sql = "SELECT id, unsure_attempts, lease_owner FROM outbox \
               WHERE state = 'pending' AND lease_owner IS NOT NULL AND lease_until < ? ORDER BY id";
    let rows = sqlx::query(sql).bind(before).fetch_all(reader).await?;
    let read = |row: &SqliteRow| {
        Ok(LostClaim {
            id: EntryId(row.try_get("id")?),
            unsure_attempts: read::count(row, "unsure_attempts")?,
            owner: row.try_get("lease_owner")?,
        })
    };
    rows.iter().map(read).collect()
}

/// What became of a lost claim.
#[derive(Clone, Debug, PartialEq)]
pub enum ReleaseOutcome {
    /// It is pending again.
    Repeated,
    /// It was lost too often and is not tried again; what follows is for the caller, in the same transaction.
    GivenUp(Box<Entry>, Settlement),
    /// Its claimer has settled it meanwhile.
    Left,
}

/// Takes back a lost claim. Its open try counts as one whose result nobody knows.
///
/// # Errors
/// When the database refuses or the row can't be read.
pub async fn release(tx: &mut WriteTx, lost: &LostClaim, now: DateTime<Utc>) -> Result<ReleaseOutcome, StoreError> {
    let settlement = policy::settle_lost(lost.unsure_attempts, now);
    if write_change(tx, lost.id, Some(&lost.owner), &Change::of(&settlement, now)).await? == 0 {
        return Ok(ReleaseOutcome::Left);
    }
    if matches!(settlement, Settlement::Repeat { .. }) {
        return Ok(ReleaseOutcome::Repeated);
    }
    let row = sqlx::query("SELECT * FROM outbox WHERE id = ?").bind(lost.id.0).fetch_one(&mut **tx).await?;
    Ok(ReleaseOutcome::GivenUp(Box::new(read::read_entry(&row)?), settlement))
}

/// Whether a redrive did something.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RedriveOutcome {
    /// It is pending again.
    Redriven,
    /// There is no such entry, or it needs no redrive.
    Left,
}

/// A person sends an entry again that is dead or unsure. Mailboxes that have it are left out. It counts as decided now:
/// else an old one would be given up at its first retry, and its age would trouble whoever watches the queue.
///
/// # Errors
/// When the database refuses.
pub async fn redrive(tx: &mut WriteTx, id: EntryId, now: DateTime<Utc>) -> Result<RedriveOutcome, StoreError> {
    let sql = "UPDATE outbox SET state = 'pending', reason = NULL, due_at = ?1, created_at = ?1, unsure_attempts = 0 \
               WHERE id = ?2 AND state IN ('dead', 'unsure')";
    let done = sqlx::query(sql).bind(to_ms(now)).bind(id.0).execute(&mut **tx).await?;
    if done.rows_affected() == 0 {
        return Ok(RedriveOutcome::Left);
    }
    mailbox::reopen(tx, id).await?;
    Ok(RedriveOutcome::Redriven)
}

fn content_json(content: &Content) -> Result<String, StoreError> {
    serde_json::to_string(content).map_err(|e| StoreError::Corrupt { what: "outbox.content", why: e.to_string() })
}

fn cut(why: &str) -> String {
    let mut end = why.len().min(ERROR_MAX);
    while !why.is_char_boundary(end) {
        end -= 1;
    }
    why[..end].to_owned()
}

#[cfg(test)]
mod tests;
