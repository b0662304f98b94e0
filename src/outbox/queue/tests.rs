//! The queue on a store in memory: order, claims, leases, settlements, redrives.

use super::standing::{BrokenTransition, Target};
use super::*;
use crate::name::ReceiverName;
use crate::outbox::{DeadReason, MessageKind};
use crate::render::SlackMessage;
use serde_json::json;

fn at(second: i64) -> DateTime<Utc> {
    crate::store::from_ms(1_772_000_000_000 + second * 1000)
}

fn entry(kind: MessageKind, receiver: &str, due: i64) -> NewEntry {
    let blocks = vec![json!({"type": "divider"})];
    NewEntry {
        number: 7,
        kind,
        receiver: receiver.into(),
        address: None,
        workflow: Some("pay".into()),
        incident_id: None,
        digest_id: None,
        template: kind.as_str().into(),
        view: json!({"what": "declined"}),
        content: Content::Slack(SlackMessage { text: "declined".into(), blocks }),
        fallback_of: None,
        due_at: at(due),
        created_at: at(0),
    }
}

async fn store_with(entries: &[NewEntry]) -> Store {
    let store = Store::open("sqlite::memory:").await.unwrap();
    let mut tx = store.begin().await.unwrap();
    for entry in entries {
        enqueue(&mut tx, entry).await.unwrap();
    }
    tx.commit().await.unwrap();
    store
}

fn lease(owner: &str) -> Lease {
    Lease { owner: owner.into(), until: at(30) }
}

async fn next(store: &Store, receiver: &str, admit: Admit, now: i64) -> Option<i64> {
    next_due(store.reader(), &receiver.into(), admit, at(now)).await.unwrap().map(|(id, _)| id.0)
}

async fn settled(store: &Store, claimed: &Claimed, settlement: &Settlement) -> SettleOutcome {
    let mut tx = store.begin().await.unwrap();
    let outcome = settle(&mut tx, claimed, settlement, &[], at(1)).await.unwrap();
    tx.commit().await.unwrap();
    outcome
}

async fn released(store: &Store, now: DateTime<Utc>) -> Vec<ReleaseOutcome> {
    let mut outcomes = Vec::new();
    for lost in lost_claims(store.reader(), Abandoned::Expired, now).await.unwrap() {
        let mut tx = store.begin().await.unwrap();
        outcomes.push(release(&mut tx, &lost, now).await.unwrap());
        tx.commit().await.unwrap();
    }
    outcomes
}

#[tokio::test]
async fn what_was_enqueued_is_read_back_whole() {
    let new = entry(MessageKind::Page, "oncall", 0);
    let store = store_with(std::slice::from_ref(&new)).await;
    let stored = find(store.reader(), EntryId(1)).await.unwrap().unwrap();
    assert_eq!(stored.new, new);
    assert_eq!((stored.state, stored.attempts), (State::Pending, 0));
}

#[tokio::test]
async fn numbers_are_taken_once() {
    let store = store_with(&[]).await;
    let mut tx = store.begin().await.unwrap();
    assert_eq!(next_numbers(&mut tx, 3).await.unwrap(), 1);
    assert_eq!(next_numbers(&mut tx, 1).await.unwrap(), 4);
}

#[tokio::test]
async fn pages_go_before_digests_that_have_waited_longer() {
    let digest = entry(MessageKind::Digest, "ops", 0);
    let page = entry(MessageKind::Page, "ops", 5);
    let store = store_with(&[digest, page]).await;
    assert_eq!(next(&store, "ops", Admit::All, 4).await, Some(1), "the page is not due yet");
    assert_eq!(next(&store, "ops", Admit::All, 5).await, Some(2));
    assert_eq!(next(&store, "ops", Admit::All, -1).await, None);
}

#[tokio::test]
async fn each_receiver_that_something_waits_for_is_listed_once() {
    let entries = ["ops", "oncall", "ops", "mail"].map(|r| entry(MessageKind::Digest, r, 0));
    let store = store_with(&entries).await;
    let waiting = waiting_receivers(store.reader()).await.unwrap();
    assert_eq!(waiting, ["mail", "oncall", "ops"].map(ReceiverName::from));
}

#[tokio::test]
async fn an_entry_is_claimed_once_and_the_try_is_counted() {
    let store = store_with(&[entry(MessageKind::Page, "oncall", 0)]).await;
    let first = claim(&store, &[EntryId(1)], &lease("a")).await.unwrap();
    assert_eq!(first[0].entry().attempts, 1);
    assert!(claim(&store, &[EntryId(1)], &lease("b")).await.unwrap().is_empty());
    assert_eq!(next(&store, "oncall", Admit::All, 9).await, None);
}

