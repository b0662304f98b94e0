//! The part of a tick that moves incidents: what is due is decided by the `incident` room, and written here with its messages.

use super::symptoms::SymptomDesk;
use super::tick::{NEXT_TICK, Ticked};
use crate::incident::{Incident, IncidentState, Reading, Transition, advance, next_change_at};
use crate::live::Live;
use crate::outbox::queue;
use crate::store::incidents::{self, Unresolved};
use crate::store::{Store, StoreError, WriteTx};
use chrono::{DateTime, Utc};
use std::collections::BTreeMap;
use std::sync::Arc;
use tracing::info;

/// Moves every incident that is due. One that can't be moved holds up no other.
pub(super) async fn advance_all(
    store: &Store,
    live: &Live,
    symptoms: &mut SymptomDesk,
    known: &mut incidents::Known,
    now: DateTime<Utc>,
    ticked: &mut Ticked,
) {
    let open = match all_open(store, known).await {
        Ok(open) => open,
        Err(error) => return ticked.failures.push(("incidents", error)),
    };
    for read in open {
        let reading = Reading { open_letters: read.open_letters };
        let over = ended(&read.incident, symptoms);
        if over.is_empty() && advance(&read.incident, reading, now) == Transition::Rest {
            ticked.look_at(next_change_at(&read.incident, reading));
            ticked.open.push(read.incident);
            continue;
        }
        let firing = read.incident.symptoms.iter().filter(|s| s.ended_at.is_none());
        let sentences = firing.filter_map(|s| Some((s.key.clone(), symptoms.sentence(&s.key)?))).collect();
        match advance_one(store, live, read, &News { over, sentences }, now).await {
            Ok(moved) => {
                ticked.has_messages |= moved.has_moved;
                ticked.look_at(moved.next_at);
                if let Some((version, incident)) = moved.written {
                    known.note(version, incident.clone());
                    ticked.open.extend((incident.state != IncidentState::Resolved).then_some(incident));
                }
            }
            Err(error) => {
                ticked.look_at(Some(now + NEXT_TICK));
                ticked.failures.push(("incident", error));
            }
        }
    }
}

async fn all_open(store: &Store, known: &mut incidents::Known) -> Result<Vec<Unresolved>, StoreError> {
    let mut reader = store.read_snapshot().await?;
    let open = incidents::all_open(&mut reader, known).await?;
    reader.end().await?;
    Ok(open)
}

/// What the symptoms of an incident have come to.
struct News {
    /// Those that are over.
    over: Vec<String>,
    /// What is said now of those that are not, by key.
    sentences: BTreeMap<String, String>,
}

impl News {
    fn put_in(&self, incident: &mut Incident, now: DateTime<Utc>) {
        self.over.iter().for_each(|key| _ = incident.end_symptom(key, now));
        // What is said of them now, not what was when they joined.
        for symptom in incident.symptoms.iter_mut().filter(|s| s.ended_at.is_none()) {
            if let Some(sentence) = self.sentences.get(&symptom.key) {
                symptom.text.clone_from(sentence);
            }
        }
    }
}

/// Symptoms of an incident that are over.
fn ended(incident: &Incident, symptoms: &SymptomDesk) -> Vec<String> {
    let firing = incident.symptoms.iter().filter(|s| s.ended_at.is_none());
    firing.map(|s| s.key.clone()).filter(|key| symptoms.is_over(key)).collect()
}

/// What became of an incident that was due.
#[derive(Default)]
struct Moved {
    /// Whether it was told again, or ended.
    has_moved: bool,
    /// When it is due again, if ever.
    next_at: Option<DateTime<Utc>>,
    /// As it is now, with its version; none when it is gone.
    written: Option<(i64, Arc<Incident>)>,
}

/// It may have changed since it was read, above all in a storm: then it is read again inside the transaction, and decided anew.
async fn advance_one(
    store: &Store,
    live: &Live,
    mut read: Unresolved,
    news: &News,
    now: DateTime<Utc>,
) -> Result<Moved, StoreError> {
    let mut tx = store.begin().await?;
    loop {
        let (mut incident, reading) = (Incident::clone(&read.incident), Reading { open_letters: read.open_letters });
        news.put_in(&mut incident, now);
        let transition = advance(&incident, reading, now);
        if transition == Transition::Rest && news.over.is_empty() {
            return Ok(Moved {
                next_at: next_at(&incident, reading, now),
                written: Some((read.version, read.incident)),
                ..Moved::default()
            });
        }
        if transition == Transition::Resolve {
            incident.resolve(None, now);
        }
        // Messages tell what happened since the last one.
        let told = incident.clone();
        incident.note_told(&transition, now);
        if incidents::save_if(&mut tx, &incident, read.version).await? {
            let has_moved = tell(&mut tx, live, &told, &transition, read.open_letters, now).await?;
            tx.commit().await?;
            let next_at = next_at(&incident, reading, now);
            return Ok(Moved { has_moved, next_at, written: Some((read.version + 1, Arc::new(incident))) });
        }
        match incidents::find_again(&mut tx, incident.id).await? {
            Some(again) => read = again,
            None => return Ok(Moved::default()),
        }
    }
}

/// One transition a tick; the next may follow at once.
fn next_at(incident: &Incident, reading: Reading, now: DateTime<Utc>) -> Option<DateTime<Utc>> {
    match advance(incident, reading, now) {
        Transition::Rest => next_change_at(incident, reading),
        Transition::Remind(_) | Transition::Escalate(_) | Transition::Resolve => Some(now + NEXT_TICK),
    }
}

/// Enqueues the messages of a transition. False when it has none.
async fn tell(
    tx: &mut WriteTx,
    live: &Live,
    incident: &Incident,
    transition: &Transition,
    open_letters: u64,
    now: DateTime<Utc>,
) -> Result<bool, StoreError> {
    if *transition == Transition::Rest {
        return Ok(false);
    }
    let number = queue::next_numbers(tx, 1).await?;
    let entries = match transition {
        Transition::Rest => Vec::new(),
        Transition::Remind(reason) => live.announcer.reminder(incident, *reason, open_letters, number, now),
        Transition::Escalate(step) => live.announcer.escalation(incident, step, open_letters, number, now),
        Transition::Resolve => live.announcer.resolved(incident, open_letters, number, now),
    };
    for entry in &entries {
        queue::enqueue(tx, entry).await?;
    }
    info!(incident = incident.id.0, state = incident.state.as_str(), ?transition, "incident moved");
    Ok(true)
}
