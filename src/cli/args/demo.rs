//! What the demo can be asked.

use crate::cli::demo::DemoOptions;
use clap::Args;
use std::net::SocketAddr;
use std::path::PathBuf;

#[derive(Debug, Args)]
pub(in crate::cli) struct DemoArgs {
    /// Stay up for so many seconds after the night was played; 0 is until Ctrl-C.
    #[arg(long, value_name = "N")]
    seconds: Option<u64>,
    /// Where mails, config and log are written; a new folder for temporary files unless given.
    #[arg(long, value_name = "DIR")]
    folder: Option<PathBuf>,
    /// Address of the service; the usual one, or any that is free, unless given.
    #[arg(long, value_name = "ADDRESS")]
    listen: Option<SocketAddr>,
}

impl From<DemoArgs> for DemoOptions {
    fn from(args: DemoArgs) -> Self {
        Self { seconds: args.seconds, folder: args.folder, listen: args.listen }
    }
}
