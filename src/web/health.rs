//! Addresses for machines that watch: alive, ready, metrics. They need no sign-in.

use super::error::ApiError;
use crate::clock;
use crate::ingest::health::Readiness;
use crate::live::Shared;
use crate::metrics::{CONTENT_TYPE, GaugeSnapshot};
use axum::Json;
use axum::extract::State;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde_json::json;
use std::sync::Arc;

/// Alive, whatever else is away.
pub async fn healthz() -> &'static str {
    "ok\n"
}

/// Ready, or why not.
pub async fn readyz(State(shared): State<Arc<Shared>>) -> Response {
    match &*shared.readiness.borrow() {
        Readiness::Ready => Json(json!({ "ready": true })).into_response(),
        Readiness::NotReady(why) => {
            (StatusCode::SERVICE_UNAVAILABLE, Json(json!({ "ready": false, "reason": why }))).into_response()
        }
    }
}

/// Everything for Prometheus.
///
/// # Errors
/// When the store can't be read.
pub async fn metrics(State(shared): State<Arc<Shared>>) -> Result<Response, ApiError> {
    let snapshot =
        GaugeSnapshot::read(&shared.store, &shared.symptoms.load(), &shared.budgets.load(), clock::now()).await?;
    Ok(([(header::CONTENT_TYPE, CONTENT_TYPE)], shared.metrics.encode(&snapshot)).into_response())
}
