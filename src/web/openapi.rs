//! The API described by itself, from the views and handlers.

use super::{action, digest, error, explain, list, publish, silence};
use axum::Json;
use utoipa::OpenApi;
use utoipa::openapi::OpenApi as Document;

#[derive(OpenApi)]
#[openapi(
    info(
        title = "Matins",
        description = "Alerting and digests for unattended pipelines. Instants are RFC 3339 UTC; lists go on at `next`."
    ),
    paths(
        publish::events,
        explain::explain,
        list::stats,
        list::letters,
        list::letter,
        action::resolve_letter,
        list::incidents,
        list::incident,
        action::acknowledge,
        action::resolve,
        list::outbox,
        list::entry,
        action::redrive_entry,
        list::digests,
        list::digest,
        digest::preview,
        digest::resend,
        list::quarantine,
        list::quarantined,
        list::symptoms,
        list::silences,
        list::silence,
        silence::add,
        action::expire_silence,
        action::test_receiver,
        action::reload,
    ),
    components(schemas(error::ErrorView))
)]
struct Api;

/// The document.
pub fn document() -> Document {
    Api::openapi()
}

/// OpenAPI 3.1 of everything under `/api/v1`.
pub async fn openapi() -> Json<Document> {
    Json(document())
}
