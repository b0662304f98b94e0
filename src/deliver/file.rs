//! Receivers that are a folder: one file a message. A repeat writes the same file again.

use super::email;
use super::webhook::idempotency_key;
use crate::outbox::{Entry, Outcome};
use crate::render::Content;
use std::io;
use std::path::Path;
use tokio::io::AsyncWriteExt as _;

/// Writes the message beside its place and moves it there, so that nobody reads half of one.
pub async fn send(dir: &Path, entry: &Entry) -> Outcome {
    let (bytes, ending) = match &entry.new.content {
        Content::Text(text) => (text.clone().into_bytes(), "txt"),
        Content::Json(view) => (format!("{view:#}\n").into_bytes(), "json"),
        Content::Slack(message) => (format!("{:#}\n", super::slack::body(message, None)).into_bytes(), "json"),
        Content::Email(mail) => match email::eml(mail, FROM, &[TO.to_owned()], entry.new.created_at) {
            Ok(bytes) => (bytes, "eml"),
            Err(e) => return Outcome::Permanent { why: e.to_string(), broken: false },
        },
    };
    let at = entry.new.created_at.format("%Y%m%dT%H%M%SZ");
    let name = format!("{at}-{}-{}.{ending}", entry.new.kind.as_str(), idempotency_key(entry));
    match write(dir, &name, &bytes).await {
        Ok(()) => Outcome::Delivered,
        Err(e) => Outcome::Retry { after: None, why: format!("{}: {e}", dir.display()) },
    }
}

/// A mail that lands in a folder has no mailbox of its own.
const FROM: &str = "Matins <matins@localhost>";
const TO: &str = "file@localhost";

async fn write(dir: &Path, name: &str, bytes: &[u8]) -> io::Result<()> {
    tokio::fs::create_dir_all(dir).await?;
    let temporary = dir.join(format!(".{name}.part"));
    let mut file = tokio::fs::File::create(&temporary).await?;
    file.write_all(bytes).await?;
    file.sync_all().await?;
    tokio::fs::rename(&temporary, dir.join(name)).await
}
