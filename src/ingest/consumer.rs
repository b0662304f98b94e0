//! The intake loop: read from JetStream, decode, commit, then ack. It rebuilds what it reads from whenever that is lost, and says
//! whether it works. One task reads and decodes while another commits; while one batch commits, the next grows.

use super::Reader;
use super::commit::{Committed, Intake, Item, Progress};
use super::health::{Health, Part};
use super::jetstream::{self, AskOutcome, Source};
use super::message::decode_one;
use super::pulse::{HEARTBEAT, MissDecision, Pulse};
use super::unacked::{self, Limits};
use crate::clock;
use crate::config::NatsSettings;
use crate::ingest::page::Pager;
use crate::route::Policy;
use crate::store::{Store, stats};
use async_nats::Client;
use async_nats::connection::State;
use async_nats::jetstream::Message;
use async_nats::jetstream::consumer::pull::{MessagesErrorKind, Stream};
use chrono::DateTime;
use futures_util::StreamExt as _;
use futures_util::future::{Fuse, FusedFuture as _, FutureExt as _};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;
use tracing::{error, warn};

/// Messages of one transaction at most.
const BATCH_MAX: usize = 1000;
/// Payload of one transaction, more or less: a batch does not grow beyond it.
const BATCH_BYTES_MAX: usize = 16 << 20;
/// Messages that the server may send ahead.
const AHEAD_MAX: usize = 1000;
const PULL_EXPIRES: Duration = Duration::from_secs(20);
/// First and longest wait before what was lost is built again.
const BACK_OFF: (Duration, Duration) = (Duration::from_millis(100), Duration::from_secs(5));
/// How often the state of the connection is looked at.
const LOOK_EVERY: Duration = Duration::from_millis(500);

const DISCONNECTED: &str = "the connection to NATS is lost";
const SILENT: &str = "NATS is silent: its heartbeats are missing";

/// What decisions are made with; handed out anew for each batch, so that a reload takes effect between batches.
#[derive(Clone)]
pub struct Rules {
    /// Decodes, redacts and classifies.
    pub reader: Arc<Reader>,
    /// Routes and silences.
    pub policy: Arc<Policy>,
    /// Words pages.
    pub pager: Arc<dyn Pager>,
}

/// Told of every committed batch: logs, metrics, and the waking of delivery.
pub trait Listener: Send + Sync {
    /// A batch was committed; its acks follow.
    fn committed(&self, batch: &Committed<'_>, progress: &Progress);
    /// The rules of now.
    fn rules(&self) -> Rules;
}

/// The intake of one process.
pub struct Consumer {
    /// Connection.
    pub client: Client,
    /// Stream and consumer.
    pub settings: NatsSettings,
    /// Told of what was committed.
    pub listener: Arc<dyn Listener>,
    /// Where it is shown whether it works.
    pub health: Health,
}

/// A batch on its way to be committed.
struct Batch {
    items: Vec<Item>,
    messages: Vec<Message>,
    progress: Progress,
    rules: Rules,
}

/// What is read: which life of the stream, and up to where it was read before.
struct Reading {
    source: Source,
    messages: Stream,
    read_until: i64,
}

/// Why reading ended.
#[derive(Debug)]
enum Ended {
    /// The process stops.
    Stopped,
    /// Something was lost; it is built again.
    Lost(String),
}

impl Consumer {
    /// Runs until `stop`; what was read is committed and acked first.
    pub async fn run(self, intake: Intake, stop: CancellationToken) {
        let consumer = Arc::new(self);
        let (batches, inbox) = mpsc::channel(1);
        let (lost, mut lost_acks) = mpsc::channel(1);
        let store = intake.store().clone();
        let committer = tokio::spawn(commit_all(consumer.clone(), intake, inbox, lost, stop.clone()));
        let mut wait = BACK_OFF.0;
        loop {
            let began_at = clock::instant();
            // What was said of acks before concerns what is built anew now.
            while lost_acks.try_recv().is_ok() {}
            match consumer.read_until_lost(&store, &batches, &mut lost_acks, &stop).await {
                Ended::Stopped => break,
                Ended::Lost(why) => consumer.health.fails(Part::Reading, &why),
            }
            if clock::instant() - began_at > BACK_OFF.1 * 2 {
                wait = BACK_OFF.0;
            }
            tokio::select! {
                () = tokio::time::sleep(wait) => {}
                () = stop.cancelled() => break,
            }
            wait = (wait * 2).min(BACK_OFF.1);
        }
        drop(batches);
        if let Err(error) = committer.await {
            error!(%error, "the committing task ended badly");
        }
    }

