//! Intake: from a NATS message to a decoded, redacted, classified event. Everything named here is pure; the consumer
//! loop and the commit live in their own files of this room, and no decision about pages or digests is made here.
//!
//! ```text
//! bytes ─► text ─► JSON ─► shape (CloudEvents, n8n, advisory, native) ─► native form ─► redact ─► Event ─► classify ─► fingerprint
//!    └───────┴───────┴───────┴──────────────┴─► Quarantine { reason }
//! ```

pub mod classify;
pub mod commit;
pub mod consumer;
pub mod decode;
pub mod health;
mod interned;
pub mod jetstream;
pub mod letter_ops;
mod message;
pub mod page;
mod pulse;
mod quarantine;
mod reader;
pub mod redact;
mod unacked;

pub use quarantine::QuarantineReason;
pub use reader::{DecodeOutcome, Decoded, Inbound, Reader};