#[tokio::test]
async fn who_lost_the_lease_settles_nothing() {
    let store = store_with(&[entry(MessageKind::Page, "oncall", 0)]).await;
    let claimed = claim(&store, &[EntryId(1)], &lease("a")).await.unwrap().remove(0);
    assert_eq!(released(&store, at(10)).await, [], "it has not run out");
    assert_eq!(released(&store, at(31)).await, [ReleaseOutcome::Repeated]);
    assert_eq!(settled(&store, &claimed, &Settlement::Sent { note: None }).await, SettleOutcome::LeaseLost);
    let stored = find(store.reader(), EntryId(1)).await.unwrap().unwrap();
    assert_eq!((stored.state, stored.attempts, stored.unsure_attempts), (State::Pending, 1, 1));
}

#[tokio::test]
async fn a_page_lost_in_crash_after_crash_is_given_up_and_handed_to_whoever_asked() {
    let store = store_with(&[entry(MessageKind::Page, "oncall", 0)]).await;
    for _ in 0..5 {
        claim(&store, &[EntryId(1)], &lease("a")).await.unwrap();
        assert_eq!(released(&store, at(31)).await, [ReleaseOutcome::Repeated]);
    }
    claim(&store, &[EntryId(1)], &lease("a")).await.unwrap();
    let outcomes = released(&store, at(31)).await;
    let [ReleaseOutcome::GivenUp(entry, settlement)] = outcomes.as_slice() else { panic!("{outcomes:?}") };
    assert_eq!((entry.id, entry.state, entry.attempts), (EntryId(1), State::Unsure, 6));
    assert!(settlement.wants_fallback(entry.new.kind));
}

#[tokio::test]
async fn a_claim_settled_meanwhile_is_left() {
    let store = store_with(&[entry(MessageKind::Page, "oncall", 0)]).await;
    let claimed = claim(&store, &[EntryId(1)], &lease("a")).await.unwrap().remove(0);
    let lost = lost_claims(store.reader(), Abandoned::Expired, at(31)).await.unwrap().remove(0);
    settled(&store, &claimed, &Settlement::Sent { note: None }).await;
    let mut tx = store.begin().await.unwrap();
    assert_eq!(release(&mut tx, &lost, at(31)).await.unwrap(), ReleaseOutcome::Left);
}

#[tokio::test]
async fn a_retry_is_not_due_before_its_time_and_not_a_first_try() {
    let store = store_with(&[entry(MessageKind::Page, "oncall", 0)]).await;
    let claimed = claim(&store, &[EntryId(1)], &lease("a")).await.unwrap().remove(0);
    let retry = Settlement::Retry { due_at: at(6), why: "503".into() };
    assert_eq!(settled(&store, &claimed, &retry).await, SettleOutcome::Settled);
    assert_eq!(next(&store, "oncall", Admit::All, 5).await, None);
    assert_eq!(next(&store, "oncall", Admit::All, 6).await, Some(1));
    assert_eq!(next(&store, "oncall", Admit::FirstTries, 6).await, None);
    assert_eq!(earliest_due(store.reader(), &"oncall".into()).await.unwrap(), Some(at(6)));
}

#[tokio::test]
async fn a_plain_retry_has_no_blocks() {
    let store = store_with(&[entry(MessageKind::Page, "oncall", 0)]).await;
    let claimed = claim(&store, &[EntryId(1)], &lease("a")).await.unwrap().remove(0);
    settled(&store, &claimed, &Settlement::RetryPlain { due_at: at(1), why: "invalid_blocks".into() }).await;
    let stored = find(store.reader(), EntryId(1)).await.unwrap().unwrap();
    assert_eq!(stored.new.content, Content::Slack(SlackMessage { text: "declined".into(), blocks: vec![] }));
}

#[tokio::test]
async fn a_dead_entry_can_be_redriven_and_keeps_its_number_and_count() {
    let store = store_with(&[entry(MessageKind::Page, "oncall", 0)]).await;
    let claimed = claim(&store, &[EntryId(1)], &lease("a")).await.unwrap().remove(0);
    settled(&store, &claimed, &Settlement::Dead { reason: DeadReason::Refused, why: "no".into() }).await;
    let row = list(store.reader(), None, 10).await.unwrap().remove(0);
    assert_eq!(
        (row.state, row.reason.as_deref(), row.last_error.as_deref()),
        (State::Dead, Some("refused"), Some("no"))
    );
    let mut tx = store.begin().await.unwrap();
    assert_eq!(redrive(&mut tx, EntryId(1), at(9)).await.unwrap(), RedriveOutcome::Redriven);
    assert_eq!(redrive(&mut tx, EntryId(1), at(9)).await.unwrap(), RedriveOutcome::Left);
    tx.commit().await.unwrap();
    let row = list(store.reader(), None, 10).await.unwrap().remove(0);
    assert_eq!((row.state, row.number, row.attempts), (State::Pending, 7, 1));
    assert_eq!((row.due_at, row.created_at), (at(9), at(9)), "its three days begin anew");
}

