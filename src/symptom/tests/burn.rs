//! Burn rates beyond the timelines of the reference: what is said of little traffic, gaps, restarts and new objectives.

use super::*;

const HOUR: i64 = 3_600;
const DAY: i64 = 86_400;

fn burn(slo: &str, expected_per_day: Option<u64>) -> SymptomKind {
    SymptomKind::BurnRate { slo: Some(slo.to_owned()), period: None, expected_per_day, tiers: None, min_failures: None }
}

fn burning(slo: &str, expected_per_day: Option<u64>) -> Watch {
    watch(vec![], &[rule("burn", burn(slo, expected_per_day))])
}

/// Runs `every` so many seconds in [from, to); `failed` of each `total`.
fn reports(watch: &mut Watch, (from, to): (i64, i64), every: i64, total: u64, failed: u64) -> Vec<(i64, Change)> {
    let mut changes = Vec::new();
    for second in (from..to).step_by(usize::try_from(every).unwrap()) {
        watch.take(&signal("busy", second, runs(total - failed, failed)));
        let mut now = second.div_euclid(10) * 10 + 10;
        while now <= (second + every).min(to) {
            changes.extend(watch.look(at(now), &[]).into_iter().map(|change| (now, change)));
            now += 10;
        }
    }
    changes
}

fn only<T>(items: Vec<T>) -> T {
    assert_eq!(items.len(), 1);
    items.into_iter().next().unwrap()
}

