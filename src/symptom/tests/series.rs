//! Counts by time are the same as those of a plain map, however they are packed.

use super::*;
use crate::symptom::buckets::{Edges, Series, Sum};
use proptest::prelude::*;

/// Sizes of buckets.
const SIZES: [i64; 4] = [10, 60, 300, 3_600];

/// What a series is measured against: per size, buckets by start, in so many words.
#[derive(Clone, Debug, Default)]
struct Model([BTreeMap<i64, u32>; 4]);

impl Model {
    fn put(&mut self, place: usize, at: i64, n: u32) {
        let start = at.div_euclid(SIZES[place]) * SIZES[place];
        let count = self.0[place].entry(start).or_default();
        *count = count.saturating_add(n);
    }

    fn add(&mut self, edges: [i64; 4], at: i64, n: u64) {
        if let Some(place) = edges.iter().position(|edge| at >= *edge).filter(|_| n > 0) {
            self.put(place, at, u32::try_from(n).unwrap_or(u32::MAX));
        }
    }

    fn age(&mut self, edges: [i64; 4]) {
        for (place, edge) in edges.into_iter().enumerate() {
            let young = self.0[place].split_off(&edge);
            for (start, n) in std::mem::replace(&mut self.0[place], young) {
                if place + 1 < SIZES.len() {
                    self.put(place + 1, start, n);
                }
            }
        }
    }

    fn buckets(&self) -> impl Iterator<Item = (i64, i64, u64)> {
        let rows = self.0.iter().zip(SIZES);
        rows.flat_map(|(row, size)| row.iter().rev().map(move |(start, n)| (*start, size, u64::from(*n))))
    }

    /// Those of a window: from the newest that began before its end to the first that was over before it.
    fn inside(&self, from: i64, end: i64) -> impl Iterator<Item = (i64, i64, u64)> {
        let begun = self.buckets().filter(move |(start, ..)| *start < end);
        begun.take_while(move |(start, size, _)| start + size > from)
    }

    fn sum(&self, end: i64, window: i64) -> Sum {
        let n = self.inside(end - window, end).map(|(.., n)| n).sum();
        Sum { n, changes_at: self.inside(end - window, end).last().map(|(start, size, _)| start + size + window) }
    }

    fn spread(&self, from: i64, end: i64) -> f64 {
        let part = |(start, size, n): (i64, i64, u64)| {
            ((start + size).min(end) - start.max(from)) as f64 / size as f64 * n as f64
        };
        self.inside(from, end).map(part).sum()
    }
}

/// Where levels start, said again.
fn edges(now: i64) -> [i64; 4] {
    let ages = [(3_660, 60), (21_900, 300), (262_800, 3_600), (2_595_600, 3_600)];
    ages.map(|(age, size): (i64, i64)| (now - age).div_euclid(size) * size)
}

#[derive(Clone, Copy, Debug)]
enum Step {
    /// Counts so many, at that age: below 0 it is ahead of its time. So often, each 10 s older.
    Add(i64, u64, i64),
    /// Time goes on.
    Pass(i64),
    /// A look that is ahead of the newest event: what comes next still counts as of then.
    Look(i64),
    /// Through bytes and back.
    Restore { is_oldest_first: bool },
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let age =
        prop_oneof![3 => Just(0i64), 2 => -120i64..4_000, 1 => 0i64..22_000, 1 => 0i64..270_000, 1 => 0i64..2_700_000];
    let n = prop_oneof![
        6 => 0u64..4,
        2 => 250u64..260,
        1 => 65_530u64..65_540,
        1 => 16_777_210u64..16_777_220,
        1 => u64::from(u32::MAX) - 2..u64::from(u32::MAX) + 2,
    ];
    let often = prop_oneof![4 => Just(1i64), 1 => 1i64..400];
    let pass = prop_oneof![8 => 0i64..30, 4 => 0i64..700, 2 => 0i64..30_000, 1 => 0i64..400_000, 1 => 0i64..4_000_000];
    let step = prop_oneof![
        8 => (age, n, often).prop_map(|(age, n, often)| Step::Add(age, n, often)),
        6 => pass.clone().prop_map(Step::Pass),
        1 => pass.prop_map(Step::Look),
        1 => any::<bool>().prop_map(|is_oldest_first| Step::Restore { is_oldest_first }),
    ];
    proptest::collection::vec(step, 1..120)
}

fn restored(buckets: &[(i64, i64, u64)]) -> Series {
    let mut series = Series::default();
    buckets.iter().for_each(|(start, size, n)| series.restore(*start, *size, *n));
    series
}

const WINDOWS: [i64; 9] = [10, 300, 1_800, 3_600, 7_200, 21_600, 86_400, 259_200, 2_592_000];

fn check(series: &Series, model: &Model, now: i64) -> Result<(), TestCaseError> {
    let buckets: Vec<_> = model.buckets().collect();
    prop_assert_eq!(series.iter().collect::<Vec<_>>(), buckets.clone());
    prop_assert_eq!(series.is_empty(), buckets.is_empty());
    for end in [now + 130, now, now - 15, now - 3_700, now - 100_001] {
        let mut sums = [Sum::default(); WINDOWS.len()];
        series.sums(end, &WINDOWS, &mut sums);
        prop_assert_eq!(sums, WINDOWS.map(|window| model.sum(end, window)));
        prop_assert_eq!(sums, WINDOWS.map(|window| series.sum(end, window)));
        for window in WINDOWS {
            prop_assert_eq!(series.spread(end - window, end), model.spread(end - window, end));
        }
    }
    prop_assert_eq!(series, &restored(&buckets));
    Ok(())
}

