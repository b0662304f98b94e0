//! From the publish of a money failure to the request at Slack. Each probe is a new incident, so each is a page; probes
//! go round 60 workflows with a channel each, because a channel gets one message a second.

use crate::report::{Mark, Report, percentile};
use crate::settings::{PAGERS, money_name};
use crate::world::World;
use crate::{Options, load};
use anyhow::{Context, ensure};
use matins::clock;
use std::collections::BTreeMap;
use std::time::{Duration, Instant};
use tokio::time::MissedTickBehavior;

/// Time between two probes: 60 channels, so one sees a message every 3 s.
const PROBE_EVERY: Duration = Duration::from_millis(50);
/// How often the load comes, in pieces.
const LOAD_EVERY: Duration = Duration::from_millis(10);
/// Ceilings of the 99th percentile, in milliseconds.
const IDLE_MAX_MS: f64 = 10.0;
const LOADED_MAX_MS: f64 = 50.0;
/// Probes before those that count: first connections to receivers, cold caches.
const WARM_UP: usize = PAGERS;

/// Measures idle, then while the load flows.
///
/// # Errors
/// When a server fails or a page is missing.
pub async fn measure(options: &Options, report: &mut Report) -> anyhow::Result<()> {
    let world = World::start(options.keep).await?;
    let mut matins = world.start_matins(&options.matins, "latency")?;
    matins.ready().await?;
    println!("timing {} pages, idle …", options.pages);
    let idle = probe(&world, "idle", options.pages).await.with_context(|| matins.log_end())?;
    println!("timing {} pages while {} events/s flow …", options.pages, options.load);
    let flow = tokio::spawn(flow(world.js.clone(), options.load));
    let loaded = probe(&world, "load", options.pages).await.with_context(|| matins.log_end())?;
    ensure!(!flow.is_finished(), "the load stopped: {:?}", flow.await);
    flow.abort();
    matins.stop().await?;
    report.note("page idle, p50", percentile(&idle, 0.5), "ms");
    report.judge("page idle, p99", percentile(&idle, 0.99), "ms", Mark::Under(IDLE_MAX_MS));
    report.note("page under load, p50", percentile(&loaded, 0.5), "ms");
    report.judge("page under load, p99", percentile(&loaded, 0.99), "ms", Mark::Under(LOADED_MAX_MS));
    Ok(())
}

/// Publishes probes on the beat, and returns the milliseconds that each took to its page.
async fn probe(world: &World, phase: &str, pages: usize) -> anyhow::Result<Vec<f64>> {
    let mut beat = tokio::time::interval(PROBE_EVERY);
    beat.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut sent: BTreeMap<String, Instant> = BTreeMap::new();
    for index in 0..WARM_UP + pages {
        beat.tick().await;
        let name = format!("probe-{phase}-{index:06}");
        let text = format!("card declined by {name}");
        let workflow = money_name(index % PAGERS);
        let seed = if phase == "idle" { 11 } else { 13 };
        let message = load::dead_letter(seed, index, &workflow, &name, &text, clock::now().timestamp_millis());
        let at = clock::instant();
        load::send(&world.js, message).await?.await.context("the stream did not store a probe")?;
        if index >= WARM_UP {
            sent.insert(name, at);
        }
    }
    arrivals(world, &sent).await
}

async fn arrivals(world: &World, sent: &BTreeMap<String, Instant>) -> anyhow::Result<Vec<f64>> {
    let began = clock::instant();
    loop {
        let found = match_hits(world, sent);
        if found.len() == sent.len() {
            return Ok(found.into_values().collect());
        }
        ensure!(began.elapsed() < Duration::from_secs(20), "{} of {} probes became a page", found.len(), sent.len());
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
}

/// The first page that names each probe.
fn match_hits(world: &World, sent: &BTreeMap<String, Instant>) -> BTreeMap<String, f64> {
    let mut found = BTreeMap::new();
    for hit in world.sink.hits("/page/") {
        let body = String::from_utf8_lossy(&hit.body).into_owned();
        let names = body.match_indices("probe-").filter_map(|(at, _)| body.get(at..at + "probe-idle-000000".len()));
        for (name, began) in names.filter_map(|name| sent.get_key_value(name)) {
            found.entry(name.clone()).or_insert_with(|| hit.at.duration_since(*began).as_secs_f64() * 1e3);
        }
    }
    found
}

/// Publishes standard events at a steady rate until it is aborted.
async fn flow(js: async_nats::jetstream::Context, rate: usize) -> anyhow::Result<()> {
    let mut beat = tokio::time::interval(LOAD_EVERY);
    let each = (rate as f64 * LOAD_EVERY.as_secs_f64()).ceil() as usize;
    for index in 0_usize.. {
        beat.tick().await;
        let now = clock::now().timestamp_millis();
        load::publish(&js, (0..each).map(|piece| load::mixed(17, index * each + piece, now))).await?;
    }
    Ok(())
}
