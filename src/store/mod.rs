//! The store: what has happened and what was decided, in one place that survives a kill. SQL fetches and stores; Rust decides.
//! One file a table family. No network but the database, no rule of the field.

mod bulk;
pub mod catalogue;
pub mod counters;
pub mod digest_input;
pub mod hearing;
pub mod incidents;
pub mod intake;
pub mod key;
pub mod ledger;
pub mod letters;
mod migration;
pub mod played;
pub mod retention;
pub mod settings;
pub mod silences;
pub mod stats;
pub mod stored_event;
pub mod symptoms;
mod transaction;

pub use transaction::{LateTx, ReadConn, WriteTx};

use chrono::{DateTime, Utc};
use played::Played;
use serde::Serialize;
use serde::de::DeserializeOwned;
use sqlx::sqlite::{SqliteConnectOptions, SqliteJournalMode, SqlitePoolOptions, SqliteSynchronous};
use sqlx::{Connection as _, SqliteConnection, SqlitePool};
use std::fs::{File, OpenOptions};
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::Mutex;

/// Why the store could not do what was asked.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// The address of the store can't be used.
    #[error("store url: {0}")]
    Url(String),
    /// Another process has the file.
    #[error("{} is in use by another matins; one SQLite file serves one process", .0.display())]
    Locked(PathBuf),
    /// The folder or file can't be opened.
    #[error("{}: {source}", path.display())]
    Io {
        /// What was to be opened.
        path: PathBuf,
        /// Why not.
        source: std::io::Error,
    },
    /// The database said no.
    #[error("database: {0}")]
    Sql(#[from] sqlx::Error),
    /// The tables could not be brought up to date.
    #[error("migration: {0}")]
    Migrate(#[from] sqlx::migrate::MigrateError),
    /// A stored row does not read as what was written.
    #[error("stored {what} can't be read: {why}")]
    Corrupt {
        /// Table and column.
        what: &'static str,
        /// What is wrong with it.
        why: String,
    },
}

impl StoreError {
    fn missing(what: &'static str, id: i64) -> Self {
        Self::Corrupt { what, why: format!("row {id} is not there") }
    }
}

/// Rows of a result that may be on their way between the threads of the database and ours: a small number makes both wait for each other.
const ROWS_AHEAD: usize = 2048;

/// Pages that the log may hold before a commit has to copy it into the file itself, which takes a while. `checkpoint` copies it beside
/// the commits, long before.
const WAL_PAGES: &str = "65536";

/// The store. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Store {
    writer: SqlitePool,
    reader: SqlitePool,
    /// Copies the log into the file; none in memory.
    checkpointer: Option<SqlitePool>,
    /// What a store that is played into has instead.
    played: Option<Arc<Mutex<Played>>>,
    /// The file, locked as long as the store lives; none in memory.
    file: Option<Arc<LockedFile>>,
}

/// The database file with a lock on it, which is apart from the locks that SQLite itself takes.
#[derive(Debug)]
struct LockedFile {
    path: PathBuf,
    file: File,
}

impl Store {
    /// Opens or creates the store and brings its tables up to date.
    ///
    /// `url` is `sqlite://path` or `sqlite::memory:`; the latter lives as long as the value.
    ///
    /// Durability: WAL with `synchronous=FULL`, so what was acked to JetStream also survives a loss of power.
    ///
    /// # Errors
    /// When the address can't be used, another process has the file, or the database refuses.
    pub async fn open(url: &str) -> Result<Self, StoreError> {
        if url == "sqlite::memory:" {
            return Self::open_in_memory().await;
        }
        let Some(path) = url.strip_prefix("sqlite://").or_else(|| url.strip_prefix("sqlite:")) else {
            return Err(StoreError::Url("only sqlite://PATH is supported".to_owned()));
        };
        let file = lock_file(Path::new(path))?;
        let options = SqliteConnectOptions::new()
            .filename(path)
            .create_if_missing(true)
            .journal_mode(SqliteJournalMode::Wal)
            .synchronous(SqliteSynchronous::Full)
            .busy_timeout(Duration::from_secs(5))
            .foreign_keys(true)
            .pragma("temp_store", "memory")
            .pragma("cache_size", "-16384")
            .pragma("wal_autocheckpoint", WAL_PAGES)
            .statement_cache_capacity(256)
            .row_buffer_size(ROWS_AHEAD);
        let writer = SqlitePoolOptions::new()
            .max_connections(1)
            .min_connections(1)
            .test_before_acquire(false)
            // On a full disk SQLite rolls back by itself and the driver does not know: such a connection is of no more use.
            .after_release(|connection, _| Box::pin(async move { Ok(!connection.is_in_transaction()) }))
            .connect_with(options.clone())
            .await?;
        migration::run(&writer).await?;
        let checkpointer = SqlitePoolOptions::new().max_connections(1).connect_with(options.clone()).await?;
        // A file does not go away as a server does, so no connection is tried out before it is used.
        let reader = SqlitePoolOptions::new()
            .max_connections(4)
            .test_before_acquire(false)
            .connect_with(options.read_only(true).pragma("cache_size", "-4096"))
            .await?;
        Ok(Self { writer, reader, checkpointer: Some(checkpointer), played: None, file: Some(Arc::new(file)) })
    }

