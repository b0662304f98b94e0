//! The read side of the API: stats, lists and single things. Nothing is changed here.

#![allow(unused_qualifications, reason = "the macro that describes parameters writes whole paths")]

use super::error::ApiError;
use super::input::{Page, Params, Range, row};
use super::view::{
    DigestView, EntryView, IncidentView, LetterView, QuarantinedView, SilenceView, StatsView, SymptomView,
};
use crate::clock;
use crate::incident::IncidentId;
use crate::live::Shared;
use crate::outbox::{EntryId, queue};
use crate::store::letters::{self, LetterFilter};
use crate::store::{incidents, ledger, silences, stats};
use crate::symptom::ToldSymptom;
use axum::Json;
use axum::extract::{Path, State};
use serde::Deserialize;
use std::sync::Arc;
use utoipa::IntoParams;

/// Unreadable messages of one part of a list at most: each may have 1 MiB.
const QUARANTINE_PAGE_MAX: i64 = 20;

/// Dead letters of one part of a list at most: each may have a payload of 64 KiB.
const LETTER_PAGE_MAX: i64 = 200;

type Reply<T> = Result<Json<T>, ApiError>;

fn missing(what: &'static str, id: impl Into<String>) -> ApiError {
    ApiError::NotFound { what, id: id.into() }
}

/// What the service counts of itself.
#[utoipa::path(get, path = "/api/v1/stats", responses((status = 200, body = StatsView)))]
pub async fn stats(shared: State<Arc<Shared>>) -> Reply<StatsView> {
    let totals = stats::totals(shared.store.reader()).await?;
    Ok(Json(StatsView::new(&totals, shared.metrics.lag())))
}

/// Which dead letters are asked for.
#[derive(Clone, Debug, Default, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub struct LetterQuery {
    /// `next` of the part before.
    pub cursor: Option<String>,
    /// Items at most; 100 unless given, 200 at most.
    pub limit: Option<i64>,
    /// Only of this workflow.
    pub workflow: Option<String>,
    /// Only of this cause.
    pub fingerprint: Option<String>,
    /// Only of this incident.
    pub incident: Option<String>,
    /// `true`: only those that are not resolved.
    pub open: Option<bool>,
}

/// Dead letters, newest first, resolved ones included.
#[utoipa::path(get, path = "/api/v1/dead-letters", params(LetterQuery), responses((status = 200, body = Page<LetterView>)))]
pub async fn letters(shared: State<Arc<Shared>>, query: Params<LetterQuery>) -> Reply<Page<LetterView>> {
    let query = query.0;
    let (before, limit) = Range { cursor: query.cursor, limit: query.limit }.read()?;
    let limit = limit.min(LETTER_PAGE_MAX);
    let filter = LetterFilter {
        workflow: query.workflow,
        fingerprint: query.fingerprint,
        incident_id: query.incident.as_deref().map(|id| row("incident", id)).transpose()?,
        open_only: query.open.unwrap_or(false),
    };
    let rows = letters::list(shared.store.reader(), &filter, before, limit + 1).await?;
    Ok(Json(Page::new(rows, limit, |l| l.id, LetterView::from)))
}

/// One dead letter.
#[utoipa::path(get, path = "/api/v1/dead-letters/{id}", params(("id" = String, Path)),
    responses((status = 200, body = LetterView), (status = 404)))]
pub async fn letter(shared: State<Arc<Shared>>, id: Path<String>) -> Reply<LetterView> {
    find_letter(&shared, &id).await.map(Json)
}

/// The letter of an id.
///
/// # Errors
/// When there is none, or the store can't be read.
pub async fn find_letter(shared: &Shared, id: &str) -> Result<LetterView, ApiError> {
    let found = letters::get(shared.store.reader(), row("dead letter", id)?).await?;
    found.map(LetterView::from).ok_or_else(|| missing("dead letter", id))
}

/// Incidents, newest first, resolved ones included.
#[utoipa::path(get, path = "/api/v1/incidents", params(Range), responses((status = 200, body = Page<IncidentView>)))]
pub async fn incidents(shared: State<Arc<Shared>>, range: Params<Range>) -> Reply<Page<IncidentView>> {
    let (before, limit) = range.0.read()?;
    let rows = incidents::list(shared.store.reader(), before, limit + 1).await?;
    Ok(Json(Page::new(rows, limit, |i| i.id.0, IncidentView::from)))
}

/// One incident.
#[utoipa::path(get, path = "/api/v1/incidents/{id}", params(("id" = String, Path)),
    responses((status = 200, body = IncidentView), (status = 404)))]
pub async fn incident(shared: State<Arc<Shared>>, id: Path<String>) -> Reply<IncidentView> {
    let found = incidents::get(shared.store.reader(), IncidentId(row("incident", &id)?)).await?;
    found.map(|i| Json(IncidentView::from(i))).ok_or_else(|| missing("incident", id.0))
}

/// Messages to people and what became of them, newest first.
#[utoipa::path(get, path = "/api/v1/outbox", params(Range), responses((status = 200, body = Page<EntryView>)))]
pub async fn outbox(shared: State<Arc<Shared>>, range: Params<Range>) -> Reply<Page<EntryView>> {
    let (before, limit) = range.0.read()?;
    let fetched = u32::try_from(limit + 1).unwrap_or(u32::MAX);
    let rows = queue::list(shared.store.reader(), Some(EntryId(before)), fetched).await?;
    Ok(Json(Page::new(rows, limit, |e| e.id.0, EntryView::from)))
}

