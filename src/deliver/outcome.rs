//! One table from a reply to an outcome: Slack, webhook, SMTP. Pure; what follows from an outcome is `outbox::policy`'s.

use crate::outbox::Outcome;
use chrono::{DateTime, Utc};
use serde_json::Value;
use std::time::Duration;

/// What a web server answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reply<'a> {
    /// HTTP status.
    pub status: u16,
    /// The `Retry-After` header.
    pub retry_after: Option<&'a str>,
    /// The body, or its first kilobytes.
    pub body: &'a str,
}

/// Words by which Slack says that this channel, token or team will not take anything.
const SLACK_BROKEN: &[&str] = &[
    "access_denied",
    "account_inactive",
    "action_prohibited",
    "channel_is_archived",
    "channel_not_found",
    "ekm_access_denied",
    "enterprise_is_restricted",
    "invalid_auth",
    "invalid_token",
    "is_archived",
    "missing_scope",
    "no_active_hooks",
    "no_permission",
    "no_service",
    "no_service_id",
    "no_team",
    "not_allowed_token_type",
    "not_authed",
    "not_in_channel",
    "org_login_required",
    "posting_to_general_channel_denied",
    "restricted_action",
    "team_access_not_granted",
    "team_disabled",
    "token_expired",
    "token_revoked",
    "user_not_found",
];

/// Words by which Slack refuses the form of one message.
const SLACK_CONTENT: &[&str] = &[
    "invalid_arguments",
    "invalid_array_arg",
    "invalid_attachments",
    "invalid_blocks",
    "invalid_blocks_format",
    "invalid_form_data",
    "invalid_json",
    "invalid_payload",
    "markdown_text_conflict",
    "message_limit_exceeded",
    "msg_blocks_too_long",
    "msg_too_long",
    "no_text",
    "too_many_attachments",
];

/// Words by which Slack asks to wait.
const SLACK_LATER: &[&str] = &[
    "accesslimited",
    "fatal_error",
    "internal_error",
    "rate_limited",
    "ratelimited",
    "request_timeout",
    "rollup_error",
    "service_unavailable",
    "team_added_to_org",
];

/// Reads Slack's answer, of a webhook or of the Web API. Success is only the body `ok` or `"ok":true`: a proxy's login page
/// is a 200 as well.
pub fn slack(reply: Reply<'_>, now: DateTime<Utc>) -> Outcome {
    let json: Option<Value> = serde_json::from_str(reply.body).ok();
    let body = reply.body.trim();
    let accepted = body == "ok" || json.as_ref().is_some_and(|j| j.get("ok") == Some(&Value::Bool(true)));
    if reply.status == 200 && accepted {
        return Outcome::Delivered;
    }
    let word = json.as_ref().and_then(|j| j.get("error")).and_then(Value::as_str).unwrap_or(body);
    let why = describe(reply.status, word);
    let in_body = json.as_ref().and_then(|j| j.get("retry_after")).and_then(seconds);
    let after = reply.retry_after.and_then(|text| read_retry_after(text, now)).or(in_body);
    let known = |table: &[&str]| table.contains(&word);
    if reply.status == 429 || known(SLACK_LATER) {
        Outcome::Retry { after, why }
    } else if known(SLACK_BROKEN) {
        Outcome::Permanent { why, broken: true }
    } else if known(SLACK_CONTENT) {
        Outcome::RejectedContent { why }
    } else {
        by_status(reply.status, after, why, Meaning::Content)
    }
}

/// Reads the answer of a webhook: any 2xx is a success.
pub fn webhook(reply: Reply<'_>, now: DateTime<Utc>) -> Outcome {
    if (200..300).contains(&reply.status) {
        return Outcome::Delivered;
    }
    let after = reply.retry_after.and_then(|text| read_retry_after(text, now));
    // The body is somebody else's text and may repeat what was sent: it stays out of logs.
    by_status(reply.status, after, describe(reply.status, ""), Meaning::Message)
}

