//! Globs and the `match = { … }` tables of routes, silences, symptoms and inhibitions.
//! Where a matcher is used, and what follows from it, lives in those rooms.

use crate::event::Event;
use crate::name::WorkflowName;
use crate::workflow::Domain;
use std::collections::BTreeMap;

/// A pattern with `*` (any run of characters) and `?` (one character), anchored at both ends.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Glob(String);

impl Glob {
    /// Takes any text; all texts are valid globs.
    pub fn new(pattern: impl Into<String>) -> Self {
        Self(pattern.into())
    }

    /// The pattern as written.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Whether it stands for just one text.
    pub fn is_literal(&self) -> bool {
        !self.0.contains(['*', '?'])
    }

    /// Whether the whole of `text` fits. Quadratic at worst: only the last `*` is ever tried again.
    pub fn matches(&self, text: &str) -> bool {
        let (mut pattern, mut rest) = (self.0.as_str(), text);
        let mut retry: Option<(&str, &str)> = None;
        loop {
            let mut ahead = pattern.chars();
            match (ahead.next(), rest.chars().next()) {
                (Some('*'), _) => {
                    pattern = ahead.as_str();
                    retry = Some((pattern, rest));
                    continue;
                }
                (Some(wanted), Some(got)) if wanted == '?' || wanted == got => {
                    pattern = ahead.as_str();
                    rest = &rest[got.len_utf8()..];
                    continue;
                }
                (None, None) => return true,
                (None | Some(_), _) => {}
            }
            let Some((after_star, from)) = retry else { return false };
            let Some(skipped) = from.chars().next() else { return false };
            pattern = after_star;
            rest = &from[skipped.len_utf8()..];
            retry = Some((pattern, rest));
        }
    }
}

/// What a `match` table can ask for. A key that an event does not have never matches, not even `*`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum MatchKey {
    /// The workflow's name.
    Workflow,
    /// The workflow's domain.
    Domain,
    /// The event's class.
    Class,
    /// The step that failed.
    Step,
    /// The dependency that failed.
    Downstream,
    /// `label.<key>`.
    Label(String),
}

impl MatchKey {
    /// Reads `workflow`, `domain`, `class`, `step`, `downstream` or `label.<key>`.
    pub fn parse(text: &str) -> Option<Self> {
        match text {
            "workflow" => Some(Self::Workflow),
            "domain" => Some(Self::Domain),
            "class" => Some(Self::Class),
            "step" => Some(Self::Step),
            "downstream" => Some(Self::Downstream),
            _ => text.strip_prefix("label.").filter(|k| !k.is_empty()).map(|k| Self::Label(k.to_owned())),
        }
    }
}

impl std::fmt::Display for MatchKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Workflow => f.write_str("workflow"),
            Self::Domain => f.write_str("domain"),
            Self::Class => f.write_str("class"),
            Self::Step => f.write_str("step"),
            Self::Downstream => f.write_str("downstream"),
            Self::Label(key) => write!(f, "label.{key}"),
        }
    }
}

/// All keys must match; of one key's globs any one.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Matcher(BTreeMap<MatchKey, Vec<Glob>>);

/// What a matcher looks at: a workflow with what config says of it, and an event of it where one is meant.
#[derive(Clone, Copy, Debug)]
pub struct Subject<'a> {
    /// The workflow.
    pub workflow: &'a WorkflowName,
    /// The event; none when the workflow itself is meant, as by a symptom. Keys that only an event has don't match then.
    pub event: Option<&'a Event>,
    /// Domain of its workflow.
    pub domain: Domain,
    /// Labels that config gives the workflow; the event's own win.
    pub labels: Option<&'a BTreeMap<String, String>>,
}

impl Matcher {
    /// From parsed keys and globs.
    pub fn new(keys: BTreeMap<MatchKey, Vec<Glob>>) -> Self {
        Self(keys)
    }

    /// An empty match fits everything.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The globs asked of a key, none when the key is not asked for.
    pub fn globs(&self, key: &MatchKey) -> Option<&[Glob]> {
        self.0.get(key).map(Vec::as_slice)
    }

    /// All keys asked for, in a fixed order.
    pub fn keys(&self) -> impl Iterator<Item = (&MatchKey, &[Glob])> {
        self.0.iter().map(|(k, v)| (k, v.as_slice()))
    }

    /// Whether an event of the subject's workflow could match: keys that only an event has are taken to match.
    pub fn fits_some_event_of(&self, subject: Subject<'_>) -> bool {
        self.0.iter().all(|(key, globs)| match key {
            MatchKey::Workflow | MatchKey::Domain => {
                value_of(key, subject).is_some_and(|v| globs.iter().any(|g| g.matches(v)))
            }
            MatchKey::Class | MatchKey::Step | MatchKey::Downstream | MatchKey::Label(_) => true,
        })
    }

    /// Whether every key matches.
    pub fn matches(&self, subject: Subject<'_>) -> bool {
        self.0.iter().all(|(key, globs)| {
            let value = value_of(key, subject);
            value.is_some_and(|v| globs.iter().any(|g| g.matches(v)))
        })
    }
}

/// The value of a key for matching and grouping; none when there is none.
pub fn value_of<'a>(key: &MatchKey, subject: Subject<'a>) -> Option<&'a str> {
    let event = subject.event;
    match key {
        MatchKey::Workflow => Some(subject.workflow.as_str()),
        MatchKey::Domain => Some(subject.domain.as_str()),
        MatchKey::Class => event.map(|e| e.class.as_str()),
        MatchKey::Step => event?.step.as_deref(),
        MatchKey::Downstream => event?.downstream.as_deref(),
        MatchKey::Label(k) => {
            let own = event.and_then(|e| e.labels.get(k));
            own.or_else(|| subject.labels.and_then(|l| l.get(k))).map(String::as_str)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn globs_are_anchored_at_both_ends() {
        for (pattern, text, fits) in [
            ("pay", "pay", true),
            ("pay", "display-pay-ads", false),
            ("*pay*", "display-pay-ads", true),
            ("pay*", "pay", true),
            ("*", "", true),
            ("", "", true),
            ("", "a", false),
            ("a?c", "a\u{1f525}c", true),
            ("a*b*c", "a-b-b-c", true),
            ("a*b*c", "a-b-b-d", false),
            ("**x", "x", true),
            ("?", "", false),
        ] {
            assert_eq!(Glob::new(pattern).matches(text), fits, "{pattern:?} on {text:?}");
        }
    }

    proptest! {
        #[test]
        fn glob_agrees_with_a_regular_expression(pattern in "[ab*?]{0,8}", text in "[ab\u{e4}]{0,10}") {
            let expression = regex::escape(&pattern).replace("\\*", "(?s:.*)").replace("\\?", "(?s:.)");
            let oracle = regex::Regex::new(&format!("^{expression}$")).expect("a valid expression");
            prop_assert_eq!(Glob::new(pattern).matches(&text), oracle.is_match(&text));
        }
    }
}
