//! Single values of config: how each form is read, and what is wrong with one that can't be. Pure.

use super::duration::parse_duration;
use super::keys::Form;
use super::tree::{Node, Value};
use crate::calendar::{Schedule, parse_zone};
use crate::mailbox::Mailbox;
use crate::matcher::MatchKey;
use chrono::{DateTime, NaiveDate, Utc};
use std::net::SocketAddr;
use std::time::Duration;

/// A word for what a form takes.
pub(super) fn noun(form: &Form) -> &'static str {
    match form {
        Form::Time | Form::Period => "a time",
        Form::TimeOrNever => "a time or \"never\"",
        Form::Count(..) => "a whole number",
        Form::Decimal(..) => "a number",
        Form::Flag => "true or false",
        Form::Day => "a date",
        Form::Instant => "an instant such as 2026-09-01T08:00:00Z",
        Form::Table(_)
        | Form::FlagOrTable(_)
        | Form::Named(_)
        | Form::Map(_)
        | Form::MapOf(..)
        | Form::Match
        | Form::Hours => "a table",
        Form::Tables(_) => "a list of tables",
        Form::Text
        | Form::Secret
        | Form::Word(_)
        | Form::Url(_)
        | Form::SecretUrl(_)
        | Form::Mailbox
        | Form::Recipients
        | Form::Zone
        | Form::Cron
        | Form::Regex
        | Form::Subject { .. }
        | Form::NatsName
        | Form::Socket
        | Form::Path
        | Form::Ref(_)
        | Form::MatchKey { .. }
        | Form::OneOrList(_) => "a string",
    }
}

/// What is wrong with a text of that form; none when nothing is. Never quotes the text, except for what a cron line says.
pub(super) fn problem(form: &Form, text: &str) -> Option<String> {
    match form {
        Form::Time => time(text).is_none().then(|| TIME_HINT.to_owned()),
        Form::Period => period_problem(text),
        Form::TimeOrNever => period_problem(text).filter(|_| text != "never").map(|p| format!("{p}, or \"never\"")),
        Form::Day => day(text).is_none().then(|| "no date; write it as 2026-12-25".to_owned()),
        Form::Instant => {
            instant(text).is_none().then(|| "no instant; write it with its offset, as 2026-09-01T08:00:00Z".to_owned())
        }
        Form::Url(schemes) | Form::SecretUrl(schemes) => url_problem(text, schemes),
        Form::Mailbox => Mailbox::parse(text)
            .is_none()
            .then(|| "no mailbox; write name@example.com or \"Name <name@example.com>\"".to_owned()),
        Form::Cron => cron_problem(text),
        Form::Regex => {
            regex::Regex::new(text).err().map(|e| format!("no regular expression: {}", last_line(&e.to_string())))
        }
        Form::Subject { wildcards } => subject_problem(text, *wildcards),
        Form::NatsName => {
            let wrong = text.contains(|c: char| c.is_whitespace() || c.is_control() || ".*>/\\".contains(c));
            wrong.then(|| "a NATS name has no spaces, dots, slashes, * or >".to_owned())
        }
        Form::Socket => {
            socket(text).is_none().then(|| "no address to listen on; write it as 127.0.0.1:8420".to_owned())
        }
        Form::MatchKey { fingerprint } => match_key_problem(text, *fingerprint),
        Form::Zone => parse_zone(text).err().map(|_| "no IANA time zone".to_owned()),
        Form::Text
        | Form::Secret
        | Form::Word(_)
        | Form::Count(..)
        | Form::Decimal(..)
        | Form::Flag
        | Form::Recipients
        | Form::Path
        | Form::Ref(_)
        | Form::OneOrList(_)
        | Form::Table(_)
        | Form::FlagOrTable(_)
        | Form::Tables(_)
        | Form::Named(_)
        | Form::Map(_)
        | Form::MapOf(..)
        | Form::Match
        | Form::Hours => None,
    }
}

const TIME_HINT: &str = "no time; write whole numbers with units: 250ms, 90s, 5m, 4h, 30d, 1h30m";

fn period_problem(text: &str) -> Option<String> {
    match time(text) {
        None => Some(TIME_HINT.to_owned()),
        Some(Duration::ZERO) => Some("it must be longer than nothing".to_owned()),
        Some(_) => None,
    }
}

/// A time.
pub(super) fn time(text: &str) -> Option<Duration> {
    parse_duration(text)
}

/// The text of a date or instant, in quotes or not.
pub(super) fn date_text(node: &Node) -> Option<&str> {
    if let Value::Instant(text) = &node.value { Some(text) } else { node.text() }
}

/// A local date.
pub(super) fn day(text: &str) -> Option<NaiveDate> {
    NaiveDate::parse_from_str(text, "%Y-%m-%d").ok()
}

/// An instant with its offset.
pub(super) fn instant(text: &str) -> Option<DateTime<Utc>> {
    DateTime::parse_from_rfc3339(text).ok().map(|at| at.to_utc())
}

/// An address to listen on; `localhost` is the IPv4 loopback.
pub(super) fn socket(text: &str) -> Option<SocketAddr> {
    match text.strip_prefix("localhost:") {
        Some(port) => port.parse().ok().map(|port: u16| SocketAddr::from(([127, 0, 0, 1], port))),
        None => text.parse().ok(),
    }
}

