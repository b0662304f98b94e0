//! How receivers stand: broken until a probe or a reload says otherwise, or paused because they asked for it. Kept in the
//! store, so that a restart neither tells the operator again nor hurries a receiver that asked for quiet.

use crate::name::ReceiverName;
use crate::outbox::policy::PROBE_AFTER;
use crate::store::{StoreError, WriteTx, from_ms, to_ms};
use chrono::{DateTime, Utc};
use sqlx::{Row, SqlitePool};

/// A receiver, or one mailbox of a receiver that stands for owners.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Target {
    /// Its name.
    pub receiver: ReceiverName,
    /// The mailbox; empty unless it stands for owners.
    pub address: String,
}

/// How one target stands.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Standing {
    /// Unusable since then.
    pub broken_since: Option<DateTime<Utc>>,
    /// Why; free of secrets.
    pub reason: Option<String>,
    /// When it is tried again.
    pub probe_at: Option<DateTime<Utc>>,
    /// It asked for quiet until then.
    pub paused_until: Option<DateTime<Utc>>,
}

impl Standing {
    /// Whether entries go straight to the fallback. A probe later than any that is set was set by another clock.
    pub fn is_broken(&self, now: DateTime<Utc>) -> bool {
        self.broken_since.is_some() && self.probe_at.is_some_and(|at| now < at && at <= now + PROBE_AFTER)
    }
}

/// Whether the operator has yet to hear of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BrokenTransition {
    /// It was fine before.
    Broke,
    /// It was broken already.
    StillBroken,
}

/// All targets that do not simply work.
///
/// # Errors
/// When the database refuses.
pub async fn read_all(reader: &SqlitePool) -> Result<Vec<(Target, Standing)>, StoreError> {
    let sql = "SELECT receiver, address, broken_since, reason, probe_at, paused_until FROM receiver_state \
               WHERE broken_since IS NOT NULL OR paused_until IS NOT NULL";
    let rows = sqlx::query(sql).fetch_all(reader).await?;
    let one = |row: &sqlx::sqlite::SqliteRow| {
        let at = |column| Ok::<_, StoreError>(row.try_get::<Option<i64>, _>(column)?.map(from_ms));
        let target = Target {
            receiver: ReceiverName::new(row.try_get::<String, _>("receiver")?),
            address: row.try_get("address")?,
        };
        let standing = Standing {
            broken_since: at("broken_since")?,
            reason: row.try_get("reason")?,
            probe_at: at("probe_at")?,
            paused_until: at("paused_until")?,
        };
        Ok((target, standing))
    };
    rows.iter().map(one).collect()
}

/// Marks a target broken until `probe_at`.
///
/// # Errors
/// When the database refuses.
pub async fn mark_broken(
    tx: &mut WriteTx,
    target: &Target,
    reason: &str,
    now: DateTime<Utc>,
    probe_at: DateTime<Utc>,
) -> Result<BrokenTransition, StoreError> {
    let sql = "INSERT INTO receiver_state (receiver, address, broken_since, reason, told_at, probe_at) \
               VALUES (?1, ?2, ?3, ?4, ?3, ?5) ON CONFLICT (receiver, address) DO UPDATE SET \
               broken_since = coalesce(broken_since, excluded.broken_since), reason = excluded.reason, \
               told_at = CASE WHEN broken_since IS NULL THEN excluded.told_at ELSE told_at END, \
               probe_at = excluded.probe_at RETURNING broken_since = ?3";
    let fresh: bool = sqlx::query(sql)
        .bind(target.receiver.as_str())
        .bind(&target.address)
        .bind(to_ms(now))
        .bind(reason)
        .bind(to_ms(probe_at))
        .fetch_one(&mut **tx)
        .await?
        .try_get(0)?;
    Ok(if fresh { BrokenTransition::Broke } else { BrokenTransition::StillBroken })
}

/// Notes that a target asked for quiet.
///
/// # Errors
/// When the database refuses.
pub async fn pause(tx: &mut WriteTx, target: &Target, until: DateTime<Utc>) -> Result<(), StoreError> {
    let sql = "INSERT INTO receiver_state (receiver, address, paused_until) VALUES (?, ?, ?) \
               ON CONFLICT (receiver, address) DO UPDATE SET paused_until = excluded.paused_until";
    let query = sqlx::query(sql).bind(target.receiver.as_str()).bind(&target.address).bind(to_ms(until));
    query.execute(&mut **tx).await?;
    Ok(())
}

/// Notes that a target, which is not broken, refused a message for good. The operator hears of it once a day.
///
/// # Errors
/// When the database refuses.
pub async fn note_refusal(
    tx: &mut WriteTx,
    target: &Target,
    now: DateTime<Utc>,
) -> Result<BrokenTransition, StoreError> {
    let sql = "INSERT INTO receiver_state (receiver, address, told_at) VALUES (?, ?, ?) \
               ON CONFLICT (receiver, address) DO UPDATE SET told_at = excluded.told_at \
               WHERE told_at IS NULL OR told_at <= excluded.told_at - 86400000";
    let query = sqlx::query(sql).bind(target.receiver.as_str()).bind(&target.address).bind(to_ms(now));
    let told = query.execute(&mut **tx).await?.rows_affected();
    Ok(if told > 0 { BrokenTransition::Broke } else { BrokenTransition::StillBroken })
}

/// Notes that a target works.
///
/// # Errors
/// When the database refuses.
pub async fn clear(tx: &mut WriteTx, target: &Target) -> Result<(), StoreError> {
    let sql = "UPDATE receiver_state SET broken_since = NULL, reason = NULL, probe_at = NULL, paused_until = NULL \
               WHERE receiver = ? AND address = ?";
    sqlx::query(sql).bind(target.receiver.as_str()).bind(&target.address).execute(&mut **tx).await?;
    Ok(())
}
