//! Memory as bytes and back: small numbers take one byte, and a version says how to read them. What is written is
//! remembered facts, never a rule: a changed objective does not touch them.

use super::buckets::Series;
use super::counts::{Counts, Producer};
use super::memory::Memory;
use super::shared::{Call, Hit, Hits, Letter, Said, Shared};
use super::streak::Failed;
use crate::event::{BreakerState, HeartbeatStatus};
use crate::name::WorkflowName;
use std::collections::BTreeSet;

/// The first byte of a workflow's part, and of the part that they share. Parts of the version before are read too.
const VERSION: u8 = 2;
const SHARED_VERSION: u8 = 2;

#[derive(Default)]
struct Writer(Vec<u8>);

impl Writer {
    fn new(version: u8) -> Self {
        Self(vec![version])
    }

    fn number(&mut self, mut n: u64) {
        while n >= 0x80 {
            self.0.push((n & 0x7f) as u8 | 0x80);
            n >>= 7;
        }
        self.0.push((n & 0x7f) as u8);
    }

    fn instant(&mut self, at: i64) {
        self.number(((at << 1) ^ (at >> 63)).cast_unsigned());
    }

    fn length(&mut self, n: usize) {
        self.number(n as u64);
    }

    fn text(&mut self, text: &str) {
        self.length(text.len());
        self.0.extend_from_slice(text.as_bytes());
    }

    fn maybe<T>(&mut self, value: Option<T>, write: impl FnOnce(&mut Self, T)) {
        self.0.push(u8::from(value.is_some()));
        if let Some(value) = value {
            write(self, value);
        }
    }

    fn series(&mut self, series: &Series) {
        self.length(series.iter().count());
        let mut before = 0;
        for (start, size, n) in series.iter() {
            self.instant(before - start);
            self.instant(size);
            self.number(n);
            before = start;
        }
    }

    fn hits(&mut self, hits: &Hits) {
        self.length(hits.by.len());
        for (workflow, hit) in &hits.by {
            self.text(workflow.as_str());
            self.instant(hit.at);
            self.maybe(hit.downstream.as_deref(), Self::text);
        }
        self.instant(hits.latest_at);
    }
}

struct Reader<'a>(&'a [u8], u8);

impl<'a> Reader<'a> {
    fn new(version: u8, bytes: &'a [u8]) -> Option<Self> {
        let (found, rest) = bytes.split_first()?;
        (*found == version || *found + 1 == version).then_some(Self(rest, *found))
    }

    fn byte(&mut self) -> Option<u8> {
        let (byte, rest) = self.0.split_first()?;
        self.0 = rest;
        Some(*byte)
    }

    fn number(&mut self) -> Option<u64> {
        let mut n = 0u64;
        for shift in (0..64).step_by(7) {
            let byte = self.byte()?;
            n |= u64::from(byte & 0x7f) << shift;
            if byte & 0x80 == 0 {
                return Some(n);
            }
        }
        None
    }

    fn instant(&mut self) -> Option<i64> {
        let n = self.number()?;
        Some((n >> 1).cast_signed() ^ -(n & 1).cast_signed())
    }

    fn length(&mut self) -> Option<usize> {
        // Every element takes a byte at least.
        usize::try_from(self.number()?).ok().filter(|n| *n <= self.0.len())
    }

    fn text(&mut self) -> Option<String> {
        let length = self.length()?;
        let (text, rest) = self.0.split_at_checked(length)?;
        self.0 = rest;
        String::from_utf8(text.to_vec()).ok()
    }

    fn maybe<T>(&mut self, read: impl FnOnce(&mut Self) -> Option<T>) -> Option<Option<T>> {
        match self.byte()? {
            0 => Some(None),
            _ => Some(Some(read(self)?)),
        }
    }

    fn series(&mut self) -> Option<Series> {
        let mut series = Series::default();
        let mut start = 0i64;
        for _ in 0..self.length()? {
            start = start.checked_sub(self.instant()?)?;
            let (size, n) = (self.instant()?, self.number()?);
            series.restore(start, size, n);
        }
        Some(series)
    }

    fn hits(&mut self) -> Option<Hits> {
        let mut hits = Hits::default();
        for _ in 0..self.length()? {
            let workflow = WorkflowName::new(self.text()?);
            let hit = Hit { at: self.instant()?, downstream: self.maybe(Self::text)? };
            hits.by.insert(workflow, hit);
        }
        hits.latest_at = self.instant()?;
        Some(hits)
    }
}

fn heartbeat_place(status: HeartbeatStatus) -> u64 {
    HeartbeatStatus::ALL.iter().position(|other| *other == status).unwrap_or(0) as u64
}

