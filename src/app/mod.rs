//! The composition root: opens everything, starts every loop, stops them in order. No rule of the field lives here.

mod compile;
mod covers;
mod fault_log;
mod incidents;
mod listener;
mod messages;
mod passed;
mod reload;
pub mod symptoms;
mod throttle;
pub mod tick;
mod ticked;
mod watermark;

pub use compile::{CompileError, compile, read_templates};

use crate::clock;
use crate::deliver::{Deliverer, DeliverySettings, LEASE, Observe};
use crate::ingest::commit::{Intake, Keeping};
use crate::ingest::consumer::Consumer;
use crate::ingest::health::{Health, Readiness};
use crate::ingest::jetstream;
use crate::live::{Keys, Shared};
use crate::metrics::Metrics;
use crate::render::Parts;
use crate::store::{Store, settings, silences};
use crate::web;
use anyhow::Context as _;
use arc_swap::ArcSwap;
use fault_log::FaultLog;
use listener::{Oddities, ServiceListener};
use messages::LiveRender;
use secrecy::ExposeSecret;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::TcpListener;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::{mpsc, watch};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;
use tracing::{error, info, warn};
use watermark::StreamWatermark;

/// Longest wait for those who read from a store that is given up.
const CLOSE_MAX: Duration = Duration::from_secs(2);
const TICK_EVERY: Duration = Duration::from_secs(1);
/// Longest stop: no try takes longer than its lease, so none is cut off half way.
const STOP_MAX: Duration = LEASE;

/// Runs the service until SIGTERM or SIGINT. Exit codes: 0 stopped, 1 it failed, 2 the config is wrong.
pub async fn serve(path: &Path) -> ExitCode {
    let loaded = match compile::load(path) {
        Ok(loaded) => loaded,
        Err(error) => {
            error!("{error}");
            return ExitCode::from(2);
        }
    };
    match run(path, loaded).await {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            error!("{error:#}");
            ExitCode::FAILURE
        }
    }
}

async fn run(path: &Path, loaded: crate::config::Loaded) -> anyhow::Result<()> {
    let mut terminate = signal(SignalKind::terminate())?;
    let mut interrupt = signal(SignalKind::interrupt())?;
    let files = loaded.files.clone();
    let store = Store::open(loaded.config.store.url.expose_secret()).await?;
    let listener = TcpListener::bind(loaded.config.http.listen)
        .await
        .with_context(|| format!("http.listen {} can't be used", loaded.config.http.listen))?;
    info!(address = %listener.local_addr()?, "HTTP listens");
    let mut service = Service::start(path.to_owned(), loaded, store, listener, files).await?;
    let broken = tokio::select! {
        _ = terminate.recv() => false,
        _ = interrupt.recv() => false,
        () = service.task_ended() => true,
    };
    // Nothing that a stop would finish could be kept.
    anyhow::ensure!(service.shared.store.file_is_ours(), "the database file is no longer there");
    info!("stopping");
    service.stop().await;
    // Better a process that somebody starts again than one that lives and tells nobody.
    anyhow::ensure!(!broken, "a part of the service ended by itself; what it left is taken up at the next start");
    Ok(())
}

/// Starts the service for a caller in the same process, which stops it. `listener` takes the place of `http.listen`.
///
/// # Errors
/// When the config is wrong, or something that the service needs can't be opened.
pub async fn start(path: &Path, listener: TcpListener) -> anyhow::Result<Service> {
    let loaded = compile::load(path)?;
    let files = loaded.files.clone();
    let store = Store::open(loaded.config.store.url.expose_secret()).await?;
    Service::start(path.to_owned(), loaded, store, listener, files).await
}

/// The running service.
pub struct Service {
    stop: CancellationToken,
    tasks: JoinSet<()>,
    shared: Arc<Shared>,
}

impl Service {
    /// What its tasks share.
    pub fn shared(&self) -> &Arc<Shared> {
        &self.shared
    }

