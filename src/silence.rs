//! Silences: what nobody is to be told for a while, for how long at most, and what of it is protected. Pure.
//! Storing and listing them lives in `store` and `web`.

use crate::matcher::{Glob, MatchKey, Matcher, Subject};
use crate::workflow::{Domain, Workflows};
use chrono::{DateTime, TimeDelta, Utc};

/// Longest silence.
const LONGEST: TimeDelta = TimeDelta::days(30);
/// Longest of one that may hide protected workflows.
const LONGEST_PROTECTED: TimeDelta = TimeDelta::hours(24);

/// A silence from config or from a person.
#[derive(Clone, Debug)]
pub struct Silence {
    /// `S-7` for a stored one, `config-1f0c6a2b` for one of config: made from what it says, not from its place.
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

/// Why a silence can't be had as it is asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SilenceProblem {
    /// It has ended already.
    Over,
    /// It would last too long.
    TooLong {
        /// Whether it may hide protected workflows.
        protected: bool,
    },
    /// It can hide what is protected and does not say that it may.
    HidesProtected {
        /// `workflow "pay"` or `domain "money"`.
        what: String,
    },
}

impl SilenceProblem {
    /// The problem as a sentence. `flag` is how whoever asks says that protected workflows may be hidden.
    pub fn words(&self, flag: &str) -> String {
        match self {
            Self::Over => "this silence is over".to_owned(),
            Self::TooLong { protected: true } => "a silence of protected workflows ends within 24 h".to_owned(),
            Self::TooLong { protected: false } => "a silence ends within 30 days".to_owned(),
            Self::HidesProtected { what } => {
                format!("this silence can hide {what}, which is protected: it needs {flag}, and ends within 24 h")
            }
        }
    }
}

/// The longest that a silence may last.
pub fn longest(protected: bool) -> TimeDelta {
    if protected { LONGEST_PROTECTED } else { LONGEST }
}

/// Everything that stands against a silence at `now`.
pub fn problems(
    matcher: &Matcher,
    until: DateTime<Utc>,
    protected: bool,
    workflows: &Workflows,
    now: DateTime<Utc>,
) -> Vec<SilenceProblem> {
    let hidden = protected_by(matcher, workflows).filter(|_| !protected);
    let over = (until <= now).then_some(SilenceProblem::Over);
    let too_long = (until > now + longest(protected)).then_some(SilenceProblem::TooLong { protected });
    let hides = hidden.map(|what| SilenceProblem::HidesProtected { what });
    over.into_iter().chain(hides).chain(too_long).collect()
}

/// The protected domain or workflow that a match asks for. One that names neither workflow nor domain may fit failures
/// of protected workflows too; without `protected` it hides only those of others.
fn protected_by(matcher: &Matcher, workflows: &Workflows) -> Option<String> {
    let domains = matcher.globs(&MatchKey::Domain);
    let admits = |domain: Domain| domains.is_none_or(|globs| globs.iter().any(|g| g.matches(domain.as_str())));
    let protected = Domain::ALL.into_iter().filter(|d| d.is_protected() && admits(*d));
    let Some(globs) = matcher.globs(&MatchKey::Workflow) else {
        domains?;
        return protected.map(|d| format!("domain {:?}", d.as_str())).next();
    };
    let hit = workflows
        .iter()
        .find(|w| w.domain.is_protected() && admits(w.domain) && globs.iter().any(|g| meet(g, &w.name)));
    hit.map(|w| format!("workflow {:?}", w.name.as_str()))
}

/// Whether one text can fit both. Two globs with wildcards may meet, which is answered with yes when their fixed
/// beginnings agree.
fn meet(asked: &Glob, known: &Glob) -> bool {
    match (asked.is_literal(), known.is_literal()) {
        (true, _) => known.matches(asked.as_str()),
        (false, true) => asked.matches(known.as_str()),
        (false, false) => {
            let (a, b) = (fixed_start(asked.as_str()), fixed_start(known.as_str()));
            a.starts_with(b) || b.starts_with(a)
        }
    }
}

fn fixed_start(pattern: &str) -> &str {
    pattern.split(['*', '?']).next().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workflow::Workflow;
    use std::collections::BTreeMap;
    use std::time::Duration;

    fn workflow(name: &str, domain: Domain) -> Workflow {
        Workflow {
            name: Glob::new(name),
            domain,
            owner: None,
            runbook: None,
            slo: None,
            every: None,
            grace: Duration::ZERO,
            item_noun: None,
            expected_per_day: None,
            labels: BTreeMap::new(),
        }
    }

    fn found(keys: &[(&str, &str)], hours: i64, protected: bool) -> Vec<SilenceProblem> {
        let workflows = Workflows::new(vec![
            workflow("pay", Domain::Money),
            workflow("ledger-*", Domain::Compliance),
            workflow("report", Domain::Standard),
        ]);
        let now = DateTime::from_timestamp(1_800_000_000, 0).unwrap();
        let globs = keys.iter().map(|(key, glob)| (MatchKey::parse(key).unwrap(), vec![Glob::new(*glob)]));
        problems(&Matcher::new(globs.collect()), now + TimeDelta::hours(hours), protected, &workflows, now)
    }

    #[test]
    fn what_can_hide_a_protected_workflow_must_say_so() {
        for keys in [
            &[("workflow", "pay")][..],
            &[("workflow", "p*")],
            &[("workflow", "*")],
            &[("workflow", "ledger-2026")],
            &[("workflow", "led*-x")],
            &[("domain", "money")],
            &[("domain", "*"), ("class", "persistent")],
            &[("workflow", "pay"), ("step", "charge")],
        ] {
            let problems = found(keys, 1, false);
            let [problem @ SilenceProblem::HidesProtected { .. }] = problems.as_slice() else { panic!("{keys:?}") };
            assert!(problem.words("--protected").contains("it needs --protected"), "{problem:?}");
            assert_eq!(found(keys, 1, true), [], "{keys:?}");
        }
        for keys in [
            &[("workflow", "report")][..],
            &[("workflow", "pay2")],
            &[("label.team", "*")],
            &[("domain", "standard")],
            &[("workflow", "*"), ("domain", "standard")],
        ] {
            assert_eq!(found(keys, 1, false), [], "{keys:?}");
        }
    }

    #[test]
    fn a_silence_ends() {
        assert_eq!(found(&[("workflow", "report")], 30 * 24, false), []);
        let too_long = |protected| [SilenceProblem::TooLong { protected }];
        assert_eq!(found(&[("workflow", "report")], 30 * 24 + 1, false), too_long(false));
        assert_eq!(found(&[("workflow", "pay")], 24, true), []);
        assert_eq!(found(&[("workflow", "pay")], 25, true), too_long(true));
        assert_eq!(found(&[("workflow", "report")], 0, false), [SilenceProblem::Over]);
    }
}
