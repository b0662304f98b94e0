//! Whether intake has passed an instant: everything that JetStream stored before it is committed here. A digest waits for that, up to a
//! limit; then it says what is missing.

use super::tick::{Passed, Reached, Watermark};
use crate::ingest::health::Readiness;
use crate::ingest::jetstream;
use crate::live::Shared;
use crate::render::words;
use chrono::{DateTime, TimeDelta, Utc};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;
use tokio::time::timeout;

/// How long a digest waits for intake.
const PATIENCE: TimeDelta = TimeDelta::minutes(5);
const REQUEST_TIMEOUT: Duration = Duration::from_secs(2);

/// Remembers up to which message intake must have come for each instant that a digest waits for.
pub struct StreamWatermark {
    shared: Arc<Shared>,
    barriers: BTreeMap<DateTime<Utc>, Barrier>,
    /// As of the last look; none when NATS did not answer.
    state: Option<StreamState>,
    catching_up: CatchingUp,
    was_away: bool,
}

/// Whether what was published while nobody listened has been read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum CatchingUp {
    /// Not yet, since intake last began to listen.
    Since(Option<DateTime<Utc>>),
    /// It has.
    Done,
}

#[derive(Clone, Copy, Debug)]
struct Barrier {
    /// Last sequence of the stream at a time after the instant; none while NATS does not answer.
    sequence: Option<u64>,
    waiting_since: DateTime<Utc>,
}

impl StreamWatermark {
    /// Nothing is asked before the first digest is due.
    pub fn new(shared: Arc<Shared>) -> Self {
        Self { shared, barriers: BTreeMap::new(), state: None, catching_up: CatchingUp::Since(None), was_away: false }
    }
}

impl Watermark for StreamWatermark {
    async fn refresh(&mut self) {
        self.state = timeout(REQUEST_TIMEOUT, stream_state(&self.shared)).await.ok().flatten();
    }

    fn passed(&mut self, instant: DateTime<Utc>, now: DateTime<Utc>) -> Option<Passed> {
        let barrier = self.barriers.entry(instant).or_insert(Barrier { sequence: None, waiting_since: now });
        if barrier.sequence.is_none() {
            barrier.sequence = self.state.map(|s| s.last_sequence);
        }
        let behind = match (barrier.sequence, self.state) {
            (Some(wanted), Some(state)) => wanted.saturating_sub(state.acked_sequence),
            (Some(_), None) | (None, _) => u64::MAX,
        };
        if behind == 0 {
            return Some(Passed { incomplete: None });
        }
        (now - barrier.waiting_since >= PATIENCE).then(|| Passed { incomplete: Some(missing(behind, instant)) })
    }

    /// After a start, or when NATS was away, what came meanwhile is read before anything is judged; but not for ever.
    async fn reached(&mut self, now: DateTime<Utc>) -> Option<Reached> {
        if *self.shared.readiness.borrow() != Readiness::Ready {
            self.was_away |= self.catching_up == CatchingUp::Done;
            self.catching_up = CatchingUp::Since(None);
            return None;
        }
        if let CatchingUp::Since(since) = self.catching_up {
            let since = since.unwrap_or(now);
            let state = timeout(REQUEST_TIMEOUT, stream_state(&self.shared)).await.ok().flatten();
            let is_read = state.is_some_and(|s| s.acked_sequence >= s.last_sequence);
            self.catching_up =
                if is_read || now - since >= PATIENCE { CatchingUp::Done } else { CatchingUp::Since(Some(since)) };
        }
        let at = match self.catching_up {
            CatchingUp::Since(_) => None,
            CatchingUp::Done if self.shared.metrics.lag() == 0 => Some(now),
            // What waits in the stream came after the newest that is read.
            CatchingUp::Done => self.shared.metrics.watermark(),
        }?;
        Some(Reached { at, was_away: std::mem::take(&mut self.was_away) })
    }

    fn keep_only(&mut self, waiting: &BTreeSet<DateTime<Utc>>) {
        self.barriers.retain(|instant, _| waiting.contains(instant));
    }
}

fn missing(behind: u64, instant: DateTime<Utc>) -> String {
    let at = instant.format("%H:%M UTC");
    if behind == u64::MAX {
        return format!("NATS does not answer; what was published before {at} may be missing");
    }
    format!("{} before {at} are still unread", words::noun(behind, "message"))
}

#[derive(Clone, Copy, Debug)]
struct StreamState {
    last_sequence: u64,
    acked_sequence: u64,
}

async fn stream_state(shared: &Shared) -> Option<StreamState> {
    let settings = &shared.nats_settings;
    let context = jetstream::context(&shared.nats);
    let stream = context.get_stream(&settings.stream).await.ok()?;
    let consumer = stream.consumer_info(&settings.durable).await.ok()?;
    let last_sequence = stream.cached_info().state.last_sequence;
    // With nothing on its way and nothing to come, the floor can lag behind what limits removed.
    let drained = consumer.num_pending == 0 && consumer.num_ack_pending == 0;
    let acked_sequence = if drained { last_sequence } else { consumer.ack_floor.stream_sequence };
    Some(StreamState { last_sequence, acked_sequence })
}
