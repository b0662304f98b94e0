//! What workflows have in common: the last dead letters, who failed at which downstream and with which error, and the last
//! calls of each downstream. Bounded; which of it is a symptom is decided in `pattern`.

use super::signal::What;
use crate::event::BreakerState;
use crate::name::WorkflowName;
use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// Dead letters that are remembered; a rule may ask for as many.
pub(super) const LETTERS_MAX: usize = 200;

/// Calls of a downstream that are remembered; a rule may ask for as many.
pub(super) const CALLS_MAX: usize = 100;

/// Downstreams, and error types, that are remembered.
const SUBJECTS_MAX: usize = 256;

/// Workflows that are remembered of each.
pub(super) const WORKFLOWS_MAX: usize = 64;

/// Who called a downstream so long before its breaker opened may have been hit by what opened it, in s.
const CALLERS_AGE_MAX: i64 = 3_600;

/// A dead letter that came in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Letter {
    /// When it failed last, in s.
    pub at: i64,
    /// Hash of its key.
    pub key: u64,
    pub workflow: WorkflowName,
}

/// A call of a downstream.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Call {
    /// When, in s.
    pub at: i64,
    pub is_good: bool,
    pub workflow: WorkflowName,
}

/// A final failure that has something in common with others.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Hit {
    /// The latest, in s.
    pub at: i64,
    /// Where it failed, of an error type only.
    pub downstream: Option<String>,
}

/// Workflows that failed in one way.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Hits {
    /// The last failure of each.
    pub by: BTreeMap<WorkflowName, Hit>,
    /// The latest of all, in s.
    pub latest_at: i64,
}

/// One downstream.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Downstream {
    /// Final failures by workflow.
    pub hits: Hits,
    /// Calls, oldest first.
    pub calls: VecDeque<Call>,
    /// What a breaker of it last said.
    pub said: Option<Said>,
}

/// What was said of a circuit breaker.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Said {
    pub state: BreakerState,
    /// The last word, in s.
    pub at: i64,
    /// Since when it is closed, or is not, in s.
    pub since: i64,
    /// Who said that it is not closed, and who called in the hour before.
    pub by: BTreeSet<WorkflowName>,
}

/// The memory that workflows share.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Shared {
    /// Oldest first, each dead letter once.
    pub letters: VecDeque<Letter>,
    pub downstreams: BTreeMap<String, Downstream>,
    /// By `error.type`: workflows that failed with it.
    pub errors: BTreeMap<String, Hits>,
}

/// Names that many unrelated errors have: sharing one says nothing.
const NAMELESS: [&str; 4] = ["Error", "Exception", "RuntimeError", "Unknown"];

impl Shared {
    /// Remembers what was heard at `at`, and says whether there was anything to remember.
    pub fn take(&mut self, workflow: &WorkflowName, at: i64, what: &What) -> bool {
        match what {
            What::Failure { is_final, letter, downstream, error_type, times, .. } => {
                if let Some(key) = letter {
                    self.letter(Letter { at, key: *key, workflow: workflow.clone() });
                }
                if let Some(name) = downstream {
                    self.calls(name, &Call { at, is_good: false, workflow: workflow.clone() }, *times);
                }
                if *is_final {
                    self.hit(workflow, at, downstream.as_deref(), error_type.as_deref());
                }
                letter.is_some() || downstream.is_some() || (*is_final && error_type.is_some())
            }
            What::Recovery { downstream: Some(name), times, .. } => {
                self.calls(name, &Call { at, is_good: true, workflow: workflow.clone() }, *times);
                true
            }
            What::Runs { ok, failed, downstream: Some(name) } => {
                self.calls(name, &Call { at, is_good: false, workflow: workflow.clone() }, *failed);
                self.calls(name, &Call { at, is_good: true, workflow: workflow.clone() }, *ok);
                true
            }
            What::Breaker { downstream, state } => {
                self.breaker(downstream, workflow, *state, at);
                true
            }
            What::Recovery { .. } | What::Runs { .. } | What::Totals { .. } | What::Heartbeat { .. } => false,
            What::Resolved | What::Alive => false,
        }
    }

