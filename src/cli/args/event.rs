//! Arguments of the commands that report something.

use clap::Args;
use std::ffi::OsString;
use std::path::PathBuf;

/// Where an event goes when the service is away.
#[derive(Clone, Debug, Args)]
pub(in crate::cli) struct Fallback {
    /// Config whose NATS is used when the service is away.
    #[arg(long, env = "MATINS_CONFIG")]
    pub(in crate::cli) config: Option<PathBuf>,
    /// NATS server that is used when the service is away and no config is given.
    #[arg(long, env = "MATINS_NATS_URL", default_value = "nats://127.0.0.1:4222", hide_env_values = true)]
    pub(in crate::cli) nats: String,
}

#[derive(Debug, Args)]
pub(in crate::cli) struct EmitArgs {
    /// The pipeline.
    #[arg(long)]
    pub(in crate::cli) workflow: String,
    /// failure, recovery, outcome, heartbeat, resolution or breaker.
    #[arg(long = "type", value_name = "TYPE")]
    pub(in crate::cli) event_type: Option<String>,
    /// Kind of fault; inferred when it is not given.
    #[arg(long)]
    pub(in crate::cli) class: Option<String>,
    /// retrying, dead_lettered, failed or skipped.
    #[arg(long)]
    pub(in crate::cli) disposition: Option<String>,
    /// Step that failed.
    #[arg(long)]
    pub(in crate::cli) step: Option<String>,
    /// Business key of what failed, such as invoice-1041.
    #[arg(long)]
    pub(in crate::cli) item: Option<String>,
    /// What went wrong, in words.
    #[arg(long)]
    pub(in crate::cli) message: Option<String>,
    /// Type of the error.
    #[arg(long)]
    pub(in crate::cli) error_type: Option<String>,
    /// Code of the error.
    #[arg(long)]
    pub(in crate::cli) code: Option<String>,
    /// HTTP status of the answer.
    #[arg(long)]
    pub(in crate::cli) http_status: Option<u16>,
    /// Dependency that failed.
    #[arg(long)]
    pub(in crate::cli) downstream: Option<String>,
    /// Which try this was, from 1.
    #[arg(long)]
    pub(in crate::cli) attempt: Option<u32>,
    /// Tries that there are.
    #[arg(long)]
    pub(in crate::cli) max_attempts: Option<u32>,
    /// The pipeline's own run.
    #[arg(long)]
    pub(in crate::cli) run_id: Option<String>,
    /// Idempotency key; a random one unless given.
    #[arg(long)]
    pub(in crate::cli) id: Option<String>,
    /// When it happened, RFC 3339 or Unix time; now unless given.
    #[arg(long)]
    pub(in crate::cli) at: Option<String>,
    /// Good runs, of an outcome.
    #[arg(long)]
    pub(in crate::cli) ok: Option<u64>,
    /// Failed runs, of an outcome.
    #[arg(long)]
    pub(in crate::cli) failed: Option<u64>,
    /// ok, degraded or unhealthy, of a heartbeat.
    #[arg(long)]
    pub(in crate::cli) status: Option<String>,
    /// What was done, of a resolution.
    #[arg(long)]
    pub(in crate::cli) note: Option<String>,
    /// For routing; may be given several times.
    #[arg(long = "label", value_name = "KEY=VALUE", value_parser = super::pair)]
    pub(in crate::cli) labels: Vec<(String, String)>,
    /// Shown in pages and digests; may be given several times.
    #[arg(long = "link", value_name = "NAME=URL", value_parser = super::pair)]
    pub(in crate::cli) links: Vec<(String, String)>,
    #[command(flatten)]
    pub(in crate::cli) fallback: Fallback,
}

#[derive(Debug, Args)]
pub(in crate::cli) struct ExecArgs {
    /// The pipeline.
    #[arg(long)]
    pub(in crate::cli) workflow: String,
    /// Business key of what is worked on; a failure is then kept as a dead letter.
    #[arg(long)]
    pub(in crate::cli) item: Option<String>,
    /// Step of the pipeline.
    #[arg(long)]
    pub(in crate::cli) step: Option<String>,
    /// Kind of fault when it fails; inferred when it is not given.
    #[arg(long)]
    pub(in crate::cli) class: Option<String>,
    #[command(flatten)]
    pub(in crate::cli) fallback: Fallback,
    /// Command and arguments.
    #[arg(last = true, required = true, value_name = "CMD")]
    pub(in crate::cli) command: Vec<OsString>,
}
