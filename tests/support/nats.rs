//! A real `nats-server` with JetStream in a folder of its own, that can be killed and started again at the same address.

use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use tempfile::TempDir;

/// The server; killed when dropped.
pub struct Nats {
    dir: TempDir,
    child: Option<Child>,
    url: String,
}

impl Nats {
    pub async fn start() -> Self {
        let dir = TempDir::new().unwrap();
        let mut nats = Self { dir, child: None, url: String::new() };
        nats.launch("-1").await;
        nats
    }

    pub fn url(&self) -> &str {
        &self.url
    }

    /// `kill -9`; what it has stored stays.
    pub fn kill(&mut self) {
        if let Some(mut child) = self.child.take() {
            child.kill().unwrap();
            child.wait().unwrap();
        }
    }

    /// Stops it from answering without closing a line, until `thaw`.
    pub fn freeze(&self) {
        super::signal(self.child.as_ref().unwrap().id(), "STOP");
    }

    /// Lets it go on.
    pub fn thaw(&self) {
        super::signal(self.child.as_ref().unwrap().id(), "CONT");
    }

    /// Starts it again at the same address, with what it had stored.
    pub async fn restart(&mut self) {
        self.kill();
        let port = self.url.rsplit(':').next().unwrap().to_owned();
        self.launch(&port).await;
    }

    async fn launch(&mut self, port: &str) {
        let dir = self.dir.path();
        let child = Command::new(binary())
            .args(["-a", "127.0.0.1", "-p", port, "-js"])
            .arg("-sd")
            .arg(dir.join("js"))
            .arg("--ports_file_dir")
            .arg(dir)
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .expect("nats-server is installed");
        let ports = dir.join(format!("nats-server_{}.ports", child.id()));
        self.child = Some(child);
        self.url = super::eventually("nats-server is up", async || read_url(&ports)).await;
    }
}

impl Drop for Nats {
    fn drop(&mut self) {
        self.kill();
    }
}

fn read_url(ports: &Path) -> Option<String> {
    let ports: Value = serde_json::from_slice(&std::fs::read(ports).ok()?).ok()?;
    Some(ports["nats"][0].as_str()?.to_owned())
}

/// `make` puts a server that it had to fetch into target/tools; Debian keeps its own outside of a user's PATH.
fn binary() -> PathBuf {
    let fetched = Path::new(env!("CARGO_MANIFEST_DIR")).join("target/tools/nats-server");
    let places = [fetched, PathBuf::from("/usr/sbin/nats-server")];
    places.into_iter().find(|p| p.exists()).unwrap_or_else(|| PathBuf::from("nats-server"))
}