fn breaker_place(state: BreakerState) -> u64 {
    BreakerState::ALL.iter().position(|other| *other == state).unwrap_or(0) as u64
}

fn at_place<T: Copy>(all: &[T], place: u64) -> Option<T> {
    all.get(usize::try_from(place).ok()?).copied()
}

/// One workflow's memory.
pub(super) fn write_memory(memory: &Memory) -> Vec<u8> {
    let mut out = Writer::new(VERSION);
    for at in [memory.first_heard_at, memory.heard_at, memory.first_run_at, memory.row.good_at] {
        out.maybe(at, Writer::instant);
    }
    let counts = &memory.counts;
    for series in [&counts.good, &counts.bad, &counts.failed, &counts.retries] {
        out.series(series);
    }
    out.instant(counts.newest_at);
    out.number(counts.too_old_count);
    out.length(counts.runs.len());
    for run in &counts.runs {
        out.0.extend_from_slice(&run.to_le_bytes());
    }
    out.length(counts.producers.known.len());
    for producer in &counts.producers.known {
        out.number(producer.id);
        out.number(producer.epoch);
        out.instant(producer.at);
        out.number(producer.ok_total);
        out.number(producer.failed_total);
    }
    out.maybe(counts.producers.forgotten_until, Writer::instant);
    write_reports(&mut out, memory);
    out.0
}

fn write_reports(out: &mut Writer, memory: &Memory) {
    out.maybe(memory.reports.first_at, Writer::instant);
    out.maybe(memory.reports.last_at, Writer::instant);
    out.length(memory.reports.intervals.len());
    for interval in &memory.reports.intervals {
        out.number(u64::from(*interval));
    }
    out.length(memory.reports.gaps.len());
    for (from, to) in &memory.reports.gaps {
        out.instant(*from);
        out.instant(*to);
    }
    out.length(memory.row.failures.len());
    for failed in &memory.row.failures {
        out.instant(failed.at);
        out.number(failed.events);
        out.number(failed.reported);
    }
    out.maybe(memory.health.last, |out, (status, at)| {
        out.number(heartbeat_place(status));
        out.instant(at);
    });
    out.maybe(memory.health.unwell_since, Writer::instant);
    out.maybe(memory.reports.lateness.seen_at, Writer::instant);
    memory.reports.lateness.ages.iter().for_each(|age| out.instant(*age));
    out.length(memory.row.intervals.len());
    memory.row.intervals.iter().for_each(|interval| out.number(u64::from(*interval)));
}

/// One workflow's memory; none when the bytes are not of this version, or damaged.
pub(super) fn read_memory(bytes: &[u8]) -> Option<Memory> {
    let mut read = Reader::new(VERSION, bytes)?;
    let mut memory = Memory {
        first_heard_at: read.maybe(Reader::instant)?,
        heard_at: read.maybe(Reader::instant)?,
        first_run_at: read.maybe(Reader::instant)?,
        ..Memory::default()
    };
    memory.row.good_at = read.maybe(Reader::instant)?;
    memory.counts = read_counts(&mut read)?;
    read_reports(&mut read, &mut memory)?;
    memory.counts.age(memory.counts.newest_at);
    read.0.is_empty().then_some(memory)
}

fn read_counts(read: &mut Reader<'_>) -> Option<Counts> {
    let mut counts = Counts {
        good: read.series()?,
        bad: read.series()?,
        failed: read.series()?,
        retries: read.series()?,
        // What is damaged may not push all that comes out of reach.
        newest_at: read.instant().filter(|at| (0..=i64::from(u32::MAX)).contains(at))?,
        too_old_count: read.number()?,
        ..Counts::default()
    };
    for _ in 0..read.length()? {
        let (run, rest) = read.0.split_first_chunk::<8>()?;
        read.0 = rest;
        counts.runs.push_back(u64::from_le_bytes(*run));
    }
    for _ in 0..read.length()? {
        counts.producers.known.push(Producer {
            id: read.number()?,
            epoch: read.number()?,
            at: read.instant()?,
            ok_total: read.number()?,
            failed_total: read.number()?,
        });
    }
    counts.producers.forgotten_until = read.maybe(Reader::instant)?;
    Some(counts)
}

