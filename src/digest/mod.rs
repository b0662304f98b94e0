//! Digests: what one is made of, and what it says. Pure.
//! When one is due is `plan`'s; reading the store, sending and remembering what was sent live elsewhere.

mod input;
pub mod plan;

pub use input::{
    Cell, DigestInput, DownstreamCount, Fate, FingerprintInfo, Late, LetterCount, LetterFlow, LetterGroup, LetterStep,
    PageRecord, PageState, SilenceLine, SymptomLine, Totals, UnreadableLine, Window, WorkflowInfo,
};
