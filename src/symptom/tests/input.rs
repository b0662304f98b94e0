//! What burn rates are counted from: missed when it stops, doubted when it contradicts itself.

use super::kinds::{play, times};
use super::*;

const MINUTE: i64 = 60;
const HOUR: i64 = 3_600;

fn burning(mode: Mode) -> Watch {
    let kind = SymptomKind::BurnRate {
        slo: Some("0.999".to_owned()),
        period: None,
        expected_per_day: None,
        tiers: None,
        min_failures: None,
    };
    watch(vec![], &[SymptomRule { mode, ..rule("burn", kind) }])
}

/// A report each `step` seconds of [from, to).
fn reports(from: i64, to: i64, step: i64, failed: u64) -> impl Iterator<Item = Signal> {
    (from..to)
        .step_by(usize::try_from(step).unwrap())
        .map(move |second| signal("busy", second, runs(100 - failed, failed)))
}

fn of(changes: Vec<(i64, &'static str, String)>, words: &str) -> Vec<(i64, &'static str)> {
    times(&changes.into_iter().filter(|(_, _, text)| text.contains(words)).collect::<Vec<_>>())
}

#[test]
fn reports_that_stop_are_missed_after_three_intervals_and_as_long_as_an_outage_takes_to_be_noticed() {
    let mut often = burning(Mode::Live);
    let changes = play(&mut often, &reports(0, HOUR, 10, 0).collect::<Vec<_>>(), 2 * HOUR, 10);
    assert_eq!(times(&changes), [(HOUR + 60, "fired")], "the last report is of ten seconds before the hour");
    insta::assert_snapshot!(changes[0].2, @"busy has reported no runs for 1 min 10 s | It reports every 10 s. Until it does, its burn rate is not known.");
    assert_eq!(often.firing().next().map(|state| state.severity), Some(Severity::Digest));
    let hourly = play(&mut burning(Mode::Live), &reports(0, 12 * HOUR, HOUR, 0).collect::<Vec<_>>(), 24 * HOUR, 10);
    assert_eq!(times(&hourly), [(14 * HOUR + 10, "fired")], "three hours after the last");
}

#[test]
fn reports_that_come_again_end_it() {
    let mut signals: Vec<Signal> = reports(0, HOUR, 10, 0).collect();
    signals.extend(reports(2 * HOUR, 2 * HOUR + MINUTE, 10, 0));
    let changes = play(&mut burning(Mode::Live), &signals, 2 * HOUR + 40, 10);
    assert_eq!(times(&changes), [(HOUR + 60, "fired"), (2 * HOUR + 10, "cleared")]);
}

#[test]
fn a_workflow_that_does_not_report_by_the_clock_is_not_missed() {
    let gaps = [10, 400, 20, 900, 15, 30, 600, 5, 700, 25, 45, 12, 800, 20, 60, 300];
    let at = |n: usize| gaps.iter().cycle().take(n).sum::<i64>();
    let signals: Vec<Signal> = (0..64).map(|n| signal("busy", at(n), runs(1, 0))).collect();
    assert_eq!(play(&mut burning(Mode::Live), &signals, 24 * HOUR, 10), []);
    let few: Vec<Signal> = reports(0, 80, 10, 0).collect();
    assert_eq!(play(&mut burning(Mode::Live), &few, HOUR, 10), [], "seven intervals are no habit");
}

#[test]
fn one_lost_report_leaves_a_habit_a_habit() {
    let signals: Vec<Signal> = reports(0, HOUR, 60, 0).filter(|s| since_t0(s.at) != HOUR - 5 * MINUTE).collect();
    let changes = play(&mut burning(Mode::Live), &signals, 2 * HOUR, 10);
    assert_eq!(times(&changes), [(HOUR - MINUTE + 6 * MINUTE + 10, "fired")], "three times the longest interval");
}

#[test]
fn missing_reports_page_while_a_page_is_held() {
    let mut watch = burning(Mode::Live);
    let signals: Vec<Signal> = reports(0, 2 * HOUR, 10, 0).chain(reports(2 * HOUR, 2 * HOUR + 600, 10, 50)).collect();
    let changes = play(&mut watch, &signals, 3 * HOUR, 10);
    assert_eq!(of(changes, "no runs for"), [(2 * HOUR + 660, "fired")]);
    let firing: Vec<&SymptomState> = watch.firing().collect();
    let [burn, missing] = firing[..] else { panic!("{firing:?}") };
    assert!(burn.held.is_some() && missing.kind == "slo_input_missing");
    assert_eq!((missing.severity, missing.key.id().as_str()), (Severity::Page, "slo_input_missing/busy"));
    assert!(missing.detail.contains("What was paged is held"), "{}", missing.detail);
}

#[test]
fn what_is_only_observed_has_input_that_is_only_observed() {
    let mut watch = burning(Mode::Observe);
    play(&mut watch, &reports(0, HOUR, 10, 0).collect::<Vec<_>>(), 2 * HOUR, 10);
    assert_eq!(watch.firing().map(|state| state.mode).collect::<Vec<_>>(), [Mode::Observe]);
}

/// Of each ten minutes so many failures as events, and a report each minute with so many failed in ten minutes.
fn told_twice(from: i64, to: i64, events: u64, failed: u64) -> Vec<Signal> {
    let mut signals = Vec::new();
    for minute in (from..to).step_by(60) {
        let tenth = minute / 60 % 10;
        for _ in 0..events / 10 + u64::from(tenth.unsigned_abs() < events % 10) {
            signals.push(signal("busy", minute + 5, failure()));
        }
        let share = failed / 10 + u64::from(tenth.unsigned_abs() < failed % 10);
        signals.push(signal("busy", minute + 50, runs(10_000, share)));
    }
    signals
}

#[test]
fn failures_that_are_told_in_two_ways_must_agree() {
    let inconsistent = |signals: &[Signal]| of(play(&mut burning(Mode::Live), signals, 3 * HOUR, 10), "as events");
    assert_eq!(inconsistent(&told_twice(0, 3 * HOUR, 20, 20)), []);
    assert_eq!(inconsistent(&told_twice(0, 3 * HOUR, 20, 21)), [], "120 and 126: as many as 5 % may differ");
    assert_eq!(inconsistent(&told_twice(0, 3 * HOUR, 0, 40)), [], "failures come in reports only");
    assert_eq!(inconsistent(&told_twice(0, 3 * HOUR, 40, 0)), [], "failures come as events only");
    let mut lost = told_twice(0, HOUR, 20, 20);
    lost.extend(told_twice(HOUR, 2 * HOUR, 10, 20));
    lost.extend(told_twice(2 * HOUR, 3 * HOUR + 600, 20, 20));
    let changes = inconsistent(&lost);
    let [(fired, "fired"), (cleared, "cleared")] = changes[..] else { panic!("{changes:?}") };
    assert!((HOUR..HOUR + 20 * MINUTE).contains(&fired), "once more than 5 % of an hour are lost: {fired}");
    assert!((2 * HOUR + 45 * MINUTE..3 * HOUR).contains(&cleared), "once the lost ones have left the hour: {cleared}");
    let mut watch = burning(Mode::Live);
    play(&mut watch, &told_twice(0, HOUR + 600, 20, 60), HOUR + 600, 10);
    let state = watch.firing().find(|state| state.kind == "slo_input_inconsistent").unwrap();
    assert_eq!(state.severity, Severity::Digest);
    insta::assert_snapshot!(format!("{} | {}", state.text, state.detail), @"busy told of 120 failures as events and of 360 in reports, in 1 h | One of the two is incomplete. Its burn rate is counted from the larger.");
}

#[test]
fn a_burst_that_one_producer_has_yet_to_report_is_no_contradiction() {
    let every_ten = |offset: i64| {
        (0..30).map(move |n| {
            let failed = if offset == 0 && n == 13 { 20 } else { u64::from(n == 2) };
            signal("busy", n * 600 + offset, runs(100, failed))
        })
    };
    let mut signals: Vec<Signal> = every_ten(0).chain(every_ten(200)).chain(every_ten(400)).collect();
    let burst = (0..20).map(|n| signal("busy", 12 * 600 + 1 + n, failure()));
    signals.extend(burst.chain((0..3).map(|n| signal("busy", 900 + n, failure()))));
    signals.sort_by_key(|signal| signal.at);
    assert_eq!(of(play(&mut burning(Mode::Live), &signals, 5 * HOUR, 10), "as events"), []);
}

#[test]
fn the_end_of_a_working_day_is_missed_once_and_known_then() {
    let days = |count: i64| -> Vec<Signal> {
        (0..count).flat_map(|day| reports(day * 24 * HOUR + 9 * HOUR, day * 24 * HOUR + 18 * HOUR, 60, 0)).collect()
    };
    let missed = of(play(&mut burning(Mode::Live), &days(4), 4 * 24 * HOUR, 10), "no runs for");
    assert_eq!(missed.iter().filter(|(_, word)| *word == "fired").count(), 1, "{missed:?}");
    assert_eq!(missed[0], (18 * HOUR - MINUTE + 3 * MINUTE + 10, "fired"));
    let silent = of(play(&mut burning(Mode::Live), &days(4), 6 * 24 * HOUR, 10), "no runs for");
    assert_eq!(silent.last().map(|(_, word)| *word), Some("fired"), "longer than ever: {silent:?}");
}

#[test]
fn a_rule_of_that_name_has_its_own_say() {
    let burn = rule(
        "burn",
        SymptomKind::BurnRate {
            slo: Some("0.99".to_owned()),
            period: None,
            expected_per_day: None,
            tiers: None,
            min_failures: None,
        },
    );
    let names = |rules: &[SymptomRule]| {
        let rules = Rules::new(Some(rules), &Workflows::default());
        rules.plan(&"busy".into()).rules.iter().map(|rule| rule.name.to_string()).collect::<Vec<_>>()
    };
    assert_eq!(names(std::slice::from_ref(&burn)), ["burn", "slo_input_missing", "slo_input_inconsistent"]);
    let own = rule("slo_input_missing", SymptomKind::RunFailed);
    assert_eq!(names(&[own, burn]), ["slo_input_missing", "burn", "slo_input_inconsistent"]);
    assert_eq!(names(&[rule("last", SymptomKind::RunFailed)]), ["last"]);
}
