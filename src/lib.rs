//! Matins reads failure events from NATS JetStream, pages at once for money and compliance workflows only, and tells
//! everybody the rest in digests.
//!
//! ```text
//! JetStream ─► ingest ─► decode ─► redact ─► classify ─┬─ TX1: event, counters, dead letter, incident, outbox ─► then ack
//!                                                      ▼
//!                                                    store
//!                                                      │ snapshot (read once a tick)
//!  clock tick ─► app::tick ────────────────────────────┘
//!    incident::advance(incident, reading, now)       pure → Transition
//!    digest::plan ─► compose ─► render               pure
//!                  └─ TX2: incident state, what was told, outbox rows
//!                                                      │
//!    outbox ── claim with a lease ─► deliver (no transaction open) ─► Slack / SMTP / webhook
//!           └─ settle: sent | pending again | dead
//! ```
//!
//! Invariants:
//! 1. Pure rooms do no I/O and read no clock: the same input gives the same output, to the byte.
//! 2. No row of `events` is updated; no message is acked before it is committed.
//! 3. Only `outbox::queue` writes outbox state; only `deliver` opens sockets to receivers.
//! 4. Fingerprints, incident keys and idempotency keys never depend on position in a file, on hash order or on the process.
//! 5. Every loop has a batch limit, every call a timeout, every list in a message a cap with "and N more".
//! 6. lease > send timeout + margin, checked at start.
//! 7. Only protected workflows page.

pub mod clock;
pub mod name;

pub mod event;
pub mod fingerprint;
pub mod incident;
pub mod mailbox;
pub mod matcher;
pub mod silence;
pub mod workflow;

pub mod calendar;
pub mod digest;
pub mod route;
pub mod symptom;

pub mod ingest;
pub mod store;

pub mod ack_link;
pub mod announce;
pub mod deliver;
pub mod outbox;
pub mod render;

pub mod app;
pub mod backtest;
pub mod cli;
pub mod config;
pub mod digest_job;
pub mod explain;
pub mod live;
pub mod metrics;
pub mod web;
