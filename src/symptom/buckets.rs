//! Counts by time: fine where windows are short, coarse where they are long, so that 30 days fit a few kilobytes and
//! every window is summed afresh from whole buckets. What is counted, and what it means, lives elsewhere.
//!
//! A bucket covers 10 s up to an age of 1 h, 60 s to 6 h, 5 min to 3 days and 1 h to 30 days. A window is whole buckets;
//! the oldest counts whole although only part of it is inside. Empty buckets are not kept.

use std::collections::VecDeque;

/// Size of a bucket, and up to which age of its events, in s.
struct Level {
    size: i64,
    age_max: i64,
}

/// From fine to coarse; each size divides the next, and each age leaves a coarser bucket of slack.
const LEVELS: [Level; 4] = [
    Level { size: 10, age_max: 3_600 + 60 },
    Level { size: 60, age_max: 21_600 + 300 },
    Level { size: 300, age_max: 259_200 + 3_600 },
    Level { size: HOUR, age_max: KEPT_MAX + HOUR },
];

pub(super) const HOUR: i64 = 3_600;

/// How long counts are kept for windows, in s.
pub(super) const KEPT_MAX: i64 = 30 * 86_400;

/// Size of the finest bucket, in s; looks are at its multiples.
pub(super) const TICK: i64 = 10;

/// The start of the bucket of `size` that `at` falls in.
pub(super) fn floor(at: i64, size: i64) -> i64 {
    at.div_euclid(size) * size
}

/// Where each level starts: older events belong to the next.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Edges([i64; LEVELS.len()]);

impl Edges {
    /// The edges at `now`.
    pub fn at(now: i64) -> Self {
        let mut edges = [0; LEVELS.len()];
        for (place, level) in LEVELS.iter().enumerate() {
            let next = LEVELS.get(place + 1).map_or(level.size, |coarser| coarser.size);
            if let Some(edge) = edges.get_mut(place) {
                *edge = floor(now - level.age_max, next);
            }
        }
        Self(edges)
    }

    /// Whether events of `at` are too old to be counted.
    pub fn is_too_old(&self, at: i64) -> bool {
        self.0.last().is_some_and(|edge| at < *edge)
    }

    fn level_of(&self, at: i64) -> Option<usize> {
        self.0.iter().position(|edge| at >= *edge)
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Bucket {
    /// Start, in s since 1970.
    start: u32,
    /// Saturates, at four thousand million an hour.
    n: u32,
}

/// One thing that is counted.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Series {
    rows: [VecDeque<Bucket>; LEVELS.len()],
}

/// What a window holds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Sum {
    /// So many.
    pub n: u64,
    /// When the oldest bucket of it leaves, in s since 1970; none when it is empty.
    pub changes_at: Option<i64>,
}

impl Series {
    /// Counts `n` at `at`, in the bucket of its age; nothing when it is too old.
    pub fn add(&mut self, edges: &Edges, at: i64, n: u64) {
        let Some(place) = edges.level_of(at).filter(|_| n > 0) else { return };
        let (Some(level), Some(row)) = (LEVELS.get(place), self.rows.get_mut(place)) else { return };
        let Ok(start) = u32::try_from(floor(at, level.size)) else { return };
        put(row, Bucket { start, n: u32::try_from(n).unwrap_or(u32::MAX) });
    }

    /// Moves what has aged to coarser buckets, and forgets what is too old.
    pub fn age(&mut self, edges: &Edges) {
        for (place, edge) in edges.0.iter().enumerate() {
            let is_old = |row: &VecDeque<Bucket>| row.front().is_some_and(|bucket| i64::from(bucket.start) < *edge);
            while self.rows.get(place).is_some_and(is_old) {
                let Some(mut bucket) = self.rows.get_mut(place).and_then(VecDeque::pop_front) else { break };
                let next = LEVELS.get(place + 1).zip(self.rows.get_mut(place + 1));
                if let Some((level, row)) = next {
                    bucket.start = u32::try_from(floor(bucket.start.into(), level.size)).unwrap_or(bucket.start);
                    put(row, bucket);
                }
            }
        }
    }

