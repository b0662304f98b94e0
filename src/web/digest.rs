//! Digests on request: what one would say now, and sending a told one again. Composing them is `digest_job`'s.

#![allow(unused_qualifications, reason = "the macro that describes parameters writes whole paths")]

use super::action::must_know;
use super::error::ApiError;
use super::input::{Params, row};
use super::view::DoneView;
use crate::clock;
use crate::config::Config;
use crate::deliver::{Channel, ReceiverKind, Recipients, email};
use crate::digest_job::{self, PreviewError};
use crate::live::Shared;
use crate::name::ReceiverName;
use crate::render::{Content, MailContent};
use axum::Json;
use axum::extract::{Path, State};
use axum::http::{HeaderName, header};
use axum::response::{IntoResponse, Response};
use chrono::{DateTime, Utc};
use serde::Deserialize;
use std::sync::Arc;
use utoipa::{IntoParams, ToSchema};

/// Sender of a preview where config has no mail server.
const NOBODY: &str = "Matins <matins@localhost>";

/// Form of a preview.
#[derive(Clone, Copy, Debug, Default, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum PreviewFormat {
    /// The text part of the mail.
    #[default]
    Text,
    /// The HTML part of the mail.
    Html,
    /// The mail as a file.
    Eml,
    /// JSON of the Slack message.
    Slack,
}

impl PreviewFormat {
    fn channel(self) -> Channel {
        match self {
            Self::Text | Self::Html | Self::Eml => Channel::Email,
            Self::Slack => Channel::Slack,
        }
    }

    fn content_type(self) -> &'static str {
        match self {
            Self::Text => "text/plain; charset=utf-8",
            Self::Html => "text/html; charset=utf-8",
            Self::Eml => "message/rfc822",
            Self::Slack => "application/json",
        }
    }
}

/// Which digest to show.
#[derive(Clone, Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub struct PreviewQuery {
    /// Name of the digest.
    pub name: String,
    /// Whom for; `<receiver>:<mailbox>` for an owner's own.
    pub receiver: String,
    /// End of the window; the open window unless given.
    #[param(value_type = Option<String>, format = DateTime)]
    pub end: Option<DateTime<Utc>>,
    /// Form; text unless given.
    #[serde(default)]
    pub format: PreviewFormat,
}

/// What a digest would say. Nothing is stored or sent.
#[utoipa::path(get, path = "/api/v1/digests/preview", params(PreviewQuery),
    responses((status = 200, description = "in the form asked for"), (status = 404, description = "no route sends it")))]
pub async fn preview(shared: State<Arc<Shared>>, query: Params<PreviewQuery>) -> Result<Response, ApiError> {
    let PreviewQuery { name, receiver, end, format } = query.0;
    let (live, now) = (shared.live.load_full(), clock::now());
    let content = digest_job::preview(
        &shared.store,
        &live,
        &name,
        &receiver,
        end,
        format.channel(),
        shared.symptoms.load_full(),
        shared.budgets.load_full(),
        now,
    )
    .await?;
    let bytes = body(&content, format, &live.config, &receiver, end.unwrap_or(now))?;
    // HTML of our own templates, but of other people's data: shown, never run.
    let policy = (
        HeaderName::from_static("content-security-policy"),
        "sandbox; default-src 'none'; img-src cid: data:; style-src 'unsafe-inline'",
    );
    Ok(([(header::CONTENT_TYPE, format.content_type()), policy], bytes).into_response())
}

impl From<PreviewError> for ApiError {
    fn from(error: PreviewError) -> Self {
        match error {
            PreviewError::Unknown { .. } => Self::Absent(error.to_string()),
            PreviewError::End(_) => Self::BadRequest(error.to_string()),
            PreviewError::Store(error) => Self::Store(error),
        }
    }
}

fn body(
    content: &Content,
    format: PreviewFormat,
    config: &Config,
    receiver: &str,
    at: DateTime<Utc>,
) -> Result<Vec<u8>, ApiError> {
    match content {
        Content::Email(mail) => match format {
            PreviewFormat::Html => Ok(mail.html.clone().into_bytes()),
            PreviewFormat::Eml => eml(mail, config, receiver, at),
            PreviewFormat::Text | PreviewFormat::Slack => Ok(mail.text.clone().into_bytes()),
        },
        Content::Slack(message) => Ok(serde_json::to_vec_pretty(message).unwrap_or_default()),
        Content::Json(value) => Ok(value.to_string().into_bytes()),
        Content::Text(text) => Ok(text.clone().into_bytes()),
    }
}

fn eml(mail: &MailContent, config: &Config, receiver: &str, at: DateTime<Utc>) -> Result<Vec<u8>, ApiError> {
    let from = config.smtp.as_ref().map_or(NOBODY, |smtp| smtp.from.as_str());
    let mut to = mailboxes(config, receiver);
    if to.is_empty() {
        // A mail has a recipient, also one that is only looked at.
        to.push(from.to_owned());
    }
    email::eml(mail, from, &to, at).map_err(|e| ApiError::BadRequest(e.to_string()))
}

/// Whom a receiver of a digest writes to: its own mailboxes, or the one owner that is named after it.
fn mailboxes(config: &Config, receiver: &str) -> Vec<String> {
    match config.receivers.get(&ReceiverName::from(receiver)).map(|r| &r.kind) {
        Some(ReceiverKind::Email { to: Recipients::Fixed(mailboxes) }) => return mailboxes.clone(),
        Some(_) => return Vec::new(),
        None => {}
    }
    let owners = config.receivers.values().filter(|r| r.kind.is_owner());
    let mut named = owners.filter_map(|r| receiver.strip_prefix(r.name.as_str())?.strip_prefix(':'));
    named.next().map(str::to_owned).into_iter().collect()
}

/// Sends a told digest again, the same to the byte.
#[utoipa::path(post, path = "/api/v1/digests/{id}/resend", params(("id" = String, Path)),
    responses((status = 200, body = DoneView), (status = 404), (status = 409, description = "config no longer knows its receiver")))]
pub async fn resend(shared: State<Arc<Shared>>, id: Path<String>) -> Result<Json<DoneView>, ApiError> {
    let Some(sent) = digest_job::sent(&shared.store, row("digest", &id)?).await? else {
        return Err(ApiError::Absent(format!("there is no digest {:?} that was sent", id.0)));
    };
    must_know(&shared, &sent.receiver)?;
    digest_job::resend(&shared.store, sent, clock::now()).await?;
    shared.outbox_wake.notify_one();
    Ok(Json(DoneView { done: "enqueued again" }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config;

    #[test]
    fn a_preview_is_addressed_to_the_receiver_or_to_the_one_owner_named_after_it() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("matins.toml");
        let text = "[smtp]\nhost = \"127.0.0.1\"\nfrom = \"m@example.com\"\n\
            [receivers.heads]\nkind = \"email\"\nto = [\"a@example.com\", \"b@example.com\"]\n\
            [receivers.each]\nkind = \"email\"\nto = \"owner\"\n\
            [[routes]]\nname = \"everything\"\nmatch = {}\npage = [\"heads\"]\n";
        std::fs::write(&path, text).expect("a file");
        let config = config::load(&path, &|_| None, clock::now()).expect("a good config").config;
        assert_eq!(mailboxes(&config, "heads"), ["a@example.com", "b@example.com"]);
        assert_eq!(mailboxes(&config, "each:asha@example.com"), ["asha@example.com"]);
        assert_eq!(mailboxes(&config, "heads:asha@example.com"), Vec::<String>::new());
        assert_eq!(mailboxes(&config, "each"), Vec::<String>::new());
    }
}
