//! Where logs go and what is never in them: stderr, JSON unless it is a terminal. What is logged is each room's.

use std::io::{self, IsTerminal as _};
use tracing::Level;
use tracing::level_filters::LevelFilter;
use tracing_subscriber::filter::{EnvFilter, FilterExt as _, Targets};
use tracing_subscriber::fmt;
use tracing_subscriber::layer::{Layer as _, SubscriberExt as _};
use tracing_subscriber::util::SubscriberInitExt as _;

/// Libraries that see addresses with secrets in them, and how much they may say at most, whatever `RUST_LOG` asks for.
const HUSHED: &[(&str, Level)] = &[
    ("async_nats", Level::WARN),
    ("axum", Level::INFO),
    ("h2", Level::WARN),
    ("hyper", Level::WARN),
    ("hyper_util", Level::WARN),
    ("lettre", Level::WARN),
    ("reqwest", Level::WARN),
    ("rustls", Level::WARN),
    ("sqlx", Level::WARN),
];

/// Who logs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Voice {
    /// The service: everything from INFO.
    Service,
    /// A command, which says itself what did not work.
    Command,
}

/// Starts logging. `format` is `json` or `text`, `filter` as in `RUST_LOG`; without them a terminal gets text.
pub fn start(voice: Voice, format: Option<&str>, filter: Option<&str>) {
    let usual = match voice {
        Voice::Service => LevelFilter::INFO,
        Voice::Command => LevelFilter::ERROR,
    };
    let asked = EnvFilter::builder().with_default_directive(usual.into()).parse_lossy(filter.unwrap_or_default());
    let hushed = Targets::new().with_default(LevelFilter::TRACE).with_targets(HUSHED.iter().copied());
    let filter = asked.and(hushed);
    let as_json = match format {
        Some("json") => true,
        Some("text") => false,
        Some(_) | None => voice == Voice::Service && !io::stderr().is_terminal(),
    };
    let layer = fmt::layer().with_writer(io::stderr);
    let started = if as_json {
        let layer = layer.json().flatten_event(true).with_current_span(false).with_span_list(false);
        tracing_subscriber::registry().with(layer.with_filter(filter)).try_init()
    } else {
        let layer = layer.with_ansi(io::stderr().is_terminal());
        tracing_subscriber::registry().with(layer.with_filter(filter)).try_init()
    };
    if let Err(error) = started {
        eprintln!("matins: logging could not be started: {error}");
    }
}
