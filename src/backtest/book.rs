//! The dead letters of a play as the store will have them, known before they are committed: opened, repeated and resolved by the same
//! keys. Pure.

use crate::event::{Detail, Event};
use crate::ingest::letter_ops::{keeps_letter, letter_key};
use crate::name::WorkflowName;
use crate::store::key::Key;
use crate::symptom::{OldestLetter, Standing};
use chrono::{DateTime, TimeDelta, Utc};
use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};

/// Dead letters by workflow.
#[derive(Debug, Default)]
pub(super) struct LetterBook {
    workflows: HashMap<WorkflowName, Letters>,
    opened_count: u64,
    /// How far back arrivals are remembered; none when nobody asks.
    arrivals: Option<TimeDelta>,
}

/// Dead letters of one workflow.
#[derive(Debug, Default)]
struct Letters {
    open: HashMap<Key, Letter>,
    by_age: BTreeSet<(DateTime<Utc>, u64, Key)>,
    downstreams: BTreeMap<Option<String>, u64>,
    resolved_at: Option<DateTime<Utc>>,
    arrived_at: VecDeque<DateTime<Utc>>,
}

#[derive(Debug)]
struct Letter {
    failed_at: DateTime<Utc>,
    number: u64,
    name: String,
    downstream: Option<String>,
}

impl LetterBook {
    pub fn new(arrivals: Option<TimeDelta>) -> Self {
        Self { arrivals, ..Self::default() }
    }

    /// Takes what an event opens, repeats or resolves by its item. Gives how the workflow stands then; none when nothing changed.
    pub fn take(&mut self, event: &Event) -> Option<Standing> {
        if keeps_letter(event) {
            return Some(self.open(event));
        }
        match &event.detail {
            Detail::Resolution { .. } | Detail::Recovery { .. } if event.item.is_some() => {
                self.resolve(&event.workflow, &letter_key(event), event.received_at)
            }
            Detail::Failure
            | Detail::Resolution { .. }
            | Detail::Recovery { .. }
            | Detail::Outcome(_)
            | Detail::Heartbeat { .. }
            | Detail::Breaker { .. } => None,
        }
    }

    fn open(&mut self, event: &Event) -> Standing {
        let (key, number) = (letter_key(event), self.opened_count);
        let letters = self.workflows.entry(event.workflow.clone()).or_default();
        let known = letters.remove(&key);
        if known.is_none() {
            self.opened_count += 1;
            letters.arrive(event.received_at, self.arrivals);
        }
        let name = event.item.clone().or_else(|| event.step.clone());
        let letter = Letter {
            failed_at: known.as_ref().map_or(event.occurred_at, |k| k.failed_at.min(event.occurred_at)),
            number: known.map_or(number, |k| k.number),
            name: name.unwrap_or_else(|| format!("a failure that is {}", event.class)),
            downstream: event.downstream.clone(),
        };
        letters.insert(key, letter);
        letters.standing(event.received_at, self.arrivals)
    }

    /// Resolves the letter of this key; none when there is no open one.
    pub fn resolve(&mut self, workflow: &WorkflowName, key: &Key, at: DateTime<Utc>) -> Option<Standing> {
        let letters = self.workflows.get_mut(workflow)?;
        letters.remove(key)?;
        letters.resolved_at = letters.resolved_at.max(Some(at));
        Some(letters.standing(at, self.arrivals))
    }
}

impl Letters {
    fn insert(&mut self, key: Key, letter: Letter) {
        self.by_age.insert((letter.failed_at, letter.number, key));
        *self.downstreams.entry(letter.downstream.clone()).or_default() += 1;
        self.open.insert(key, letter);
    }

    fn remove(&mut self, key: &Key) -> Option<Letter> {
        let letter = self.open.remove(key)?;
        self.by_age.remove(&(letter.failed_at, letter.number, *key));
        if let Some(count) = self.downstreams.get_mut(&letter.downstream) {
            *count -= 1;
            if *count == 0 {
                self.downstreams.remove(&letter.downstream);
            }
        }
        Some(letter)
    }

    fn arrive(&mut self, at: DateTime<Utc>, window: Option<TimeDelta>) {
        if window.is_some() {
            self.arrived_at.push_back(at);
        }
    }