/// What a 4xx without a word of its own speaks of.
#[derive(Clone, Copy)]
enum Meaning {
    /// The form; plain text may do.
    Content,
    /// The message as such.
    Message,
}

fn by_status(status: u16, after: Option<Duration>, why: String, meaning: Meaning) -> Outcome {
    match status {
        401..=405 | 407 | 410 => Outcome::Permanent { why, broken: true },
        408 | 421 | 423 | 425 | 429 => Outcome::Retry { after, why },
        400..=499 => match meaning {
            Meaning::Content => Outcome::RejectedContent { why },
            Meaning::Message => Outcome::Permanent { why, broken: false },
        },
        // Also a redirect, which is not followed, and a 200 that does not say ok: somebody stands in between.
        _ => Outcome::Retry { after, why },
    }
}

fn describe(status: u16, word: &str) -> String {
    let is_word = !word.is_empty() && word.len() <= 60 && word.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_');
    match (status, is_word) {
        (_, true) => format!("HTTP {status} {word}"),
        (300..=399, false) => format!("HTTP {status}, a redirect; it is not followed"),
        (200..=299, false) => format!("HTTP {status} without ok"),
        (_, false) => format!("HTTP {status}"),
    }
}

/// Reads a `Retry-After` header: seconds or an HTTP date. A date in the past is no wait.
pub fn read_retry_after(text: &str, now: DateTime<Utc>) -> Option<Duration> {
    let text = text.trim();
    if let Ok(wait) = text.parse::<f64>() {
        return positive(wait);
    }
    let at = DateTime::parse_from_rfc2822(text).ok()?;
    Some((at.with_timezone(&Utc) - now).to_std().unwrap_or(Duration::ZERO))
}

fn seconds(value: &Value) -> Option<Duration> {
    let wait = value.as_f64().or_else(|| value.as_str()?.trim().parse().ok())?;
    positive(wait)
}

fn positive(wait: f64) -> Option<Duration> {
    if wait.is_nan() {
        return None;
    }
    Some(Duration::try_from_secs_f64(wait.max(0.0)).unwrap_or(Duration::MAX))
}

/// How far a conversation with a mail server had come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stage {
    /// Line, greeting, EHLO, TLS.
    Connect,
    /// Signing in.
    Auth,
    /// `MAIL FROM`
    Mail,
    /// `RCPT TO`
    Rcpt,
    /// `DATA`, before a byte of the mail.
    Data,
    /// The mail is out, its answer is awaited.
    Dot,
}

impl Stage {
    /// Every stage in order.
    pub const ALL: [Self; 6] = [Self::Connect, Self::Auth, Self::Mail, Self::Rcpt, Self::Data, Self::Dot];

    /// The word in error texts.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Connect => "connect",
            Self::Auth => "AUTH",
            Self::Mail => "MAIL",
            Self::Rcpt => "RCPT",
            Self::Data => "DATA",
            Self::Dot => "end of DATA",
        }
    }
}

/// Reads a refusal of a mail server; `text` is what it said after the code.
pub fn smtp(stage: Stage, code: u16, text: &str) -> Outcome {
    let why = format!("{code} {text} (at {})", stage.as_str());
    match code {
        // Sign-in is missing or wrong, whenever it is noticed.
        530 | 534 | 535 | 538 => Outcome::Permanent { why, broken: true },
        500..=599 => {
            let broken = match stage {
                Stage::Connect | Stage::Auth | Stage::Mail | Stage::Rcpt => true,
                // The mail was looked at and not liked; the mailbox is fine.
                Stage::Data | Stage::Dot => false,
            };
            Outcome::Permanent { why, broken }
        }
        _ => Outcome::Retry { after: None, why },
    }
}

