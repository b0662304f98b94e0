//! Every state meets every input.

use super::*;
use crate::event::{Class, Detail, Disposition, ErrorInfo, EventId, EventType, Fingerprint, TimeMark};
use crate::matcher::{MatchKey, Subject};
use crate::name::ReceiverName;
use crate::route::{GroupKey, Route};
use chrono::TimeDelta;
use std::collections::BTreeMap;

fn at(seconds: i64) -> DateTime<Utc> {
    DateTime::from_timestamp(1_796_000_000 + seconds, 0).unwrap()
}

fn failure(workflow: &str, seconds: i64) -> Event {
    Event {
        id: EventId(format!("{workflow}-{seconds}")),
        event_type: EventType::Failure,
        workflow: WorkflowName::new(workflow),
        step: None,
        run_id: None,
        item: None,
        class: Class::Persistent,
        class_rule: "explicit".to_owned(),
        disposition: Disposition::DeadLettered,
        fingerprint: Fingerprint("v1:0000000000000000".into()),
        error: ErrorInfo::default(),
        attempt: None,
        max_attempts: None,
        downstream: Some("razorpay".to_owned()),
        occurred_at: at(seconds),
        time_mark: TimeMark::Given,
        received_at: at(seconds),
        payload: None,
        payload_cut: false,
        links: BTreeMap::new(),
        labels: BTreeMap::new(),
        detail: Detail::Failure,
        redriven_from: None,
        redrive_count: None,
    }
}

fn minutes(n: u64) -> Duration {
    Duration::from_secs(n * 60)
}

fn incident() -> Incident {
    let terms = Terms {
        routes: vec!["protected".to_owned()],
        page: vec![ReceiverName::new("oncall")],
        remind_every: Some(minutes(240)),
        resolve_after: minutes(15),
        growth_every: minutes(5),
        escalate: vec![EscalationStep { after: minutes(30), to: vec![ReceiverName::new("oncall-mail")] }],
    };
    Incident::open(IncidentId(1), &failure("pay", 0), Domain::Money, terms, 7)
}

const OPEN: Reading = Reading { open_letters: 1 };
const DONE: Reading = Reading { open_letters: 0 };

#[test]
fn nothing_new_and_nothing_open_resolves_after_the_quiet_time() {
    let incident = incident();
    assert_eq!(advance(&incident, DONE, at(899)), Transition::Rest);
    assert_eq!(advance(&incident, DONE, at(900)), Transition::Resolve);
    assert_eq!(advance(&incident, OPEN, at(900)), Transition::Rest);
}

#[test]
fn a_new_failure_starts_the_quiet_time_again() {
    let mut incident = incident();
    incident.add_failure(&failure("pay", 600));
    assert_eq!(advance(&incident, DONE, at(1499)), Transition::Rest);
    assert_eq!(advance(&incident, DONE, at(1500)), Transition::Resolve);
}

#[test]
fn growth_is_told_at_ten_times_what_was_last_told_and_not_more_often_than_growth_every() {
    let mut incident = incident();
    for n in 1..9 {
        incident.add_failure(&failure("pay", n));
    }
    assert_eq!(advance(&incident, OPEN, at(301)), Transition::Rest);
    incident.add_failure(&failure("pay", 9));
    assert_eq!(advance(&incident, OPEN, at(299)), Transition::Rest);
    let growth = advance(&incident, OPEN, at(300));
    assert_eq!(growth, Transition::Remind(ReminderReason::Growth));
    incident.note_told(&growth, at(300));
    assert_eq!(advance(&incident, OPEN, at(900)), Transition::Rest);
}

#[test]
fn an_escalation_step_is_taken_once_and_never_after_somebody_acknowledged() {
    let mut incident = incident();
    let step = advance(&incident, OPEN, at(1800));
    assert!(matches!(step, Transition::Escalate(_)), "{step:?}");
    incident.note_told(&step, at(1800));
    assert_eq!(advance(&incident, OPEN, at(1801)), Transition::Rest);

    let mut taken = self::incident();
    assert!(taken.acknowledge(Some("asha".to_owned()), at(60)));
    assert_eq!(advance(&taken, OPEN, at(100_000)), Transition::Rest);
}

#[test]
fn reminders_come_every_so_often_until_acknowledged() {
    let mut incident = incident();
    incident.told.escalated_count = 1;
    let reminder = advance(&incident, OPEN, at(14_400));
    assert_eq!(reminder, Transition::Remind(ReminderReason::Interval));
    incident.note_told(&reminder, at(14_400));
    assert_eq!(advance(&incident, OPEN, at(14_401)), Transition::Rest);
    assert_eq!(advance(&incident, OPEN, at(28_800)), Transition::Remind(ReminderReason::Interval));
}

