//! What a rendered message is made of, by channel, as it is stored in the outbox and handed to `deliver`.

use base64::Engine as _;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// A message that is ready to be sent. Stored as JSON; the same view and templates give the same bytes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Content {
    /// Block Kit.
    Slack(SlackMessage),
    /// multipart/alternative.
    Email(MailContent),
    /// The view as JSON, for webhooks and NATS.
    Json(Value),
    /// Plain text.
    Text(String),
}

/// A Slack message within Slack's limits, every string escaped.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SlackMessage {
    /// Shown in notifications, and alone when blocks are refused.
    pub text: String,
    /// Blocks as Slack takes them; at most 50.
    pub blocks: Vec<Value>,
}

/// A mail, apart from sender, recipients and date.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct MailContent {
    /// One line, at most 120 characters.
    pub subject: String,
    /// The text part.
    pub text: String,
    /// The HTML part.
    pub html: String,
    /// Left part and domain of the Message-ID, without brackets; the same for every try.
    pub message_id: String,
    /// Message-IDs of the thread, oldest first, without brackets.
    pub references: Vec<String>,
    /// List-Id without brackets, such as `daily.matins.example.com`.
    pub list_id: String,
    /// Pictures shown by `cid:`.
    pub images: Vec<InlineImage>,
}

/// A PNG in a mail.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct InlineImage {
    /// Content-ID without brackets.
    pub cid: String,
    /// The PNG in base64.
    pub png_base64: String,
}

impl InlineImage {
    /// Keeps the bytes of a PNG.
    pub fn new(cid: impl Into<String>, png: &[u8]) -> Self {
        Self { cid: cid.into(), png_base64: base64::engine::general_purpose::STANDARD.encode(png) }
    }

    /// The bytes of the PNG.
    ///
    /// # Errors
    /// When what was stored is not base64.
    pub fn png(&self) -> Result<Vec<u8>, base64::DecodeError> {
        base64::engine::general_purpose::STANDARD.decode(&self.png_base64)
    }
}
