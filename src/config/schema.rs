//! A config that passed its checks: everything resolved, nothing optional that is not optional in meaning. Pure.
//! Reading files, finding problems and saying where they are lives in the other files of this room.

use crate::calendar::{Calendar, Schedule};
use crate::deliver::Receiver;
use crate::event::{Class, Disposition};
use crate::matcher::{Glob, Matcher};
use crate::name::{CalendarName, DigestName, ReceiverName};
use crate::route::Route;
use crate::silence::Silence;
use crate::symptom::SymptomRule;
use crate::workflow::Workflows;
use chrono_tz::Tz;
use regex::Regex;
use secrecy::SecretString;
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

/// The whole of `matins.toml`, checked.
#[derive(Clone, Debug)]
pub struct Config {
    /// Twelve hex digits of a hash over all files read, after expansion of nothing: secrets can't be guessed from it.
    pub version: String,
    /// `[nats]`
    pub nats: NatsSettings,
    /// `[store]`
    pub store: StoreSettings,
    /// `[http]`
    pub http: HttpSettings,
    /// `[smtp]`; present when a receiver is an e-mail one.
    pub smtp: Option<SmtpSettings>,
    /// `[receivers.*]`
    pub receivers: BTreeMap<ReceiverName, Receiver>,
    /// `[operator] to`; the first receiver of the last route's digests unless given.
    pub operator: Vec<ReceiverName>,
    /// `[calendars.*]`
    pub calendars: BTreeMap<CalendarName, Calendar>,
    /// `[digests.*]`
    pub digests: BTreeMap<DigestName, DigestSettings>,
    /// `[[workflows]]`
    pub workflows: Workflows,
    /// `[[routes]]`, in order.
    pub routes: Vec<Route>,
    /// `[[symptoms]]`; none given means the defaults of the contract.
    pub symptoms: Option<Vec<SymptomRule>>,
    /// `[[silences]]`
    pub silences: Vec<Silence>,
    /// `[[inhibit]]`
    pub inhibit: Vec<Inhibition>,
    /// `[[classify]]`, in order, before the built-in table.
    pub classify: Vec<ClassifyRule>,
    /// `[redact]`
    pub redact: RedactSettings,
    /// `[templates] dir`
    pub templates_dir: Option<PathBuf>,
    /// `[watchdog]`
    pub watchdog: Option<Watchdog>,
    /// `[web.auth]` is given.
    pub web_auth: Option<WebAuth>,
    /// `[advisories] enabled`
    pub advisories_enabled: bool,
    /// `[watch]`
    pub watch: WatchSettings,
    /// `max_redrives`: a dead letter is redriven at most this often.
    pub max_redrives: u32,
}

/// `[watch]`: queues that are looked at beside the stream.
#[derive(Clone, Debug, Default)]
pub struct WatchSettings {
    /// `[[watch.streams]]`
    pub streams: Vec<WatchedStream>,
    /// `[[watch.sql]]`
    pub sql: Vec<WatchedTable>,
}

/// `[[watch.streams]]`
#[derive(Clone, Debug)]
pub struct WatchedStream {
    /// Unique name.
    pub name: String,
    /// The stream.
    pub stream: String,
    /// The consumer whose backlog counts; none counts stored messages.
    pub consumer: Option<String>,
    /// How often it is looked at.
    pub every: Duration,
}

/// `[[watch.sql]]`
#[derive(Clone, Debug)]
pub struct WatchedTable {
    /// Unique name: `sql-` and eight hex digits of place and query unless given.
    pub name: String,
    /// The database; may hold a password.
    pub url: SecretString,
    /// Gives `id`, `workflow`, `failed_at` and so on.
    pub query: String,
    /// How often it is asked.
    pub every: Duration,
}

/// `[nats]`
#[derive(Clone, Debug)]
pub struct NatsSettings {
    /// One or more server addresses.
    pub urls: Vec<String>,
    /// Stream that holds the events.
    pub stream: String,
    /// Its subjects.
    pub subjects: Vec<String>,
    /// Durable consumer.
    pub durable: String,
    /// How to sign in.
    pub auth: NatsAuth,
    /// Extra root certificates, PEM.
    pub tls_ca: Option<PathBuf>,
    /// Client certificate and key, PEM.
    pub tls_client: Option<(PathBuf, PathBuf)>,
    /// Refuse a connection without TLS.
    pub tls_required: bool,
}

/// How to sign in to NATS.
#[derive(Clone, Debug)]
pub enum NatsAuth {
    /// Not at all.
    None,
    /// A `.creds` file.
    Creds(PathBuf),
    /// An nkey seed.
    Nkey(SecretString),
    /// A token.
    Token(SecretString),
    /// User and password.
    Password(String, SecretString),
}