    fn standing(&mut self, now: DateTime<Utc>, window: Option<TimeDelta>) -> Standing {
        if let Some(window) = window {
            while self.arrived_at.front().is_some_and(|at| *at < now - window) {
                self.arrived_at.pop_front();
            }
        }
        let oldest = self.by_age.first().and_then(|(_, _, key)| self.open.get(key));
        let sole = self.downstreams.keys().next().filter(|_| self.downstreams.len() == 1);
        Standing {
            open_count: self.open.len() as u64,
            oldest: oldest.map(|l| OldestLetter { failed_at: l.failed_at, name: l.name.clone() }),
            last_resolved_at: self.resolved_at,
            downstream: sole.cloned().flatten(),
            arrivals: self.arrived_at.iter().copied().collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::app::symptoms::standings;
    use crate::backtest::KEYS;
    use crate::incident::Incident;
    use crate::ingest::commit::{Intake, Item, Keeping, Progress, Redelivered};
    use crate::ingest::page::Pager;
    use crate::ingest::{DecodeOutcome, Inbound, Reader};
    use crate::outbox::NewEntry;
    use crate::route::Policy;
    use crate::store::Store;
    use crate::workflow::Workflows;
    use proptest::prelude::*;
    use serde_json::{Value, json};

    struct Nobody;

    impl Pager for Nobody {
        fn page(&self, _: &Incident, _: DateTime<Utc>) -> Vec<NewEntry> {
            Vec::new()
        }
    }

    fn at(seconds: usize) -> DateTime<Utc> {
        DateTime::from_timestamp(1_796_000_000 + i64::try_from(seconds).unwrap(), 0).unwrap()
    }

    /// A failure, a recovery or a resolution of one of few items, each at its own second; some happened long before they arrived.
    fn body(n: usize, (kind, workflow, item, late): (u8, u8, u8, u8)) -> Value {
        let mut body = json!({ "id": format!("e{n}"), "workflow": format!("w{workflow}"), "item": format!("i{item}"),
            "occurred_at": at(n).to_rfc3339() });
        match kind {
            0..6 => {
                body["error"] = json!({ "http_status": 422, "message": format!("cause of {item}") });
                body["occurred_at"] = json!(at(n.saturating_sub(usize::from(late) * 7)).to_rfc3339());
                if item % 3 > 0 {
                    body["downstream"] = json!(format!("d{}", item % 3));
                }
            }
            6..8 => body["type"] = json!("recovery"),
            _ => body["type"] = json!("resolution"),
        }
        body
    }

    fn read(body: &Value, n: usize) -> Box<crate::ingest::Decoded> {
        let reader = Reader::new(&crate::config::RedactSettings::default(), &[], &KEYS.redaction);
        let payload = body.to_string();
        let inbound = Inbound {
            subject: "file",
            headers: &[],
            payload: payload.as_bytes(),
            stream: "file",
            sequence: n as u64 + 1,
            received_at: at(n),
        };
        match reader.read(inbound) {
            DecodeOutcome::Event(decoded) => decoded,
            DecodeOutcome::Quarantine { reason } => panic!("{reason}"),
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 24, ..ProptestConfig::default() })]

        #[test]
        fn the_book_says_what_the_store_will_say(
            steps in prop::collection::vec((0_u8..10, 0_u8..3, 0_u8..5, 0_u8..4), 1..80),
            batch in 1_usize..20,
        ) {
            let events: Vec<_> = steps.iter().enumerate().map(|(n, step)| read(&body(n, *step), n)).collect();
            let mut book = LetterBook::new(None);
            let mut told: BTreeMap<String, Standing> = BTreeMap::new();
            for decoded in &events {
                if let Some(standing) = book.take(&decoded.event) {
                    told.insert(decoded.event.workflow.to_string(), standing);
                }
            }
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
            let stored = runtime.block_on(async {
                let store = Store::open("sqlite::memory:").await.unwrap();
                let mut intake = Intake::new(store.clone(), Keeping::All);
                let policy = Policy {
                    config_version: "v".to_owned(),
                    workflows: Workflows::default(),
                    routes: Vec::new(),
                    silences: Vec::new(),
                };
                let last = events.len();
                for (number, chunk) in events.into_iter().enumerate().collect::<Vec<_>>().chunks(batch).map(<[_]>::to_vec).enumerate() {
                    let items: Vec<Item> = chunk.into_iter().map(|(_, e)| Item::Event(e, Redelivered::No)).collect();
                    let sequence = i64::try_from(number).unwrap() + 1;
                    let progress = Progress {
                        stream: "file".to_owned(),
                        stream_made_at: DateTime::UNIX_EPOCH,
                        sequence,
                        arrival_at: at(last),
                        lag: 0,
                    };
                    intake.commit(&items, &progress, &policy, &Nobody, at(last)).await.unwrap();
                }
                standings(&store, &["w0", "w1", "w2"], None, at(last)).await.unwrap()
            });
            for (workflow, standing) in stored {
                let wanted = told.remove(workflow.as_str()).unwrap_or_default();
                prop_assert_eq!(wanted, standing, "{}", workflow);
            }
            prop_assert!(told.values().all(|standing| standing.open_count == 0 && standing.oldest.is_none()));
        }
    }
}
