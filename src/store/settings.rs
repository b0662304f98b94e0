//! Keys of the service itself, made once and kept, so that redacted values stay equal and links stay valid over restarts.

use super::{Store, StoreError};
use crate::clock;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

/// A key for hashes and signatures.
pub type SecretKey = [u8; 32];

/// The key of this name, made when it is missing.
///
/// # Errors
/// When the store refuses, or the system has no randomness.
pub async fn secret_key(store: &Store, name: &str) -> Result<SecretKey, StoreError> {
    let fresh = clock::random_bytes::<32>().map_err(|_| StoreError::Corrupt {
        what: "settings",
        why: "the system has no randomness for a key".to_owned(),
    })?;
    let mut tx = store.begin().await?;
    let (kept,): (String,) = sqlx::query_as(
        "INSERT INTO settings (name, value) VALUES (?, ?) ON CONFLICT (name) DO UPDATE SET name = excluded.name RETURNING value",
    )
    .bind(name)
    .bind(STANDARD.encode(fresh))
    .fetch_one(&mut *tx)
    .await?;
    tx.commit().await?;
    let bytes = STANDARD.decode(kept).map_err(|e| StoreError::Corrupt { what: "settings", why: e.to_string() })?;
    bytes.try_into().map_err(|_| StoreError::Corrupt { what: "settings", why: "a key has another length".to_owned() })
}
