//! What can be typed: every command with its arguments. What a command does is in its own file.

mod backtest;
mod demo;
mod event;
mod slo;

pub(super) use backtest::{BacktestArgs, BacktestFormat};
pub(super) use demo::DemoArgs;
pub(super) use event::{EmitArgs, ExecArgs, Fallback};
pub(super) use slo::{Slo, SloTestArgs};

use super::logging::Voice;
use chrono::{DateTime, Utc};
use clap::{Args, Parser, Subcommand, ValueEnum};
use clap_complete::Shell;
use std::path::PathBuf;
use tokio::runtime::Builder;

/// Pages for money and compliance workflows, and a digest in the morning for everything else.
#[derive(Debug, Parser)]
#[command(name = "matins", version, propagate_version = true, max_term_width = 110)]
pub struct Cli {
    /// Which service the command talks to.
    #[command(flatten)]
    pub(in crate::cli) service: Service,
    /// What to do.
    #[command(subcommand)]
    pub(in crate::cli) command: Command,
}

/// Threads that run the service; work that blocks has its own.
const WORKERS: usize = 2;
/// Threads beside the one that plays: one reads ahead, the others compose. Each keeps memory of its own.
const PLAY_THREADS: usize = 4;

impl Cli {
    /// How it logs on stderr: the service more than a command, and the demo not at all, because it has a file for that.
    pub fn voice(&self) -> Option<Voice> {
        if matches!(self.command, Command::Demo(_)) {
            return None;
        }
        Some(if matches!(self.command, Command::Serve(_)) { Voice::Service } else { Voice::Command })
    }

    /// What it runs on: the service on threads of its own, a command on its one, and a backtest without anything that waits for sockets,
    /// which would take longer to wake up.
    pub fn runtime(&self) -> Builder {
        let mut builder = if matches!(self.command, Command::Serve(_) | Command::Demo(_)) {
            let mut threads = Builder::new_multi_thread();
            threads.worker_threads(WORKERS);
            threads
        } else {
            Builder::new_current_thread()
        };
        builder.enable_time();
        if matches!(self.command, Command::Backtest(_)) {
            builder.max_blocking_threads(PLAY_THREADS);
        } else {
            builder.enable_io();
        }
        builder
    }
}

/// The running service that a command talks to.
#[derive(Clone, Debug, Args)]
pub(in crate::cli) struct Service {
    /// Address of the running service.
    #[arg(long, env = "MATINS_URL", default_value = "http://127.0.0.1:8420", global = true, hide_env_values = true)]
    pub(in crate::cli) url: String,
    /// Token for its API.
    #[arg(long, env = "MATINS_TOKEN", global = true, hide_env_values = true)]
    pub(in crate::cli) token: Option<String>,
}

#[derive(Debug, Subcommand)]
pub(in crate::cli) enum Command {
    /// Run the service.
    Serve(ConfigFile),
    /// Say what is wrong with a config, and what it will do.
    Check(CheckArgs),
    /// Play recorded events in virtual time, and say what would have been told.
    Backtest(BacktestArgs),
    /// Try the objectives of a config: what would fire when.
    #[command(subcommand)]
    Slo(Slo),
    /// Say why an event is what it is, and who hears of it when.
    Explain(ExplainArgs),
    /// Play a night on loopback: failures come in, and what people would hear of them is shown.
    Demo(DemoArgs),
    /// Publish one event.
    Emit(Box<EmitArgs>),
    /// Run a command, report how it ended, keep its output and exit code.
    Exec(ExecArgs),
    /// Failed items that are kept until somebody deals with them.
    #[command(subcommand)]
    DeadLetters(DeadLetters),
    /// What was paged about.
    #[command(subcommand)]
    Incidents(Incidents),
    /// Digests: what one would say now, and what was told.
    #[command(subcommand)]
    Digest(Digest),
    /// What users of a pipeline would notice.
    #[command(subcommand)]
    Symptoms(Symptoms),
    /// What nobody is to be told for a while.
    #[command(subcommand)]
    Silences(Silences),
    /// Messages that could not be read.
    #[command(subcommand)]
    Quarantine(Quarantine),
    /// Messages to people, and what became of them.
    #[command(subcommand)]
    Outbox(Outbox),
    /// Who can be told.
    #[command(subcommand)]
    Receivers(Receivers),
    /// The words of messages.
    #[command(subcommand)]
    Templates(Templates),
    /// JSON Schema of matins.toml, for editors.
    ConfigSchema,
    /// Completions for a shell.
    Completions {
        /// The shell.
        shell: Shell,
    },
    /// Exit code 0 when the service lives, for containers.
    Healthcheck(HealthArgs),
}