/// Bytes that buckets take when each level is one strip of the narrowest counts, and 64 are to spare.
fn tight(buckets: &[(i64, i64, u64)]) -> usize {
    let level = |size: i64| {
        let of = || buckets.iter().filter(move |(_, other, _)| *other == size);
        let (newest, oldest, most) = (of().next()?.0, of().next_back()?.0, of().map(|(.., n)| *n).max()?);
        let width = [0xff, 0xffff, 0xff_ffff].iter().filter(|max| most > **max).count() + 1;
        Some(((newest - oldest) / size + 1).unsigned_abs() as usize * width + 64)
    };
    SIZES.iter().filter_map(|size| level(*size)).sum()
}

proptest! {
    #[test]
    fn a_series_counts_as_a_map_does(steps in steps()) {
        let (mut now, mut series, mut model) = (T0, Series::default(), Model::default());
        for step in steps {
            let mut look = now;
            match step {
                Step::Add(age, n, often) => for place in 0..often {
                    let at = now - age - place * 10;
                    series.add(&Edges::at(now), at, n);
                    model.add(edges(now), at, n);
                }
                Step::Pass(length) => {
                    now += length;
                    look = now;
                }
                Step::Look(length) => look = now + length,
                Step::Restore { is_oldest_first } => {
                    let mut buckets: Vec<_> = series.iter().collect();
                    if is_oldest_first {
                        buckets.reverse();
                    }
                    series = restored(&buckets);
                    prop_assert!(series.heap_size() <= tight(&model.buckets().collect::<Vec<_>>()));
                }
            }
            series.age(&Edges::at(look));
            model.age(edges(look));
        }
        check(&series, &model, now)?;
    }

    /// Starts, sizes and counts may be anything; what is left is what the newest bucket of each level reaches.
    #[test]
    fn damaged_buckets_take_no_more_room_than_full_ones(
        buckets in proptest::collection::vec((any::<i64>(), 0usize..4, any::<u64>()), 0..40),
        sane in proptest::collection::vec((0u32.., 0usize..4, any::<u32>()), 0..40),
    ) {
        let sane = sane.into_iter().map(|(start, place, n)| (i64::from(start), place, u64::from(n)));
        let all: Vec<_> = buckets.into_iter().chain(sane).map(|(start, place, n)| (start, SIZES[place], n)).collect();
        let mut series = restored(&all);
        prop_assert!(series.heap_size() <= 13_200, "{}", series.heap_size());
        for (start, size, n) in series.iter() {
            prop_assert!(n > 0 && start % size == 0);
        }
        series.age(&Edges::at(i64::from(u32::MAX)));
        series.sum(i64::from(u32::MAX), 2_592_000);
    }
}

#[test]
fn of_buckets_that_are_too_far_apart_the_newest_stay() {
    let (near, far) = ((T0, 3_600, 7), (T0 + 900 * 86_400, 3_600, 1));
    assert_eq!(restored(&[near, far]).iter().collect::<Vec<_>>(), vec![far]);
    assert_eq!(restored(&[far, near]).iter().collect::<Vec<_>>(), vec![far]);
    // Other levels are none of its business.
    let fine = (T0, 10, 5);
    assert_eq!(restored(&[fine, near, far]).iter().collect::<Vec<_>>(), vec![fine, far]);
    let size = restored(&[near, far]).heap_size();
    assert!(size <= 64, "{size}");
}

#[test]
fn what_no_series_holds_is_not_put_back() {
    let none = [(T0, 7, 1), (-10, 10, 1), (i64::MAX, 10, 1), (T0, 10, 0), (T0, 10, u64::from(u32::MAX) + 1)];
    assert!(restored(&none).is_empty());
}

#[test]
fn counts_that_were_large_once_take_no_room_later() {
    let mut series = Series::default();
    let mut sizes = Vec::new();
    for second in (0..4 * 3_600).step_by(10) {
        let edges = Edges::at(T0 + second);
        series.age(&edges);
        series.add(&edges, T0 + second, if second == 3_600 { 20_000_000 } else { 4 });
        sizes.push(series.heap_size());
    }
    let (before, most, after) = (sizes[359], *sizes.iter().max().unwrap(), sizes[sizes.len() - 1]);
    assert!(before <= 360 + 64 && most >= 4 * 366, "{before} {most}");
    // The minute that holds it is wide until it is five minutes of a day.
    assert!(after <= 372 + 64 + 4 * (180 + 16), "{after}");
}

#[test]
fn what_is_over_takes_no_room() {
    let mut series = Series::default();
    for second in (0..40 * 86_400).step_by(10) {
        let edges = Edges::at(T0 + second);
        series.age(&edges);
        series.add(&edges, T0 + second, 1_000);
    }
    let full = series.heap_size();
    // 373 + 315 + 827 + 651 places: two bytes of fine ones, three of hours.
    assert!((4_300..=5_400).contains(&full), "{full}");
    series.age(&Edges::at(T0 + 69 * 86_400));
    let left: Vec<_> = series.iter().collect();
    assert!(left.len() == 25 && series.heap_size() <= 25 * 3 + 4 * 64, "{} {}", left.len(), series.heap_size());
    series.age(&Edges::at(T0 + 80 * 86_400));
    assert!(series.is_empty() && series.heap_size() <= 4 * 64, "{}", series.heap_size());
}
