//! Circuit breakers: counted ones, and those that a pipeline tells of.

use super::kinds::{call, one, play, sentence, times};
use super::*;
use crate::event::BreakerState;
use crate::matcher::MatchKey;

const MINUTE: i64 = 60;
const HOUR: i64 = 3_600;
const DAY: i64 = 86_400;

fn breaker() -> SymptomKind {
    SymptomKind::Breaker { ratio: None, of: None }
}

#[test]
fn half_of_the_last_ten_calls_trip_the_breaker() {
    let mut signals: Vec<Signal> = (0..5).map(|n| call("a", n * 10, true)).collect();
    signals.extend((5..10).map(|n| call("a", n * 10, false)));
    signals.extend((10..16).map(|n| call("a", n * 10, true)));
    let changes = play(&mut one(breaker()), &signals, 200, 10);
    assert_eq!(times(&changes), [(100, "fired"), (160, "cleared")]);
    insta::assert_snapshot!(changes[0].2, @"hubspot failed 5 of its last 10 calls | Called by a, within 1 min 40 s.");
    assert_eq!(play(&mut one(breaker()), &signals[..9], 200, 10), [], "nine calls are too few");
}

#[test]
fn a_downstream_that_answers_others_is_not_blamed_for_one_workflow() {
    let mut signals: Vec<Signal> = (0..10).map(|n| call(["b", "c"][n as usize % 2], n * 10, true)).collect();
    signals.extend((10..20).map(|n| call("noisy", n * 10, false)));
    assert_eq!(play(&mut one(breaker()), &signals, 400, 10), []);
}

#[test]
fn a_downstream_that_fires_is_not_forgotten_while_it_fails_more_rarely() {
    let mut signals: Vec<Signal> = (0..10).map(|n| call("a", n * 10, false)).collect();
    signals.extend((1..12).map(|n| call("a", n * 50 * MINUTE, false)));
    let last = 11 * 50 * MINUTE;
    let changes = play(&mut one(breaker()), &signals, last + 2 * HOUR, 10);
    assert_eq!(times(&changes), [(100, "fired"), (last + HOUR, "cleared")], "an hour after the last call");
    let praised: Vec<Signal> =
        [call("a", 0, true)].into_iter().chain((1..20).map(|n| call("a", n * 4 * HOUR, false))).collect();
    assert_eq!(play(&mut one(breaker()), &praised, 5 * DAY, 60), [], "ten calls in a day are needed to begin with");
}

#[test]
fn good_calls_end_what_fires_however_old_the_failures_are() {
    let mut signals: Vec<Signal> = (0..10).map(|n| call("a", n * 10, false)).collect();
    signals.extend((1..8).map(|n| call("a", 50 * MINUTE + n * 10, true)));
    let changes = play(&mut one(breaker()), &signals, HOUR, 10);
    assert_eq!(times(&changes), [(100, "fired"), (50 * MINUTE + 70, "cleared")], "with the sixth good one");
}

fn said(workflow: &str, second: i64, state: BreakerState) -> Signal {
    signal(workflow, second, What::Breaker { downstream: "hubspot".to_owned(), state })
}

#[test]
fn what_a_pipeline_says_of_its_breaker_is_taken_at_once() {
    let signals = [
        said("a", 0, BreakerState::Open),
        said("b", 60, BreakerState::HalfOpen),
        said("a", 120, BreakerState::Open),
        said("a", 200, BreakerState::Closed),
    ];
    let mut watch = one(breaker());
    let changes = play(&mut watch, &signals[..3], 190, 10);
    assert_eq!(times(&changes), [(10, "fired")]);
    insta::assert_snapshot!(sentence(&watch.states_at(at(190), &[])[0]), @"The circuit breaker of hubspot has been open for 3 min 10 s | A pipeline said so; it was not counted here. Called by a and b.");
    assert_eq!(times(&play(&mut watch, &signals[3..], 300, 10)), [(210, "cleared")]);
}

