//! Gives an event its class and disposition: what it says itself, then `[[classify]]` rules in their order, then the
//! built-in table (CONTRACT 4). What follows from a class is decided elsewhere.
//!
//! The table asks, in this order: names that say more than any status (a model's refusal, an expired token, a lost
//! answer), the HTTP status, names and codes of the net and of validation, phrases of the message.

use super::decode::native::Said;
use crate::config::{ClassifyKey, ClassifyRule};
use crate::event::{Class, Disposition, ErrorInfo, Event, EventType};
use aho_corasick::{AhoCorasick, MatchKind};

/// What was decided, and by which rule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Verdict {
    /// Kind of fault.
    pub class: Class,
    /// `explicit`, `classify:<name>`, `builtin:<what>`, or `none` when the event is no failure.
    pub rule: String,
    /// What becomes of the step.
    pub disposition: Disposition,
}

/// The rules of config before the built-in table.
#[derive(Debug)]
pub struct Classifier {
    rules: Vec<ClassifyRule>,
    phrases: Option<AhoCorasick>,
}

impl Classifier {
    /// Keeps config's order: the first rule that matches wins.
    pub fn new(rules: &[ClassifyRule]) -> Self {
        let words = PHRASES.iter().map(|(phrase, _, _)| phrase);
        let phrases = AhoCorasick::builder().ascii_case_insensitive(true).match_kind(MatchKind::Standard).build(words);
        Self { rules: rules.to_vec(), phrases: phrases.ok() }
    }

    /// Class and disposition of an event.
    pub fn classify(&self, event: &Event, said: &Said) -> Verdict {
        if event.event_type != EventType::Failure {
            return Verdict { class: Class::Unclassified, rule: "none".into(), disposition: Disposition::Skipped };
        }
        let (class, rule, ruled) = self.class(event, said);
        let disposition = said.disposition.or(ruled).unwrap_or_else(|| default_disposition(class, event));
        Verdict { class, rule, disposition }
    }

    fn class(&self, event: &Event, said: &Said) -> (Class, String, Option<Disposition>) {
        if let Some(class) = said.class {
            return (class, "explicit".into(), None);
        }
        if let Some(rule) = self.rules.iter().find(|rule| matches(rule, event)) {
            return (rule.class, format!("classify:{}", rule.name), rule.disposition);
        }
        if said.is_interrupted {
            return (Class::Interrupted, "builtin:status_interrupted".into(), None);
        }
        match self.infer(&event.error) {
            Some((class, what)) => (class, format!("builtin:{what}"), None),
            None => (Class::Unclassified, "builtin:unmatched".into(), None),
        }
    }

    fn infer(&self, error: &ErrorInfo) -> Option<(Class, String)> {
        let names: Vec<String> = [&error.code, &error.kind].into_iter().flatten().map(|n| plain(n)).collect();
        let by_name = |table: fn(&str) -> Option<Class>| {
            names.iter().find_map(|name| Some((table(name)?, format!("name_{name}"))))
        };
        let phrase = error.message.as_deref().and_then(|m| self.phrase(m));
        let by_phrase = |strong: bool| {
            let (word, class, rank) = phrase?;
            ((rank == Rank::Strong) == strong).then(|| (class, format!("message_{}", word.replace([' ', '-'], "_"))))
        };
        by_name(strong_name)
            .or_else(|| by_phrase(true))
            .or_else(|| by_status(error, phrase))
            .or_else(|| by_name(weak_name))
            .or_else(|| by_phrase(false))
    }

    /// The phrase of the table's first row that the message holds.
    fn phrase(&self, message: &str) -> Option<(&'static str, Class, Rank)> {
        let first = self.phrases.as_ref()?.find_overlapping_iter(message).map(|m| m.pattern().as_usize()).min()?;
        PHRASES.get(first).copied()
    }
}

fn default_disposition(class: Class, event: &Event) -> Disposition {
    let is_exhausted = event.attempt.zip(event.max_attempts).is_some_and(|(attempt, max)| attempt >= max);
    match class {
        Class::Transient | Class::RateLimited if is_exhausted => Disposition::DeadLettered,
        Class::Transient | Class::RateLimited => Disposition::Retrying,
        Class::Interrupted => Disposition::Skipped,
        Class::Persistent
        | Class::InvalidInput
        | Class::OutcomeUnknown
        | Class::LlmOutput
        | Class::LlmRefusal
        | Class::LlmHallucination
        | Class::LlmContext
        | Class::LlmBehavior
        | Class::Catastrophic
        | Class::Unclassified => Disposition::DeadLettered,
    }
}

