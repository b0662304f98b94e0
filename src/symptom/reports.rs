//! How regularly a workflow's runs are reported, and where reports are missing. A gap is no evidence of health.

use std::collections::VecDeque;

/// How many of the last intervals decide what is usual.
const INTERVALS: usize = 16;

/// Gaps that are remembered.
const GAPS_MAX: usize = 32;

/// Gaps are remembered for a week and a day, in s: as long as a default window may ask for them, and until the next weekend.
const GAP_AGE_MAX: i64 = 8 * 86_400;

/// Reports are not missed sooner than this, in s.
const PATIENCE_MIN: i64 = 60;

/// When runs were reported.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Reports {
    /// The first report ever.
    pub first_at: Option<i64>,
    /// The latest.
    pub last_at: Option<i64>,
    /// The last intervals between two of them, in s, oldest first.
    pub intervals: VecDeque<u32>,
    /// Times without reports, longer than usual: [last before, first after).
    pub gaps: VecDeque<(i64, i64)>,
    pub lateness: Lateness,
}

/// How late reports are known: by the last looks that found a newer one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Lateness {
    /// The latest report of the look before.
    pub seen_at: Option<i64>,
    /// How old the newest report was at the last looks that found one.
    pub ages: [i64; 3],
}

impl Lateness {
    fn look(&mut self, now: i64, last_at: i64) {
        // What the first look finds may be what is left of a producer that stopped long ago.
        if self.seen_at.is_some_and(|seen| last_at > seen) {
            let [_, second, third] = self.ages;
            self.ages = [second, third, now - last_at];
        }
        self.seen_at = self.seen_at.max(Some(last_at));
    }

    /// The least of the last ages, when reports are not missed sooner than that; else nothing.
    fn usual(&self) -> i64 {
        let least = self.ages.into_iter().min().unwrap_or(0);
        if least > PATIENCE_MIN { least } else { 0 }
    }
}

impl Reports {
    /// A report of `at`. One that was overtaken says nothing of the interval.
    pub fn take(&mut self, at: i64) {
        self.first_at = Some(self.first_at.map_or(at, |first| first.min(at)));
        let Some(last) = self.last_at.filter(|last| *last < at) else {
            self.last_at = self.last_at.max(Some(at));
            return;
        };
        if self.patience().is_some_and(|patience| at - last > patience) {
            // First, as room for one more would be room for twice as many.
            while self.gaps.len() >= GAPS_MAX || self.gaps.front().is_some_and(|(_, end)| at - end > GAP_AGE_MAX) {
                self.gaps.pop_front();
            }
            self.gaps.push_back((last, at));
        }
        if self.intervals.len() >= INTERVALS {
            self.intervals.pop_front();
        }
        self.intervals.push_back(u32::try_from(at - last).unwrap_or(u32::MAX));
        self.last_at = Some(at);
    }

    /// The longest of the last intervals, in s.
    pub fn longest_interval(&self) -> Option<i64> {
        self.intervals.iter().max().map(|longest| i64::from(*longest))
    }

    /// The middle one of the last intervals, in s; none when they are few, or so uneven that nobody reports by the clock.
    pub fn usual_interval(&self) -> Option<i64> {
        let mut intervals: Vec<u32> = self.intervals.iter().copied().collect();
        intervals.sort_unstable();
        let middle = intervals.get(intervals.len() / 2).filter(|_| intervals.len() >= INTERVALS / 2)?;
        (intervals.last()? / 2 <= *middle).then_some(i64::from(*middle))
    }

    /// Three times the longest of the last intervals: a producer that reports at irregular times is not missed between
    /// two of them. None before there was an interval.
    fn patience(&self) -> Option<i64> {
        let longest = self.intervals.iter().max()?;
        Some((i64::from(*longest) * 3).max(PATIENCE_MIN))
    }

    /// Notes how late they are, at a look that may find a newer one.
    pub fn look(&mut self, now: i64) {
        if let Some(last_at) = self.last_at {
            self.lateness.look(now, last_at);
        }
    }

    /// The longest time without reports that is remembered, in s; 0 when there was none.
    pub fn longest_gap(&self) -> i64 {
        self.gaps.iter().map(|(from, to)| to - from).max().unwrap_or(0)
    }

    /// From when on reports are missed unless one comes; none when none is expected.
    pub fn missed_from(&self) -> Option<i64> {
        Some(self.last_at? + self.patience()? + self.lateness.usual())
    }

    /// Gaps, and the one that lasts until `now` when reports are missed.
    pub fn gaps_until(&self, now: i64) -> impl Iterator<Item = (i64, i64)> {
        let open = self.missed_from().filter(|from| now > *from).and(self.last_at).map(|last| (last, now));
        self.gaps.iter().copied().chain(open)
    }
}
