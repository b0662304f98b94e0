//! Changes of config: SIGHUP, `POST /api/v1/reload`, and the files themselves. A bad file keeps the old config and is told to the operator.

use super::compile::{self, CompileError};
use crate::clock;
use crate::deliver::DeliverySettings;
use crate::live::{Live, Shared};
use crate::outbox::queue;
use crate::render::{OperatorFacts, Parts};
use crate::store::{StoreError, silences};
use crate::web;
use notify::{RecursiveMode, Watcher as _};
use secrecy::ExposeSecret as _;
use std::collections::BTreeSet;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::{mpsc, oneshot, watch};
use tokio_util::sync::CancellationToken;
use tracing::{error, info, warn};

/// Editors write in several steps; a change counts when it has been quiet for so long.
const SETTLE: Duration = Duration::from_millis(500);

type Reply = oneshot::Sender<Result<(), String>>;

/// Reloads whenever asked, until `stop`.
pub async fn run(
    path: PathBuf,
    files: Vec<PathBuf>,
    shared: Arc<Shared>,
    delivery: watch::Sender<Arc<DeliverySettings>>,
    mut asked: mpsc::Receiver<Reply>,
    stop: CancellationToken,
) {
    let Ok(mut hangup) = signal(SignalKind::hangup()) else {
        error!("SIGHUP can't be listened to");
        return;
    };
    let (changed, mut changes) = mpsc::channel(1);
    let templates = template_texts(&shared.live.load());
    let mut reloader = Reloader { path, files, templates, shared, delivery, told: None };
    // Kept for as long as it is to watch: dropping it ends the watch.
    let mut watcher = reloader.watch(&changed);
    loop {
        let outcome = tokio::select! {
            _ = hangup.recv() => reloader.reload("SIGHUP", None).await,
            Some(reply) = asked.recv() => reloader.reload("API", Some(reply)).await,
            Some(()) = changes.recv() => {
                tokio::time::sleep(SETTLE).await;
                while changes.try_recv().is_ok() {}
                reloader.reload_if_changed().await
            }
            () = stop.cancelled() => return,
        };
        match outcome {
            // A new config may have other files.
            ReloadOutcome::Reloaded => watcher = reloader.watch(&changed),
            ReloadOutcome::KeptOld => {}
        }
        tracing::trace!(watching = watcher.is_some(), "reload looked at");
    }
}

/// What became of a wish to reload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ReloadOutcome {
    /// A new version is in force.
    Reloaded,
    /// Nothing changed, or the new version is wrong.
    KeptOld,
}

fn template_texts(live: &Live) -> Vec<(String, String)> {
    live.config.templates_dir.as_deref().map(compile::read_templates).unwrap_or_default()
}

/// What a change has to touch to count. The folder of a config often holds the database and logs too, which change all the time.
#[derive(Clone, Debug)]
struct Watched {
    names: BTreeSet<OsString>,
    templates: Option<PathBuf>,
}

impl Watched {
    fn concerns(&self, path: &Path) -> bool {
        let Some(name) = path.file_name() else { return false };
        // Orchestrators swap a link of this name in place of the files behind it.
        let is_swap = name.to_str().is_some_and(|n| n.starts_with("..data"));
        is_swap || self.names.contains(name) || self.templates.as_deref().is_some_and(|folder| path.starts_with(folder))
    }
}

/// Watches the folders of the files: editors and orchestrators replace a file rather than write it.
fn watch_files(files: &[PathBuf], live: &Live, changed: mpsc::Sender<()>) -> Option<notify::RecommendedWatcher> {
    let templates = live.config.templates_dir.as_deref().and_then(|dir| dir.canonicalize().ok());
    let names = files.iter().filter_map(|f| f.file_name()).map(ToOwned::to_owned).collect();
    let watched = Watched { names, templates: templates.clone() };
    let handler = move |event: notify::Result<notify::Event>| {
        let counts = event.is_ok_and(|e| !e.kind.is_access() && e.paths.iter().any(|p| watched.concerns(p)));
        if counts {
            // A full channel means that a change is being looked at already.
            let _ = changed.try_send(());
        }
    };
    let mut watcher = notify::recommended_watcher(handler)
        .inspect_err(|error| warn!(%error, "config files can't be watched; use SIGHUP"))
        .ok()?;
    let folders: BTreeSet<&Path> = files.iter().filter_map(|f| f.parent()).collect();
    for folder in folders {
        let folder = if folder.as_os_str().is_empty() { Path::new(".") } else { folder };
        if let Err(error) = watcher.watch(folder, RecursiveMode::NonRecursive) {
            warn!(%error, "{} can't be watched; use SIGHUP", folder.display());
        }
    }
    if let Some(folder) = &templates
        && let Err(error) = watcher.watch(folder, RecursiveMode::Recursive)
    {
        warn!(%error, "{} can't be watched; use SIGHUP", folder.display());
    }
    Some(watcher)
}

