//! `matins digest`: what one would say now, what was told, and telling it again.

use super::Failure;
use super::args::Digest;
use super::client::{self, Client};
use super::list::{Listing, say};
use super::table::{age, field};
use chrono::{DateTime, Utc};
use serde_json::{Value, json};
use std::io::{self, Write as _};

const LISTING: Listing<'_> = Listing {
    name: "digests",
    nothing: "No digest was told yet.",
    heads: &["ID", "DIGEST", "RECEIVER", "FROM", "TO", "STATE", "LATE", "RECEIVED", "COMPOSED"],
    row,
};

fn row(digest: &Value, now: DateTime<Utc>) -> Vec<String> {
    let text = |name| field(digest, name);
    let late = if digest["late"] == json!(true) { "late" } else { "" };
    vec![
        text("id"),
        text("digest"),
        text("receiver"),
        minute(digest, "window_start"),
        minute(digest, "window_end"),
        text("state"),
        late.to_owned(),
        field(&digest["counts"], "received"),
        age(digest, "composed_at", now),
    ]
}

/// An instant to the minute, in UTC.
fn minute(digest: &Value, name: &str) -> String {
    let at = digest[name].as_str().and_then(|text| text.parse::<DateTime<Utc>>().ok());
    at.map(|at| at.format("%Y-%m-%d %H:%MZ").to_string()).unwrap_or_default()
}

pub(super) async fn run(client: &Client, command: Digest) -> Result<(), Failure> {
    match command {
        Digest::List(args) => LISTING.list(client, &args, &[]).await,
        Digest::Show(args) => LISTING.show(client, &args).await,
        Digest::Preview { name, receiver, end, format } => {
            let mut query = vec![("name", name), ("receiver", receiver), ("format", format.as_str().to_owned())];
            query.extend(end.map(|end| ("end", end.to_rfc3339())));
            let bytes = client.bytes("/api/v1/digests/preview", &query).await?;
            let mut out = io::stdout().lock();
            out.write_all(&bytes)?;
            if !bytes.ends_with(b"\n") {
                out.write_all(b"\n")?;
            }
            Ok(out.flush()?)
        }
        Digest::Resend { id } => {
            client.post(&client::path("digests", &id, "/resend"), &json!({})).await?;
            say(&format!("Digest {id} is sent again.\n"))
        }
    }
}
