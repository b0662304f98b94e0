//! The words of the field: event, type, class, disposition, fingerprint. Pure data with their stable spellings.
//! Reading them off the wire is `ingest`'s work; what follows from them is decided elsewhere.

use crate::name::WorkflowName;
use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::BTreeMap;
use std::sync::Arc;

macro_rules! words {
    ($(#[$doc:meta])* $type:ident { $($(#[$vdoc:meta])* $variant:ident = $word:literal),+ $(,)? }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        pub enum $type { $($(#[$vdoc])* #[serde(rename = $word)] $variant),+ }

        impl $type {
            /// Every value, in the order of the contract.
            pub const ALL: &'static [Self] = &[$(Self::$variant),+];

            /// The stable word: config, wire, log, metric and message use the same.
            pub fn as_str(self) -> &'static str {
                match self { $(Self::$variant => $word),+ }
            }

            /// Reads the stable word.
            pub fn parse(word: &str) -> Option<Self> {
                match word { $($word => Some(Self::$variant),)+ _ => None }
            }
        }

        impl std::fmt::Display for $type {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str(self.as_str())
            }
        }
    };
}

words!(
    /// The `type` of an event (CONTRACT 3).
    EventType {
        /// A step failed.
        Failure = "failure",
        /// A step that had failed went through.
        Recovery = "recovery",
        /// Counts of good and failed runs.
        Outcome = "outcome",
        /// A sign of life.
        Heartbeat = "heartbeat",
        /// A dead letter is done with.
        Resolution = "resolution",
        /// A circuit breaker changed.
        Breaker = "breaker",
    }
);

words!(
    /// What kind of fault it is (CONTRACT 4).
    Class {
        /// Will likely pass: timeout, reset, 5xx.
        Transient = "transient",
        /// Told to slow down.
        RateLimited = "rate_limited",
        /// Will not pass by itself: credentials, quota, gone.
        Persistent = "persistent",
        /// The item itself is wrong.
        InvalidInput = "invalid_input",
        /// A write was sent and its answer lost.
        OutcomeUnknown = "outcome_unknown",
        /// A model's answer had the wrong form.
        LlmOutput = "llm_output",
        /// A model refused.
        LlmRefusal = "llm_refusal",
        /// A model made something up.
        LlmHallucination = "llm_hallucination",
        /// Too much for the model's context.
        LlmContext = "llm_context",
        /// Agents went round in circles.
        LlmBehavior = "llm_behavior",
        /// Data is lost or leaked.
        Catastrophic = "catastrophic",
        /// Waits for a human; not a failure.
        Interrupted = "interrupted",
        /// No rule matched.
        Unclassified = "unclassified",
    }
);

words!(
    /// What became of the failed step.
    Disposition {
        /// It will be tried again.
        Retrying = "retrying",
        /// Given up, kept as a dead letter.
        DeadLettered = "dead_lettered",
        /// Given up, not kept.
        Failed = "failed",
        /// Left out on purpose.
        Skipped = "skipped",
    }
);

words!(
    /// What a heartbeat says of its sender.
    HeartbeatStatus {
        /// All is well.
        Ok = "ok",
        /// It works, but badly.
        Degraded = "degraded",
        /// It does not work.
        Unhealthy = "unhealthy",
    }
);

words!(
    /// State of a circuit breaker.
    BreakerState {
        /// Calls are refused.
        Open = "open",
        /// One call is tried.
        HalfOpen = "half_open",
        /// Calls go through.
        Closed = "closed",
    }
);

/// Idempotency key of an event: one id is one event, whatever else a message says.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct EventId(pub String);

/// `v1:<16 hex>`: the cause that events share.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(from = "String", into = "String")]
pub struct Fingerprint(pub Arc<str>);

impl From<String> for Fingerprint {
    fn from(text: String) -> Self {
        Self(text.into())
    }
}

impl From<Fingerprint> for String {
    fn from(fingerprint: Fingerprint) -> Self {
        fingerprint.0.as_ref().to_owned()
    }
}

/// What the failed step said. Texts are redacted and free of U+0000 and lone surrogates.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ErrorInfo {
    /// Exception or error type, such as `TokenExpired`.
    #[serde(rename = "type")]
    pub kind: Option<String>,
    /// Human words.
    pub message: Option<String>,
    /// Machine code, such as `ETIMEDOUT`.
    pub code: Option<String>,
    /// HTTP status of the answer, 100 to 599.
    pub http_status: Option<u16>,
    /// Seconds until a retry makes sense.
    pub retry_after_s: Option<f64>,
    /// Stack trace.
    pub stack: Option<String>,
}

