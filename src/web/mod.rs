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
pub use silence::PROTECTED_FLAG;

use crate::live::Shared;
use axum::Router;
use axum::extract::{DefaultBodyLimit, Request, State};
use axum::middleware::{Next, from_fn_with_state};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use guard::{Guard, Reach};
use std::sync::Arc;
use std::time::Duration;
use tokio::net::TcpListener;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

/// How long requests in flight may take once the service stops.
const FINISH_WITHIN: Duration = Duration::from_secs(5);

/// How long a request may take, its body included. Each thing that is waited for has a shorter limit of its own.
const ANSWER_WITHIN: Duration = Duration::from_secs(60);

/// Every address, for a socket of that reach.
fn router(shared: Arc<Shared>, reach: Reach) -> Router {
    let guard = Guard { shared: shared.clone(), reach };
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
        .layer(from_fn_with_state(guard, guard::check))
        .layer(from_fn_with_state(ANSWER_WITHIN, in_time))
        .with_state(shared)
}

async fn in_time(State(limit): State<Duration>, request: Request, next: Next) -> Response {
    let late = |_| ApiError::Unavailable(format!("the request was not over after {} s", limit.as_secs()));
    timeout(limit, next.run(request)).await.map_err(late).into_response()
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
        .route("/outbox/{id}/redrive", post(action::redrive_entry))
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
    let is_loopback = listener.local_addr().is_ok_and(|address| address.ip().is_loopback());
    let reach = if is_loopback { Reach::ThisMachine } else { Reach::Anybody };
    let server =
        axum::serve(listener, router(shared, reach)).with_graceful_shutdown(async move { stopping.cancelled().await });
    tokio::select! {
        ended = async { server.await } => {
            if let Err(error) = ended {
                tracing::error!(%error, "HTTP ended");
            }
        }
        () = cut_off => tracing::warn!("requests were cut off, because the service stops"),
    }
}
