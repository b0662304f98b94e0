//! What happens after a batch was committed: log lines, metrics, and the waking of delivery.

use super::fault_log::FaultLog;
use crate::clock;
use crate::ingest::commit::{Committed, Progress};
use crate::ingest::consumer::{Listener, Rules};
use crate::live::Shared;
use std::sync::Arc;
use tracing::warn;

/// Listens to intake for the service.
pub struct ServiceListener {
    /// What all tasks share.
    pub shared: Arc<Shared>,
    /// Limits log lines.
    pub faults: Arc<FaultLog>,
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
        for duplicate in &batch.duplicates {
            metrics.note_duplicate();
            if duplicate.differs {
                warn!(event_id = duplicate.id, "an id came again with another content; the first is kept");
            }
        }
        for reason in &batch.quarantined {
            metrics.note_quarantined(reason);
            warn!(reason, "an unreadable message was put in quarantine");
        }
        metrics.set_watermark(progress.arrival_at);
        metrics.set_lag(progress.lag);
    }

    fn rules(&self) -> Rules {
        let live = self.shared.live.load();
        Rules { reader: live.reader.clone(), policy: live.policy.clone(), pager: live.announcer.clone() }
    }
}
