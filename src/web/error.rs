//! What the API answers when it can't do what was asked: a status and JSON with the reason. No secret, no SQL.

use crate::store::StoreError;
use axum::Json;
use axum::http::{HeaderName, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde::Serialize;
use utoipa::ToSchema;

/// Seconds after which asking again makes sense.
const RETRY_AFTER: HeaderValue = HeaderValue::from_static("5");

/// Why the API did not do what was asked.
#[derive(Debug, thiserror::Error)]
pub enum ApiError {
    /// There is nothing of that name.
    #[error("there is no {what} {id:?}")]
    NotFound {
        /// `incident`, `receiver` …
        what: &'static str,
        /// As asked for.
        id: String,
    },
    /// There is nothing of that kind.
    #[error("{0}")]
    Absent(String),
    /// No such address.
    #[error("there is nothing at this address; the API is described at /api/v1/openapi.json")]
    NoSuchAddress,
    /// The address takes another method.
    #[error("this address does not take this method")]
    Method,
    /// What was sent can't be used.
    #[error("{0}")]
    BadRequest(String),
    /// Events that can't be used.
    #[error("{} of the events can't be read; none was stored{}", .count, more(.first.len(), *.count))]
    BadEvents {
        /// The first of them.
        first: Vec<BadEvent>,
        /// How many there are.
        count: usize,
    },
    /// More events than are taken at a time.
    #[error("the body has {count} events or more; at most {max} are taken at a time")]
    TooMany {
        /// How many were seen.
        count: usize,
        /// How many are taken.
        max: usize,
    },
    /// What was sent is too long.
    #[error("the body is over {0} bytes")]
    TooLarge(usize),
    /// No token, or an unknown one.
    #[error("a token is needed: send `Authorization: Bearer …`")]
    Unauthorized,
    /// It is known who asks, and they may not.
    #[error("{0}")]
    Forbidden(String),
    /// The thing is in a state in which this can't be done.
    #[error("{0}")]
    Conflict(String),
    /// The new config is not in use, because it is wrong.
    #[error("{0}")]
    Refused(String),
    /// Something else is away for now.
    #[error("{0}")]
    Unavailable(String),
    /// The store refused.
    #[error("the store does not answer as it should; the log says more")]
    Store(#[from] StoreError),
}

fn more(listed: usize, count: usize) -> String {
    let more = count.saturating_sub(listed);
    if more == 0 { String::new() } else { format!("; the first {listed} are listed, and {more} more are like them") }
}

/// An event that can't be used.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, ToSchema)]
pub struct BadEvent {
    /// Its place in what was sent, from 0.
    pub index: usize,
    /// Its id, when it has one.
    pub id: Option<String>,
    /// What is wrong with it.
    pub reason: String,
}

/// Body of an error.
#[derive(Debug, Serialize, ToSchema)]
pub struct ErrorView {
    /// What is wrong, as a sentence.
    pub error: String,
    /// What is wrong with which event; the first hundred.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub items: Vec<BadEvent>,
}

impl ApiError {
    /// The status that it is answered with.
    pub fn status(&self) -> StatusCode {
        match self {
            Self::NotFound { .. } | Self::Absent(_) | Self::NoSuchAddress => StatusCode::NOT_FOUND,
            Self::Method => StatusCode::METHOD_NOT_ALLOWED,
            Self::BadRequest(_) | Self::BadEvents { .. } => StatusCode::BAD_REQUEST,
            Self::TooLarge(_) | Self::TooMany { .. } => StatusCode::PAYLOAD_TOO_LARGE,
            Self::Unauthorized => StatusCode::UNAUTHORIZED,
            Self::Forbidden(_) => StatusCode::FORBIDDEN,
            Self::Conflict(_) => StatusCode::CONFLICT,
            Self::Refused(_) => StatusCode::UNPROCESSABLE_ENTITY,
            Self::Unavailable(_) => StatusCode::SERVICE_UNAVAILABLE,
            Self::Store(_) => StatusCode::INTERNAL_SERVER_ERROR,
        }
    }

    fn header(&self) -> Option<(HeaderName, HeaderValue)> {
        match self {
            Self::Unavailable(_) => Some((header::RETRY_AFTER, RETRY_AFTER)),
            Self::Unauthorized => Some((header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"))),
            Self::NotFound { .. }
            | Self::Absent(_)
            | Self::NoSuchAddress
            | Self::Method
            | Self::BadRequest(_)
            | Self::BadEvents { .. }
            | Self::TooLarge(_)
            | Self::TooMany { .. }
            | Self::Forbidden(_)
            | Self::Conflict(_)
            | Self::Refused(_)
            | Self::Store(_) => None,
        }
    }
}

impl IntoResponse for ApiError {
    fn into_response(self) -> Response {
        if let Self::Store(error) = &self {
            tracing::error!(%error, "a request failed");
        }
        let (status, header, error) = (self.status(), self.header(), self.to_string());
        let items = if let Self::BadEvents { first, .. } = self { first } else { Vec::new() };
        let mut response = (status, Json(ErrorView { error, items })).into_response();
        if let Some((name, value)) = header {
            response.headers_mut().insert(name, value);
        }
        response
    }
}
