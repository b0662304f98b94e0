//! Open dead letters of a window, folded by cause. Pure.

use crate::digest::{DigestInput, LetterGroup, OlderLetters};
use crate::name::WorkflowName;
use crate::store::catalogue::{Cause, Oldest};
use chrono::{DateTime, Utc};
use foldhash::fast::FixedState;
use std::collections::{BTreeMap, HashMap, HashSet};

/// Open dead letters of one cause, whatever was decided about them.
struct Fold<'a> {
    count: u64,
    new_count: u64,
    oldest: &'a Oldest,
    cause: &'a Cause,
}

/// Open dead letters, by workflow and fingerprint.
#[derive(Default)]
pub(super) struct Folded<'a>(HashMap<usize, Fold<'a>, FixedState>);

/// Open dead letters of one workflow.
#[derive(Default)]
pub(super) struct OpenCount {
    pub count: u64,
    pub oldest_at: Option<DateTime<Utc>>,
}

impl<'a> Folded<'a> {
    pub fn add(&mut self, cause: &'a Cause, count: u64, new_count: u64, oldest: &'a Oldest) {
        match self.0.get_mut(&cause.group) {
            Some(fold) => {
                fold.count += count;
                fold.new_count += new_count;
                fold.oldest = fold.oldest.min(oldest);
            }
            None => {
                self.0.insert(cause.group, Fold { count, new_count, oldest, cause });
            }
        }
    }

    pub fn by_workflow(&self) -> BTreeMap<WorkflowName, OpenCount> {
        let mut counts: HashMap<&WorkflowName, OpenCount> = HashMap::new();
        for fold in self.0.values() {
            let count = counts.entry(&fold.cause.workflow).or_default();
            count.count += fold.count;
            count.oldest_at = Some(count.oldest_at.map_or(fold.oldest.at, |at| at.min(fold.oldest.at)));
        }
        counts.into_iter().map(|(workflow, count)| (workflow.clone(), count)).collect()
    }

    /// Hands over the causes of workflows that there is news of, and counts the others.
    pub fn tell(self, input: &mut DigestInput) {
        let fresh = self.0.values().filter(|f| f.new_count > 0).map(|f| &f.cause.workflow);
        let news: HashSet<WorkflowName> = input.news().into_iter().chain(fresh).cloned().collect();
        let (mut told, older): (Vec<_>, Vec<_>) = self.0.into_values().partition(|f| news.contains(&f.cause.workflow));
        told.sort_by_key(|f| (f.oldest.at, f.oldest.id));
        input.older_letters =
            OlderLetters { count: older.iter().map(|f| f.count).sum(), causes_count: older.len() as u64 };
        input.open_letters = told.into_iter().map(Fold::into_group).collect();
    }
}

impl Fold<'_> {
    fn into_group(self) -> LetterGroup {
        LetterGroup {
            workflow: self.cause.workflow.clone(),
            fingerprint: self.cause.fingerprint.clone(),
            count: self.count,
            new_count: self.new_count,
            oldest_at: self.oldest.at,
            oldest_item: self.oldest.item.clone(),
            oldest_id: self.oldest.id.to_string(),
        }
    }
}
