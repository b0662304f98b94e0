//! Looking only when there is news or something is due finds the same, at the same instants, as looking every 10 s.

use super::*;
use crate::event::{BreakerState, HeartbeatStatus};
use proptest::prelude::*;

const HORIZON: i64 = 2 * 86_400;

fn rules() -> Vec<SymptomRule> {
    let burn = |expected_per_day| SymptomKind::BurnRate {
        slo: Some("0.99".to_owned()),
        period: None,
        expected_per_day,
        tiers: None,
        min_failures: None,
    };
    vec![
        rule("learned", burn(None)),
        rule("declared", burn(Some(5_000))),
        rule("streak", SymptomKind::FailingStreak { count: Some(3), over: None }),
        rule("quiet", SymptomKind::Absence),
        rule("ill", SymptomKind::Unhealthy { degraded_for: None }),
        rule("retries", SymptomKind::RetryPressure { over: None, window: None }),
        rule("offender", SymptomKind::RepeatOffender { count: None, of: None }),
        rule("everywhere", SymptomKind::Systemic { count: Some(2), window: None }),
        rule("breaker", SymptomKind::Breaker { ratio: None, of: Some(4) }),
    ]
}

fn expected(name: &str) -> Workflow {
    Workflow { every: Some(Duration::from_secs(7_200)), grace: Duration::from_secs(600), ..workflow(name) }
}

fn new_watch() -> Watch {
    let mut watch = watch(vec![expected("a"), expected("b")], &rules());
    watch.know(&WorkflowName::from("a"), at(0));
    watch.know(&WorkflowName::from("b"), at(0));
    watch
}

/// A burst of one kind of signal: from when, how many, how far apart, what.
fn bursts() -> impl Strategy<Value = Vec<(i64, i64, i64, u8, bool)>> {
    let step = prop_oneof![1i64..30, 60i64..400, 1_000i64..4_000];
    proptest::collection::vec((0i64..HORIZON / 2, 1i64..40, step, 0u8..11, any::<bool>()), 1..9)
}

fn what(kind: u8, n: i64) -> What {
    let downstream = Some(["hubspot", "stripe"][usize::from(kind % 2)].to_owned());
    match kind {
        0..3 => runs(5, 0),
        3 => runs(20, 1),
        4 => runs(0, 2),
        5 | 6 => What::Failure {
            is_final: true,
            letter: Some(n.unsigned_abs()),
            run: None,
            is_redriven: false,
            downstream,
            error_type: None,
            times: 1,
        },
        7 => What::Failure {
            is_final: false,
            letter: None,
            run: None,
            is_redriven: false,
            downstream,
            error_type: None,
            times: 1,
        },
        8 => What::Recovery { run: None, downstream, times: 1 },
        9 => {
            let state = BreakerState::ALL[usize::try_from(n % 3).unwrap()];
            What::Breaker { downstream: "hubspot".to_owned(), state }
        }
        _ => What::Heartbeat { status: HeartbeatStatus::ALL[usize::try_from(n % 3).unwrap()] },
    }
}

fn timeline(bursts: &[(i64, i64, i64, u8, bool)]) -> Vec<Signal> {
    let of = |(from, count, step, kind, is_a): &(i64, i64, i64, u8, bool)| {
        let (from, step, kind, name) = (*from, *step, *kind, if *is_a { "a" } else { "b" });
        (0..*count).map(move |n| signal(name, from + n * step, what(kind, n))).collect::<Vec<_>>()
    };
    let mut signals: Vec<Signal> = bursts.iter().flat_map(of).filter(|s| since_t0(s.at) < HORIZON).collect();
    signals.sort_by_key(|signal| signal.at);
    signals
}

type Told = Vec<(i64, String, Option<String>, &'static str)>;

fn told(now: DateTime<Utc>, changes: &[Change]) -> Told {
    let word = |change: &Change| match change {
        Change::Fired(_) => "fired",
        Change::Moved(_) => "moved",
        Change::Cleared(_) => "cleared",
        Change::Held(_) => "held",
        Change::Dropped(_) => "dropped",
    };
    changes.iter().map(|c| (since_t0(now), c.state().key.id(), c.state().tier.clone(), word(c))).collect()
}

fn every_tick(signals: &[Signal]) -> Told {
    let (mut watch, mut all) = (new_watch(), Vec::new());
    let mut signals = signals.iter().peekable();
    for now in (0..=HORIZON).step_by(10) {
        while let Some(signal) = signals.next_if(|signal| since_t0(signal.at) < now) {
            watch.take(signal);
        }
        all.extend(told(at(now), &watch.look(at(now), &[])));
    }
    all
}

fn when_needed(signals: &[Signal]) -> (Told, usize) {
    let (mut watch, mut all, mut looks) = (new_watch(), Vec::new(), 0);
    let mut signals = signals.iter().peekable();
    watch.look(at(0), &[]);
    loop {
        let next = watch.next_look_at();
        if let Some(signal) = signals.next_if(|signal| next.is_none_or(|next| signal.at < next)) {
            watch.take(signal);
            continue;
        }
        let Some(next) = next.filter(|next| since_t0(*next) <= HORIZON) else { break };
        all.extend(told(next, &watch.look(next, &[])));
        looks += 1;
    }
    (all, looks)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(12))]

    #[test]
    fn a_look_that_is_left_out_would_have_found_nothing(bursts in bursts()) {
        let signals = timeline(&bursts);
        let (lazy, looks) = when_needed(&signals);
        prop_assert_eq!(lazy, every_tick(&signals));
        prop_assert!(looks <= usize::try_from(HORIZON / 10).unwrap());
    }
}
