//! Every section and key of `matins.toml`, once: what it is for, its form, its default. `check`, the JSON Schema and the
//! reading of values all follow these tables.

mod rules;

use super::keys::{Defined, Form, Key, Section, default, key, required};
use rules::{CLASSIFY, INHIBIT, ROUTE, SILENCE, SYMPTOM};

const HTTP: &[&str] = &["http", "https"];
const NATS_SCHEMES: &[&str] = &["nats", "tls"];
pub(super) const DOMAINS: &[&str] = &["money", "compliance", "standard"];
const RECEIVERS: Form = Form::OneOrList(&Form::Ref(Defined::Receiver));
const COUNT: Form = Form::Count(1, 1_000_000_000);
const POSITIVE: Form = Form::Decimal(0.0, f64::MAX);
const SHARE: Form = Form::Decimal(0.0, 1.0);

pub(super) const CLASSES: &[&str] = &[
    "transient",
    "rate_limited",
    "persistent",
    "invalid_input",
    "outcome_unknown",
    "llm_output",
    "llm_refusal",
    "llm_hallucination",
    "llm_context",
    "llm_behavior",
    "catastrophic",
    "interrupted",
    "unclassified",
];
pub(super) const DISPOSITIONS: &[&str] = &["retrying", "dead_lettered", "failed", "skipped"];

/// The file itself.
pub(super) static ROOT: Section = Section::new(
    "the file",
    "Matins: alerting and digests over NATS JetStream.",
    &[
        key(
            "include",
            Form::OneOrList(&Form::Path),
            "Further files, globs, relative to this file's folder. Read as if their text stood at the top of this file.",
        ),
        key("nats", Form::Table(&NATS), "The stream that events come from."),
        key("store", Form::Table(&STORE), "Where everything is kept."),
        key("http", Form::Table(&HTTP_SECTION), "The address of the API and the web pages."),
        key("smtp", Form::Table(&SMTP), "The mail server; needed by receivers of kind email."),
        key("receivers", Form::Named(&RECEIVER), "Who can be told."),
        key(
            "operator",
            Form::Table(&OPERATOR),
            "Who hears what Matins says about itself; left out, the first receiver of the last route's digests.",
        ),
        key("calendars", Form::Named(&CALENDAR), "Business hours."),
        key("digests", Form::Named(&DIGEST), "What is read to people, and when."),
        key("workflows", Form::Tables(&WORKFLOW), "The pipelines."),
        key("routes", Form::Tables(&ROUTE), "Who hears of what. The first match wins, unless it continues."),
        key("symptoms", Form::Tables(&SYMPTOM), "What is watched; none given means the defaults."),
        key("silences", Form::Tables(&SILENCE), "What nobody is to be told for a while."),
        key("inhibit", Form::Tables(&INHIBIT), "What is not told while something else is open."),
        key("classify", Form::Tables(&CLASSIFY), "Rules that come before the built-in table of classes."),
        key("watch", Form::Table(&WATCH), "Queues that are looked at beside the stream."),
        key("advisories", Form::Table(&ADVISORIES), "JetStream's own advisories as dead letters."),
        key("watchdog", Form::Table(&WATCHDOG), "Somebody outside who notices when Matins dies."),
        key("templates", Form::Table(&TEMPLATES), "Messages of one's own."),
        key("redact", Form::Table(&REDACT), "What is hidden beyond the built-in list."),
        key("web", Form::Table(&WEB), "The web pages."),
        default("max_redrives", Form::Count(0, 1_000), "3", "A dead letter is redriven at most this often."),
    ],
);

static NATS: Section = Section::new(
    "[nats]",
    "The NATS server and the stream.",
    &[
        default(
            "url",
            Form::OneOrList(&Form::Url(NATS_SCHEMES)),
            "nats://127.0.0.1:4222",
            "Address of the server, or several.",
        ),
        default("stream", Form::NatsName, "FAILURES", "The stream; made when missing, never changed when there."),
        default(
            "subjects",
            Form::OneOrList(&Form::Subject { wildcards: true }),
            "failures.>",
            "Subjects of the stream.",
        ),
        default("durable", Form::NatsName, "matins", "The durable consumer."),
        key("creds", Form::Path, "A .creds file, relative to this file's folder."),
        key("nkey", Form::Secret, "An nkey seed."),
        key("token", Form::Secret, "A token."),
        key("user", Form::Text, "User name; goes with password."),
        key("password", Form::Secret, "Password; goes with user."),
        key(
            "tls",
            Form::FlagOrTable(&NATS_TLS),
            "true refuses a connection without TLS; a table names certificates too.",
        ),
    ],
);