/// All keys of a rule must match, of one key's globs any; a field that the event lacks matches nothing.
fn matches(rule: &ClassifyRule, event: &Event) -> bool {
    let error = &event.error;
    let status = error.http_status.map(|s| s.to_string());
    let fits = rule.globs.iter().all(|(key, globs)| {
        let value = match key {
            ClassifyKey::Workflow => Some(event.workflow.as_str()),
            ClassifyKey::Step => event.step.as_deref(),
            ClassifyKey::Downstream => event.downstream.as_deref(),
            ClassifyKey::ErrorType => error.kind.as_deref(),
            ClassifyKey::ErrorCode => error.code.as_deref(),
            ClassifyKey::HttpStatus => status.as_deref(),
            ClassifyKey::Message => error.message.as_deref(),
        };
        value.is_some_and(|v| globs.iter().any(|glob| glob.matches(v)))
    });
    let pattern = rule.message_regex.as_ref();
    fits && pattern.is_none_or(|regex| error.message.as_deref().is_some_and(|m| regex.is_match(m)))
}

/// `requests.exceptions.ConnectTimeout`, `connect_timeout` and `ConnectTimeout` are all `connecttimeout`.
fn plain(name: &str) -> String {
    let last = name.rsplit(['.', ':', '/', '\\']).find(|part| !part.is_empty()).unwrap_or(name);
    last.chars().filter(char::is_ascii_alphanumeric).take(64).map(|c| c.to_ascii_lowercase()).collect()
}