    /// Sums windows that end before `end`, shortest first, in one pass from new to old.
    pub fn sums(&self, end: i64, windows: &[i64], sums: &mut [Sum]) {
        let (mut n, mut oldest, mut place) = (0u64, None, 0);
        let take = |window: i64, sum: &mut Sum, n: u64, oldest: Option<i64>| {
            *sum = Sum { n, changes_at: oldest.map(|end_of_bucket: i64| end_of_bucket + window) };
        };
        'rows: for (row, level) in self.rows.iter().zip(&LEVELS) {
            for bucket in row.iter().rev() {
                let start = i64::from(bucket.start);
                if start >= end {
                    continue;
                }
                while let (Some(window), Some(sum)) = (windows.get(place), sums.get_mut(place)) {
                    if start + level.size > end - window {
                        break;
                    }
                    take(*window, sum, n, oldest);
                    place += 1;
                }
                if place >= windows.len() {
                    break 'rows;
                }
                n += u64::from(bucket.n);
                oldest = Some(start + level.size);
            }
        }
        while let (Some(window), Some(sum)) = (windows.get(place), sums.get_mut(place)) {
            take(*window, sum, n, oldest);
            place += 1;
        }
    }

    /// The sum of one window.
    pub fn sum(&self, end: i64, window: i64) -> Sum {
        let mut sums = [Sum::default()];
        self.sums(end, &[window], &mut sums);
        sums[0]
    }

    /// What falls in [from, end), a coarse bucket by its part that is inside. For baselines only.
    #[expect(clippy::cast_precision_loss, reason = "a baseline, not a threshold")]
    pub fn spread(&self, from: i64, end: i64) -> f64 {
        let inside = |start: i64, size: i64| ((start + size).min(end) - start.max(from)).max(0) as f64 / size as f64;
        let near = self.iter().skip_while(|(start, ..)| *start >= end);
        near.take_while(|(start, size, _)| start + size > from)
            .map(|(start, size, n)| inside(start, size) * n as f64)
            .sum()
    }

    /// Whether nothing is counted.
    pub fn is_empty(&self) -> bool {
        self.rows.iter().all(VecDeque::is_empty)
    }

    /// Buckets as (start, size, n), newest first.
    pub fn iter(&self) -> impl Iterator<Item = (i64, i64, u64)> {
        let rows = self.rows.iter().zip(&LEVELS);
        rows.flat_map(|(row, level)| row.iter().rev().map(|b| (i64::from(b.start), level.size, u64::from(b.n))))
    }

    /// Puts a bucket back that [`Series::iter`] gave, oldest or newest first alike.
    pub fn restore(&mut self, start: i64, size: i64, n: u64) {
        let row = LEVELS.iter().position(|level| level.size == size).and_then(|place| self.rows.get_mut(place));
        if let (Some(row), Ok(start), Ok(n)) = (row, u32::try_from(start), u32::try_from(n)) {
            put(row, Bucket { start, n });
        }
    }

    /// Bytes on the heap.
    pub fn heap_size(&self) -> usize {
        self.rows.iter().map(|row| row.capacity() * size_of::<Bucket>()).sum()
    }
}

/// How many buckets a row grows by: doubling would waste what the coarse levels save.
const GROWTH: usize = 16;

fn put(row: &mut VecDeque<Bucket>, bucket: Bucket) {
    // Nearly always the newest, so the search is from the end.
    let place = row.iter().rposition(|other| other.start <= bucket.start);
    if let Some(same) = place.and_then(|at| row.get_mut(at)).filter(|other| other.start == bucket.start) {
        same.n = same.n.saturating_add(bucket.n);
        return;
    }
    if row.len() == row.capacity() {
        row.reserve_exact(GROWTH);
    }
    row.insert(place.map_or(0, |at| at + 1), bucket);
}
