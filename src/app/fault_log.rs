//! One structured log line a failure, on target `matins::fault::<class>`. Lines of one fingerprint are limited to one a second; what was
//! left out is said in one line.

use crate::event::{Class, Event, EventType, Fingerprint};
use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

const EVERY: Duration = Duration::from_secs(1);
/// More fingerprints than this at a time are not told apart any more.
const FINGERPRINTS_MAX: usize = 10_000;
/// Longest field of a line, in bytes; the whole is in the store.
const FIELD_MAX: usize = 1000;

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
    /// A panic elsewhere leaves counts that are still good, and no reason to say nothing any more.
    fn lines(&self) -> MutexGuard<'_, HashMap<Fingerprint, Line>> {
        self.lines.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Logs a failure, unless one of its fingerprint was logged within the second.
    pub fn note(&self, event: &Event, now: Instant) {
        if event.event_type != EventType::Failure {
            return;
        }
        let mut lines = self.lines();
        if lines.len() >= FINGERPRINTS_MAX {
            lines.drain().for_each(|(fingerprint, line)| left_out(&fingerprint, &line));
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
        self.lines().retain(|fingerprint, line| {
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
    let message = cut(event.error.message.as_deref().unwrap_or("failed"));
    line!(
        event.class,
        workflow = &*cut(event.workflow.as_str()),
        step = event.step.as_deref().map(cut).as_deref(),
        class = event.class.as_str(),
        disposition = event.disposition.as_str(),
        attempt = event.attempt,
        item = event.item.as_deref().map(cut).as_deref(),
        downstream = event.downstream.as_deref().map(cut).as_deref(),
        fingerprint = &*event.fingerprint.0,
        event_id = event.id.0.as_str(),
        "{message}"
    );
}

/// As much of a field as belongs in a line.
fn cut(text: &str) -> Cow<'_, str> {
    if text.len() <= FIELD_MAX {
        return Cow::Borrowed(text);
    }
    Cow::Owned(format!("{}… ({} bytes)", &text[..text.floor_char_boundary(FIELD_MAX)], text.len()))
}

fn left_out(fingerprint: &Fingerprint, line: &Line) {
    if line.left_out > 0 {
        let fingerprint = &*fingerprint.0;
        let (workflow, left_out) = (line.workflow.as_str(), line.left_out);
        line!(line.class, workflow, fingerprint, left_out, "{left_out} more like this were left out");
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock;
    use crate::config::RedactSettings;
    use crate::ingest::{DecodeOutcome, Inbound, Reader};
    use std::io;
    use std::sync::Arc;
    use tracing_subscriber::fmt::MakeWriter;

    #[derive(Clone, Default)]
    struct Lines(Arc<Mutex<Vec<u8>>>);

    impl io::Write for Lines {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.lock().unwrap().write(bytes)
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    impl<'a> MakeWriter<'a> for Lines {
        type Writer = Self;

        fn make_writer(&'a self) -> Self {
            self.clone()
        }
    }

    fn logged(act: impl FnOnce(&FaultLog)) -> String {
        let lines = Lines::default();
        let subscriber = tracing_subscriber::fmt().with_writer(lines.clone()).with_ansi(false).finish();
        tracing::subscriber::with_default(subscriber, || act(&FaultLog::default()));
        String::from_utf8(lines.0.lock().unwrap().clone()).unwrap()
    }

    fn failure() -> Event {
        let reader = Reader::new(&RedactSettings::default(), &[], &[0; 32]);
        let payload = br#"{"id":"a","workflow":"pay","error":{"message":"declined"}}"#;
        let received_at = clock::now();
        let inbound = Inbound { subject: "", headers: &[], payload, stream: "", sequence: 1, received_at };
        let DecodeOutcome::Event(decoded) = reader.read(inbound) else { panic!("an event is expected") };
        decoded.event
    }

    #[test]
    fn what_was_left_out_is_said_also_when_too_many_causes_are_kept_apart() {
        let text = logged(|log| {
            let (now, mut event) = (clock::instant(), failure());
            for _ in 0..4 {
                log.note(&event, now);
            }
            for n in 0..FINGERPRINTS_MAX {
                event.fingerprint = Fingerprint(format!("v1:{n:016x}").into());
                log.note(&event, now);
            }
        });
        assert_eq!(text.matches("3 more like this were left out").count(), 1);
        assert_eq!(text.matches("declined").count(), FINGERPRINTS_MAX + 1);
    }

    #[test]
    fn a_message_without_end_makes_no_line_without_end() {
        let text = logged(|log| {
            let mut event = failure();
            event.error.message = Some("ä".repeat(300_000));
            event.step = Some("s".repeat(1000));
            log.note(&event, clock::instant());
        });
        assert!(text.contains("ä… (600000 bytes)"), "{text}");
        assert!(text.contains(&"s".repeat(1000)) && text.len() < 4000, "{}", text.len());
    }

    #[test]
    fn a_panic_elsewhere_does_not_end_logging() {
        let text = logged(|log| {
            let poisoning = std::panic::AssertUnwindSafe(|| {
                let _held = log.lines();
                panic!("while it is held");
            });
            assert!(std::panic::catch_unwind(poisoning).is_err());
            log.note(&failure(), clock::instant());
        });
        assert!(text.contains("declined"), "{text}");
    }
}
