//! What people ask for: acknowledge, resolve, silence, reload, test. Each is one short transaction that also holds the messages that
//! follow from it. What a state allows is decided by the `incident` room, words come from `announce`.

use super::error::ApiError;
use super::guard::Caller;
use super::input::{Ask, row};
use super::list::{find_entry, find_letter, silence_row};
use super::view::{DoneView, EntryView, IncidentView, LetterView, SilenceView, TestView};
use crate::clock;
use crate::incident::{Incident, IncidentId, IncidentState};
use crate::live::Shared;
use crate::name::ReceiverName;
use crate::outbox::queue::{self, RedriveOutcome};
use crate::outbox::{EntryId, State as EntryState};
use crate::store::{StoreError, WriteTx, incidents, letters, silences, symptoms};
use crate::symptom::{Signal, What};
use axum::extract::{Path, State};
use axum::{Extension, Json};
use chrono::{DateTime, Utc};
use serde::Deserialize;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{Mutex, oneshot};
use tokio::time::timeout;
use utoipa::ToSchema;

/// Longest text that a person may give, in characters.
const TEXT_MAX: usize = 1000;
/// How long a reload may take.
const RELOAD_WITHIN: Duration = Duration::from_secs(30);
/// How long the test of a receiver is waited for, and how often it is looked at.
const TEST_WITHIN: Duration = Duration::from_secs(15);
const LOOK_EVERY: Duration = Duration::from_millis(50);

/// Who acts.
#[derive(Debug, Default, Deserialize, ToSchema)]
pub struct ByAsk {
    /// A name; that of the token when it is not given.
    pub by: Option<String>,
}

/// How a dead letter was dealt with.
#[derive(Debug, Default, Deserialize, ToSchema)]
pub struct ResolveAsk {
    /// What was done.
    pub note: Option<String>,
    /// A name; that of the token when it is not given.
    pub by: Option<String>,
}

/// A name or note as it is kept: trimmed, none when blank.
pub(super) fn text(given: Option<String>, what: &str) -> Result<Option<String>, ApiError> {
    let Some(text) = given.map(|t| t.trim().to_owned()).filter(|t| !t.is_empty()) else { return Ok(None) };
    if text.chars().count() > TEXT_MAX {
        return Err(ApiError::BadRequest(format!("{what} is over {TEXT_MAX} characters")));
    }
    Ok(Some(text))
}

/// Who acts, in words that a message can show.
fn person(by: Option<String>, caller: &Caller) -> Result<String, ApiError> {
    Ok(text(by, "by")?.or_else(|| caller.0.clone()).unwrap_or_else(|| "somebody".to_owned()))
}

/// Takes an incident. One that is taken already stays as it is.
#[utoipa::path(post, path = "/api/v1/incidents/{id}/acknowledge", params(("id" = String, Path)), request_body = ByAsk,
    responses((status = 200, body = IncidentView), (status = 404), (status = 409, description = "it is over")))]
pub async fn acknowledge(
    shared: State<Arc<Shared>>,
    caller: Extension<Caller>,
    id: Path<String>,
    ask: Ask<ByAsk>,
) -> Result<Json<IncidentView>, ApiError> {
    let by = person(ask.0.by, &caller)?;
    let incident = acknowledge_incident(&shared, row("incident", &id)?, by, clock::now()).await?;
    Ok(Json(incident.into()))
}

/// Takes an incident for `by`.
///
/// # Errors
/// When there is none or it is over, or the store refuses.
pub async fn acknowledge_incident(
    shared: &Shared,
    id: i64,
    by: String,
    now: DateTime<Utc>,
) -> Result<Incident, ApiError> {
    let mut tx = shared.store.begin().await?;
    let mut incident = find_incident(&mut tx, id).await?;
    match incident.state {
        IncidentState::Resolved => return Err(ApiError::Conflict(format!("incident {id} is over already"))),
        IncidentState::Acknowledged => return Ok(incident),
        IncidentState::Open => incident.acknowledge(Some(by), now),
    };
    incidents::save(&mut tx, &incident).await?;
    tx.commit().await.map_err(StoreError::from)?;
    tracing::info!(incident = id, by = incident.acknowledged_by, "incident acknowledged");
    Ok(incident)
}

/// Ends an incident, and tells all who were told of it. One that is over already stays as it is.
#[utoipa::path(post, path = "/api/v1/incidents/{id}/resolve", params(("id" = String, Path)), request_body = ByAsk,
    responses((status = 200, body = IncidentView), (status = 404)))]
