//! From a checked tree to `Config`: servers, receivers, calendars, digests. Rules are in `rules`. What belongs together
//! within one table is checked here too, because only here both are at hand.

use super::reader::Cursor;
use super::rules;
use super::schema::*;
use super::source::{Report, Source};
use super::value;
use crate::calendar::{Calendar, Schedule, WeekHours, holidays_from_ics, parse_zone};
use crate::deliver::{Receiver, ReceiverKind, Recipients};
use crate::name::{CalendarName, DigestName, ReceiverName};
use chrono::{DateTime, Utc};
use chrono_tz::Tz;
use secrecy::{ExposeSecret as _, SecretString};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// What every part is put together with.
#[derive(Clone, Copy, Debug)]
pub(super) struct Bench<'a> {
    pub(super) report: &'a Report,
    pub(super) now: DateTime<Utc>,
}

impl Bench<'_> {
    /// A path that is relative to the folder of the file that names it.
    fn beside(&self, cursor: &Cursor<'_>, key: &str) -> Option<PathBuf> {
        let file = self.report.sources.get(cursor.node(key)?.at.file)?;
        Some(file.path.parent().unwrap_or(Path::new("")).join(cursor.text(key)?))
    }

    /// Reports a key that needs another one beside it.
    fn together(&self, cursor: &Cursor<'_>, one: &str, other: &str) {
        for (one, other) in [(one, other), (other, one)] {
            if cursor.node(one).is_some() && cursor.node(other).is_none() {
                self.report.error(cursor.place(one), format!("{one:?} needs {other:?} beside it"));
            }
        }
    }
}

/// Puts the whole together. None when a part that must be there did not pass; that was reported.
pub(super) fn config(root: &Cursor<'_>, bench: Bench<'_>) -> Option<Config> {
    // Each part reports what it finds, so all of them are read before the first missing one ends this.
    let (nats, store, http) = (nats(root, bench), store(root, bench), http(root));
    let (smtp, receivers, calendars) = (smtp(root, bench), receivers(root, bench), calendars(root, bench));
    let digests = digests(root, bench, &calendars);
    let routes = rules::routes(root, bench);
    let symptoms = rules::symptoms(root, bench);
    let silences = rules::silences(root, bench);
    Some(Config {
        // Known only when all files are read.
        version: String::new(),
        nats: nats?,
        store: store?,
        http: http?,
        smtp,
        operator: operator(root, &routes, &receivers),
        receivers,
        calendars,
        digests,
        workflows: rules::workflows(root),
        routes,
        symptoms,
        silences,
        inhibit: rules::inhibitions(root),
        classify: rules::classify(root),
        redact: rules::redact(root),
        templates_dir: root.given("templates").and_then(|t| bench.beside(&t, "dir")),
        watchdog: root.given("watchdog").and_then(|w| watchdog(&w)),
        web_auth: root.inside("web").given("auth").map(|a| web_auth(&a)),
        advisories_enabled: root.inside("advisories").flag("enabled"),
        watch: rules::watch(root),
        max_redrives: root.count("max_redrives")?,
    })
}

fn nats(root: &Cursor<'_>, bench: Bench<'_>) -> Option<NatsSettings> {
    let nats = root.inside("nats");
    let tls = nats.inside("tls");
    let tls_given = nats.node("tls").is_some();
    bench.together(&tls, "cert", "key");
    let signed: Vec<(String, NatsAuth)> = nats.texts("url").iter().map(|url| apart_from_sign_in(url)).collect();
    let auth = nats_auth(&nats, &signed, bench);
    Some(NatsSettings {
        urls: signed.into_iter().map(|(url, _)| url).collect(),
        stream: nats.string("stream")?,
        subjects: nats.texts("subjects"),
        durable: nats.string("durable")?,
        auth,
        tls_ca: bench.beside(&tls, "ca"),
        tls_client: bench.beside(&tls, "cert").zip(bench.beside(&tls, "key")),
        tls_required: tls_given && nats.node("tls").and_then(|n| n.flag()).unwrap_or_else(|| tls.flag("required")),
    })
}

/// An address of NATS without user and password, and these: what is printed must not hold them. A lone user is a token,
/// as it is to NATS.
pub fn apart_from_sign_in(url: &str) -> (String, NatsAuth) {
    let Ok(mut bare) = url::Url::parse(url) else { return (url.to_owned(), NatsAuth::None) };
    let user = decoded(bare.username());
    let auth = match bare.password().map(decoded) {
        Some(password) => NatsAuth::Password(user, password.into()),
        None if user.is_empty() => return (url.to_owned(), NatsAuth::None),
        None => NatsAuth::Token(user.into()),
    };
    // Both only fail for an address without a host, which has no user either.
    let _ = (bare.set_username(""), bare.set_password(None));
    (bare.to_string(), auth)
}

