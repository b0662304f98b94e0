//! Reads the events of a file in order of arrival, without keeping them: the first pass notes where each line is and when it arrived,
//! the second reads and decodes them ahead of the play. What the events mean is decided elsewhere.

use super::{BacktestError, Span};
use crate::event::TimeMark;
use crate::ingest::commit::{Item, Redelivered};
use crate::ingest::decode::read_instant;
use crate::ingest::{DecodeOutcome, Inbound, Reader};
use crate::store::intake::QuarantineRow;
use chrono::{DateTime, Utc};
use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;
use std::collections::VecDeque;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Read as _, Seek as _, SeekFrom};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tokio::sync::mpsc;

/// What stands for stream and subject: the events come from a file.
pub const SOURCE: &str = "file";
/// Lines that are handed over at once, and such portions that may be read ahead.
const PORTION: usize = 256;
const AHEAD: usize = 4;

/// A line of the file.
#[derive(Clone, Copy, Debug)]
struct Place {
    arrival_ms: i64,
    offset: u64,
    length: u32,
    number: u32,
}

/// A file of events, looked through.
#[derive(Clone, Debug)]
pub struct Input {
    path: PathBuf,
    /// By arrival; lines that arrived at once are in the order of the file.
    places: Arc<[Place]>,
}

/// A line, read and decoded.
#[derive(Debug)]
pub struct Read {
    /// Its number in the file, from 1.
    pub number: u32,
    /// When it arrived.
    pub arrival_at: DateTime<Utc>,
    /// What it is.
    pub item: Item,
}

impl Input {
    /// Looks through a file: one event of any accepted shape a line; empty lines are left out.
    ///
    /// # Errors
    /// When it can't be read.
    pub fn open(path: &Path, reader: &Reader) -> Result<Self, BacktestError> {
        let io = |source| BacktestError::Events { path: path.to_owned(), source };
        let mut file = BufReader::with_capacity(1 << 16, File::open(path).map_err(io)?);
        let (mut places, mut line, mut offset, mut number) = (Vec::new(), Vec::new(), 0_u64, 0_u32);
        loop {
            line.clear();
            let length = file.read_until(b'\n', &mut line).map_err(io)?;
            if length == 0 {
                break;
            }
            let too_large = || BacktestError::TooLarge(path.to_owned());
            number = number.checked_add(1).ok_or_else(too_large)?;
            let text = line.trim_ascii();
            if !text.is_empty() {
                let arrival = arrival_of(text, reader);
                places.push((arrival, offset, u32::try_from(length).map_err(|_| too_large())?, number));
            }
            offset += length as u64;
        }
        let mut places = with_arrivals(places);
        places.sort_by_key(|p| p.arrival_ms);
        Ok(Self { path: path.to_owned(), places: places.into() })
    }

    /// Arrival of the first and of the last event; none when there is no line.
    pub fn arrivals(&self) -> Option<(DateTime<Utc>, DateTime<Utc>)> {
        let at = |p: &Place| DateTime::from_timestamp_millis(p.arrival_ms).unwrap_or_default();
        Some((at(self.places.first()?), at(self.places.last()?)))
    }

    /// How many lines arrive within `span`.
    pub fn count_within(&self, span: Span) -> usize {
        self.range(span).len()
    }

    fn range(&self, span: Span) -> std::ops::Range<usize> {
        let before = |at: DateTime<Utc>| self.places.partition_point(|p| p.arrival_ms < at.timestamp_millis());
        before(span.from)..before(span.to)
    }

    /// Starts to read what arrives within `span`.
    pub fn flow(&self, reader: Arc<Reader>, span: Span) -> Inflow {
        let (portions, inbox) = mpsc::channel(AHEAD);
        let (path, places, range) = (self.path.clone(), self.places.clone(), self.range(span));
        tokio::task::spawn_blocking(move || {
            let places = places.get(range).unwrap_or_default();
            let read = || -> io::Result<()> {
                let mut file = BufReader::with_capacity(1 << 16, File::open(&path)?);
                let mut offset = 0;
                for portion in places.chunks(PORTION) {
                    let read = portion.iter().map(|p| read_place(&mut file, &mut offset, *p, &reader));
                    let sent = portions.blocking_send(Ok(read.collect::<io::Result<VecDeque<_>>>()?));
                    if sent.is_err() {
                        break;
                    }
                }
                Ok(())
            };
            if let Err(source) = read() {
                // Whoever asked may have gone away.
                let _ = portions.blocking_send(Err(BacktestError::Events { path: path.clone(), source }));
            }
        });
        Inflow { inbox, ready: VecDeque::new() }
    }
}

/// Lines in order of arrival, read ahead.
#[derive(Debug)]
pub struct Inflow {
    inbox: mpsc::Receiver<Result<VecDeque<Read>, BacktestError>>,
    ready: VecDeque<Read>,
}

