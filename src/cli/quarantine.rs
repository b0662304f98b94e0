//! `matins quarantine`: messages that could not be read.

use super::Failure;
use super::args::Quarantine;
use super::client::{self, Client};
use super::list::{Listing, say};
use super::table::{age, card, field};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use chrono::{DateTime, Utc};
use serde_json::{Value, json};

const LISTING: Listing<'_> = Listing {
    name: "quarantine",
    nothing: "No unreadable messages.",
    heads: &["ID", "SUBJECT", "RECEIVED", "BYTES", "REASON", "WHY"],
    row,
};

fn row(message: &Value, now: DateTime<Utc>) -> Vec<String> {
    let text = |name| field(message, name);
    vec![
        text("id"),
        text("subject"),
        age(message, "received_at", now),
        text("size"),
        text("reason"),
        text("explanation"),
    ]
}

pub(super) async fn run(client: &Client, command: Quarantine) -> Result<(), Failure> {
    match command {
        Quarantine::List(args) => LISTING.list(client, &args, &[]).await,
        Quarantine::Show(args) if args.json => LISTING.show(client, &args).await,
        Quarantine::Show(args) => {
            let mut message = client.get(&client::path("quarantine", &args.id, "")).await?;
            let raw = STANDARD.decode(field(&message, "raw_base64")).unwrap_or_default();
            if let Some(fields) = message.as_object_mut() {
                fields.remove("raw_base64");
                fields.insert("raw".to_owned(), json!(String::from_utf8_lossy(&raw)));
            }
            say(&card(&message))
        }
    }
}