    /// Connections that only read a store, which a service may be using.
    ///
    /// # Errors
    /// When there is no such store, or it can't be read.
    pub async fn open_to_read(url: &str) -> Result<SqlitePool, StoreError> {
        let Some(path) = url.strip_prefix("sqlite://").or_else(|| url.strip_prefix("sqlite:")) else {
            return Err(StoreError::Url("only sqlite://PATH is supported".to_owned()));
        };
        if let Err(source) = std::fs::metadata(path) {
            return Err(StoreError::Io { path: PathBuf::from(path), source });
        }
        let options = SqliteConnectOptions::new().filename(path).read_only(true).busy_timeout(Duration::from_secs(5));
        Ok(SqlitePoolOptions::new().max_connections(1).connect_with(options.row_buffer_size(ROWS_AHEAD)).await?)
    }

    /// A store in memory for whoever plays recorded events and gives up at the first failure, see [`played`]. What `begin` and `read` hand
    /// out is the same, and no transaction: nothing is rolled back. Its database has no tables and `reader` finds none, so that a
    /// statement which memory has no counterpart for fails.
    ///
    /// # Errors
    /// When the database refuses.
    pub async fn open_to_play() -> Result<Self, StoreError> {
        let connection = SqliteConnection::connect_with(&in_memory()?).await?;
        let nowhere = SqliteConnectOptions::new().filename("played/has-no-file").read_only(true);
        let nobody = SqlitePoolOptions::new().max_connections(1).connect_lazy_with(nowhere);
        let played = Some(Arc::new(Mutex::new(Played::new(connection))));
        Ok(Self { writer: nobody.clone(), reader: nobody, checkpointer: None, played, file: None })
    }

    /// One connection that reads and writes, because each connection would have its own.
    async fn open_in_memory() -> Result<Self, StoreError> {
        let pool = SqlitePoolOptions::new()
            .max_connections(1)
            .min_connections(1)
            .test_before_acquire(false)
            .idle_timeout(None)
            .max_lifetime(None)
            .connect_with(in_memory()?)
            .await?;
        migration::run(&pool).await?;
        Ok(Self { writer: pool.clone(), reader: pool, checkpointer: None, played: None, file: None })
    }

    /// Connections that only read.
    pub fn reader(&self) -> &SqlitePool {
        &self.reader
    }

    /// Copies what the log holds into the file, beside the writer and without holding it up. Called about once a second.
    ///
    /// # Errors
    /// When the database refuses; the next call copies what this one did not.
    pub async fn checkpoint(&self) -> Result<(), StoreError> {
        if let Some(pool) = &self.checkpointer {
            sqlx::query("PRAGMA wal_checkpoint(PASSIVE)").fetch_all(pool).await?;
        }
        Ok(())
    }

    /// Whether the path still leads to the file that was opened. When it was removed or replaced, what is committed goes nowhere.
    pub fn file_is_ours(&self) -> bool {
        let Some(LockedFile { path, file }) = self.file.as_deref() else { return true };
        let identity = |m: std::fs::Metadata| (m.dev(), m.ino());
        match (std::fs::metadata(path).map(identity), file.metadata().map(identity)) {
            (Ok(there), Ok(ours)) => there == ours,
            (Err(_), _) | (_, Err(_)) => false,
        }
    }

    /// Closes all connections; what was committed is safe without it.
    pub async fn close(&self) {
        self.reader.close().await;
        if let Some(pool) = &self.checkpointer {
            pool.close().await;
        }
        self.writer.close().await;
    }
}