fn by_status(error: &ErrorInfo, phrase: Option<(&'static str, Class, Rank)>) -> Option<(Class, String)> {
    let status = error.http_status?;
    let has_rate_mark = error.retry_after_s.is_some()
        || phrase.is_some_and(|(_, class, _)| class == Class::RateLimited)
        || [&error.code, &error.kind].into_iter().flatten().any(|n| weak_name(&plain(n)) == Some(Class::RateLimited));
    let class = match status {
        403 if has_rate_mark => return Some((Class::RateLimited, "http_403_rate_limit".into())),
        429 => Class::RateLimited,
        408 | 421 | 423 | 425 | 499 => Class::Transient,
        501 | 505 => Class::Persistent,
        500..=599 => Class::Transient,
        401 | 402 | 403 | 404 | 407 | 410 | 426 | 451 => Class::Persistent,
        400..=499 => Class::InvalidInput,
        _ => return None,
    };
    Some((class, format!("http_{status}")))
}

/// Names of errors and codes that say more than the status beside them.
fn strong_name(name: &str) -> Option<Class> {
    Some(match name {
        "graphinterrupt" | "nodeinterrupt" | "interrupted" | "humaninterrupt" | "awaitinghuman" => Class::Interrupted,
        "outcomeunknown"
        | "unknownoutcome"
        | "unknowntransactioncommitresult"
        | "commitstateunknownexception"
        | "responselost"
        | "writeresultunknown" => Class::OutcomeUnknown,
        "datacorruption"
        | "datacorruptionerror"
        | "corruption"
        | "corruptiondetected"
        | "databreach"
        | "securitybreach"
        | "dataloss"
        | "checksummismatch" => Class::Catastrophic,
        "outputparserexception"
        | "outputparsingerror"
        | "outputparsererror"
        | "structuredoutputerror"
        | "structuredoutputvalidationerror"
        | "unexpectedmodelbehavior"
        | "instructorretryexception"
        | "lengthfinishreasonerror"
        | "noobjectgeneratederror"
        | "toolcallparseerror"
        | "invalidtoolcall" => Class::LlmOutput,
        "contentfilter"
        | "contentfiltererror"
        | "contentpolicyviolation"
        | "contentpolicyviolationerror"
        | "refusal"
        | "refusalerror"
        | "modelrefusal"
        | "contentfilterfinishreasonerror"
        | "responsibleaipolicyviolation" => Class::LlmRefusal,
        "hallucination" | "hallucinationerror" | "hallucinatedid" | "hallucinatedreference" | "groundingerror" => {
            Class::LlmHallucination
        }
        "contextlengthexceeded"
        | "contextlengthexceedederror"
        | "contextwindowexceeded"
        | "contextwindowexceedederror"
        | "contextoverflow"
        | "maxtokensexceeded"
        | "prompttoolong" => Class::LlmContext,
        "graphrecursionerror"
        | "graphrecursionlimit"
        | "delegationloop"
        | "agentloop"
        | "loopdetected"
        | "maxiterationsexceeded"
        | "maxturnsexceeded"
        | "toolloop" => Class::LlmBehavior,
        "insufficientquota"
        | "quotaexceeded"
        | "billingharderlimit"
        | "billinghardlimitreached"
        | "creditsexhausted"
        | "tokenexpired"
        | "tokenexpirederror"
        | "expiredtoken"
        | "expiredtokenexception"
        | "invalidgrant"
        | "expiredsignatureerror"
        | "jwtexpired"
        | "invalidapikey"
        | "invalidclient"
        | "authenticationerror"
        | "unauthenticated"
        | "accountsuspended" => Class::Persistent,
        _ => return None,
    })
}

/// Names that count when the status says nothing.
fn weak_name(name: &str) -> Option<Class> {
    Some(match name {
        "etimedout"
        | "econnreset"
        | "econnrefused"
        | "econnaborted"
        | "enotfound"
        | "eaiagain"
        | "epipe"
        | "ehostunreach"
        | "enetunreach"
        | "enetdown"
        | "ehostdown"
        | "esockettimedout"
        | "eaddrnotavail"
        | "errnetwork"
        | "errsocketclosed"
        | "undiciconnecttimeout"
        | "underrconnecttimeout"
        | "underrheaderstimeout"
        | "underrsocket"
        | "timeout"
        | "timeouterror"
        | "timeoutexception"
        | "timedout"
        | "connecttimeout"
        | "connecttimeouterror"
        | "readtimeout"
        | "readtimeouterror"
        | "writetimeout"
        | "pooltimeout"
        | "sockettimeoutexception"
        | "gatewaytimeout"
        | "deadlineexceeded"
        | "deadlineexceedederror"
        | "connectionerror"
        | "connecterror"
        | "connectexception"
        | "connectionreset"
        | "connectionreseterror"
        | "connectionrefused"
        | "connectionrefusederror"
        | "connectionabortederror"
        | "brokenpipeerror"
        | "apiconnectionerror"
        | "apitimeouterror"
        | "networkerror"
        | "remotedisconnected"
        | "chunkedencodingerror"
        | "incompleteread"
        | "unknownhostexception"
        | "gaierror"
        | "serviceunavailable"
        | "serviceunavailableerror"
        | "unavailable"
        | "overloaded"
        | "overloadederror"
        | "internalservererror"
        | "badgateway"
        | "deadlockdetected"
        | "serializationfailure"
        | "lockwaittimeout"
        | "workerlosterror" => Class::Transient,
        "ratelimit"
        | "ratelimited"
        | "ratelimiterror"
        | "ratelimitexceeded"
        | "ratelimitexceedederror"
        | "userratelimitexceeded"
        | "toomanyrequests"
        | "toomanyrequestsexception"
        | "throttled"
        | "throttling"
        | "throttlingexception"
        | "throttlederror"
        | "resourceexhausted"
        | "requestlimitexceeded"
        | "slowdown" => Class::RateLimited,
        "unauthorized"
        | "unauthorizederror"
        | "forbidden"
        | "forbiddenerror"
        | "permissiondenied"
        | "permissiondeniederror"
        | "permissionerror"
        | "accessdenied"
        | "accessdeniedexception"
        | "notfound"
        | "notfounderror"
        | "gone"
        | "paymentrequired"
        | "carddeclined"
        | "invalidcredentials"
        | "loginfailed"
        | "nopermissions"
        | "certificatehasexpired"
        | "certhasexpired" => Class::Persistent,
        "validationerror"
        | "validationexception"
        | "zoderror"
        | "jsondecodeerror"
        | "jsonparseerror"
        | "jsonparseexception"
        | "syntaxerror"
        | "unicodedecodeerror"
        | "valueerror"
        | "typeerror"
        | "keyerror"
        | "schemaerror"
        | "schemavalidationerror"
        | "badrequest"
        | "badrequesterror"
        | "invalidargument"
        | "illegalargumentexception"
        | "invalidinput"
        | "invalidinputerror"
        | "unprocessableentity"
        | "conflict"
        | "integrityerror"
        | "uniqueviolation"
        | "duplicatekey"
        | "parseerror"
        | "decodeerror"
        | "invalidrequesterror" => Class::InvalidInput,
        _ => return None,
    })
}

/// Whether a phrase counts before or after the status.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Rank {
    Strong,
    Weak,
}

