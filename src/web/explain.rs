//! Why a stored event is what it is, and who heard of it. The answer is `explain`'s.

#![allow(unused_qualifications, reason = "the macro that describes parameters writes whole paths")]

use super::error::ApiError;
use super::input::Params;
use crate::explain::{Explanation, explain_stored};
use crate::live::Shared;
use axum::Json;
use axum::extract::{Path, State};
use chrono::{DateTime, Utc};
use serde::Deserialize;
use std::sync::Arc;
use utoipa::IntoParams;

/// For which instant.
#[derive(Clone, Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub struct ExplainQuery {
    /// What would be decided then; when it came in unless given.
    #[param(value_type = Option<String>, format = DateTime)]
    pub at: Option<DateTime<Utc>>,
}

/// Why an event is what it is, and who hears of it.
#[utoipa::path(get, path = "/api/v1/events/{id}/explain", params(("id" = String, Path), ExplainQuery),
    responses((status = 200, body = Explanation), (status = 404)))]
pub async fn explain(
    shared: State<Arc<Shared>>,
    id: Path<String>,
    query: Params<ExplainQuery>,
) -> Result<Json<Explanation>, ApiError> {
    let live = shared.live.load_full();
    let found = explain_stored(&shared.store, &live, &id, query.0.at, shared.symptoms.load_full()).await?;
    found.map(Json).ok_or(ApiError::NotFound { what: "event", id: id.0 })
}
