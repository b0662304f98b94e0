//! One structured log line a failure, on target `matins::fault::<class>`. Lines of one fingerprint are limited to one a second; what was
//! left out is said in one line.

use crate::event::{Class, Event, EventType, Fingerprint};
use std::collections::HashMap;
use std::sync::Mutex;
use std::time::{Duration, Instant};

const EVERY: Duration = Duration::from_secs(1);
/// More fingerprints than this at a time are not told apart any more.
const FINGERPRINTS_MAX: usize = 10_000;

/// Limits repeats.
#[derive(Debug, Default)]
pub struct FaultLog {
    lines: Mutex<HashMap<Fingerprint, Line>>,
}

#[derive(Debug)]
struct Line {
    at: Instant,
    class: Class,
    workflow: String,
    left_out: u64,
}

impl FaultLog {
    /// Logs a failure, unless one of its fingerprint was logged within the second.
    pub fn note(&self, event: &Event, now: Instant) {
        if event.event_type != EventType::Failure {
            return;
        }
        let Ok(mut lines) = self.lines.lock() else { return };
        if lines.len() >= FINGERPRINTS_MAX {
            lines.clear();
        }
        match lines.get_mut(&event.fingerprint) {
            Some(line) if now.duration_since(line.at) < EVERY => {
                line.left_out += 1;
                return;
            }
            Some(line) => {
                left_out(&event.fingerprint, line);
                line.at = now;
                line.left_out = 0;
            }
            None => {
                let line = Line { at: now, class: event.class, workflow: event.workflow.to_string(), left_out: 0 };
                lines.insert(event.fingerprint.clone(), line);
            }
        }
        drop(lines);
        write(event);
    }

    /// Says what was left out of fingerprints that have been quiet for a second. Called every second.
    pub fn sweep(&self, now: Instant) {
        let Ok(mut lines) = self.lines.lock() else { return };
        lines.retain(|fingerprint, line| {
            let keep = now.duration_since(line.at) < EVERY;
            if !keep {
                left_out(fingerprint, line);
            }
            keep
        });
    }
}

/// One line on the target and level of its class; a target has to be a constant.
macro_rules! line {
    ($class:expr, $($field:tt)*) => {
        match $class {
            Class::Transient => tracing::warn!(target: "matins::fault::transient", $($field)*),
            Class::RateLimited => tracing::warn!(target: "matins::fault::rate_limited", $($field)*),
            Class::Persistent => tracing::error!(target: "matins::fault::persistent", $($field)*),
            Class::InvalidInput => tracing::error!(target: "matins::fault::invalid_input", $($field)*),
            Class::OutcomeUnknown => tracing::error!(target: "matins::fault::outcome_unknown", $($field)*),
            Class::LlmOutput => tracing::error!(target: "matins::fault::llm_output", $($field)*),
            Class::LlmRefusal => tracing::error!(target: "matins::fault::llm_refusal", $($field)*),
            Class::LlmHallucination => tracing::error!(target: "matins::fault::llm_hallucination", $($field)*),
            Class::LlmContext => tracing::error!(target: "matins::fault::llm_context", $($field)*),
            Class::LlmBehavior => tracing::error!(target: "matins::fault::llm_behavior", $($field)*),
            Class::Catastrophic => tracing::error!(target: "matins::fault::catastrophic", $($field)*),
            Class::Interrupted => tracing::info!(target: "matins::fault::interrupted", $($field)*),
            Class::Unclassified => tracing::error!(target: "matins::fault::unclassified", $($field)*),
        }
    };
}

fn write(event: &Event) {
    let message = event.error.message.as_deref().unwrap_or("failed");
    line!(
        event.class,
        workflow = event.workflow.as_str(),
        step = event.step.as_deref(),
        class = event.class.as_str(),
        disposition = event.disposition.as_str(),
        attempt = event.attempt,
        item = event.item.as_deref(),
        downstream = event.downstream.as_deref(),
        fingerprint = event.fingerprint.0.as_str(),
        event_id = event.id.0.as_str(),
        "{message}"
    );
}

fn left_out(fingerprint: &Fingerprint, line: &Line) {
    if line.left_out > 0 {
        let fingerprint = fingerprint.0.as_str();
        let (workflow, left_out) = (line.workflow.as_str(), line.left_out);
        line!(line.class, workflow, fingerprint, left_out, "{left_out} more like this were left out");
    }
}
