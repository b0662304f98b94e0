//! What symptoms hear of an event: the little that is counted, small enough to be written beside each batch. How it is
//! remembered lives in `memory`; nothing here judges.

use crate::event::{BreakerState, Class, Detail, Disposition, Event, HeartbeatStatus, OutcomeCounts};
use crate::name::WorkflowName;
use chrono::{DateTime, Utc};
use ring::digest::{SHA256, digest};
use serde::{Deserialize, Serialize};
use std::collections::HashMap;

/// One thing that was heard of a workflow.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Signal {
    /// Of which workflow.
    #[serde(rename = "w")]
    pub workflow: WorkflowName,
    /// When it happened, never later than it arrived. Whole milliseconds.
    #[serde(rename = "t", with = "chrono::serde::ts_milliseconds")]
    pub at: DateTime<Utc>,
    /// When it arrived, if that is not the same.
    #[serde(
        rename = "h",
        with = "chrono::serde::ts_milliseconds_option",
        default,
        skip_serializing_if = "Option::is_none"
    )]
    pub arrived_at: Option<DateTime<Utc>>,
    /// What it was.
    #[serde(rename = "k")]
    pub what: What,
}

/// What was heard. Downstreams and error types are as the event gave them; letters and runs are hashes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum What {
    /// Runs that finished since the last report.
    #[serde(rename = "r")]
    Runs {
        /// Good ones.
        #[serde(rename = "o", default, skip_serializing_if = "is_zero")]
        ok: u64,
        /// Failed ones.
        #[serde(rename = "f", default, skip_serializing_if = "is_zero")]
        failed: u64,
        /// The dependency that they called, when the report names one.
        #[serde(rename = "d", default, skip_serializing_if = "Option::is_none")]
        downstream: Option<String>,
    },
    /// Runs that finished since the producer's start.
    #[serde(rename = "c")]
    Totals {
        /// Hash of who counts.
        #[serde(rename = "p")]
        producer: u64,
        /// Hash of which start of the producer.
        #[serde(rename = "e")]
        epoch: u64,
        /// When that start was, in s since 1970, when the epoch is an instant.
        #[serde(rename = "s", default, skip_serializing_if = "Option::is_none")]
        started_at: Option<i64>,
        /// Good ones since then.
        #[serde(rename = "o")]
        ok_total: u64,
        /// Failed ones since then.
        #[serde(rename = "f")]
        failed_total: u64,
    },
    /// A step failed.
    #[serde(rename = "x")]
    Failure {
        /// Nobody tries again.
        #[serde(rename = "n", default, skip_serializing_if = "is_false")]
        is_final: bool,
        /// The dead letter that it left, none when it left none.
        #[serde(rename = "l", default, skip_serializing_if = "Option::is_none")]
        letter: Option<u64>,
        /// The run that it ended; none for a retry, which ends no run.
        #[serde(rename = "r", default, skip_serializing_if = "Option::is_none")]
        run: Option<u64>,
        /// A person had sent the item back to its pipeline.
        #[serde(rename = "v", default, skip_serializing_if = "is_false")]
        is_redriven: bool,
        /// The dependency that failed.
        #[serde(rename = "d", default, skip_serializing_if = "Option::is_none")]
        downstream: Option<String>,
        /// `error.type`; a bare HTTP status is no type.
        #[serde(rename = "e", default, skip_serializing_if = "Option::is_none")]
        error_type: Option<String>,
        /// How many failures that differ in nothing.
        #[serde(rename = "c", default = "one", skip_serializing_if = "is_one")]
        times: u64,
    },
    /// A step that had failed went through.
    #[serde(rename = "g")]
    Recovery {
        /// Its run.
        #[serde(rename = "r", default, skip_serializing_if = "Option::is_none")]
        run: Option<u64>,
        /// The dependency that answered.
        #[serde(rename = "d", default, skip_serializing_if = "Option::is_none")]
        downstream: Option<String>,
        /// How many recoveries that differ in nothing.
        #[serde(rename = "c", default = "one", skip_serializing_if = "is_one")]
        times: u64,
    },
    /// How the sender says it is.
    #[serde(rename = "h")]
    Heartbeat {
        /// Well, badly, or not at all.
        #[serde(rename = "s")]
        status: HeartbeatStatus,
    },
    /// A circuit breaker changed.
    #[serde(rename = "b")]
    Breaker {
        /// Whose.
        #[serde(rename = "d")]
        downstream: String,
        /// To what.
        #[serde(rename = "s")]
        state: BreakerState,
    },
    /// A person is done with a dead letter: says nothing of whether the workflow lives.
    #[serde(rename = "z")]
    Resolved,
    /// A sign of life that counts nowhere: a run that waits for a human, a step left out on purpose.
    #[serde(rename = "a")]
    Alive,
}