impl Inflow {
    /// When the next line arrives; none when there is no other.
    ///
    /// # Errors
    /// When the file can't be read.
    pub async fn next_at(&mut self) -> Result<Option<DateTime<Utc>>, BacktestError> {
        if self.ready.is_empty() {
            match self.inbox.recv().await {
                Some(portion) => self.ready = portion?,
                None => return Ok(None),
            }
        }
        Ok(self.ready.front().map(|read| read.arrival_at))
    }

    /// The line that `next_at` spoke of.
    pub fn take(&mut self) -> Option<Read> {
        self.ready.pop_front()
    }
}

/// A line without a time of its own arrived with the line before; at the start of the file with the first that has one.
fn with_arrivals(lines: Vec<(Option<DateTime<Utc>>, u64, u32, u32)>) -> Vec<Place> {
    let first = lines.iter().find_map(|(arrival, ..)| *arrival).unwrap_or_default();
    let mut before = first;
    let place = |(arrival, offset, length, number): (Option<DateTime<Utc>>, u64, u32, u32)| {
        before = arrival.unwrap_or(before);
        Place { arrival_ms: before.timestamp_millis(), offset, length, number }
    };
    lines.into_iter().map(place).collect()
}

fn read_place(file: &mut BufReader<File>, offset: &mut u64, place: Place, reader: &Reader) -> io::Result<Read> {
    if *offset != place.offset {
        file.seek(SeekFrom::Start(place.offset))?;
    }
    let mut line = vec![0; place.length as usize];
    file.read_exact(&mut line)?;
    *offset = place.offset + u64::from(place.length);
    let arrival_at = DateTime::from_timestamp_millis(place.arrival_ms).unwrap_or_default();
    Ok(Read { number: place.number, arrival_at, item: decode(line.trim_ascii(), place.number, arrival_at, reader) })
}

/// The event of a line; to it `received_at` is a field that nobody knows. The body is not kept: nothing that a backtest prints is made
/// from it.
fn decode(line: &[u8], number: u32, received_at: DateTime<Utc>, reader: &Reader) -> Item {
    match reader.read(inbound(line, number, received_at)) {
        DecodeOutcome::Event(mut decoded) => {
            decoded.body = String::new();
            Item::Event(decoded, Redelivered::No)
        }
        DecodeOutcome::Quarantine { reason } => Item::Unreadable(QuarantineRow {
            stream: SOURCE.to_owned(),
            sequence: i64::from(number),
            subject: SOURCE.to_owned(),
            headers: "[]".to_owned(),
            reason: reason.as_str(),
            explanation: reason.to_string(),
            received_at,
            raw: Vec::new(),
        }),
    }
}

fn inbound(payload: &[u8], number: u32, received_at: DateTime<Utc>) -> Inbound<'_> {
    let sequence = u64::from(number);
    Inbound { subject: SOURCE, headers: &[], payload, stream: SOURCE, sequence, received_at }
}

/// What tells when a line arrived.
#[derive(Debug, Default, Deserialize)]
struct Peek<'a> {
    #[serde(borrow, default)]
    received_at: Option<&'a RawValue>,
    #[serde(borrow, default)]
    occurred_at: Option<&'a RawValue>,
    #[serde(borrow, default)]
    specversion: Option<&'a RawValue>,
}

/// `received_at` beside the event, else when it happened.
fn arrival_of(line: &[u8], reader: &Reader) -> Option<DateTime<Utc>> {
    let line = line.strip_prefix(b"\xef\xbb\xbf").unwrap_or(line);
    let peek: Peek<'_> = serde_json::from_slice(line)
        .or_else(|_| serde_json::from_slice::<[Peek<'_>; 1]>(line).map(|[only]| only))
        .unwrap_or_default();
    let given = peek.received_at.and_then(instant);
    let happened = || peek.occurred_at.filter(|_| peek.specversion.is_none()).and_then(instant);
    given.or_else(happened).or_else(|| read_whole(line, reader))
}

fn instant(raw: &RawValue) -> Option<DateTime<Utc>> {
    let value: Value = serde_json::from_str(raw.get()).ok()?;
    known(read_instant(Some(&value), DateTime::<Utc>::MAX_UTC - chrono::TimeDelta::days(1)))
}

/// Other shapes keep the time elsewhere.
fn read_whole(line: &[u8], reader: &Reader) -> Option<DateTime<Utc>> {
    let far = DateTime::<Utc>::MAX_UTC - chrono::TimeDelta::days(1);
    match reader.read(inbound(line, 0, far)) {
        DecodeOutcome::Event(decoded) => known((decoded.event.occurred_at, decoded.event.time_mark)),
        DecodeOutcome::Quarantine { .. } => None,
    }
}

fn known((at, mark): (DateTime<Utc>, TimeMark)) -> Option<DateTime<Utc>> {
    match mark {
        TimeMark::Given | TimeMark::AssumedUtc => Some(at),
        TimeMark::Missing | TimeMark::Unreadable(_) | TimeMark::Future(_) => None,
    }
}