    async fn start(
        path: PathBuf,
        loaded: crate::config::Loaded,
        store: Store,
        listener: TcpListener,
        files: Vec<PathBuf>,
    ) -> anyhow::Result<Self> {
        let keys = Keys {
            redaction: settings::secret_key(&store, "redaction_key").await?,
            links: settings::secret_key(&store, "link_key").await?,
        };
        let nats = jetstream::connect(&loaded.config.nats).await?;
        let firing = symptoms::kept(&store).await?.into_iter().filter(|s| s.state.is_firing()).collect();
        let active = silences::active(store.reader(), clock::now()).await?;
        let (live, _) = compile(loaded, active, &keys, Parts::All);
        let nats_settings = live.config.nats.clone();
        let (delivery, delivery_rx) = watch::channel(Arc::new(DeliverySettings::from(&*live.config)));
        let live = Arc::new(ArcSwap::from_pointee(live));
        let (readiness, readiness_rx) = watch::channel(Readiness::NotReady("starting".to_owned()));
        let (reload, reloads) = mpsc::channel(4);
        let metrics = Arc::new(Metrics::default());
        let (_nats_tx, nats_rx) = watch::channel(Some(nats.clone()));
        let deliverer = Deliverer::new(
            store.clone(),
            delivery_rx,
            nats_rx,
            Arc::new(LiveRender(live.clone())),
            observe(metrics.clone(), nats.clone()),
        )?;
        let shared = Arc::new(Shared {
            store: store.clone(),
            live,
            keys,
            readiness: readiness_rx,
            metrics,
            nats: nats.clone(),
            nats_settings: nats_settings.clone(),
            symptoms: ArcSwap::from_pointee(firing),
            budgets: ArcSwap::default(),
            outbox_wake: deliverer.waker(),
            reload,
        });
        shared.metrics.set_reload(true);
        let (faults, oddities) = (Arc::new(FaultLog::default()), Arc::new(Oddities::default()));
        let (stop, gone) = (CancellationToken::new(), readiness.clone());
        let mut tasks = JoinSet::new();
        let consumer = Consumer {
            client: nats,
            settings: nats_settings,
            listener: Arc::new(ServiceListener {
                shared: shared.clone(),
                faults: faults.clone(),
                oddities: oddities.clone(),
            }),
            health: Health::new(readiness),
        };
        tasks.spawn(consumer.run(Intake::new(store.clone(), Keeping::All), stop.clone()));
        tasks.spawn(deliver(deliverer, stop.clone()));
        tasks.spawn(tick_all(shared.clone(), faults, oddities, gone, stop.clone()));
        tasks.spawn(reload::run(path, files, shared.clone(), delivery, reloads, stop.clone()));
        tasks.spawn(web::serve(listener, shared.clone(), stop.clone()));
        Ok(Self { stop, tasks, shared })
    }

    /// Waits until a task ends, which none does before the service stops.
    async fn task_ended(&mut self) {
        match self.tasks.join_next().await {
            Some(Err(error)) => error!(%error, "a part of the service broke"),
            Some(Ok(())) => error!("a part of the service ended"),
            None => error!("no part of the service is left"),
        }
    }

    /// Stops reading first, commits and acks what was read, lets messages in flight end.
    pub async fn stop(mut self) {
        self.stop.cancel();
        let all = async { while self.tasks.join_next().await.is_some() {} };
        if tokio::time::timeout(STOP_MAX, all).await.is_err() {
            warn!("not everything stopped in time; it is taken up at the next start");
        }
        self.shared.store.close().await;
    }
}

async fn deliver(deliverer: Deliverer, stop: CancellationToken) {
    if let Err(error) = deliverer.run(stop.cancelled()).await {
        error!(%error, "delivery ended; nothing is sent until the next start");
    }
}

async fn tick_all(
    shared: Arc<Shared>,
    faults: Arc<FaultLog>,
    oddities: Arc<Oddities>,
    readiness: watch::Sender<Readiness>,
    stop: CancellationToken,
) {
    let mut every = tokio::time::interval(TICK_EVERY);
    every.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    let mut ticker = tick::Ticker::default();
    let mut watermark = StreamWatermark::new(shared.clone());
    loop {
        tokio::select! {
            _ = every.tick() => {}
            () = stop.cancelled() => return,
        }
        if !shared.store.file_is_ours() {
            return give_up_store(&shared.store, &readiness).await;
        }
        if let Err(error) = shared.store.checkpoint().await {
            warn!(%error, "the log of the store could not be copied into its file; it is tried again");
        }
        faults.sweep(clock::instant());
        oddities.sweep(clock::instant());
        let live = shared.live.load_full();
        let ticked = ticker.tick(&shared.store, &live, &mut watermark, clock::now()).await;
        for (part, error) in &ticked.failures {
            error!(%error, "{part} could not be looked at");
        }
        if ticked.has_looked {
            shared.symptoms.store(ticker.firing());
            shared.budgets.store(Arc::new(ticker.budgets()));
        }
        if ticked.has_messages {
            shared.outbox_wake.notify_one();
        }
    }
}

/// What is committed to a file that was removed is lost, so nothing more may be acked: the store refuses from here on, and the
/// end of the caller ends the service.
async fn give_up_store(store: &Store, readiness: &watch::Sender<Readiness>) {
    let why = "the database file was removed or replaced while it was in use";
    error!("{why}; the service ends, so that nothing more is acked and lost");
    readiness.send_replace(Readiness::NotReady(why.to_owned()));
    if tokio::time::timeout(CLOSE_MAX, store.close()).await.is_err() {
        warn!("the store did not close in time");
    }
}

/// Counts every try, and says on `matins.notify.<kind>.<workflow>` what was sent.
fn observe(metrics: Arc<Metrics>, nats: async_nats::Client) -> Observe {
    Arc::new(move |report| {
        let entry = &report.entry.new;
        metrics.note_notification(
            entry.receiver.as_str(),
            entry.kind.as_str(),
            report.outcome,
            (report.outcome == "sent").then_some(report.latency),
        );
        if report.outcome != "sent" {
            return;
        }
        let workflow = entry.workflow.as_ref().map_or("-", |w| w.as_str());
        let subject = format!("matins.notify.{}.{}", entry.kind.as_str(), web::subject_token(workflow));
        let body = entry.view.to_string();
        let nats = nats.clone();
        tokio::spawn(async move {
            if let Err(error) = nats.publish(subject, body.into()).await {
                warn!(%error, "a notification could not be published on NATS");
            }
        });
    })
}