#[test]
fn an_open_breaker_is_of_whoever_said_so_and_whoever_calls() {
    let open = |signals: &[Signal]| {
        let mut watch = one(breaker());
        play(&mut watch, signals, 2 * HOUR, 10);
        watch.firing().flat_map(|state| state.workflows.clone()).map(|w| w.to_string()).collect::<Vec<_>>()
    };
    let opened = said("a", HOUR, BreakerState::Open);
    assert_eq!(open(std::slice::from_ref(&opened)), ["a"]);
    let before = [call("old", -1, false), call("b", 10, false), opened.clone()];
    assert_eq!(open(&before), ["a", "b"], "who called in the hour before");
    assert_eq!(open(&[opened, call("c", HOUR + 10, false)]), ["a", "c"], "who calls since");
}

#[test]
fn an_open_breaker_of_which_nothing_more_is_heard_ends_after_a_day() {
    let opened = said("a", 0, BreakerState::Open);
    let ended = |signals: &[Signal]| times(&play(&mut one(breaker()), signals, 3 * DAY, 10)).pop();
    assert_eq!(ended(std::slice::from_ref(&opened)), Some((DAY, "cleared")));
    assert_eq!(ended(&[opened.clone(), said("a", HOUR, BreakerState::HalfOpen)]), Some((DAY + HOUR, "cleared")));
    assert_eq!(
        ended(&[opened, call("a", 2 * HOUR, false)]),
        Some((DAY + 2 * HOUR, "cleared")),
        "a failure confirms it"
    );
}

#[test]
fn a_breaker_rule_is_for_what_it_matches_only() {
    let of = |key, glob: &str| {
        let matcher = Matcher::new(BTreeMap::from([(key, vec![Glob::new(glob)])]));
        watch(vec![], &[SymptomRule { matcher, ..rule("rule", breaker()) }])
    };
    let fired = |mut watch: Watch, signals: &[Signal]| {
        play(&mut watch, signals, 300, 10);
        watch.firing().map(|state| state.workflows.clone()).next()
    };
    let (opened, failed) = (
        [said("a", 0, BreakerState::Open), said("b", 10, BreakerState::Open)],
        (0..10).map(|n| call(["a", "b"][n as usize % 2], n * 10, false)).collect::<Vec<_>>(),
    );
    let (only_b, both) = (Some(vec!["b".into()]), Some(vec!["a".into(), "b".into()]));
    for signals in [&opened[..], &failed] {
        assert_eq!(fired(of(MatchKey::Workflow, "b"), signals), only_b);
        assert_eq!(fired(of(MatchKey::Workflow, "c"), signals), None);
        assert_eq!(fired(of(MatchKey::Downstream, "hub*"), signals), both);
        assert_eq!(fired(of(MatchKey::Downstream, "zoho"), signals), None);
    }
}

#[test]
fn a_rule_that_is_gone_or_of_another_kind_now_drops_what_it_found() {
    for kind in [None, Some(SymptomKind::Systemic { count: None, window: None }), Some(SymptomKind::RunFailed)] {
        let mut watch = one(breaker());
        play(&mut watch, &[said("a", 0, BreakerState::Open)], 60, 10);
        let rules: Vec<SymptomRule> = kind.into_iter().map(|kind| rule("rule", kind)).collect();
        watch.set_rules(Rules::new(Some(&rules), &Workflows::default()));
        let changes = watch.look(at(70), &[]);
        assert!(matches!(changes[..], [Change::Dropped(_)]), "{rules:?}: {changes:?}");
        assert_eq!(watch.states().count(), 0);
    }
}

#[test]
fn what_was_said_of_a_breaker_outlasts_a_restart() {
    let mut watch = one(breaker());
    play(&mut watch, &[call("b", -10, false), said("a", 0, BreakerState::Open)], 60, 10);
    let states: Vec<SymptomState> = watch.states().cloned().collect();
    let mut again = one(breaker());
    assert_eq!(again.thaw(&watch.freeze_dirty(), states.clone()), Vec::<String>::new());
    assert_eq!(again.look(at(70), &[]), []);
    assert_eq!(again.firing().next().map(|state| &state.workflows), Some(&vec!["a".into(), "b".into()]));
    assert_eq!(again.next_look_at(), Some(at(DAY)));
}