#[test]
fn a_burn_reads_as_a_sentence_with_numbers() {
    let orders = Workflow { item_noun: Some("order".to_owned()), slo: Some("0.995".to_owned()), ..workflow("busy") };
    let mut watch = watch(
        vec![orders],
        &[rule(
            "burn",
            SymptomKind::BurnRate { slo: None, period: None, expected_per_day: None, tiers: None, min_failures: None },
        )],
    );
    reports(&mut watch, (-2 * DAY, 0), 10, 10, 0);
    let (now, fired) = only(reports(&mut watch, (0, 1_000), 10, 10, 3));
    assert_eq!(now, 870);
    insta::assert_snapshot!(format!("{}\n{}", fired.state().text, fired.state().detail), @r"
    busy spent 2.0 % of its 30-day error budget in 1 h: 261 of 3,600 orders failed
    That is 14.4× the rate that 99.5 % allows. So far 2.0 % of the budget was spent, in the 2 d that are known; at this rate the rest lasts 2 d.
    ");
    assert_eq!(fired.state().tier.as_deref(), Some("page_fast"));
}

#[test]
fn three_failures_of_four_runs_do_not_page() {
    let mut watch = burning("0.99", Some(96));
    reports(&mut watch, (-DAY, 0), 900, 1, 0);
    for (n, failed) in [1, 0, 1, 1].into_iter().enumerate() {
        let from = n as i64 * 900;
        for (_, change) in reports(&mut watch, (from, from + 900), 900, 1, failed) {
            assert_eq!(change.state().severity, Severity::Digest, "{change:?}");
        }
    }
    let plan = watch.rules().plan(&WorkflowName::from("busy"));
    let Ask::BurnRate(plan) = &plan.rules[0].ask else { panic!() };
    let off: Vec<(&str, &str)> = plan.off.iter().map(|off| (off.tier.as_str(), off.why.as_str())).collect();
    assert_eq!(off, [("page_fast", "too_few_runs"), ("page_slow", "too_few_runs")]);
    assert_eq!(plan.off[0].why, OffReason::TooFewRuns { min_failures: 2, needed_per_day: 334 });
}

#[test]
fn a_budget_of_less_than_one_failure_is_judged_run_by_run() {
    let rules = Rules::new(Some(&[rule("burn", burn("0.99", Some(1)))]), &Workflows::default());
    let plan = rules.plan(&WorkflowName::from("nightly"));
    let Ask::BurnRate(plan) = &plan.rules[0].ask else { panic!() };
    assert!(plan.tiers.is_empty());
    assert!(plan.off.iter().all(|off| off.why == OffReason::PerRun));
    assert!(plan.share_of_one().unwrap().to_f64() > 1.0);
}

#[test]
fn a_factor_above_all_failures_is_unreachable() {
    let rules = Rules::new(Some(&[rule("burn", burn("0.9", None))]), &Workflows::default());
    let plan = rules.plan(&WorkflowName::from("busy"));
    let Ask::BurnRate(plan) = &plan.rules[0].ask else { panic!() };
    assert_eq!(only(plan.off.clone()), TierOff { tier: "page_fast".to_owned(), why: OffReason::Unreachable });
}

#[test]
fn failures_without_any_report_have_no_denominator() {
    let mut watch = burning("0.99", None);
    for second in 0..500 {
        watch.take(&signal("busy", second, failure()));
    }
    assert_eq!(watch.look(at(500), &[]), []);
    assert_eq!(watch.firing().count(), 0);
}

#[test]
fn a_page_tier_warms_up_for_ten_runs() {
    let mut watch = burning("0.99", None);
    let changes = reports(&mut watch, (0, 270), 30, 1, 1);
    assert!(changes.iter().all(|(_, change)| change.state().severity == Severity::Digest), "{changes:?}");
    let (_, moved) = only(reports(&mut watch, (270, 300), 30, 1, 1));
    assert!(matches!(&moved, Change::Moved(state) if state.tier.as_deref() == Some("page_fast")), "{moved:?}");
    assert_eq!(moved.state().tiers, ["page_fast", "page_slow", "ticket_fast", "ticket_slow"]);
}

#[test]
fn an_incident_is_one_symptom_that_moves_down_and_clears() {
    let mut watch = burning("0.999", None);
    reports(&mut watch, (-2 * DAY, 0), 10, 1_000, 0);
    let mut changes = reports(&mut watch, (0, 600), 10, 1_000, 1_000);
    changes.extend(reports(&mut watch, (600, 12 * HOUR), 10, 1_000, 0));
    let told: Vec<(&str, Option<&str>)> = changes
        .iter()
        .map(|(_, change)| match change {
            Change::Fired(state) => ("fired", state.tier.as_deref()),
            Change::Moved(state) => ("moved", state.tier.as_deref()),
            Change::Cleared(state) => ("cleared", state.tier.as_deref()),
            Change::Held(state) => ("held", state.tier.as_deref()),
            Change::Dropped(state) => ("dropped", state.tier.as_deref()),
        })
        .collect();
    assert_eq!(
        told,
        [
            ("fired", Some("page_fast")),
            ("moved", Some("page_slow")),
            ("moved", Some("ticket_fast")),
            ("moved", Some("ticket_slow")),
            ("cleared", Some("ticket_slow")),
        ]
    );
    let since: Vec<i64> = changes.iter().map(|(_, change)| since_t0(change.state().since)).collect();
    assert!(since.iter().all(|since| *since == 60), "one symptom, since it first fired: {since:?}");
}

#[test]
fn a_gap_in_reports_holds_and_says_so_once() {
    let mut watch = burning("0.999", None);
    reports(&mut watch, (-2 * DAY, 0), 10, 10_000, 0);
    reports(&mut watch, (0, 600), 10, 10_000, 1_500);
    let mut changes = Vec::new();
    for now in (610..3 * HOUR).step_by(10) {
        changes.extend(watch.look(at(now), &[]).into_iter().map(|change| (now, change)));
    }
    let missing = changes.remove(1).1;
    assert_eq!((missing.state().kind.as_str(), missing.state().since), ("slo_input_missing", at(660)));
    let (now, held) = only(changes);
    assert!(matches!(&held, Change::Held(_)), "{held:?}");
    assert_eq!(now, 660);
    assert_eq!(held.state().held.as_deref(), Some("no runs reported for 1 min 10 s"));
    assert_eq!(watch.states_at(at(3 * HOUR), &[])[0].held.as_deref(), Some("no runs reported for 2 h 50 min"));
    let changes = reports(&mut watch, (3 * HOUR, 3 * HOUR + 100), 10, 10_000, 0);
    let cleared: Vec<(i64, &str)> = changes.iter().map(|(now, change)| (*now, change.state().kind.as_str())).collect();
    assert_eq!(cleared, [(10_810, "slo_input_missing"), (10_860, "burn_rate")], "a minute is covered");
    assert!(changes.iter().all(|(_, change)| matches!(change, Change::Cleared(_))));
}

/// Six good hours, and ten bad minutes that are told three minutes after the last of them: what a look then and the next find.
fn told_late(expected_per_day: Option<u64>) -> Vec<&'static str> {
    let mut watch = burning("0.99", expected_per_day);
    let mut changes: Vec<Change> = Vec::new();
    changes.extend(reports(&mut watch, (-6 * HOUR, 0), 10, 10, 0).into_iter().map(|(_, change)| change));
    changes.extend(watch.look(at(780), &[]));
    (0..600).step_by(10).for_each(|second| watch.take(&signal("busy", second, runs(0, 10))));
    changes.extend([790, 800].iter().flat_map(|now| watch.look(at(*now), &[])));
    changes.retain(|change| change.state().kind == "burn_rate");
    let word = |change: &Change| match change {
        Change::Fired(_) => "fired",
        Change::Moved(_) => "moved",
        Change::Cleared(_) => "cleared",
        Change::Held(_) => "held",
        Change::Dropped(_) => "dropped",
    };
    changes.iter().map(word).collect()
}

