//! HTTP: health, metrics, the API, and the page behind an acknowledge link. Requests are read, rooms are asked, answers are shown;
//! no rule of the field lives here.

mod ack;
mod action;
mod digest;
mod error;
mod explain;
mod guard;
mod health;
mod input;
mod list;
mod openapi;
mod place;
mod publish;
mod silence;
#[cfg(test)]
mod tests;
mod view;

pub use action::refresh_silences;
pub use error::{ApiError, BadEvent, ErrorView};
pub use publish::{subject_of, subject_token};

use crate::live::Shared;
use axum::Router;
use axum::extract::DefaultBodyLimit;
use axum::middleware::from_fn_with_state;
use axum::routing::{get, post};
use std::sync::Arc;
use std::time::Duration;
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

/// How long requests in flight may take once the service stops.
const FINISH_WITHIN: Duration = Duration::from_secs(5);

/// Every address.
pub fn router(shared: Arc<Shared>) -> Router {
    Router::new()
        .route("/healthz", get(health::healthz))
        .route("/readyz", get(health::readyz))
        .route("/metrics", get(health::metrics))
        .route("/ack/{incident}", get(ack::show).post(ack::press))
        .nest("/api/v1", api())
        .merge(place::places())
        .fallback(|| async { ApiError::NoSuchAddress })
        .method_not_allowed_fallback(|| async { ApiError::Method })
        .layer(DefaultBodyLimit::max(input::BODY_MAX))
        .layer(from_fn_with_state(shared.clone(), guard::check))
        .with_state(shared)
}

fn api() -> Router<Arc<Shared>> {
    Router::new()
        .route("/openapi.json", get(openapi::openapi))
        .route("/stats", get(list::stats))
        .route("/events", post(publish::events))
        .route("/events/{id}/explain", get(explain::explain))
        .route("/dead-letters", get(list::letters))
        .route("/dead-letters/{id}", get(list::letter))
        .route("/dead-letters/{id}/resolve", post(action::resolve_letter))
        .route("/incidents", get(list::incidents))
        .route("/incidents/{id}", get(list::incident))
        .route("/incidents/{id}/acknowledge", post(action::acknowledge))
        .route("/incidents/{id}/resolve", post(action::resolve))
        .route("/outbox", get(list::outbox))
        .route("/outbox/{id}", get(list::entry))
        .route("/digests", get(list::digests))
        .route("/digests/preview", get(digest::preview))
        .route("/digests/{id}", get(list::digest))
        .route("/digests/{id}/resend", post(digest::resend))
        .route("/quarantine", get(list::quarantine))
        .route("/quarantine/{id}", get(list::quarantined))
        .route("/symptoms", get(list::symptoms))
        .route("/silences", get(list::silences).post(silence::add))
        .route("/silences/{id}", get(list::silence).delete(action::expire_silence))
        .route("/receivers/{name}/test", post(action::test_receiver))
        .route("/reload", post(action::reload))
}

/// Serves until `stop`; then requests in flight have five seconds.
pub async fn serve(listener: TcpListener, shared: Arc<Shared>, stop: CancellationToken) {
    let (stopping, cut_off) = (stop.clone(), async {
        stop.cancelled().await;
        tokio::time::sleep(FINISH_WITHIN).await;
    });
    let server =
        axum::serve(listener, router(shared)).with_graceful_shutdown(async move { stopping.cancelled().await });
    tokio::select! {
        ended = async { server.await } => {
            if let Err(error) = ended {
                tracing::error!(%error, "HTTP ended");
            }
        }
        () = cut_off => tracing::warn!("requests were cut off, because the service stops"),
    }
}
