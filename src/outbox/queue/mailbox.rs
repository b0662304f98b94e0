//! Rows of `outbox_recipients`: what a mail came to, by mailbox.

use crate::outbox::{EntryId, Recipient, RecipientState};
use crate::store::{StoreError, WriteTx};
use sqlx::Row;

pub(super) async fn read(tx: &mut WriteTx, id: EntryId) -> Result<Vec<Recipient>, StoreError> {
    let sql =
        "SELECT address, state, unsure_attempts, last_error FROM outbox_recipients WHERE entry_id = ? ORDER BY address";
    let rows = sqlx::query(sql).bind(id.0).fetch_all(&mut **tx).await?;
    let one = |row: &sqlx::sqlite::SqliteRow| {
        let word: String = row.try_get("state")?;
        let state = RecipientState::parse(&word)
            .ok_or_else(|| StoreError::Corrupt { what: "outbox_recipients.state", why: word })?;
        Ok(Recipient {
            address: row.try_get("address")?,
            state,
            unsure_attempts: row.try_get::<u32, _>("unsure_attempts")?,
            last_error: row.try_get("last_error")?,
        })
    };
    rows.iter().map(one).collect()
}

pub(super) async fn write(tx: &mut WriteTx, id: EntryId, recipients: &[Recipient]) -> Result<(), StoreError> {
    for r in recipients {
        let sql = "INSERT INTO outbox_recipients (entry_id, address, state, unsure_attempts, last_error) \
                   VALUES (?, ?, ?, ?, ?) ON CONFLICT (entry_id, address) DO UPDATE SET state = excluded.state, \
                   unsure_attempts = excluded.unsure_attempts, last_error = excluded.last_error";
        sqlx::query(sql)
            .bind(id.0)
            .bind(&r.address)
            .bind(r.state.as_str())
            .bind(r.unsure_attempts)
            .bind(r.last_error.as_deref())
            .execute(&mut **tx)
            .await?;
    }
    Ok(())
}

pub(super) async fn reopen(tx: &mut WriteTx, id: EntryId) -> Result<(), StoreError> {
    let sql =
        "UPDATE outbox_recipients SET state = 'waiting', unsure_attempts = 0 WHERE entry_id = ? AND state <> 'sent'";
    sqlx::query(sql).bind(id.0).execute(&mut **tx).await?;
    Ok(())
}
