//! A whole Matins for a test: the real binary in a folder of its own, with everything that it talks to. A test says which messages it
//! expects; any other, and any message left unsettled, fails it at the end.

use super::nats::Nats;
use super::settings::Settings;
use super::slack::{Message, Slack};
use super::smtp::{Mail, Smtp};
use super::{PATIENCE, eventually, install_tls, signal};
use async_nats::HeaderMap;
use async_nats::jetstream::{self, consumer, stream};
use serde_json::{Value, json};
use sqlx::Connection;
use sqlx::sqlite::{SqliteConnectOptions, SqliteConnection};
use std::collections::BTreeMap;
use std::fs::{self, File};
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::Duration;
use tempfile::TempDir;

pub const STREAM: &str = "FAILURES";
pub const DURABLE: &str = "matins";

/// The service and its world. End with `end`; what is dropped before counts as failed.
pub struct App {
    pub nats: Nats,
    pub slack: Slack,
    pub smtp: Smtp,
    pub settings: Settings,
    pub js: jetstream::Context,
    pub http: reqwest::Client,
    dir: TempDir,
    process: Option<Child>,
    /// Messages that are in order, by path of Slack or mailbox: least and most.
    expected: BTreeMap<String, (usize, usize)>,
}

impl App {
    /// Servers are up, Matins is not.
    pub async fn new() -> Self {
        install_tls();
        let (nats, slack, smtp) = (Nats::start().await, Slack::start().await, Smtp::start().await);
        let settings = Settings {
            nats_url: nats.url().to_owned(),
            slack_url: slack.url(""),
            smtp_port: smtp.port,
            http_port: free_port(),
            digest_cron: "0 0 29 2 *",
            digest_to: r#"digest.daily = ["ops"]"#,
            page: "oncall",
            page_route: "",
            more: String::new(),
        };
        let options = async_nats::ConnectOptions::new().client_capacity(1 << 14).subscription_capacity(1 << 17);
        let js = jetstream::new(options.connect(nats.url()).await.unwrap());
        let http = reqwest::Client::builder().no_proxy().timeout(PATIENCE).build().unwrap();
        let dir = TempDir::new().unwrap();
        Self { nats, slack, smtp, settings, js, http, dir, process: None, expected: BTreeMap::new() }
    }

    /// Everything is up and intake works.
    pub async fn up() -> Self {
        let mut app = Self::new().await;
        app.start().await;
        app
    }

    // ------------------------------------------------------------------ the process

    pub fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    pub fn dir(&self) -> &Path {
        self.dir.path()
    }

    pub fn write_config(&self) {
        fs::write(self.path("matins.toml"), self.settings.text()).unwrap();
    }

    /// Writes the config and starts the process; it may not be ready yet.
    pub fn launch(&mut self) {
        assert!(self.process.is_none(), "it runs");
        self.write_config();
        self.process = Some(self.spawn("matins.toml", "log"));
    }

    /// A process in the same folder; its log is added to the file `log`.
    pub fn spawn(&self, config: &str, log: &str) -> Child {
        let log = File::options().create(true).append(true).open(self.path(log)).unwrap();
        Command::new(env!("CARGO_BIN_EXE_matins"))
            .args(["serve", "--config", config])
            .env("MATINS_LOG_FORMAT", "json")
            .env_remove("RUST_LOG")
            .current_dir(self.dir.path())
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(log)
            .spawn()
            .unwrap()
    }

    pub async fn start(&mut self) {
        self.launch();
        self.ready().await;
    }

    /// `kill -9`.
    pub fn kill(&mut self) {
        let mut process = self.process.take().unwrap();
        process.kill().unwrap();
        process.wait().unwrap();
    }

    pub fn hup(&self) {
        signal(self.process.as_ref().unwrap().id(), "HUP");
    }

    /// SIGTERM, and how it ended.
    pub async fn stop(&mut self) -> ExitStatus {
        let mut process = self.process.take().unwrap();
        signal(process.id(), "TERM");
        eventually("matins stops", async || process.try_wait().unwrap()).await
    }

    /// How it ends by itself.
    pub async fn exit_status(&mut self) -> ExitStatus {
        let mut process = self.process.take().unwrap();
        eventually("matins ends", async || process.try_wait().unwrap()).await
    }

    pub fn is_running(&mut self) -> bool {
        self.process.as_mut().is_some_and(|p| p.try_wait().unwrap().is_none())
    }

    pub fn log(&self) -> String {
        String::from_utf8_lossy(&fs::read(self.path("log")).unwrap_or_default()).into_owned()
    }

    // ------------------------------------------------------------------ NATS

