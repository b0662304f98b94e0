//! The tables `digest_cover`, `digests` and `outbox` of a store that is played into. What was taken from them is gone.

use crate::outbox::{EntryId, NewEntry};
use crate::store::ledger::{Cover, Covers, DigestRow};
use crate::store::to_the_ms;
use chrono::{DateTime, Utc};
use std::collections::BTreeMap;

/// How far digests are told, what was composed, and the messages that wait.
#[derive(Debug)]
pub struct Ledger {
    covers: Covers,
    /// Composed windows that nobody has taken yet.
    digests: BTreeMap<i64, DigestRow>,
    digest_count: i64,
    /// Messages that nobody has taken yet.
    messages: Vec<NewEntry>,
    message_count: i64,
    next_number: i64,
}

impl Default for Ledger {
    fn default() -> Self {
        Self {
            covers: Covers::new(),
            digests: BTreeMap::new(),
            digest_count: 0,
            messages: Vec::new(),
            message_count: 0,
            next_number: 1,
        }
    }
}

impl Ledger {
    /// How far each target is told.
    pub fn covers(&self) -> &Covers {
        &self.covers
    }

    /// Starts the first window of a target.
    pub fn begin_cover(&mut self, target: (String, String), cover: &Cover) {
        self.covers.entry(target).or_insert_with(|| Cover { until: to_the_ms(cover.until), ..cover.clone() });
    }

    /// Moves the cover of a target. False when it was not at `from`.
    pub fn advance_cover(&mut self, target: &(String, String), from: DateTime<Utc>, to: DateTime<Utc>) -> bool {
        let is_there = |cover: &&mut Cover| cover.until == to_the_ms(from);
        let Some(cover) = self.covers.get_mut(target).filter(is_there) else { return false };
        cover.until = to_the_ms(to);
        true
    }

    /// Keeps a composed window, and gives its row.
    pub fn insert_digest(&mut self, row: &DigestRow) -> i64 {
        self.digest_count += 1;
        let row = DigestRow {
            id: self.digest_count,
            window_start: to_the_ms(row.window_start),
            window_end: to_the_ms(row.window_end),
            due_at: to_the_ms(row.due_at),
            composed_at: to_the_ms(row.composed_at),
            ..row.clone()
        };
        self.digests.insert(self.digest_count, row);
        self.digest_count
    }

    /// Takes the composed windows, by row.
    pub fn take_digests(&mut self) -> BTreeMap<i64, DigestRow> {
        std::mem::take(&mut self.digests)
    }

    /// Puts a message in the outbox.
    pub fn enqueue(&mut self, new: &NewEntry) -> EntryId {
        let (due_at, created_at) = (to_the_ms(new.due_at), to_the_ms(new.created_at));
        self.messages.push(NewEntry { due_at, created_at, ..new.clone() });
        self.message_count += 1;
        EntryId(self.message_count)
    }

    /// Takes all messages, in the order in which they were decided: they count as sent.
    pub fn take_messages(&mut self) -> Vec<NewEntry> {
        std::mem::take(&mut self.messages)
    }

    /// Takes `count` notification numbers; gives the first of them.
    pub fn next_numbers(&mut self, count: i64) -> i64 {
        let first = self.next_number;
        self.next_number += count;
        first
    }
}