/// `%40` and the like as the characters that they stand for.
fn decoded(part: &str) -> String {
    let one = part.replace('+', "%2B").replace('&', "%26").replace('=', "%3D");
    url::form_urlencoded::parse(one.as_bytes()).next().map(|(text, _)| text.into_owned()).unwrap_or_default()
}

fn nats_auth(nats: &Cursor<'_>, signed: &[(String, NatsAuth)], bench: Bench<'_>) -> NatsAuth {
    let of_urls = sign_in_of(nats, signed, bench);
    bench.together(nats, "user", "password");
    let given: Vec<&str> = ["creds", "nkey", "token", "user"].into_iter().filter(|k| nats.node(k).is_some()).collect();
    if let [first, second, ..] = given.as_slice() {
        let message = format!("{second:?} and {first:?} are two ways to sign in; give one of creds, nkey, token, user");
        bench.report.error(nats.place(second), message);
    }
    if let (Some(given), Some(_)) = (given.first(), &of_urls) {
        let message =
            format!("{given:?} and the user in nats.url are two ways to sign in; take the user out of the address");
        bench.report.error(nats.place(given), message);
    }
    if let Some(auth) = of_urls {
        auth
    } else if let Some(file) = bench.beside(nats, "creds") {
        NatsAuth::Creds(file)
    } else if let Some(seed) = nats.secret("nkey") {
        NatsAuth::Nkey(seed)
    } else if let Some(token) = nats.secret("token") {
        NatsAuth::Token(token)
    } else if let Some((user, password)) = nats.string("user").zip(nats.secret("password")) {
        NatsAuth::Password(user, password)
    } else {
        NatsAuth::None
    }
}

/// How the addresses say to sign in. All must say the same, or nothing.
fn sign_in_of(nats: &Cursor<'_>, signed: &[(String, NatsAuth)], bench: Bench<'_>) -> Option<NatsAuth> {
    let mut ways = signed.iter().map(|(_, auth)| auth).filter(|auth| !matches!(auth, NatsAuth::None));
    let first = ways.next()?;
    if ways.any(|other| !is_same(first, other)) {
        let message = "the addresses of nats.url name different users; give one user and password beside them";
        bench.report.error(nats.place("url"), message);
    }
    Some(first.clone())
}

fn is_same(one: &NatsAuth, other: &NatsAuth) -> bool {
    match (one, other) {
        (NatsAuth::Password(a, b), NatsAuth::Password(c, d)) => a == c && b.expose_secret() == d.expose_secret(),
        (NatsAuth::Token(a), NatsAuth::Token(b)) => a.expose_secret() == b.expose_secret(),
        (_, _) => false,
    }
}

fn store(root: &Cursor<'_>, bench: Bench<'_>) -> Option<StoreSettings> {
    let store = root.inside("store");
    let url = store.text("url")?;
    if !url.starts_with("sqlite:") {
        bench.report.error(store.place("url"), "store.url: Postgres is not supported yet; write sqlite://matins.db");
    } else if url.contains(":memory:") || url.contains("mode=memory") {
        let message =
            "store.url: a database in memory forgets everything at a restart; name a file, as in sqlite://matins.db";
        bench.report.error(store.place("url"), message);
    }
    let retention = store.inside("retention");
    Some(StoreSettings {
        url: SecretString::from(url),
        keep_events: retention.time("events")?,
        keep_counters: retention.time("counters")?,
        keep_digests: retention.time("digests")?,
    })
}

fn http(root: &Cursor<'_>) -> Option<HttpSettings> {
    let http = root.inside("http");
    let listen = value::socket(http.text("listen")?)?;
    let public_url = match http.node("public_url") {
        Some(_) => http.text("public_url")?.trim_end_matches('/').to_owned(),
        None => format!("http://{listen}"),
    };
    Some(HttpSettings { listen, public_url })
}

fn smtp(root: &Cursor<'_>, bench: Bench<'_>) -> Option<SmtpSettings> {
    let smtp = root.given("smtp")?;
    bench.together(&smtp, "username", "password");
    let (tls, usual_port) = match smtp.text("tls")? {
        "implicit" => (SmtpTls::Implicit, 465),
        "none" => (SmtpTls::None, 25),
        _ => (SmtpTls::StartTls, 587),
    };
    if tls == SmtpTls::None && smtp.node("password").is_some() && !is_loopback(smtp.text("host")?) {
        bench.report.warn(smtp.place("tls"), "tls = \"none\" sends the password in the clear");
    }
    Some(SmtpSettings {
        host: smtp.string("host")?,
        port: if smtp.node("port").is_some() { smtp.count("port")? } else { usual_port },
        tls,
        username: smtp.string("username"),
        password: smtp.secret("password"),
        from: smtp.string("from")?,
    })
}