impl Signal {
    /// What an event says for symptoms; its time is `occurred_at`, clamped to arrival. None when it says nothing.
    pub fn of(event: &Event) -> Option<Self> {
        let at = event.occurred_at.min(event.received_at);
        let at = DateTime::from_timestamp_millis(at.timestamp_millis())?;
        let arrived_at = Some(event.received_at).filter(|arrived_at| arrived_at.timestamp() != at.timestamp());
        Some(Self { workflow: event.workflow.clone(), at, arrived_at, what: what(event) })
    }

    /// When it arrived.
    pub fn heard_at(&self) -> DateTime<Utc> {
        self.arrived_at.unwrap_or(self.at)
    }

    /// The start of its bucket of 10 s, in s since 1970.
    fn bucket(&self) -> i64 {
        self.at.timestamp().div_euclid(10) * 10
    }
}

fn what(event: &Event) -> What {
    let downstream = event.downstream.clone();
    let run = event.run_id.as_deref().map(hash);
    match &event.detail {
        Detail::Failure => failure(event, run, downstream),
        Detail::Recovery { .. } => What::Recovery { run, downstream, times: 1 },
        Detail::Outcome(OutcomeCounts::Delta { ok, failed }) => What::Runs { ok: *ok, failed: *failed, downstream },
        Detail::Outcome(OutcomeCounts::Cumulative { producer, epoch, ok_total, failed_total }) => What::Totals {
            producer: hash(producer),
            epoch: hash(epoch),
            started_at: instant(epoch).filter(|started| is_near(*started, event.received_at.timestamp())),
            ok_total: *ok_total,
            failed_total: *failed_total,
        },
        Detail::Heartbeat { status, .. } => What::Heartbeat { status: *status },
        Detail::Resolution { .. } => What::Resolved,
        Detail::Breaker { state } => match downstream {
            Some(downstream) => What::Breaker { downstream, state: *state },
            None => What::Alive,
        },
    }
}

fn failure(event: &Event, run: Option<u64>, downstream: Option<String>) -> What {
    if event.class == Class::Interrupted {
        return What::Alive;
    }
    let error_type = event.error.kind.clone();
    let is_redriven = event.redriven_from.is_some() || event.redrive_count.is_some_and(|count| count > 0);
    let of = |is_final, letter, run| What::Failure {
        is_final,
        letter,
        run,
        is_redriven,
        downstream: downstream.clone(),
        error_type: error_type.clone(),
        times: 1,
    };
    match event.disposition {
        Disposition::Retrying => of(false, None, None),
        Disposition::DeadLettered => of(true, Some(hash(&event.dead_letter_key())), run),
        Disposition::Failed => of(true, None, run),
        Disposition::Skipped => What::Alive,
    }
}

/// Whether a producer may have started then: other numbers look like instants too.
fn is_near(started: i64, received: i64) -> bool {
    const RUNS_AT_MOST: i64 = 400 * 86_400;
    (received - RUNS_AT_MOST..=received).contains(&started)
}

/// The instant that an epoch names, in s: RFC 3339, or seconds, ms, µs or ns told apart by size. Most epochs are one.
fn instant(epoch: &str) -> Option<i64> {
    /// 1973 in s: smaller numbers count starts, they are no instants.
    const SMALLEST: i64 = 100_000_000;
    let Ok(mut number) = epoch.trim().parse::<i64>() else {
        return DateTime::parse_from_rfc3339(epoch.trim()).ok().map(|at| at.timestamp());
    };
    while number >= SMALLEST * 1_000 {
        number /= 1_000;
    }
    (number >= SMALLEST).then_some(number)
}

/// The first 8 bytes of SHA-256: the same in every process and version.
pub(super) fn hash(text: &str) -> u64 {
    let digest = digest(&SHA256, text.as_bytes());
    digest.as_ref().iter().take(8).fold(0, |sum, byte| (sum << 8) | u64::from(*byte))
}

/// Merges what may be merged: neighbours of one workflow within one bucket of 10 s, where no order, identity or end of
/// a row of failures is lost. What is counted stays the same, and so does when.
pub fn fold(signals: Vec<Signal>) -> Vec<Signal> {
    let mut kept: Vec<Signal> = Vec::new();
    let mut last: HashMap<WorkflowName, Vec<usize>> = HashMap::new();
    for signal in signals {
        let own = match last.get_mut(&signal.workflow) {
            Some(own) => own,
            None => last.entry(signal.workflow.clone()).or_default(),
        };
        let fits = |at: &usize| {
            kept.get(*at).is_some_and(|other| other.bucket() == signal.bucket() && merges(&other.what, &signal.what))
        };
        let place = own.iter().rev().take(NEIGHBOURS_MAX).copied().find(fits).or_else(|| middle(&kept, own, &signal));
        match place.and_then(|at| kept.get_mut(at)) {
            Some(other) => merge(other, signal),
            None => {
                own.push(kept.len());
                kept.push(signal);
            }
        }
    }
    kept
}

