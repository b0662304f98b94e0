//! Failures in a row: the last outcomes, and the symptoms `failing_streak` and `run_failed` that are read from them.

use super::reading::{Context, Read};
use super::state::Reading;
use super::{dead_letter, sentence};
use std::collections::VecDeque;

/// Failures that are remembered one by one; of longer rows the first and the last ones.
const ROW_MAX: usize = 16;

/// How many of the last intervals between good runs decide what is usual.
const INTERVALS: usize = 8;

/// Failures of one second.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Failed {
    /// When, in s.
    pub at: i64,
    /// As events.
    pub events: u64,
    /// As reported.
    pub reported: u64,
}

/// The failures since the last good run, oldest first. The order of arrival does not matter: a good run that is told
/// late ends what was before it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Row {
    pub failures: VecDeque<Failed>,
    /// The last good run, in s.
    pub good_at: Option<i64>,
    /// The last times between two reports with good runs, in s, oldest first.
    pub intervals: VecDeque<u32>,
}

impl Row {
    /// A good run.
    pub fn good(&mut self, at: i64) {
        if let Some(last) = self.good_at.filter(|last| *last < at) {
            if self.intervals.len() >= INTERVALS {
                self.intervals.pop_front();
            }
            self.intervals.push_back(u32::try_from(at - last).unwrap_or(u32::MAX));
        }
        self.good_at = self.good_at.max(Some(at));
        while self.failures.front().is_some_and(|failed| Some(failed.at) <= self.good_at) {
            self.failures.pop_front();
        }
    }

    /// Failed runs.
    pub fn failed(&mut self, failed: Failed) {
        if Some(failed.at) <= self.good_at {
            return;
        }
        if self.failures.len() == self.failures.capacity() {
            self.failures.reserve_exact(4);
        }
        let place = self.failures.partition_point(|other| other.at < failed.at);
        match self.failures.get_mut(place).filter(|other| other.at == failed.at) {
            Some(same) => {
                same.events = same.events.saturating_add(failed.events);
                same.reported = same.reported.saturating_add(failed.reported);
            }
            None => self.failures.insert(place, failed),
        }
        if self.failures.len() > ROW_MAX
            && let Some(second) = self.failures.remove(1)
            && let Some(third) = self.failures.get_mut(1)
        {
            third.events = third.events.saturating_add(second.events);
            third.reported = third.reported.saturating_add(second.reported);
        }
    }

    /// Until when good runs since the last one may not be told yet, in s: they are told as often as they were lately, and half of that
    /// later at most.
    fn untold_until(&self) -> Option<i64> {
        let mut intervals: Vec<u32> = self.intervals.iter().copied().collect();
        intervals.sort_unstable();
        let usual = i64::from(*intervals.get(intervals.len() / 2)?);
        Some(self.good_at? + usual + usual / 2)
    }

    /// How many failed in a row: a failure that is told as event and in a report is one.
    pub fn count(&self) -> u64 {
        let sum = |of: fn(&Failed) -> u64| self.failures.iter().map(of).fold(0, u64::saturating_add);
        sum(|failed| failed.events).max(sum(|failed| failed.reported))
    }

    /// From the first failure of the row to the last, in s.
    pub fn length(&self) -> i64 {
        self.first_at().zip(self.failures.back()).map_or(0, |(first, last)| last.at - first)
    }

    /// The first failure of the row.
    pub fn first_at(&self) -> Option<i64> {
        self.failures.front().map(|failed| failed.at)
    }
}

/// The last `count` outcomes all failed, over at least `over`. Nobody knows the last outcomes of a workflow that only ever says what
/// failed, or whose next good runs are not due to be told yet.
pub(super) fn read_streak(context: &Context<'_>, count: u64, over: i64) -> Read {
    let row = &context.memory.row;
    if row.count() < count.max(1) || row.length() < over {
        return (Reading::QUIET, None);
    }
    if row.good_at.is_none() && context.memory.reports.last_at.is_none() {
        return (Reading::QUIET, None);
    }
    if let Some(until) = row.untold_until().filter(|until| context.at <= *until) {
        return (Reading::QUIET, Some(until + 1));
    }
    let sentence = || sentence::streak(&context.plan.workflow, row.count(), row.length(), good_ago(context));
    (context.finding(dead_letter::count(row.count()), sentence), None)
}

/// The last finished run failed.
pub(super) fn read_run_failed(context: &Context<'_>) -> Read {
    let row = &context.memory.row;
    let Some(last) = row.failures.back() else { return (Reading::QUIET, None) };
    let ago = (context.at - last.at).max(0);
    let sentence = || sentence::run_failed(&context.plan.workflow, row.count(), ago, good_ago(context));
    (context.finding(dead_letter::count(row.count()), sentence), None)
}

fn good_ago(context: &Context<'_>) -> Option<i64> {
    context.memory.row.good_at.map(|at| (context.at - at).max(0))
}
