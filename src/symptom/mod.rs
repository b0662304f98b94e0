//! Symptoms: what users of a pipeline would notice. Rules as config gives them; evaluation comes beside them, pure.

mod rule;

pub use rule::{BurnTier, Mode, Severity, SymptomKind, SymptomRule};
