//! The connection to NATS, and the stream and consumer that intake reads: made when missing, checked when there, never changed.

use crate::config::{NatsAuth, NatsSettings};
use async_nats::jetstream::consumer::{AckPolicy, DeliverPolicy, PullConsumer, pull};
use async_nats::jetstream::stream::{self, DiscardPolicy, RetentionPolicy, StorageType};
use async_nats::jetstream::{
    self,
    context::{ConsumerInfoErrorKind, GetStreamErrorKind},
};
use async_nats::{Client, ConnectOptions, Event};
use chrono::{DateTime, Utc};
use secrecy::ExposeSecret;
use std::time::Duration;
use tokio::time::timeout;
use tracing::{info, warn};

/// No request to JetStream may take longer.
pub(super) const REQUEST_TIMEOUT: Duration = Duration::from_secs(5);
/// Finds a dead line in three of these.
const PING_EVERY: Duration = Duration::from_secs(5);
/// Time in which a delivered message must be acked.
const ACK_WAIT: Duration = Duration::from_secs(30);
/// Messages that may be on their way. Above what several kills in a row leave unacked, so that they don't hold up what follows.
const ACK_PENDING_MAX: i64 = 20_000;
const STREAM_AGE_MAX: Duration = Duration::from_secs(14 * 24 * 3600);
const STREAM_BYTES_MAX: i64 = 1 << 30;
/// JetStream's code for a stream that is not there.
const STREAM_NOT_FOUND: u64 = 10059;

