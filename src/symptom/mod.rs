//! Symptoms: what users of a pipeline would notice. Rules as config gives them, what is remembered of events, and what is
//! found in it, all pure: the shell hands in signals, dead letters and the time, and stores what comes back.

mod absence;
mod breaker;
mod buckets;
mod budget;
mod burn_rate;
mod codec;
mod counts;
mod dead_letter;
mod defaults;
mod evaluate;
mod exact;
mod flaw;
mod input;
mod meaning;
mod memory;
mod pattern;
mod plan;
mod reading;
mod reports;
mod rule;
mod sentence;
mod shared;
mod signal;
mod skew;
mod slot;
mod span;
mod standing;
mod state;
mod streak;
mod strip;
mod told;
mod trend;
mod trial;
mod vector;
mod watch;

pub use budget::{Budget, BudgetLeft};
pub use defaults::Rules;
pub use exact::Ratio;
pub use flaw::{Flaw, Gravity};
pub use plan::{Applied, Ask, BurnPlan, OffReason, Plan, SharedAsk, Tier, TierOff};
pub use rule::{BurnTier, Mode, Severity, SymptomKind, SymptomRule};
pub use signal::{Signal, What, fold};
pub use skew::{Skew, Skews, is_clamped};
pub use span::Span;
pub use standing::{OldestLetter, Standing};
pub use state::{Change, SymptomKey, SymptomState};
pub use told::{SymptomTold, ToldSymptom};
pub use trial::{Firing, Trial, try_rules};
pub use vector::{VectorOutcome, VectorResult, run_vectors};
pub use watch::{WORKFLOWS_MAX, Watch};

/// How often symptoms are looked at, in s: at multiples of this.
pub const LOOK_SECONDS: i64 = buckets::TICK;

#[cfg(test)]
mod tests;
