//! What one workflow's runs came to: good, failed as events say, failed as reports say, and retries, by time; totals of
//! producers that count for themselves; runs that are known to be over. Judged by the kinds, not here.

use super::buckets::{Edges, Series, Sum, TICK, floor};
use std::collections::VecDeque;

/// Runs whose end is remembered, so that none counts twice.
const RUNS_MAX: usize = 256;

/// Producers whose totals are remembered.
const PRODUCERS_MAX: usize = 128;

/// A total is spread over at most so many steps.
const STEPS_MAX: i64 = 1_000;

/// Counts of one workflow.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Counts {
    pub edges: Edges,
    /// Good runs.
    pub good: Series,
    /// Final failures, as events.
    pub bad: Series,
    /// Failed runs, as reported.
    pub failed: Series,
    /// Failures that are tried again.
    pub retries: Series,
    /// The newest second counted.
    pub newest_at: i64,
    /// Events older than the longest window.
    pub too_old_count: u64,
    /// Runs known to be over, oldest first.
    pub runs: VecDeque<u64>,
    pub producers: Producers,
}

/// One window of runs: failures counted once, whoever told of them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Window {
    /// Failed runs.
    pub failed: u64,
    /// All finished runs.
    pub total: u64,
    /// When the oldest bucket leaves it.
    pub changes_at: Option<i64>,
}

impl Window {
    /// From good ones, failures as events, and failures as reported: the same failure may be told in both ways, and a
    /// producer may tell in only one.
    pub fn of(good: Sum, bad: Sum, failed: Sum) -> Self {
        let failures = bad.n.max(failed.n);
        let changes_at = [good.changes_at, bad.changes_at, failed.changes_at].into_iter().flatten().min();
        Self { failed: failures, total: good.n.saturating_add(failures), changes_at }
    }
}

impl Counts {
    /// Lets everything age up to `now`.
    pub fn age(&mut self, now: i64) {
        let edges = Edges::at(now.max(self.newest_at));
        if edges != self.edges {
            self.edges = edges;
            for series in [&mut self.good, &mut self.bad, &mut self.failed, &mut self.retries] {
                series.age(&edges);
            }
        }
    }

    /// Whether `at` still counts; makes room for it.
    pub fn admit(&mut self, at: i64) -> bool {
        self.newest_at = self.newest_at.max(at);
        self.age(at);
        if self.edges.is_too_old(at) {
            self.too_old_count = self.too_old_count.saturating_add(1);
            return false;
        }
        true
    }

    /// One window that ends before `end`.
    pub fn window(&self, end: i64, length: i64) -> Window {
        Window::of(self.good.sum(end, length), self.bad.sum(end, length), self.failed.sum(end, length))
    }

    /// Finished runs and failures of [from, end), both on the edge of a bucket.
    pub fn between(&self, from: i64, end: i64) -> Window {
        self.window(end, end - from)
    }

    /// Whether a run has ended, as far as it is remembered. A run without an id has not.
    pub fn has_ended(&self, run: Option<u64>) -> bool {
        run.is_some_and(|run| self.runs.contains(&run))
    }

    /// Whether this is the first end of a run; remembers it. A run without an id is always the first.
    pub fn is_first_end(&mut self, run: Option<u64>) -> bool {
        let Some(run) = run else { return true };
        if self.runs.contains(&run) {
            return false;
        }
        if self.runs.len() >= RUNS_MAX {
            self.runs.pop_front();
        }
        if self.runs.len() == self.runs.capacity() {
            self.runs.reserve_exact(32);
        }
        self.runs.push_back(run);
        true
    }

