//! Storms: ten thousand failures of one cause on a money workflow are one page, ten times as many on a standard one
//! are none.

use crate::report::{Mark, Report};
use crate::settings::money_name;
use crate::world::{Measured, World};
use crate::{Options, load};
use anyhow::ensure;
use matins::clock;
use std::time::Duration;

/// How long after the last ack a message too many is waited for.
const SETTLE: Duration = Duration::from_secs(5);

/// Runs both storms.
///
/// # Errors
/// When a server fails or an event is not stored.
pub async fn measure(options: &Options, report: &mut Report) -> anyhow::Result<()> {
    let world = World::start(options.keep).await?;
    let mut matins = world.start_matins(&options.matins, "storm")?;
    matins.ready().await?;
    let many = options.storm * 10;
    println!("{many} failures of one cause on a standard workflow …");
    rage(&world, &mut matins, &load::workflow_name(0), 19, many).await?;
    report.judge("pages of a standard storm", world.sink.hits("/page/").len() as f64, "", Mark::Exactly(0.0));
    println!("{} failures of one cause on a money workflow …", options.storm);
    rage(&world, &mut matins, &money_name(0), 23, options.storm).await?;
    report.judge("pages of a money storm", world.sink.hits("/page/").len() as f64, "", Mark::Exactly(1.0));
    let stored = matins.stat("events").await?;
    ensure!(stored == (many + options.storm) as u64, "matins has {stored} events of {}", many + options.storm);
    matins.stop().await
}

async fn rage(world: &World, matins: &mut Measured, workflow: &str, seed: u64, count: usize) -> anyhow::Result<()> {
    let began = clock::instant();
    let at_ms = clock::now().timestamp_millis();
    let event = |index| load::dead_letter(seed, index, workflow, "capture", "card declined by the bank", at_ms);
    load::publish(&world.js, (0..count).map(event)).await?;
    let took = world.drained("matins", matins, began).await?;
    println!("  taken in {:.1} s after the first publish", took.as_secs_f64());
    tokio::time::sleep(SETTLE).await;
    Ok(())
}
