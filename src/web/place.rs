//! Where the links in messages lead: to the API, which has what they name, and to a few words where a command says more.
//! Nothing is decided or changed here.

use super::error::ApiError;
use crate::live::Shared;
use axum::Router;
use axum::extract::{Path, RawQuery, State};
use axum::response::{Html, IntoResponse, Redirect, Response};
use axum::routing::get;
use std::sync::Arc;

/// The addresses that messages link to.
pub fn places() -> Router<Arc<Shared>> {
    Router::new()
        .route("/", get(root))
        .route("/incidents/{id}", get(|Path(id): Path<String>| async move { to(&format!("incidents/{id}"), None) }))
        .route("/dead-letters", get(|RawQuery(query): RawQuery| async move { to("dead-letters", query) }))
        .route("/quarantine", get(|| async { to("quarantine", None) }))
        .route("/silences", get(|| async { to("silences", None) }))
        .route("/digests/{number}", get(digest))
        .route("/workflows", get(workflows))
        .route("/routes", get(routes))
        .route("/explain", get(explain))
}

fn to(path: &str, query: Option<String>) -> Redirect {
    let query = query.filter(|q| !q.is_empty()).map(|q| format!("?{q}")).unwrap_or_default();
    Redirect::temporary(&format!("/api/v1/{path}{query}"))
}

/// A message knows a digest by its number, the API by its row.
async fn digest(State(shared): State<Arc<Shared>>, Path(number): Path<i64>) -> Result<Response, ApiError> {
    let row: Option<(i64,)> = sqlx::query_as("SELECT id FROM digests WHERE number = ?")
        .bind(number)
        .fetch_optional(shared.store.reader())
        .await
        .map_err(crate::store::StoreError::from)?;
    match row {
        Some((id,)) => Ok(to(&format!("digests/{id}"), None).into_response()),
        None => Err(ApiError::NoSuchAddress),
    }
}

/// What is open of one workflow: `?name=…`.
async fn workflows(RawQuery(query): RawQuery) -> Redirect {
    let name = query.as_deref().and_then(|q| q.strip_prefix("name=")).unwrap_or_default();
    to("dead-letters", Some(format!("open=true&workflow={name}")))
}

async fn root() -> Html<String> {
    page(
        "Matins",
        "<p>Lists: <a href=\"/api/v1/incidents\">incidents</a>, <a href=\"/api/v1/dead-letters?open=true\">dead letters</a>, \
         <a href=\"/api/v1/digests\">digests</a>, <a href=\"/api/v1/outbox\">outbox</a>, \
         <a href=\"/api/v1/quarantine\">quarantine</a>, <a href=\"/api/v1/silences\">silences</a>, \
         <a href=\"/api/v1/openapi.json\">the whole API</a>, <a href=\"/metrics\">metrics</a>.</p>\
         <p>In a terminal: <code>matins incidents list</code>, <code>matins dead-letters list</code>.</p>",
    )
}

async fn routes() -> Html<String> {
    page("Routes", "<p>Routes are in the config. <code>matins check</code> says in words who hears of what.</p>")
}

async fn explain() -> Html<String> {
    page("Why an event was not told", "<p><code>matins explain --event ID</code> says what was decided, and why.</p>")
}

/// A page of our own words; nothing from outside is in it.
fn page(title: &str, body: &str) -> Html<String> {
    Html(format!(
        "<!doctype html><html lang=\"en\"><meta charset=\"utf-8\"><meta name=\"viewport\" content=\"width=device-width\">\
         <meta name=\"color-scheme\" content=\"light dark\"><title>{title}</title>\
         <body style=\"font:15px/23px system-ui,sans-serif;max-width:600px;margin:28px auto;padding:0 16px\">\
         <h1 style=\"font-size:23px\">{title}</h1>{body}</body></html>"
    ))
}