fn is_loopback(host: &str) -> bool {
    host == "localhost" || host.parse::<std::net::IpAddr>().is_ok_and(|ip| ip.is_loopback())
}

fn receivers(root: &Cursor<'_>, bench: Bench<'_>) -> BTreeMap<ReceiverName, Receiver> {
    let read = |(name, cursor): (&str, Cursor<'_>)| {
        let receiver = Receiver {
            name: ReceiverName::new(name),
            kind: receiver_kind(&cursor, name, bench)?,
            fallback: cursor.text("fallback").map(ReceiverName::new),
        };
        Some((receiver.name.clone(), receiver))
    };
    root.named("receivers").into_iter().filter_map(read).collect()
}

fn receiver_kind(receiver: &Cursor<'_>, name: &str, bench: Bench<'_>) -> Option<ReceiverKind> {
    match receiver.text("kind")? {
        "slack" => slack(receiver, name, bench),
        "email" => {
            let to = receiver.texts("to");
            let owner = receiver.text("to") == Some("owner");
            Some(ReceiverKind::Email { to: if owner { Recipients::Owner } else { Recipients::Fixed(to) } })
        }
        "webhook" => Some(ReceiverKind::Webhook { url: receiver.secret("url")? }),
        "nats" => Some(ReceiverKind::Nats { subject: receiver.string("subject")? }),
        "file" => Some(ReceiverKind::File { dir: receiver.text("dir")?.into() }),
        _ => None,
    }
}

fn slack(receiver: &Cursor<'_>, name: &str, bench: Bench<'_>) -> Option<ReceiverKind> {
    bench.together(receiver, "bot_token", "channel");
    match (receiver.node("webhook_url"), receiver.node("bot_token")) {
        (Some(_), Some(_)) => {
            let message = "\"webhook_url\" and \"bot_token\" are two ways to the same channel; give one of them";
            bench.report.error(receiver.place("bot_token"), message);
            None
        }
        (Some(_), None) => Some(ReceiverKind::SlackWebhook { url: receiver.secret("webhook_url")? }),
        (None, Some(_)) => Some(ReceiverKind::SlackBot {
            token: receiver.secret("bot_token")?,
            channel: receiver.string("channel")?,
            api_url: receiver.text("api_url")?.trim_end_matches('/').to_owned(),
        }),
        (None, None) if receiver.node("channel").is_some() => None,
        (None, None) => {
            let message = format!("[receivers.{name}] lacks \"webhook_url\", or \"bot_token\" and \"channel\"");
            bench.report.error(receiver.at, message);
            None
        }
    }
}

/// Who hears what Matins says about itself. Unless given: the first receiver of the last route's digests that is no
/// owner, else the first receiver of pages, so that a service never breaks in silence.
fn operator(
    root: &Cursor<'_>,
    routes: &[crate::route::Route],
    receivers: &BTreeMap<ReceiverName, Receiver>,
) -> Vec<ReceiverName> {
    if let Some(operator) = root.given("operator") {
        return operator.texts("to").into_iter().map(ReceiverName::new).collect();
    }
    let fixed = |name: &&ReceiverName| receivers.get(*name).is_some_and(|r| !r.kind.is_owner());
    let of_digests = routes.last().into_iter().flat_map(|r| r.digest.values().flatten());
    let of_pages = routes.iter().flat_map(|r| &r.page);
    of_digests.chain(of_pages).find(fixed).cloned().into_iter().collect()
}

fn calendars(root: &Cursor<'_>, bench: Bench<'_>) -> BTreeMap<CalendarName, Calendar> {
    let read = |(name, cursor): (&str, Cursor<'_>)| {
        let hours = hours(&cursor, bench);
        let timezone = parse_zone(cursor.text("timezone")?).ok()?;
        let mut holidays = holidays(&cursor);
        holidays.extend(holidays_of_file(&cursor, bench)?);
        Some((CalendarName::new(name), Calendar { timezone, hours: hours?, holidays }))
    };
    root.named("calendars").into_iter().filter_map(read).collect()
}

fn holidays(calendar: &Cursor<'_>) -> std::collections::BTreeSet<chrono::NaiveDate> {
    let days = calendar.node("holidays").map(|n| n.items()).unwrap_or_default();
    days.iter().filter_map(|day| value::day(value::date_text(day)?)).collect()
}

