//! The built-in table row by row, and who wins over whom.

use super::*;
use crate::config::RedactSettings;
use crate::ingest::{DecodeOutcome, Inbound, Reader};
use crate::matcher::Glob;
use chrono::DateTime;
use regex::Regex;
use serde_json::{Value, json};
use std::collections::BTreeMap;

fn read(rules: &[ClassifyRule], fields: &Value) -> Event {
    let payload = fields.to_string();
    let received_at = DateTime::from_timestamp_millis(1_796_112_000_000).unwrap();
    let inbound = Inbound {
        subject: "failures.report",
        headers: &[],
        payload: payload.as_bytes(),
        stream: "F",
        sequence: 1,
        received_at,
    };
    let reader = Reader::new(&RedactSettings::default(), rules, &[0; 32]);
    match reader.read(inbound) {
        DecodeOutcome::Event(decoded) => decoded.event,
        DecodeOutcome::Quarantine { reason } => panic!("{reason}"),
    }
}

fn class_of(error: Value) -> (Class, String) {
    let mut fields = json!({"error": {"message": "answer of the other side"}});
    fields["error"].as_object_mut().unwrap().extend(error.as_object().unwrap().clone());
    let event = read(&[], &fields);
    (event.class, event.class_rule)
}

#[test]
fn every_row_of_the_table_gives_its_class() {
    for (error, class, rule) in [
        (json!({"http_status": 408}), Class::Transient, "http_408"),
        (json!({"http_status": 500}), Class::Transient, "http_500"),
        (json!({"http_status": "503"}), Class::Transient, "http_503"),
        (json!({"http_status": 529}), Class::Transient, "http_529"),
        (json!({"code": "ETIMEDOUT", "message": "connect timed out"}), Class::Transient, "name_etimedout"),
        (json!({"code": "ECONNRESET"}), Class::Transient, "name_econnreset"),
        (json!({"code": "EAI_AGAIN"}), Class::Transient, "name_eaiagain"),
        (json!({"type": "requests.exceptions.ConnectTimeout"}), Class::Transient, "name_connecttimeout"),
        (json!({"message": "read: connection reset by peer"}), Class::Transient, "message_connection_reset"),
        (json!({"message": "getaddrinfo ENOTFOUND x"}), Class::Transient, "message_enotfound"),
        (json!({"message": "Timeout expired"}), Class::Transient, "message_timeout"),
        (json!({"http_status": 429}), Class::RateLimited, "http_429"),
        (json!({"http_status": 403, "message": "API rate limit exceeded"}), Class::RateLimited, "http_403_rate_limit"),
        (json!({"http_status": 403, "retry_after_s": 30}), Class::RateLimited, "http_403_rate_limit"),
        (json!({"http_status": 403, "code": "userRateLimitExceeded"}), Class::RateLimited, "http_403_rate_limit"),
        (json!({"type": "RateLimitError"}), Class::RateLimited, "name_ratelimiterror"),
        (json!({"http_status": 401}), Class::Persistent, "http_401"),
        (json!({"http_status": 402}), Class::Persistent, "http_402"),
        (json!({"http_status": 403, "message": "forbidden"}), Class::Persistent, "http_403"),
        (json!({"http_status": "404"}), Class::Persistent, "http_404"),
        (json!({"http_status": 410}), Class::Persistent, "http_410"),
        (
            json!({"type": "TokenExpired", "message": "access token has expired"}),
            Class::Persistent,
            "name_tokenexpired",
        ),
        (json!({"message": "Token of user 7 expired"}), Class::Persistent, "message_expired"),
        (json!({"http_status": 429, "code": "insufficient_quota"}), Class::Persistent, "name_insufficientquota"),
        (json!({"http_status": 429, "message": "Credits used up"}), Class::Persistent, "message_credits_used_up"),
        (json!({"http_status": 400}), Class::InvalidInput, "http_400"),
        (json!({"http_status": 409}), Class::InvalidInput, "http_409"),
        (json!({"http_status": 422, "message": "upstream timed out"}), Class::InvalidInput, "http_422"),
        (
            json!({"type": "ValidationError", "message": "validation failed"}),
            Class::InvalidInput,
            "name_validationerror",
        ),
        (json!({"type": "ZodError"}), Class::InvalidInput, "name_zoderror"),
        (json!({"type": "json.decoder.JSONDecodeError"}), Class::InvalidInput, "name_jsondecodeerror"),
        (json!({"message": "response lost after write"}), Class::OutcomeUnknown, "message_response_lost_after_write"),
        (json!({"type": "OutputParserException"}), Class::LlmOutput, "name_outputparserexception"),
        (json!({"http_status": 400, "code": "content_filter"}), Class::LlmRefusal, "name_contentfilter"),
        (
            json!({"http_status": 400, "code": "context_length_exceeded"}),
            Class::LlmContext,
            "name_contextlengthexceeded",
        ),
        (json!({"type": "GraphRecursionError"}), Class::LlmBehavior, "name_graphrecursionerror"),
        (json!({"message": "the id was hallucinated"}), Class::LlmHallucination, "message_hallucinat"),
        (json!({"type": "GraphInterrupt"}), Class::Interrupted, "name_graphinterrupt"),
        (
            json!({"message": "data corruption in shard 3", "http_status": 500}),
            Class::Catastrophic,
            "message_data_corruption",
        ),
        (json!({"message": "the flux capacitor hums oddly"}), Class::Unclassified, "unmatched"),
        (json!({"http_status": 302}), Class::Unclassified, "unmatched"),
    ] {
        assert_eq!(class_of(error.clone()), (class, format!("builtin:{rule}")), "{error}");
    }
}