/// Phrases in any case; the first row that the message holds wins.
const PHRASES: &[(&str, Class, Rank)] = &[
    ("response lost after write", Class::OutcomeUnknown, Rank::Strong),
    ("answer lost after write", Class::OutcomeUnknown, Rank::Strong),
    ("outcome unknown", Class::OutcomeUnknown, Rank::Strong),
    ("outcome is unknown", Class::OutcomeUnknown, Rank::Strong),
    ("may or may not have been", Class::OutcomeUnknown, Rank::Strong),
    ("may have been processed", Class::OutcomeUnknown, Rank::Strong),
    ("data corruption", Class::Catastrophic, Rank::Strong),
    ("data breach", Class::Catastrophic, Rank::Strong),
    ("corrupted data", Class::Catastrophic, Rank::Strong),
    ("data loss", Class::Catastrophic, Rank::Strong),
    ("waiting for human", Class::Interrupted, Rank::Strong),
    ("waiting for approval", Class::Interrupted, Rank::Strong),
    ("context_length_exceeded", Class::LlmContext, Rank::Strong),
    ("maximum context length", Class::LlmContext, Rank::Strong),
    ("context window", Class::LlmContext, Rank::Strong),
    ("prompt is too long", Class::LlmContext, Rank::Strong),
    ("content_filter", Class::LlmRefusal, Rank::Strong),
    ("content policy", Class::LlmRefusal, Rank::Strong),
    ("content management policy", Class::LlmRefusal, Rank::Strong),
    ("model refused", Class::LlmRefusal, Rank::Strong),
    ("output parser", Class::LlmOutput, Rank::Strong),
    ("could not parse llm output", Class::LlmOutput, Rank::Strong),
    ("delegation loop", Class::LlmBehavior, Rank::Strong),
    ("recursion limit", Class::LlmBehavior, Rank::Strong),
    ("without a stop condition", Class::LlmBehavior, Rank::Strong),
    ("hallucinat", Class::LlmHallucination, Rank::Strong),
    ("insufficient_quota", Class::Persistent, Rank::Strong),
    ("exceeded your current quota", Class::Persistent, Rank::Strong),
    ("credits used up", Class::Persistent, Rank::Strong),
    ("out of credits", Class::Persistent, Rank::Strong),
    ("token has expired", Class::Persistent, Rank::Strong),
    ("token is expired", Class::Persistent, Rank::Strong),
    ("token expired", Class::Persistent, Rank::Strong),
    ("expired token", Class::Persistent, Rank::Strong),
    ("token has been expired", Class::Persistent, Rank::Strong),
    ("credentials have expired", Class::Persistent, Rank::Strong),
    ("invalid_grant", Class::Persistent, Rank::Strong),
    ("rate limit", Class::RateLimited, Rank::Weak),
    ("rate-limit", Class::RateLimited, Rank::Weak),
    ("ratelimit", Class::RateLimited, Rank::Weak),
    ("rate_limit", Class::RateLimited, Rank::Weak),
    ("too many requests", Class::RateLimited, Rank::Weak),
    ("throttl", Class::RateLimited, Rank::Weak),
    ("slow down", Class::RateLimited, Rank::Weak),
    ("quota", Class::Persistent, Rank::Weak),
    ("validation failed", Class::InvalidInput, Rank::Weak),
    ("failed validation", Class::InvalidInput, Rank::Weak),
    ("schema check failed", Class::InvalidInput, Rank::Weak),
    ("validation error", Class::InvalidInput, Rank::Weak),
    ("invalid json", Class::InvalidInput, Rank::Weak),
    ("unexpected token", Class::InvalidInput, Rank::Weak),
    ("unexpected end of json", Class::InvalidInput, Rank::Weak),
    ("etimedout", Class::Transient, Rank::Weak),
    ("econnreset", Class::Transient, Rank::Weak),
    ("econnrefused", Class::Transient, Rank::Weak),
    ("enotfound", Class::Transient, Rank::Weak),
    ("eai_again", Class::Transient, Rank::Weak),
    ("timed out", Class::Transient, Rank::Weak),
    ("timeout", Class::Transient, Rank::Weak),
    ("deadline exceeded", Class::Transient, Rank::Weak),
    ("connection reset", Class::Transient, Rank::Weak),
    ("connection refused", Class::Transient, Rank::Weak),
    ("connection aborted", Class::Transient, Rank::Weak),
    ("connection closed", Class::Transient, Rank::Weak),
    ("broken pipe", Class::Transient, Rank::Weak),
    ("socket hang up", Class::Transient, Rank::Weak),
    ("temporarily unavailable", Class::Transient, Rank::Weak),
    ("service unavailable", Class::Transient, Rank::Weak),
    ("bad gateway", Class::Transient, Rank::Weak),
    ("name resolution", Class::Transient, Rank::Weak),
    ("network is unreachable", Class::Transient, Rank::Weak),
    ("deadlock", Class::Transient, Rank::Weak),
    ("unauthorized", Class::Persistent, Rank::Weak),
    ("permission denied", Class::Persistent, Rank::Weak),
    ("access denied", Class::Persistent, Rank::Weak),
    ("invalid api key", Class::Persistent, Rank::Weak),
    // After the timeouts: "Timeout expired" is one of those.
    ("expired", Class::Persistent, Rank::Weak),
];

#[cfg(test)]
mod tests;
