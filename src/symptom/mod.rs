//! Symptoms: what users of a pipeline would notice. Rules as config gives them, what is remembered of events, and what is
//! found in it, all pure: the shell hands in signals, dead letters and the time, and stores what comes back.

mod defaults;
mod rule;
mod signal;
mod span;
mod standing;
mod state;
mod told;
mod watch;

pub use defaults::Rules;
pub use rule::{BurnTier, Mode, Severity, SymptomKind, SymptomRule};
pub use signal::{Signal, What, fold};
pub use span::Span;
pub use standing::{OldestLetter, Standing};
pub use state::{Change, SymptomKey, SymptomState};
pub use told::{SymptomTold, ToldSymptom};
pub use watch::Watch;
