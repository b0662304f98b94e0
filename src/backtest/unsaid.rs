//! What a play has found and not said yet: digests are composed while it goes on, and lines are said in order of time.

use super::Sink;
use super::line::Line;
use chrono::{DateTime, Utc};
use std::io;

/// What came of so many lines of the input may wait to be said until digests are written.
const COUNT_MAX: usize = 10_000;

/// What is said together.
#[derive(Default)]
pub(super) struct Unsaid {
    /// What is known already.
    pub lines: Vec<Line>,
    /// Lines of the input that it came of.
    pub count: usize,
}

impl Unsaid {
    /// Whether it must be said now, digests or not.
    pub fn is_full(&self) -> bool {
        self.count > COUNT_MAX
    }

    /// Says what is known in order of time, up to where digests are still to come.
    pub fn say(&mut self, sink: &mut dyn Sink, until: Option<DateTime<Utc>>) -> io::Result<()> {
        self.count = 0;
        self.lines.sort_by_key(|line| line.at);
        let end = self.lines.partition_point(|line| until.is_none_or(|until| line.at < until));
        self.lines.drain(..end).try_for_each(|line| sink.line(&line))
    }
}
