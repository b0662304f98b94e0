//! `failure_trend` and `retry_pressure`: more than is usual, and more tries than there is work. Ticket material: an
//! unusual number is no broken promise.

use super::buckets::{HOUR, KEPT_MAX, floor};
use super::dead_letter::count;
use super::memory::Memory;
use super::reading::{Context, Read};
use super::sentence;
use super::state::Reading;

/// Fewer are no trend.
const SEEN_MIN: u64 = 5;

/// Earlier weeks that are looked at, and how many there must be.
const WEEKS: i64 = 4;
const WEEKS_MIN: usize = 2;

const WEEK: i64 = 7 * 86_400;

/// The longest window of which counts of all these weeks are kept, in s.
pub(super) const WINDOW_MAX: i64 = KEPT_MAX - WEEKS * WEEK;

/// Finished runs below which retries per run say nothing.
const FINISHED_MIN: u64 = 3;

/// Failures and retries of the last `window` are more than `factor` times what the same hours of earlier weeks had: at
/// least 5, with at least two such weeks, against the middle one of them (and never less than one). Where runs are
/// reported, their share must have grown as much: more work is no trend. What happens now is no baseline for a week.
pub(super) fn read_trend(context: &Context<'_>, factor: f64, window: i64) -> Read {
    let (at, memory) = (context.at, context.memory);
    let seen = Seen::of(memory, at, window);
    let next = seen.changes_at.filter(|_| seen.troubles >= SEEN_MIN).map(|leaves| leaves.min(floor(at, HOUR) + HOUR));
    if seen.troubles < SEEN_MIN {
        return (Reading::QUIET, None);
    }
    let known = |week: &i64| memory.first_heard_at.is_some_and(|first| first <= at - week * WEEK);
    let weeks: Vec<Usual> = (1..=WEEKS).filter(known).map(|week| Usual::of(memory, at - week * WEEK, window)).collect();
    if weeks.len() < WEEKS_MIN {
        return (Reading::QUIET, next);
    }
    let usual = median(weeks.iter().map(|week| week.troubles).collect());
    let is_more = count(seen.troubles) > factor * usual.max(1.0);
    let runs: f64 = weeks.iter().map(|week| week.finished).sum();
    let troubles: f64 = weeks.iter().map(|week| week.troubles).sum();
    let is_more_of_runs = memory.reports.first_at.is_none()
        || runs < 1.0
        || seen.finished == 0
        || count(seen.troubles) / count(seen.finished) > factor * troubles / runs;
    if !(is_more && is_more_of_runs) {
        return (Reading::QUIET, next);
    }
    let sentence = || sentence::failure_trend(&context.plan.workflow, seen.troubles, window, usual, weeks.len());
    (context.finding(count(seen.troubles) / usual.max(1.0), sentence), next)
}

struct Seen {
    troubles: u64,
    finished: u64,
    changes_at: Option<i64>,
}

impl Seen {
    fn of(memory: &Memory, at: i64, window: i64) -> Self {
        let runs = memory.counts.window(at, window);
        let retries = memory.counts.retries.sum(at, window);
        Self {
            troubles: runs.failed + retries.n,
            finished: runs.total,
            changes_at: [runs.changes_at, retries.changes_at].into_iter().flatten().min(),
        }
    }
}

struct Usual {
    troubles: f64,
    finished: f64,
}

impl Usual {
    /// Old counts are by the hour, and what fails at the start of each hour must not look like little before it is over:
    /// of the whole hours around the window the busier ones count.
    fn of(memory: &Memory, end: i64, window: i64) -> Self {
        let hour = floor(end, HOUR);
        let (before, after) = (Self::until(memory, hour, window), Self::until(memory, hour + HOUR, window));
        if before.troubles > after.troubles { before } else { after }
    }

    fn until(memory: &Memory, end: i64, window: i64) -> Self {
        let counts = &memory.counts;
        let sum = |series: &super::buckets::Series| series.spread(end - window, end);
        let failures = sum(&counts.bad).max(sum(&counts.failed));
        Self { troubles: failures + sum(&counts.retries), finished: failures + sum(&counts.good) }
    }
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    let half = values.len() / 2;
    match (values.get(half), half.checked_sub(1).and_then(|before| values.get(before))) {
        (Some(upper), Some(lower)) if values.len().is_multiple_of(2) => f64::midpoint(*upper, *lower),
        (Some(middle), _) => *middle,
        (None, _) => 0.0,
    }
}

/// More than `over` retries for each run that finished in the last `window`; nothing is said of fewer than three runs.
pub(super) fn read_retry_pressure(context: &Context<'_>, over: f64, window: i64) -> Read {
    let counts = &context.memory.counts;
    let retries = counts.retries.sum(context.at, window);
    if retries.n == 0 {
        return (Reading::QUIET, None);
    }
    let runs = counts.window(context.at, window);
    let next = [retries.changes_at, runs.changes_at].into_iter().flatten().min();
    if runs.total < FINISHED_MIN {
        return (Reading::QUIET, next.filter(|_| context.is_known()));
    }
    let each = count(retries.n) / count(runs.total);
    if each <= over {
        return (Reading::QUIET, next);
    }
    let (workflow, noun) = (&context.plan.workflow, context.run_noun());
    let sentence = || sentence::retry_pressure(workflow, noun, retries.n, runs.total, window, over);
    (context.finding(each, sentence), next)
}
