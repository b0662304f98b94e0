//! The commands, one file each. Rules live in the rooms that the commands ask; commands that act talk to a running service.

mod args;
mod backtest;
pub mod check;
mod client;
pub mod config_schema;
mod dead_letters;
pub mod demo;
mod digest;
mod emit;
mod exec;
mod explain;
mod healthcheck;
mod incidents;
mod list;
pub mod logging;
mod outbox;
mod quarantine;
mod receivers;
mod report;
mod silences;
mod slo;
mod symptoms;
mod table;
mod templates;

pub use args::Cli;

use crate::app;
use crate::clock;
use crate::config::{self, Config};
use crate::digest::digest_samples;
use crate::render::{self, Renderer};
use args::{CheckArgs, Command, Service};
use clap::CommandFactory as _;
use client::Client;
use std::io;
use std::process::ExitCode;

/// Exit code of wrong usage or a wrong config.
const USAGE: u8 = 2;

/// Why a command did not do what it was asked.
#[derive(Debug)]
enum Failure {
    /// It was asked in a way that can't be right; exit code 2.
    Usage(String),
    /// It was tried and did not work; exit code 1.
    Failed(anyhow::Error),
}

impl<E: Into<anyhow::Error>> From<E> for Failure {
    fn from(error: E) -> Self {
        Self::Failed(error.into())
    }
}

/// Runs one command. Exit codes: 0 done, 1 it failed, 2 usage or config.
pub async fn run(cli: Cli) -> ExitCode {
    match dispatch(cli).await {
        Ok(code) => code,
        Err(Failure::Usage(why)) => {
            eprintln!("matins: {why}");
            ExitCode::from(USAGE)
        }
        // Whoever reads a list may have seen enough.
        Err(Failure::Failed(error)) if is_broken_pipe(&error) => ExitCode::SUCCESS,
        Err(Failure::Failed(error)) => {
            eprintln!("matins: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn is_broken_pipe(error: &anyhow::Error) -> bool {
    error.downcast_ref::<io::Error>().is_some_and(|e| e.kind() == io::ErrorKind::BrokenPipe)
}

async fn dispatch(cli: Cli) -> Result<ExitCode, Failure> {
    let service = cli.service;
    match cli.command {
        Command::Serve(args) => return Ok(app::serve(&args.config).await),
        Command::Check(args) => return Ok(check(&args)),
        Command::Demo(args) => return Ok(demo::run(args.into()).await),
        Command::ConfigSchema => return Ok(config_schema::run(&mut io::stdout())),
        Command::Backtest(args) => return backtest::run(args).await,
        Command::Slo(command) => return slo::run(command),
        Command::Exec(args) => return exec::run(&service, args).await,
        Command::Emit(args) => emit::run(&service, *args).await?,
        Command::Explain(args) => explain::run(&service, args).await?,
        Command::Completions { shell } => {
            // Generating straight to a pipe that nobody reads on would panic.
            let mut script = Vec::new();
            clap_complete::generate(shell, &mut Cli::command(), "matins", &mut script);
            io::Write::write_all(&mut io::stdout(), &script)?;
        }
        Command::Templates(command) => templates::run(&command)?,
        Command::Healthcheck(args) => healthcheck::run(&service, &args).await?,
        Command::DeadLetters(command) => dead_letters::run(&client(&service)?, command).await?,
        Command::Incidents(command) => incidents::run(&client(&service)?, command).await?,
        Command::Silences(command) => silences::run(&client(&service)?, command).await?,
        Command::Quarantine(command) => quarantine::run(&client(&service)?, command).await?,
        Command::Symptoms(command) => symptoms::run(&client(&service)?, command).await?,
        Command::Outbox(command) => outbox::run(&client(&service)?, command).await?,
        Command::Digest(command) => digest::run(&client(&service)?, command).await?,
        Command::Receivers(command) => receivers::run(&client(&service)?, command).await?,
    }
    Ok(ExitCode::SUCCESS)
}

fn client(service: &Service) -> Result<Client, Failure> {
    Client::new(service)
}

fn check(args: &CheckArgs) -> ExitCode {
    let check = check::Check {
        path: &args.config.config,
        env: &config::environment,
        now: clock::now(),
        template_problems: &template_problems,
    };
    check::run(&check, &mut io::stdout(), &mut io::stderr())
}

/// What is wrong with the templates of a config, tried with every sample.
fn template_problems(config: &Config) -> Vec<String> {
    let overrides = config.templates_dir.as_deref().map(app::read_templates).unwrap_or_default();
    let (renderer, mut problems) = Renderer::new(&overrides);
    let samples: Vec<_> = render::page_samples().into_iter().chain(digest_samples()).collect();
    problems.extend(renderer.check(&samples));
    problems.iter().map(ToString::to_string).collect()
}
