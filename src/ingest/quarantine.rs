//! Why a message can't be decoded: a stable word for metrics and a sentence for people. What happens to such a message
//! is the commit's work, not this file's.

use std::fmt;

/// Why a message goes to quarantine. `Display` is a sentence that says what is wrong, where, and what to do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum QuarantineReason {
    /// More than 1 MiB.
    TooLarge {
        /// Size of the message in bytes.
        bytes: usize,
    },
    /// No bytes, or only white space.
    Empty,
    /// Bytes that are no UTF-8.
    NotUtf8 {
        /// Offset of the first bad byte.
        at: usize,
    },
    /// Text that is no JSON.
    NotJson {
        /// 1-based.
        line: usize,
        /// 1-based, in bytes.
        column: usize,
        /// What the parser says, without the position.
        problem: String,
    },
    /// JSON, but neither an object nor an array of one object.
    NotAnObject {
        /// `a string`, `an array of 3` …
        found: String,
    },
    /// Neither the body nor the subject names a workflow.
    NoWorkflow,
    /// A CloudEvent that the binding tells receivers to refuse.
    BadCloudEvent {
        /// What is wrong with it.
        problem: String,
    },
    /// A `type` that is none of the contract's.
    UnknownType {
        /// The word, cut to 80 characters.
        word: String,
    },
    /// A `breaker` event without a state that can be read.
    UnknownState,
    /// A JetStream advisory of another kind than MAX_DELIVERIES and MSG_TERMINATED.
    UnsupportedAdvisory {
        /// Its type, cut to 80 characters.
        kind: String,
    },
}

impl QuarantineReason {
    /// The stable word: metric label, stored reason, log field.
    pub fn as_str(&self) -> &'static str {
        match self {
            Self::TooLarge { .. } => "too_large",
            Self::Empty => "empty",
            Self::NotUtf8 { .. } => "not_utf8",
            Self::NotJson { .. } => "not_json",
            Self::NotAnObject { .. } => "not_an_object",
            Self::NoWorkflow => "no_workflow",
            Self::BadCloudEvent { .. } => "bad_cloudevent",
            Self::UnknownType { .. } => "unknown_type",
            Self::UnknownState => "unknown_state",
            Self::UnsupportedAdvisory { .. } => "unsupported_advisory",
        }
    }
}

impl fmt::Display for QuarantineReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::TooLarge { bytes } => {
                write!(
                    f,
                    "the message has {bytes} bytes, over the limit of 1 MiB: send a reference instead of the data"
                )
            }
            Self::Empty => write!(f, "the message is empty: send one JSON object"),
            Self::NotUtf8 { at } => write!(f, "byte {at} is not UTF-8: send JSON as UTF-8"),
            Self::NotJson { line, column, problem } => {
                write!(f, "not JSON at line {line}, column {column}: {problem}")
            }
            Self::NotAnObject { found } => {
                write!(f, "found {found} where one JSON object was expected: send each event as its own message")
            }
            Self::NoWorkflow => {
                write!(f, "no workflow: set the field `workflow`, or publish on failures.<workflow>")
            }
            Self::BadCloudEvent { problem } => write!(f, "not a valid CloudEvent: {problem}"),
            Self::UnknownType { word } => write!(
                f,
                "unknown type {word:?}: use failure, recovery, outcome, heartbeat, resolution or breaker, or leave it out for a failure"
            ),
            Self::UnknownState => {
                write!(f, "a breaker event needs the field `state`: open, half_open or closed")
            }
            Self::UnsupportedAdvisory { kind } => write!(
                f,
                "advisory {kind:?} is not read: capture only MAX_DELIVERIES and MSG_TERMINATED of $JS.EVENT.ADVISORY.CONSUMER"
            ),
        }
    }
}
