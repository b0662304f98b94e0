//! A year in virtual time: `matins backtest` over a file of a million events of 200 workflows with hourly, daily and weekly digests, twice.
//! Prints seconds and memory, and exits with 1 when a mark is missed or the two outputs differ by a byte.
//! `cargo bench --bench year`; `-- --events 100000` plays a part of the year of the same density.

use serde_json::{Value, json};
use std::fmt::Write as _;
use std::fs::File;
use std::io::{BufWriter, Read as _, Write as _};
use std::path::Path;
use std::process::{Command, ExitCode, Stdio};
use std::time::Instant;

const EVENTS: u64 = 1_000_000;
const WORKFLOWS: u64 = 200;
const YEAR_MS: u64 = 365 * 86_400_000;
/// 1 Jan 2026.
const START_MS: u64 = 1_767_225_600_000;
/// Marks for a whole year.
const SECONDS_MAX: f64 = 60.0;
const MEMORY_MAX_MB: u64 = 300;

/// Ops read hourly, daily and weekly; each workflow has one of ten owners, who read daily; every twentieth is about money.
fn config() -> String {
    let mut text = r#"
[smtp]
host = "127.0.0.1"
from = "Matins <matins@example.com>"
[receivers.oncall]
kind = "file"
dir = "out"
fallback = "ops"
[receivers.ops]
kind = "slack"
webhook_url = "http://127.0.0.1:1/x"
[receivers.owner]
kind = "email"
to = "owner"
[digests.hourly]
cron = "0 * * * *"
[digests.daily]
cron = "0 10 * * *"
[digests.weekly]
cron = "0 10 * * MON"
[[routes]]
name = "protected"
match = { domain = ["money"] }
page = ["oncall"]
digest.daily = ["owner"]
continue = true
[[routes]]
name = "everything"
match = {}
digest.hourly = ["ops"]
digest.daily = ["ops", "owner"]
digest.weekly = ["ops"]
"#
    .to_owned();
    for n in 0..WORKFLOWS {
        let domain = if n.is_multiple_of(20) { "money" } else { "standard" };
        let owner = n % 10;
        let _ = write!(
            text,
            "[[workflows]]\nname = \"wf-{n:03}\"\ndomain = \"{domain}\"\nowner = \"O{owner} <o{owner}@example.com>\"\n"
        );
    }
    text
}

/// Numbers that look random and are the same each time.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % sides
    }
}

/// Outcomes, retried failures, recoveries, failed items, and half of these resolved later.
fn write_events(path: &Path, count: u64) -> std::io::Result<()> {
    let mut out = BufWriter::new(File::create(path)?);
    let (mut dice, mut failed) = (Dice(7), Vec::new());
    for n in 0..count {
        let workflow = format!("wf-{:03}", dice.roll(WORKFLOWS));
        let mut event =
            json!({"id": format!("e{n}"), "workflow": workflow, "occurred_at": START_MS + n * (YEAR_MS / EVENTS)});
        let mut add = |more: Value| {
            if let (Value::Object(event), Value::Object(more)) = (&mut event, more) {
                event.extend(more);
            }
        };
        match dice.roll(100) {
            0..45 => add(json!({"type": "outcome", "ok": 20, "failed": 0})),
            45..75 => {
                let message = format!("timeout after {} ms on request {n}", dice.roll(9_999));
                let downstream = format!("d{}", dice.roll(20));
                add(json!({"step": "call", "attempt": 1, "max_attempts": 4, "downstream": downstream,
                    "error": {"type": "Timeout", "http_status": 503, "message": message}}));
            }
            75..85 => add(json!({"type": "recovery", "strategy": "retry", "took_ms": 900, "attempt": 2})),
            85..95 => {
                let message = format!("row {n} is bad: field {}", n % 13);
                add(json!({"step": "write", "item": format!("i{n}"), "payload": {"row": n, "text": "x".repeat(60)},
                    "error": {"type": format!("E{}", n % 7), "http_status": 422, "message": message}}));
                failed.push((workflow, n));
            }
            _ if failed.is_empty() => {}
            _ => {
                let which = usize::try_from(dice.roll(failed.len() as u64)).unwrap_or(0);
                let (workflow, item) = failed.swap_remove(which);
                add(
                    json!({"type": "resolution", "workflow": workflow, "item": format!("i{item}"), "note": "done", "by": "asha"}),
                );
            }
        }
        writeln!(out, "{event}")?;
    }
    out.flush()
}

/// What one run came to.
struct Run {
    seconds: f64,
    memory_mb: u64,
    /// Hash and length of what was printed.
    printed: (u64, usize),
}

#[allow(clippy::disallowed_methods, reason = "a benchmark reads the clock")]
fn play(config: &Path, events: &Path) -> std::io::Result<Run> {
    let began = Instant::now();
    let mut child = Command::new(env!("CARGO_BIN_EXE_matins"))
        .args(["backtest", "--format", "ndjson", "--config"])
        .arg(config)
        .arg("--events")
        .arg(events)
        .stdout(Stdio::piped())
        .spawn()?;
    let status = format!("/proc/{}/status", child.id());
    let (mut printed, mut length, mut memory_mb) = (0xcbf2_9ce4_8422_2325_u64, 0, 0);
    let mut buffer = vec![0; 1 << 16];
    if let Some(out) = &mut child.stdout {
        loop {
            // Read before the end of the process takes it away; the highest so far is what it says.
            memory_mb = peak_mb(&status).unwrap_or(memory_mb);
            let count = out.read(&mut buffer)?;
            if count == 0 {
                break;
            }
            length += count;
            for byte in &buffer[..count] {
                printed = (printed ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
            }
        }
    }
    if !child.wait()?.success() {
        return Err(std::io::Error::other("the backtest failed"));
    }
    Ok(Run { seconds: began.elapsed().as_secs_f64(), memory_mb, printed: (printed, length) })
}

fn peak_mb(status: &str) -> Option<u64> {
    let text = std::fs::read_to_string(status).ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    Some(line.trim().trim_end_matches(" kB").trim().parse::<u64>().ok()? / 1_024)
}

fn measure(count: u64) -> std::io::Result<bool> {
    let folder = tempfile::tempdir()?;
    let (config_path, events) = (folder.path().join("matins.toml"), folder.path().join("year.ndjson"));
    std::fs::write(&config_path, config())?;
    write_events(&events, count)?;
    let runs = [play(&config_path, &events)?, play(&config_path, &events)?];
    for run in &runs {
        let (seconds, memory, printed) = (run.seconds, run.memory_mb, run.printed.1 / 1_000_000);
        println!("year: {count} events in {seconds:.1} s, {memory} MB at most, {printed} MB printed");
    }
    let is_same = runs[0].printed == runs[1].printed;
    println!("year: the two outputs are {}", if is_same { "the same to the byte" } else { "DIFFERENT" });
    let part = count as f64 / EVENTS as f64;
    let is_fast = runs.iter().all(|r| r.seconds <= SECONDS_MAX * part && r.memory_mb <= MEMORY_MAX_MB);
    println!(
        "year: mark {:.0} s and {MEMORY_MAX_MB} MB: {}",
        SECONDS_MAX * part,
        if is_fast { "met" } else { "MISSED" }
    );
    Ok(is_same && is_fast)
}

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().collect();
    let asked = args.iter().position(|a| a == "--events").and_then(|at| args.get(at + 1)?.parse().ok());
    match measure(asked.unwrap_or(EVENTS)) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("year: {error}");
            ExitCode::FAILURE
        }
    }
}