fn read_reports(read: &mut Reader<'_>, memory: &mut Memory) -> Option<()> {
    memory.reports.first_at = read.maybe(Reader::instant)?;
    memory.reports.last_at = read.maybe(Reader::instant)?;
    for _ in 0..read.length()? {
        memory.reports.intervals.push_back(u32::try_from(read.number()?).ok()?);
    }
    for _ in 0..read.length()? {
        memory.reports.gaps.push_back((read.instant()?, read.instant()?));
    }
    for _ in 0..read.length()? {
        let failed = Failed { at: read.instant()?, events: read.number()?, reported: read.number()? };
        memory.row.failures.push_back(failed);
    }
    memory.health.last = read.maybe(|read| {
        let status = at_place(HeartbeatStatus::ALL, read.number()?)?;
        Some((status, read.instant()?))
    })?;
    memory.health.unwell_since = read.maybe(Reader::instant)?;
    // The version before did not keep it.
    if read.1 == VERSION {
        memory.reports.lateness.seen_at = read.maybe(Reader::instant)?;
        for age in &mut memory.reports.lateness.ages {
            *age = read.instant()?;
        }
        for _ in 0..read.length()? {
            memory.row.intervals.push_back(u32::try_from(read.number()?).ok()?);
        }
    }
    Some(())
}

/// What workflows share.
pub(super) fn write_shared(shared: &Shared) -> Vec<u8> {
    let mut out = Writer::new(SHARED_VERSION);
    out.length(shared.letters.len());
    for letter in &shared.letters {
        out.instant(letter.at);
        out.number(letter.key);
        out.text(letter.workflow.as_str());
    }
    out.length(shared.downstreams.len());
    for (name, downstream) in &shared.downstreams {
        out.text(name);
        out.hits(&downstream.hits);
        out.length(downstream.calls.len());
        for call in &downstream.calls {
            out.instant(call.at);
            out.number(u64::from(call.is_good));
            out.text(call.workflow.as_str());
        }
        out.maybe(downstream.said.as_ref(), |out, said| {
            out.number(breaker_place(said.state));
            out.instant(said.at);
            out.instant(said.since);
            out.length(said.by.len());
            said.by.iter().for_each(|workflow| out.text(workflow.as_str()));
        });
    }
    out.length(shared.errors.len());
    for (name, hits) in &shared.errors {
        out.text(name);
        out.hits(hits);
    }
    out.0
}

fn read_said(read: &mut Reader<'_>) -> Option<Said> {
    let state = at_place(BreakerState::ALL, read.number()?)?;
    let at = read.instant()?;
    // The version before kept the last word alone.
    if read.1 != SHARED_VERSION {
        return Some(Said { state, at, since: at, by: BTreeSet::new() });
    }
    let since = read.instant()?;
    let by = (0..read.length()?).map(|_| read.text().map(WorkflowName::new)).collect::<Option<_>>()?;
    Some(Said { state, at, since, by })
}

/// What workflows share; none when the bytes are not of this version, or damaged.
pub(super) fn read_shared(bytes: &[u8]) -> Option<Shared> {
    let mut read = Reader::new(SHARED_VERSION, bytes)?;
    let mut shared = Shared::default();
    for _ in 0..read.length()? {
        let letter = Letter { at: read.instant()?, key: read.number()?, workflow: WorkflowName::new(read.text()?) };
        shared.letters.push_back(letter);
    }
    for _ in 0..read.length()? {
        let name = read.text()?;
        let downstream = shared.downstreams.entry(name).or_default();
        downstream.hits = read.hits()?;
        for _ in 0..read.length()? {
            let (at, is_good) = (read.instant()?, read.number()? != 0);
            downstream.calls.push_back(Call { at, is_good, workflow: WorkflowName::new(read.text()?) });
        }
        downstream.said = read.maybe(read_said)?;
    }
    for _ in 0..read.length()? {
        let name = read.text()?;
        shared.errors.insert(name, read.hits()?);
    }
    read.0.is_empty().then_some(shared)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_workflow_of_the_version_before_is_read_without_what_that_did_not_keep() {
        let mut memory = Memory { heard_at: Some(7), ..Memory::default() };
        let mut bytes = write_memory(&memory);
        // No look before, three ages of 0, and no intervals.
        bytes.truncate(bytes.len() - 5);
        bytes[0] = VERSION - 1;
        assert_eq!(read_memory(&bytes).unwrap().heard_at, Some(7));
        memory.reports.lateness.seen_at = Some(5);
        memory.reports.lateness.ages = [600, 610, 620];
        assert_eq!(read_memory(&write_memory(&memory)).unwrap().reports, memory.reports);
    }

    #[test]
    fn what_the_version_before_knew_of_a_breaker_is_its_last_word() {
        let mut out = Writer::new(SHARED_VERSION - 1);
        out.length(0);
        out.length(1);
        out.text("hubspot");
        out.hits(&Hits::default());
        out.length(0);
        out.maybe(Some(()), |out, ()| {
            out.number(breaker_place(BreakerState::Open));
            out.instant(1_000);
        });
        out.length(0);
        let said = read_shared(&out.0).unwrap().downstreams["hubspot"].said.clone();
        assert_eq!(said, Some(Said { state: BreakerState::Open, at: 1_000, since: 1_000, by: BTreeSet::new() }));
    }
}
