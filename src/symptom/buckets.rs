//! Counts by time: fine where windows are short, coarse where they are long, so that 30 days fit a few kilobytes and
//! every window is summed afresh from whole buckets. What is counted, and what it means, lives elsewhere.
//!
//! A bucket covers 10 s up to an age of 1 h, 60 s to 6 h, 5 min to 3 days and 1 h to 30 days. A window is whole buckets;
//! the oldest counts whole although only part of it is inside. Buckets at the ends of a level are never empty.

use super::strip::Strip;

/// Size of a bucket, and up to which age of its events, in s.
struct Level {
    size: i64,
    age_max: i64,
    /// Buckets that it has at most.
    len_max: usize,
}

impl Level {
    /// Two hours are for the edge, which waits for a coarser bucket, and for clocks that are ahead.
    const fn new(size: i64, age_max: i64) -> Self {
        Self { size, age_max, len_max: ((age_max + 2 * HOUR) / size) as usize }
    }

    /// The start of a place of its row, in s since 1970.
    fn start(&self, row: &Strip, place: usize) -> i64 {
        (i64::from(row.first()) + place as i64) * self.size
    }

    /// How many places of its row are over at `at`.
    fn over(&self, row: &Strip, at: i64) -> usize {
        let (length, len) = (at - self.start(row, 0), row.len());
        // Nearly always all or none, and a division takes long.
        if length < self.size {
            0
        } else if at >= self.start(row, len) {
            len
        } else {
            (length / self.size) as usize
        }
    }

    /// How many places of its row have begun before `at`.
    fn begun(&self, row: &Strip, at: i64) -> usize {
        self.over(row, at + self.size - 1)
    }
}

/// From fine to coarse; each size divides the next, and each age leaves a coarser bucket of slack.
const LEVELS: [Level; 4] = [
    Level::new(10, 3_600 + 60),
    Level::new(60, 21_600 + 300),
    Level::new(300, 259_200 + 3_600),
    Level::new(HOUR, KEPT_MAX + HOUR),
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

/// One thing that is counted. Full, it has some 2,170 buckets: 2.2 kB while none of them counts more than 255, 4.4 kB up to
/// 65,535, and 8.8 kB with thousands of millions.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Series {
    rows: [Strip; LEVELS.len()],
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
        self.put(place, at, u32::try_from(n).unwrap_or(u32::MAX));
    }

    /// Counts `n` in the bucket of a level that `at` falls in.
    fn put(&mut self, place: usize, at: i64, n: u32) {
        let (Some(level), Some(row)) = (LEVELS.get(place), self.rows.get_mut(place)) else { return };
        // No earlier than 1970, and no later than a u32 of seconds holds.
        let number = u32::try_from(at.div_euclid(level.size)).ok();
        if let Some(number) = number.filter(|number| i64::from(*number) * level.size <= u32::MAX.into()) {
            row.add(number, n, level.len_max);
        }
    }

    /// Moves what has aged to coarser buckets, and forgets what is too old.
    pub fn age(&mut self, edges: &Edges) {
        for (place, (edge, level)) in edges.0.iter().zip(&LEVELS).enumerate() {
            if self.rows.get(place).is_none_or(|row| row.is_empty() || level.start(row, 0) >= *edge) {
                continue;
            }
            let oldest = u32::try_from(edge / level.size).unwrap_or(u32::MAX);
            while let Some((number, n)) = self.rows.get_mut(place).and_then(|row| row.pop_before(oldest)) {
                self.put(place + 1, i64::from(number) * level.size, n);
            }
            if let Some(row) = self.rows.get_mut(place) {
                row.shrink();
            }
        }
    }

    /// Sums windows that end before `end`, shortest first, in one pass from new to old.
    pub fn sums(&self, end: i64, windows: &[i64], sums: &mut [Sum]) {
        let (mut n, mut oldest) = (0u64, None);
        let mut left = windows.iter().zip(sums).peekable();
        for (row, level) in self.rows.iter().zip(&LEVELS).filter(|(row, _)| !row.is_empty()) {
            let mut until = level.begun(row, end);
            while let Some((window, sum)) = left.peek_mut() {
                let from = level.over(row, end - **window).min(until);
                let (part, first) = row.sum(from..until);
                n += part;
                oldest = first.map(|place| level.start(row, place) + level.size).or(oldest);
                until = from;
                // What is older, if anything is, is in the next row.
                if from == 0 {
                    break;
                }
                **sum = Sum { n, changes_at: oldest.map(|end_of_bucket| end_of_bucket + **window) };
                left.next();
            }
        }
        for (window, sum) in left {
            *sum = Sum { n, changes_at: oldest.map(|end_of_bucket| end_of_bucket + window) };
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
        let mut sum = 0.0;
        for (row, level) in self.rows.iter().zip(&LEVELS) {
            let until = level.begun(row, end);
            let first = level.over(row, from).min(until);
            for (number, n) in row.filled(first..until) {
                sum += inside(i64::from(number) * level.size, level.size) * f64::from(n);
            }
            // Anything older is too old.
            if first > 0 {
                break;
            }
        }
        sum
    }

    /// Whether nothing is counted.
    pub fn is_empty(&self) -> bool {
        self.rows.iter().all(Strip::is_empty)
    }

    /// Buckets that are not empty as (start, size, n), newest first.
    pub fn iter(&self) -> impl Iterator<Item = (i64, i64, u64)> {
        let rows = self.rows.iter().zip(&LEVELS);
        rows.flat_map(|(row, level)| {
            row.filled(0..row.len()).map(|(number, n)| (i64::from(number) * level.size, level.size, u64::from(n)))
        })
    }

    /// Puts a bucket back that [`Series::iter`] gave, oldest or newest first alike. Bytes may be damaged: of buckets that
    /// are further apart than their level reaches the newest stay, as at the next look all others would be too old.
    pub fn restore(&mut self, start: i64, size: i64, n: u64) {
        let place = LEVELS.iter().position(|level| level.size == size);
        if let (Some(place), Ok(n)) = (place, u32::try_from(n)) {
            self.put(place, start, n);
        }
    }

    /// Bytes on the heap.
    pub fn heap_size(&self) -> usize {
        self.rows.iter().map(Strip::heap_size).sum()
    }
}
