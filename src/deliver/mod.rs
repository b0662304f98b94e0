//! Delivery: one loop that claims, sends and settles; one file a kind of receiver.
//! What is to be said, and to whom, is decided elsewhere.

pub mod lane;
pub mod outcome;
mod receiver;

pub use receiver::{Channel, Receiver, ReceiverKind, Recipients};
