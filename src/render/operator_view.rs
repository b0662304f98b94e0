//! The view of what Matins says about itself: what is wrong, and what to do. When to say it is decided elsewhere.

use super::escape::web_address;
use super::words;
use chrono::{DateTime, Utc};
use chrono_tz::Tz;
use serde::Serialize;
use serde_json::Value;

/// What is known when Matins has to speak of itself.
#[derive(Clone, Debug, PartialEq)]
pub struct OperatorFacts {
    /// `#N` of the message.
    pub number: i64,
    /// Whether it only tests a receiver.
    pub is_test: bool,
    /// One short sentence without a full stop: `Receiver oncall is broken`.
    pub title: String,
    /// What happened, in whole sentences: `Slack said no_service. Pages go to oncall-mail.`
    pub what: String,
    /// What to do, in whole sentences; none when nothing is to be done.
    pub action: Option<String>,
    /// Where to look.
    pub url: Option<String>,
    /// When it was noticed.
    pub now: DateTime<Utc>,
    /// The zone that times are shown in.
    pub zone: Tz,
}

/// What the templates of `operator` see.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct OperatorView {
    /// `#N` of the message.
    pub number: i64,
    /// `operator` or `test`.
    pub kind: &'static str,
    /// The sentence that opens it.
    pub title: String,
    /// What happened.
    pub what: String,
    /// What to do.
    pub action: Option<String>,
    /// Where to look.
    pub url: Option<String>,
    /// `Tue 21:41`.
    pub at: String,
    /// Short name of the zone.
    pub zone: String,
    /// One line for lock screens.
    pub notice: String,
    /// Subject of the mail.
    pub subject: String,
}

impl OperatorView {
    /// Puts facts into words.
    pub fn of(facts: &OperatorFacts) -> Self {
        let title = words::cut(words::one_line(&facts.title).trim_end_matches('.'), 200);
        Self {
            number: facts.number,
            kind: if facts.is_test { "test" } else { "operator" },
            what: words::cut(&facts.what, 2_000),
            action: facts.action.as_deref().map(|a| words::cut(a, 1_000)),
            url: facts.url.as_deref().and_then(web_address),
            at: words::time(facts.now, facts.now, facts.zone),
            zone: words::zone_name(facts.zone, facts.now),
            notice: format!("#{} Matins: {title}.", facts.number),
            subject: format!("Matins: {title} [#{}]", facts.number),
            title,
        }
    }

    /// The view as templates and webhooks get it.
    pub fn to_json(&self) -> Value {
        serde_json::to_value(self).unwrap_or_default()
    }
}
