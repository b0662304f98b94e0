//! What is remembered of one workflow, and how a signal changes it. Bounded whatever comes in.

use super::buckets::floor;
use super::counts::{Counts, Producer};
use super::reports::Reports;
use super::signal::What;
use super::streak::{Failed, Row};
use crate::event::HeartbeatStatus;

/// The memory of one workflow. Instants are seconds since 1970.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Memory {
    /// When it first gave a sign of life.
    pub first_heard_at: Option<i64>,
    /// When one last arrived.
    pub heard_at: Option<i64>,
    /// When its first run finished.
    pub first_run_at: Option<i64>,
    pub counts: Counts,
    pub reports: Reports,
    pub row: Row,
    pub health: Health,
}

/// The last heartbeat.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Health {
    /// What it said, and when.
    pub last: Option<(HeartbeatStatus, i64)>,
    /// Since when it has not been well.
    pub unwell_since: Option<i64>,
}

impl Health {
    fn take(&mut self, status: HeartbeatStatus, at: i64) {
        if self.last.is_some_and(|(_, last)| at < last) {
            return;
        }
        self.unwell_since = match status {
            HeartbeatStatus::Ok => None,
            HeartbeatStatus::Degraded | HeartbeatStatus::Unhealthy => self.unwell_since.or(Some(at)),
        };
        self.last = Some((status, at));
    }
}

impl Memory {
    /// Remembers that something arrived at `at`, whenever it happened.
    pub fn hear(&mut self, at: i64, what: &What) {
        if *what != What::Resolved {
            self.heard_at = self.heard_at.max(Some(at));
        }
    }

    /// Remembers what was heard of `at`.
    pub fn take(&mut self, at: i64, what: &What) {
        if *what != What::Resolved {
            self.heard_at = self.heard_at.max(Some(at));
            self.first_heard_at = Some(self.first_heard_at.map_or(at, |first| first.min(at)));
        }
        match what {
            What::Runs { ok, failed, .. } => self.runs(at, *ok, *failed),
            What::Totals { producer, epoch, started_at, ok_total, failed_total } => {
                self.reports.take(at);
                let (id, epoch) = (*producer, *epoch);
                let report = Producer { id, epoch, at, ok_total: *ok_total, failed_total: *failed_total };
                if self.counts.admit(at) {
                    let (ok, failed) = self.counts.take_totals(at, &report, *started_at);
                    self.ended(at, ok > 0, Failed { at, events: 0, reported: failed });
                }
            }
            What::Failure { is_final: false, times, .. } => {
                if self.counts.admit(at) {
                    self.counts.retries.add(&self.counts.edges, at, *times);
                }
            }
            What::Failure { is_final: true, run, is_redriven, times, .. } => {
                if !is_redriven && self.counts.is_first_end(*run) && self.counts.admit(at) {
                    self.counts.bad.add(&self.counts.edges, at, *times);
                    self.ended(at, false, Failed { at, events: *times, reported: 0 });
                }
            }
            What::Recovery { run, times, .. } => {
                // A step went through; another step of the same run may still fail, and that is its end.
                if !self.counts.has_ended(*run) && self.counts.admit(at) {
                    self.counts.good.add(&self.counts.edges, at, *times);
                    self.ended(at, true, Failed { at, events: 0, reported: 0 });
                }
            }
            What::Heartbeat { status } => self.health.take(*status, at),
            What::Breaker { .. } | What::Resolved | What::Alive => {}
        }
    }

    fn runs(&mut self, at: i64, ok: u64, failed: u64) {
        self.reports.take(at);
        if self.counts.admit(at) {
            self.counts.good.add(&self.counts.edges, at, ok);
            self.counts.failed.add(&self.counts.edges, at, failed);
            self.ended(at, ok > 0, Failed { at, events: 0, reported: failed });
        }
    }

    /// Runs have ended. Of a report with good and failed ones nobody knows the order: it ends a row.
    fn ended(&mut self, at: i64, is_good: bool, failed: Failed) {
        if is_good || failed.events > 0 || failed.reported > 0 {
            self.first_run_at = Some(self.first_run_at.map_or(at, |first| first.min(at)));
        }
        if is_good {
            self.row.good(at);
        } else if failed.events > 0 || failed.reported > 0 {
            self.row.failed(failed);
        }
    }

    /// How long runs are known, at `now`, in s.
    pub fn history(&self, now: i64) -> i64 {
        self.first_run_at.map_or(0, |first| (now - floor(first, super::buckets::TICK)).max(0))
    }

    /// Bytes that it takes. With something in every bucket of all four series 20 kB, as long as a bucket of up to 5 minutes
    /// counts no more than 255, and an hour no more than 65,535; 44 kB when all count thousands of millions.
    pub fn size(&self) -> usize {
        let gaps = self.reports.gaps.capacity() * size_of::<(i64, i64)>();
        let reports = self.reports.intervals.capacity() * size_of::<u32>() + gaps;
        let intervals = self.row.intervals.capacity() * size_of::<u32>();
        let row = self.row.failures.capacity() * size_of::<Failed>() + intervals;
        size_of::<Self>() + self.counts.heap_size() + reports + row
    }
}