#[test]
fn every_status_has_a_class_or_none() {
    for status in 100..=599_u16 {
        let class = by_status(status, false).map(|(class, _)| class);
        assert_eq!(class.is_some(), status >= 400, "{status}");
        assert_ne!(class, Some(Class::Unclassified));
    }
}

#[test]
fn no_name_stands_twice_in_the_table() {
    let names: Vec<&str> =
        [STRONG_NAMES, WEAK_NAMES].iter().flat_map(|t| t.iter().flat_map(|(_, n)| n.iter().copied())).collect();
    assert_eq!(names.iter().collect::<std::collections::BTreeSet<_>>().len(), names.len());
    for name in names {
        assert_eq!(plain(name), name);
    }
}

#[test]
fn explicit_class_and_disposition_win() {
    let verdict = |fields: Value| {
        let e = read(&[], &fields);
        (e.class.as_str(), e.disposition.as_str(), e.class_rule)
    };
    let failed = |extra: Value| {
        let mut fields = json!({"error": {"http_status": 503, "message": "x"}});
        fields.as_object_mut().unwrap().extend(extra.as_object().unwrap().clone());
        fields
    };
    assert_eq!(
        verdict(failed(json!({"class": "invalid_input"}))),
        ("invalid_input", "dead_lettered", "explicit".into())
    );
    assert_eq!(verdict(failed(json!({"class": "Rate-Limited"}))), ("rate_limited", "retrying", "explicit".into()));
    assert_eq!(
        verdict(failed(json!({"class": "weird", "disposition": "weird"}))),
        ("transient", "retrying", "builtin:http_503".into())
    );
    assert_eq!(verdict(failed(json!({"disposition": "failed"}))), ("transient", "failed", "builtin:http_503".into()));
    assert_eq!(verdict(failed(json!({"class": "interrupted"}))), ("interrupted", "skipped", "explicit".into()));
    assert_eq!(verdict(failed(json!({"attempt": 3, "max_attempts": 3}))).1, "dead_lettered");
    assert_eq!(verdict(failed(json!({"attempt": 2, "max_attempts": 3}))).1, "retrying");
    assert_eq!(verdict(failed(json!({"attempt": 3, "max_attempts": 3, "disposition": "retrying"}))).1, "retrying");
}

#[test]
fn rules_of_config_come_before_the_table_and_all_keys_must_match() {
    let rule = |name: &str, keys: &[(ClassifyKey, &str)], class, disposition| ClassifyRule {
        name: name.into(),
        globs: keys.iter().map(|(k, g)| (*k, vec![Glob::new(*g)])).collect::<BTreeMap<_, _>>(),
        message_regex: None,
        class,
        disposition,
    };
    let mut by_text = rule("text", &[], Class::LlmRefusal, None);
    by_text.message_regex = Some(Regex::new("(?i)i cannot help").unwrap());
    let rules = [
        rule(
            "crm",
            &[(ClassifyKey::Workflow, "report"), (ClassifyKey::HttpStatus, "50?")],
            Class::Persistent,
            Some(Disposition::Failed),
        ),
        by_text,
    ];
    let e = read(&rules, &json!({"error": {"http_status": 503}}));
    assert_eq!(
        (e.class, e.class_rule.as_str(), e.disposition),
        (Class::Persistent, "classify:crm", Disposition::Failed)
    );
    let said = read(&rules, &json!({"error": {"http_status": 503}, "disposition": "retrying"}));
    assert_eq!(said.disposition, Disposition::Retrying);
    let other =
        read(&rules, &json!({"workflow": "pay", "error": {"http_status": 503, "message": "I cannot help with that"}}));
    assert_eq!(other.class_rule, "classify:text");
    assert_eq!(read(&rules, &json!({"error": {"message": "x"}})).class_rule, "builtin:unmatched");
}