fn in_memory() -> Result<SqliteConnectOptions, StoreError> {
    let options = SqliteConnectOptions::from_str("sqlite::memory:")?;
    Ok(options.foreign_keys(true).statement_cache_capacity(256).row_buffer_size(ROWS_AHEAD))
}

/// Locks the database file itself, so that another name of it is no way around. The log and its index take its mode.
fn lock_file(path: &Path) -> Result<LockedFile, StoreError> {
    let io = |source| StoreError::Io { path: path.to_owned(), source };
    if let Some(folder) = path.parent().filter(|f| !f.as_os_str().is_empty()) {
        std::fs::create_dir_all(folder).map_err(io)?;
    }
    let file = private().open(path).map_err(io)?;
    file.try_lock().map_err(|_| StoreError::Locked(path.to_owned()))?;
    Ok(LockedFile { path: path.to_owned(), file })
}

/// Makes a file for the owner alone when it is missing: payloads and keys are in it.
fn private() -> OpenOptions {
    let mut options = File::options();
    options.create(true).truncate(false).write(true).mode(0o600);
    options
}

/// A list that SQLite wrote as JSON: one row, because each row is a step between two threads.
fn list<T: DeserializeOwned>(text: &str) -> Result<Vec<T>, StoreError> {
    serde_json::from_str(text).map_err(|e| StoreError::Corrupt { what: "list", why: e.to_string() })
}

/// A list for `json_each`, so that a statement stays prepared whatever its length.
fn json(list: &(impl Serialize + ?Sized)) -> Result<String, StoreError> {
    serde_json::to_string(list).map_err(|e| StoreError::Corrupt { what: "list", why: e.to_string() })
}

/// An instant as the store keeps it: milliseconds since 1970.
pub fn to_ms(at: DateTime<Utc>) -> i64 {
    at.timestamp_millis()
}

/// An instant as it is once it was stored.
pub fn to_the_ms(at: DateTime<Utc>) -> DateTime<Utc> {
    from_ms(to_ms(at))
}

/// The instant of a stored number of milliseconds; out of range reads as 1970.
pub fn from_ms(ms: i64) -> DateTime<Utc> {
    DateTime::from_timestamp_millis(ms).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn open() -> (tempfile::TempDir, Store, PathBuf) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("matins.db");
        let store = Store::open(&format!("sqlite://{}", path.display())).await.unwrap();
        (folder, store, path)
    }

    #[tokio::test]
    async fn a_store_that_was_full_goes_on_once_there_is_room() {
        let (_folder, store, _) = open().await;
        let fill = async |pages: &'static str| {
            let mut tx = store.begin().await?;
            sqlx::query(pages).execute(&mut *tx).await?;
            sqlx::query("INSERT INTO settings (name, value) VALUES (hex(randomblob(8)), hex(randomblob(200000)))")
                .execute(&mut *tx)
                .await?;
            tx.commit().await?;
            Ok::<(), StoreError>(())
        };
        assert!(fill("PRAGMA max_page_count = 1").await.is_err());
        fill("PRAGMA max_page_count = 1000000").await.unwrap();
    }

    #[tokio::test]
    async fn another_name_of_the_file_is_the_same_file() {
        let (folder, _store, path) = open().await;
        let link = folder.path().join("link.db");
        std::os::unix::fs::symlink(&path, &link).unwrap();
        let again = Store::open(&format!("sqlite://{}", link.display())).await;
        assert!(matches!(again, Err(StoreError::Locked(_))), "{again:?}");
    }

    #[tokio::test]
    async fn a_file_that_was_replaced_is_no_longer_ours() {
        let (_folder, store, path) = open().await;
        assert!(store.file_is_ours());
        std::fs::remove_file(&path).unwrap();
        assert!(!store.file_is_ours());
        std::fs::write(&path, b"").unwrap();
        assert!(!store.file_is_ours());
    }

    #[tokio::test]
    async fn a_statement_without_a_counterpart_in_memory_fails_and_does_not_find_nothing() {
        let store = Store::open_to_play().await.unwrap();
        let mut tx = store.begin().await.unwrap();
        assert!(ledger::end_cover(&mut tx, "daily", "ops").await.is_err());
        assert!(stats::reached(store.reader(), "S", DateTime::UNIX_EPOCH).await.is_err());
    }
}
