//! Making a silence for a person. What it may hide, for how long, and what it hides then is `silence`'s to say.

use super::action::{refresh_silences, text};
use super::error::ApiError;
use super::guard::Caller;
use super::input::Ask;
use super::view::SilenceView;
use crate::clock;
use crate::live::Shared;
use crate::silence;
use crate::store::StoreError;
use crate::store::silences::{self, NewSilence, StoredSilence, read_matcher};
use crate::workflow::Workflows;
use axum::extract::State;
use axum::http::StatusCode;
use axum::{Extension, Json};
use chrono::{DateTime, Utc};
use serde::Deserialize;
use serde_json::Value;
use std::sync::Arc;
use utoipa::ToSchema;

/// How an ask says that it may hide protected workflows.
pub const PROTECTED_FLAG: &str = "\"protected\": true";

/// A silence to make.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct SilenceAsk {
    /// What it hides, as in routes: `{"workflow": ["pay"], "label.team": ["*"]}`.
    #[schema(value_type = Object)]
    pub r#match: Value,
    /// When it ends, RFC 3339; 30 days from now at most, 24 h when it hides a protected workflow.
    #[schema(value_type = String, format = DateTime)]
    pub until: DateTime<Utc>,
    /// Why; digests show it.
    pub reason: String,
    /// A name; that of the token when it is not given.
    pub by: Option<String>,
    /// Must be true to hide a money or compliance workflow.
    #[serde(default)]
    pub protected: bool,
}

/// Makes a silence.
#[utoipa::path(post, path = "/api/v1/silences", request_body = SilenceAsk,
    responses((status = 201, body = SilenceView), (status = 400)))]
pub async fn add(
    shared: State<Arc<Shared>>,
    caller: Extension<Caller>,
    ask: Ask<SilenceAsk>,
) -> Result<(StatusCode, Json<SilenceView>), ApiError> {
    let now = clock::now();
    let new = checked(ask.0, &caller, &shared.live.load().config.workflows, now)?;
    let mut tx = shared.store.begin().await?;
    let id = silences::insert(&mut tx, &new).await?;
    tx.commit().await.map_err(StoreError::from)?;
    refresh_silences(&shared, now).await?;
    tracing::info!(silence = id, until = %new.until, by = new.by, reason = new.reason, "silence made");
    Ok((StatusCode::CREATED, Json(SilenceView::new(StoredSilence { id, new }, now))))
}

fn checked(
    ask: SilenceAsk,
    caller: &Caller,
    workflows: &Workflows,
    now: DateTime<Utc>,
) -> Result<NewSilence, ApiError> {
    let refuse = |why: String| Err(ApiError::BadRequest(why));
    let matcher = read_matcher(&ask.r#match).map_err(ApiError::BadRequest)?;
    if matcher.is_empty() {
        return refuse(
            "match is empty: a silence that hides everything is refused; name at least a workflow".to_owned(),
        );
    }
    let Some(reason) = text(Some(ask.reason), "reason")? else {
        return refuse("a silence needs a reason: digests show it beside what was hidden".to_owned());
    };
    let Some(by) = text(ask.by, "by")?.or_else(|| caller.0.clone()) else {
        return refuse("a silence needs by: who asks for it".to_owned());
    };
    let problems = silence::problems(&matcher, ask.until, ask.protected, workflows, now);
    if let Some(problem) = problems.first() {
        return refuse(problem.words(PROTECTED_FLAG));
    }
    Ok(NewSilence { matcher: ask.r#match, since: now, until: ask.until, reason, by, protected: ask.protected })
}

#[cfg(test)]
mod tests {
    use super::*;
    use chrono::TimeDelta;
    use serde_json::json;

    fn ask(table: Value, hours: i64, by: Option<&str>) -> Result<NewSilence, String> {
        let now = DateTime::from_timestamp(1_800_000_000, 0).expect("an instant");
        let (until, by) = (now + TimeDelta::hours(hours), by.map(str::to_owned));
        let ask = SilenceAsk { r#match: table, until, reason: "upgrade".to_owned(), by, protected: false };
        checked(ask, &Caller(None), &Workflows::new(vec![]), now).map_err(|e| e.to_string())
    }

    #[test]
    fn a_silence_hides_something_says_who_asked_and_what_its_limits_are() {
        assert!(ask(json!({"workflow": ["report"]}), 1, Some("asha")).is_ok());
        assert!(ask(json!({}), 1, Some("asha")).is_err_and(|e| e.contains("empty")));
        assert!(ask(json!({"workflow": ["report"]}), 1, None).is_err_and(|e| e.contains("who asks")));
        assert!(ask(json!({"workflow": ["report"]}), 0, Some("asha")).is_err_and(|e| e.contains("over")));
        assert!(ask(json!({"domain": ["money"]}), 1, Some("asha")).is_err_and(|e| e.contains(PROTECTED_FLAG)));
    }
}