#[test]
fn groups_with_equal_values_of_other_keys_are_other_incidents() {
    let event = failure("pay", 0);
    let subject = Subject { workflow: &event.workflow, event: Some(&event), domain: Domain::Money, labels: None };
    let route = |group_by: Vec<GroupKey>| Route {
        name: crate::name::RouteName::new("r"),
        matcher: crate::matcher::Matcher::default(),
        page: vec![ReceiverName::new("oncall")],
        digest: BTreeMap::new(),
        group_by,
        remind_every: None,
        resolve_after: minutes(15),
        growth_every: minutes(5),
        escalate: Vec::new(),
        continues: false,
    };
    let key = |keys: &[MatchKey]| key_of(&[&route(keys.iter().cloned().map(GroupKey::Match).collect())], subject);
    assert_eq!(key(&[MatchKey::Workflow]).as_deref(), Some("workflow=pay"));
    assert_eq!(key(&[MatchKey::Downstream]).as_deref(), Some("downstream=razorpay"));
    assert_eq!(key(&[MatchKey::Step]).as_deref(), Some("step\u{1f}workflow=pay"));
}

#[test]
fn what_is_resolved_rests_and_takes_no_further_word() {
    let mut incident = incident();
    assert!(incident.resolve(None, at(60)));
    assert!(!incident.resolve(Some("asha".to_owned()), at(61)));
    assert!(!incident.acknowledge(None, at(61)));
    assert_eq!(incident.resolved_at, Some(at(60)));
    for seconds in [0, 900, 1_000_000] {
        assert_eq!(advance(&incident, DONE, at(seconds)), Transition::Rest);
    }
}

#[test]
fn a_clock_that_was_stepped_back_tells_nothing() {
    let incident = incident();
    assert_eq!(advance(&incident, DONE, at(-100_000)), Transition::Rest);
}

#[test]
fn workflows_of_one_downstream_share_a_page_for_ten_minutes() {
    let mut incident = incident();
    let terms = incident.terms.clone();
    assert!(incident.shares_cause("razorpay", &terms, at(600)));
    assert!(!incident.shares_cause("razorpay", &terms, at(600) + TimeDelta::milliseconds(1)));
    assert!(!incident.shares_cause("hubspot", &terms, at(1)));
    let others = Terms { page: vec![ReceiverName::new("payments")], ..terms.clone() };
    assert!(!incident.shares_cause("razorpay", &others, at(1)), "whom nobody has paged must be paged");
    let mut taken = incident.clone();
    taken.acknowledge(None, at(2));
    assert!(!taken.shares_cause("razorpay", &terms, at(3)), "who took it took something smaller");
    incident.add_failure(&failure("payout", 5));
    incident.add_item(&WorkflowName::new("payout"));
    assert_eq!((incident.event_count(), incident.item_count(), incident.hits.len()), (2, 1, 2));
}

#[test]
fn nothing_is_to_be_done_before_the_next_change_and_something_at_it() {
    let told = |events, reminded, escalated_count| {
        let mut incident = incident();
        incident.told = Told { events, at: at(reminded), reminded_at: at(reminded), escalated_count, page_number: 7 };
        for n in 0..11 {
            incident.add_failure(&failure("pay", n * 20));
        }
        incident
    };
    for reading in [OPEN, DONE] {
        for (events, reminded, escalated) in [(1, 0, 0), (1, 0, 1), (12, 600, 0), (12, 600, 1)] {
            for acknowledged in [false, true] {
                let mut incident = told(events, reminded, escalated);
                if acknowledged {
                    incident.acknowledge(None, at(601));
                }
                let what = format!("{reading:?} {events} {reminded} {escalated} {acknowledged}");
                let Some(next) = next_change_at(&incident, reading) else {
                    assert_eq!(advance(&incident, reading, at(400_000)), Transition::Rest, "{what}");
                    continue;
                };
                assert_eq!(advance(&incident, reading, next - TimeDelta::milliseconds(1)), Transition::Rest, "{what}");
                assert_ne!(advance(&incident, reading, next), Transition::Rest, "{what}");
            }
        }
    }
}

#[test]
fn an_incident_that_is_over_never_changes() {
    let mut incident = incident();
    incident.resolve(None, at(5));
    assert_eq!(next_change_at(&incident, DONE), None);
}

#[test]
fn ten_times_what_was_told_is_grown() {
    let mut incident = incident();
    assert_eq!(failures_until_grown(&incident), 9);
    (0..9).for_each(|n| incident.add_failure(&failure("pay", n)));
    assert_eq!(failures_until_grown(&incident), 0);
}

