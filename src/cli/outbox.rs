//! `matins outbox`: messages to people, and what became of them.

use super::Failure;
use super::args::Outbox;
use super::client::{self, Client};
use super::list::{Listing, say};
use super::table::{age, field};
use chrono::{DateTime, Utc};
use serde_json::{Value, json};

const LISTING: Listing<'_> = Listing {
    name: "outbox",
    nothing: "Nothing was sent yet.",
    heads: &["ID", "NUMBER", "KIND", "RECEIVER", "WORKFLOW", "STATE", "TRIES", "DECIDED", "LAST ERROR"],
    row,
};

fn row(entry: &Value, now: DateTime<Utc>) -> Vec<String> {
    let text = |name| field(entry, name);
    let receiver = [text("receiver"), text("address")].into_iter().filter(|t| !t.is_empty()).collect::<Vec<_>>();
    vec![
        text("id"),
        format!("#{}", text("number")),
        text("kind"),
        receiver.join(" "),
        text("workflow"),
        text("state"),
        text("attempts"),
        age(entry, "created_at", now),
        text("last_error"),
    ]
}

pub(super) async fn run(client: &Client, command: Outbox) -> Result<(), Failure> {
    match command {
        Outbox::List(args) => LISTING.list(client, &args, &[]).await,
        Outbox::Show(args) => LISTING.show(client, &args).await,
        Outbox::Redrive { id } => {
            let entry = client.post(&client::path("outbox", &id, "/redrive"), &json!({})).await?;
            let text = |name| field(&entry, name);
            say(&format!("Message {} (#{}) goes to {} again.\n", text("id"), text("number"), text("receiver")))
        }
    }
}
