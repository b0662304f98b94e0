//! Makes lines of what intake and ticks left in the store: messages of the outbox, which count as sent at once, and dead letters.

use super::line::{Line, LineKind};
use crate::app::tick::Held;
use crate::deliver::Channel;
use crate::digest_job;
use crate::live::Live;
use crate::outbox::{MessageKind, NewEntry};
use crate::render::{Content, MailFrame};
use crate::store::ledger::DigestRow;
use crate::store::played::{LetterNews, LetterStep, Played};
use crate::store::{Store, StoreError};
use chrono::{DateTime, Utc};
use serde_json::Value;
use std::collections::BTreeMap;

/// What was seen so far, so that each thing is said once.
#[derive(Debug)]
pub(super) struct Gather {
    store: Store,
    /// The first slot of the hold that was last said, by (digest, receiver).
    holds: BTreeMap<digest_job::Target, DateTime<Utc>>,
}

impl Gather {
    pub fn new(store: Store) -> Self {
        Self { store, holds: BTreeMap::new() }
    }

    /// Messages that were put in the outbox. They count as sent.
    pub async fn messages(&mut self, live: &Live) -> Result<Vec<Line>, StoreError> {
        let mut tx = self.store.begin().await?;
        let Some(Played { ledger, .. }) = tx.played() else { return Ok(Vec::new()) };
        let (messages, mut digests) = (ledger.take_messages(), ledger.take_digests());
        let line = |new: &NewEntry| message(live, new, new.digest_id.and_then(|id| digests.remove(&id)));
        Ok(messages.iter().filter_map(line).collect())
    }

    /// Dead letters that were opened or resolved since the last time.
    pub async fn letters(&mut self) -> Result<Vec<Line>, StoreError> {
        let mut tx = self.store.begin().await?;
        let news = tx.played().map(Played::take_letter_news).unwrap_or_default();
        Ok(news.into_iter().map(letter_line).collect())
    }

    /// A line for each hold that was not said yet.
    pub fn holds(&mut self, held: &[Held], now: DateTime<Utc>) -> Vec<Line> {
        let mut lines = Vec::new();
        for hold in held {
            if self.holds.insert(hold.target.clone(), hold.slot) == Some(hold.slot) {
                continue;
            }
            lines.push(Line {
                receiver: Some(hold.target.key()),
                digest: Some(hold.target.digest.to_string()),
                due_at: Some(hold.until),
                reason: Some("closed_hours".to_owned()),
                ..Line::new(now, LineKind::Hold)
            });
        }
        lines
    }
}

fn message(live: &Live, new: &NewEntry, digest: Option<DigestRow>) -> Option<Line> {
    let kind = match new.kind {
        MessageKind::Page => LineKind::Page,
        MessageKind::Reminder => LineKind::Reminder,
        MessageKind::Escalation => LineKind::Escalation,
        MessageKind::Resolved => LineKind::Resolved,
        MessageKind::Digest => LineKind::Digest,
        MessageKind::Operator | MessageKind::Test => return None,
    };
    let view = |key: &str| new.view.get(key).filter(|v| !v.is_null());
    let line = Line {
        receiver: Some(digest_job::receiver_key(new.receiver.as_str(), new.address.as_deref())),
        workflow: new.workflow.as_ref().map(ToString::to_string),
        incident: new.incident_id.map(|id| id.to_string()),
        reason: view("reason").and_then(Value::as_str).map(str::to_owned),
        counts: view("counts").cloned(),
        subject: match &new.content {
            Content::Email(mail) => Some(mail.subject.clone()),
            Content::Slack(_) | Content::Json(_) | Content::Text(_) => None,
        },
        text: Some(text(live, new)),
        ..Line::new(new.created_at, kind)
    };
    let Some(row) = digest else { return Some(line) };
    Some(Line {
        digest: Some(row.digest),
        receiver: Some(row.receiver),
        window_start: Some(row.window_start),
        window_end: Some(row.window_end),
        due_at: Some(row.due_at),
        late: Some(row.late),
        reason: row.incomplete,
        counts: serde_json::from_str(&row.counts).ok(),
        ..line
    })
}

fn letter_line(letter: LetterNews) -> Line {
    let kind = match letter.step {
        LetterStep::Opened => LineKind::DeadLetterOpened,
        LetterStep::Resolved => LineKind::DeadLetterResolved,
    };
    Line {
        workflow: Some(letter.workflow.to_string()),
        incident: letter.incident_id.map(|id| id.to_string()),
        item: letter.item,
        reason: Some(letter.class.as_str().to_owned()),
        text: letter.text,
        ..Line::new(letter.at, kind)
    }
}

/// What a message says, as plain text.
fn text(live: &Live, new: &NewEntry) -> String {
    let frame =
        || MailFrame { message_id: String::new(), references: Vec::new(), list_id: String::new(), images: Vec::new() };
    match &new.content {
        Content::Email(mail) => mail.text.clone(),
        Content::Text(text) => text.clone(),
        Content::Slack(_) | Content::Json(_) => {
            match live.renderer.render(&new.template, Channel::Text, &new.view, &frame()).content {
                Content::Text(text) => text,
                Content::Email(_) | Content::Slack(_) | Content::Json(_) => String::new(),
            }
        }
    }
}
