//! What a backtest can be asked.

use super::ConfigFile;
use crate::config::parse_duration;
use chrono::{DateTime, Utc};
use clap::{Args, ValueEnum};
use std::path::PathBuf;
use std::time::Duration;

#[derive(Clone, Copy, Debug, ValueEnum)]
pub(in crate::cli) enum BacktestFormat {
    /// A page to read, day by day.
    Text,
    /// One JSON object a line.
    Ndjson,
}

#[derive(Debug, Args)]
pub(in crate::cli) struct BacktestArgs {
    #[command(flatten)]
    pub(in crate::cli) config: ConfigFile,
    /// Events, one a line, in any accepted shape; `received_at` beside one says when it arrived.
    #[arg(long, value_name = "FILE", required_unless_present = "store", conflicts_with = "store")]
    pub(in crate::cli) events: Option<PathBuf>,
    /// Play what the store of the config has recorded instead of a file. It is only read; a service may be running on it.
    #[arg(long)]
    pub(in crate::cli) store: bool,
    /// Of the store, only what arrived in the last 14d, 36h …
    #[arg(long, value_name = "TIME", value_parser = duration, requires = "store", conflicts_with = "from")]
    pub(in crate::cli) last: Option<Duration>,
    /// Begin here, RFC 3339; the first arrival unless given.
    #[arg(long, value_name = "TIME")]
    pub(in crate::cli) from: Option<DateTime<Utc>>,
    /// End here; the last arrival unless given.
    #[arg(long, value_name = "TIME")]
    pub(in crate::cli) to: Option<DateTime<Utc>>,
    /// Form.
    #[arg(long, value_enum, default_value = "text")]
    pub(in crate::cli) format: BacktestFormat,
    /// Say what this config would tell differently; exit code 1 when a protected event loses its page.
    #[arg(long, value_name = "CONFIG")]
    pub(in crate::cli) against: Option<PathBuf>,
}

fn duration(text: &str) -> Result<Duration, String> {
    parse_duration(text).ok_or_else(|| "give whole numbers with units, such as 14d, 36h or 1h30m".to_owned())
}