fn symptom(key: &str, seconds: i64) -> JoinedSymptom {
    let text = "pay spent 23 % of its error budget".to_owned();
    JoinedSymptom {
        key: key.to_owned(),
        text,
        since: at(seconds),
        ended_at: None,
        is_dropped: false,
        is_of_letters: false,
    }
}

fn by_symptom() -> Incident {
    let terms = incident().terms;
    let hit = [WorkflowName::new("pay")];
    Incident::open_by_symptom(IncidentId(2), symptom("burn", 0), &hit, Domain::Money, terms, 8, at(0))
}

#[test]
fn an_incident_rests_open_while_a_symptom_of_it_fires_and_for_the_quiet_time_after() {
    let mut incident = by_symptom();
    incident.acknowledge(None, at(1));
    assert_eq!(advance(&incident, DONE, at(100_000)), Transition::Rest);
    assert_eq!(next_change_at(&incident, DONE), None);
    assert!(incident.end_symptom("burn", at(100_000)));
    assert!(!incident.end_symptom("burn", at(100_001)), "it is over already");
    assert_eq!(next_change_at(&incident, DONE), Some(at(100_900)));
    assert_eq!(advance(&incident, DONE, at(100_899)), Transition::Rest);
    assert_eq!(advance(&incident, DONE, at(100_900)), Transition::Resolve);
}

#[test]
fn a_symptom_that_fires_again_rejoins_and_starts_the_quiet_time_again() {
    let mut incident = by_symptom();
    incident.end_symptom("burn", at(60));
    incident.join(symptom("burn", 300));
    assert_eq!(incident.symptoms.len(), 1);
    assert_eq!(advance(&incident, DONE, at(1_200)), Transition::Rest);
}

#[test]
fn the_end_of_a_symptom_of_dead_letters_is_no_news() {
    let mut incident = incident();
    incident.join(JoinedSymptom { is_of_letters: true, ..symptom("dead_letter_age", 3_600) });
    assert_eq!(advance(&incident, DONE, at(3_700)), Transition::Escalate(incident.terms.escalate[0].clone()));
    incident.end_symptom("dead_letter_age", at(4_000));
    assert_eq!(advance(&incident, DONE, at(4_000)), Transition::Resolve);
}

#[test]
fn an_incident_that_dead_letters_alone_opened_stays_open_for_the_quiet_time_so_that_flicker_rejoins_it() {
    let hit = [WorkflowName::new("pay")];
    let depth = JoinedSymptom { is_of_letters: true, ..symptom("dead_letter_depth", 0) };
    let mut incident = Incident::open_by_symptom(IncidentId(3), depth, &hit, Domain::Money, incident().terms, 9, at(0));
    incident.acknowledge(None, at(1));
    incident.end_symptom("dead_letter_depth", at(60));
    assert_eq!(advance(&incident, DONE, at(959)), Transition::Rest);
    assert_eq!(advance(&incident, DONE, at(960)), Transition::Resolve);
}

#[test]
fn an_incident_that_a_symptom_opened_grows_by_failures_only() {
    let mut incident = by_symptom();
    incident.acknowledge(None, at(1));
    assert_eq!(advance(&incident, OPEN, at(600)), Transition::Rest);
    assert_eq!(failures_until_grown(&incident), 10);
    (0..10).for_each(|n| incident.add_failure(&failure("pay", n)));
    assert_eq!(advance(&incident, OPEN, at(600)), Transition::Remind(ReminderReason::Growth));
}

#[test]
fn an_incident_whose_rules_are_gone_was_dropped_and_one_with_a_failure_was_not() {
    let mut of_symptom = by_symptom();
    assert!(of_symptom.drop_symptom("burn", at(60)) && of_symptom.was_dropped());
    assert!(!of_symptom.drop_symptom("burn", at(70)), "it is over already");
    assert!(!of_symptom.has_symptom());
    of_symptom.join(symptom("burn", 300));
    assert!(of_symptom.end_symptom("burn", at(400)) && !of_symptom.was_dropped(), "it fired again, and cleared");
    let mut of_two = by_symptom();
    of_two.join(symptom("streak", 10));
    assert!(of_two.drop_symptom("burn", at(60)) && of_two.end_symptom("streak", at(90)));
    assert!(!of_two.was_dropped(), "the last of it is known to be over");
    let mut of_failure = incident();
    of_failure.join(symptom("burn", 0));
    assert!(of_failure.drop_symptom("burn", at(60)) && !of_failure.was_dropped());
}
