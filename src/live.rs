//! What one version of config is compiled to, and what all tasks of the service share. A reload swaps the first whole: work in flight
//! finishes on the version that it started with. No decisions here.

use crate::announce::Announcer;
use crate::config::{Config, NatsSettings};
use crate::digest_job::{self, Target};
use crate::ingest::Reader;
use crate::ingest::health::Readiness;
use crate::metrics::Metrics;
use crate::render::Renderer;
use crate::route::Policy;
use crate::silence::Silence;
use crate::store::Store;
use crate::store::settings::SecretKey;
use crate::symptom::{Budget, ToldSymptom};
use arc_swap::ArcSwap;
use async_nats::Client;
use std::sync::Arc;
use tokio::sync::{Notify, watch};

/// One version of config and what is made from it.
#[derive(Debug)]
pub struct Live {
    /// As checked.
    pub config: Arc<Config>,
    /// Decodes, redacts and classifies.
    pub reader: Arc<Reader>,
    /// Routes and silences.
    pub policy: Arc<Policy>,
    /// Templates.
    pub renderer: Arc<Renderer>,
    /// Words messages of incidents and of the service itself.
    pub announcer: Arc<Announcer>,
    /// Whom digests go to.
    pub targets: Arc<[Target]>,
}

/// Keys of the service, from the store.
#[derive(Clone)]
pub struct Keys {
    /// For redacted values.
    pub redaction: SecretKey,
    /// For acknowledge links.
    pub links: SecretKey,
}

impl Live {
    /// Compiles `config`. `silences` are those that people asked for; config's own come with it.
    pub fn new(config: Config, renderer: Renderer, silences: Vec<Silence>, keys: &Keys) -> Self {
        let config = Arc::new(config);
        let renderer = Arc::new(renderer);
        let policy = Policy {
            config_version: config.version.clone(),
            workflows: config.workflows.clone(),
            routes: config.routes.clone(),
            silences: config.silences.iter().cloned().chain(silences).collect(),
        };
        Self {
            reader: Arc::new(Reader::new(&config.redact, &config.classify, &keys.redaction)),
            announcer: Arc::new(Announcer::new(config.clone(), renderer.clone(), keys.links)),
            policy: Arc::new(policy),
            targets: digest_job::targets(&config).into(),
            config,
            renderer,
        }
    }

    /// The same with other silences of people.
    pub fn with_silences(&self, silences: Vec<Silence>) -> Self {
        let policy = Policy {
            silences: self.config.silences.iter().cloned().chain(silences).collect(),
            ..Policy::clone(&self.policy)
        };
        Self {
            config: self.config.clone(),
            reader: self.reader.clone(),
            policy: Arc::new(policy),
            renderer: self.renderer.clone(),
            announcer: self.announcer.clone(),
            targets: self.targets.clone(),
        }
    }
}

/// What all tasks of the service share.
pub struct Shared {
    /// The store.
    pub store: Store,
    /// The config of now.
    pub live: Arc<ArcSwap<Live>>,
    /// Keys of the service.
    pub keys: Keys,
    /// Whether intake works.
    pub readiness: watch::Receiver<Readiness>,
    /// Counters for Prometheus.
    pub metrics: Arc<Metrics>,
    /// Connection to NATS.
    pub nats: Client,
    /// What intake was started with; a reload does not change it.
    pub nats_settings: NatsSettings,
    /// Symptoms that fire, as of the last tick.
    pub symptoms: ArcSwap<Vec<ToldSymptom>>,
    /// Burn rates and what budgets have left, as of the last look.
    pub budgets: ArcSwap<Vec<Budget>>,
    /// Wakes delivery.
    pub outbox_wake: Arc<Notify>,
    /// Asks for a reload; answered with what was wrong, if anything.
    pub reload: tokio::sync::mpsc::Sender<tokio::sync::oneshot::Sender<Result<(), String>>>,
}
