//! `slo_input_missing` and `slo_input_inconsistent`: a burn rate is only as good as what it is counted from. Both come with
//! every rule of kind `burn_rate` and are asked for by no other.

use super::absence::seconds;
use super::buckets::{HOUR, TICK, floor};
use super::dead_letter::count;
use super::plan::BurnPlan;
use super::reading::{Context, Read};
use super::rule::Severity;
use super::sentence::{self, span};
use super::state::Reading;

/// Their names and the words of their kinds.
pub(super) const MISSING: &str = "slo_input_missing";
pub(super) const INCONSISTENT: &str = "slo_input_inconsistent";

/// However long a tier takes to notice an outage, missing reports are told by then, in s.
const MISSING_MAX: i64 = 1_800;

/// Both ways of telling failures are in use when each told of one in so long, in s.
const IN_USE: i64 = 3 * 86_400;

/// Reports that come more rarely can't be held against events, in s.
const INTERVAL_MAX: i64 = 600;

/// An event and the report that counts it are at least so far apart, in s, for all that is known.
const SLACK_MIN: i64 = 60;

/// Failures by which they may differ, and the share of the larger number, 1 in so many.
const DIFFER_MIN: u64 = 3;
const DIFFER_ONE_IN: u64 = 20;

impl BurnPlan {
    /// How soon a total outage would be noticed, in s: as long may reports be missing before it is told. None without tiers.
    pub(super) fn noticed_after(&self) -> Option<i64> {
        let fastest = self.tiers.first()?;
        let seconds = fastest.threshold.times(super::exact::Ratio::from(fastest.long.unsigned_abs()))?;
        let seconds = i64::try_from(seconds.num.div_ceil(seconds.den)).unwrap_or(MISSING_MAX);
        Some(seconds.min(MISSING_MAX))
    }
}

/// A workflow that reports its runs like a clock has not done so for three times as long as ever lately, and for as long as an
/// outage would take to be noticed. It pages when a page is held meanwhile: nobody can say whether that goes on. While none is, it
/// may be the end of a working day: it has been silent for as long before.
pub(super) fn read_missing(context: &Context<'_>, after: i64) -> Read {
    let reports = &context.memory.reports;
    let (Some(last), Some(missed_from)) = (reports.last_at, reports.missed_from()) else {
        return (Reading::QUIET, None);
    };
    let known_rest = Some(reports.longest_gap()).filter(|gap| *gap > 0 && !context.holds_page);
    let due = missed_from.max(last + after).max(known_rest.map_or(0, |rest| missed_from + rest)) + 1;
    if context.at < due {
        return (Reading::QUIET, Some(due));
    }
    let Some(usual) = reports.usual_interval() else { return (Reading::QUIET, None) };
    // What is known to be lost is not missing for its sender's sake.
    if context.lost.ends_in_one(context.at) {
        return (Reading::QUIET, Some(context.at + TICK));
    }
    let silent = context.at - last;
    let sentence = || sentence::input_missing(&context.plan.workflow, silent, usual, context.holds_page);
    let severity = if context.holds_page { Severity::Page } else { Severity::Digest };
    (context.finding_of(severity, seconds(silent), sentence), None)
}

/// Failures come as events and in reports, and the two differ by more than a few: what came one way in an hour is not there the other
/// way in that hour and as long before and after as a report may be about.
pub(super) fn read_inconsistent(context: &Context<'_>) -> Read {
    let (counts, reports) = (&context.memory.counts, &context.memory.reports);
    if counts.bad.is_empty() || counts.failed.is_empty() {
        return (Reading::QUIET, None);
    }
    let (Some(last), Some(longest)) = (reports.last_at, reports.longest_interval().filter(|n| *n <= INTERVAL_MAX))
    else {
        return (Reading::QUIET, None);
    };
    // A report speaks of the time before it, and several producers take turns.
    let slack = (3 * longest).clamp(SLACK_MIN, INTERVAL_MAX);
    if reports.missed_from().is_some_and(|from| context.at > from) {
        return (Reading::Unknown(format!("no runs reported for {}", span(context.at - last))), None);
    }
    let end = floor(last, TICK) + TICK;
    let around = HOUR + 2 * slack;
    if reports.first_at.is_none_or(|first| first > end - around) {
        return (Reading::QUIET, None);
    }
    let told = |end: i64, window: i64| (counts.bad.sum(end, window).n, counts.failed.sum(end, window).n);
    let ((events, reported), (events_around, reported_around)) = (told(end - slack, HOUR), told(end, around));
    let (some, others) = told(end, IN_USE);
    let missed = reports.missed_from().map(|from| from + 1);
    let (more, less) = if events.saturating_sub(reported_around) >= reported.saturating_sub(events_around) {
        (events, reported_around)
    } else {
        (reported, events_around)
    };
    let is_told_twice = some > 0 && others > 0;
    if !is_told_twice || more.saturating_sub(less) <= DIFFER_MIN.max(more / DIFFER_ONE_IN) {
        return (Reading::QUIET, missed.filter(|_| context.is_known()));
    }
    let sentence = || sentence::input_inconsistent(&context.plan.workflow, events, reported, HOUR);
    (context.finding(count(more - less), sentence), missed)
}
