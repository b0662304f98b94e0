//! What becomes of a symptom that fires: the incident that it opens or joins, or the named reason why nobody is paged.

use super::Settled;
use crate::incident::{Incident, IncidentId, JoinedSymptom, Terms};
use crate::ingest::page::Pager as _;
use crate::live::Live;
use crate::name::WorkflowName;
use crate::outbox::queue;
use crate::route::SymptomPaging;
use crate::store::{LateTx, StoreError, WriteTx, incidents};
use crate::symptom::{Change, SymptomState, SymptomTold};
use chrono::{DateTime, Utc};
use tracing::info;

/// Opens or joins an incident, or says why not.
pub(super) async fn tell(
    tx: &mut LateTx<'_>,
    live: &Live,
    state: &SymptomState,
    now: DateTime<Utc>,
    has_messages: &mut bool,
) -> Result<SymptomTold, StoreError> {
    let (workflows, domain, terms) = match live.policy.page_symptom(&state.workflows, state.severity, state.mode, now) {
        SymptomPaging::Suppress(reason) => return Ok(SymptomTold::reason(reason.as_str())),
        SymptomPaging::Page { workflows, domain, terms } => (workflows, domain, terms),
    };
    let tx = tx.begun().await?;
    if let Some(mut incident) = joinable(tx, &workflows, &terms).await? {
        incident.join(joined(state));
        incidents::save(tx, &incident).await?;
        return Ok(SymptomTold::incident(incident.id.0));
    }
    let id = incidents::next_id(tx).await?;
    let number = queue::next_numbers(tx, 1).await?;
    let incident = Incident::open_by_symptom(id, joined(state), &workflows, domain, terms, number, now);
    incidents::save(tx, &incident).await?;
    for entry in live.announcer.page(&incident, now) {
        queue::enqueue(tx, &entry).await?;
        *has_messages = true;
    }
    Ok(SymptomTold::incident(id.0))
}

/// Takes a symptom whose rule is gone out of its incident, which then does not say that it has cleared.
pub(super) async fn drop_symptom(
    tx: &mut LateTx<'_>,
    state: &SymptomState,
    told: &SymptomTold,
    now: DateTime<Utc>,
) -> Result<(), StoreError> {
    let Some(id) = told.incident_id().and_then(|id| id.parse().ok()) else { return Ok(()) };
    let tx = tx.begun().await?;
    if let Some(mut incident) = incidents::find(&mut *tx, IncidentId(id)).await?
        && incident.drop_symptom(&state.key.id(), now)
    {
        incidents::save(tx, &incident).await?;
    }
    Ok(())
}

/// Whether a symptom that fires opens or joins an incident.
pub(super) fn pages(live: &Live, state: &SymptomState, at: DateTime<Utc>) -> bool {
    matches!(live.policy.page_symptom(&state.workflows, state.severity, state.mode, at), SymptomPaging::Page { .. })
}

/// The newest open incident that hit all of the workflows, and of which everybody was paged whom the symptom would page.
async fn joinable(tx: &mut WriteTx, workflows: &[WorkflowName], terms: &Terms) -> Result<Option<Incident>, StoreError> {
    let knows = |incident: &Incident| {
        workflows.iter().all(|w| incident.has_hit(w)) && terms.page.iter().all(|to| incident.terms.page.contains(to))
    };
    Ok(incidents::unresolved(tx).await?.into_iter().rev().find(knows))
}

fn joined(state: &SymptomState) -> JoinedSymptom {
    JoinedSymptom {
        key: state.key.id(),
        text: state.text.clone(),
        since: state.since,
        ended_at: None,
        is_dropped: false,
        is_of_letters: state.is_of_letters(),
    }
}

/// Says in the log what became of a change.
pub(super) fn note(settled: &Settled) {
    let (state, told) = (settled.change.state(), settled.told.as_str());
    let (symptom, tier) = (state.key.rule.as_str(), state.tier.as_deref());
    let workflow = state.key.workflow.as_ref().map(WorkflowName::as_str);
    match &settled.change {
        Change::Fired(_) => info!(symptom, workflow, tier, told, "symptom fires: {}", state.text),
        Change::Moved(_) => info!(symptom, workflow, tier, told, "symptom moved: {}", state.text),
        Change::Cleared(_) => info!(symptom, workflow, "symptom cleared"),
        Change::Dropped(_) => info!(symptom, workflow, "symptom is watched no more: its rule is gone from the config"),
        Change::Held(_) => info!(symptom, workflow, "symptom is held: nothing new is known"),
    }
}
