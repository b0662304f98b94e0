//! Reads the events of a file, or of a store, in order of arrival, without keeping them: the first pass notes where each is and when it
//! arrived, the second reads and decodes them ahead of the play. What the events mean is decided elsewhere.

use super::{BacktestError, Span};
use crate::event::TimeMark;
use crate::ingest::commit::{Item, Redelivered};
use crate::ingest::decode::read_instant;
use crate::ingest::{DecodeOutcome, Inbound, Reader};
use crate::store::intake::QuarantineRow;
use crate::store::stored_event::{self, Recorded};
use chrono::{DateTime, Utc};
use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;
use sqlx::SqlitePool;
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

/// A line of the file, or a row of the store.
#[derive(Clone, Copy, Debug)]
struct Place {
    arrival_ms: i64,
    /// Where the line begins; of a row, which it is.
    offset: u64,
    length: u32,
    number: u32,
}

/// Where the events are.
#[derive(Clone, Debug)]
enum Origin {
    File(PathBuf),
    Store(SqlitePool),
}

/// Events, looked through.
#[derive(Clone, Debug)]
pub struct Input {
    origin: Origin,
    /// By arrival; what arrived at once is in the order of the file.
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
        Ok(Self { origin: Origin::File(path.to_owned()), places: places.into() })
    }

    /// Looks through the events of a store that arrived from `from` on and before `to`. Its unreadable messages are left out.
    ///
    /// # Errors
    /// When it can't be read.
    pub async fn of_store(store: SqlitePool, from: DateTime<Utc>, to: DateTime<Utc>) -> Result<Self, BacktestError> {
        let rows = stored_event::arrivals(&store, from, to).await?;
        let place = |(number, (row, arrival_ms)): (u32, (i64, i64))| Place {
            arrival_ms,
            offset: row.unsigned_abs(),
            length: 0,
            number,
        };
        Ok(Self { origin: Origin::Store(store), places: (1..).zip(rows).map(place).collect() })
    }

    /// Arrival of the first and of the last event; none when there is no line.
    pub fn arrivals(&self) -> Option<(DateTime<Utc>, DateTime<Utc>)> {
        let at = |p: &Place| DateTime::from_timestamp_millis(p.arrival_ms).unwrap_or_default();
        Some((at(self.places.first()?), at(self.places.last()?)))
    }

    /// How many lines there are.
    pub fn count(&self) -> usize {
        self.places.len()
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
        let (places, range) = (self.places.clone(), self.range(span));
        match self.origin.clone() {
            Origin::File(path) => {
                tokio::task::spawn_blocking(move || {
                    let read = read_file(&path, places.get(range).unwrap_or_default(), &reader, &portions);
                    if let Err(source) = read {
                        // Whoever asked may have gone away.
                        let _ = portions.blocking_send(Err(BacktestError::Events { path, source }));
                    }
                });
            }
            Origin::Store(store) => {
                tokio::spawn(async move {
                    for portion in places.get(range).unwrap_or_default().chunks(PORTION) {
                        let read = read_rows(&store, portion, &reader).await;
                        let failed = read.is_err();
                        if portions.send(read).await.is_err() || failed {
                            break;
                        }
                    }
                });
            }
        }
        Inflow { inbox, ready: VecDeque::new() }
    }
}

type Portion = Result<VecDeque<Read>, BacktestError>;

fn read_file(path: &Path, places: &[Place], reader: &Reader, portions: &mpsc::Sender<Portion>) -> io::Result<()> {
    let mut file = BufReader::with_capacity(1 << 16, File::open(path)?);
    let mut offset = 0;
    for portion in places.chunks(PORTION) {
        let read = portion.iter().map(|p| read_place(&mut file, &mut offset, *p, reader));
        if portions.blocking_send(Ok(read.collect::<io::Result<_>>()?)).is_err() {
            break;
        }
    }
    Ok(())
}

async fn read_rows(store: &SqlitePool, places: &[Place], reader: &Arc<Reader>) -> Portion {
    let rows: Vec<i64> = places.iter().map(|p| p.offset.cast_signed()).collect();
    let mut recorded = stored_event::recorded(store, &rows).await?;
    let read = places.iter().zip(&rows).filter_map(|(place, row)| {
        let Recorded { workflow, body } = recorded.remove(row)?;
        let arrival_at = DateTime::from_timestamp_millis(place.arrival_ms).unwrap_or_default();
        // A body that does not name its workflow had it from its subject.
        let subject = format!("{SOURCE}.{workflow}");
        let item = decode(&Inbound { subject: &subject, ..inbound(body.as_bytes(), place.number, arrival_at) }, reader);
        Some(Read { number: place.number, arrival_at, item })
    });
    Ok(read.collect())
}

/// Lines in order of arrival, read ahead.
#[derive(Debug)]
pub struct Inflow {
    inbox: mpsc::Receiver<Portion>,
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

    /// The line that `next_at` spoke of, left where it is.
    pub fn front(&self) -> Option<&Read> {
        self.ready.front()
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
    let inbound = inbound(line.trim_ascii(), place.number, arrival_at);
    Ok(Read { number: place.number, arrival_at, item: decode(&inbound, reader) })
}

/// The event of a line; to it `received_at` is a field that nobody knows. The body is not kept: nothing that a backtest prints is made
/// from it.
fn decode(inbound: &Inbound<'_>, reader: &Reader) -> Item {
    match reader.read(*inbound) {
        DecodeOutcome::Event(mut decoded) => {
            decoded.body = String::new();
            Item::Event(decoded, Redelivered::No)
        }
        DecodeOutcome::Quarantine { reason } => Item::Unreadable(QuarantineRow {
            stream: SOURCE.to_owned(),
            sequence: inbound.sequence.cast_signed(),
            subject: SOURCE.to_owned(),
            headers: "[]".to_owned(),
            reason: reason.as_str(),
            explanation: reason.to_string(),
            received_at: inbound.received_at,
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