#[test]
fn reports_that_are_minutes_late_fire_where_the_expected_number_is_known_and_are_held_then() {
    assert_eq!(told_late(Some(86_400)), ["fired", "held"]);
    assert_eq!(told_late(None), <[&str; 0]>::default(), "good ones may be lost, and nothing stands in for them");
}

#[test]
fn a_producer_whose_reports_are_always_minutes_late_is_not_missed_and_its_outage_ends() {
    const LATE: i64 = 200;
    let mut watch = burning("0.999", Some(86_400));
    let mut changes = Vec::new();
    for now in (10..4 * HOUR).step_by(10) {
        let second = now - LATE - 10;
        let failed = if (HOUR..HOUR + 600).contains(&second) { 10 } else { 0 };
        watch.take(&signal("busy", second, runs(10 - failed, failed)));
        let words = |change: &Change| {
            (now, change.state().kind.clone(), format!("{change:?}").split('(').next().map(str::to_owned))
        };
        changes.extend(watch.look(at(now), &[]).iter().map(words));
    }
    let of = |kind: &str| {
        changes
            .iter()
            .filter(|(_, own, _)| own == kind)
            .map(|(now, _, word)| (*now, word.as_deref()))
            .collect::<Vec<_>>()
    };
    assert_eq!(of("slo_input_missing"), []);
    let burn = of("burn_rate");
    assert!(
        matches!(burn.first(), Some((fired, Some("Fired"))) if (HOUR + LATE..HOUR + 2 * LATE).contains(fired)),
        "{burn:?}"
    );
    assert!(burn.iter().all(|(_, word)| *word != Some("Held")), "{burn:?}");
    let is_paging = |state: &SymptomState| state.tiers.iter().any(|tier| tier.starts_with("page"));
    assert!(!watch.firing().any(is_paging), "three hours after the outage");
}

#[test]
fn lost_events_hold_until_a_minute_is_covered() {
    let mut watch = burning("0.999", Some(86_400_000));
    reports(&mut watch, (-DAY, 0), 10, 10_000, 0);
    reports(&mut watch, (0, 600), 10, 10_000, 1_500);
    let lost = [Span { start: at(600), end: at(1_800) }];
    for now in (610..=1_850).step_by(10) {
        if now > 1_800 {
            watch.take(&signal("busy", now - 10, runs(10_000, 0)));
        }
        let changes = watch.look(at(now), &lost);
        assert!(changes.iter().all(|change| matches!(change, Change::Held(_))), "{now} {changes:?}");
    }
    watch.take(&signal("busy", 1_850, runs(10_000, 0)));
    assert!(matches!(watch.look(at(1_860), &lost)[..], [Change::Cleared(_)]));
}

#[test]
fn a_symptom_that_flickers_stays_hot_in_between() {
    let page_only = SymptomKind::BurnRate {
        slo: Some("0.999".to_owned()),
        period: None,
        expected_per_day: None,
        tiers: Some(vec![BurnTier {
            name: "page".to_owned(),
            burn: "14.4".to_owned(),
            long: Duration::from_secs(3_600),
            short: Duration::from_secs(300),
            severity: Severity::Page,
        }]),
        min_failures: None,
    };
    let mut watch = watch(vec![], &[rule("burn", page_only)]);
    reports(&mut watch, (-2 * DAY, 0), 10, 10_000, 0);
    reports(&mut watch, (0, 2 * HOUR), 10, 10_000, 150);
    let (_, cleared) = only(reports(&mut watch, (2 * HOUR, 2 * HOUR + 600), 10, 10_000, 100));
    assert!(matches!(&cleared, Change::Cleared(state) if state.is_hot), "{cleared:?}");
    let state = only(watch.states().cloned().collect());
    assert!(!state.is_firing() && state.is_hot);
    assert_eq!(watch.firing().count(), 0);
    assert_eq!(reports(&mut watch, (2 * HOUR + 600, 3 * HOUR), 10, 10_000, 0), []);
    assert_eq!(watch.states().count(), 0, "an honest all-clear within the short window");
}

