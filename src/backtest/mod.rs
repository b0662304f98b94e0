//! Runs the service over recorded events in virtual time: the same intake, the same tick, a store in memory, and a clock that jumps to
//! each instant at which something can be due. What would have been sent is printed instead. No rule of the field lives here, and no
//! clock is read: the same input gives the same lines, to the byte.
//!
//! ```text
//!   lines by arrival ──► up to the next instant ──► Intake::commit ──► Ticker::tick ──► what both put in the outbox, as lines
//!                              ▲                                            │
//!                              └──── the next slot, opening, reminder … ────┘
//! ```

pub mod against;
mod agenda;
mod book;
mod gather;
mod heard;
mod hidden;
pub mod input;
pub mod line;
pub mod report;
mod unsaid;

use crate::app::tick::{Passed, Reached, Ticked, Ticker, Watermark};
use crate::event::{Event, EventType};
use crate::incident::IncidentId;
use crate::ingest::Reader;
use crate::ingest::commit::{Intake, Item, Keeping, Progress};
use crate::live::{Keys, Live};
use crate::route::{Decision, Paging};
use crate::store::{Store, StoreError};
use agenda::Agenda;
use chrono::{DateTime, Utc};
use gather::Gather;
use heard::{Heard, named_row, symptom_line};
use hidden::{suppress_line, unreadable_line};
use input::{Inflow, Input, Read};
use line::Line;
use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use unsaid::Unsaid;

/// Messages of one transaction at most, as in the service.
const BATCH_MAX: usize = 1000;

/// Keys of a backtest: fixed, so that redacted values and links come out the same each time. Nothing that it prints is secret by them.
pub const KEYS: Keys = Keys { redaction: [0; 32], links: [0; 32] };

/// Why a backtest ended early.
#[derive(Debug, thiserror::Error)]
pub enum BacktestError {
    /// The events can't be read.
    #[error("{}: {source}", path.display())]
    Events {
        /// The file.
        path: PathBuf,
        /// Why not.
        source: io::Error,
    },
    /// There are more lines than can be counted, or a line is longer than 4 GiB.
    #[error("{}: too many lines, or too long a line", .0.display())]
    TooLarge(PathBuf),
    /// What was found can't be written.
    #[error(transparent)]
    Output(#[from] io::Error),
    /// The store in memory refuses.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// The time that a backtest plays.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Span {
    /// Windows begin here, cut to the minute.
    pub from: DateTime<Utc>,
    /// The last instant that is looked at; what arrives at it is not read any more.
    pub to: DateTime<Utc>,
}

/// What became of one event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It opened or joined an incident that pages.
    Paged,
    /// Digests tell it.
    Told,
    /// A silence hid it.
    Silenced,
    /// No route sends it anywhere.
    Unrouted,
}

/// Takes what a backtest finds, in order of time.
pub trait Sink {
    /// Something happened.
    ///
    /// # Errors
    /// When it can't be written.
    fn line(&mut self, line: &Line) -> io::Result<()>;
    /// An event that was new. `number` is its line in the file, from 1.
    fn event(&mut self, number: u32, verdict: Verdict);
    /// How far the play has come.
    fn progress(&mut self, at: DateTime<Utc>, read_count: usize);
}

/// Everything that is read is committed before the tick that asks.
pub(crate) struct AllRead;

impl Watermark for AllRead {
    async fn refresh(&mut self) {}

    fn passed(&mut self, _: DateTime<Utc>, _: DateTime<Utc>) -> Option<Passed> {
        Some(Passed { incomplete: None })
    }

    async fn reached(&mut self, now: DateTime<Utc>) -> Option<Reached> {
        Some(Reached { at: now, was_away: false })
    }

    fn keep_only(&mut self, _: &BTreeSet<DateTime<Utc>>) {}
}

/// Plays `input` from `span.from` to `span.to`.
///
/// # Errors
/// When the events can't be read, or what was found can't be written.
pub async fn play(live: &Arc<Live>, input: &Input, span: Span, sink: &mut dyn Sink) -> Result<(), BacktestError> {
    play_by(Agenda::new(&live.policy.silences), live, input, span, sink).await
}

async fn play_by(
    agenda: Agenda,
    live: &Arc<Live>,
    input: &Input,
    span: Span,
    sink: &mut dyn Sink,
) -> Result<(), BacktestError> {
    let store = Store::open_to_play().await?;
    let mut ticker = Ticker::played(live, span.from);
    let mut play = Play {
        live,
        intake: Intake::new(store.clone(), Keeping::Consequences),
        agenda,
        sink,
        heard: Heard::new(ticker.symptoms()),
        ticker,
        read_count: 0,
        has_paged: false,
        gather: Gather::new(store.clone()),
        unsaid: Unsaid::default(),
        store,
    };
    let reader: Arc<Reader> = live.reader.clone();
    let played = play.run(input.flow(reader, span), span).await;
    if played.is_err() {
        // What is known until then is said nevertheless.
        play.unsaid.say(play.sink, None)?;
    }
    played
}