    /// The server is asked whether it is there.
    fn doubt(&self, pulse: &mut Pulse, why: &str) {
        self.health.fails(Part::Reading, why);
        pulse.asked();
    }

    async fn read_until_lost(
        &self,
        store: &Store,
        batches: &mpsc::Sender<Batch>,
        lost_acks: &mut mpsc::Receiver<String>,
        stop: &CancellationToken,
    ) -> Ended {
        let mut reading = match self.opened(store, batches, stop).await {
            Ok(opened) => opened,
            Err(ended) => return ended,
        };
        let mut batch = Vec::with_capacity(BATCH_MAX);
        let mut bytes = 0;
        let mut pulse = Pulse::default();
        let mut look = tokio::time::interval(LOOK_EVERY);
        let asked = Fuse::terminated();
        tokio::pin!(asked);
        loop {
            tokio::select! {
                biased;
                () = stop.cancelled() => {
                    drain(&mut reading.messages, &mut batch);
                    if !batch.is_empty() {
                        let _ = batches.send(self.decode(batch, &reading)).await;
                    }
                    return Ended::Stopped;
                }
                Some(why) = lost_acks.recv(), if asked.is_terminated() => {
                    self.doubt(&mut pulse, &why);
                    asked.set(jetstream::ask(reading.source.consumer.clone()).fuse());
                }
                outcome = &mut asked => match outcome {
                    AskOutcome::There => {
                        pulse.answered(clock::instant());
                        self.health.works(Part::Reading);
                    }
                    AskOutcome::Silent => asked.set(jetstream::ask(reading.source.consumer.clone()).fuse()),
                    AskOutcome::Gone(why) => return Ended::Lost(why),
                },
                permit = batches.reserve(), if !batch.is_empty() => match permit {
                    Ok(permit) => {
                        bytes = 0;
                        permit.send(self.decode(std::mem::take(&mut batch), &reading));
                    }
                    Err(_) => return Ended::Stopped,
                },
                next = reading.messages.next(), if batch.len() < BATCH_MAX && bytes < BATCH_BYTES_MAX => match next {
                    Some(Ok(message)) => {
                        if pulse.beat() {
                            asked.set(Fuse::terminated());
                            self.health.works(Part::Reading);
                        }
                        bytes += message.payload.len();
                        batch.push(message);
                    }
                    Some(Err(error)) if error.kind() == MessagesErrorKind::MissingHeartbeat => {
                        match pulse.miss(clock::instant()) {
                            MissDecision::Wait => {}
                            MissDecision::Ask => {
                                self.doubt(&mut pulse, SILENT);
                                asked.set(jetstream::ask(reading.source.consumer.clone()).fuse());
                            }
                            MissDecision::Lost => return Ended::Lost(SILENT.to_owned()),
                        }
                    }
                    Some(Err(error)) => return Ended::Lost(error.to_string()),
                    None => return Ended::Lost("the consumer was deleted".to_owned()),
                },
                _ = look.tick() => if self.client.connection_state() != State::Connected {
                    return Ended::Lost(DISCONNECTED.to_owned());
                },
            }
        }
    }

    /// Opens what is read, and has committed what was delivered before.
    async fn opened(
        &self,
        store: &Store,
        batches: &mpsc::Sender<Batch>,
        stop: &CancellationToken,
    ) -> Result<Reading, Ended> {
        if self.client.connection_state() != State::Connected {
            return Err(Ended::Lost(format!("waiting for NATS at {}", jetstream::hosts(&self.settings.urls))));
        }
        let reading = tokio::select! {
            opened = self.open(store) => opened.map_err(Ended::Lost)?,
            () = stop.cancelled() => return Err(Ended::Stopped),
        };
        self.health.works(Part::Reading);
        tokio::select! {
            biased;
            () = stop.cancelled() => Err(Ended::Stopped),
            () = self.disconnected() => Err(Ended::Lost(DISCONNECTED.to_owned())),
            () = self.read_unacked(&reading, batches) => Ok(reading),
        }
    }

    async fn open(&self, store: &Store) -> Result<Reading, String> {
        let source = jetstream::open(&self.client, &self.settings).await.map_err(|e| e.to_string())?;
        let messages = source
            .consumer
            .stream()
            .max_messages_per_batch(AHEAD_MAX)
            .expires(PULL_EXPIRES)
            .heartbeat(HEARTBEAT)
            .messages()
            .await
            .map_err(|e| e.to_string())?;
        let read_until = stats::reached(store.reader(), &self.settings.stream, source.stream_made_at).await;
        Ok(Reading { source, messages, read_until: read_until.map_err(|e| e.to_string())? })
    }