/// Why the stream can't be read now.
#[derive(Debug, thiserror::Error)]
pub enum JetStreamError {
    /// A file of the sign-in can't be read.
    #[error("nats: {0}")]
    Credentials(std::io::Error),
    /// The client refused its settings.
    #[error("nats: {0}")]
    Connect(#[from] async_nats::ConnectError),
    /// The server did not answer in time; a missing permission looks the same.
    #[error("nats: no answer to {0} within 5 s; is JetStream enabled, and may this user use it?")]
    NoAnswer(&'static str),
    /// The server said no.
    #[error("nats: {what}: {why}")]
    Refused {
        /// What was asked for.
        what: String,
        /// Its words.
        why: String,
    },
}

/// Connects in the background: a server that is absent is waited for, and one that goes away is looked for again.
///
/// # Errors
/// When a credentials file can't be read or the settings contradict each other.
pub async fn connect(settings: &NatsSettings) -> Result<Client, JetStreamError> {
    let mut options = ConnectOptions::new()
        .name("matins")
        .retry_on_initial_connect()
        .ping_interval(PING_EVERY)
        .request_timeout(Some(REQUEST_TIMEOUT))
        .require_tls(settings.tls_required)
        .event_callback(|event| async move { log_event(&event) });
    options = match &settings.auth {
        NatsAuth::None => options,
        NatsAuth::Creds(path) => options.credentials_file(path).await.map_err(JetStreamError::Credentials)?,
        NatsAuth::Nkey(seed) => options.nkey(seed.expose_secret().to_owned()),
        NatsAuth::Token(token) => options.token(token.expose_secret().to_owned()),
        NatsAuth::Password(user, password) => {
            options.user_and_password(user.clone(), password.expose_secret().to_owned())
        }
    };
    if let Some(path) = &settings.tls_ca {
        options = options.add_root_certificates(path.clone());
    }
    if let Some((certificate, key)) = &settings.tls_client {
        options = options.add_client_certificate(certificate.clone(), key.clone());
    }
    Ok(options.connect(&settings.urls[..]).await?)
}

fn log_event(event: &Event) {
    match event {
        Event::Connected => info!("connected to NATS"),
        Event::Disconnected => warn!("connection to NATS lost; looking for it again"),
        Event::SlowConsumer(_) | Event::ServerError(_) | Event::ClientError(_) => warn!(%event, "NATS"),
        Event::LameDuckMode | Event::Draining | Event::Closed => info!(%event, "NATS"),
    }
}

/// Where the servers are, without what may be a credential in their addresses.
pub fn hosts(urls: &[String]) -> String {
    let host = |url: &String| {
        let place = url.split_once("://").map_or(url.as_str(), |(_, rest)| rest);
        place.rsplit_once('@').map_or(place, |(_, host)| host).to_owned()
    };
    urls.iter().map(host).collect::<Vec<_>>().join(", ")
}

/// The consumer to read from, and when its stream was made.
#[derive(Debug)]
pub struct Source {
    /// What it is of.
    pub stream: stream::Stream,
    /// Shared by all replicas.
    pub consumer: PullConsumer,
    /// Tells a stream that was deleted and made again.
    pub stream_made_at: DateTime<Utc>,
}

/// Finds or makes stream and consumer.
///
/// # Errors
/// When JetStream does not answer or refuses.
pub async fn open(client: &Client, settings: &NatsSettings) -> Result<Source, JetStreamError> {
    let context = context(client);
    let stream = open_stream(&context, settings).await?;
    let stream_made_at = stream.cached_info().created;
    let consumer = open_consumer(&stream, settings).await?;
    Ok(Source { stream, consumer, stream_made_at })
}

/// JetStream over `client`, with our time limit.
pub fn context(client: &Client) -> jetstream::Context {
    let mut context = jetstream::new(client.clone());
    context.set_timeout(REQUEST_TIMEOUT);
    context
}

async fn open_stream(context: &jetstream::Context, settings: &NatsSettings) -> Result<stream::Stream, JetStreamError> {
    let asked = timeout(REQUEST_TIMEOUT, context.get_stream(&settings.stream)).await;
    match asked.map_err(|_| JetStreamError::NoAnswer("STREAM.INFO"))? {
        Ok(found) => {
            for difference in stream_differences(&found.cached_info().config, settings) {
                warn!(stream = settings.stream, "the stream is left as it is: {difference}");
            }
            Ok(found)
        }
        Err(error) => match error.kind() {
            GetStreamErrorKind::JetStream(answer) if answer.error_code().0 == STREAM_NOT_FOUND => {
                make_stream(context, settings).await
            }
            GetStreamErrorKind::JetStream(_)
            | GetStreamErrorKind::Request
            | GetStreamErrorKind::EmptyName
            | GetStreamErrorKind::InvalidStreamName => Err(refused(&settings.stream, &error)),
        },
    }
}

fn refused(what: &str, error: &dyn std::error::Error) -> JetStreamError {
    let why = error.source().map_or_else(|| error.to_string(), |source| format!("{error}: {source}"));
    JetStreamError::Refused { what: what.to_owned(), why }
}

async fn make_stream(context: &jetstream::Context, settings: &NatsSettings) -> Result<stream::Stream, JetStreamError> {
    let config = stream::Config {
        name: settings.stream.clone(),
        subjects: settings.subjects.clone(),
        storage: StorageType::File,
        retention: RetentionPolicy::Limits,
        discard: DiscardPolicy::Old,
        max_age: STREAM_AGE_MAX,
        max_bytes: STREAM_BYTES_MAX,
        allow_direct: true,
        ..stream::Config::default()
    };
    let made = context.create_stream(config).await.map_err(|e| refused(&settings.stream, &e))?;
    info!(stream = settings.stream, "made the stream");
    Ok(made)
}

/// How a stream that was there differs from what Matins would have made, where it matters.
fn stream_differences(config: &stream::Config, settings: &NatsSettings) -> Vec<String> {
    let mut found = Vec::new();
    for subject in &settings.subjects {
        if !config.subjects.contains(subject) {
            let subjects = config.subjects.join(", ");
            found.push(format!("it takes {subjects}, and not {subject} as such: events there may never arrive"));
        }
    }
    if config.storage != StorageType::File {
        found.push("it is kept in memory: a restart of the server loses what was not read".to_owned());
    }
    if config.retention == RetentionPolicy::Interest {
        found.push("its retention is interest: what is published while no consumer exists is lost".to_owned());
    }
    if !config.allow_direct {
        found.push("allow_direct is off: originals of advisories are slower to fetch".to_owned());
    }
    found
}

async fn open_consumer(stream: &stream::Stream, settings: &NatsSettings) -> Result<PullConsumer, JetStreamError> {
    let wanted = pull::Config {
        durable_name: Some(settings.durable.clone()),
        deliver_policy: DeliverPolicy::All,
        ack_policy: AckPolicy::Explicit,
        ack_wait: ACK_WAIT,
        max_deliver: -1,
        max_ack_pending: ACK_PENDING_MAX,
        ..pull::Config::default()
    };
    if let Ok(found) = stream.get_consumer::<pull::Config>(&settings.durable).await {
        let config = &found.cached_info().config;
        if !config.filter_subject.is_empty() || !config.filter_subjects.is_empty() {
            let why = "it has a filter and would leave events unread; delete it, or name another durable in [nats]"
                .to_owned();
            return Err(JetStreamError::Refused { what: format!("consumer {}", settings.durable), why });
        }
        if config.ack_policy != AckPolicy::Explicit || config.max_deliver > 0 {
            warn!(
                durable = settings.durable,
                "the consumer is left as it is: ack_policy should be explicit and max_deliver -1, else events can be lost"
            );
        }
        return Ok(found);
    }
    let made = timeout(REQUEST_TIMEOUT, stream.create_consumer_strict(wanted)).await;
    match made.map_err(|_| JetStreamError::NoAnswer("CONSUMER.CREATE"))? {
        Ok(made) => {
            info!(durable = settings.durable, "made the consumer");
            Ok(made)
        }
        // Another replica may have made it between the two requests.
        Err(error) => stream.get_consumer(&settings.durable).await.map_err(|_| refused(&settings.durable, &error)),
    }
}

/// What a server says of the consumer that is read from.
#[derive(Debug)]
pub enum AskOutcome {
    /// It has it.
    There,
    /// Nothing, in the time that a request may take.
    Silent,
    /// It has it no more, or can't tell; why.
    Gone(String),
}

/// Asks the server whether it still has `consumer`.
pub async fn ask(consumer: PullConsumer) -> AskOutcome {
    match timeout(REQUEST_TIMEOUT, consumer.get_info()).await {
        Ok(Ok(_)) => AskOutcome::There,
        Ok(Err(error)) if error.kind() == ConsumerInfoErrorKind::TimedOut => AskOutcome::Silent,
        Ok(Err(error)) => AskOutcome::Gone(error.to_string()),
        Err(_) => AskOutcome::Silent,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn where_servers_are_says_no_credentials() {
        let urls = ["nats://user:secret@a.example:4222".to_owned(), "b.example".to_owned()];
        assert_eq!(hosts(&urls), "a.example:4222, b.example");
    }
}