static NATS_TLS: Section = Section::new(
    "[nats.tls]",
    "TLS to the NATS server.",
    &[
        default("required", Form::Flag, "true", "Refuse a connection without TLS."),
        key("ca", Form::Path, "Root certificates, PEM."),
        key("cert", Form::Path, "Client certificate, PEM; goes with key."),
        key("key", Form::Path, "Key of the client certificate, PEM; goes with cert."),
    ],
);

static STORE: Section = Section::new(
    "[store]",
    "The database.",
    &[
        default(
            "url",
            Form::SecretUrl(&["sqlite", "postgres", "postgresql"]),
            "sqlite://matins.db",
            "sqlite://FILE, relative to the working folder.",
        ),
        key("retention", Form::Table(&RETENTION), "How long things are kept."),
    ],
);

static RETENTION: Section = Section::new(
    "[store.retention]",
    "How long things are kept.",
    &[
        default("events", Form::Period, "30d", "Raw events."),
        default("counters", Form::Period, "400d", "Counts."),
        default("digests", Form::Period, "400d", "Digests."),
    ],
);

static HTTP_SECTION: Section = Section::new(
    "[http]",
    "The API and the web pages.",
    &[
        default(
            "listen",
            Form::Socket,
            "127.0.0.1:8420",
            "Address and port; off loopback only with [[web.auth.tokens]].",
        ),
        key("public_url", Form::Url(HTTP), "Base of links in messages; http:// and the listen address unless given."),
    ],
);

static SMTP: Section = Section::new(
    "[smtp]",
    "The mail server.",
    &[
        required("host", Form::Text, "Host name or address."),
        key("port", Form::Count(1, 65_535), "Port: 587 for starttls, 465 for implicit, 25 for none unless given."),
        default(
            "tls",
            Form::Word(&["starttls", "implicit", "none"]),
            "starttls",
            "How the line is secured; never falls back.",
        ),
        key("username", Form::Text, "User name; goes with password."),
        key("password", Form::Secret, "Password; goes with username."),
        required("from", Form::Mailbox, "Sender, such as \"Matins <matins@example.com>\"."),
    ],
);

static RECEIVER: Section = Section {
    title: "[receivers.<name>]",
    doc: "Somebody who can be told.",
    keys: &[
        required("kind", Form::Word(&["slack", "email", "webhook", "nats", "file"]), "How it is reached."),
        key("fallback", Form::Ref(Defined::Receiver), "Who is told when it is broken or away."),
    ],
    kinds: &[
        Section::new(
            "slack",
            "A Slack channel: webhook_url, or bot_token and channel.",
            &[
                key("webhook_url", Form::SecretUrl(HTTP), "Incoming webhook."),
                key("bot_token", Form::Secret, "Token of the bot; goes with channel."),
                key("channel", Form::Text, "Channel name or id; goes with bot_token."),
                default(
                    "api_url",
                    Form::Url(HTTP),
                    "https://slack.com/api",
                    "Base of the Web API, for tests and proxies.",
                ),
            ],
        ),
        Section::new(
            "email",
            "One or more mailboxes, or each workflow's owner.",
            &[required("to", Form::Recipients, "A mailbox, a list of them, or \"owner\".")],
        ),
        Section::new("webhook", "JSON by HTTP POST.", &[required("url", Form::SecretUrl(HTTP), "Where to.")]),
        Section::new(
            "nats",
            "A message on a subject.",
            &[required("subject", Form::Subject { wildcards: false }, "The subject.")],
        ),
        Section::new(
            "file",
            "One file a message.",
            &[required("dir", Form::Path, "The folder, relative to the working folder.")],
        ),
    ],
};

static OPERATOR: Section = Section::new(
    "[operator]",
    "Who hears what Matins says about itself.",
    &[required("to", RECEIVERS, "Receivers; a broken one is skipped.")],
);

static CALENDAR: Section = Section::new(
    "[calendars.<name>]",
    "Business hours.",
    &[
        required("timezone", Form::Zone, "IANA name, such as Asia/Kolkata."),
        required("hours", Form::Hours, "By weekday or range: { mon-fri = [\"09:30-18:30\"] }."),
        key("holidays", Form::OneOrList(&Form::Day), "Local dates on which it is closed."),
        key("holidays_ics", Form::Path, "An iCalendar file of further holidays, relative to this file's folder."),
    ],
);

static DIGEST: Section = Section::new(
    "[digests.<name>]",
    "A digest; routes say what is in it and who reads it.",
    &[
        required("cron", Form::Cron, "When it is due: five fields, names, or @hourly @daily @weekly."),
        key("calendar", Form::Ref(Defined::Calendar), "Business hours; in closed hours it is held."),
        key("timezone", Form::Zone, "Zone of cron: the calendar's unless given, else UTC."),
        default("empty", Form::Word(&["skip", "send"]), "skip", "Whether it is sent when there is nothing in it."),
        key("max_hold", Form::Time, "Then it is sent in closed hours too; none holds until opening."),
    ],
);