    /// Makes the stream as Matins does, and its consumer, which is left as it is by Matins: what is not acked comes again after `ack_wait`.
    pub async fn prepare(&self, ack_wait: Duration) {
        let config = stream::Config {
            name: STREAM.to_owned(),
            subjects: vec!["failures.>".to_owned()],
            allow_direct: true,
            ..stream::Config::default()
        };
        let stream = self.js.create_stream(config).await.unwrap();
        let durable = consumer::pull::Config {
            durable_name: Some(DURABLE.to_owned()),
            ack_policy: consumer::AckPolicy::Explicit,
            ack_wait,
            max_ack_pending: 20_000,
            ..consumer::pull::Config::default()
        };
        stream.create_consumer(durable).await.unwrap();
    }

    /// Publishes, and tries again until JetStream has it: NATS may be away, or the stream not be there yet.
    pub async fn publish(&self, subject: &str, body: impl Into<bytes::Bytes>) {
        self.publish_with(subject, body, HeaderMap::new()).await;
    }

    pub async fn publish_with(&self, subject: &str, body: impl Into<bytes::Bytes>, headers: HeaderMap) {
        let body = body.into();
        eventually("JetStream takes a message", async || {
            let sent = self.js.publish_with_headers(subject.to_owned(), headers.clone(), body.clone()).await.ok()?;
            sent.await.ok()
        })
        .await;
    }

    /// Publishes a failure on its workflow's subject.
    pub async fn fail(&self, event: &Value) {
        self.publish(&subject(event), event.to_string()).await;
    }

    /// Publishes many at once, and waits until JetStream has them all.
    pub async fn fail_all(&self, events: impl IntoIterator<Item = Value>) {
        let before = self.last_sequence().await;
        let mut count = 0;
        let client = self.js.client();
        for event in events {
            client.publish(subject(&event), event.to_string().into()).await.unwrap();
            count += 1;
        }
        client.flush().await.unwrap();
        eventually("JetStream has them all", async || (self.last_sequence().await >= before + count).then_some(()))
            .await;
    }

    pub async fn last_sequence(&self) -> u64 {
        self.js.get_stream(STREAM).await.unwrap().cached_info().state.last_sequence
    }

    pub async fn consumer_info(&self) -> consumer::Info {
        let stream = self.js.get_stream(STREAM).await.unwrap();
        stream.consumer_info(DURABLE).await.unwrap()
    }

    // ------------------------------------------------------------------ HTTP

    pub fn url(&self, path: &str) -> String {
        format!("http://127.0.0.1:{}{path}", self.settings.http_port)
    }

    pub async fn get(&self, path: &str) -> reqwest::Result<reqwest::Response> {
        self.http.get(self.url(path)).send().await
    }

    /// Answer of the API.
    pub async fn api(&self, path: &str) -> Value {
        let answer = self.get(&format!("/api/v1{path}")).await.unwrap();
        assert_eq!(answer.status(), 200, "{path}");
        answer.json().await.unwrap()
    }

    /// All items of a list.
    pub async fn items(&self, path: &str) -> Vec<Value> {
        let (mut items, mut cursor) = (Vec::new(), String::new());
        loop {
            let page = self.api(&format!("{path}?limit=1000{cursor}")).await;
            items.extend(page["items"].as_array().unwrap().iter().cloned());
            match page["next"].as_str() {
                Some(next) => cursor = format!("&cursor={next}"),
                None => return items,
            }
        }
    }

    pub async fn post(&self, path: &str, body: &Value) -> Value {
        let answer = self.http.post(self.url(&format!("/api/v1{path}"))).json(body).send().await.unwrap();
        assert!(answer.status().is_success(), "{path}: {}", answer.text().await.unwrap());
        answer.json().await.unwrap()
    }

    /// `/readyz`: its status and its words; none while nobody listens.
    pub async fn readiness(&self) -> Option<(u16, String)> {
        let answer = self.get("/readyz").await.ok()?;
        Some((answer.status().as_u16(), answer.text().await.ok()?))
    }

    pub async fn ready(&mut self) {
        let ready = async || {
            assert!(self.is_running(), "matins ended:\n{}", self.log());
            self.readiness().await.filter(|(status, _)| *status == 200)
        };
        eventually("matins is ready", ready).await;
    }

    pub async fn not_ready(&self) -> String {
        eventually("matins is not ready", async || self.readiness().await.filter(|(status, _)| *status == 503)).await.1
    }

    pub async fn events(&self) -> u64 {
        self.api("/stats").await["events"].as_u64().unwrap()
    }

