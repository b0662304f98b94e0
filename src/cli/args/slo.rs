//! Arguments of `slo`.

use super::ConfigFile;
use clap::{Args, Subcommand};

#[derive(Debug, Subcommand)]
pub(in crate::cli) enum Slo {
    /// Play outages, slow burns, single failures and silence with each workflow's own rules and traffic, in virtual time, and
    /// say when each tier would fire and clear; then check the program against the vectors of its specification. Exit code 1
    /// when one does not hold.
    Test(SloTestArgs),
}

#[derive(Debug, Args)]
pub(in crate::cli) struct SloTestArgs {
    #[command(flatten)]
    pub(in crate::cli) config: ConfigFile,
    /// Only this workflow; all that have an slo unless given.
    #[arg(long)]
    pub(in crate::cli) workflow: Option<String>,
}
