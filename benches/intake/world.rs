//! The servers: a `nats-server` of our own with its stream, and the programs that are measured, each in its own folder.

use crate::settings;
use crate::sink::Sink;
use anyhow::{Context, bail};
use async_nats::jetstream::{self, consumer, stream};
use matins::clock;
use std::ffi::OsString;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::{Duration, Instant};
use tempfile::TempDir;
use tokio::process::{Child, Command};

/// Stream and durable consumer, as the contract names them.
pub const STREAM: &str = "FAILURES";

/// A `nats-server` on loopback with an empty stream; ends when dropped.
pub struct World {
    folder: TempDir,
    _server: Child,
    pub url: String,
    pub js: jetstream::Context,
    pub sink: Sink,
}

impl World {
    /// Starts server, stream and sink.
    ///
    /// # Errors
    /// When the server is missing or does not start.
    pub async fn start(keep: bool) -> anyhow::Result<Self> {
        let mut folder = tempfile::Builder::new().prefix("matins-bench-").tempdir().context("a folder")?;
        folder.disable_cleanup(keep);
        if keep {
            println!("kept: {}", folder.path().display());
        }
        let mut server = start_server(folder.path())?;
        let url = find_address(folder.path(), &mut server).await?;
        let client = async_nats::ConnectOptions::new()
            .client_capacity(1 << 14)
            .subscription_capacity(1 << 18)
            .connect(&url)
            .await
            .context("nats-server does not answer")?;
        let js = jetstream::new(client);
        create_stream(&js).await?;
        Ok(Self { folder, _server: server, url, js, sink: Sink::start().await? })
    }

    /// A new folder under this world's.
    ///
    /// # Errors
    /// When it can't be made.
    pub fn folder(&self, name: &str) -> anyhow::Result<PathBuf> {
        let path = self.folder.path().join(name);
        fs::create_dir_all(&path).with_context(|| path.display().to_string())?;
        Ok(path)
    }

    /// Starts Matins with the full config in a folder of its own; it may not be ready yet.
    ///
    /// # Errors
    /// When it can't be started.
    pub fn start_matins(&self, binary: &Path, name: &str) -> anyhow::Result<Measured> {
        let (folder, port) = (self.folder(name)?, free_port()?);
        fs::write(folder.join("matins.toml"), settings::full(&self.url, port, &self.sink))?;
        let mut command = Command::new(binary);
        command.args(["serve", "--config", "matins.toml"]).env("MATINS_LOG_FORMAT", "json");
        Measured::start(command, &folder, Some(port))
    }