    fn letter(&mut self, letter: Letter) {
        if let Some(place) = self.letters.iter().position(|other| other.key == letter.key) {
            if self.letters.get(place).is_some_and(|other| other.at >= letter.at) {
                return;
            }
            self.letters.remove(place);
        }
        let place = self.letters.partition_point(|other| (other.at, other.key) < (letter.at, letter.key));
        self.letters.insert(place, letter);
        if self.letters.len() > LETTERS_MAX {
            self.letters.pop_front();
        }
    }

    fn calls(&mut self, name: &str, call: &Call, times: u64) {
        if times == 0 {
            return;
        }
        let downstream = self.downstream(name);
        for _ in 0..times.min(CALLS_MAX as u64) {
            let place = downstream.calls.partition_point(|other| other.at <= call.at);
            downstream.calls.insert(place, call.clone());
            if downstream.calls.len() > CALLS_MAX {
                downstream.calls.pop_front();
            }
        }
    }

    fn hit(&mut self, workflow: &WorkflowName, at: i64, downstream: Option<&str>, error: Option<&str>) {
        if let Some(name) = downstream {
            self.downstream(name).hits.put(workflow, Hit { at, downstream: None });
        }
        let Some(error) = error.filter(|error| !NAMELESS.contains(error)) else { return };
        if !self.errors.contains_key(error) {
            make_room(&mut self.errors, |hits| Some(hits.latest_at));
        }
        let hits = self.errors.entry(error.to_owned()).or_default();
        hits.put(workflow, Hit { at, downstream: downstream.map(str::to_owned) });
    }

    fn breaker(&mut self, name: &str, workflow: &WorkflowName, state: BreakerState, at: i64) {
        let downstream = self.downstream(name);
        if downstream.said.as_ref().is_some_and(|said| at < said.at) {
            return;
        }
        let is_closed = state == BreakerState::Closed;
        let known = downstream.said.take().filter(|said| (said.state == BreakerState::Closed) == is_closed);
        let recent = downstream.calls.iter().filter(|call| call.at > at - CALLERS_AGE_MAX);
        let recent = || recent.map(|call| call.workflow.clone()).collect();
        let said = known.unwrap_or_else(|| Said { state, at, since: at, by: recent() });
        let mut said = Said { state, at, ..said };
        if is_closed {
            said.by.clear();
        } else {
            let callers = downstream.calls.iter().filter(|call| call.at >= said.since).map(|call| &call.workflow);
            let new: Vec<WorkflowName> = callers.chain([workflow]).filter(|w| !said.by.contains(*w)).cloned().collect();
            let room = WORKFLOWS_MAX.saturating_sub(said.by.len());
            said.by.extend(new.into_iter().take(room));
        }
        downstream.said = Some(said);
        // What was called before is what the breaker has judged.
        downstream.calls.retain(|call| call.at > at);
    }

    fn downstream(&mut self, name: &str) -> &mut Downstream {
        if !self.downstreams.contains_key(name) {
            make_room(&mut self.downstreams, Downstream::latest_at);
        }
        self.downstreams.entry(name.to_owned()).or_default()
    }
}

impl Downstream {
    fn latest_at(&self) -> Option<i64> {
        let hit = (!self.hits.by.is_empty()).then_some(self.hits.latest_at);
        hit.max(self.calls.back().map(|call| call.at)).max(self.said.as_ref().map(|said| said.at))
    }
}

impl Hits {
    fn put(&mut self, workflow: &WorkflowName, hit: Hit) {
        self.latest_at = if self.by.is_empty() { hit.at } else { self.latest_at.max(hit.at) };
        match self.by.get_mut(workflow) {
            Some(known) if known.at > hit.at => {}
            Some(known) => *known = hit,
            None => {
                self.by.insert(workflow.clone(), hit);
                if self.by.len() > WORKFLOWS_MAX
                    && let Some(oldest) = self.by.iter().min_by_key(|(_, hit)| hit.at).map(|(name, _)| name.clone())
                {
                    self.by.remove(&oldest);
                }
            }
        }
    }
}

/// Forgets what was silent longest when there is no room for another.
fn make_room<T>(map: &mut BTreeMap<String, T>, latest_at: impl Fn(&T) -> Option<i64>) {
    if map.len() < SUBJECTS_MAX {
        return;
    }
    if let Some(oldest) = map.iter().min_by_key(|(_, value)| latest_at(value)).map(|(name, _)| name.clone()) {
        map.remove(&oldest);
    }
}
