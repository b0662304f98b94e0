//! Makes lines of what intake and ticks left in the store: messages of the outbox, which count as sent at once, and dead letters.

use super::line::{Line, LineKind};
use crate::app::tick::Held;
use crate::deliver::Channel;
use crate::digest_job;
use crate::live::Live;
use crate::outbox::{Entry, EntryId, MessageKind, NewEntry, queue};
use crate::render::{Content, MailFrame};
use crate::store::ledger::DigestRow;
use crate::store::letters::Letter;
use crate::store::{Store, StoreError, ledger, letters};
use chrono::{DateTime, TimeDelta, Utc};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};

/// Messages that are taken from the outbox at once.
const MESSAGES_MAX: u32 = 200;
/// How often what was printed is forgotten.
const KEEP_PRINTED: TimeDelta = TimeDelta::hours(6);

/// What was seen so far, so that each thing is said once.
#[derive(Debug)]
pub(super) struct Gather {
    store: Store,
    /// The last message that was printed.
    printed: EntryId,
    letters_seen: i64,
    /// Letters that were resolved at the last instant which was looked at.
    resolved_at: Option<DateTime<Utc>>,
    resolved: BTreeSet<i64>,
    /// The first slot of the hold that was last said, by (digest, receiver).
    holds: BTreeMap<digest_job::Target, DateTime<Utc>>,
    /// When digests that were printed are forgotten again.
    forget_at: DateTime<Utc>,
}

impl Gather {
    pub fn new(store: Store) -> Self {
        Self {
            store,
            printed: EntryId(0),
            letters_seen: 0,
            resolved_at: None,
            resolved: BTreeSet::new(),
            holds: BTreeMap::new(),
            forget_at: DateTime::UNIX_EPOCH,
        }
    }

    /// Messages that were put in the outbox. They count as sent, and are forgotten.
    pub async fn messages(&mut self, live: &Live, now: DateTime<Utc>) -> Result<Vec<Line>, StoreError> {
        let mut lines = Vec::new();
        loop {
            let mut reader = self.store.read().await?;
            let entries = queue::pending(&mut *reader, self.printed, MESSAGES_MAX).await?;
            let Some(last) = entries.last() else { break };
            self.printed = last.id;
            let ids: Vec<i64> = entries.iter().filter_map(|e| e.new.digest_id).collect();
            let mut digests = ledger::heads(&mut reader, &ids).await?;
            drop(reader);
            for Entry { new, .. } in &entries {
                lines.extend(message(live, new, new.digest_id.and_then(|id| digests.remove(&id))));
            }
            if entries.len() < MESSAGES_MAX as usize {
                break;
            }
        }
        if now >= self.forget_at {
            self.forget(now).await?;
        }
        Ok(lines)
    }

    async fn forget(&mut self, now: DateTime<Utc>) -> Result<(), StoreError> {
        self.forget_at = now + KEEP_PRINTED;
        let mut tx = self.store.begin().await?;
        queue::forget(&mut tx, self.printed).await?;
        // Rows are numbered anew once none is left.
        self.printed = EntryId(0);
        ledger::forget_before(&mut tx, now).await?;
        tx.commit().await?;
        Ok(())
    }

    /// Dead letters that were opened since the last look, and those that were resolved in `[from, to]`.
    pub async fn letters(&mut self, from: DateTime<Utc>, to: DateTime<Utc>) -> Result<Vec<Line>, StoreError> {
        let since = self.resolved_at.map_or(from, |seen| seen.min(from));
        let mut conn = self.store.read().await?;
        let changed = letters::changed(&mut conn, self.letters_seen, since, to).await?;
        drop(conn);
        let mut lines = Vec::new();
        for letter in changed.iter().filter(|l| l.id > self.letters_seen) {
            lines.push(letter_line(letter, LineKind::DeadLetterOpened, letter.dead_lettered_at));
        }
        self.letters_seen = changed.last().map_or(self.letters_seen, |l| l.id.max(self.letters_seen));
        let is_within = |l: &&Letter| l.resolved_at.is_some_and(|at| since <= at && at <= to);
        let mut resolved: Vec<&Letter> = changed.iter().filter(is_within).collect();
        resolved.sort_by_key(|l| (l.resolved_at, l.id));
        for letter in resolved.iter().filter(|l| !self.resolved.contains(&l.id)) {
            let at = letter.resolved_at.unwrap_or(to);
            lines.push(letter_line(letter, LineKind::DeadLetterResolved, at));
        }
        self.resolved = resolved.iter().filter(|l| l.resolved_at == Some(to)).map(|l| l.id).collect();
        self.resolved_at = Some(to);
        Ok(lines)
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

fn letter_line(letter: &Letter, kind: LineKind, at: DateTime<Utc>) -> Line {
    let is_resolved = kind == LineKind::DeadLetterResolved;
    let text = if is_resolved { &letter.resolution_note } else { &letter.error_message };
    Line {
        workflow: Some(letter.workflow.clone()),
        incident: letter.incident_id.map(|id| id.to_string()),
        item: letter.item.clone(),
        reason: Some(letter.class.clone()),
        text: text.clone(),
        ..Line::new(at, kind)
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
