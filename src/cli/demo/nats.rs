//! A `nats-server` of the demo's own: found, started on a free port of loopback, gone with the demo.

use super::wait_until;
use anyhow::{Context as _, bail};
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;
use tokio::process::{Child, Command};

/// Names a server that is used before all others.
const OVERRIDE: &str = "MATINS_NATS_SERVER";
const LOOK_EVERY: Duration = Duration::from_millis(10);

/// The server; killed when dropped.
pub struct NatsServer {
    /// Address of the server.
    pub url: String,
    child: Child,
}

impl NatsServer {
    /// Starts it with JetStream and log in `folder`, which is there.
    pub async fn start(folder: &Path) -> anyhow::Result<Self> {
        let named = std::env::var_os(OVERRIDE).filter(|name| !name.is_empty());
        let binary = find(named.map(PathBuf::from), std::env::var_os("PATH").as_deref())?;
        let log = folder.join("nats-server.log");
        let mut child = Command::new(&binary)
            .args(["-a", "127.0.0.1", "-p", "-1", "-js"])
            .arg("-sd")
            .arg(folder.join("jetstream"))
            .arg("--ports_file_dir")
            .arg(folder)
            .arg("-l")
            .arg(&log)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            // Ctrl-C is for the demo, which stops the service before the server.
            .process_group(0)
            .kill_on_drop(true)
            .spawn()
            .with_context(|| format!("{} can't be started", binary.display()))?;
        let ports = folder.join(format!("nats-server_{}.ports", child.id().unwrap_or_default()));
        let started = wait_until(wait_for_url(&mut child, &ports)).await;
        let url = started.with_context(|| format!("nats-server did not start; see {}", log.display()))?;
        let url = url.with_context(|| format!("nats-server ended at once; it said: {}", last_line(&log)))?;
        Ok(Self { url, child })
    }

    /// Ends it, and waits until it is gone.
    pub async fn stop(mut self) -> anyhow::Result<()> {
        Ok(self.child.kill().await?)
    }
}

/// The address that the server writes down once it listens.
async fn wait_for_url(child: &mut Child, ports: &Path) -> anyhow::Result<String> {
    loop {
        if let Some(url) = read_url(ports) {
            return Ok(url);
        }
        if let Some(status) = child.try_wait()? {
            bail!("{status}");
        }
        tokio::time::sleep(LOOK_EVERY).await;
    }
}

fn read_url(ports: &Path) -> Option<String> {
    let ports: Value = serde_json::from_slice(&std::fs::read(ports).ok()?).ok()?;
    Some(ports["nats"][0].as_str()?.to_owned())
}

fn last_line(log: &Path) -> String {
    let text = std::fs::read_to_string(log).unwrap_or_default();
    text.lines().last().unwrap_or("nothing").to_owned()
}

/// The one that is named, else the first on the path, where `make` puts one, or where Debian has it.
fn find(named: Option<PathBuf>, path: Option<&std::ffi::OsStr>) -> anyhow::Result<PathBuf> {
    if let Some(named) = named {
        anyhow::ensure!(named.is_file(), "{OVERRIDE} names {}, which is no file", named.display());
        return Ok(named);
    }
    let folders = path.map(|path| std::env::split_paths(path).collect::<Vec<_>>()).unwrap_or_default();
    let others = ["target/tools", "/usr/sbin", "/usr/local/sbin"].map(PathBuf::from);
    let found = folders.into_iter().chain(others).map(|f| f.join("nats-server")).find(|file| file.is_file());
    found.context(
        "nats-server is not installed. `make demo` installs it; or get it from https://nats.io/download or your \
         distribution, or name it in MATINS_NATS_SERVER",
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_named_server_comes_first_and_must_be_there() {
        let folder = tempfile::tempdir().unwrap();
        let server = folder.path().join("nats-server");
        std::fs::write(&server, "").unwrap();
        assert_eq!(find(Some(server.clone()), None).unwrap(), server);
        assert_eq!(find(None, Some(folder.path().as_os_str())).unwrap(), server);
        let missing = find(Some(folder.path().join("other")), None).unwrap_err().to_string();
        assert!(missing.contains("MATINS_NATS_SERVER"), "{missing}");
    }

    #[tokio::test]
    async fn a_server_that_ends_at_once_is_said_with_its_words() {
        let folder = tempfile::tempdir().unwrap();
        // A file where the folder of JetStream should be.
        std::fs::write(folder.path().join("jetstream"), "").unwrap();
        let error = NatsServer::start(folder.path()).await.map(|_| ()).unwrap_err();
        let error = format!("{error:#}");
        assert!(error.contains("ended at once") && error.contains("it said:"), "{error}");
    }
}
