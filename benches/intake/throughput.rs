//! Intake: the same stored messages taken in by the reference pipeline and by Matins, in turn. Both are timed from the
//! start of the process until the server has the ack of the last message; both commit before they ack.

use crate::report::{Mark, Report, median};
use crate::world::{Measured, World};
use crate::{Options, load, yardstick};
use anyhow::ensure;
use matins::clock;
use std::path::Path;
use std::time::Duration;

/// The floor against the reference, and the ceiling of resident memory in megabytes.
const RATIO_MIN: f64 = 0.8;
const MEMORY_MAX_MB: f64 = 120.0;

/// One side of the comparison.
#[derive(Default)]
struct Side {
    rates: Vec<f64>,
    memory_mb: f64,
}

impl Side {
    fn take(&mut self, events: usize, took: Duration, process: &Measured) {
        let rate = events as f64 / took.as_secs_f64();
        println!("{rate:.0} events/s, {:.0} MB", process.memory_mb());
        self.rates.push(rate);
        self.memory_mb = self.memory_mb.max(process.memory_mb());
    }
}

/// Runs all rounds.
///
/// # Errors
/// When a server fails, or a side did not take in every event once.
pub async fn measure(options: &Options, report: &mut Report) -> anyhow::Result<()> {
    let reference = yardstick::build(options).await?;
    let world = World::start(options.keep).await?;
    println!("publishing {} mixed events …", options.events);
    let start_ms = clock::now().timestamp_millis() - 3_600_000;
    let spread = |index: usize| start_ms + (index as i64 * 3_600_000) / options.events as i64;
    load::publish(&world.js, (0..options.events).map(|index| load::mixed(7, index, spread(index)))).await?;
    let (mut theirs, mut ours) = (Side::default(), Side::default());
    for round in 1..=options.rounds {
        if let Some(binary) = &reference {
            run_reference(&world, binary, round, options.events, &mut theirs).await?;
        }
        run_matins(&world, &options.matins, round, options.events, &mut ours).await?;
    }
    tell(report, &theirs, &ours);
    Ok(())
}

async fn run_reference(
    world: &World,
    binary: &Path,
    round: usize,
    events: usize,
    side: &mut Side,
) -> anyhow::Result<()> {
    print!("round {round}, reference: ");
    world.forget(yardstick::DURABLE).await;
    let began = clock::instant();
    let mut process = yardstick::start(world, binary, &format!("reference-{round}"), events)?;
    let took = world.drained(yardstick::DURABLE, &mut process, began).await?;
    side.take(events, took, &process);
    process.child.wait().await?;
    let said = process.stdout();
    ensure!(said.contains(&format!("\"inserted\":{events},")), "the reference did not insert every event: {said}");
    world.forget(yardstick::DURABLE).await;
    Ok(())
}

async fn run_matins(world: &World, binary: &Path, round: usize, events: usize, side: &mut Side) -> anyhow::Result<()> {
    print!("round {round}, matins:    ");
    world.forget("matins").await;
    let began = clock::instant();
    let mut process = world.start_matins(binary, &format!("matins-{round}"))?;
    let took = world.drained("matins", &mut process, began).await?;
    process.note_memory();
    side.take(events, took, &process);
    let stored = process.stat("events").await?;
    ensure!(stored == events as u64, "matins has {stored} events of {events}; its log: {}", process.log_end());
    process.stop().await?;
    world.forget("matins").await;
    Ok(())
}

fn tell(report: &mut Report, theirs: &Side, ours: &Side) {
    report.note("intake, matins", median(&ours.rates), "events/s");
    if !theirs.rates.is_empty() {
        report.note("intake, reference", median(&theirs.rates), "events/s");
        let ratios: Vec<f64> = ours.rates.iter().zip(&theirs.rates).map(|(our, their)| our / their).collect();
        report.note("intake, worst round", ratios.iter().copied().fold(f64::INFINITY, f64::min), "ratio");
        let ratio = median(&ours.rates) / median(&theirs.rates);
        report.judge("intake, of the medians", ratio, "ratio", Mark::AtLeast(RATIO_MIN));
        report.note("memory, reference", theirs.memory_mb, "MB");
    }
    report.judge("memory, matins", ours.memory_mb, "MB", Mark::Under(MEMORY_MAX_MB));
}
