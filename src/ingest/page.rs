//! Incidents that the events of one batch open or join. A page is worded at the end of the batch, so that it counts all of it.

use crate::event::Event;
use crate::incident::{Incident, IncidentId, Terms};
use crate::name::WorkflowName;
use crate::outbox::{NewEntry, queue};
use crate::store::{StoreError, WriteTx, incidents};
use crate::workflow::Domain;
use chrono::{DateTime, Utc};
use std::collections::BTreeMap;

/// Words the messages that an incident asks for.
pub trait Pager: Send + Sync {
    /// One message per page receiver of a new incident; all carry its page number.
    fn page(&self, incident: &Incident, now: DateTime<Utc>) -> Vec<NewEntry>;
}

/// The incidents that a batch touches, each read once and written once.
#[derive(Debug, Default)]
pub struct OpenIncidents {
    by_key: BTreeMap<String, IncidentId>,
    touched: BTreeMap<IncidentId, Touched>,
    events: Vec<(i64, IncidentId)>,
}

#[derive(Debug)]
struct Touched {
    incident: Incident,
    is_new: bool,
}

impl OpenIncidents {
    /// Opens or joins the incident of `key` with one failure.
    pub async fn add(
        &mut self,
        tx: &mut WriteTx,
        key: &str,
        terms: &Terms,
        event: &Event,
        domain: Domain,
    ) -> Result<IncidentId, StoreError> {
        if let Some(id) = self.known(tx, key, terms, event).await? {
            if let Some(touched) = self.touched.get_mut(&id) {
                touched.incident.add_failure(event);
            }
            return Ok(id);
        }
        let id = incidents::next_id(tx).await?;
        let number = queue::next_numbers(tx, 1).await?;
        let incident = Incident::open(id, event, domain, terms.clone(), number);
        // Its row is written now, because keys refer to it and the next incident takes the next number.
        incidents::save(tx, &incident).await?;
        incidents::add_key(tx, key, id).await?;
        self.by_key.insert(key.to_owned(), id);
        self.touched.insert(id, Touched { incident, is_new: true });
        Ok(id)
    }

    /// An event belongs to an incident.
    pub fn add_event(&mut self, seq: i64, id: IncidentId) {
        self.events.push((seq, id));
    }

    /// A dead letter was opened for an incident.
    pub fn add_item(&mut self, id: IncidentId, workflow: &WorkflowName) {
        if let Some(touched) = self.touched.get_mut(&id) {
            touched.incident.add_item(workflow);
        }
    }

    /// The unresolved incident of `key`, or one of the same downstream that shares its page.
    async fn known(
        &mut self,
        tx: &mut WriteTx,
        key: &str,
        terms: &Terms,
        event: &Event,
    ) -> Result<Option<IncidentId>, StoreError> {
        if let Some(id) = self.by_key.get(key) {
            return Ok(Some(*id));
        }
        let stored = match incidents::find_open(tx, key).await? {
            Some(incident) => Some(incident),
            None => self.sharing(tx, key, terms, event).await?,
        };
        let Some(incident) = stored else { return Ok(None) };
        let id = incident.id;
        self.by_key.insert(key.to_owned(), id);
        // One that this batch touched already knows more than the store.
        self.touched.entry(id).or_insert(Touched { incident, is_new: false });
        Ok(Some(id))
    }

    async fn sharing(
        &self,
        tx: &mut WriteTx,
        key: &str,
        terms: &Terms,
        event: &Event,
    ) -> Result<Option<Incident>, StoreError> {
        let Some(downstream) = event.downstream.as_deref() else { return Ok(None) };
        let stored = incidents::open_of_downstream(tx, downstream).await?;
        let mut other_workflow = stored
            .into_iter()
            .filter(|i| i.shares_cause(downstream, terms, event.received_at) && !i.has_hit(&event.workflow));
        let Some(incident) = other_workflow.next() else { return Ok(None) };
        incidents::add_key(tx, key, incident.id).await?;
        Ok(Some(incident))
    }

    /// Writes the incidents and enqueues the pages of new ones. True when there were any.
    pub async fn flush(self, tx: &mut WriteTx, pager: &dyn Pager, now: DateTime<Utc>) -> Result<bool, StoreError> {
        let mut has_messages = false;
        for Touched { mut incident, is_new } in self.touched.into_values() {
            if is_new {
                incident.told.events = incident.event_count();
                for entry in pager.page(&incident, now) {
                    queue::enqueue(tx, &entry).await?;
                    has_messages = true;
                }
            }
            incidents::save(tx, &incident).await?;
        }
        incidents::add_events(tx, &self.events).await?;
        Ok(has_messages)
    }
}
