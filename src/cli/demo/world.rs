//! The whole system on loopback: server, receivers, config, service; and its orderly end.

use super::inbox::Inbox;
use super::nats::NatsServer;
use super::night::ZONE;
use super::screen::Screen;
use super::{DemoOptions, wait_until};
use crate::app;
use crate::clock;
use crate::ingest::health::Readiness;
use crate::ingest::jetstream;
use crate::live::Shared;
use anyhow::Context as _;
use chrono::{DateTime, Timelike, Utc};
use std::fs;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use tokio::net::TcpListener;

/// Where the command line looks for a service that it is not told of.
const USUAL: &str = "127.0.0.1:8420";
/// What the server keeps; gone with it.
const SERVER: &str = "nats-server";
const DATABASE: &str = "matins.db";
const TEMPLATE: &str = include_str!("matins.toml");

/// What runs.
pub struct World {
    /// Where everything is written.
    pub folder: PathBuf,
    /// Address of API and health.
    pub http: SocketAddr,
    /// What people would get.
    pub inbox: Inbox,
    /// Publishes as a pipeline does.
    pub pipeline: async_nats::Client,
    /// Address of the server.
    pub nats_url: String,
    nats: NatsServer,
    service: app::Service,
}

impl World {
    /// Starts everything, and shows what has started.
    pub async fn open(options: &DemoOptions, screen: &mut Screen<'_>) -> anyhow::Result<Self> {
        let folder = make_folder(options)?;
        log_to(&folder.join("matins.log"))?;
        fs::create_dir_all(folder.join(SERVER))?;
        let nats = NatsServer::start(&folder.join(SERVER)).await?;
        screen.done("nats-server, with JetStream", &nats.url)?;
        let inbox = Inbox::open().await?;
        screen.done("a Slack, drawn here", &format!("http://{}", inbox.slack))?;
        screen.done("a mail server", &format!("{}, mails in {}", inbox.smtp, file_url(&folder.join("mails"))))?;
        let listener = listen(options).await?;
        let http = listener.local_addr()?;
        let config = folder.join("matins.toml");
        fs::write(&config, config_text(&folder, &nats.url, http, &inbox, clock::now()))?;
        screen.done("a config: 9 workflows, 4 of them money or compliance", &config.display().to_string())?;
        let began_at = clock::instant();
        let service = app::start(&config, listener).await?;
        let mut readiness = service.shared().readiness.clone();
        let is_ready = wait_until(readiness.wait_for(|state| *state == Readiness::Ready)).await;
        is_ready.with_context(|| format!("Matins did not become ready; see {}/matins.log", folder.display()))??;
        let took_ms = clock::instant().duration_since(began_at).as_millis();
        screen.done(&format!("Matins, ready after {took_ms} ms"), &format!("http://{http}/healthz"))?;
        let pipeline = async_nats::connect(&nats.url).await?;
        Ok(Self { folder, http, inbox, pipeline, nats_url: nats.url.clone(), nats, service })
    }

    /// What the tasks of the service share.
    pub fn shared(&self) -> &Arc<Shared> {
        self.service.shared()
    }

    /// Messages of the stream that are not acked yet. An ack says that all that follows from a message is committed.
    pub async fn unacked(&self) -> anyhow::Result<u64> {
        let settings = &self.shared().live.load().config.nats;
        let context = jetstream::context(&self.pipeline);
        let consumer: async_nats::jetstream::consumer::PullConsumer =
            context.get_consumer_from_stream(&settings.durable, &settings.stream).await?;
        let info = consumer.cached_info();
        Ok(info.num_pending + info.num_ack_pending as u64)
    }

    /// Stops the service, then the server; mails, config and log stay.
    pub async fn close(self) -> anyhow::Result<()> {
        self.service.stop().await;
        self.nats.stop().await?;
        fs::remove_dir_all(self.folder.join(SERVER))?;
        Ok(())
    }
}

/// A path as a browser takes it.
pub fn file_url(path: &Path) -> String {
    url::Url::from_file_path(path).map_or_else(|()| path.display().to_string(), String::from)
}

