//! Making a silence: what it may hide and for how long (CONTRACT 5). What it hides then is `silence`'s to say.

use super::action::{refresh_silences, text};
use super::error::ApiError;
use super::guard::Caller;
use super::input::Ask;
use super::view::SilenceView;
use crate::clock;
use crate::live::Shared;
use crate::matcher::{Glob, MatchKey, Matcher};
use crate::store::StoreError;
use crate::store::silences::{self, NewSilence, StoredSilence, read_matcher};
use crate::workflow::{Domain, Workflows};
use axum::extract::State;
use axum::http::StatusCode;
use axum::{Extension, Json};
use chrono::{DateTime, TimeDelta, Utc};
use serde::Deserialize;
use serde_json::Value;
use std::sync::Arc;
use utoipa::ToSchema;

/// Longest silence, and longest of one that may hide protected workflows.
const LONGEST: TimeDelta = TimeDelta::days(30);
const LONGEST_PROTECTED: TimeDelta = TimeDelta::hours(24);

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
    if ask.until <= now {
        return refuse(format!("until is {}, which is over", ask.until.to_rfc3339()));
    }
    let hidden = protected_by(&matcher, workflows);
    if let (Some(what), false) = (&hidden, ask.protected) {
        return refuse(format!(
            "this silence can hide {what}, which is protected: it needs \"protected\": true, and ends within 24 h"
        ));
    }
    let longest = if ask.protected { LONGEST_PROTECTED } else { LONGEST };
    if ask.until > now + longest {
        return refuse(match ask.protected {
            true => "a silence of protected workflows ends within 24 h".to_owned(),
            false => "a silence ends within 30 days".to_owned(),
        });
    }
    Ok(NewSilence { matcher: ask.r#match, since: now, until: ask.until, reason, by, protected: ask.protected })
}

/// The protected domain or workflow that a match asks for. One that names neither workflow nor domain may fit failures of protected
/// workflows too; without `protected` it hides only those of others.
fn protected_by(matcher: &Matcher, workflows: &Workflows) -> Option<String> {
    let domains = matcher.globs(&MatchKey::Domain);
    let admits = |domain: Domain| domains.is_none_or(|globs| globs.iter().any(|g| g.matches(domain.as_str())));
    let protected = Domain::ALL.into_iter().filter(|d| d.is_protected() && admits(*d));
    let Some(globs) = matcher.globs(&MatchKey::Workflow) else {
        domains?;
        return protected.map(|d| format!("domain {:?}", d.as_str())).next();
    };
    let hit = workflows
        .iter()
        .find(|w| w.domain.is_protected() && admits(w.domain) && globs.iter().any(|g| meet(g, &w.name)));
    hit.map(|w| format!("workflow {:?}", w.name.as_str()))
}

/// Whether one text can fit both. Two globs with wildcards may meet, which is answered with yes when their fixed beginnings agree.
fn meet(asked: &Glob, known: &Glob) -> bool {
    match (asked.is_literal(), known.is_literal()) {
        (true, _) => known.matches(asked.as_str()),
        (false, true) => asked.matches(known.as_str()),
        (false, false) => {
            let (a, b) = (fixed_start(asked.as_str()), fixed_start(known.as_str()));
            a.starts_with(b) || b.starts_with(a)
        }
    }
}

fn fixed_start(pattern: &str) -> &str {
    pattern.split(['*', '?']).next().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workflow::Workflow;
    use serde_json::json;
    use std::collections::BTreeMap;
    use std::time::Duration;

    fn workflow(name: &str, domain: Domain) -> Workflow {
        Workflow {
            name: Glob::new(name),
            domain,
            owner: None,
            runbook: None,
            slo: None,
            every: None,
            grace: Duration::ZERO,
            item_noun: None,
            expected_per_day: None,
            labels: BTreeMap::new(),
        }
    }

    fn ask(table: Value, hours: i64, protected: bool) -> Result<NewSilence, String> {
        let workflows = Workflows::new(vec![
            workflow("pay", Domain::Money),
            workflow("ledger-*", Domain::Compliance),
            workflow("report", Domain::Standard),
        ]);
        let now = DateTime::from_timestamp(1_800_000_000, 0).expect("an instant");
        let (until, by) = (now + TimeDelta::hours(hours), Some("asha".to_owned()));
        let ask = SilenceAsk { r#match: table, until, reason: "upgrade".to_owned(), by, protected };
        checked(ask, &Caller(None), &workflows, now).map_err(|e| e.to_string())
    }

    #[test]
    fn what_can_hide_a_protected_workflow_must_say_so() {
        for table in [
            json!({"workflow": ["pay"]}),
            json!({"workflow": ["p*"]}),
            json!({"workflow": ["*"]}),
            json!({"workflow": ["ledger-2026"]}),
            json!({"workflow": ["led*-x"]}),
            json!({"domain": ["money"]}),
            json!({"domain": ["*"], "class": ["persistent"]}),
            json!({"workflow": ["pay"], "step": ["charge"]}),
        ] {
            let why = ask(table.clone(), 1, false).expect_err(&table.to_string());
            assert!(why.contains("protected"), "{why}");
            assert!(ask(table, 1, true).is_ok());
        }
        for table in [
            json!({"workflow": ["report"]}),
            json!({"workflow": ["pay2"]}),
            json!({"label.team": ["*"]}),
            json!({"domain": ["standard"]}),
            json!({"workflow": ["*"], "domain": ["standard"]}),
        ] {
            assert!(ask(table.clone(), 1, false).is_ok(), "{table}");
        }
    }

    #[test]
    fn a_silence_ends() {
        assert!(ask(json!({"workflow": ["report"]}), 30 * 24, false).is_ok());
        assert!(ask(json!({"workflow": ["report"]}), 30 * 24 + 1, false).is_err_and(|e| e.contains("30 days")));
        assert!(ask(json!({"workflow": ["pay"]}), 24, true).is_ok());
        assert!(ask(json!({"workflow": ["pay"]}), 25, true).is_err_and(|e| e.contains("24 h")));
        assert!(ask(json!({"workflow": ["report"]}), 0, false).is_err_and(|e| e.contains("over")));
        assert!(ask(json!({}), 1, true).is_err_and(|e| e.contains("empty")));
    }
}
