//! `absence` and `unhealthy`: what is not heard, and what says of itself that it is not well.

use super::reading::{Context, Read};
use super::sentence;
use super::state::Reading;
use crate::event::HeartbeatStatus;

/// Nothing heard for `every` and `grace`, counted from the last sign of life, else from when the workflow was first known.
pub(super) fn read_absence(context: &Context<'_>, every: i64, grace: i64) -> Read {
    let heard_at = context.memory.heard_at;
    // One that was heard long before it was expected is missed from when it was.
    let is_missed = context.before.is_some_and(|state| state.is_firing());
    let since = if is_missed { heard_at.or(context.first_known_at) } else { heard_at.max(context.first_known_at) };
    let Some(since) = since else { return (Reading::QUIET, None) };
    let due = since.saturating_add(every).saturating_add(grace);
    if context.at < due {
        return (Reading::QUIET, Some(due));
    }
    let silent = context.at - heard_at.unwrap_or(since);
    let sentence = || sentence::absence(&context.plan.workflow, silent, every, heard_at.is_some());
    (context.finding(seconds(silent), sentence), None)
}

/// The last heartbeat says `unhealthy`, or it has not been well for `degraded_for`.
pub(super) fn read_unhealthy(context: &Context<'_>, degraded_for: i64) -> Read {
    let health = &context.memory.health;
    let (Some((status, said_at)), Some(since)) = (health.last, health.unwell_since) else {
        return (Reading::QUIET, None);
    };
    let due = match status {
        HeartbeatStatus::Ok => return (Reading::QUIET, None),
        HeartbeatStatus::Unhealthy => since,
        HeartbeatStatus::Degraded => since.saturating_add(degraded_for),
    };
    if context.at < due && status == HeartbeatStatus::Degraded {
        return (Reading::QUIET, Some(due));
    }
    let lasts = (context.at - since).max(0);
    let said_ago = (context.at - said_at).max(0);
    let sentence = || sentence::unhealthy(&context.plan.workflow, status.as_str(), lasts, said_ago);
    (context.finding(seconds(lasts), sentence), None)
}

#[expect(clippy::cast_precision_loss, reason = "seconds of at most some years")]
pub(super) fn seconds(length: i64) -> f64 {
    length as f64
}
