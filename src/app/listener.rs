//! What happens after a batch was committed: log lines, metrics, and the waking of delivery.

use super::fault_log::FaultLog;
use super::throttle::Throttle;
use crate::clock;
use crate::event::Event;
use crate::ingest::commit::{Committed, Progress};
use crate::ingest::consumer::{Listener, Rules};
use crate::live::Shared;
use crate::render::words;
use crate::symptom::{Skew, Skews};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;
use tracing::warn;

/// Listens to intake for the service.
pub struct ServiceListener {
    /// What all tasks share.
    pub shared: Arc<Shared>,
    /// Limits log lines.
    pub faults: Arc<FaultLog>,
    /// Limits lines on what is not as it should be.
    pub oddities: Arc<Oddities>,
}

/// What a producer gone wrong can send as fast as it likes.
#[derive(Debug, Default)]
pub struct Oddities {
    duplicates: Throttle,
    unreadable: Throttle,
    skews: Mutex<Skews>,
}

impl Oddities {
    /// Notes ids that came again with another content; `example` is one of them.
    fn note_duplicates(&self, count: u64, example: Option<&str>, now: Instant) {
        if let Some(count) = self.duplicates.add(count, now) {
            warn!(count, event_id = example, "ids came again with another content; the first is kept");
        }
    }

    /// Notes unreadable messages; `example` is the reason of one of them.
    fn note_unreadable(&self, count: u64, example: Option<&str>, now: Instant) {
        if let Some(count) = self.unreadable.add(count, now) {
            warn!(count, reason = example, "unreadable messages were put in quarantine");
        }
    }

    /// Notes clocks that run ahead.
    fn note_skews(&self, events: &[&Event]) {
        let mut skews = self.skews.lock().unwrap_or_else(PoisonError::into_inner);
        for Skew { workflow, producer, ahead, ahead_count, event_count } in events.iter().filter_map(|e| skews.note(e))
        {
            let (workflow, producer) = (workflow.as_str(), producer.as_deref());
            let ahead = ahead.map_or_else(|| "more than 5 min".to_owned(), words::duration);
            warn!(
                workflow,
                producer,
                ahead,
                ahead_count,
                event_count,
                "the clock of a producer runs ahead; its events count when they arrive"
            );
        }
    }

    /// Says what is not said yet. Called every second.
    pub fn sweep(&self, now: Instant) {
        self.note_duplicates(0, None, now);
        self.note_unreadable(0, None, now);
    }
}

impl Listener for ServiceListener {
    fn committed(&self, batch: &Committed, progress: &Progress) {
        if batch.has_messages {
            self.shared.outbox_wake.notify_one();
        }
        let metrics = &self.shared.metrics;
        let now = clock::instant();
        for event in &batch.events {
            metrics.note_event(event);
            self.faults.note(event, now);
        }
        batch.duplicates.iter().for_each(|_| metrics.note_duplicate());
        let differing: Vec<_> = batch.duplicates.iter().filter(|duplicate| duplicate.differs).collect();
        let example = differing.last().map(|duplicate| duplicate.id.as_str());
        self.oddities.note_duplicates(differing.len() as u64, example, now);
        batch.quarantined.iter().for_each(|reason| metrics.note_quarantined(reason));
        self.oddities.note_skews(&batch.events);
        self.oddities.note_unreadable(batch.quarantined.len() as u64, batch.quarantined.last().copied(), now);
        metrics.set_watermark(progress.arrival_at);
        metrics.set_lag(progress.lag);
    }

    fn rules(&self) -> Rules {
        let live = self.shared.live.load();
        Rules { reader: live.reader.clone(), policy: live.policy.clone(), pager: live.announcer.clone() }
    }
}
