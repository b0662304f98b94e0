//! Workflows as config describes them: domain, owner, runbook, expectations, and the lookup from a name.
//! What a workflow did lives in events and counters, not here.

use crate::matcher::Glob;
use crate::name::WorkflowName;
use std::collections::{BTreeMap, HashMap};
use std::time::Duration;

/// What is at stake. Only the first two may page.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Domain {
    /// Money moves.
    Money,
    /// The law asks for it.
    Compliance,
    /// Everything else.
    #[default]
    Standard,
}

impl Domain {
    /// Every domain, in the order of their weight.
    pub const ALL: [Self; 3] = [Self::Money, Self::Compliance, Self::Standard];

    /// The word used in config, messages and metrics.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Money => "money",
            Self::Compliance => "compliance",
            Self::Standard => "standard",
        }
    }

    /// Whether a failure may page at once (CONTRACT 1.6).
    pub fn is_protected(self) -> bool {
        match self {
            Self::Money | Self::Compliance => true,
            Self::Standard => false,
        }
    }
}

/// One `[[workflows]]` entry.
#[derive(Clone, Debug)]
pub struct Workflow {
    /// Exact name or glob.
    pub name: Glob,
    /// Money, compliance or standard.
    pub domain: Domain,
    /// `Asha <asha@example.com>`, as written.
    pub owner: Option<String>,
    /// An http(s) address.
    pub runbook: Option<String>,
    /// Objective as an exact decimal text in (0, 1), such as `0.995`.
    pub slo: Option<String>,
    /// A run, outcome or heartbeat is expected this often.
    pub every: Option<Duration>,
    /// How late it may be.
    pub grace: Duration,
    /// Singular noun of one item, such as `order`.
    pub item_noun: Option<String>,
    /// Floor of the burn-rate denominator, runs a day.
    pub expected_per_day: Option<u64>,
    /// Labels added to each event of the workflow, for routing; an event's own label wins.
    pub labels: BTreeMap<String, String>,
}

/// All workflows of config, looked up by name: an exact name wins, then the first glob.
#[derive(Clone, Debug, Default)]
pub struct Workflows {
    entries: Vec<Workflow>,
    /// Places of the exact names; asked for every event.
    exact: HashMap<String, usize>,
    /// Places of the globs, in config order.
    globs: Vec<usize>,
}

impl Workflows {
    /// Keeps config order, which decides between globs.
    pub fn new(entries: Vec<Workflow>) -> Self {
        let mut exact = HashMap::new();
        let mut globs = Vec::new();
        for (at, workflow) in entries.iter().enumerate() {
            if workflow.name.is_literal() {
                exact.entry(workflow.name.as_str().to_owned()).or_insert(at);
            } else {
                globs.push(at);
            }
        }
        Self { entries, exact, globs }
    }

    /// The entry that describes `name`; none means a standard workflow without an owner.
    pub fn find(&self, name: &WorkflowName) -> Option<&Workflow> {
        let glob = || self.globs.iter().find(|at| self.entries[**at].name.matches(name.as_str()));
        let at = self.exact.get(name.as_str()).or_else(glob)?;
        self.entries.get(*at)
    }

    /// The domain of `name`; standard when config does not know it.
    pub fn domain(&self, name: &WorkflowName) -> Domain {
        self.find(name).map_or(Domain::Standard, |w| w.domain)
    }

    /// All entries in config order.
    pub fn iter(&self) -> impl Iterator<Item = &Workflow> {
        self.entries.iter()
    }
}
