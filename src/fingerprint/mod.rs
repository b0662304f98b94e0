//! Fingerprints: what makes two failures the same cause. A fingerprint is a promise: the same failure has the same one
//! in every version, so the rules here don't change, they get a new version prefix. Counting by it is done elsewhere.
//!
//! `v1:` and 16 hex digits, the first 8 bytes of SHA-256 over workflow, step, class, error type (else code, else HTTP
//! status) and the parametrised message, each as 4 bytes of little-endian length and its UTF-8 bytes; a missing one
//! has the length `u32::MAX` and no bytes.

use crate::event::{Event, Fingerprint};
use ring::digest::{Context, SHA256};
use std::fmt::Write as _;

mod pattern;

pub use pattern::parametrise;

/// The fingerprint of an event that has its class.
pub fn of(event: &Event) -> Fingerprint {
    let error = &event.error;
    let status = error.http_status.map(|s| s.to_string());
    let kind = error.kind.as_deref().or(error.code.as_deref()).or(status.as_deref());
    let message = error.message.as_deref().map(parametrise);
    let mut context = Context::new(&SHA256);
    for part in
        [Some(event.workflow.as_str()), event.step.as_deref(), Some(event.class.as_str()), kind, message.as_deref()]
    {
        let length = part.map_or(u32::MAX, |p| u32::try_from(p.len()).unwrap_or(u32::MAX - 1));
        context.update(&length.to_le_bytes());
        context.update(part.unwrap_or_default().as_bytes());
    }
    let mut text = String::with_capacity(19);
    text.push_str("v1:");
    for byte in context.finish().as_ref().iter().take(8) {
        let _ = write!(text, "{byte:02x}");
    }
    Fingerprint(text.into())
}

#[cfg(test)]
mod tests;