#[test]
fn a_restart_keeps_state_and_counts_and_a_new_objective_keeps_counts() {
    let mut watch = burning("0.999", None);
    reports(&mut watch, (-2 * DAY, 0), 10, 1_000, 0);
    reports(&mut watch, (0, 300), 10, 1_000, 150);
    let states: Vec<SymptomState> = watch.states().cloned().collect();
    assert_eq!(states, [], "345.6 s are needed");
    let mut restarted = Watch::new(watch.rules().clone());
    assert_eq!(restarted.thaw(&watch.freeze_dirty(), states), Vec::<String>::new());
    for second in (300..400).step_by(10) {
        restarted.take(&signal("busy", second, runs(850, 150)));
    }
    assert!(matches!(restarted.look(at(400), &[])[..], [Change::Fired(_)]), "one look after the backlog");

    let strict = Rules::new(Some(&[rule("burn", burn("0.99", None))]), &Workflows::default());
    restarted.set_rules(strict);
    assert!(matches!(restarted.look(at(410), &[])[..], [Change::Cleared(_)]));
    restarted.set_rules(watch.rules().clone());
    assert!(matches!(restarted.look(at(420), &[])[..], [Change::Fired(_)]), "no count was lost");
    restarted.set_rules(Rules::new(Some(&[]), &Workflows::default()));
    assert!(matches!(restarted.look(at(430), &[])[..], [Change::Dropped(_)]), "a rule that is gone knows nothing");
    assert_eq!(restarted.states().count(), 0);
}

#[test]
fn a_clock_that_steps_back_freezes_the_look() {
    let mut watch = burning("0.999", None);
    reports(&mut watch, (-2 * DAY, 0), 10, 1_000, 0);
    reports(&mut watch, (0, 600), 10, 1_000, 150);
    assert_eq!(watch.look(at(-3_600), &[]), []);
    assert_eq!(watch.firing().count(), 1);
}

#[test]
fn a_redriven_failure_and_a_second_end_of_a_run_do_not_count_again() {
    let mut watch = burning("0.999", None);
    let failed = |run, is_redriven| What::Failure {
        is_final: true,
        letter: Some(1),
        run: Some(run),
        is_redriven,
        downstream: None,
        error_type: None,
        times: 1,
    };
    for what in [
        failed(7, false),
        failed(7, false),
        failed(8, true),
        What::Recovery { run: Some(7), downstream: None, times: 1 },
    ] {
        watch.take(&signal("busy", 0, what));
    }
    let window = watch.slots[0].memory.counts.window(T0 + 10, 3_600);
    assert_eq!((window.failed, window.total), (1, 1));
}

#[test]
fn a_failure_told_as_event_and_in_a_report_counts_once() {
    let mut watch = burning("0.999", None);
    watch.take(&signal("busy", 0, runs(9, 1)));
    watch.take(&signal("busy", 1, failure()));
    let window = watch.slots[0].memory.counts.window(T0 + 10, 3_600);
    assert_eq!((window.failed, window.total), (1, 10));
}

#[test]
fn observe_is_kept_with_the_state() {
    let observed = SymptomRule { mode: Mode::Observe, ..rule("burn", burn("0.999", None)) };
    let mut watch = watch(vec![], &[observed]);
    reports(&mut watch, (-2 * DAY, 0), 10, 1_000, 0);
    let (_, fired) = only(reports(&mut watch, (0, 100), 10, 1_000, 1_000));
    assert_eq!(fired.state().mode, Mode::Observe);
}

#[test]
fn a_digest_rule_has_no_page_tier() {
    let digest = SymptomRule { severity: Severity::Digest, ..rule("burn", burn("0.999", None)) };
    let mut watch = watch(vec![], &[digest]);
    reports(&mut watch, (-2 * DAY, 0), 10, 1_000, 0);
    let (_, fired) = only(reports(&mut watch, (0, 100), 10, 1_000, 1_000));
    assert_eq!((fired.state().tier.as_deref(), fired.state().severity), (Some("page_fast"), Severity::Digest));
}

#[test]
fn a_budget_is_known_once_runs_are_reported() {
    let mut watch = burning("0.99", None);
    watch.take(&signal("busy", -DAY, failure()));
    watch.look(at(0), &[]);
    let unknown = only(watch.budgets(at(0)));
    assert!(unknown.left.is_none() && unknown.burns.iter().all(|(_, burn)| burn.is_none()), "{unknown:?}");
    let mut watch = burning("0.99", None);
    watch.take(&signal("busy", -DAY, failure()));
    reports(&mut watch, (-DAY, 0), 100, 100, 1);
    let budget = only(watch.budgets(at(0)));
    assert_eq!((budget.failed, budget.total), (864, 86_400));
    assert_eq!(budget.burns[0].0, Duration::from_secs(300));
    let burn = budget.burns.iter().map(|(_, burn)| burn.unwrap()).fold(0.0, f64::max);
    assert!((0.9..1.1).contains(&burn), "{burn}");
    assert!((0.96..0.97).contains(&budget.left.unwrap().share), "a day of thirty at the allowed rate: {budget:?}");
}
