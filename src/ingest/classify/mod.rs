//! Gives an event its class and disposition: what it says itself, then `[[classify]]` rules in their order, then the
//! built-in table (CONTRACT 4). What follows from a class is decided elsewhere.
//!
//! The table asks, in this order: names that say more than any status (a model's refusal, an expired token, a lost
//! answer), the HTTP status, names and codes of the net and of validation, phrases of the message.

use super::decode::native::Said;
use crate::config::{ClassifyKey, ClassifyRule};
use crate::event::{Class, Disposition, ErrorInfo, Event, EventType};
use aho_corasick::AhoCorasick;
use std::collections::HashMap;
use table::{PHRASES, Rank, STRONG_NAMES, WEAK_NAMES};

mod table;

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
    names: HashMap<&'static str, (Class, Rank)>,
    phrases: Option<AhoCorasick>,
}

impl Classifier {
    /// Keeps config's order: the first rule that matches wins.
    pub fn new(rules: &[ClassifyRule]) -> Self {
        let phrases = PHRASES.iter().map(|(phrase, _, _)| phrase);
        let tables = [(STRONG_NAMES, Rank::Strong), (WEAK_NAMES, Rank::Weak)];
        let rows = tables.iter().flat_map(|(table, rank)| table.iter().map(|(class, names)| (*class, *rank, *names)));
        Self {
            rules: rules.to_vec(),
            names: rows.flat_map(|(class, rank, names)| names.iter().map(move |n| (*n, (class, rank)))).collect(),
            phrases: AhoCorasick::builder().ascii_case_insensitive(true).build(phrases).ok(),
        }
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
        let name = self.name(error);
        let by_name = |wanted: Rank| {
            let (word, class, _) = name.as_ref().filter(|(_, _, rank)| *rank == wanted)?;
            Some((*class, format!("name_{word}")))
        };
        let phrase = error.message.as_deref().and_then(|m| self.phrase(m));
        let by_phrase = |wanted: Rank| {
            let (word, class, _) = phrase.filter(|(_, _, rank)| *rank == wanted)?;
            Some((class, format!("message_{}", word.replace([' ', '-'], "_"))))
        };
        let says_slow_down = name.as_ref().is_some_and(|(_, class, _)| *class == Class::RateLimited)
            || phrase.is_some_and(|(_, class, _)| class == Class::RateLimited)
            || error.retry_after_s.is_some();
        by_name(Rank::Strong)
            .or_else(|| by_phrase(Rank::Strong))
            .or_else(|| by_status(error.http_status?, says_slow_down))
            .or_else(|| by_name(Rank::Weak))
            .or_else(|| by_phrase(Rank::Weak))
    }

    /// What code and type are known as: a strong name before a weak one, the code before the type.
    fn name(&self, error: &ErrorInfo) -> Option<(String, Class, Rank)> {
        let names = [&error.code, &error.kind].into_iter().flatten().map(|name| plain(name));
        let known = names.filter_map(|name| self.names.get(name.as_str()).map(|(class, rank)| (name, *class, *rank)));
        known.min_by_key(|(_, _, rank)| *rank)
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

fn by_status(status: u16, says_slow_down: bool) -> Option<(Class, String)> {
    let class = match status {
        403 if says_slow_down => return Some((Class::RateLimited, "http_403_rate_limit".into())),
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

#[cfg(test)]
mod tests;
