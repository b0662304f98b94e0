//! Two configs over the same events: what the proposed one tells more or less than the current one. Pure.

use super::line::{Line, LineKind};
use super::{Sink, Verdict};
use crate::render::words;
use chrono::{DateTime, Utc};
use serde::Serialize;
use std::collections::BTreeMap;
use std::io;

/// Lines of events that are named.
const LINES_MAX: usize = 10;

/// What one config came to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// Messages by what they are: `page`, `daily digest` …
    messages: BTreeMap<String, u64>,
    /// Lines of the file whose event pages, in order.
    paged: Vec<u32>,
    /// Lines of the file whose event goes nowhere, in order.
    unrouted: Vec<u32>,
}

impl Sink for Tally {
    fn line(&mut self, line: &Line) -> io::Result<()> {
        let what = match line.kind {
            LineKind::Page => "pages".to_owned(),
            LineKind::Reminder => "reminders".to_owned(),
            LineKind::Escalation => "escalations".to_owned(),
            LineKind::Resolved => "resolutions".to_owned(),
            LineKind::Digest => format!("{} digests", line.digest.as_deref().unwrap_or_default()),
            LineKind::SymptomFiring => "symptoms".to_owned(),
            LineKind::Hold
            | LineKind::Suppress
            | LineKind::SymptomCleared
            | LineKind::DeadLetterOpened
            | LineKind::DeadLetterResolved
            | LineKind::Quarantined => return Ok(()),
        };
        *self.messages.entry(what).or_default() += 1;
        Ok(())
    }

    fn event(&mut self, number: u32, verdict: Verdict) {
        match verdict {
            Verdict::Paged => self.paged.push(number),
            Verdict::Unrouted => self.unrouted.push(number),
            Verdict::Told | Verdict::Silenced => {}
        }
    }

    fn progress(&mut self, _: DateTime<Utc>, _: usize) {}
}

/// What changes from the current config to the proposed one.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Difference {
    /// Messages of each kind: how many now, how many then.
    pub messages: BTreeMap<String, (u64, u64)>,
    /// Lines of the file whose event pages now and would not then.
    pub lost_pages: Vec<u32>,
    /// Lines whose event does not page now and would then.
    pub new_pages: Vec<u32>,
    /// Lines whose event goes somewhere now and nowhere then.
    pub now_unrouted: Vec<u32>,
}

impl Difference {
    /// What changes from `current` to `proposed`.
    pub fn between(current: &Tally, proposed: &Tally) -> Self {
        let mut messages: BTreeMap<String, (u64, u64)> = BTreeMap::new();
        for (what, count) in &current.messages {
            messages.entry(what.clone()).or_default().0 = *count;
        }
        for (what, count) in &proposed.messages {
            messages.entry(what.clone()).or_default().1 = *count;
        }
        Self {
            messages,
            lost_pages: without(&current.paged, &proposed.paged),
            new_pages: without(&proposed.paged, &current.paged),
            now_unrouted: without(&proposed.unrouted, &current.unrouted),
        }
    }

    /// Whether an event of a protected workflow pages nobody any more.
    pub fn loses_a_page(&self) -> bool {
        !self.lost_pages.is_empty()
    }

    /// For people: `pages +3 (2, then 5)`.
    pub fn write(&self) -> String {
        let mut text = String::new();
        for (what, (now, then)) in &self.messages {
            let (sign, by) = if then >= now { ("+", then - now) } else { ("-", now - then) };
            text.push_str(&format!(
                "{what} {sign}{} ({}, then {})\n",
                words::count(by),
                words::count(*now),
                words::count(*then)
            ));
        }
        text.push_str(&format!(
            "now unrouted {}{}\n",
            words::count(self.now_unrouted.len() as u64),
            lines(&self.now_unrouted)
        ));
        text.push_str(&format!(
            "events that page now and not then {}{}\n",
            words::count(self.lost_pages.len() as u64),
            lines(&self.lost_pages)
        ));
        text.push_str(&format!(
            "events that page then and not now {}{}\n",
            words::count(self.new_pages.len() as u64),
            lines(&self.new_pages)
        ));
        text
    }
}

fn without(all: &[u32], others: &[u32]) -> Vec<u32> {
    let mut others = others.to_vec();
    others.sort_unstable();
    let mut left: Vec<u32> = all.iter().copied().filter(|n| others.binary_search(n).is_err()).collect();
    left.sort_unstable();
    left
}

/// `: line 3, 4 and 2 more`.
fn lines(numbers: &[u32]) -> String {
    let shown: Vec<String> = numbers.iter().take(LINES_MAX).map(u32::to_string).collect();
    match (shown.is_empty(), numbers.len().saturating_sub(shown.len())) {
        (true, _) => String::new(),
        (false, 0) => format!(": line {}", shown.join(", ")),
        (false, more) => format!(": line {} and {} more", shown.join(", "), words::count(more as u64)),
    }
}