struct Reloader {
    path: PathBuf,
    files: Vec<PathBuf>,
    /// Texts of the templates in force.
    templates: Vec<(String, String)>,
    shared: Arc<Shared>,
    delivery: watch::Sender<Arc<DeliverySettings>>,
    /// What the operator was last told, so that one bad file is one message.
    told: Option<String>,
}

impl Reloader {
    fn watch(&self, changed: &mpsc::Sender<()>) -> Option<notify::RecommendedWatcher> {
        watch_files(&self.files, &self.shared.live.load(), changed.clone())
    }

    async fn reload_if_changed(&mut self) -> ReloadOutcome {
        let live = self.shared.live.load_full();
        match compile::load(&self.path) {
            Ok(loaded) if loaded.config.version == live.config.version && template_texts(&live) == self.templates => {
                ReloadOutcome::KeptOld
            }
            Ok(_) | Err(_) => self.reload("a file changed", None).await,
        }
    }

    async fn reload(&mut self, why: &str, reply: Option<Reply>) -> ReloadOutcome {
        let result = self.try_reload().await;
        self.shared.metrics.set_reload(result.is_ok());
        let (outcome, answer) = match result {
            Ok(version) => {
                info!(why, version, "config reloaded");
                self.told = None;
                (ReloadOutcome::Reloaded, Ok(()))
            }
            Err(problem) => {
                let problem = problem.to_string();
                error!(why, "the config was not reloaded, the old one stays:\n{problem}");
                self.tell_operator(&problem).await;
                (ReloadOutcome::KeptOld, Err(problem))
            }
        };
        if let Some(reply) = reply {
            // Whoever asked may have gone away.
            let _ = reply.send(answer);
        }
        outcome
    }

    async fn try_reload(&mut self) -> Result<String, CompileError> {
        let loaded = compile::load(&self.path)?;
        let files = loaded.files.clone();
        let active = silences::active(self.shared.store.reader(), clock::now()).await?;
        warn_of_what_needs_a_restart(&self.shared.live.load(), &loaded.config);
        let (live, _) = compile::compile(loaded, active, &self.shared.keys, Parts::All);
        let version = live.config.version.clone();
        self.files = files;
        self.templates = template_texts(&live);
        self.delivery.send_replace(Arc::new(DeliverySettings::from(&*live.config)));
        self.shared.live.store(Arc::new(live));
        // One that a person added while this config was compiled is not in it yet.
        web::refresh_silences(&self.shared, clock::now()).await?;
        Ok(version)
    }

    async fn tell_operator(&mut self, problem: &str) {
        if self.told.as_deref() == Some(problem) {
            return;
        }
        match self.enqueue_news(problem).await {
            Ok(()) => {
                self.told = Some(problem.to_owned());
                self.shared.outbox_wake.notify_one();
            }
            Err(error) => error!(%error, "the operator could not be told of the bad config"),
        }
    }

    async fn enqueue_news(&self, problem: &str) -> Result<(), StoreError> {
        let live = self.shared.live.load_full();
        let now = clock::now();
        let mut tx = self.shared.store.begin().await?;
        let facts = OperatorFacts {
            number: queue::next_numbers(&mut tx, 1).await?,
            is_test: false,
            title: "The config could not be reloaded".to_owned(),
            what: format!("The old config stays in force. {problem}"),
            action: Some("Mend the file; check it with: matins check".to_owned()),
            url: None,
            now,
            zone: live.announcer.zone(),
        };
        for receiver in operators(&live) {
            if let Some(entry) = live.announcer.operator(&receiver, &facts) {
                queue::enqueue(&mut tx, &entry).await?;
            }
        }
        tx.commit().await?;
        Ok(())
    }
}

/// Whom to tell about the service: `[operator] to`; without it the page receivers, because somebody has to know.
pub(super) fn operators(live: &Live) -> Vec<crate::name::ReceiverName> {
    if !live.config.operator.is_empty() {
        return live.config.operator.iter().take(1).cloned().collect();
    }
    let paged = live.config.routes.iter().flat_map(|r| r.page.iter());
    let digested = live.config.routes.iter().flat_map(|r| r.digest.values().flatten());
    paged.chain(digested).take(1).cloned().collect()
}

fn warn_of_what_needs_a_restart(live: &Live, new: &crate::config::Config) {
    let old = &live.config;
    let nats = (&old.nats.urls, &old.nats.stream, &old.nats.durable, &old.nats.subjects)
        != (&new.nats.urls, &new.nats.stream, &new.nats.durable, &new.nats.subjects);
    let store = old.store.url.expose_secret() != new.store.url.expose_secret();
    if nats || store || old.http.listen != new.http.listen {
        warn!("a change of [nats], of store.url or of http.listen takes effect at the next start");
    }
}
