//! Open dead letters of a window, folded by cause. Pure.

use crate::digest::{DigestInput, LetterGroup, OlderLetters};
use crate::name::WorkflowName;
use crate::store::catalogue::{Cause, Oldest};
use chrono::{DateTime, Utc};
use foldhash::{HashMap, HashSet};

/// Open dead letters of one cause, whatever was decided about them.
struct Fold<'a> {
    count: u64,
    new_count: u64,
    oldest: &'a Oldest,
    cause: &'a Cause,
}

/// Open dead letters of one workflow, by what its causes of one fingerprint share.
type Folds<'a> = HashMap<usize, Fold<'a>>;

/// Open dead letters, by workflow and fingerprint.
#[derive(Default)]
pub(super) struct Folded<'a>(HashMap<&'a WorkflowName, Folds<'a>>);

/// Open dead letters of one workflow.
pub(super) struct OpenCount {
    pub count: u64,
    pub oldest_at: DateTime<Utc>,
}

impl<'a> Folded<'a> {
    pub fn add(&mut self, cause: &'a Cause, count: u64, new_count: u64, oldest: &'a Oldest) {
        let folds = self.0.entry(&cause.workflow).or_default();
        let fold = folds.entry(cause.group).or_insert(Fold { count: 0, new_count: 0, oldest, cause });
        fold.count += count;
        fold.new_count += new_count;
        fold.oldest = fold.oldest.min(oldest);
    }

    pub fn by_workflow(&self) -> impl Iterator<Item = (&'a WorkflowName, OpenCount)> {
        self.0.iter().filter_map(|(workflow, folds)| {
            let oldest_at = folds.values().map(|fold| fold.oldest.at).min()?;
            Some((*workflow, OpenCount { count: folds.values().map(|fold| fold.count).sum(), oldest_at }))
        })
    }

    /// Hands over the causes of workflows that there is news of, and counts the others.
    pub fn tell(self, input: &mut DigestInput) {
        let (mut told, mut older) = (Vec::new(), OlderLetters::default());
        let news: HashSet<&WorkflowName> = input.news();
        for (workflow, folds) in self.0 {
            if news.contains(workflow) || folds.values().any(|fold| fold.new_count > 0) {
                told.extend(folds.into_values());
            } else {
                older.count += folds.values().map(|fold| fold.count).sum::<u64>();
                older.causes_count += folds.len() as u64;
            }
        }
        told.sort_unstable_by_key(|fold| (fold.oldest.at, fold.oldest.id));
        input.older_letters = older;
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