fn make_folder(options: &DemoOptions) -> anyhow::Result<PathBuf> {
    let folder = options.folder.clone().unwrap_or_else(|| {
        let now = clock::now().format("%Y%m%d-%H%M%S");
        std::env::temp_dir().join(format!("matins-demo-{now}-{}", std::process::id()))
    });
    let folder = std::path::absolute(folder)?;
    // The events of the night would be known already.
    anyhow::ensure!(!folder.join(DATABASE).exists(), "{} holds a demo that was played; name another", folder.display());
    let mails = folder.join("mails");
    fs::create_dir_all(&mails).with_context(|| format!("{} can't be made", mails.display()))?;
    Ok(folder)
}

/// Log lines go to a file: the screen is for what people get.
fn log_to(path: &Path) -> anyhow::Result<()> {
    let file = fs::File::create(path).with_context(|| format!("{} can't be written", path.display()))?;
    let log = tracing_subscriber::fmt().with_ansi(false).with_writer(Mutex::new(file));
    // A second demo in one process logs to the file of the first.
    drop(log.try_init());
    Ok(())
}

/// The usual port when it is free, so that the other commands find the service.
async fn listen(options: &DemoOptions) -> anyhow::Result<TcpListener> {
    let wanted = options.listen.map_or_else(|| USUAL.to_owned(), |address| address.to_string());
    match TcpListener::bind(&wanted).await {
        Ok(listener) => Ok(listener),
        Err(_) => Ok(TcpListener::bind("127.0.0.1:0").await?),
    }
}

fn config_text(folder: &Path, nats: &str, http: SocketAddr, inbox: &Inbox, now: DateTime<Utc>) -> String {
    let store = format!("sqlite://{}/{DATABASE}", folder.display()).replace("${", "$${");
    TEMPLATE
        .replace("\"@STORE@\"", &toml::Value::String(store).to_string())
        .replace("@NATS@", nats)
        .replace("@HTTP@", &http.to_string())
        .replace("@SMTP@", &inbox.smtp.port().to_string())
        .replace("@SLACK@", &inbox.slack.to_string())
        .replace("@DAILY@", daily_cron(now))
}

/// At ten, or half an hour later when ten would fall into the demo: the digest is shown before it is due.
fn daily_cron(now: DateTime<Utc>) -> &'static str {
    let local = now.with_timezone(&ZONE);
    if local.hour() == 9 && local.minute() >= 50 { "30 10 * * *" } else { "0 10 * * *" }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn the_config_of_the_demo_is_good_wherever_its_folder_is() {
        let folder = tempfile::tempdir().unwrap();
        let odd = folder.path().join("a \"quoted\" ${folder} \\");
        fs::create_dir(&odd).unwrap();
        let inbox = Inbox::open().await.unwrap();
        let http = "127.0.0.1:8420".parse().unwrap();
        let text = config_text(&odd, "nats://127.0.0.1:4222", http, &inbox, DateTime::UNIX_EPOCH);
        let path = odd.join("matins.toml");
        fs::write(&path, &text).unwrap();
        let loaded = crate::config::load(&path, &|_| None, DateTime::UNIX_EPOCH).unwrap();
        let is_place = |part: &str| !part.is_empty() && part.chars().all(|c| c.is_ascii_uppercase());
        assert!(!text.split('@').any(is_place), "a place was not filled in:\n{text}");
        assert_eq!(loaded.config.workflows.iter().count(), 9);
        assert_eq!(loaded.config.workflows.iter().filter(|w| w.domain.is_protected()).count(), 4);
    }

    #[test]
    fn a_folder_that_holds_a_demo_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let options = DemoOptions { folder: Some(folder.path().to_owned()), ..DemoOptions::default() };
        assert!(make_folder(&options).is_ok());
        fs::write(folder.path().join(DATABASE), "").unwrap();
        assert!(make_folder(&options).unwrap_err().to_string().contains("name another"));
    }

    #[test]
    fn the_digest_is_not_due_while_it_is_shown() {
        let cron = |text: &str| daily_cron(text.parse().unwrap());
        assert_eq!(cron("2026-11-18T09:55:00+05:30"), "30 10 * * *");
        assert_eq!(cron("2026-11-18T10:00:00+05:30"), "0 10 * * *");
    }
}
