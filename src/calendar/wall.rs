//! What a clock on the wall reads, and when it reads it. Cron and hours live in the other files of this room.

use chrono::{DateTime, LocalResult, NaiveDateTime, TimeDelta, TimeZone, Utc};
use chrono_tz::{GapInfo, Tz};

/// Longest stretch that clocks ever repeat or skip: a whole day, when a country moves over the date line.
const SHIFT_MAX: TimeDelta = TimeDelta::hours(25);

/// What a clock in `zone` reads at `at`.
pub(super) fn reading(at: DateTime<Utc>, zone: Tz) -> NaiveDateTime {
    at.with_timezone(&zone).naive_local()
}

/// The first and the last instant at which a clock in `zone` reads `local`; none in a gap, twice the same when the
/// time comes once.
pub(super) fn passes(local: NaiveDateTime, zone: Tz) -> Option<(DateTime<Utc>, DateTime<Utc>)> {
    match zone.from_local_datetime(&local) {
        LocalResult::Single(at) => Some((at.to_utc(), at.to_utc())),
        LocalResult::Ambiguous(a, b) => Some((a.min(b).to_utc(), a.max(b).to_utc())),
        LocalResult::None => None,
    }
}

/// The first instant at which a clock in `zone` reads `local` or later. It never runs backwards: a later local time
/// never comes at an earlier instant.
pub(super) fn first_instant(local: NaiveDateTime, zone: Tz) -> DateTime<Utc> {
    match passes(local, zone) {
        Some((first, _)) => first,
        None => gap_end(local, zone),
    }
}

/// End of the gap that `local` is in.
fn gap_end(local: NaiveDateTime, zone: Tz) -> DateTime<Utc> {
    let known = GapInfo::new(&local, &zone).and_then(|gap| gap.end);
    // The zone's tables end before the gap does; what they say last is then the best that can be said.
    known.unwrap_or_else(|| zone.from_utc_datetime(&local)).to_utc()
}

/// How far clocks are about to be put back at or soon after `at`, in a way that makes times up to `reading(at)` come
/// again; zero when they are not.
pub(super) fn repeat_ahead(at: DateTime<Utc>, zone: Tz) -> TimeDelta {
    let drop = reading(at, zone) - at.naive_utc() - (reading(at + SHIFT_MAX, zone) - (at + SHIFT_MAX).naive_utc());
    let repeats = drop > TimeDelta::zero() && reading(at + drop, zone) <= reading(at, zone);
    if repeats { drop } else { TimeDelta::zero() }
}

/// How long ago a clock in `zone` first read what it reads at `at`; zero when it reads it for the first time.
pub(super) fn repeat_behind(at: DateTime<Utc>, zone: Tz) -> TimeDelta {
    match passes(reading(at, zone), zone) {
        Some((first, _)) => at - first,
        None => TimeDelta::zero(),
    }
}
