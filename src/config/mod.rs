//! Config: files to a checked `Config`, all problems at once. `load` is the way in; `schema` is what comes out.
//!
//! ```text
//! include: files ─► tree: keys and values with places, ${NAME} filled in
//!   form:     each key and value against `sections`       ┐
//!   assemble: tree ─► Config                              ├─► problems with file, line, column, near name
//!   sense:    whether the parts work together             ┘
//! ```
//!
//! What a setting does lives in the room that it is for.

mod assemble;
mod duration;
mod effect;
mod expand;
mod form;
mod include;
mod json_schema;
mod keys;
mod overlap;
mod problem;
mod reader;
mod rules;
mod schema;
mod sections;
mod sense;
mod source;
#[cfg(test)]
mod tests;
mod thresholds;
mod tree;
mod value;

pub use assemble::apart_from_sign_in;
pub use duration::parse_duration;
pub use expand::{ExpandError, Lookup, expand};
pub use json_schema::json_schema;
pub use problem::{ConfigError, Problem};
pub use schema::*;

use crate::name::ReceiverName;
use crate::route::Route;
use crate::workflow::Workflow;
use chrono::{DateTime, Utc};
use source::Place;
use std::path::{Path, PathBuf};

/// A config that passed its checks.
#[derive(Clone, Debug)]
pub struct Loaded {
    /// The config.
    pub config: Config,
    /// What is worth a look, in the order of files and lines.
    pub warnings: Vec<Problem>,
    /// Every file that was read, the main one first: what a watcher looks at.
    pub files: Vec<PathBuf>,
}

/// Reads and checks the config at `path` with all that it includes. `env` is asked for each `${NAME}`; `now` is what
/// the ends of silences are held against.
///
/// # Errors
/// Everything that is wrong with it, at once.
pub fn load(path: &Path, env: &dyn Fn(&str) -> Option<String>, now: DateTime<Utc>) -> Result<Loaded, ConfigError> {
    let include::Read { root, report, complete } = include::read(path, env);
    let wrong = form::Checker::new(&root, &report, complete).file(&sections::ROOT);
    effect::warn(&root, &report);
    let cursor = reader::Cursor::new(&root, Place::default(), &sections::ROOT);
    // What refers to each other is only held together when its parts could be read: else one mistake makes many.
    let related = ["calendars", "digests", "receivers", "routes", "symptoms", "workflows"];
    let readable = complete && !related.iter().any(|r| wrong.contains(*r));
    let mut config = assemble::config(&cursor, assemble::Bench { report: &report, now });
    let sources = report.all_sources();
    if let Some(config) = &mut config {
        config.version = version(&sources);
    }
    if let (Some(config), true) = (&config, readable) {
        sense::check(&cursor, config, &report);
    }
    let files = sources.iter().map(|s| s.path.clone()).collect();
    let (problems, warnings) = report.into_found();
    match config {
        Some(config) if problems.is_empty() => Ok(Loaded { config, warnings, files }),
        Some(_) | None => Err(ConfigError { problems }),
    }
}

/// What `${NAME}` stands for in a running process.
pub fn environment(name: &str) -> Option<String> {
    #[allow(clippy::disallowed_methods, reason = "config is the room that reads the environment")]
    std::env::var(name).ok()
}

/// Twelve hex digits over the names and texts of all files, before `${NAME}` is filled in.
fn version(sources: &[source::Source]) -> String {
    let mut hash = ring::digest::Context::new(&ring::digest::SHA256);
    for source in sources {
        for part in [&source.name, &source.text] {
            hash.update(&u64::try_from(part.len()).unwrap_or(u64::MAX).to_be_bytes());
            hash.update(part.as_bytes());
        }
    }
    hash.finish().as_ref().iter().take(6).map(|byte| format!("{byte:02x}")).collect()
}

const OPEN_WITHOUT_AUTH: &str = "http.listen is not on loopback and no token keeps strangers out; add [[web.auth.tokens]], or listen on 127.0.0.1 with a proxy that has auth before it";

/// The API would be open to strangers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{OPEN_WITHOUT_AUTH}")]
pub struct AuthMissing;

impl Config {
    /// Whether the API may be served at the address that it listens on.
    ///
    /// # Errors
    /// When it is not on loopback and nothing keeps strangers out.
    pub fn require_auth(&self) -> Result<(), AuthMissing> {
        // Users and the header of a proxy are read, but nothing asks for them yet: only tokens keep anybody out.
        let kept = self.web_auth.as_ref().is_some_and(|auth| !auth.tokens.is_empty());
        if self.http.listen.ip().is_loopback() || kept { Ok(()) } else { Err(AuthMissing) }
    }

    /// The routes that take events of a workflow, in order; whether each takes all of its events or only some.
    pub fn routes_of(&self, workflow: &Workflow) -> Vec<(&Route, bool)> {
        sense::routes_of(self, workflow).into_iter().map(|(route, fit)| (route, fit == sense::Fit::All)).collect()
    }

    /// The receivers of pages that every failure of a workflow reaches; none for a standard workflow.
    pub fn pages_of(&self, workflow: &Workflow) -> Vec<&ReceiverName> {
        if workflow.domain.is_protected() { sense::pages_of(self, workflow) } else { Vec::new() }
    }
}