/// One message, with what is sent.
#[utoipa::path(get, path = "/api/v1/outbox/{id}", params(("id" = String, Path)),
    responses((status = 200, body = EntryView), (status = 404)))]
pub async fn entry(shared: State<Arc<Shared>>, id: Path<String>) -> Reply<EntryView> {
    let entry_id = row("message", &id)?;
    let summary = find_entry(&shared, EntryId(entry_id)).await?.ok_or_else(|| missing("message", id.0.clone()))?;
    let whole = queue::find(shared.store.reader(), EntryId(entry_id)).await?;
    Ok(Json(match whole {
        Some(entry) => summary.with_content(&entry),
        None => summary,
    }))
}

/// A message as lists show it; none when there is none.
///
/// # Errors
/// When the store can't be read.
pub async fn find_entry(shared: &Shared, id: EntryId) -> Result<Option<EntryView>, ApiError> {
    let rows = queue::list(shared.store.reader(), Some(EntryId(id.0.saturating_add(1))), 1).await?;
    Ok(rows.into_iter().find(|e| e.id == id).map(EntryView::from))
}

/// Told windows of digests, newest first.
#[utoipa::path(get, path = "/api/v1/digests", params(Range), responses((status = 200, body = Page<DigestView>)))]
pub async fn digests(shared: State<Arc<Shared>>, range: Params<Range>) -> Reply<Page<DigestView>> {
    let (before, limit) = range.0.read()?;
    let rows = ledger::list(shared.store.reader(), before, limit + 1).await?;
    Ok(Json(Page::new(rows, limit, |d| d.id, DigestView::from)))
}

/// One told window, with all that it was made from.
#[utoipa::path(get, path = "/api/v1/digests/{id}", params(("id" = String, Path)),
    responses((status = 200, body = DigestView), (status = 404)))]
pub async fn digest(shared: State<Arc<Shared>>, id: Path<String>) -> Reply<DigestView> {
    let found = ledger::get(shared.store.reader(), row("digest", &id)?).await?;
    found.map(|d| Json(DigestView::whole(d))).ok_or_else(|| missing("digest", id.0))
}

/// Messages that can't be read, newest first.
#[utoipa::path(get, path = "/api/v1/quarantine", params(Range), responses((status = 200, body = Page<QuarantinedView>)))]
pub async fn quarantine(shared: State<Arc<Shared>>, range: Params<Range>) -> Reply<Page<QuarantinedView>> {
    let (before, limit) = range.0.read()?;
    let limit = limit.min(QUARANTINE_PAGE_MAX);
    let rows = stats::list_quarantine(shared.store.reader(), before, limit + 1).await?;
    Ok(Json(Page::new(rows, limit, |q| q.id, QuarantinedView::from)))
}

/// One message that can't be read.
#[utoipa::path(get, path = "/api/v1/quarantine/{id}", params(("id" = String, Path)),
    responses((status = 200, body = QuarantinedView), (status = 404)))]
pub async fn quarantined(shared: State<Arc<Shared>>, id: Path<String>) -> Reply<QuarantinedView> {
    let found = stats::get_quarantined(shared.store.reader(), row("unreadable message", &id)?).await?;
    found.map(|q| Json(QuarantinedView::from(q))).ok_or_else(|| missing("unreadable message", id.0))
}

/// Symptoms that fire, in the order of their names.
#[utoipa::path(get, path = "/api/v1/symptoms", params(Range), responses((status = 200, body = Page<SymptomView>)))]
pub async fn symptoms(shared: State<Arc<Shared>>, range: Params<Range>) -> Reply<Page<SymptomView>> {
    let limit = usize::try_from(range.0.limit()?).unwrap_or(usize::MAX);
    let firing = shared.symptoms.load();
    let after = range.0.cursor.unwrap_or_default();
    let mut rest = firing.iter().filter(|s| s.state.key.id() > after);
    let items: Vec<&ToldSymptom> = rest.by_ref().take(limit).collect();
    let last = items.last().map(|s| s.state.key.id());
    let next = rest.next().and(last);
    Ok(Json(Page { items: items.into_iter().map(SymptomView::new).collect(), next }))
}

/// Silences that people asked for, newest first, those that are over included.
#[utoipa::path(get, path = "/api/v1/silences", params(Range), responses((status = 200, body = Page<SilenceView>)))]
pub async fn silences(shared: State<Arc<Shared>>, range: Params<Range>) -> Reply<Page<SilenceView>> {
    let (before, limit) = range.0.read()?;
    let rows = silences::list(shared.store.reader(), before, limit + 1).await?;
    let now = clock::now();
    Ok(Json(Page::new(rows, limit, |s| s.id, |s| SilenceView::new(s, now))))
}

/// One silence.
#[utoipa::path(get, path = "/api/v1/silences/{id}", params(("id" = String, Path)),
    responses((status = 200, body = SilenceView), (status = 404)))]
pub async fn silence(shared: State<Arc<Shared>>, id: Path<String>) -> Reply<SilenceView> {
    let found = silences::get(shared.store.reader(), silence_row(&id)?).await?;
    found.map(|s| Json(SilenceView::new(s, clock::now()))).ok_or_else(|| missing("silence", id.0))
}

/// The row of `S-7`; `7` alone is taken too.
///
/// # Errors
/// When it is neither.
pub fn silence_row(id: &str) -> Result<i64, ApiError> {
    row("silence", id.strip_prefix("S-").unwrap_or(id)).map_err(|_| missing("silence", id))
}
