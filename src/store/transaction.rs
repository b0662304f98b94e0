//! How a store is held while it is read or written. When what is due and in which order is decided elsewhere.

use super::played::Played;
use super::{Store, StoreError};
use sqlx::pool::PoolConnection;
use sqlx::{Sqlite, SqliteConnection, Transaction};
use std::ops::{Deref, DerefMut};
use tokio::sync::OwnedMutexGuard;

/// A write transaction. It holds the one writer, so it must be short and never wait for a network. What is not committed is rolled back,
/// but in a store that is played into, see [`Store::open_to_play`].
#[derive(Debug)]
pub struct WriteTx(Writing);

#[derive(Debug)]
enum Writing {
    Begun(Transaction<'static, Sqlite>),
    /// All that a store which is played into has.
    Played(OwnedMutexGuard<Played>),
}

/// A connection that is read with.
#[derive(Debug)]
pub struct ReadConn(Reading);

#[derive(Debug)]
enum Reading {
    Snapshot(Transaction<'static, Sqlite>),
    Pooled(PoolConnection<Sqlite>),
    /// All that a store which is played into has.
    Played(OwnedMutexGuard<Played>),
}

impl Store {
    /// Begins a write transaction with `BEGIN IMMEDIATE`: the writer is taken at once, never in the middle.
    ///
    /// # Errors
    /// When the database refuses.
    pub async fn begin(&self) -> Result<WriteTx, StoreError> {
        Ok(WriteTx(match &self.played {
            Some(played) => Writing::Played(played.clone().lock_owned().await),
            None => Writing::Begun(self.writer.begin_with("BEGIN IMMEDIATE").await?),
        }))
    }

    /// Reads, each statement as of its own instant.
    ///
    /// # Errors
    /// When the database refuses.
    pub async fn read(&self) -> Result<ReadConn, StoreError> {
        Ok(ReadConn(match &self.played {
            Some(played) => Reading::Played(played.clone().lock_owned().await),
            None => Reading::Pooled(self.reader.acquire().await?),
        }))
    }

    /// Reads, all as of one instant, whatever is committed meanwhile.
    ///
    /// # Errors
    /// When the database refuses.
    pub async fn read_snapshot(&self) -> Result<ReadConn, StoreError> {
        Ok(ReadConn(match &self.played {
            Some(played) => Reading::Played(played.clone().lock_owned().await),
            None => Reading::Snapshot(self.reader.begin().await?),
        }))
    }
}

impl WriteTx {
    /// The tables in memory; none when the store is a database.
    pub fn played(&mut self) -> Option<&mut Played> {
        match &mut self.0 {
            Writing::Begun(_) => None,
            Writing::Played(played) => Some(played),
        }
    }

    /// Commits what was written.
    ///
    /// # Errors
    /// When the database refuses.
    pub async fn commit(self) -> Result<(), sqlx::Error> {
        match self.0 {
            Writing::Begun(tx) => tx.commit().await,
            Writing::Played(_) => Ok(()),
        }
    }
}

impl ReadConn {
    /// The tables in memory; none when the store is a database.
    pub fn played(&self) -> Option<&Played> {
        match &self.0 {
            Reading::Snapshot(_) | Reading::Pooled(_) => None,
            Reading::Played(played) => Some(played),
        }
    }

    /// Gives the connection back, before anybody else asks for it: a store in memory has only one.
    ///
    /// # Errors
    /// When the database refuses.
    pub async fn end(self) -> Result<(), sqlx::Error> {
        match self.0 {
            Reading::Snapshot(tx) => tx.rollback().await,
            Reading::Pooled(_) | Reading::Played(_) => Ok(()),
        }
    }
}

impl Deref for WriteTx {
    type Target = SqliteConnection;

    fn deref(&self) -> &SqliteConnection {
        match &self.0 {
            Writing::Begun(tx) => tx,
            Writing::Played(played) => &played.connection,
        }
    }
}

impl DerefMut for WriteTx {
    fn deref_mut(&mut self) -> &mut SqliteConnection {
        match &mut self.0 {
            Writing::Begun(tx) => tx,
            Writing::Played(played) => &mut played.connection,
        }
    }
}

impl Deref for ReadConn {
    type Target = SqliteConnection;

    fn deref(&self) -> &SqliteConnection {
        match &self.0 {
            Reading::Snapshot(tx) => tx,
            Reading::Pooled(connection) => connection,
            Reading::Played(played) => &played.connection,
        }
    }
}

impl DerefMut for ReadConn {
    fn deref_mut(&mut self) -> &mut SqliteConnection {
        match &mut self.0 {
            Reading::Snapshot(tx) => tx,
            Reading::Pooled(connection) => connection,
            Reading::Played(played) => &mut played.connection,
        }
    }
}

/// A write transaction that begins when something is to be written: mostly there is nothing.
#[derive(Debug)]
pub struct LateTx<'a> {
    store: &'a Store,
    tx: Option<WriteTx>,
}

impl<'a> LateTx<'a> {
    /// Nothing has begun yet.
    pub fn new(store: &'a Store) -> Self {
        Self { store, tx: None }
    }

    /// The transaction, which begins with the first call.
    ///
    /// # Errors
    /// When the database refuses to begin one.
    pub async fn begun(&mut self) -> Result<&mut WriteTx, StoreError> {
        let tx = match self.tx.take() {
            Some(tx) => tx,
            None => self.store.begin().await?,
        };
        Ok(self.tx.insert(tx))
    }

    /// Commits what was written, if anything was.
    ///
    /// # Errors
    /// When the database refuses.
    pub async fn commit(self) -> Result<(), StoreError> {
        match self.tx {
            Some(tx) => Ok(tx.commit().await?),
            None => Ok(()),
        }
    }
}
