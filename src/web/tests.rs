//! Requests against a real store.
