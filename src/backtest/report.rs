//! A backtest for people to read: what was told each day, and the sums. Pure but for the writer that it is handed.

use super::line::{Line, LineKind};
use super::{Sink, Verdict};
use crate::render::words;
use chrono::{DateTime, NaiveDate, Utc};
use chrono_tz::Tz;
use std::collections::BTreeMap;
use std::io::{self, Write};

/// Lines of a day that are written out; the others are counted.
const LINES_MAX: usize = 40;
/// Characters of a sentence.
const SENTENCE_MAX: usize = 90;

/// Writes lines as they come, one JSON object each.
pub struct Ndjson<W> {
    out: W,
}

impl<W: Write> Ndjson<W> {
    /// Writes to `out`.
    pub fn new(out: W) -> Self {
        Self { out }
    }

    /// Writes what is still on its way.
    ///
    /// # Errors
    /// When it can't be written.
    pub fn finish(mut self) -> io::Result<()> {
        self.out.flush()
    }
}

impl<W: Write> Sink for Ndjson<W> {
    fn line(&mut self, line: &Line) -> io::Result<()> {
        serde_json::to_writer(&mut self.out, line)?;
        self.out.write_all(b"\n")
    }

    fn event(&mut self, _: u32, _: Verdict) {}

    fn progress(&mut self, _: DateTime<Utc>, _: usize) {}
}

/// Writes a page of text, day by day.
pub struct Report<W> {
    out: W,
    zone: Tz,
    day: Option<NaiveDate>,
    day_lines: usize,
    day_counts: BTreeMap<LineKind, u64>,
    counts: BTreeMap<LineKind, u64>,
    event_counts: BTreeMap<&'static str, u64>,
}

impl<W: Write> Report<W> {
    /// Writes to `out`, with times as in `zone`.
    pub fn new(out: W, zone: Tz) -> Self {
        let (day_counts, counts, event_counts) = Default::default();
        Self { out, zone, day: None, day_lines: 0, day_counts, counts, event_counts }
    }

    /// Ends the last day and writes the sums.
    ///
    /// # Errors
    /// When it can't be written.
    pub fn finish(mut self) -> io::Result<()> {
        self.end_day()?;
        let events = self.event_counts.values().sum();
        writeln!(self.out, "In all {}", words::noun(events, "event"))?;
        for (what, count) in &self.event_counts {
            writeln!(self.out, "  {what:<9} {:>9}", words::count(*count))?;
        }
        writeln!(self.out, "  {}", list(&self.counts))?;
        self.out.flush()
    }

    fn end_day(&mut self) -> io::Result<()> {
        if self.day.is_none() {
            return Ok(());
        }
        if self.day_lines > LINES_MAX {
            let left = self.day_lines - LINES_MAX;
            writeln!(self.out, "  and {} more", words::count(left as u64))?;
        }
        writeln!(self.out, "  {}\n", list(&self.day_counts))?;
        self.day_counts.clear();
        self.day_lines = 0;
        Ok(())
    }

    fn begin_day(&mut self, at: DateTime<Utc>) -> io::Result<()> {
        let day = at.with_timezone(&self.zone).date_naive();
        if self.day == Some(day) {
            return Ok(());
        }
        self.end_day()?;
        self.day = Some(day);
        writeln!(self.out, "{}", words::date_with_year(at, self.zone))
    }
}

impl<W: Write> Sink for Report<W> {
    fn line(&mut self, line: &Line) -> io::Result<()> {
        self.begin_day(line.at)?;
        *self.day_counts.entry(line.kind).or_default() += 1;
        *self.counts.entry(line.kind).or_default() += 1;
        let Some(sentence) = sentence(line) else { return Ok(()) };
        self.day_lines += 1;
        if self.day_lines > LINES_MAX {
            return Ok(());
        }
        // Names are data too: none may break the line or steer the terminal.
        writeln!(self.out, "  {}  {}", words::clock(line.at, self.zone), words::one_line(&sentence))
    }

    fn event(&mut self, _: u32, verdict: Verdict) {
        let what = match verdict {
            Verdict::Paged => "paged",
            Verdict::Told => "in digests",
            Verdict::Silenced => "silenced",
            Verdict::Unrouted => "unrouted",
        };
        *self.event_counts.entry(what).or_default() += 1;
    }

    fn progress(&mut self, _: DateTime<Utc>, _: usize) {}
}

/// What a day has of each kind: "2 pages, 1 digest".
fn list(counts: &BTreeMap<LineKind, u64>) -> String {
    let words: Vec<String> = counts.iter().map(|(kind, count)| words::noun(*count, noun(*kind))).collect();
    if words.is_empty() { "nothing was told".to_owned() } else { words.join(", ") }
}

fn noun(kind: LineKind) -> &'static str {
    match kind {
        LineKind::Page => "page",
        LineKind::Reminder => "reminder",
        LineKind::Escalation => "escalation",
        LineKind::Resolved => "resolution",
        LineKind::Digest => "digest",
        LineKind::Hold => "hold",
        LineKind::Suppress => "suppressed failure",
        LineKind::SymptomFiring => "symptom firing",
        LineKind::SymptomCleared => "cleared symptom",
        LineKind::DeadLetterOpened => "new dead letter",
        LineKind::DeadLetterResolved => "resolved dead letter",
        LineKind::Quarantined => "unreadable message",
    }
}

/// What is worth a line of its own; the others are only counted.
fn sentence(line: &Line) -> Option<String> {
    let receiver = line.receiver.as_deref().unwrap_or("nobody");
    let first = line.text.as_deref().and_then(|t| t.lines().find(|l| !l.trim().is_empty())).unwrap_or_default();
    let said = words::cut(&words::one_line(first), SENTENCE_MAX);
    match line.kind {
        LineKind::Page | LineKind::Reminder | LineKind::Escalation | LineKind::Resolved => {
            Some(format!("{} to {receiver}: {said}", noun(line.kind)))
        }
        LineKind::Digest => {
            let received = line.counts.as_ref().and_then(|c| c.get("received")).and_then(serde_json::Value::as_u64);
            let events = words::noun(received.unwrap_or(0), "event");
            let late = if line.late == Some(true) { ", late" } else { "" };
            Some(format!("{} digest to {receiver}: {events}{late}", line.digest.as_deref().unwrap_or_default()))
        }
        LineKind::Hold => {
            let until = line.due_at.map(super::line::write_instant).unwrap_or_default();
            Some(format!("{} digest to {receiver} is held until {until}", line.digest.as_deref().unwrap_or_default()))
        }
        LineKind::SymptomFiring | LineKind::SymptomCleared => {
            let of = line.workflow.as_deref().map(|workflow| format!(" of {workflow}")).unwrap_or_default();
            Some(format!("{} {}{of}: {said}", noun(line.kind), line.symptom.as_deref().unwrap_or_default()))
        }
        LineKind::Suppress | LineKind::DeadLetterOpened | LineKind::DeadLetterResolved | LineKind::Quarantined => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_symptom_that_workflows_share_is_said_to_be_of_none_of_them() {
        let line = |workflow: Option<&str>| Line {
            workflow: workflow.map(str::to_owned),
            symptom: Some("systemic".to_owned()),
            text: Some("E3 hit 3 workflows.".to_owned()),
            ..Line::new(DateTime::UNIX_EPOCH, LineKind::SymptomFiring)
        };
        assert_eq!(sentence(&line(None)).unwrap(), "symptom firing systemic: E3 hit 3 workflows.");
        assert_eq!(sentence(&line(Some("pay"))).unwrap(), "symptom firing systemic of pay: E3 hit 3 workflows.");
    }
}