#[tokio::test]
async fn an_entry_has_at_most_one_stand_in() {
    let store = store_with(&[entry(MessageKind::Page, "oncall", 0)]).await;
    let copy = NewEntry { fallback_of: Some(EntryId(1)), ..entry(MessageKind::Page, "mail", 0) };
    assert_eq!(overdue(store.reader(), &"oncall".into(), at(0)).await.unwrap().len(), 1);
    let mut tx = store.begin().await.unwrap();
    assert_eq!(stand_in(&mut tx, EntryId(1), &copy).await.unwrap(), Some(EntryId(2)));
    assert_eq!(stand_in(&mut tx, EntryId(1), &copy).await.unwrap(), None);
    let back = NewEntry { fallback_of: Some(EntryId(2)), ..entry(MessageKind::Page, "oncall", 0) };
    assert_eq!(stand_in(&mut tx, EntryId(2), &back).await.unwrap(), None, "it came from there");
    tx.commit().await.unwrap();
    assert_eq!(overdue(store.reader(), &"oncall".into(), at(0)).await.unwrap(), []);
}

#[tokio::test]
async fn a_broken_receiver_is_told_of_once_until_it_works_again() {
    let store = store_with(&[]).await;
    let target = Target { receiver: "oncall".into(), address: String::new() };
    let mut tx = store.begin().await.unwrap();
    let mut mark = async |second| {
        standing::mark_broken(&mut tx, &target, "no_service", at(second), at(second + 600)).await.unwrap()
    };
    assert_eq!(mark(0).await, BrokenTransition::Broke);
    assert_eq!(mark(600).await, BrokenTransition::StillBroken);
    standing::pause(&mut tx, &target, at(5)).await.unwrap();
    tx.commit().await.unwrap();
    let (_, stored) = standing::read_all(store.reader()).await.unwrap().remove(0);
    assert_eq!((stored.broken_since, stored.paused_until), (Some(at(0)), Some(at(5))));
    assert!(stored.is_broken(at(1199)) && !stored.is_broken(at(1200)), "it is probed then");
    let mut tx = store.begin().await.unwrap();
    standing::clear(&mut tx, &target).await.unwrap();
    tx.commit().await.unwrap();
    assert_eq!(standing::read_all(store.reader()).await.unwrap(), []);
}

#[tokio::test]
async fn of_refused_messages_the_operator_hears_once_a_day() {
    let store = store_with(&[]).await;
    let target = Target { receiver: "oncall".into(), address: String::new() };
    let mut tx = store.begin().await.unwrap();
    let mut note = async |second| standing::note_refusal(&mut tx, &target, at(second)).await.unwrap();
    assert_eq!(note(0).await, BrokenTransition::Broke);
    assert_eq!(note(86_399).await, BrokenTransition::StillBroken);
    assert_eq!(note(86_400).await, BrokenTransition::Broke);
}

#[tokio::test]
async fn what_a_clock_that_was_set_back_left_far_in_the_future_is_due() {
    let store =
        store_with(&[entry(MessageKind::Page, "ops", 24 * 3600), entry(MessageKind::Page, "other", 3600)]).await;
    assert_eq!(next(&store, "ops", Admit::All, 0).await, Some(1));
    assert_eq!(next(&store, "other", Admit::All, 0).await, None, "a receiver may ask for an hour");
}

#[tokio::test]
async fn when_the_clock_is_set_back_what_waits_and_what_is_lost_is_taken_along() {
    let store = store_with(&[entry(MessageKind::Page, "ops", 0), entry(MessageKind::Page, "other", 0)]).await;
    claim(&store, &[EntryId(1)], &lease("lost")).await.unwrap();
    assert_eq!(next(&store, "other", Admit::All, -600).await, None);
    set_back(&store, TimeDelta::seconds(600)).await.unwrap();
    assert_eq!(next(&store, "other", Admit::All, -600).await, Some(2));
    assert_eq!(released(&store, at(-600 + 31)).await, [ReleaseOutcome::Repeated]);
    assert_eq!(overdue(store.reader(), &"other".into(), at(-600)).await.unwrap().len(), 1);
}
