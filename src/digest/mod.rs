//! Digests: what one is made of, and what it says. Pure.
//! When one is due is `plan`'s; reading the store, sending and remembering what was sent live elsewhere.

mod action;
mod attention;
mod budget;
mod cause;
mod compose;
mod drawing;
mod footer;
mod input;
mod number;
mod pattern;
mod picture;
pub mod plan;
mod sample;
mod table;
mod tally;
mod view;

pub use compose::{compose, has_patterns};
pub use input::{
    BudgetLine, Cell, DigestInput, DownstreamCount, Fate, FingerprintInfo, LETTERS_MAX, Late, LetterCount, LetterFlow,
    LetterGroup, LetterStep, OlderLetters, PageRecord, PageState, SilenceLine, SymptomLine, Totals, UnreadableLine,
    Window, WorkflowInfo,
};
pub use sample::digest_samples;
pub use view::{DigestCounts, DigestView};

#[cfg(test)]
mod tests;