pub async fn resolve(
    shared: State<Arc<Shared>>,
    caller: Extension<Caller>,
    id: Path<String>,
    ask: Ask<ByAsk>,
) -> Result<Json<IncidentView>, ApiError> {
    let by = person(ask.0.by, &caller)?;
    let incident = resolve_incident(&shared, row("incident", &id)?, by, clock::now()).await?;
    Ok(Json(incident.into()))
}

async fn resolve_incident(shared: &Shared, id: i64, by: String, now: DateTime<Utc>) -> Result<Incident, ApiError> {
    let live = shared.live.load_full();
    let mut tx = shared.store.begin().await?;
    let mut incident = find_incident(&mut tx, id).await?;
    if !incident.resolve(Some(by), now) {
        return Ok(incident);
    }
    incidents::save(&mut tx, &incident).await?;
    let open_letters = letters::open_of_incident(&mut tx, id).await?;
    let number = queue::next_numbers(&mut tx, 1).await?;
    for entry in live.announcer.resolved(&incident, open_letters, number, now) {
        queue::enqueue(&mut tx, &entry).await?;
    }
    tx.commit().await.map_err(StoreError::from)?;
    shared.outbox_wake.notify_one();
    tracing::info!(incident = id, by = incident.resolved_by, "incident resolved");
    Ok(incident)
}

async fn find_incident(tx: &mut WriteTx, id: i64) -> Result<Incident, ApiError> {
    let found = incidents::find(tx, IncidentId(id)).await?;
    found.ok_or_else(|| ApiError::NotFound { what: "incident", id: id.to_string() })
}

/// Resolves a dead letter. One that is resolved already stays as it is.
#[utoipa::path(post, path = "/api/v1/dead-letters/{id}/resolve", params(("id" = String, Path)), request_body = ResolveAsk,
    responses((status = 200, body = LetterView), (status = 404)))]
pub async fn resolve_letter(
    shared: State<Arc<Shared>>,
    caller: Extension<Caller>,
    id: Path<String>,
    ask: Ask<ResolveAsk>,
) -> Result<Json<LetterView>, ApiError> {
    let letter_id = row("dead letter", &id)?;
    let (note, by) = (text(ask.0.note, "note")?, person(ask.0.by, &caller)?);
    let now = clock::now();
    let mut tx = shared.store.begin().await?;
    let cause = letters::resolve_by_id(&mut tx, letter_id, note.as_deref(), Some(&by), now).await?;
    if let Some(cause) = cause {
        letters::note_resolved(&mut tx, &[(cause, now)]).await?;
        let workflow = letters::workflow_of_cause(&mut tx, cause).await?;
        symptoms::add_signals(&mut tx, &[Signal { workflow, at: now, arrived_at: None, what: What::Resolved }]).await?;
    }
    tx.commit().await.map_err(StoreError::from)?;
    find_letter(&shared, &id).await.map(Json)
}

/// Ends a silence now. It stays in lists, because digests name what it hid.
#[utoipa::path(delete, path = "/api/v1/silences/{id}", params(("id" = String, Path)),
    responses((status = 200, body = SilenceView), (status = 404)))]
pub async fn expire_silence(shared: State<Arc<Shared>>, id: Path<String>) -> Result<Json<SilenceView>, ApiError> {
    let (silence_id, now) = (silence_row(&id)?, clock::now());
    let mut tx = shared.store.begin().await?;
    silences::expire(&mut tx, silence_id, now).await?;
    tx.commit().await.map_err(StoreError::from)?;
    refresh_silences(&shared, now).await?;
    let found = silences::get(shared.store.reader(), silence_id).await?;
    let silence = found.ok_or_else(|| ApiError::NotFound { what: "silence", id: id.0 })?;
    tracing::info!(silence = silence.id, "silence ended");
    Ok(Json(SilenceView::new(silence, now)))
}

/// One at a time reads the silences and puts them in place: else an older list could replace a newer one.
static REFRESH: Mutex<()> = Mutex::const_new(());

/// Puts the silences of the store into the rules of now; also for a reload, after it swapped the rules.
///
/// # Errors
/// When the store can't be read.
pub async fn refresh_silences(shared: &Shared, now: DateTime<Utc>) -> Result<(), StoreError> {
    let _alone = REFRESH.lock().await;
    let active = silences::active(shared.store.reader(), now).await?;
    shared.live.rcu(|live| live.with_silences(active.clone()));
    Ok(())
}