#[derive(Debug, Args)]
pub(in crate::cli) struct ConfigFile {
    /// The config file.
    #[arg(long, env = "MATINS_CONFIG", default_value = "config/matins.toml")]
    pub(in crate::cli) config: PathBuf,
}

#[derive(Debug, Args)]
pub(in crate::cli) struct CheckArgs {
    #[command(flatten)]
    pub(in crate::cli) config: ConfigFile,
}

#[derive(Debug, Args)]
pub(in crate::cli) struct ExplainArgs {
    /// Id of an event that the service has stored.
    #[arg(long, value_name = "ID", required_unless_present = "file", conflicts_with = "file")]
    pub(in crate::cli) event: Option<String>,
    /// An event in a file; nothing is stored.
    #[arg(long, value_name = "FILE")]
    pub(in crate::cli) file: Option<PathBuf>,
    /// What would be decided then, RFC 3339.
    #[arg(long, value_name = "TIME")]
    pub(in crate::cli) at: Option<DateTime<Utc>>,
    /// As JSON.
    #[arg(long)]
    pub(in crate::cli) json: bool,
    /// The config that reads the file; config/matins.toml or matins.toml unless given.
    #[arg(long, env = "MATINS_CONFIG")]
    pub(in crate::cli) config: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub(in crate::cli) struct HealthArgs {
    /// Find the address in this config instead of --url.
    #[arg(long)]
    pub(in crate::cli) config: Option<PathBuf>,
    /// Also ask whether it takes events in.
    #[arg(long)]
    pub(in crate::cli) ready: bool,
}

/// How a list is shown.
#[derive(Debug, Args)]
pub(in crate::cli) struct ListArgs {
    /// All of it, as a JSON array.
    #[arg(long)]
    pub(in crate::cli) json: bool,
    /// Rows at most; newest first.
    #[arg(long, default_value_t = 50, value_parser = clap::value_parser!(u32).range(1..))]
    pub(in crate::cli) limit: u32,
}

/// Which one is shown.
#[derive(Debug, Args)]
pub(in crate::cli) struct ShowArgs {
    /// Its id.
    pub(in crate::cli) id: String,
    /// As JSON.
    #[arg(long)]
    pub(in crate::cli) json: bool,
}

/// Who acts.
#[derive(Debug, Args)]
pub(in crate::cli) struct Person {
    /// Your name, as others will read it.
    #[arg(long, env = "USER", hide_env = true)]
    pub(in crate::cli) by: Option<String>,
}

#[derive(Debug, Subcommand)]
pub(in crate::cli) enum DeadLetters {
    /// Newest first.
    List {
        #[command(flatten)]
        list: ListArgs,
        /// Only of this workflow.
        #[arg(long)]
        workflow: Option<String>,
        /// Only of this cause.
        #[arg(long)]
        fingerprint: Option<String>,
        /// Only of this incident.
        #[arg(long)]
        incident: Option<String>,
        /// Only those that are not resolved.
        #[arg(long)]
        open: bool,
    },
    /// One of them, whole.
    Show(ShowArgs),
    /// Say that one is dealt with.
    Resolve {
        /// Its id.
        id: String,
        /// What was done.
        #[arg(long)]
        note: Option<String>,
        #[command(flatten)]
        person: Person,
    },
}

#[derive(Debug, Subcommand)]
pub(in crate::cli) enum Incidents {
    /// Newest first.
    List(ListArgs),
    /// One of them, whole.
    Show(ShowArgs),
    /// Take one: reminders and escalations stop.
    Acknowledge {
        /// Its id.
        id: String,
        #[command(flatten)]
        person: Person,
    },
    /// End one, and tell all who were paged.
    Resolve {
        /// Its id.
        id: String,
        #[command(flatten)]
        person: Person,
    },
}

#[derive(Clone, Copy, Debug, ValueEnum)]
pub(in crate::cli) enum PreviewFormat {
    /// The text part of the mail.
    Text,
    /// The HTML part of the mail.
    Html,
    /// The mail as a file.
    Eml,
    /// JSON of the Slack message.
    Slack,
}

impl PreviewFormat {
    pub(in crate::cli) fn as_str(self) -> &'static str {
        match self {
            Self::Text => "text",
            Self::Html => "html",
            Self::Eml => "eml",
            Self::Slack => "slack",
        }
    }
}

