//! `matins dead-letters`: failed items, looked at and resolved.

use super::Failure;
use super::args::DeadLetters;
use super::client::{self, Client};
use super::list::{Listing, say};
use super::table::{age, field};
use chrono::{DateTime, Utc};
use serde_json::{Value, json};

const LISTING: Listing<'_> = Listing {
    name: "dead-letters",
    nothing: "No dead letters.",
    heads: &["ID", "WORKFLOW", "STEP", "ITEM", "CLASS", "TIMES", "FAILED", "STATE", "ERROR"],
    row,
};

fn row(letter: &Value, now: DateTime<Utc>) -> Vec<String> {
    let text = |name| field(letter, name);
    let state = if letter["resolved_at"].is_null() { "open" } else { "resolved" };
    vec![
        text("id"),
        text("workflow"),
        text("step"),
        text("item"),
        text("class"),
        text("times"),
        age(letter, "last_failed_at", now),
        state.to_owned(),
        text("error_message"),
    ]
}

pub(super) async fn run(client: &Client, command: DeadLetters) -> Result<(), Failure> {
    match command {
        DeadLetters::List { list, workflow, fingerprint, incident, open } => {
            let open = open.then(|| "true".to_owned());
            let asked = [("workflow", workflow), ("fingerprint", fingerprint), ("incident", incident), ("open", open)];
            let filter: Vec<_> = asked.into_iter().filter_map(|(name, value)| Some((name, value?))).collect();
            LISTING.list(client, &list, &filter).await
        }
        DeadLetters::Show(args) => LISTING.show(client, &args).await,
        DeadLetters::Resolve { id, note, person } => {
            let body = json!({ "note": note, "by": person.by });
            let letter = client.post(&client::path("dead-letters", &id, "/resolve"), &body).await?;
            say(&format!("Dead letter {} of {} is resolved.\n", field(&letter, "id"), field(&letter, "workflow")))
        }
    }
}