    /// Waits until a durable consumer has had every message of the stream acked, and says how long after `since`.
    ///
    /// # Errors
    /// When the measured process ends before, or ten minutes pass.
    pub async fn drained(&self, durable: &str, process: &mut Measured, since: Instant) -> anyhow::Result<Duration> {
        loop {
            let settled = self.is_drained(durable).await;
            let took = since.elapsed();
            process.note_memory();
            if settled {
                return Ok(took);
            }
            if let Some(status) = process.child.try_wait()? {
                // The reference ends by itself, with its last acks still on their way.
                let ended = *process.ended.get_or_insert_with(clock::instant);
                if !status.success() || ended.elapsed() > Duration::from_secs(5) {
                    bail!("{durable} ended with {status}; its log: {}", process.log_end());
                }
            }
            if took > Duration::from_secs(600) {
                bail!("{durable} is not through after ten minutes; its log: {}", process.log_end());
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    }

    async fn is_drained(&self, durable: &str) -> bool {
        let info = self.js.get_consumer_from_stream::<consumer::pull::Config, _, _>(durable, STREAM).await;
        info.is_ok_and(|found| {
            let state = found.cached_info();
            state.delivered.stream_sequence > 0 && state.num_pending == 0 && state.num_ack_pending == 0
        })
    }

    /// Takes a consumer away, so that the next one starts from the first message.
    pub async fn forget(&self, durable: &str) {
        // Not there yet in the first round.
        self.js.delete_consumer_from_stream(durable, STREAM).await.ok();
    }
}

/// A process under measurement; ends when dropped.
pub struct Measured {
    pub child: Child,
    folder: PathBuf,
    port: Option<u16>,
    memory_kib: u64,
    ended: Option<Instant>,
}

impl Measured {
    /// Starts a command in `folder`; its output goes to files there.
    ///
    /// # Errors
    /// When it can't be started.
    pub fn start(mut command: Command, folder: &Path, port: Option<u16>) -> anyhow::Result<Self> {
        command.current_dir(folder).stdin(Stdio::null()).kill_on_drop(true);
        command.stdout(File::create(folder.join("stdout"))?).stderr(File::create(folder.join("stderr"))?);
        let child = command.spawn().with_context(|| format!("{:?}", command.as_std().get_program()))?;
        Ok(Self { child, folder: folder.to_owned(), port, memory_kib: 0, ended: None })
    }

    /// Reads the peak of resident memory so far; a process that has ended keeps what was read last.
    pub fn note_memory(&mut self) {
        let Some(pid) = self.child.id() else { return };
        let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
        let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
        let kib = peak.and_then(|text| text.trim().trim_end_matches(" kB").parse().ok());
        self.memory_kib = self.memory_kib.max(kib.unwrap_or(0));
    }

    /// Peak of resident memory, in megabytes (10^6 bytes).
    pub fn memory_mb(&self) -> f64 {
        self.memory_kib as f64 * 1_024.0 / 1e6
    }

    /// What it printed.
    pub fn stdout(&self) -> String {
        fs::read_to_string(self.folder.join("stdout")).unwrap_or_default()
    }

    /// The last lines of its log.
    pub fn log_end(&self) -> String {
        let log = fs::read_to_string(self.folder.join("stderr")).unwrap_or_default();
        let lines: Vec<&str> = log.lines().collect();
        lines[lines.len().saturating_sub(8)..].join("\n")
    }

    /// Waits until `/readyz` says yes.
    ///
    /// # Errors
    /// When it ends before, or half a minute passes.
    pub async fn ready(&mut self) -> anyhow::Result<()> {
        let client = reqwest::Client::builder().no_proxy().build()?;
        let url = format!("http://127.0.0.1:{}/readyz", self.port.unwrap_or_default());
        let began = clock::instant();
        loop {
            if client.get(&url).send().await.is_ok_and(|answer| answer.status().is_success()) {
                return Ok(());
            }
            if self.child.try_wait()?.is_some() || began.elapsed() > Duration::from_secs(30) {
                bail!("matins did not get ready; its log: {}", self.log_end());
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    }

    /// The number `field` of `/api/v1/stats`.
    ///
    /// # Errors
    /// When there is no such answer.
    pub async fn stat(&self, field: &str) -> anyhow::Result<u64> {
        let client = reqwest::Client::builder().no_proxy().build()?;
        let url = format!("http://127.0.0.1:{}/api/v1/stats", self.port.unwrap_or_default());
        let stats: serde_json::Value = client.get(url).send().await?.error_for_status()?.json().await?;
        stats[field].as_u64().with_context(|| format!("no {field} in {stats}"))
    }

    /// Ends it and waits until it is gone.
    ///
    /// # Errors
    /// When the system refuses.
    pub async fn stop(&mut self) -> anyhow::Result<()> {
        self.note_memory();
        self.child.kill().await.context("stop")
    }
}

fn start_server(folder: &Path) -> anyhow::Result<Child> {
    let program = std::env::var_os("NATS_SERVER").unwrap_or_else(|| OsString::from("nats-server"));
    let mut command = Command::new(&program);
    command.args(["-a", "127.0.0.1", "-p", "-1", "-js", "-sd"]).arg(folder.join("jetstream"));
    command.arg("--ports_file_dir").arg(folder).arg("-l").arg(folder.join("nats.log"));
    command.stdin(Stdio::null()).kill_on_drop(true);
    command.spawn().with_context(|| format!("{} is missing: make bench installs it", program.display()))
}

/// The server writes the port that it got into a file, a moment after its start.
async fn find_address(folder: &Path, server: &mut Child) -> anyhow::Result<String> {
    let ports = folder.join(format!("nats-server_{}.ports", server.id().context("nats-server ended")?));
    for _ in 0..200 {
        if let Ok(text) = fs::read_to_string(&ports)
            && let Ok(found) = serde_json::from_str::<serde_json::Value>(&text)
            && let Some(url) = found["nats"][0].as_str()
        {
            return Ok(url.to_owned());
        }
        if server.try_wait()?.is_some() {
            break;
        }
        tokio::time::sleep(Duration::from_millis(25)).await;
    }
    bail!("nats-server did not start: see {}", folder.join("nats.log").display())
}

/// The stream as Matins would make it.
async fn create_stream(js: &jetstream::Context) -> anyhow::Result<()> {
    let config = stream::Config {
        name: STREAM.to_owned(),
        subjects: vec!["failures.>".to_owned()],
        storage: stream::StorageType::File,
        max_age: Duration::from_secs(14 * 86_400),
        max_bytes: 1 << 30,
        discard: stream::DiscardPolicy::Old,
        allow_direct: true,
        ..stream::Config::default()
    };
    js.create_stream(config).await.context("the stream can't be made")?;
    Ok(())
}

fn free_port() -> anyhow::Result<u16> {
    let listener = std::net::TcpListener::bind(("127.0.0.1", 0)).context("a free port")?;
    Ok(listener.local_addr()?.port())
}