/// Holidays of an iCalendar file: some years back, so that recorded events can be played, and some years ahead.
fn holidays_of_file(calendar: &Cursor<'_>, bench: Bench<'_>) -> Option<std::collections::BTreeSet<chrono::NaiveDate>> {
    const DAYS: chrono::Days = chrono::Days::new(5 * 366);
    let Some(path) = bench.beside(calendar, "holidays_ics") else { return Some(Default::default()) };
    let (place, today) = (calendar.place("holidays_ics"), bench.now.date_naive());
    let text = match std::fs::read_to_string(&path) {
        Ok(text) => text,
        Err(error) => {
            bench.report.error(place, format!("{} can't be read: {error}", path.display()));
            return None;
        }
    };
    let name = calendar.text("holidays_ics").unwrap_or_default().to_owned();
    bench.report.note_named(Source { name, path: path.clone(), text: text.clone() });
    match holidays_from_ics(&text, today - DAYS, today + DAYS) {
        Ok(holidays) => Some(holidays),
        Err(error) => {
            bench.report.error(place, format!("{}: {error}", path.display()));
            None
        }
    }
}

fn hours(calendar: &Cursor<'_>, bench: Bench<'_>) -> Option<WeekHours> {
    let table = calendar.node("hours")?.table()?;
    let texts = |node: &super::tree::Node| node.items().iter().filter_map(|n| n.text()).map(str::to_owned).collect();
    let entries: Vec<(String, Vec<String>)> = table.0.iter().map(|e| (e.key.clone(), texts(&e.node))).collect();
    let errors = match WeekHours::parse(&entries) {
        Ok(hours) => return Some(hours),
        Err(errors) => errors,
    };
    for error in errors {
        let mut spans = table.0.iter().flat_map(|e| e.node.items()).map(|n| (n.text(), n));
        let key = table.0.iter().find(|e| e.key == error.value).map(|e| e.at);
        let span = spans.find(|(text, _)| *text == Some(error.value.as_str())).map(|(_, node)| node);
        let at = key.or(span.map(|n| n.at)).unwrap_or_else(|| calendar.place("hours"));
        match span.and_then(|n| n.string()).filter(|text| text.is_expanded()) {
            Some(text) => bench.report.value_error(at, &text.written, format!("{:?} gives no hours", text.written)),
            None => bench.report.value_error(at, &error.value, format!("{:?}: {}", error.value, error.message)),
        }
    }
    None
}

fn digests(
    root: &Cursor<'_>,
    bench: Bench<'_>,
    calendars: &BTreeMap<CalendarName, Calendar>,
) -> BTreeMap<DigestName, DigestSettings> {
    let read = |(name, cursor): (&str, Cursor<'_>)| {
        let name = DigestName::new(name);
        let schedule = Schedule::parse(cursor.text("cron")?).ok()?;
        if schedule.both_days_restricted() {
            let message = "this line names a day of the month and a weekday: as in cron, it is due on either";
            bench.report.warn(cursor.place("cron"), message);
        }
        let calendar = cursor.text("calendar").map(CalendarName::new);
        let of_calendar = calendar.as_ref().and_then(|c| calendars.get(c)).map(|c| c.timezone);
        let timezone = match cursor.node("timezone") {
            Some(_) => parse_zone(cursor.text("timezone")?).ok()?,
            None => of_calendar.unwrap_or(Tz::UTC),
        };
        let send_empty = cursor.text("empty")? == "send";
        let max_hold = cursor.time("max_hold");
        Some((name.clone(), DigestSettings { name, schedule, calendar, timezone, send_empty, max_hold }))
    };
    root.named("digests").into_iter().filter_map(read).collect()
}

fn watchdog(watchdog: &Cursor<'_>) -> Option<Watchdog> {
    Some(Watchdog { ping_url: watchdog.secret("ping_url")?, every: watchdog.time("every")? })
}

fn web_auth(auth: &Cursor<'_>) -> WebAuth {
    let users = auth.tables("users");
    let tokens = auth.tables("tokens");
    let role = |word: &str| match word {
        "ingest" => Some(Role::Ingest),
        "read" => Some(Role::Read),
        "operate" => Some(Role::Operate),
        _ => None,
    };
    WebAuth {
        users: users.iter().filter_map(|u| Some((u.string("name")?, u.secret("hash")?))).collect(),
        tokens: tokens
            .iter()
            .filter_map(|t| Some((t.string("name")?, t.secret("token")?, role(t.text("role")?)?)))
            .collect(),
        proxy_header: auth.string("trusted_proxy_header"),
    }
}