/// A whole number; one that was filled in from the environment may stand in quotes.
pub(super) fn integer(node: &Node) -> Option<i128> {
    match &node.value {
        Value::Integer(digits) => digits.parse().ok(),
        Value::Text(text) if text.is_expanded() => text.value.as_deref()?.trim().parse().ok(),
        Value::Text(_) | Value::Float(_) | Value::Flag(_) | Value::Instant(_) | Value::List(_) | Value::Table(_) => {
            None
        }
    }
}

/// A number as plain decimal text without a sign, `0.995`; none for exponents, `inf` and `nan`.
pub(super) fn decimal(node: &Node) -> Option<String> {
    let text = match &node.value {
        Value::Integer(digits) | Value::Float(digits) => digits.as_str(),
        Value::Text(text) if text.is_expanded() => text.value.as_deref()?.trim(),
        Value::Text(_) | Value::Flag(_) | Value::Instant(_) | Value::List(_) | Value::Table(_) => return None,
    };
    let plain = text.strip_prefix('+').unwrap_or(text).replace('_', "");
    let digits = plain.strip_prefix('-').unwrap_or(&plain);
    let is_plain = digits.starts_with(|c: char| c.is_ascii_digit())
        && digits.chars().all(|c| c.is_ascii_digit() || c == '.')
        && digits.matches('.').count() <= 1;
    is_plain.then_some(plain)
}

/// A value as a problem may show it; empty for lists and tables.
pub(super) fn shown(node: &Node) -> String {
    match &node.value {
        Value::Text(text) => format!("{:?}", text.written),
        Value::Integer(text) | Value::Float(text) | Value::Instant(text) => text.clone(),
        Value::Flag(flag) => flag.to_string(),
        Value::List(_) | Value::Table(_) => String::new(),
    }
}

fn url_problem(text: &str, schemes: &[&str]) -> Option<String> {
    let wanted = format!(
        "an address begins with {}",
        schemes.iter().map(|s| format!("{s}://")).collect::<Vec<_>>().join(" or ")
    );
    let Some((scheme, rest)) = text.split_once("://") else {
        return Some(wanted);
    };
    if !schemes.contains(&scheme) || rest.is_empty() {
        return Some(wanted);
    }
    if scheme == "sqlite" {
        return None;
    }
    match url::Url::parse(text) {
        Ok(url) if url.has_host() => None,
        Ok(_) => Some("the address has no host".to_owned()),
        Err(error) => Some(format!("no address: {error}")),
    }
}

/// What is wrong with the name of a receiver or a digest; none when nothing is.
pub(super) fn name_problem(name: &str) -> Option<String> {
    let plain = name.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '.' | '-'));
    let wrong = !plain || name.starts_with('.') || name.contains("..");
    wrong.then(|| "it takes letters, digits, _ - and single dots, and does not begin with a dot".to_owned())
}

fn cron_problem(text: &str) -> Option<String> {
    Schedule::parse(text).err().map(|e| format!("no cron line: {e}"))
}

fn last_line(text: &str) -> &str {
    text.lines().last().map_or(text, |l| l.trim_start_matches("error: "))
}

fn subject_problem(text: &str, wildcards: bool) -> Option<String> {
    let tokens: Vec<&str> = text.split('.').collect();
    let blank = tokens.iter().any(|t| t.is_empty() || t.contains(|c: char| c.is_whitespace() || c.is_control()));
    let wild = tokens.iter().any(|t| t.contains(['*', '>']));
    let misplaced = tokens
        .iter()
        .enumerate()
        .any(|(n, t)| (t.contains('>') && (*t != ">" || n + 1 < tokens.len())) || (t.contains('*') && *t != "*"));
    if wildcards && (tokens == [">"] || tokens == ["*", ">"]) {
        Some("this takes every subject of the server, its own too; begin with a word, as in failures.>".to_owned())
    } else if blank {
        Some("a subject is words with dots between, without spaces".to_owned())
    } else if wild && !wildcards {
        Some("this subject is published on: it takes no wildcard".to_owned())
    } else if misplaced {
        Some("in a subject * is a whole word, and > the last one".to_owned())
    } else {
        None
    }
}

fn match_key_problem(text: &str, fingerprint: bool) -> Option<String> {
    let known = MatchKey::parse(text).is_some() || (fingerprint && text == "fingerprint");
    let more = if fingerprint { ", fingerprint" } else { "" };
    (!known).then(|| format!("no key: it takes workflow, domain, class, step, downstream{more} and label.<key>"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_need_their_scheme_and_a_host() {
        assert_eq!(problem(&Form::Url(&["http", "https"]), "https://a.example/x"), None);
        assert_eq!(problem(&Form::SecretUrl(&["sqlite"]), "sqlite://matins.db"), None);
        for text in ["example.com", "ftp://a", "https://", "https:///x y"] {
            assert!(problem(&Form::Url(&["http", "https"]), text).is_some(), "{text}");
        }
    }

    #[test]
    fn subjects_have_wildcards_in_their_place_only() {
        let wild = Form::Subject { wildcards: true };
        for text in ["failures.>", "a.*.b", "extra"] {
            assert_eq!(problem(&wild, text), None, "{text}");
        }
        for text in ["", "a..b", "a.>.b", "a*", "a b", ">x", ">", "*.>"] {
            assert!(problem(&wild, text).is_some(), "{text}");
        }
        assert!(problem(&Form::Subject { wildcards: false }, "a.>").is_some());
    }
}
