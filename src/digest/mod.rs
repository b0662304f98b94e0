//! Digests: what one is made of, and what it says. Pure.
//! When one is due is `plan`'s; reading the store, sending and remembering what was sent live elsewhere.

pub mod plan;
