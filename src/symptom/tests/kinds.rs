//! Every kind through the door: when it fires, when it clears, and how it reads.

use super::*;
use crate::event::HeartbeatStatus;

const MINUTE: i64 = 60;
const HOUR: i64 = 3_600;
const DAY: i64 = 86_400;

/// Plays signals in order, with looks every `step` seconds from the first of them until `until`. Returns what changed,
/// as (second, word, tier, text).
pub(super) fn play(watch: &mut Watch, signals: &[Signal], until: i64, step: i64) -> Vec<(i64, &'static str, String)> {
    let mut changes = Vec::new();
    let mut signals = signals.iter().peekable();
    let start = signals.peek().map_or(0, |signal| since_t0(signal.at).div_euclid(10) * 10);
    for now in (start..=until).step_by(usize::try_from(step).unwrap()) {
        while let Some(signal) = signals.next_if(|signal| since_t0(signal.at) < now) {
            watch.take(signal);
        }
        let changed = watch.look(at(now), &[]);
        changes.extend(changed.iter().map(|change| (now, word(change), sentence(change.state()))));
    }
    changes
}

pub(super) fn word(change: &Change) -> &'static str {
    match change {
        Change::Fired(_) => "fired",
        Change::Moved(_) => "moved",
        Change::Cleared(_) => "cleared",
        Change::Held(_) => "held",
        Change::Dropped(_) => "dropped",
    }
}

pub(super) fn sentence(state: &SymptomState) -> String {
    format!("{} | {}", state.text, state.detail)
}

pub(super) fn one(kind: SymptomKind) -> Watch {
    watch(vec![], &[rule("rule", kind)])
}

