//! Reading requests: query, path and body, with our own words when they can't be read. What they ask for is not known here.

use super::error::ApiError;
use axum::extract::rejection::BytesRejection;
use axum::extract::{FromRequest, FromRequestParts, Query, Request};
use axum::http::request::Parts;
use bytes::Bytes;
use chrono::{DateTime, SecondsFormat, Utc};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize, Serializer};
use utoipa::{IntoParams, ToSchema};

/// Largest body, in bytes.
pub const BODY_MAX: usize = 10 * 1024 * 1024;

/// Items of a list, unless asked otherwise; and at most.
const LIMIT: (i64, i64) = (100, 1000);

/// Parameters of a query.
#[derive(Debug)]
pub struct Params<T>(pub T);

impl<T: DeserializeOwned, S: Send + Sync> FromRequestParts<S> for Params<T> {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, ApiError> {
        let query = Query::<T>::try_from_uri(&parts.uri).map_err(|e| ApiError::BadRequest(e.body_text()))?;
        Ok(Self(query.0))
    }
}

/// A body of at most `BODY_MAX` bytes, whatever its type.
#[derive(Debug)]
pub struct Body(pub Bytes);

impl<S: Send + Sync> FromRequest<S> for Body {
    type Rejection = ApiError;

    async fn from_request(request: Request, state: &S) -> Result<Self, ApiError> {
        let bytes = Bytes::from_request(request, state).await.map_err(|e: BytesRejection| {
            if e.status() == axum::http::StatusCode::PAYLOAD_TOO_LARGE {
                ApiError::TooLarge(BODY_MAX)
            } else {
                ApiError::BadRequest(e.body_text())
            }
        })?;
        Ok(Self(bytes))
    }
}

/// JSON of an action. No body is the same as `{}`.
#[derive(Debug)]
pub struct Ask<T>(pub T);

impl<T: DeserializeOwned, S: Send + Sync> FromRequest<S> for Ask<T> {
    type Rejection = ApiError;

    async fn from_request(request: Request, state: &S) -> Result<Self, ApiError> {
        let Body(bytes) = Body::from_request(request, state).await?;
        let text: &[u8] = if bytes.trim_ascii().is_empty() { b"{}" } else { &bytes };
        serde_json::from_slice(text).map(Self).map_err(|e| ApiError::BadRequest(format!("the body can't be read: {e}")))
    }
}

/// Which part of a list is asked for.
#[derive(Clone, Debug, Default, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub struct Range {
    /// `next` of the part before.
    pub cursor: Option<String>,
    /// Items at most; 100 unless given, 1000 at most.
    pub limit: Option<i64>,
}

impl Range {
    /// Row number below which the part begins, and how many rows it has at most.
    ///
    /// # Errors
    /// When the cursor is none of ours or the limit is not positive.
    pub fn read(&self) -> Result<(i64, i64), ApiError> {
        let before = match self.cursor.as_deref().filter(|c| !c.is_empty()) {
            None => i64::MAX,
            Some(cursor) => cursor
                .parse()
                .map_err(|_| ApiError::BadRequest(format!("cursor {cursor:?} is none that a list gave as `next`")))?,
        };
        Ok((before, self.limit()?))
    }

    /// How many items it has at most.
    ///
    /// # Errors
    /// When that is not positive.
    pub fn limit(&self) -> Result<i64, ApiError> {
        match self.limit.unwrap_or(LIMIT.0) {
            limit if limit >= 1 => Ok(limit.min(LIMIT.1)),
            limit => Err(ApiError::BadRequest(format!("limit is 1 to {}, not {limit}", LIMIT.1))),
        }
    }
}

/// A part of a list.
#[derive(Debug, Serialize, ToSchema)]
pub struct Page<T> {
    /// Newest first.
    pub items: Vec<T>,
    /// Cursor of the part after; null at the end.
    pub next: Option<String>,
}

impl<T> Page<T> {
    /// From rows that were read with one more than asked for, so that the end is known.
    pub fn new<R>(mut rows: Vec<R>, limit: i64, row_of: impl Fn(&R) -> i64, view: impl Fn(R) -> T) -> Self {
        let limit = usize::try_from(limit).unwrap_or(usize::MAX);
        let more = rows.len() > limit;
        rows.truncate(limit);
        let next = rows.last().filter(|_| more).map(|row| row_of(row).to_string());
        Self { items: rows.into_iter().map(view).collect(), next }
    }
}

/// The row number in a path.
///
/// # Errors
/// Not found, when it is no number: every id of that kind is one.
pub fn row(what: &'static str, id: &str) -> Result<i64, ApiError> {
    id.parse().map_err(|_| ApiError::NotFound { what, id: id.to_owned() })
}

/// An instant as the API writes it: RFC 3339, UTC, milliseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ToSchema)]
#[schema(value_type = String, format = DateTime)]
pub struct At(pub DateTime<Utc>);

impl Serialize for At {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.0.to_rfc3339_opts(SecondsFormat::Millis, true))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_says_where_it_goes_on_only_when_it_does() {
        let page = Page::new(vec![9, 8, 7], 2, |n| *n, |n| n);
        assert_eq!((page.items, page.next), (vec![9, 8], Some("8".to_owned())));
        let page = Page::new(vec![9, 8], 2, |n| *n, |n| n);
        assert_eq!((page.items, page.next), (vec![9, 8], None));
    }

    #[test]
    fn a_range_is_bounded_and_its_cursor_must_be_ours() {
        let range = |cursor: &str, limit| Range { cursor: Some(cursor.to_owned()), limit }.read();
        assert_eq!(range("12", Some(5000)).expect("a range"), (12, 1000));
        assert_eq!(range("", None).expect("a range"), (i64::MAX, 100));
        assert!(range("x", None).is_err());
        assert!(range("", Some(0)).is_err());
    }
}
