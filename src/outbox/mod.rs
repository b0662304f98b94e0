//! The outbox: what is to be said to whom, each row with its state. Entry, states and retry policy are pure;
//! `queue` alone writes the rows.

mod entry;

pub use entry::{Entry, EntryId, MessageKind, NewEntry, State};
