//! When an incident of a burn rate is over: neither while it still burns, nor later than windows can tell.

use super::*;

const MINUTE: i64 = 60;
const HOUR: i64 = 3_600;

fn burning() -> Watch {
    let kind = SymptomKind::BurnRate {
        slo: Some("0.999".to_owned()),
        period: None,
        expected_per_day: None,
        tiers: None,
        min_failures: None,
    };
    watch(vec![], &[rule("rule", kind)])
}

/// Reports ten runs every 10 s from a day before until `until`; of each run `fails` says whether it failed. Gives at which
/// looks there was a state, and whether it fired for a page and was hot.
fn play(until: i64, fails: impl Fn(i64, u64) -> bool) -> Vec<(i64, bool, bool)> {
    let mut watch = burning();
    let mut seen = Vec::new();
    for now in (-24 * HOUR..=until).step_by(10) {
        if let Some(state) = watch.look(at(now), &[]).is_empty().then(|| watch.states().next()).flatten() {
            seen.push((now, state.is_firing() && state.severity == Severity::Page, state.is_hot));
        }
        let failed = (0..10).filter(|place| fails(now, *place)).count() as u64;
        watch.take(&signal("busy", now, runs(10 - failed, failed)));
    }
    seen
}

#[test]
fn what_an_outage_leaves_for_a_ticket_keeps_no_incident_open() {
    let seen = play(4 * HOUR, |at, _| (0..25 * MINUTE).contains(&at));
    let paging = seen.iter().filter(|(_, pages, _)| *pages).map(|(at, ..)| *at).max().unwrap();
    let hot = seen.iter().filter(|(_, _, is_hot)| *is_hot).map(|(at, ..)| *at).max().unwrap();
    // Half an hour is the short window of page_slow.
    assert!((55 * MINUTE - 30..=55 * MINUTE + 70).contains(&paging), "{paging}");
    assert_eq!(hot, paging);
    // The ticket stays.
    assert_eq!(seen.last(), Some(&(4 * HOUR, false, false)));
}

#[test]
fn a_failure_now_and_then_after_an_outage_does_not_keep_it_hot() {
    let seen = play(4 * HOUR, |at, place| {
        (0..25 * MINUTE).contains(&at) || (at > HOUR && at % (5 * MINUTE) == 0 && place == 0)
    });
    assert!(seen.iter().filter(|(at, ..)| *at > 70 * MINUTE).all(|(_, _, is_hot)| !is_hot));
}

#[test]
fn a_slow_burn_that_pauses_for_some_minutes_is_still_hot() {
    // One run of 140 fails: seven times what the objective allows, about two failures in five minutes.
    let burn = |at: i64, place: u64| (0..7 * HOUR).contains(&at) && at % 140 < 10 && place == 0;
    let paused = |at: i64| (6 * HOUR..6 * HOUR + 8 * MINUTE).contains(&at);
    let seen = play(7 * HOUR, |at, place| burn(at, place) && !paused(at));
    let fired = seen.iter().find(|(_, pages, _)| *pages).unwrap().0;
    assert!(fired < 6 * HOUR, "{fired}");
    assert!(seen.iter().filter(|(at, ..)| *at > fired).all(|(_, _, is_hot)| *is_hot));
}
