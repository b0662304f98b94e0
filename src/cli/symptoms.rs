//! `matins symptoms`: those that fire, with their sentences.

use super::Failure;
use super::args::Symptoms;
use super::client::Client;
use super::list::Listing;
use super::table::{age, field};
use chrono::{DateTime, Utc};
use serde_json::Value;

const LISTING: Listing<'_> = Listing {
    name: "symptoms",
    nothing: "No symptom fires.",
    heads: &["SYMPTOM", "WORKFLOW", "TIER", "SINCE", "TOLD", "SENTENCE"],
    row,
};

fn row(symptom: &Value, now: DateTime<Utc>) -> Vec<String> {
    let text = |name| field(symptom, name);
    let incident = text("incident");
    vec![
        text("symptom"),
        text("workflows"),
        text("tier"),
        age(symptom, "since", now),
        if incident.is_empty() { text("reason") } else { format!("incident {incident}") },
        text("text"),
    ]
}

pub(super) async fn run(client: &Client, command: Symptoms) -> Result<(), Failure> {
    match command {
        Symptoms::List(args) => LISTING.list(client, &args, &[]).await,
    }
}