/// How far `occurred_at` can be trusted.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TimeMark {
    /// As given, with an offset.
    Given,
    /// Given without an offset, taken as UTC.
    AssumedUtc,
    /// Missing: arrival time is used.
    Missing,
    /// Unreadable: arrival time is used; the original text.
    Unreadable(String),
    /// Over five minutes in the future: arrival time is used; the original text.
    Future(String),
}

/// Counts of an `outcome` event.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OutcomeCounts {
    /// Since the producer's last report.
    Delta {
        /// Good runs.
        ok: u64,
        /// Failed runs.
        failed: u64,
    },
    /// Since the producer's start.
    Cumulative {
        /// Who counts.
        producer: String,
        /// Which start of the producer.
        epoch: String,
        /// Good runs since then.
        ok_total: u64,
        /// Failed runs since then.
        failed_total: u64,
    },
}

/// What only some types of event carry.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Detail {
    /// Of a `failure`.
    Failure,
    /// Of a `recovery`.
    Recovery {
        /// What worked: `retry`, `reprompt`, `fallback` …
        strategy: Option<String>,
        /// Time from the first failure to success, in ms.
        took_ms: Option<u64>,
        /// How far service was degraded.
        degraded_level: Option<u64>,
    },
    /// Of an `outcome`.
    Outcome(OutcomeCounts),
    /// Of a `heartbeat`.
    Heartbeat {
        /// How the sender is.
        status: HeartbeatStatus,
        /// Items that wait.
        queue_depth: Option<u64>,
        /// Age of the oldest waiting item, in s.
        oldest_age_s: Option<f64>,
    },
    /// Of a `resolution`.
    Resolution {
        /// What was done.
        note: Option<String>,
        /// Who did it.
        by: Option<String>,
        /// Names the dead letter, else workflow and item do.
        dead_letter_id: Option<String>,
    },
    /// Of a `breaker`.
    Breaker {
        /// The new state.
        state: BreakerState,
    },
}

/// A decoded, redacted and classified event: what every decision is made from.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Event {
    /// Idempotency key.
    pub id: EventId,
    /// Failure, recovery …
    pub event_type: EventType,
    /// The pipeline it speaks of.
    pub workflow: WorkflowName,
    /// Step of the pipeline.
    pub step: Option<String>,
    /// The pipeline's own run.
    pub run_id: Option<String>,
    /// Business key of the failed piece of work.
    pub item: Option<String>,
    /// Kind of fault; `unclassified` when it is no failure.
    pub class: Class,
    /// Name of the rule that gave the class: `explicit`, `classify:<name>`, `builtin:<what>`, `none`.
    pub class_rule: String,
    /// What became of the step; `skipped` when it is no failure.
    pub disposition: Disposition,
    /// The cause.
    pub fingerprint: Fingerprint,
    /// What went wrong.
    pub error: ErrorInfo,
    /// 1-based try.
    pub attempt: Option<u32>,
    /// Tries that the pipeline allows.
    pub max_attempts: Option<u32>,
    /// The dependency that failed.
    pub downstream: Option<String>,
    /// When it happened, never later than five minutes after arrival.
    pub occurred_at: DateTime<Utc>,
    /// How far that can be trusted.
    pub time_mark: TimeMark,
    /// When JetStream stored it.
    pub received_at: DateTime<Utc>,
    /// The failed item as JSON text, at most 64 KiB.
    pub payload: Option<Value>,
    /// Whether the payload was cut.
    pub payload_cut: bool,
    /// Name to http(s) address.
    pub links: BTreeMap<String, String>,
    /// For routing.
    pub labels: BTreeMap<String, String>,
    /// By type.
    pub detail: Detail,
    /// Dead letter that this run redrives.
    pub redriven_from: Option<String>,
    /// How often it was redriven.
    pub redrive_count: Option<u32>,
}

impl Event {
    /// Whether somebody may have to act: a final failure of a step.
    pub fn is_final_failure(&self) -> bool {
        self.event_type == EventType::Failure
            && match self.disposition {
                Disposition::DeadLettered | Disposition::Failed => true,
                Disposition::Retrying | Disposition::Skipped => false,
            }
    }

    /// Key of its dead letter: workflow and item, else the event id (CONTRACT 3).
    pub fn dead_letter_key(&self) -> String {
        match &self.item {
            Some(item) => format!("{}\u{1f}{item}", self.workflow),
            None => format!("\u{1f}{}", self.id.0),
        }
    }
}
