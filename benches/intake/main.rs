//! What Matins must hold, measured on real servers: intake beside the reference pipeline, the time from a publish to the
//! request at Slack, and how many pages a storm makes. A table for people, one JSON line for machines; exit code 1 when
//! a figure misses its mark. The machine is noisy, so intake is compared in turn (A B A B …) and only ratios count.

mod latency;
mod load;
mod report;
mod settings;
mod sink;
mod storm;
mod throughput;
mod world;
mod yardstick;

use anyhow::Context;
use clap::Parser;
use report::Report;
use std::path::PathBuf;
use std::process::ExitCode;
use tokio::signal::unix::{SignalKind, signal};

/// Measures what Matins must hold. Every part takes a minute or two; --only picks one.
#[derive(Parser, Debug)]
#[command(name = "intake")]
struct Options {
    /// Parts to run, with commas: intake, latency, storm.
    #[arg(long, value_delimiter = ',', default_values = ["intake", "latency", "storm"])]
    only: Vec<String>,
    /// Events of the intake comparison.
    #[arg(long, default_value_t = 300_000)]
    events: usize,
    /// Rounds of the intake comparison; each runs both sides.
    #[arg(long, default_value_t = 3)]
    rounds: usize,
    /// Pages whose way is timed, idle and under load each.
    #[arg(long, default_value_t = 600)]
    pages: usize,
    /// Events a second that flow while pages are timed under load.
    #[arg(long, default_value_t = 2_000)]
    load: usize,
    /// Failures of one cause: on a money workflow, and ten times as many on a standard one.
    #[arg(long, default_value_t = 10_000)]
    storm: usize,
    /// Folder with the source of the reference pipeline; absent, intake is measured alone.
    #[arg(long, env = "YARDSTICK_DIR", default_value = "../shared/yardstick")]
    yardstick: PathBuf,
    /// The binary that is measured.
    #[arg(long, default_value = env!("CARGO_BIN_EXE_matins"))]
    matins: PathBuf,
    /// Keep the folders with configs, logs and databases.
    #[arg(long)]
    keep: bool,
    /// What `cargo bench` passes to every bench.
    #[arg(long, hide = true)]
    bench: bool,
}

fn main() -> ExitCode {
    rustls::crypto::ring::default_provider().install_default().ok();
    match run(&Options::parse()) {
        Ok(report) => {
            println!("\n{}\n{}", report.table(), report.json());
            if report.holds() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
        }
        Err(error) => {
            eprintln!("\n{error:#}");
            ExitCode::FAILURE
        }
    }
}

/// A signal ends the measurement in good order: the servers that were started end with it.
fn run(options: &Options) -> anyhow::Result<Report> {
    let runtime =
        tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().context("runtime")?;
    runtime.block_on(async {
        let mut terminate = signal(SignalKind::terminate())?;
        let mut interrupt = signal(SignalKind::interrupt())?;
        tokio::select! {
            measured = measure(options) => measured,
            _ = terminate.recv() => anyhow::bail!("terminated"),
            _ = interrupt.recv() => anyhow::bail!("interrupted"),
        }
    })
}

async fn measure(options: &Options) -> anyhow::Result<Report> {
    let mut report = Report::default();
    for part in &options.only {
        match part.as_str() {
            "intake" => throughput::measure(options, &mut report).await?,
            "latency" => latency::measure(options, &mut report).await?,
            "storm" => storm::measure(options, &mut report).await?,
            other => anyhow::bail!("no part is called {other}: intake, latency, storm"),
        }
    }
    Ok(report)
}
