//! `matins explain`: why an event is what it is, and who hears of it when. A stored one is asked of the service; one in a file is read
//! with the config, and nothing is stored.

use super::Failure;
use super::args::{ExplainArgs, Service};
use super::client::{self, Client};
use super::list::say;
use crate::app;
use crate::backtest::KEYS;
use crate::clock;
use crate::config;
use crate::explain::{Explanation, Facts, explain, write};
use crate::ingest::{DecodeOutcome, Inbound};
use crate::render::Parts;
use anyhow::Context as _;
use chrono::{DateTime, Utc};
use std::path::{Path, PathBuf};

pub(super) async fn run(service: &Service, args: ExplainArgs) -> Result<(), Failure> {
    let explanation = match (&args.event, &args.file) {
        (Some(id), _) => ask(service, id, args.at).await?,
        (None, Some(file)) => of_file(&config_path(args.config.as_deref()), file, args.at)?,
        (None, None) => return Err(Failure::Usage("--event or --file is needed".to_owned())),
    };
    if args.json {
        return say(&format!("{}\n", serde_json::to_string_pretty(&explanation)?));
    }
    say(&write(&explanation))
}

async fn ask(service: &Service, id: &str, at: Option<DateTime<Utc>>) -> Result<Explanation, Failure> {
    let query: Vec<(&str, String)> = at.map(|at| ("at", at.to_rfc3339())).into_iter().collect();
    let bytes = Client::new(service)?.bytes(&client::path("events", id, "/explain"), &query).await?;
    Ok(serde_json::from_slice(&bytes).context("the answer of the service can't be read")?)
}

/// The config of the repository, else the one in this folder.
fn config_path(given: Option<&Path>) -> PathBuf {
    let usual = Path::new("config/matins.toml");
    match given {
        Some(path) => path.to_owned(),
        None if usual.exists() => usual.to_owned(),
        None => PathBuf::from("matins.toml"),
    }
}

fn of_file(config: &Path, file: &Path, at: Option<DateTime<Utc>>) -> Result<Explanation, Failure> {
    let now = clock::now();
    let loaded = config::load(config, &config::environment, now).map_err(|e| Failure::Usage(e.to_string()))?;
    let live = app::compile(loaded, Vec::new(), &KEYS, Parts::Words).0;
    let payload = std::fs::read(file).with_context(|| format!("{} can't be read", file.display()))?;
    let at = at.unwrap_or(now);
    let (subject, stream) = ("", "file");
    let inbound = Inbound { subject, headers: &[], payload: &payload, stream, sequence: 1, received_at: at };
    match live.reader.read(inbound) {
        DecodeOutcome::Event(decoded) => Ok(explain(&live.config, &live.policy, &decoded.event, &Facts::default(), at)),
        DecodeOutcome::Quarantine { reason } => {
            Err(anyhow::anyhow!("{}: it would go to quarantine ({}): {reason}", file.display(), reason.as_str()).into())
        }
    }
}