#[derive(Debug, Subcommand)]
pub(in crate::cli) enum Digest {
    /// What one would say now; nothing is sent.
    Preview {
        /// Name of the digest.
        #[arg(long)]
        name: String,
        /// Whom for.
        #[arg(long)]
        receiver: String,
        /// End of the window, RFC 3339; the open window unless given.
        #[arg(long)]
        end: Option<DateTime<Utc>>,
        /// Form.
        #[arg(long, value_enum, default_value = "text")]
        format: PreviewFormat,
    },
    /// Newest first.
    List(ListArgs),
    /// One of them, with all that it was made from.
    Show(ShowArgs),
    /// Send one again, the same to the byte.
    Resend {
        /// Its id.
        id: String,
    },
}

#[derive(Debug, Subcommand)]
pub(in crate::cli) enum Symptoms {
    /// Those that fire.
    List(ListArgs),
}

#[derive(Debug, Subcommand)]
pub(in crate::cli) enum Silences {
    /// Make one.
    Add {
        /// What it hides, such as workflow=staging-* or label.team=ops; all must match.
        #[arg(long = "match", value_name = "KEY=GLOB", value_parser = pair, required = true)]
        matches: Vec<(String, String)>,
        /// How long, such as 2h.
        #[arg(long = "for", value_name = "TIME", required_unless_present = "until")]
        lasts: Option<String>,
        /// When it ends, RFC 3339.
        #[arg(long, conflicts_with = "lasts")]
        until: Option<DateTime<Utc>>,
        /// Why; digests show it.
        #[arg(long)]
        reason: String,
        /// Needed to hide money or compliance workflows; ends within 24 h.
        #[arg(long)]
        protected: bool,
        #[command(flatten)]
        person: Person,
    },
    /// Newest first, those that are over included.
    List(ListArgs),
    /// End one now.
    Expire {
        /// Its id, such as S-7.
        id: String,
    },
}

#[derive(Debug, Subcommand)]
pub(in crate::cli) enum Quarantine {
    /// Newest first.
    List(ListArgs),
    /// One of them, with its bytes.
    Show(ShowArgs),
}

#[derive(Debug, Subcommand)]
pub(in crate::cli) enum Outbox {
    /// Newest first.
    List(ListArgs),
    /// One of them, with what is sent.
    Show(ShowArgs),
    /// Send one again that is dead or unsure; mailboxes that have it are left out.
    Redrive {
        /// Its id.
        id: String,
    },
}

#[derive(Debug, Subcommand)]
pub(in crate::cli) enum Receivers {
    /// Send one a test message and wait for what becomes of it.
    Test {
        /// Its name in config.
        name: String,
    },
}

#[derive(Debug, Subcommand)]
pub(in crate::cli) enum Templates {
    /// Write the built-in templates into a folder, to change them there.
    Export {
        /// The folder.
        dir: PathBuf,
        /// Replace files that are there and say something else.
        #[arg(long)]
        force: bool,
    },
}

/// Reads `key=value`; the value may have more `=`.
fn pair(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((key, value)) if !key.trim().is_empty() => Ok((key.trim().to_owned(), value.to_owned())),
        Some(_) | None => Err("write it as key=value".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory as _;

    #[test]
    fn the_arguments_make_sense_together() {
        Cli::command().debug_assert();
    }

    #[test]
    fn an_unknown_command_or_a_missing_argument_is_wrong_usage() {
        for words in [&["no-such-command"][..], &["check", "--no-such-flag"], &["emit", "--message", "x"], &["exec"]] {
            let args = std::iter::once("matins").chain(words.iter().copied());
            let error = Cli::try_parse_from(args).expect_err("a refusal");
            assert_eq!(error.exit_code(), 2, "{words:?}");
        }
    }

    #[test]
    fn what_follows_the_dashes_is_the_command_as_it_is() {
        let cli = Cli::try_parse_from(["matins", "exec", "--workflow", "pay", "--", "sh", "-c", "exit 7", "--item"]);
        let Command::Exec(args) = cli.expect("arguments").command else { panic!("exec is expected") };
        assert_eq!(args.command, ["sh", "-c", "exit 7", "--item"]);
    }
}
