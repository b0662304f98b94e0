//! `matins silences`: made, listed and ended. What one may hide is checked by the service.

use super::Failure;
use super::args::Silences;
use super::client::{self, Client, ClientError};
use super::list::{Listing, say};
use super::table::{age, field};
use crate::clock;
use crate::config::parse_duration;
use crate::web::PROTECTED_FLAG;
use chrono::{DateTime, Utc};
use serde_json::{Map, Value, json};

const LISTING: Listing<'_> = Listing {
    name: "silences",
    nothing: "No silences.",
    heads: &["ID", "STATE", "HIDES", "ENDS", "BY", "REASON"],
    row,
};

fn row(silence: &Value, now: DateTime<Utc>) -> Vec<String> {
    let text = |name| field(silence, name);
    let hides: Vec<String> = silence["match"]
        .as_object()
        .map(|keys| keys.iter().map(|(key, _)| format!("{key}={}", field(&silence["match"], key))).collect())
        .unwrap_or_default();
    vec![text("id"), text("state"), hides.join(" "), age(silence, "until", now), text("by"), text("reason")]
}

pub(super) async fn run(client: &Client, command: Silences) -> Result<(), Failure> {
    match command {
        Silences::List(args) => LISTING.list(client, &args, &[]).await,
        Silences::Add { matches, lasts, until, reason, protected, person } => {
            let until = until.map_or_else(|| end_of(lasts.as_deref()), Ok)?;
            let body = json!({
                "match": table(&matches),
                "until": until.to_rfc3339(),
                "reason": reason,
                "protected": protected,
                "by": person.by.unwrap_or_else(|| "somebody".to_owned()),
            });
            let silence = client.post("/api/v1/silences", &body).await.map_err(in_our_words)?;
            say(&format!("Silence {} holds until {}.\n", field(&silence, "id"), field(&silence, "until")))
        }
        Silences::Expire { id } => {
            let silence = client.delete(&client::path("silences", &id, "")).await?;
            say(&format!("Silence {} is over.\n", field(&silence, "id")))
        }
    }
}

/// The service names its own fields; here they are flags.
fn in_our_words(error: ClientError) -> ClientError {
    match error {
        ClientError::Refused { status, why } => {
            ClientError::Refused { status, why: why.replace(PROTECTED_FLAG, "--protected") }
        }
        ClientError::Away { .. } => error,
    }
}

/// Globs by key; a key that is given twice takes any of its globs.
fn table(matches: &[(String, String)]) -> Map<String, Value> {
    let mut table = Map::new();
    for (key, glob) in matches {
        if let Value::Array(globs) = table.entry(key).or_insert_with(|| json!([])) {
            globs.push(json!(glob));
        }
    }
    table
}

fn end_of(lasts: Option<&str>) -> Result<DateTime<Utc>, Failure> {
    let lasts = lasts.unwrap_or_default();
    let time = parse_duration(lasts).ok_or_else(|| Failure::Usage(format!("--for {lasts:?} is no time such as 2h")))?;
    Ok(clock::now() + time)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::silence::SilenceProblem;
    use reqwest::StatusCode;

    #[test]
    fn what_is_missing_is_called_as_it_is_typed() {
        let what = "workflow \"pay\"".to_owned();
        let why = SilenceProblem::HidesProtected { what }.words(PROTECTED_FLAG);
        let error = in_our_words(ClientError::Refused { status: StatusCode::BAD_REQUEST, why });
        assert!(error.to_string().contains("it needs --protected, and"), "{error}");
    }

    #[test]
    fn a_key_given_twice_takes_any_of_its_globs() {
        let pair = |key: &str, glob: &str| (key.to_owned(), glob.to_owned());
        let asked = table(&[pair("workflow", "a"), pair("class", "transient"), pair("workflow", "b-*")]);
        assert_eq!(Value::Object(asked), json!({ "workflow": ["a", "b-*"], "class": ["transient"] }));
    }
}