    /// Waits until so many events are stored; one more is a failure.
    pub async fn stored(&self, count: u64) {
        let stored = eventually("events are stored", async || Some(self.events().await).filter(|n| *n >= count));
        assert_eq!(stored.await, count, "stored events");
    }

    // ------------------------------------------------------------------ the store

    /// A connection to the database that only reads.
    pub async fn database(&self) -> SqliteConnection {
        let options = SqliteConnectOptions::new().filename(self.path("matins.db")).read_only(true);
        SqliteConnection::connect_with(&options).await.unwrap()
    }

    /// A connection that holds the database's one writer, until it says `ROLLBACK` or is dropped: nothing can be committed.
    pub async fn blocked(&self) -> SqliteConnection {
        let options =
            SqliteConnectOptions::new().filename(self.path("matins.db")).busy_timeout(Duration::from_secs(20));
        let mut writer = SqliteConnection::connect_with(&options).await.unwrap();
        sqlx::query("BEGIN IMMEDIATE").execute(&mut writer).await.unwrap();
        writer
    }

    /// One number from the database.
    pub async fn count(&self, sql: &'static str) -> i64 {
        let mut database = self.database().await;
        let (count,): (i64,) = sqlx::query_as(sql).fetch_one(&mut database).await.unwrap();
        count
    }

    // ------------------------------------------------------------------ messages

    /// Waits for the message number `nth` (from one) to a path of Slack. That many are in order from now on.
    pub async fn expect_slack(&mut self, path: &str, nth: usize) -> Message {
        self.expected.insert(path.to_owned(), (nth, nth));
        self.slack.expect(path, nth).await.remove(nth - 1)
    }

    /// As `expect_slack`, for a mailbox.
    pub async fn expect_mail(&mut self, to: &str, nth: usize) -> Mail {
        self.expected.insert(to.to_owned(), (nth, nth));
        self.smtp.expect(to, nth).await.remove(nth - 1)
    }

    /// So many messages to a path are in order.
    pub fn allow_slack(&mut self, path: &str, least: usize, most: usize) {
        self.expected.insert(path.to_owned(), (least, most));
    }

    /// Waits until every message is settled.
    pub async fn settled(&self) {
        let unsettled = async || {
            let outbox = self.items("/outbox").await;
            outbox.iter().all(|entry| entry["state"] != "pending").then_some(())
        };
        eventually("every message is settled", unsettled).await;
    }

    /// The end of a test: every message settled, and none that was not expected. It must still run.
    pub async fn end(mut self) {
        assert!(self.is_running(), "matins ended:\n{}", self.log());
        self.settled().await;
        let outbox = self.items("/outbox").await;
        let unsent: Vec<_> = outbox.iter().filter(|e| e["state"] != "sent").collect();
        assert!(unsent.is_empty(), "not sent: {unsent:?}");
        let mut came: BTreeMap<String, Vec<String>> = self.expected.keys().map(|to| (to.clone(), vec![])).collect();
        for message in self.slack.everything() {
            came.entry(message.path.clone()).or_default().push(message.words());
        }
        for mail in self.smtp.everything() {
            for to in mail.to {
                came.entry(to).or_default().push(mail.raw.clone());
            }
        }
        for (to, messages) in came {
            let (least, most) = self.expected.get(&to).copied().unwrap_or_default();
            assert!(
                (least..=most).contains(&messages.len()),
                "{least} to {most} messages to {to}, came: {messages:#?}"
            );
        }
        assert!(self.stop().await.success(), "matins did not end well:\n{}", self.log());
    }
}

impl Drop for App {
    fn drop(&mut self) {
        if let Some(mut process) = self.process.take() {
            // Whatever happens now, the test has its own failure to tell.
            let _ = process.kill();
            let _ = process.wait();
            if std::thread::panicking() {
                let log = self.log();
                let from = log.lines().count().saturating_sub(30);
                eprintln!("end of the log:\n{}", log.lines().skip(from).collect::<Vec<_>>().join("\n"));
            }
        }
    }
}

/// A final failure of an item, told by workflow and item.
pub fn failure(workflow: &str, item: &str, message: &str) -> Value {
    json!({
        "id": format!("{workflow}/{item}"),
        "workflow": workflow,
        "item": item,
        "error": { "http_status": 402, "message": message },
    })
}

fn subject(event: &Value) -> String {
    format!("failures.{}", event["workflow"].as_str().unwrap())
}

/// Below the range from which the system takes ports for outgoing lines, so that none is taken between two starts.
fn free_port() -> u16 {
    let from = 20_000 + (matins::clock::jitter() * 12_000.0) as u16;
    (from..32_700).find(|port| TcpListener::bind(("127.0.0.1", *port)).is_ok()).unwrap()
}
