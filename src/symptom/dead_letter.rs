//! `dead_letter_age`, `dead_letter_depth` and `dead_letter_rate`: states of what waits, as the store says. They clear
//! when dead letters are resolved, and never follow from a burn rate.

use super::absence::seconds;
use super::reading::{Context, Read};
use super::sentence::{self, Waiting};
use super::state::Reading;

/// The oldest is `over` old, and none was resolved for so long: somebody who works through them is left in peace.
pub(super) fn read_age(context: &Context<'_>, over: i64) -> Read {
    let standing = context.standing;
    let Some(oldest) = standing.oldest.as_ref().filter(|_| standing.open_count > 0) else {
        return (Reading::QUIET, None);
    };
    let failed_at = oldest.failed_at.timestamp();
    let resolved_at = standing.last_resolved_at.map(|at| at.timestamp());
    let due = failed_at.max(resolved_at.unwrap_or(i64::MIN)).saturating_add(over);
    if context.at < due {
        return (Reading::QUIET, Some(due));
    }
    let waiting = waiting(context, over);
    (context.finding(seconds(waiting.age), || sentence::dead_letter_age(&waiting)), None)
}

/// More than `over` wait.
pub(super) fn read_depth(context: &Context<'_>, over: u64) -> Read {
    let open = context.standing.open_count;
    if open <= over {
        return (Reading::QUIET, None);
    }
    let sentence = || sentence::dead_letter_depth(&context.plan.workflow, over, &waiting(context, 0));
    (context.finding(count(open), sentence), None)
}

/// More than `over` arrived in the last `window`.
pub(super) fn read_rate(context: &Context<'_>, over: u64, window: i64) -> Read {
    let inside = |at: &i64| *at > context.at - window;
    let arrivals = context.standing.arrivals.iter().map(|at| at.timestamp()).filter(inside);
    let (mut arrived, mut oldest) = (0u64, i64::MAX);
    for at in arrivals {
        arrived += 1;
        oldest = oldest.min(at);
    }
    if arrived <= over {
        return (Reading::QUIET, None);
    }
    let open = context.standing.open_count;
    let sentence = || sentence::dead_letter_rate(&context.plan.workflow, arrived, over, window, open);
    (context.finding(count(arrived), sentence), Some(oldest.saturating_add(window)))
}

fn waiting<'a>(context: &'a Context<'_>, over: i64) -> Waiting<'a> {
    let standing = context.standing;
    let ago = |at: chrono::DateTime<chrono::Utc>| (context.at - at.timestamp()).max(0);
    Waiting {
        noun: context.item_noun(),
        count: standing.open_count,
        downstream: standing.downstream.as_deref(),
        age: standing.oldest.as_ref().map_or(0, |oldest| ago(oldest.failed_at)),
        oldest: standing.oldest.as_ref().map_or("", |oldest| &oldest.name),
        resolved_ago: standing.last_resolved_at.map(|at| ago(at).max(over)),
    }
}

#[expect(clippy::cast_precision_loss, reason = "a count, for people")]
pub(super) fn count(n: u64) -> f64 {
    n as f64
}