static WORKFLOW: Section = Section::new(
    "[[workflows]]",
    "A pipeline.",
    &[
        required("name", Form::Text, "Exact name or glob; an exact name wins, then the first glob."),
        default("domain", Form::Word(DOMAINS), "standard", "money and compliance page at once; standard never does."),
        key("owner", Form::Mailbox, "Who answers for it: Name <address>."),
        key("runbook", Form::Url(HTTP), "What to do."),
        key("slo", SHARE, "Objective: the share of runs that go well, such as 0.995."),
        key("every", Form::Period, "A run, outcome or heartbeat is expected this often."),
        default("grace", Form::Time, "0s", "How late it may be."),
        key("item_noun", Form::Text, "One item, such as order."),
        key("expected_per_day", COUNT, "Runs a day; floor of the burn-rate denominator."),
        key("labels", Form::Map(&Form::Text), "Labels of each of its events, for routing."),
    ],
);

static WATCH: Section = Section::new(
    "[watch]",
    "Queues that are looked at beside the stream.",
    &[
        key("streams", Form::Tables(&WATCH_STREAM), "JetStream queues."),
        key("sql", Form::Tables(&WATCH_SQL), "Tables that hold dead letters."),
    ],
);

static WATCH_STREAM: Section = Section::new(
    "[[watch.streams]]",
    "A JetStream queue.",
    &[
        required("name", Form::Text, "Unique."),
        required("stream", Form::NatsName, "The stream."),
        key("consumer", Form::NatsName, "The consumer whose backlog counts."),
        default("every", Form::Period, "30s", "How often it is looked at."),
    ],
);

static WATCH_SQL: Section = Section::new(
    "[[watch.sql]]",
    "A table that holds dead letters.",
    &[
        key("name", Form::Text, "Unique."),
        required("url", Form::SecretUrl(&["postgres", "postgresql", "mysql", "sqlite"]), "The database."),
        required("query", Form::Text, "Gives id, workflow, failed_at and so on."),
        default("every", Form::Period, "30s", "How often it is asked."),
    ],
);

static ADVISORIES: Section = Section::new(
    "[advisories]",
    "JetStream's own advisories.",
    &[default("enabled", Form::Flag, "false", "Whether they become dead letters.")],
);

static WATCHDOG: Section = Section::new(
    "[watchdog]",
    "Somebody outside who notices when Matins dies.",
    &[
        required("ping_url", Form::SecretUrl(HTTP), "Pinged only while intake, evaluation and delivery all work."),
        default("every", Form::Period, "1m", "How often."),
    ],
);

static TEMPLATES: Section = Section::new(
    "[templates]",
    "Messages of one's own.",
    &[key(
        "dir",
        Form::Path,
        "Folder whose files replace the built-in ones of the same name; relative to this file's folder.",
    )],
);

static REDACT: Section = Section::new(
    "[redact]",
    "What is hidden beyond the built-in list.",
    &[
        key("keys", Form::OneOrList(&Form::Text), "Names of keys whose values are hidden."),
        key("patterns", Form::OneOrList(&Form::Regex), "What these match is hidden in any text."),
    ],
);

static WEB: Section =
    Section::new("[web]", "The web pages.", &[key("auth", Form::Table(&WEB_AUTH), "Who may come in.")]);

static WEB_AUTH: Section = Section::new(
    "[web.auth]",
    "Who may come in.",
    &[
        key("users", Form::Tables(&WEB_USER), "People; not asked for yet."),
        key("tokens", Form::Tables(&WEB_TOKEN), "Programs; with one, each address of the API asks for a token."),
        key("trusted_proxy_header", Form::Text, "Header in which a trusted proxy names the user; not read yet."),
    ],
);

static WEB_USER: Section = Section::new(
    "[[web.auth.users]]",
    "A person.",
    &[
        required("name", Form::Text, "Unique."),
        required("hash", Form::Secret, "Argon2 hash of the password: $argon2id$…"),
    ],
);

static WEB_TOKEN: Section = Section::new(
    "[[web.auth.tokens]]",
    "A program.",
    &[
        required("name", Form::Text, "Unique."),
        required("token", Form::Secret, "What it shows."),
        required(
            "role",
            Form::Word(&["ingest", "read", "operate"]),
            "What it may do: publish events, look, or look, publish and act.",
        ),
    ],
);

/// Every key of a section for the kind that it names.
pub(super) fn keys_of<'s>(
    section: &'static Section,
    kind: Option<&'s str>,
) -> impl Iterator<Item = &'static Key> + use<'s> {
    let further = kind.and_then(|k| section.kind(k)).map_or(&[][..], |s| s.keys);
    section.keys.iter().chain(further)
}
