//! `matins incidents`: what was paged about, looked at, taken and ended.

use super::Failure;
use super::args::Incidents;
use super::client::{self, Client};
use super::list::{Listing, say};
use super::table::{age, field};
use chrono::{DateTime, Utc};
use serde_json::Value;

const LISTING: Listing<'_> = Listing {
    name: "incidents",
    nothing: "No incidents.",
    heads: &["ID", "PAGE", "WORKFLOWS", "CLASS", "STATE", "OPENED", "EVENTS", "ITEMS", "ERROR"],
    row,
};

fn row(incident: &Value, now: DateTime<Utc>) -> Vec<String> {
    let text = |name| field(incident, name);
    vec![
        text("id"),
        format!("#{}", text("number")),
        text("workflows"),
        text("class"),
        text("state"),
        age(incident, "opened_at", now),
        text("events"),
        text("items"),
        text("error_message"),
    ]
}

pub(super) async fn run(client: &Client, command: Incidents) -> Result<(), Failure> {
    let (id, action, person) = match command {
        Incidents::List(args) => return LISTING.list(client, &args, &[]).await,
        Incidents::Show(args) => return LISTING.show(client, &args).await,
        Incidents::Acknowledge { id, person } => (id, "/acknowledge", person),
        Incidents::Resolve { id, person } => (id, "/resolve", person),
    };
    let incident = client.post(&client::path("incidents", &id, action), &client::by(person)).await?;
    let by = field(&incident, if action == "/resolve" { "resolved_by" } else { "acknowledged_by" });
    let (id, state) = (field(&incident, "id"), field(&incident, "state"));
    say(&format!("Incident {id} is {state}{}.\n", if by.is_empty() { by } else { format!(" by {by}") }))
}
