//! The part of a tick that moves incidents: what is due is decided by the `incident` room, and written here with its messages.

use super::tick::{NEXT_TICK, Ticked};
use crate::incident::{Incident, IncidentId, Reading, Transition, advance, next_change_at};
use crate::live::Live;
use crate::outbox::{NewEntry, queue};
use crate::store::{Store, StoreError, WriteTx, incidents, letters};
use chrono::{DateTime, Utc};
use std::collections::BTreeSet;
use tracing::info;

/// Moves every incident that is due. One that can't be moved holds up no other.
/// `active` are the keys of symptoms that are not over; none while that is not known.
pub(super) async fn advance_all(
    store: &Store,
    live: &Live,
    active: Option<&BTreeSet<String>>,
    known: &mut incidents::Known,
    now: DateTime<Utc>,
    ticked: &mut Ticked,
) {
    let open = match incidents::all_open(store.reader(), known).await {
        Ok(open) => open,
        Err(error) => return ticked.failures.push(("incidents", error)),
    };
    for (incident, open_letters) in open {
        let reading = Reading { open_letters };
        let over = active.map(|active| ended(&incident, active)).unwrap_or_default();
        if over.is_empty() && advance(&incident, reading, now) == Transition::Rest {
            ticked.look_at(next_change_at(&incident, reading));
            continue;
        }
        // One transition a tick; the next may follow at once.
        ticked.look_at(Some(now + NEXT_TICK));
        match advance_one(store, live, incident.id, &over, now).await {
            Ok(moved) => {
                ticked.has_messages |= moved;
                ticked.has_moved |= moved;
            }
            Err(error) => ticked.failures.push(("incident", error)),
        }
    }
}

/// Symptoms of an incident that are over.
fn ended(incident: &Incident, active: &BTreeSet<String>) -> Vec<String> {
    let firing = incident.symptoms.iter().filter(|s| s.ended_at.is_none());
    firing.map(|s| s.key.clone()).filter(|key| !active.contains(key)).collect()
}

/// It may have changed between the two looks: what is decided here is decided inside the transaction.
async fn advance_one(
    store: &Store,
    live: &Live,
    id: IncidentId,
    over: &[String],
    now: DateTime<Utc>,
) -> Result<bool, StoreError> {
    let mut tx = store.begin().await?;
    let Some(mut incident) = incidents::find(&mut tx, id).await? else { return Ok(false) };
    if over.iter().fold(false, |any, key| incident.end_symptom(key, now) || any) {
        incidents::save(&mut tx, &incident).await?;
    }
    let open_letters = letters::open_of_incident(&mut tx, id.0).await?;
    let transition = advance(&incident, Reading { open_letters }, now);
    let moved = carry_out(&mut tx, live, incident, &transition, open_letters, now).await?;
    tx.commit().await?;
    Ok(moved)
}

/// Writes a transition and its messages. False when there was nothing to do.
async fn carry_out(
    tx: &mut WriteTx,
    live: &Live,
    mut incident: Incident,
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
        Transition::Remind(reason) => live.announcer.reminder(&incident, *reason, open_letters, number, now),
        Transition::Escalate(step) => live.announcer.escalation(&incident, step, open_letters, number, now),
        Transition::Resolve => {
            incident.resolve(None, now);
            live.announcer.resolved(&incident, open_letters, number, now)
        }
    };
    incident.note_told(transition, now);
    incidents::save(tx, &incident).await?;
    for entry in &entries {
        queue::enqueue(tx, entry).await?;
    }
    info!(incident = incident.id.0, state = incident.state.as_str(), ?transition, "incident moved");
    Ok(true)
}
