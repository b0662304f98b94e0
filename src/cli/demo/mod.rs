//! `matins demo`: the whole system on loopback, a night of failures, and what people hear of it. The system is in `world`, the
//! night in `night`, what is told of it in `story`. Rules of the field have no place here: the service itself does it all.

mod blocks;
mod inbox;
mod mail;
mod mrkdwn;
mod nats;
mod night;
mod report;
mod screen;
mod story;
#[cfg(test)]
mod tests;
mod world;

use anyhow::Context as _;
use screen::{Screen, Style};
use std::io::{IsTerminal as _, Write};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;
use tokio::signal::unix::{SignalKind, signal};
use tokio_util::sync::CancellationToken;
use world::World;

/// Longest wait for anything that must happen.
const PATIENCE: Duration = Duration::from_secs(30);

/// What can be asked of the demo.
#[derive(Clone, Debug, Default)]
pub struct DemoOptions {
    /// How long everything stays up after the night was played, in seconds; 0 is until Ctrl-C, none not at all.
    pub seconds: Option<u64>,
    /// Where mails, config and log are written; a new folder for temporary files unless given.
    pub folder: Option<PathBuf>,
    /// Address of the service; the usual one, or any that is free, unless given.
    pub listen: Option<SocketAddr>,
}

/// Plays the demo on stdout. Exit code 0 when it was played or stopped by a signal, 1 when it failed.
pub async fn run(options: DemoOptions) -> ExitCode {
    let mut out = std::io::stdout();
    let is_terminal = out.is_terminal();
    let style = Style { colour: is_terminal && wants_colour(), live: is_terminal };
    match play_until_signal(&options, style, &mut out).await {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("matins demo: {error:#}");
            ExitCode::FAILURE
        }
    }
}

/// <https://no-color.org>, and terminals that can't.
fn wants_colour() -> bool {
    std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty())
        && std::env::var_os("TERM").is_none_or(|term| term != "dumb")
}

async fn play_until_signal(options: &DemoOptions, style: Style, out: &mut (dyn Write + Send)) -> anyhow::Result<()> {
    let (mut terminate, mut interrupt) = (signal(SignalKind::terminate())?, signal(SignalKind::interrupt())?);
    let stop = CancellationToken::new();
    let asked = async {
        tokio::select! {
            _ = terminate.recv() => {}
            _ = interrupt.recv() => {}
        }
        stop.cancel();
        std::future::pending().await
    };
    tokio::select! {
        played = play(options, style, out, &stop) => played,
        () = asked => Ok(()),
    }
}

/// Plays the demo on `out`, up to its end or `stop`; then everything that was started is stopped.
async fn play(
    options: &DemoOptions,
    style: Style,
    out: &mut (dyn Write + Send),
    stop: &CancellationToken,
) -> anyhow::Result<()> {
    let mut screen = Screen::new(out, style);
    screen.heading("MATINS DEMO", "a night on loopback; nothing leaves this machine")?;
    let opened = tokio::select! {
        world = World::open(options, &mut screen) => world,
        () = stop.cancelled() => return Ok(()),
    };
    let mut world = opened?;
    let told = tokio::select! {
        told = story::tell(&mut world, options, &mut screen) => told,
        () = stop.cancelled() => screen.say("Stopping.").map_err(Into::into),
    };
    let closed = world.close().await;
    told.and(closed)
}

/// What comes of `what`, unless it takes too long.
async fn wait_until<T>(what: impl Future<Output = T>) -> anyhow::Result<T> {
    let waited = tokio::time::timeout(PATIENCE, what).await;
    waited.with_context(|| format!("waited in vain for {} s", PATIENCE.as_secs()))
}