    /// Counts what a producer's totals add, spread evenly over the time since its last report, else since its start, and
    /// returns (good, failed) that were new.
    pub fn take_totals(&mut self, at: i64, report: &Producer, started_at: Option<i64>) -> (u64, u64) {
        let Some(added) = self.producers.add(report) else { return (0, 0) };
        let end = floor(at, TICK);
        let from = added.since.max(started_at.filter(|_| added.is_new_epoch)).unwrap_or(at).min(at);
        // What is reported every few seconds is counted when it is told.
        let length = if at - from <= TICK { 0 } else { end - floor(from, TICK) };
        // Steps of whole buckets.
        let step = floor(length / STEPS_MAX + TICK - 1, TICK).max(TICK);
        let steps = (length / step).max(1);
        let start = if length == 0 { end } else { end - steps * step };
        for place in 0..steps {
            let (second, share) = (start + place * step, |n| share_of(n, place, steps));
            self.good.add(&self.edges, second, share(added.ok));
            self.failed.add(&self.edges, second, share(added.failed));
        }
        (added.ok, added.failed)
    }

    /// Bytes on the heap.
    pub fn heap_size(&self) -> usize {
        let series: usize = [&self.good, &self.bad, &self.failed, &self.retries].iter().map(|s| s.heap_size()).sum();
        series + self.runs.capacity() * size_of::<u64>() + self.producers.heap_size()
    }
}

/// The part of `n` that falls to one of `buckets`: parts differ by one at most and add up.
fn share_of(n: u64, place: i64, buckets: i64) -> u64 {
    let until = |place: i64| u128::from(n) * place.unsigned_abs() as u128 / buckets.unsigned_abs() as u128;
    u64::try_from(until(place + 1) - until(place)).unwrap_or(0)
}

/// What a producer last said: its totals, and as of when.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Producer {
    /// Hash of the producer.
    pub id: u64,
    /// Hash of which start of it.
    pub epoch: u64,
    /// As of when, in s.
    pub at: i64,
    pub ok_total: u64,
    pub failed_total: u64,
}

/// Totals of producers, bounded: whoever was silent longest is forgotten, and what was forgotten never counts again.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Producers {
    pub known: Vec<Producer>,
    /// The latest report of any that was forgotten.
    pub forgotten_until: Option<i64>,
}

struct Added {
    ok: u64,
    failed: u64,
    since: Option<i64>,
    is_new_epoch: bool,
}

impl Producers {
    /// What a report adds; none when it adds nothing: it was overtaken, came twice, or speaks of what was forgotten.
    fn add(&mut self, report: &Producer) -> Option<Added> {
        let at = report.at;
        let earlier = self.known.iter().filter(|p| p.id == report.id && p.at <= at).map(|p| p.at).max();
        if let Some(known) = self.known.iter_mut().find(|p| p.id == report.id && p.epoch == report.epoch) {
            let added = Added {
                ok: report.ok_total.saturating_sub(known.ok_total),
                failed: report.failed_total.saturating_sub(known.failed_total),
                since: Some(known.at.min(at)),
                is_new_epoch: false,
            };
            known.ok_total = known.ok_total.max(report.ok_total);
            known.failed_total = known.failed_total.max(report.failed_total);
            known.at = known.at.max(at);
            return (added.ok > 0 || added.failed > 0).then_some(added);
        }
        let was_forgotten = self.forgotten_until.is_some_and(|until| at <= until) || !self.make_room(at);
        if self.known.len() < PRODUCERS_MAX {
            if self.known.len() == self.known.capacity() {
                self.known.reserve_exact(8);
            }
            self.known.push(*report);
        }
        let (ok, failed) = (report.ok_total, report.failed_total);
        (!was_forgotten).then_some(Added { ok, failed, since: earlier, is_new_epoch: true })
    }

    /// Forgets whoever was silent longest. No when everybody was heard within the hour: a newcomer then only starts to
    /// count, as it can't be told from one that was forgotten a moment ago.
    fn make_room(&mut self, at: i64) -> bool {
        if self.known.len() < PRODUCERS_MAX {
            return true;
        }
        let Some((place, oldest)) = self.known.iter().enumerate().min_by_key(|(_, p)| p.at).map(|(n, p)| (n, p.at))
        else {
            return true;
        };
        if at - oldest < super::buckets::HOUR {
            return false;
        }
        self.known.swap_remove(place);
        self.forgotten_until = self.forgotten_until.max(Some(oldest));
        true
    }

    fn heap_size(&self) -> usize {
        self.known.capacity() * size_of::<Producer>()
    }
}