    /// Ends when the connection is lost.
    async fn disconnected(&self) {
        let mut look = tokio::time::interval(LOOK_EVERY);
        while self.client.connection_state() == State::Connected {
            look.tick().await;
        }
    }

    /// Has what was delivered and is neither acked nor committed committed now. Whatever fails here comes again after `ack_wait`.
    async fn read_unacked(&self, reading: &Reading, batches: &mpsc::Sender<Batch>) {
        let limits = Limits { messages: BATCH_MAX, bytes: BATCH_BYTES_MAX };
        let mut sequences = unacked::unacked(reading.source.consumer.cached_info(), reading.read_until);
        while !sequences.is_empty() {
            let messages = match unacked::read(&reading.source.stream, sequences.clone(), limits).await {
                Ok(messages) => messages,
                Err(error) => {
                    warn!(%error, "what was delivered before and is not acked can't be read now; it comes again by itself");
                    return;
                }
            };
            let last = messages.iter().filter_map(|message| Some(message.info().ok()?.stream_sequence)).max();
            let Some(last) = last else { return };
            sequences.start = last + 1;
            let mut batch = self.decode(messages, reading);
            // It may be on its way to the store already.
            batch.items.iter_mut().for_each(Item::note_redelivered);
            batch.messages.clear();
            if batches.send(batch).await.is_err() {
                return;
            }
        }
    }

    fn decode(&self, messages: Vec<Message>, reading: &Reading) -> Batch {
        let rules = self.listener.rules();
        let mut progress = Progress {
            stream: self.settings.stream.clone(),
            stream_made_at: reading.source.stream_made_at,
            sequence: 0,
            arrival_at: DateTime::UNIX_EPOCH,
            lag: 0,
        };
        // A stream that was deleted and made again counts from one: its messages are other ones.
        let incarnation = format!("{}@{}", progress.stream, reading.source.stream_made_at.timestamp_millis());
        let decode = |m| decode_one(&rules.reader, m, &incarnation, reading.read_until, &mut progress);
        let items = messages.iter().map(decode).collect();
        Batch { items, messages, progress, rules }
    }
}

/// Takes what has come already, so that it is committed and acked before the process ends; else it would come again only after
/// `ack_wait`.
fn drain(messages: &mut Stream, batch: &mut Vec<Message>) {
    while batch.len() < BATCH_MAX
        && let Some(Some(Ok(message))) = messages.next().now_or_never()
    {
        batch.push(message);
    }
}

/// Commits batch after batch. A store that refuses is asked again until it takes the batch or the process stops: nothing is acked
/// meanwhile, so JetStream keeps it all.
async fn commit_all(
    consumer: Arc<Consumer>,
    mut intake: Intake,
    mut inbox: mpsc::Receiver<Batch>,
    lost: mpsc::Sender<String>,
    stop: CancellationToken,
) {
    while let Some(batch) = inbox.recv().await {
        let Some(committed) = commit(&consumer, &mut intake, &batch, &stop).await else { return };
        consumer.listener.committed(&committed, &batch.progress);
        if let Err(why) = ack(&consumer.client, &batch.messages).await {
            // A full channel means that the reader knows already.
            let _ = lost.try_send(why);
        }
    }
}

/// None when the process stops while the store refuses.
async fn commit<'a>(
    consumer: &Consumer,
    intake: &mut Intake,
    batch: &'a Batch,
    stop: &CancellationToken,
) -> Option<Committed<'a>> {
    let mut wait = BACK_OFF.0;
    loop {
        let (policy, pager) = (&batch.rules.policy, &*batch.rules.pager);
        match intake.commit(&batch.items, &batch.progress, policy, pager, clock::now()).await {
            Ok(committed) => {
                consumer.health.works(Part::Committing);
                return Some(committed);
            }
            Err(error) => {
                error!(%error, "the store refused a batch; nothing of it is acked, trying again");
                consumer.health.fails(Part::Committing, &error.to_string());
                tokio::select! {
                    () = stop.cancelled() => return None,
                    () = tokio::time::sleep(wait) => {}
                }
                wait = (wait * 2).min(BACK_OFF.1);
            }
        }
    }
}

/// Acks a batch that is committed. All but the last are sent and forgotten: a lost one is only redelivered. The last is confirmed, with
/// any reply but "no responders", which is what a deleted consumer gives.
async fn ack(client: &Client, messages: &[Message]) -> Result<(), String> {
    let Some((last, rest)) = messages.split_last() else { return Ok(()) };
    for message in rest {
        message.ack().await.map_err(|e| e.to_string())?;
    }
    let Some(reply) = last.reply.clone() else { return Ok(()) };
    client.request(reply, "+ACK".into()).await.map_err(|e| format!("acks are not taken: {e}"))?;
    Ok(())
}
