//! The part of a tick that moves incidents: what is due is decided by the `incident` room, and written here with its messages.

use super::symptoms::SymptomDesk;
use super::tick::{NEXT_TICK, Ticked};
use crate::incident::{Incident, IncidentId, IncidentState, Reading, Transition, advance, next_change_at};
use crate::live::Live;
use crate::outbox::{NewEntry, queue};
use crate::store::{Store, StoreError, WriteTx, incidents};
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
    for (incident, open_letters) in open {
        let reading = Reading { open_letters };
        let over = ended(&incident, symptoms);
        if over.is_empty() && advance(&incident, reading, now) == Transition::Rest {
            ticked.look_at(next_change_at(&incident, reading));
            ticked.open.push(incident);
            continue;
        }
        let firing = incident.symptoms.iter().filter(|s| s.ended_at.is_none());
        let sentences = firing.filter_map(|s| Some((s.key.clone(), symptoms.sentence(&s.key)?))).collect();
        match advance_one(store, live, incident.id, &over, &sentences, now).await {
            Ok(Moved { has_moved, next_at, incident }) => {
                ticked.has_messages |= has_moved;
                ticked.look_at(next_at);
                ticked.open.extend(incident.filter(|i| i.state != IncidentState::Resolved).map(Arc::new));
            }
            Err(error) => {
                ticked.look_at(Some(now + NEXT_TICK));
                ticked.failures.push(("incident", error));
            }
        }
    }
}

async fn all_open(store: &Store, known: &mut incidents::Known) -> Result<Vec<(Arc<Incident>, u64)>, StoreError> {
    incidents::all_open(&mut *store.read().await?, known).await
}

/// Symptoms of an incident that are over.
fn ended(incident: &Incident, symptoms: &SymptomDesk) -> Vec<String> {
    let firing = incident.symptoms.iter().filter(|s| s.ended_at.is_none());
    firing.map(|s| s.key.clone()).filter(|key| symptoms.is_over(key)).collect()
}

/// What became of an incident that was due.
struct Moved {
    /// Whether it was told again, or ended.
    has_moved: bool,
    /// When it is due again, if ever.
    next_at: Option<DateTime<Utc>>,
    /// As it is now; none when it is gone.
    incident: Option<Incident>,
}

/// It may have changed between the two looks: what is decided here is decided inside the transaction.
async fn advance_one(
    store: &Store,
    live: &Live,
    id: IncidentId,
    over: &[String],
    sentences: &BTreeMap<String, String>,
    now: DateTime<Utc>,
) -> Result<Moved, StoreError> {
    let mut tx = store.begin().await?;
    let Some((mut incident, open_letters)) = incidents::find_with_letters(&mut tx, id).await? else {
        return Ok(Moved { has_moved: false, next_at: None, incident: None });
    };
    if !over.is_empty() {
        over.iter().for_each(|key| _ = incident.end_symptom(key, now));
        incidents::save(&mut tx, &incident).await?;
    }
    // What is said of them now, not what was when they joined.
    for symptom in incident.symptoms.iter_mut().filter(|s| s.ended_at.is_none()) {
        if let Some(sentence) = sentences.get(&symptom.key) {
            symptom.text.clone_from(sentence);
        }
    }
    let reading = Reading { open_letters };
    let transition = advance(&incident, reading, now);
    let has_moved = carry_out(&mut tx, live, &mut incident, &transition, open_letters, now).await?;
    tx.commit().await?;
    // One transition a tick; the next may follow at once.
    let next_at = match advance(&incident, reading, now) {
        Transition::Rest => next_change_at(&incident, reading),
        Transition::Remind(_) | Transition::Escalate(_) | Transition::Resolve => Some(now + NEXT_TICK),
    };
    Ok(Moved { has_moved, next_at, incident: Some(incident) })
}

/// Writes a transition and its messages. False when there was nothing to do.
async fn carry_out(
    tx: &mut WriteTx,
    live: &Live,
    incident: &mut Incident,
    transition: &Transition,
    open_letters: u64,
    now: DateTime<Utc>,
) -> Result<bool, StoreError> {
    if *transition == Transition::Rest {
        return Ok(false);
    }
    let number = queue::next_numbers(tx, 1).await?;
    let entries: Vec<NewEntry> = match transition {
        Transition::Rest => Vec::new(),
        Transition::Remind(reason) => live.announcer.reminder(incident, *reason, open_letters, number, now),
        Transition::Escalate(step) => live.announcer.escalation(incident, step, open_letters, number, now),
        Transition::Resolve => {
            incident.resolve(None, now);
            live.announcer.resolved(incident, open_letters, number, now)
        }
    };
    incident.note_told(transition, now);
    incidents::save(tx, incident).await?;
    for entry in &entries {
        queue::enqueue(tx, entry).await?;
    }
    info!(incident = incident.id.0, state = incident.state.as_str(), ?transition, "incident moved");
    Ok(true)
}
