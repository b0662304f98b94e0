//! Rules that hold for any timeline.

use super::*;
use crate::symptom::counts::Counts;
use crate::symptom::memory::Memory;
use proptest::prelude::*;

/// Sizes of windows and of the buckets at their far end.
const WINDOWS: [(i64, i64); 8] =
    [(300, 10), (1_800, 10), (3_600, 10), (7_200, 60), (21_600, 60), (86_400, 300), (259_200, 300), (2_592_000, 3_600)];

fn timeline() -> impl Strategy<Value = Vec<(i64, u64, u64)>> {
    let age = prop_oneof![0i64..4_000, 0i64..22_000, 0i64..270_000, 0i64..2_700_000];
    proptest::collection::vec((age, 0u64..4, 0u64..3), 1..60)
}

fn counted(parts: &[(i64, u64, u64)]) -> Counts {
    let mut counts = Counts::default();
    for (age, good, bad) in parts {
        if counts.admit(T0 - age) {
            counts.good.add(&counts.edges, T0 - age, *good);
            counts.bad.add(&counts.edges, T0 - age, *bad);
        }
    }
    counts.age(T0 + 10);
    counts
}

proptest! {
    #[test]
    fn a_window_is_exact_but_for_its_oldest_bucket(mut parts in timeline()) {
        parts.sort_by_key(|(age, ..)| -age);
        let counts = counted(&parts);
        let end = T0 + 10;
        for (window, size) in WINDOWS {
            let got = counts.window(end, window);
            let sum = |from: i64| parts.iter().filter(|(age, ..)| T0 - age >= from).fold((0, 0), |sum, (_, good, bad)| {
                (sum.0 + good + bad, sum.1 + bad)
            });
            let exact = sum(end - window);
            let widest = sum((end - window).div_euclid(size) * size);
            prop_assert!(exact.0 <= got.total && got.total <= widest.0, "{window}: {exact:?} {got:?} {widest:?}");
            prop_assert!(exact.1 <= got.failed && got.failed <= widest.1, "{window}: {exact:?} {got:?} {widest:?}");
        }
    }

    #[test]
    fn the_order_of_arrival_does_not_change_counts(parts in timeline()) {
        let mut sorted = parts.clone();
        sorted.sort_by_key(|(age, ..)| -age);
        let newest = parts.iter().map(|(age, ..)| *age).min().unwrap_or(0);
        // What is too old when it comes depends on when it comes: only what is in reach is compared.
        let inside = |parts: &[(i64, u64, u64)]| -> Vec<(i64, u64, u64)> {
            parts.iter().filter(|(age, ..)| *age < newest + 2_500_000).copied().collect()
        };
        let (one, other) = (counted(&inside(&parts)), counted(&inside(&sorted)));
        prop_assert_eq!(one.good, other.good);
        prop_assert_eq!(one.bad, other.bad);
    }

    #[test]
    fn totals_that_come_twice_or_out_of_order_count_once(
        steps in proptest::collection::vec((1u64..50, 0u64..5), 1..20),
        order in proptest::collection::vec(0usize..20, 0..40),
    ) {
        let mut memory = Memory::default();
        let (mut ok_total, mut failed_total) = (0, 0);
        let mut reports = Vec::new();
        for (place, (ok, failed)) in steps.iter().enumerate() {
            ok_total += ok;
            failed_total += failed;
            let what = What::Totals { producer: 1, epoch: 1, started_at: None, ok_total, failed_total };
            reports.push((T0 + place as i64 * 60, what));
        }
        for (second, what) in &reports {
            memory.take(*second, what);
        }
        for place in order {
            let (second, what) = &reports[place % reports.len()];
            memory.take(*second, what);
        }
        let window = memory.counts.window(T0 + 3_000, 86_400);
        prop_assert_eq!((window.total, window.failed), (ok_total + failed_total, failed_total));
    }

    #[test]
    fn what_is_frozen_thaws_to_the_same(parts in timeline()) {
        let mut watch = watch(vec![], &[rule("streak", SymptomKind::FailingStreak { count: None, over: None })]);
        for (place, (age, good, bad)) in parts.iter().enumerate() {
            watch.take(&signal("busy", -age, runs(*good, *bad)));
            watch.take(&signal("busy", -age, What::Failure {
                is_final: place % 2 == 0,
                letter: Some(place as u64),
                run: Some(place as u64 / 2),
                is_redriven: false,
                downstream: Some(format!("d{}", place % 3)),
                error_type: Some(format!("e{}", place % 4)),
                times: 1,
            }));
            watch.take(&signal("busy", -age, What::Totals { producer: 3, epoch: *good, started_at: None, ok_total: *bad, failed_total: 1 }));
        }
        watch.look(at(10), &[]);
        let states: Vec<SymptomState> = watch.states().cloned().collect();
        let parts = watch.freeze_dirty();
        let mut other = Watch::new(watch.rules().clone());
        prop_assert_eq!(other.thaw(&parts, states.clone()), Vec::<String>::new());
        prop_assert_eq!(other.look(at(10), &[]), vec![]);
        prop_assert_eq!(&other.slots[0].memory.row, &watch.slots[0].memory.row);
        prop_assert_eq!(&other.slots[0].memory, &watch.slots[0].memory);
        prop_assert_eq!(&other.shared, &watch.shared);
        prop_assert_eq!(other.states().cloned().collect::<Vec<_>>(), states);
        prop_assert_eq!(watch.freeze_dirty(), vec![]);
    }

    #[test]
    fn damaged_parts_are_named_and_never_panic(mut bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
        if let Some(first) = bytes.first_mut() {
            *first = 1;
        }
        let mut watch = watch(vec![], &[]);
        let unread = watch.thaw(&[("w:busy".to_owned(), bytes.clone()), ("shared".to_owned(), bytes)], vec![]);
        prop_assert!(unread.len() <= 2);
    }

    #[test]
    fn folding_changes_nothing_that_is_counted(
        parts in proptest::collection::vec((0i64..60, 0u8..8, 0u64..3, 0u64..3), 1..80),
    ) {
        let signals: Vec<Signal> = parts.iter().map(|(second, kind, ok, failed)| {
            let retry = |is_final| What::Failure {
                is_final, letter: None, run: None, is_redriven: false,
                downstream: Some("hubspot".to_owned()), error_type: None, times: 1,
            };
            signal("busy", *second, match kind {
                0..4 => runs(*ok, *failed),
                4 => retry(false),
                5 => retry(true),
                6 => What::Recovery { run: None, downstream: None, times: 1 },
                _ => What::Totals { producer: *ok, epoch: 1, started_at: None, ok_total: *second as u64, failed_total: *failed },
            })
        }).collect();
        let folded = fold(signals.clone());
        prop_assert!(folded.len() <= signals.len());
        let remembered = |signals: &[Signal]| {
            let mut watch = watch(vec![], &[]);
            signals.iter().for_each(|signal| watch.take(signal));
            let counts = &watch.slots[0].memory.counts;
            let window = counts.window(T0 + 100, 3_600);
            (window, counts.retries.sum(T0 + 100, 3_600), watch.shared.downstreams.get("hubspot").map(|d| d.calls.len()))
        };
        prop_assert_eq!(remembered(&folded), remembered(&signals));
        let json = serde_json::to_string(&folded).unwrap();
        prop_assert_eq!(serde_json::from_str::<Vec<Signal>>(&json).unwrap(), folded);
    }
}