/// Reads a line that broke or fell silent. Only once the whole mail is out can it have been taken.
pub fn smtp_lost(stage: Stage, why: &str) -> Outcome {
    let why = format!("{why} (at {})", stage.as_str());
    match stage {
        Stage::Dot => Outcome::Unsure { why },
        Stage::Connect | Stage::Auth | Stage::Mail | Stage::Rcpt | Stage::Data => Outcome::Retry { after: None, why },
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fmt::Write as _;

    fn at() -> DateTime<Utc> {
        "2026-03-02T09:00:00Z".parse().unwrap()
    }

    fn reply(status: u16, body: &str) -> Reply<'_> {
        Reply { status, retry_after: None, body }
    }

    fn word(outcome: &Outcome) -> &'static str {
        match outcome {
            Outcome::Delivered => "delivered",
            Outcome::Retry { .. } => "retry",
            Outcome::Permanent { broken: true, .. } => "broken",
            Outcome::Permanent { broken: false, .. } => "refused",
            Outcome::RejectedContent { .. } => "content",
            Outcome::Unsure { .. } => "unsure",
        }
    }

    /// Runs of equal outcomes over every code.
    fn table(read: impl Fn(u16) -> Outcome) -> String {
        let mut text = String::new();
        let mut first = 100;
        for code in 100..=599 {
            let here = word(&read(code));
            if code == 599 || word(&read(code + 1)) != here {
                let _ = writeln!(text, "{first}..={code} {here}");
                first = code + 1;
            }
        }
        text
    }

    #[test]
    fn slack_by_status_without_a_word() {
        insta::assert_snapshot!(table(|code| slack(reply(code, "<html>"), at())), @r"
        100..=399 retry
        400..=400 content
        401..=405 broken
        406..=406 content
        407..=407 broken
        408..=408 retry
        409..=409 content
        410..=410 broken
        411..=420 content
        421..=421 retry
        422..=422 content
        423..=423 retry
        424..=424 content
        425..=425 retry
        426..=428 content
        429..=429 retry
        430..=499 content
        500..=599 retry
        ");
    }

    #[test]
    fn slack_by_status_with_ok() {
        let accepted = |code| slack(reply(code, "ok"), at()) == Outcome::Delivered;
        assert_eq!((100..=599).filter(|c| accepted(*c)).collect::<Vec<_>>(), [200]);
    }

    #[test]
    fn webhook_by_status() {
        insta::assert_snapshot!(table(|code| webhook(reply(code, ""), at())), @r"
        100..=199 retry
        200..=299 delivered
        300..=399 retry
        400..=400 refused
        401..=405 broken
        406..=406 refused
        407..=407 broken
        408..=408 retry
        409..=409 refused
        410..=410 broken
        411..=420 refused
        421..=421 retry
        422..=422 refused
        423..=423 retry
        424..=424 refused
        425..=425 retry
        426..=428 refused
        429..=429 retry
        430..=499 refused
        500..=599 retry
        ");
    }

    #[test]
    fn smtp_by_code_and_stage() {
        let all: String =
            Stage::ALL.iter().map(|s| format!("{}\n{}", s.as_str(), table(|c| smtp(*s, c, "no")))).collect();
        insta::assert_snapshot!(all, @r"
        connect
        100..=499 retry
        500..=599 broken
        AUTH
        100..=499 retry
        500..=599 broken
        MAIL
        100..=499 retry
        500..=599 broken
        RCPT
        100..=499 retry
        500..=599 broken
        DATA
        100..=499 retry
        500..=529 refused
        530..=530 broken
        531..=533 refused
        534..=535 broken
        536..=537 refused
        538..=538 broken
        539..=599 refused
        end of DATA
        100..=499 retry
        500..=529 refused
        530..=530 broken
        531..=533 refused
        534..=535 broken
        536..=537 refused
        538..=538 broken
        539..=599 refused
        ");
    }

    #[test]
    fn slack_success_is_only_ok() {
        for (body, expected) in [
            ("ok", "delivered"),
            ("ok\n", "delivered"),
            (r#"{"ok":true,"ts":"1"}"#, "delivered"),
            (r#"{ "ok" : true }"#, "delivered"),
            (r#"{"ok":"true"}"#, "retry"),
            ("<html>please log in</html>", "retry"),
            ("", "retry"),
            (r#"{"ok":false,"error":"brand_new_word"}"#, "retry"),
            (r#"{"ok":false,"error":"internal_error"}"#, "retry"),
            (r#"{"ok":false,"error":"invalid_auth"}"#, "broken"),
            (r#"{"ok":false,"error":"channel_not_found"}"#, "broken"),
            (r#"{"ok":false,"error":"invalid_blocks"}"#, "content"),
        ] {
            assert_eq!(word(&slack(reply(200, body), at())), expected, "{body}");
        }
    }

    #[test]
    fn slack_words_decide_whatever_the_status() {
        for (status, body, expected) in [
            (404, "no_service", "broken"),
            (404, "channel_not_found", "broken"),
            (410, "channel_is_archived", "broken"),
            (403, "invalid_token", "broken"),
            (403, "action_prohibited", "broken"),
            (400, "no_team", "broken"),
            (400, "invalid_payload", "content"),
            (400, "invalid_blocks", "content"),
            (500, "rollup_error", "retry"),
            (503, "away", "retry"),
            (302, "", "retry"),
        ] {
            assert_eq!(word(&slack(reply(status, body), at())), expected, "{status} {body}");
        }
    }

    #[test]
    fn slack_says_how_long_to_wait_in_the_header_or_in_the_body() {
        let wait = |retry_after, body| {
            let Outcome::Retry { after, .. } = slack(Reply { status: 429, retry_after, body }, at()) else { panic!() };
            after.map(|d| d.as_secs())
        };
        assert_eq!(wait(Some("7"), r#"{"retry_after":9,"ok":false,"error":"rate_limited"}"#), Some(7));
        assert_eq!(wait(None, r#"{"retry_after":9,"ok":false,"error":"rate_limited"}"#), Some(9));
        assert_eq!(wait(None, r#"{"retry_after":"9"}"#), Some(9));
        assert_eq!(wait(None, "slow down"), None);
    }

    #[test]
    fn retry_after_is_seconds_or_a_date() {
        let read = |text| read_retry_after(text, at()).map(|d| d.as_secs());
        assert_eq!(read(" 120 "), Some(120));
        assert_eq!(read("1.5"), Some(1));
        assert_eq!(read("Mon, 02 Mar 2026 09:00:30 GMT"), Some(30));
        assert_eq!(read("Mon, 02 Mar 2026 08:00:00 GMT"), Some(0), "in the past");
        assert_eq!(read("-5"), Some(0));
        assert_eq!(read("1e300"), Some(u64::MAX));
        assert_eq!(read("NaN"), None);
        assert_eq!(read("soon"), None);
    }

    #[test]
    fn a_reason_holds_slacks_word_and_no_other_text() {
        let why = |status, body| {
            let outcome = slack(reply(status, body), at());
            let (Outcome::Retry { why, .. } | Outcome::Permanent { why, .. }) = outcome else { panic!("{outcome:?}") };
            why
        };
        assert_eq!(why(404, "no_service"), "HTTP 404 no_service");
        assert_eq!(why(200, "<a href='https://hooks.slack.com/services/T0/B0/SECRET'>"), "HTTP 200 without ok");
        assert_eq!(why(302, ""), "HTTP 302, a redirect; it is not followed");
    }

    #[test]
    fn only_after_the_whole_mail_is_a_lost_line_unsure() {
        let unsure: Vec<_> = Stage::ALL.into_iter().filter(|s| word(&smtp_lost(*s, "reset")) == "unsure").collect();
        assert_eq!(unsure, [Stage::Dot]);
    }
}
