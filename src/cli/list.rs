//! What every list and every single thing has in common: `--json`, a table, a card.

use super::Failure;
use super::args::{ListArgs, ShowArgs};
use super::client::{self, Client};
use super::table::{card, table};
use crate::clock;
use chrono::{DateTime, Utc};
use serde_json::Value;
use std::io::{self, Write as _};

/// A list as a table shows it.
pub(super) struct Listing<'a> {
    /// Name in the API: `dead-letters`.
    pub(super) name: &'a str,
    /// What to say when there is nothing: "No dead letters."
    pub(super) nothing: &'a str,
    /// Heads of the columns.
    pub(super) heads: &'a [&'a str],
    /// Cells of a row.
    pub(super) row: fn(&Value, DateTime<Utc>) -> Vec<String>,
}

impl Listing<'_> {
    /// Shows the list.
    pub(super) async fn list(
        &self,
        client: &Client,
        args: &ListArgs,
        filter: &[(&str, String)],
    ) -> Result<(), Failure> {
        let path = format!("/api/v1/{}", self.name);
        if args.json {
            let (items, _) = client.items(&path, filter, usize::MAX).await?;
            return say(&format!("{:#}\n", Value::Array(items)));
        }
        let max = usize::try_from(args.limit).unwrap_or(usize::MAX);
        let (items, more) = client.items(&path, filter, max).await?;
        if items.is_empty() {
            return say(&format!("{}\n", self.nothing));
        }
        let now = clock::now();
        let rows: Vec<Vec<String>> = items.iter().map(|item| (self.row)(item, now)).collect();
        let rest = if more { "… and more; use --limit or --json\n" } else { "" };
        say(&format!("{}{rest}", table(self.heads, &rows)))
    }

    /// Shows one of it.
    pub(super) async fn show(&self, client: &Client, args: &ShowArgs) -> Result<(), Failure> {
        let thing = client.get(&client::path(self.name, &args.id, "")).await?;
        say(&if args.json { format!("{thing:#}\n") } else { card(&thing) })
    }
}

/// Writes to stdout; a reader that went away is no reason to panic.
pub(super) fn say(text: &str) -> Result<(), Failure> {
    let mut out = io::stdout().lock();
    out.write_all(text.as_bytes())?;
    out.flush()?;
    Ok(())
}
