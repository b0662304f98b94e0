//! Globs and the `match = { … }` tables of routes, silences, symptoms and inhibitions.
//! Where a matcher is used, and what follows from it, lives in those rooms.

use crate::event::Event;
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

    /// Whether the whole of `text` fits. Linear in practice, quadratic at worst: no backtracking over more than one `*`.
    pub fn matches(&self, text: &str) -> bool {
        let (pattern, text): (Vec<char>, Vec<char>) = (self.0.chars().collect(), text.chars().collect());
        let (mut p, mut t, mut star) = (0, 0, None);
        while t < text.len() {
            match pattern.get(p) {
                Some('*') => {
                    star = Some((p, t));
                    p += 1;
                }
                Some(c) if *c == '?' || *c == text[t] => {
                    p += 1;
                    t += 1;
                }
                _ => match star {
                    Some((at, from)) => {
                        p = at + 1;
                        t = from + 1;
                        star = Some((at, t));
                    }
                    None => return false,
                },
            }
        }
        pattern[p..].iter().all(|c| *c == '*')
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

/// All keys must match; of one key's globs any one.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Matcher(BTreeMap<MatchKey, Vec<Glob>>);

/// What a matcher looks at: an event together with what config says of its workflow.
#[derive(Clone, Copy, Debug)]
pub struct Subject<'a> {
    /// The event.
    pub event: &'a Event,
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

    /// Whether every key matches.
    pub fn matches(&self, subject: Subject<'_>) -> bool {
        self.0.iter().all(|(key, globs)| {
            let value = value_of(key, subject);
            value.is_some_and(|v| globs.iter().any(|g| g.matches(v)))
        })
    }
}

/// The value of a key for matching and grouping; none when the event has none.
pub fn value_of<'a>(key: &MatchKey, subject: Subject<'a>) -> Option<&'a str> {
    let event = subject.event;
    match key {
        MatchKey::Workflow => Some(event.workflow.as_str()),
        MatchKey::Domain => Some(subject.domain.as_str()),
        MatchKey::Class => Some(event.class.as_str()),
        MatchKey::Step => event.step.as_deref(),
        MatchKey::Downstream => event.downstream.as_deref(),
        MatchKey::Label(k) => {
            let own = event.labels.get(k);
            own.or_else(|| subject.labels.and_then(|l| l.get(k))).map(String::as_str)
        }
    }
}
