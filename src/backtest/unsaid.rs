//! What a play has found and not said yet. It is said once digests are written: asking the store after each batch would take longer than
//! all the rest.

use super::Sink;
use super::gather::Gather;
use super::line::Line;
use crate::live::Live;
use crate::store::StoreError;
use chrono::{DateTime, Utc};
use std::io;

/// What came of so many lines of the input may wait to be said until digests are written.
const COUNT_MAX: usize = 10_000;

/// What is said together.
pub(super) struct Unsaid {
    pub gather: Gather,
    /// What is known already.
    pub lines: Vec<Line>,
    /// Lines of the input that it came of.
    pub count: usize,
    /// Whether messages were put in the outbox.
    pub has_messages: bool,
    /// When the first and the last batch began and ended that may have opened or resolved dead letters.
    letters: Option<(DateTime<Utc>, DateTime<Utc>)>,
}

impl Unsaid {
    pub fn new(gather: Gather) -> Self {
        Self { gather, lines: Vec::new(), count: 0, has_messages: false, letters: None }
    }

    /// Whether it must be said now, digests or not.
    pub fn is_full(&self) -> bool {
        self.count > COUNT_MAX
    }

    /// A batch from `from` to `to` may have opened or resolved dead letters.
    pub fn note_letters(&mut self, from: DateTime<Utc>, to: DateTime<Utc>) {
        let first_at = self.letters.map_or(from, |(first_at, _)| first_at);
        self.letters = Some((first_at, to));
    }

    /// Takes the dead letters that were opened or resolved since the last time.
    pub async fn gather_letters(&mut self) -> Result<(), StoreError> {
        if let Some((from, to)) = self.letters.take() {
            self.lines.extend(self.gather.letters(from, to).await?);
        }
        Ok(())
    }

    /// Gives all messages since the last time, which count as sent.
    pub async fn messages(&mut self, live: &Live, now: DateTime<Utc>) -> Result<Vec<Line>, StoreError> {
        let has_messages = std::mem::take(&mut self.has_messages);
        if has_messages { self.gather.messages(live, now).await } else { Ok(Vec::new()) }
    }

    /// Says what is known in order of time, up to where digests are still to come.
    pub fn say(&mut self, sink: &mut dyn Sink, until: Option<DateTime<Utc>>) -> io::Result<()> {
        self.count = 0;
        self.lines.sort_by_key(|line| line.at);
        let end = self.lines.partition_point(|line| until.is_none_or(|until| line.at < until));
        self.lines.drain(..end).try_for_each(|line| sink.line(&line))
    }
}