struct Play<'a> {
    live: &'a Arc<Live>,
    store: Store,
    intake: Intake,
    ticker: Ticker,
    agenda: Agenda,
    heard: Heard,
    sink: &'a mut dyn Sink,
    read_count: usize,
    /// Whether events opened or joined incidents since they were last looked at.
    has_paged: bool,
    gather: Gather,
    unsaid: Unsaid,
}

/// Why a batch ends.
struct Cut {
    /// What arrives from here on is another batch's.
    at: DateTime<Utc>,
    /// More arrives before: the batch is only full.
    is_full: bool,
}

impl Play<'_> {
    async fn run(&mut self, mut inflow: Inflow, span: Span) -> Result<(), BacktestError> {
        let mut next_at = self.tick(span.from, Vec::new()).await?;
        let mut now = span.from;
        while now < span.to {
            let due_at = [next_at, self.agenda.next_after(now)].into_iter().flatten().min().unwrap_or(span.to);
            let mut cut = Cut { at: due_at.min(span.to), is_full: true };
            let mut lines = Vec::new();
            while cut.is_full {
                let batch = self.fill(&mut inflow, &mut cut).await?;
                lines.extend(self.commit(batch).await?);
            }
            now = cut.at;
            next_at = self.tick(now, lines).await?;
            self.sink.progress(now, self.read_count);
        }
        self.finish_all().await?;
        Ok(self.unsaid.say(self.sink, None)?)
    }

    /// Writes the digests of earlier ticks that can't wait: they were composed while the events after them were committed, which they are
    /// not about.
    async fn finish_due(&mut self, now: DateTime<Utc>) -> Result<(), BacktestError> {
        let mut ticked = Ticked::default();
        self.ticker.finish_due(&self.store, now, &mut ticked).await;
        self.take_messages(ticked).await
    }

    /// The same for all digests.
    async fn finish_all(&mut self) -> Result<(), BacktestError> {
        let mut ticked = Ticked::default();
        self.ticker.finish(&self.store, &mut ticked).await;
        self.take_messages(ticked).await
    }

    async fn take_messages(&mut self, ticked: Ticked) -> Result<(), BacktestError> {
        fail_on(ticked.failures)?;
        if ticked.has_messages {
            self.unsaid.lines.extend(self.gather.messages(self.live).await?);
        }
        Ok(())
    }

    /// Takes lines up to the cut, and cuts earlier where one asks for a look at once.
    async fn fill(
        &mut self,
        inflow: &mut Inflow,
        cut: &mut Cut,
    ) -> Result<Vec<(Read, Option<Decision>)>, BacktestError> {
        let mut batch = Vec::new();
        while batch.len() < BATCH_MAX {
            let next_at = inflow.next_at().await?.filter(|at| *at < cut.at);
            let changes_at =
                self.heard.look_ahead(self.ticker.symptoms(), self.live, next_at.unwrap_or(cut.at), cut.at);
            if changes_at.is_none() && next_at.is_some() && !batch.is_empty() && inflow.front().is_some_and(names_row) {
                // The letter may have been opened by what is in this batch.
                return Ok(batch);
            }
            let next = next_at.filter(|_| changes_at.is_none()).and_then(|_| inflow.take());
            let Some(read) = next else {
                *cut = Cut { at: changes_at.unwrap_or(cut.at), is_full: false };
                return Ok(batch);
            };
            let decision = match &read.item {
                Item::Event(decoded, _) => {
                    if !self.hear(&decoded.event).await? {
                        // It was read before.
                        self.read_count += 1;
                        continue;
                    }
                    let decision = self.live.policy.decide(&decoded.event, read.arrival_at);
                    let look_at = self.agenda.look_at(&decoded.event, &decision);
                    cut.at = look_at.map_or(cut.at, |at| at.min(cut.at));
                    self.has_paged |= matches!(decision.paging, Paging::Page { .. });
                    Some(decision)
                }
                Item::Unreadable(_) => None,
            };
            batch.push((read, decision));
        }
        Ok(batch)
    }

    /// Takes what an event says of symptoms, unless it was read before: then false. A letter that it names by its number is looked up: what
    /// is committed has one.
    async fn hear(&mut self, event: &Event) -> Result<bool, BacktestError> {
        if !self.heard.take(self.ticker.symptoms(), event) {
            return Ok(false);
        }
        if let Some(id) = named_row(event)
            && let Some((key, workflow)) = self.store.read().await?.played().and_then(|played| played.open_key(id))
        {
            self.heard.resolve(self.ticker.symptoms(), &workflow, &key, event.received_at);
        }
        Ok(true)
    }

    /// Commits a batch as if its newest message had just arrived, and says what came of it.
    async fn commit(&mut self, batch: Vec<(Read, Option<Decision>)>) -> Result<Vec<Line>, BacktestError> {
        let Some((last, _)) = batch.last() else { return Ok(Vec::new()) };
        let (now, sequence) = (last.arrival_at, i64::from(last.number));
        self.read_count += batch.len();
        let progress = Progress {
            stream: input::SOURCE.to_owned(),
            stream_made_at: DateTime::UNIX_EPOCH,
            sequence,
            arrival_at: now,
            lag: 0,
        };
        let (notes, items): (Vec<_>, Vec<_>) =
            batch.into_iter().map(|(read, decision)| ((read.number, decision), read.item)).unzip();
        let (policy, pager) = (&self.live.policy, &*self.live.announcer);
        let committed = self.intake.commit(&items, &progress, policy, pager, now).await?;
        let mut lines = Vec::new();
        for ((number, decision), item) in notes.iter().zip(&items) {
            match (item, decision) {
                (Item::Unreadable(row), _) => lines.push(unreadable_line(*number, row)),
                (Item::Event(decoded, _), Some(decision)) => {
                    self.sink.event(*number, self.verdict(decision));
                    lines.extend(suppress_line(&decoded.event, decision, self.is_told(decision)));
                }
                (Item::Event(..), None) => {}
            }
        }
        if committed.events.iter().any(|event| touches_letters(event)) {
            lines.extend(self.gather.letters().await?);
        }
        if committed.has_messages {
            lines.extend(self.gather.messages(self.live).await?);
        }
        self.unsaid.count += items.len();
        Ok(lines)
    }

    async fn tick(&mut self, now: DateTime<Utc>, lines: Vec<Line>) -> Result<Option<DateTime<Utc>>, BacktestError> {
        let is_full = self.unsaid.is_full();
        let is_time_to_say = is_full || !self.ticker.rests(self.live, now);
        if is_full {
            self.finish_all().await?;
        } else if is_time_to_say {
            self.finish_due(now).await?;
        }
        let ticked = self.ticker.begin(&self.store, self.live, &mut AllRead, now).await;
        // A look sees what came before its instant, so it comes before what arrived at it.
        self.unsaid.lines.extend(ticked.symptoms.iter().filter_map(symptom_line));
        self.unsaid.lines.extend(lines);
        self.unsaid.lines.extend(self.gather.holds(&ticked.holds, now));
        let (open, next_at) = (ticked.open.clone(), ticked.next_at);
        self.take_messages(ticked).await?;
        if is_time_to_say {
            self.unsaid.say(self.sink, self.ticker.composing_since())?;
        }
        // Only a page makes a new key; one whose incident has ended leads nowhere.
        let keys = if self.has_paged { Some(self.open_keys().await?) } else { None };
        self.has_paged = false;
        self.agenda.note_incidents(&open, keys);
        Ok(next_at)
    }

    async fn open_keys(&self) -> Result<BTreeMap<String, IncidentId>, BacktestError> {
        let reader = self.store.read().await?;
        Ok(reader.played().map(|played| played.incidents.keys().clone()).unwrap_or_default())
    }

    fn is_told(&self, decision: &Decision) -> bool {
        !self.live.policy.resolved(&decision.matched).digests.is_empty()
    }

    fn verdict(&self, decision: &Decision) -> Verdict {
        match &decision.paging {
            Paging::Page { .. } => Verdict::Paged,
            Paging::Suppress(_) if decision.silence_id.is_some() => Verdict::Silenced,
            Paging::Suppress(_) if self.is_told(decision) => Verdict::Told,
            Paging::Suppress(_) => Verdict::Unrouted,
        }
    }
}

/// Whether a line asks to resolve a dead letter by its number.
fn names_row(read: &Read) -> bool {
    match &read.item {
        Item::Event(decoded, _) => named_row(&decoded.event).is_some(),
        Item::Unreadable(_) => false,
    }
}

fn fail_on(failures: Vec<(&'static str, StoreError)>) -> Result<(), BacktestError> {
    failures.into_iter().next().map_or(Ok(()), |(_, error)| Err(error.into()))
}

/// Whether an event can have opened or resolved a dead letter.
fn touches_letters(event: &Event) -> bool {
    match event.event_type {
        EventType::Failure => event.is_final_failure(),
        EventType::Recovery | EventType::Resolution => true,
        EventType::Outcome | EventType::Heartbeat | EventType::Breaker => false,
    }
}

#[cfg(test)]
mod changes;
#[cfg(test)]
mod tests;
#[cfg(test)]
mod vectors;
#[cfg(test)]
mod windows;