/// Instants that fill every bucket of 30 days, oldest first: in s after T0, and how many times 10 s each stands for.
fn instants() -> impl Iterator<Item = (i64, u64)> {
    let end = 31 * 86_400;
    let of = move |from: i64, to: i64, step: i64| {
        (end - from..end - to).step_by(step as usize).map(move |second| (second, step.unsigned_abs() / 10))
    };
    of(31 * 86_400, 270_000, 300).chain(of(270_000, 22_200, 60)).chain(of(22_200, 0, 10))
}

/// The memory of a workflow after 30 days of all that `signals` says of each instant.
fn remembered(signals: impl Fn(i64, u64) -> Vec<What>) -> Memory {
    let mut memory = Memory::default();
    for (second, times) in instants() {
        memory.counts.age(T0 + second);
        signals(second, times).iter().for_each(|what| memory.take(T0 + second, what));
    }
    memory
}

/// A failure, or a retry.
fn failures(is_final: bool, second: i64, times: u64) -> What {
    let run = Some(second.unsigned_abs());
    What::Failure { is_final, letter: None, run, is_redriven: false, downstream: None, error_type: None, times }
}

/// What was heard within 30 days of a workflow that reports ten runs every 10 s.
#[test]
fn what_is_remembered_of_a_workflow_stays_below_20_kb() {
    let healthy = remembered(|_, times| vec![runs(10 * times, 0)]);
    // A failure and a retry every 10 minutes.
    let failing = remembered(|second, times| match second % 600 {
        0 => vec![runs(10 * times - 1, 1), failures(true, second, 1), failures(false, second, 1)],
        _ => vec![runs(10 * times, 0)],
    });
    // One to five failures and retries in every 10 s, 256 runs whose end is known, and 128 producers.
    let all = remembered(|second, times| {
        let share = (second / 10 % 5 + 1).unsigned_abs() * times;
        let producer = second.unsigned_abs();
        let totals = What::Totals { producer, epoch: 1, started_at: None, ok_total: 1, failed_total: 1 };
        vec![runs(10 * times - share, share), failures(true, second, share), failures(false, second, share), totals]
    });
    let sizes = [&healthy, &failing, &all].map(Memory::size);
    assert!(sizes[0] <= 5_000 && sizes[1] <= 13_600 && sizes[2] <= 20_000, "{sizes:?}");
}

/// Four thousand million of everything in every bucket.
#[test]
fn counts_without_bound_take_a_bounded_room() {
    let many = u64::from(u32::MAX);
    let memory = remembered(|second, _| {
        let totals =
            What::Totals { producer: second.unsigned_abs(), epoch: 1, started_at: None, ok_total: 1, failed_total: 1 };
        vec![runs(many, many), failures(true, second, many), failures(false, second, many), totals]
    });
    assert!((40_000..=43_100).contains(&memory.size()), "{}", memory.size());
}
