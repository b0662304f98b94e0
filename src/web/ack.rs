//! The page behind an acknowledge link. Looking at it changes nothing, so that link previews and mail scanners acknowledge nothing;
//! its button does. The signature is checked by `ack_link`.

use super::action::{acknowledge_incident, text};
use super::error::ApiError;
use super::input::Params;
use crate::ack_link::{self, LinkError};
use crate::clock;
use crate::incident::{Incident, IncidentId, IncidentState};
use crate::live::Shared;
use crate::render::{escape_html, words};
use crate::store::incidents;
use axum::Form;
use axum::extract::{Path, State};
use axum::http::{HeaderName, StatusCode, header};
use axum::response::{Html, IntoResponse, Response};
use chrono_tz::Tz;
use serde::Deserialize;
use std::sync::Arc;

/// Nothing is loaded or run; the form goes back to where the page came from.
const POLICY: &str =
    "default-src 'none'; style-src 'unsafe-inline'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'";

const STYLE: &str = "body{font:16px/1.5 system-ui,sans-serif;max-width:36rem;margin:3rem auto;padding:0 1rem;color:#1c1917;background:#fafaf9}\
    h1{font-size:1.25rem}dt{color:#57534e}dd{margin:0 0 .5rem}button{font:inherit;padding:.5rem 1rem;border:0;border-radius:.375rem;background:#b91c1c;color:#fff}\
    input{font:inherit;padding:.5rem;border:1px solid #a8a29e;border-radius:.375rem;background:inherit;color:inherit}\
    @media(prefers-color-scheme:dark){body{color:#fafaf9;background:#1c1917}dt{color:#a8a29e}}";

/// What a link carries.
#[derive(Debug, Deserialize)]
pub struct LinkQuery {
    #[serde(default)]
    sig: String,
    #[serde(default)]
    exp: String,
}

/// What the form sends.
#[derive(Debug, Default, Deserialize)]
pub struct AckForm {
    by: Option<String>,
}

/// Shows what would be acknowledged. Changes nothing.
pub async fn show(
    State(shared): State<Arc<Shared>>,
    Path(id): Path<String>,
    Params(link): Params<LinkQuery>,
) -> Response {
    match signed_incident(&shared, &id, &link).await {
        Ok(incident) => page(StatusCode::OK, &incident_page(&incident, &link, zone(&shared))),
        Err(refusal) => refusal,
    }
}

/// Acknowledges.
pub async fn press(
    State(shared): State<Arc<Shared>>,
    Path(id): Path<String>,
    Params(link): Params<LinkQuery>,
    form: Result<Form<AckForm>, axum::extract::rejection::FormRejection>,
) -> Response {
    // A body that is no form only means that no name was given.
    let by = form.map(|form| form.0.by).unwrap_or_default();
    let incident = match signed_incident(&shared, &id, &link).await {
        Ok(incident) => incident,
        Err(refusal) => return refusal,
    };
    let by = text(by, "the name").ok().flatten().unwrap_or_else(|| "somebody".to_owned());
    match acknowledge_incident(&shared, incident.id.0, by, clock::now()).await {
        Ok(incident) => page(StatusCode::OK, &incident_page(&incident, &link, zone(&shared))),
        Err(ApiError::Conflict(_)) => page(StatusCode::OK, &incident_page(&incident, &link, zone(&shared))),
        Err(error) => refusal(error.status(), &error.to_string()),
    }
}

/// The incident of a link that is good now, else the page that says why not.
async fn signed_incident(shared: &Shared, id: &str, link: &LinkQuery) -> Result<Incident, Response> {
    let forged = || refusal(StatusCode::FORBIDDEN, &LinkError::Forged.to_string());
    let (Ok(id), Ok(exp)) = (id.parse::<i64>(), link.exp.parse::<i64>()) else { return Err(forged()) };
    ack_link::verify(&shared.keys.links, id, exp, &link.sig, clock::now())
        .map_err(|e| refusal(StatusCode::FORBIDDEN, &e.to_string()))?;
    match incidents::get(shared.store.reader(), IncidentId(id)).await {
        Ok(Some(incident)) => Ok(incident),
        Ok(None) => Err(refusal(StatusCode::NOT_FOUND, "this incident is no longer kept")),
        Err(error) => Err(ApiError::from(error).into_response()),
    }
}

/// The zone that messages show times in.
fn zone(shared: &Shared) -> Tz {
    shared.live.load().announcer.zone()
}

fn incident_page(incident: &Incident, link: &LinkQuery, zone: Tz) -> String {
    let names: Vec<&str> = incident.hits.iter().map(|h| h.workflow.as_str()).collect();
    let workflows = escape_html(&names.join(", "));
    let about = about(incident);
    let action = format!("/ack/{}?sig={}&amp;exp={}", incident.id.0, escape_html(&link.sig), escape_html(&link.exp));
    let state = match incident.state {
        IncidentState::Open => format!(
            "<form method=\"post\" action=\"{action}\"><p><label>Your name <input name=\"by\" maxlength=\"80\" autocomplete=\"name\"></label></p>\
             <p><button>Acknowledge</button></p></form>\
             <p>Reminders and escalations stop. The incident stays open until it is resolved.</p>"
        ),
        IncidentState::Acknowledged => {
            format!(
                "<p><strong>Acknowledged</strong> by {}.</p>",
                escape_html(incident.acknowledged_by.as_deref().unwrap_or("somebody"))
            )
        }
        IncidentState::Resolved => "<p><strong>Resolved.</strong> There is nothing left to acknowledge.</p>".to_owned(),
    };
    format!(
        "<h1>#{number}: {workflows}</h1><p>{events} since {since}.</p>\
         <dl>{about}</dl>{state}",
        number = incident.told.page_number,
        events = words::noun(incident.event_count(), "failure"),
        since = format_args!(
            "{} {}",
            words::date_time(incident.opened_at, zone),
            words::zone_name(zone, incident.opened_at)
        ),
    )
}

/// The failure that opened it, else the symptoms that did.
fn about(incident: &Incident) -> String {
    let Some(sample) = &incident.sample else {
        let told = incident.symptoms.iter().map(|s| format!("<dt>Symptom</dt><dd>{}</dd>", escape_html(&s.text)));
        return told.collect();
    };
    let message = escape_html(sample.error.message.as_deref().unwrap_or("no message"));
    format!("<dt>Class</dt><dd>{}</dd><dt>First error</dt><dd>{message}</dd>", sample.class)
}

fn refusal(status: StatusCode, why: &str) -> Response {
    page(status, &format!("<h1>Nothing was acknowledged</h1><p>{}</p>", escape_html(why)))
}

fn page(status: StatusCode, body: &str) -> Response {
    let html = format!(
        "<!doctype html><html lang=\"en\"><head><meta charset=\"utf-8\"><meta name=\"viewport\" content=\"width=device-width\">\
         <meta name=\"robots\" content=\"noindex\"><title>Matins</title><style>{STYLE}</style></head><body>{body}</body></html>\n"
    );
    let headers = [
        (HeaderName::from_static("content-security-policy"), POLICY),
        // The link itself is a secret.
        (header::REFERRER_POLICY, "same-origin"),
        (header::CACHE_CONTROL, "no-store"),
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
    ];
    (status, headers, Html(html)).into_response()
}
