//! The whole service through its real binary: what must hold whatever is killed, stopped or sent. One file a subject.

#![allow(clippy::unwrap_used, reason = "helpers of tests fail the test")]

mod config;
mod crash;
mod digest;
mod intake;
mod ledger;
mod nats;
mod symptoms;
mod words;

#[path = "../support/mod.rs"]
mod support;