/// Sends a message again that is dead or unsure. Mailboxes that have it are left out.
#[utoipa::path(post, path = "/api/v1/outbox/{id}/redrive", params(("id" = String, Path)),
    responses((status = 200, body = EntryView), (status = 404), (status = 409, description = "it needs no redrive")))]
pub async fn redrive_entry(shared: State<Arc<Shared>>, id: Path<String>) -> Result<Json<EntryView>, ApiError> {
    let entry_id = EntryId(row("message", &id)?);
    if let Some(entry) = queue::find(shared.store.reader(), entry_id).await? {
        must_know(&shared, &entry.new.receiver)?;
    }
    let mut tx = shared.store.begin().await?;
    let outcome = queue::redrive(&mut tx, entry_id, clock::now()).await?;
    tx.commit().await.map_err(StoreError::from)?;
    let entry = look(&shared, entry_id).await?;
    match outcome {
        RedriveOutcome::Redriven => {
            shared.outbox_wake.notify_one();
            tracing::info!(entry = entry_id.0, receiver = entry.receiver, "message redriven");
            Ok(Json(entry))
        }
        RedriveOutcome::Left => {
            let why = format!("message {} is {}; only dead and unsure ones are sent again", id.0, entry.state);
            Err(ApiError::Conflict(why))
        }
    }
}

/// Refuses to send again to a receiver that config no longer knows: the message would only be given up again.
pub(super) fn must_know(shared: &Shared, receiver: &ReceiverName) -> Result<(), ApiError> {
    if shared.live.load().config.receivers.contains_key(receiver) {
        return Ok(());
    }
    let name = receiver.as_str();
    Err(ApiError::Conflict(format!(
        "config has no receiver {name:?}; name it in [receivers.{name}], reload, then send again"
    )))
}

/// Reads the config again.
#[utoipa::path(post, path = "/api/v1/reload", responses((status = 200, body = DoneView),
    (status = 422, description = "the new config is wrong, the old one stays in use")))]
pub async fn reload(shared: State<Arc<Shared>>) -> Result<Json<DoneView>, ApiError> {
    let away = || ApiError::Unavailable("the service is stopping or busy with another reload".to_owned());
    let (answer, answered) = oneshot::channel();
    let asked = async {
        shared.reload.send(answer).await.map_err(|_| away())?;
        answered.await.map_err(|_| away())
    };
    let read = timeout(RELOAD_WITHIN, asked).await.map_err(|_| away())??;
    read.map_err(ApiError::Refused)?;
    Ok(Json(DoneView { done: "reloaded" }))
}

/// Sends a test message and waits for what becomes of it.
#[utoipa::path(post, path = "/api/v1/receivers/{name}/test", params(("name" = String, Path)),
    responses((status = 200, body = TestView), (status = 404)))]
pub async fn test_receiver(shared: State<Arc<Shared>>, name: Path<String>) -> Result<Json<TestView>, ApiError> {
    let (id, number) = enqueue_test(&shared, &name.0).await?;
    let entry = match timeout(TEST_WITHIN, settled(&shared, id)).await {
        Ok(settled) => settled?,
        // Still being tried.
        Err(_) => look(&shared, id).await?,
    };
    let (state, attempts, last_error) = (entry.state, entry.attempts, entry.last_error);
    Ok(Json(TestView { receiver: entry.receiver, state, number, attempts, last_error }))
}

async fn settled(shared: &Shared, id: EntryId) -> Result<EntryView, ApiError> {
    loop {
        let entry = look(shared, id).await?;
        if entry.state != EntryState::Pending.as_str() {
            return Ok(entry);
        }
        tokio::time::sleep(LOOK_EVERY).await;
    }
}

async fn look(shared: &Shared, id: EntryId) -> Result<EntryView, ApiError> {
    find_entry(shared, id).await?.ok_or_else(|| ApiError::NotFound { what: "message", id: id.0.to_string() })
}

async fn enqueue_test(shared: &Shared, name: &str) -> Result<(EntryId, i64), ApiError> {
    let (live, now) = (shared.live.load_full(), clock::now());
    let mut tx = shared.store.begin().await?;
    let number = queue::next_numbers(&mut tx, 1).await?;
    let entry = live.announcer.test(&ReceiverName::new(name), number, now);
    let entry = entry.ok_or_else(|| ApiError::NotFound { what: "receiver", id: name.to_owned() })?;
    let id = queue::enqueue(&mut tx, &entry).await?;
    tx.commit().await.map_err(StoreError::from)?;
    shared.outbox_wake.notify_one();
    Ok((id, number))
}