/// Of a row of failed reports the first and the last are kept, and so how long it is; what is between joins the last.
fn middle(kept: &[Signal], own: &[usize], signal: &Signal) -> Option<usize> {
    let [.., first, last] = own else { return None };
    let is_row = |other: &Signal| other.bucket() == signal.bucket() && is_failed_only(&other.what, &signal.what);
    let is_later = kept.get(*last).is_some_and(|other| other.at <= signal.at);
    let fits = is_later && kept.get(*first).is_some_and(is_row) && kept.get(*last).is_some_and(is_row);
    fits.then_some(*last)
}

fn is_failed_only(one: &What, other: &What) -> bool {
    match (one, other) {
        (What::Runs { ok: 0, failed: 1.., downstream: d }, What::Runs { ok: 0, failed: 1.., downstream: e }) => d == e,
        _ => false,
    }
}

/// How far back a neighbour is looked for.
const NEIGHBOURS_MAX: usize = 8;

fn merges(one: &What, other: &What) -> bool {
    match (one, other) {
        // A report with a good run ends a row of failures, wherever in it that run was.
        (What::Runs { ok: a, downstream: d, .. }, What::Runs { ok: b, downstream: e, .. }) => {
            *a > 0 && *b > 0 && d == e
        }
        (
            What::Failure { is_final: false, downstream: d, error_type: t, .. },
            What::Failure { is_final: false, downstream: e, error_type: u, .. },
        ) => d == e && t == u,
        (What::Recovery { run: None, downstream: d, .. }, What::Recovery { run: None, downstream: e, .. }) => d == e,
        (What::Totals { producer: a, epoch: b, .. }, What::Totals { producer: c, epoch: d, .. }) => a == c && b == d,
        (What::Alive, What::Alive) | (What::Resolved, What::Resolved) => true,
        _ => false,
    }
}

fn merge(kept: &mut Signal, signal: Signal) {
    let heard_at = kept.heard_at().max(signal.heard_at());
    match (&mut kept.what, signal.what) {
        (What::Runs { ok, failed, .. }, What::Runs { ok: more, failed: worse, .. }) => {
            *ok = ok.saturating_add(more);
            *failed = failed.saturating_add(worse);
        }
        (What::Failure { times, .. }, What::Failure { times: more, .. })
        | (What::Recovery { times, .. }, What::Recovery { times: more, .. }) => *times = times.saturating_add(more),
        (What::Totals { ok_total, failed_total, .. }, What::Totals { ok_total: ok, failed_total: failed, .. }) => {
            *ok_total = (*ok_total).max(ok);
            *failed_total = (*failed_total).max(failed);
        }
        _ => {}
    }
    kept.at = kept.at.max(signal.at);
    kept.arrived_at = Some(heard_at).filter(|heard_at| *heard_at != kept.at);
}

fn one() -> u64 {
    1
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks for a reference")]
fn is_one(n: &u64) -> bool {
    *n == 1
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks for a reference")]
fn is_zero(n: &u64) -> bool {
    *n == 0
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks for a reference")]
fn is_false(flag: &bool) -> bool {
    !*flag
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_epoch_may_be_an_instant() {
        for (epoch, second) in [
            ("2026-12-30T00:00:00Z", Some(1_798_588_800)),
            ("1798588800", Some(1_798_588_800)),
            ("1798588800123", Some(1_798_588_800)),
            ("1798588800123456789", Some(1_798_588_800)),
            ("7", None),
            ("boot-41", None),
        ] {
            assert_eq!(instant(epoch), second, "{epoch}");
        }
        assert!(!is_near(202_611_301, 1_798_588_800), "a date written as digits");
    }

    #[test]
    fn a_row_of_failed_reports_keeps_its_first_and_its_last() {
        let report = |second: i64, ok, failed| Signal {
            workflow: "busy".into(),
            at: DateTime::from_timestamp(1_798_588_800 + second, 0).unwrap(),
            arrived_at: None,
            what: What::Runs { ok, failed, downstream: None },
        };
        let folded = fold((0..9).map(|second| report(second, 0, 1)).collect());
        assert_eq!(folded, [report(0, 0, 1), report(8, 0, 8)]);
        let mixed = fold(vec![report(0, 0, 1), report(1, 3, 0), report(2, 0, 1), report(3, 2, 1)]);
        assert_eq!(mixed, [report(0, 0, 1), report(3, 5, 1), report(2, 0, 1)]);
    }

    #[test]
    fn a_signal_is_short_when_written() {
        let signal = Signal {
            workflow: "busy".into(),
            at: DateTime::from_timestamp_millis(1_798_588_800_123).unwrap(),
            arrived_at: None,
            what: What::Runs { ok: 3, failed: 0, downstream: None },
        };
        assert_eq!(serde_json::to_string(&signal).unwrap(), r#"{"w":"busy","t":1798588800123,"k":{"r":{"o":3}}}"#);
    }
}