pub(super) fn times(changes: &[(i64, &'static str, String)]) -> Vec<(i64, &'static str)> {
    changes.iter().map(|(at, word, _)| (*at, *word)).collect()
}

fn streak() -> SymptomKind {
    SymptomKind::FailingStreak { count: None, over: None }
}

#[test]
fn five_failures_in_a_row_over_five_minutes_fire_and_a_success_clears() {
    let mut signals: Vec<Signal> = (0..6).map(|n| signal("busy", n * 2 * MINUTE, runs(0, 1))).collect();
    signals.push(signal("busy", 15 * MINUTE, runs(1, 0)));
    let changes = play(&mut one(streak()), &signals, 1200, 10);
    assert_eq!(times(&changes), [(490, "fired"), (910, "cleared")]);
    insta::assert_snapshot!(changes[0].2, @"The last 5 runs of busy all failed, over 8 min | No good run is known.");
}

#[test]
fn four_failures_or_five_within_a_minute_are_no_streak() {
    let four: Vec<Signal> = (0..4).map(|n| signal("busy", n * 2 * MINUTE, runs(0, 1))).collect();
    assert_eq!(play(&mut one(streak()), &four, 1200, 10), []);
    let quick: Vec<Signal> = (0..5).map(|n| signal("busy", n * 10, runs(0, 1))).collect();
    assert_eq!(play(&mut one(streak()), &quick, 1200, 10), []);
}

#[test]
fn a_failure_told_as_event_and_in_a_report_is_one_of_a_row() {
    let both = |n: i64| [signal("busy", n * 3 * MINUTE, runs(0, 1)), signal("busy", n * 3 * MINUTE, failure())];
    let signals: Vec<Signal> = (0..4).flat_map(both).collect();
    assert_eq!(play(&mut one(streak()), &signals, 1200, 10), []);
}

#[test]
fn a_success_told_late_ends_only_what_was_before_it() {
    let mut watch = one(streak());
    for n in [0, 1, 2, 3, 4, 5] {
        watch.take(&signal("busy", n * 2 * MINUTE, runs(0, 1)));
    }
    watch.take(&signal("busy", 3 * MINUTE, runs(1, 0)));
    assert_eq!(watch.look(at(700), &[]), []);
    watch.take(&signal("busy", 12 * MINUTE, runs(0, 1)));
    assert_eq!(watch.look(at(730), &[]).len(), 1, "four of the row are left and one came");
}

#[test]
fn run_failed_clears_with_the_next_good_run() {
    let signals = [signal("busy", -DAY, runs(1, 0)), signal("busy", 0, runs(0, 1)), signal("busy", DAY, runs(1, 0))];
    let changes = play(&mut one(SymptomKind::RunFailed), &signals, DAY + 100, 10);
    assert_eq!(times(&changes), [(10, "fired"), (DAY + 10, "cleared")]);
    insta::assert_snapshot!(changes[0].2, @"The last run of busy failed 10 s ago | The last good run was 24 h ago. It clears with the next good run.");
}

#[test]
fn absence_counts_from_the_last_sign_of_life_else_from_when_it_was_known() {
    let expected =
        || Workflow { every: Some(Duration::from_secs(3_600)), grace: Duration::from_secs(600), ..workflow("report") };
    let rules = [rule("quiet", SymptomKind::Absence)];
    let mut heard = watch(vec![expected()], &rules);
    let changes =
        play(&mut heard, &[signal("report", 0, runs(1, 0)), signal("report", 3 * HOUR, What::Alive)], 4 * HOUR, 10);
    assert_eq!(times(&changes), [(4_200, "fired"), (3 * HOUR + 10, "cleared")]);
    insta::assert_snapshot!(changes[0].2, @"report has not been heard for 1 h 10 min | A run is expected every 1 h.");

    let mut never = watch(vec![expected()], &rules);
    never.know(&WorkflowName::from("report"), at(0));
    assert_eq!(never.look(at(10), &[]), []);
    assert_eq!(never.next_look_at(), Some(at(4_200)));
    assert_eq!(never.look(at(4_190), &[]), []);
    let fired = never.look(at(4_200), &[]);
    insta::assert_snapshot!(sentence(fired[0].state()), @"report has not been heard for 1 h 10 min | A run is expected every 1 h. Nothing was ever heard of it.");
    never.take(&signal("report", 4_210, What::Resolved));
    assert_eq!(never.look(at(4_220), &[]), [], "a person who resolves is no sign of life of the workflow");
}

#[test]
fn the_words_of_a_firing_symptom_go_on_between_looks() {
    let expected = Workflow { every: Some(Duration::from_secs(3_600)), ..workflow("report") };
    let mut watch = watch(vec![expected], &[rule("quiet", SymptomKind::Absence)]);
    watch.know(&WorkflowName::from("report"), at(0));
    watch.look(at(HOUR), &[]);
    assert_eq!(watch.next_look_at(), None, "nothing changes until it is heard");
    let states = watch.states_at(at(31 * HOUR), &[]);
    assert_eq!(states[0].text, "report has not been heard for 31 h");
    assert_eq!(watch.firing().next().unwrap().since, at(HOUR));
}

#[test]
fn unhealthy_fires_at_once_and_degraded_after_five_minutes() {
    let beat = |second, status| signal("pump", second, What::Heartbeat { status });
    let mut pump = one(SymptomKind::Unhealthy { degraded_for: None });
    let signals = [
        beat(0, HeartbeatStatus::Degraded),
        beat(100, HeartbeatStatus::Ok),
        beat(200, HeartbeatStatus::Degraded),
        beat(400, HeartbeatStatus::Degraded),
        beat(600, HeartbeatStatus::Ok),
        beat(700, HeartbeatStatus::Unhealthy),
        beat(800, HeartbeatStatus::Degraded),
        beat(1_100, HeartbeatStatus::Ok),
    ];
    let changes = play(&mut pump, &signals, 1_200, 10);
    assert_eq!(
        times(&changes),
        [(500, "fired"), (610, "cleared"), (710, "fired"), (810, "cleared"), (1_000, "fired"), (1_110, "cleared")]
    );
    insta::assert_snapshot!(changes[0].2, @"pump has been degraded for 5 min, says its heartbeat | The last heartbeat was 1 min 40 s ago.");
}

fn standing(open: u64, oldest: i64, resolved: Option<i64>) -> Standing {
    Standing {
        open_count: open,
        oldest: (open > 0).then(|| OldestLetter { failed_at: at(oldest), name: "order-1041".to_owned() }),
        last_resolved_at: resolved.map(at),
        downstream: Some("hubspot".to_owned()),
        arrivals: Vec::new(),
    }
}

#[test]
fn dead_letters_that_nobody_works_on_fire_by_age() {
    let crm = Workflow { domain: Domain::Money, item_noun: Some("order".to_owned()), ..workflow("order-to-crm") };
    let name = WorkflowName::from("order-to-crm");
    let mut watch = watch(vec![crm], &[rule("old", SymptomKind::DeadLetterAge { over: None })]);
    watch.set_standing(&name, standing(2, 0, None));
    assert_eq!(watch.look(at(10), &[]), []);
    assert_eq!(watch.next_look_at(), Some(at(HOUR)));
    watch.set_standing(&name, standing(2, 0, Some(2_400)));
    assert_eq!(watch.look(at(5_990), &[]), [], "none was resolved for less than an hour");
    watch.set_standing(&name, standing(14, 1_680, Some(2_400)));
    let fired = watch.look(at(6_000), &[]);
    insta::assert_snapshot!(sentence(fired[0].state()), @"14 orders have not reached hubspot for 1 h 12 min (oldest: order-1041) | None was resolved in the last 1 h.");
    watch.set_standing(&name, standing(0, 0, Some(6_010)));
    assert_eq!(word(&watch.look(at(6_010), &[])[0]), "cleared");
}

#[test]
fn more_dead_letters_than_allowed_fire_by_depth_and_by_rate() {
    let name = WorkflowName::from("report");
    let rate = SymptomKind::DeadLetterRate { over: 2, window: Duration::from_secs(600) };
    let mut watch = watch(vec![], &[rule("deep", SymptomKind::DeadLetterDepth { over: None }), rule("fast", rate)]);
    watch.set_standing(&name, standing(10, 0, None));
    assert_eq!(watch.look(at(10), &[]), []);
    let arrivals = vec![at(0), at(60), at(120)];
    watch.set_standing(&name, Standing { arrivals, ..standing(11, 0, None) });
    let fired = watch.look(at(130), &[]);
    let sentences: Vec<String> = fired.iter().map(|change| sentence(change.state())).collect();
    insta::assert_snapshot!(sentences.join("\n"), @r"
    report has 11 dead letters open, more than 10 | The oldest, order-1041, has waited for 2 min 10 s.
    report left 3 dead letters in 10 min, more than 2 | 11 dead letters are open.
    ");
    assert_eq!(watch.next_look_at(), Some(at(600)));
    assert_eq!(word(&watch.look(at(600), &[])[0]), "cleared");
}

pub(super) fn dead_letter(
    workflow: &str,
    second: i64,
    key: u64,
    downstream: Option<&str>,
    error: Option<&str>,
) -> Signal {
    let what = What::Failure {
        is_final: true,
        letter: Some(key),
        run: None,
        is_redriven: false,
        downstream: downstream.map(str::to_owned),
        error_type: error.map(str::to_owned),
        times: 1,
    };
    signal(workflow, second, what)
}

pub(super) fn systemic() -> SymptomKind {
    SymptomKind::Systemic { count: None, window: None }
}

#[test]
fn one_downstream_in_three_workflows_is_systemic_and_its_error_type_is_not_told_too() {
    let hit = |n: u64, second| dead_letter(&format!("wf-{n}"), second, n, Some("hubspot"), Some("Gone"));
    let mut everywhere = one(systemic());
    let changes = play(&mut everywhere, &[hit(1, 0), hit(2, 300), hit(3, 600)], 2_000, 10);
    assert_eq!(times(&changes), [(610, "fired"), (900, "cleared")]);
    insta::assert_snapshot!(changes[0].2, @"hubspot failed in 3 workflows within 15 min: wf-1, wf-2 and wf-3 | Probably one cause: hubspot.");
    assert_eq!(play(&mut one(systemic()), &[hit(1, 0), hit(2, 300), hit(2, 600)], 2_000, 10), [], "two workflows");
    assert_eq!(play(&mut one(systemic()), &[hit(1, 0), hit(2, 800), hit(3, 1_600)], 3_000, 10), [], "over 27 min");
}

#[test]
fn one_error_type_in_three_workflows_is_systemic() {
    let hit = |n: u64, error| {
        dead_letter(
            &format!("wf-{n}"),
            i64::try_from(n).unwrap() * 100,
            n,
            Some(["a", "b", "c"][n as usize]),
            Some(error),
        )
    };
    let changes =
        play(&mut one(systemic()), &[hit(0, "CertExpired"), hit(1, "CertExpired"), hit(2, "CertExpired")], 500, 10);
    assert_eq!(times(&changes), [(210, "fired")]);
    insta::assert_snapshot!(changes[0].2, @"CertExpired hit 3 workflows within 15 min: wf-0, wf-1 and wf-2 | One error type in all of them: CertExpired.");
    assert_eq!(play(&mut one(systemic()), &[hit(0, "Error"), hit(1, "Error"), hit(2, "Error")], 500, 10), []);
}

#[test]
fn a_workflow_with_three_of_the_last_twenty_dead_letters_is_a_repeat_offender() {
    let offender = || SymptomKind::RepeatOffender { count: None, of: None };
    let twice =
        [dead_letter("a", 0, 1, None, None), dead_letter("a", 10, 2, None, None), dead_letter("a", 20, 2, None, None)];
    assert_eq!(play(&mut one(offender()), &twice, 100, 10), [], "a dead letter that fails again is the same one");
    let mut signals: Vec<Signal> =
        (0..17u64).map(|n| dead_letter(&format!("w{}", n % 9), n.cast_signed(), n, None, None)).collect();
    signals.extend((20..23u64).map(|n| dead_letter("a", n.cast_signed() * 10, n, None, None)));
    let changes = play(&mut one(offender()), &signals, 400, 10);
    assert_eq!(times(&changes), [(230, "fired")]);
    insta::assert_snapshot!(changes[0].2, @"a left 3 of the last 20 dead letters | All 20 came within 3 min 50 s.");
}

pub(super) fn call(workflow: &str, second: i64, is_good: bool) -> Signal {
    let downstream = Some("hubspot".to_owned());
    let what = match is_good {
        true => What::Runs { ok: 1, failed: 0, downstream },
        false => What::Failure {
            is_final: false,
            letter: None,
            run: None,
            is_redriven: false,
            downstream,
            error_type: None,
            times: 1,
        },
    };
    signal(workflow, second, what)
}

#[test]
fn failures_far_above_the_same_hour_of_earlier_weeks_are_a_trend() {
    let trend = || SymptomKind::FailureTrend { factor: None, window: None };
    let hour = |week: i64, count: i64| (0..count).map(move |n| signal("busy", week * 7 * DAY + n * 60, failure()));
    let mut signals: Vec<Signal> = hour(-3, 4).chain(hour(-2, 5)).chain(hour(-1, 6)).collect();
    signals.extend(hour(0, 16));
    let changes = play(&mut one(trend()), &signals, 2 * HOUR, 60);
    assert_eq!(changes[0].1, "fired");
    insta::assert_snapshot!(changes[0].2, @"busy had 16 failures and retries in 1 h, 3.2× what is usual at this hour of the week | Usual: 5, from the same hour of 3 earlier weeks.");
    let usual: Vec<Signal> = hour(-2, 14).chain(hour(-1, 16)).chain(hour(0, 30)).collect();
    assert_eq!(play(&mut one(trend()), &usual, 2 * HOUR, 60), []);
    let unknown: Vec<Signal> = hour(-1, 1).chain(hour(0, 30)).collect();
    assert_eq!(play(&mut one(trend()), &unknown, 2 * HOUR, 60), [], "one earlier week is no baseline");
}

#[test]
fn more_than_two_retries_a_run_are_pressure() {
    let pressure = || SymptomKind::RetryPressure { over: None, window: None };
    let retry = |second| call("busy", second, false);
    let mut signals: Vec<Signal> = (0..9).map(|n| retry(n * 10)).collect();
    signals.push(signal("busy", 95, runs(3, 0)));
    let changes = play(&mut one(pressure()), &signals, 4_000, 10);
    assert_eq!(times(&changes), [(100, "fired"), (3_630, "cleared")], "with the third retry that leaves the hour");
    insta::assert_snapshot!(changes[0].2, @"busy needed 3.0 retries per run in 1 h: 9 retries for 3 runs | More than 2 are too many.");
}

#[test]
fn names_without_end_leave_room_for_those_of_config_and_for_what_is_known() {
    let rule = rule("streak", SymptomKind::FailingStreak { count: Some(2), over: None });
    let mut watch = watch(vec![workflow("nightly")], &[rule]);
    watch.take(&signal("pay", 0, runs(1, 0)));
    for number in 1..=WORKFLOWS_MAX {
        watch.take(&signal(&format!("run-{number}"), 1, runs(1, 0)));
    }
    assert_eq!(watch.take_refused_count(), 1, "one name more than there is room for");
    assert!(watch.memory_size(&WorkflowName::from(format!("run-{WORKFLOWS_MAX}").as_str())).is_none());
    watch.take(&signal("nightly", 2, runs(1, 0)));
    assert_eq!(watch.take_refused_count(), 0);
    assert!(watch.memory_size(&WorkflowName::from("nightly")).is_some());
    watch.take(&signal("pay", 3, failure()));
    watch.take(&signal("pay", 600, failure()));
    let fired = watch.look(at(620), &[]);
    assert!(fired.iter().any(|change| change.state().key.workflow == Some(WorkflowName::from("pay"))), "{fired:?}");
}

#[test]
fn failures_of_a_workflow_that_never_says_what_went_well_are_no_row() {
    let failures: Vec<Signal> = (0..30).map(|n| signal("busy", n * HOUR, failure())).collect();
    assert_eq!(play(&mut one(streak()), &failures, 31 * HOUR, 10), []);
}

#[test]
fn a_row_waits_for_the_good_runs_that_are_not_told_yet() {
    let hourly = (0..12).map(|n| signal("busy", n * HOUR, runs(990, 0)));
    let failures = (0..12 * 12).map(|n| signal("busy", n * 5 * MINUTE + 7, runs(0, 1)));
    let mut signals: Vec<Signal> = hourly.chain(failures).collect();
    signals.sort_by_key(|signal| signal.at);
    let healthy = times(&play(&mut one(streak()), &signals, 12 * HOUR, 10));
    assert!(
        healthy.iter().all(|(at, _)| *at <= HOUR + 10),
        "one in a hundred fails, and two reports say how often: {healthy:?}"
    );
    signals.extend((12 * 12..15 * 12).map(|n| signal("busy", n * 5 * MINUTE + 7, runs(0, 1))));
    let outage = times(&play(&mut one(streak()), &signals, 15 * HOUR, 10));
    assert_eq!(outage.last(), Some(&(12 * HOUR + 30 * MINUTE + 10, "fired")), "the good ones are half an hour late");
}

#[test]
fn what_arrives_late_is_heard_when_it_arrives() {
    let expected =
        Workflow { every: Some(Duration::from_secs(86_400)), grace: Duration::from_secs(3_600), ..workflow("nightly") };
    let mut watch = watch(vec![expected], &[rule("quiet", SymptomKind::Absence)]);
    watch.know(&WorkflowName::from("nightly"), at(0));
    let ran = |day: i64| Signal {
        arrived_at: Some(at(day * DAY + 5 * HOUR)),
        ..signal("nightly", day * DAY + 2 * HOUR, runs(1, 0))
    };
    let mut changes = Vec::new();
    for day in 0..5 {
        watch.take(&ran(day));
        for now in (day * DAY + 5 * HOUR + 10..(day + 1) * DAY + 5 * HOUR).step_by(60) {
            changes.extend(watch.look(at(now), &[]));
        }
    }
    assert_eq!(changes, [], "it is heard every 24 h");
    let missed = watch.look(at(5 * DAY + 6 * HOUR + 10), &[]);
    assert_eq!(missed.iter().map(word).collect::<Vec<_>>(), ["fired"]);
}
