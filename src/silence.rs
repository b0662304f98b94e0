//! Silences: what nobody is to be told for a while, and why. Pure.
//! Storing and listing them lives in `store` and `web`.

use crate::matcher::{Matcher, Subject};
use chrono::{DateTime, Utc};

/// A silence from config or from a person.
#[derive(Clone, Debug)]
pub struct Silence {
    /// `S-7` for a stored one, `config-1` for the first of config.
    pub id: String,
    /// What it hides.
    pub matcher: Matcher,
    /// When it began.
    pub since: DateTime<Utc>,
    /// When it ends.
    pub until: DateTime<Utc>,
    /// Why.
    pub reason: String,
    /// Who asked for it.
    pub by: String,
    /// Whether it may hide protected workflows.
    pub protected: bool,
}

impl Silence {
    /// Whether it hides `subject` at `now`; a protected workflow only when the silence says so.
    pub fn hides(&self, subject: Subject<'_>, now: DateTime<Utc>) -> bool {
        self.since <= now
            && now < self.until
            && (self.protected || !subject.domain.is_protected())
            && self.matcher.matches(subject)
    }
}