/// `[store]`
#[derive(Clone, Debug)]
pub struct StoreSettings {
    /// `sqlite://…` (relative to the config file's folder is NOT applied: relative to the working folder) or `postgres://…`, which may hold a password.
    pub url: SecretString,
    /// How long raw events are kept.
    pub keep_events: Duration,
    /// How long counters are kept.
    pub keep_counters: Duration,
    /// How long digests are kept.
    pub keep_digests: Duration,
}

/// `[http]`
#[derive(Clone, Debug)]
pub struct HttpSettings {
    /// Where to listen.
    pub listen: SocketAddr,
    /// Base of links in messages, without a slash at the end.
    pub public_url: String,
}

/// `[smtp]`
#[derive(Clone, Debug)]
pub struct SmtpSettings {
    /// Host name.
    pub host: String,
    /// Port.
    pub port: u16,
    /// Never falls back.
    pub tls: SmtpTls,
    /// User name.
    pub username: Option<String>,
    /// Password.
    pub password: Option<SecretString>,
    /// Mailbox of the sender, as written.
    pub from: String,
}

/// How the line to the mail server is secured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SmtpTls {
    /// In the clear first, then TLS; refused without.
    StartTls,
    /// TLS from the first byte.
    Implicit,
    /// In the clear.
    None,
}

/// `[digests.<name>]`
#[derive(Clone, Debug)]
pub struct DigestSettings {
    /// Its name.
    pub name: DigestName,
    /// When it is due.
    pub schedule: Schedule,
    /// Business hours; none means always open.
    pub calendar: Option<CalendarName>,
    /// Zone of the schedule: the calendar's unless given, else UTC.
    pub timezone: Tz,
    /// Whether an empty digest is sent.
    pub send_empty: bool,
    /// Longest hold over closed hours; none holds until opening.
    pub max_hold: Option<Duration>,
}

/// `[[classify]]`: `name`, `match = { workflow, step, downstream, error_type, error_code, http_status, message }` as globs (`message_regex` a
/// regular expression), `class`, optional `disposition` and `workflow` (renames).
#[derive(Clone, Debug)]
pub struct ClassifyRule {
    /// Unique name, shown by `explain`.
    pub name: String,
    /// Globs of `workflow`, `step`, `downstream`, `error_type`, `error_code`, `http_status`, `message`; all must match, of one key's globs any.
    pub globs: BTreeMap<ClassifyKey, Vec<Glob>>,
    /// Regular expression on the message.
    pub message_regex: Option<Regex>,
    /// The class it gives.
    pub class: Class,
    /// The disposition it gives, unless the event says one.
    pub disposition: Option<Disposition>,
}

/// What a `[[classify]]` rule can look at.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum ClassifyKey {
    /// Workflow name.
    Workflow,
    /// Step name.
    Step,
    /// Dependency.
    Downstream,
    /// `error.type`
    ErrorType,
    /// `error.code`
    ErrorCode,
    /// `error.http_status`, as text.
    HttpStatus,
    /// `error.message`
    Message,
}

/// `[redact]`
#[derive(Clone, Debug, Default)]
pub struct RedactSettings {
    /// Further key names whose values are hidden, any case, `-` and `_` alike.
    pub keys: Vec<String>,
    /// Further patterns; what they match in any text is hidden.
    pub patterns: Vec<Regex>,
}

/// `[[inhibit]]`, as in Alertmanager.
#[derive(Clone, Debug)]
pub struct Inhibition {
    /// What is open …
    pub source: Matcher,
    /// … hides this …
    pub target: Matcher,
    /// … when these keys agree.
    pub equal: Vec<String>,
}

/// `[watchdog]`
#[derive(Clone, Debug)]
pub struct Watchdog {
    /// Address to ping; may be a credential.
    pub ping_url: SecretString,
    /// How often.
    pub every: Duration,
}

/// `[web.auth]`: parsed and kept whole; the web room asks for tokens.
#[derive(Clone, Debug, Default)]
pub struct WebAuth {
    /// `[[web.auth.users]]`: name and Argon2 hash.
    pub users: Vec<(String, SecretString)>,
    /// `[[web.auth.tokens]]`: name, token, role.
    pub tokens: Vec<(String, SecretString, Role)>,
    /// `trusted_proxy_header`: name of the header that a trusted proxy sets.
    pub proxy_header: Option<String>,
}

/// What a caller of the API may do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Role {
    /// Publish events.
    Ingest,
    /// Look.
    Read,
    /// Look and act.
    Operate,
}
