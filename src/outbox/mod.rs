//! The outbox: what is to be said to whom, each row with its state. Entry, states and retry policy are pure;
//! `queue` alone writes the rows.

mod entry;
pub mod policy;
pub mod queue;
mod recipient;

pub use entry::{Entry, EntryId, EntrySummary, MessageKind, NewEntry, State};
pub use policy::{DeadReason, Outcome, Settlement, Transport};
pub use recipient::{Recipient, RecipientState, combine};
