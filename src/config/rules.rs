//! From a checked tree to the rules of `Config`: workflows, routes, symptoms, silences and the like. What can't work
//! within one rule is found here; what can't work between rules is found in `sense`.

use super::assemble::Bench;
use super::reader::{Cursor, globs};
use super::schema::{
    ClassifyKey, ClassifyRule, Inhibition, RedactSettings, WatchSettings, WatchedStream, WatchedTable,
};
use super::value;
use crate::event::{Class, Disposition};
use crate::matcher::{Glob, MatchKey, Matcher};
use crate::name::{DigestName, ReceiverName, RouteName};
use crate::route::{Escalation, GroupKey, Route};
use crate::silence::{self, Silence, SilenceProblem};
use crate::symptom::{BurnTier, Gravity, Mode, Severity, SymptomKind, SymptomRule};
use crate::workflow::{Domain, Workflow, Workflows};
use chrono::{DateTime, Utc};
use regex::Regex;
use ring::digest;
use std::time::Duration;

/// `[[workflows]]`
pub(super) fn workflows(root: &Cursor<'_>) -> Workflows {
    let read = |w: Cursor<'_>| {
        let domain = w.text("domain")?;
        Some(Workflow {
            name: Glob::new(w.text("name")?),
            domain: Domain::ALL.into_iter().find(|d| d.as_str() == domain)?,
            owner: w.string("owner"),
            runbook: w.string("runbook"),
            slo: w.decimal("slo"),
            every: w.time("every"),
            grace: w.time("grace")?,
            item_noun: w.string("item_noun"),
            expected_per_day: w.count("expected_per_day"),
            labels: w.map("labels"),
        })
    };
    Workflows::new(root.tables("workflows").into_iter().filter_map(read).collect())
}

/// `[[routes]]`
pub(super) fn routes(root: &Cursor<'_>, bench: Bench<'_>) -> Vec<Route> {
    let read = |route: Cursor<'_>| {
        let digest = route.node("digest").and_then(|n| n.table()).map_or(&[][..], |t| &t.0);
        let listed =
            |node: &super::tree::Node| node.items().iter().filter_map(|n| n.text().map(ReceiverName::new)).collect();
        let made = Route {
            name: RouteName::new(route.text("name")?),
            matcher: route.matcher("match"),
            page: names(&route, "page"),
            digest: digest.iter().map(|e| (DigestName::new(e.key.as_str()), listed(&e.node))).collect(),
            group_by: route.texts("group_by").iter().filter_map(|k| group_key(k)).collect(),
            remind_every: route.time("remind_every"),
            resolve_after: route.time("resolve_after")?,
            growth_every: route.time("growth_every")?,
            escalate: escalations(&route),
            continues: route.flag("continue"),
        };
        useless(&route, &made, bench);
        Some(made)
    };
    root.tables("routes").into_iter().filter_map(read).collect()
}

/// Warns of what a route says without effect.
fn useless(route: &Cursor<'_>, made: &Route, bench: Bench<'_>) {
    if made.page.is_empty() && made.digest.is_empty() {
        bench.report.warn(
            route.place("name"),
            format!("route {:?} tells nobody: it has no page and no digest", made.name.as_str()),
        );
    }
    if made.remind_every.is_some_and(|every| every < Duration::from_secs(1)) {
        bench.report.error(
            route.place("remind_every"),
            "\"remind_every\" is less than a second: nobody can hear that often; say minutes or hours",
        );
    }
    let domains = made.matcher.globs(&MatchKey::Domain);
    let standard = domains.is_some_and(|d| !["money", "compliance"].iter().any(|p| d.iter().any(|g| g.matches(p))));
    if standard && !made.page.is_empty() {
        bench.report.warn(route.place("page"), "\"page\" has no effect here: only money and compliance workflows page");
    }
}

fn names(cursor: &Cursor<'_>, key: &str) -> Vec<ReceiverName> {
    cursor.texts(key).into_iter().map(ReceiverName::new).collect()
}

fn group_key(text: &str) -> Option<GroupKey> {
    if text == "fingerprint" { Some(GroupKey::Fingerprint) } else { MatchKey::parse(text).map(GroupKey::Match) }
}

fn escalations(route: &Cursor<'_>) -> Vec<Escalation> {
    let read = |step: Cursor<'_>| Some(Escalation { after: step.time("after")?, to: names(&step, "to") });
    let mut steps: Vec<Escalation> = route.tables("escalate").into_iter().filter_map(read).collect();
    steps.sort_by_key(|s| s.after);
    steps
}

/// `[[symptoms]]`; none when the key is not given at all.
pub(super) fn symptoms(root: &Cursor<'_>, bench: Bench<'_>) -> Option<Vec<SymptomRule>> {
    root.node("symptoms")?;
    Some(root.tables("symptoms").into_iter().filter_map(|s| symptom(&s, bench)).collect())
}

fn symptom(rule: &Cursor<'_>, bench: Bench<'_>) -> Option<SymptomRule> {
    let made = SymptomRule {
        name: rule.string("name")?,
        matcher: rule.matcher("match"),
        kind: symptom_kind(rule)?,
        severity: severity(rule)?,
        mode: if rule.text("mode")? == "observe" { Mode::Observe } else { Mode::Live },
    };
    flaws(rule, &made, bench);
    Some(made)
}

fn severity(cursor: &Cursor<'_>) -> Option<Severity> {
    Some(if cursor.text("severity")? == "page" { Severity::Page } else { Severity::Digest })
}

fn symptom_kind(rule: &Cursor<'_>) -> Option<SymptomKind> {
    // `SymptomKind` keeps "not given" apart from a value; a default that depends on the workflow is the room's own.
    let given = |key: &str| rule.node(key).is_some();
    let time = |key: &str| given(key).then(|| rule.time(key)).flatten();
    let count = |key: &str| given(key).then(|| rule.count::<u64>(key)).flatten();
    let number = |key: &str| given(key).then(|| rule.decimal(key)?.parse::<f64>().ok()).flatten();
    Some(match rule.text("kind")? {
        "burn_rate" => SymptomKind::BurnRate {
            slo: rule.decimal("slo"),
            period: time("period"),
            expected_per_day: count("expected_per_day"),
            tiers: match rule.node("tiers") {
                // Of some of its tiers nothing could be judged.
                Some(_) => Some(rule.tables("tiers").iter().map(tier).collect::<Option<_>>()?),
                None => None,
            },
            min_failures: count("min_failures"),
        },
        "failing_streak" => SymptomKind::FailingStreak { count: count("count"), over: time("over") },
        "run_failed" => SymptomKind::RunFailed,
        "dead_letter_age" => SymptomKind::DeadLetterAge { over: time("over") },
        "dead_letter_depth" => SymptomKind::DeadLetterDepth { over: count("over") },
        "dead_letter_rate" => SymptomKind::DeadLetterRate { over: rule.count("over")?, window: rule.time("window")? },
        "failure_trend" => SymptomKind::FailureTrend { factor: number("factor"), window: time("window") },
        "retry_pressure" => SymptomKind::RetryPressure { over: number("over"), window: time("window") },
        "absence" => SymptomKind::Absence,
        "unhealthy" => SymptomKind::Unhealthy { degraded_for: time("for") },
        "repeat_offender" => SymptomKind::RepeatOffender { count: count("count"), of: count("of") },
        "systemic" => SymptomKind::Systemic { count: count("count"), window: time("window") },
        "breaker" => SymptomKind::Breaker { ratio: number("ratio"), of: count("of") },
        "queue_age" => SymptomKind::QueueAge { over: rule.time("over")? },
        "queue_depth" => SymptomKind::QueueDepth { over: rule.count("over")? },
        _ => return None,
    })
}

fn tier(tier: &Cursor<'_>) -> Option<BurnTier> {
    Some(BurnTier {
        name: tier.string("name")?,
        burn: tier.decimal("burn")?,
        long: tier.time("long")?,
        short: tier.time("short")?,
        severity: severity(tier)?,
    })
}

/// Reports what is wrong with a rule by itself, at the value that is wrong.
fn flaws(rule: &Cursor<'_>, made: &SymptomRule, bench: Bench<'_>) {
    let tiers = rule.tables("tiers");
    for flaw in made.flaws() {
        let tier = flaw.tier.and_then(|place| tiers.get(place));
        let of_tier = tier.and_then(|tier| tier.text("name")).map(|name| format!(", tier {name:?}"));
        let words = format!("symptom {:?}{}: {}", made.name, of_tier.unwrap_or_default(), flaw.words);
        let at = tier.unwrap_or(rule).place(flaw.key);
        match flaw.gravity {
            Gravity::Refused => bench.report.error(at, words),
            Gravity::Odd => bench.report.warn(at, words),
        }
    }
}

/// `[[silences]]`
pub(super) fn silences(root: &Cursor<'_>, bench: Bench<'_>) -> Vec<Silence> {
    let workflows = workflows(root);
    root.tables("silences").iter().filter_map(|s| silence(s, &workflows, bench)).collect()
}

fn silence(cursor: &Cursor<'_>, workflows: &Workflows, bench: Bench<'_>) -> Option<Silence> {
    let until = value::instant(value::date_text(cursor.node("until")?)?)?;
    let (matcher, protected) = (cursor.matcher("match"), cursor.flag("protected"));
    let (reason, by) = (cursor.string("reason")?, cursor.string("by")?);
    for problem in silence::problems(&matcher, until, protected, workflows, bench.now) {
        let words = problem.words("protected = true");
        match problem {
            SilenceProblem::Over => bench.report.warn(cursor.place("until"), format!("{words}; it can be taken out")),
            SilenceProblem::TooLong { .. } => bench.report.error(cursor.place("until"), words),
            SilenceProblem::HidesProtected { .. } => bench.report.error(cursor.place("match"), words),
        }
    }
    Some(Silence {
        id: silence_id(&matcher, until, &reason, &by),
        matcher,
        // Config does not say when it began. The longest that it may last is as early as it can have begun, and stays
        // the same over reloads.
        since: until - silence::longest(protected),
        until,
        reason,
        by,
        protected,
    })
}

/// An id made from what a silence says, so that it stays the same wherever the table stands.
fn silence_id(matcher: &Matcher, until: DateTime<Utc>, reason: &str, by: &str) -> String {
    let until = until.to_rfc3339();
    let mut parts = vec![until, reason.to_owned(), by.to_owned()];
    for (key, globs) in matcher.keys() {
        let mut globs: Vec<&str> = globs.iter().map(Glob::as_str).collect();
        globs.sort_unstable();
        parts.push(key_word(key));
        parts.extend(globs.into_iter().map(str::to_owned));
    }
    format!("config-{}", short_hash(&parts))
}

/// A key as config writes it.
fn key_word(key: &MatchKey) -> String {
    match key {
        MatchKey::Workflow => "workflow".to_owned(),
        MatchKey::Domain => "domain".to_owned(),
        MatchKey::Class => "class".to_owned(),
        MatchKey::Step => "step".to_owned(),
        MatchKey::Downstream => "downstream".to_owned(),
        MatchKey::Label(name) => format!("label.{name}"),
    }
}

/// Eight hex digits that stand for texts, none of which can run into the next.
fn short_hash(parts: &[String]) -> String {
    let mut hash = digest::Context::new(&digest::SHA256);
    for part in parts {
        hash.update(&u64::try_from(part.len()).unwrap_or(u64::MAX).to_be_bytes());
        hash.update(part.as_bytes());
    }
    hash.finish().as_ref().iter().take(4).map(|byte| format!("{byte:02x}")).collect()
}

/// `[[inhibit]]`
pub(super) fn inhibitions(root: &Cursor<'_>) -> Vec<Inhibition> {
    let tables = root.tables("inhibit");
    let read = |i: &Cursor<'_>| Inhibition {
        source: i.matcher("source"),
        target: i.matcher("target"),
        equal: i.texts("equal"),
    };
    tables.iter().map(read).collect()
}

const CLASSIFY_KEYS: [(&str, ClassifyKey); 7] = [
    ("workflow", ClassifyKey::Workflow),
    ("step", ClassifyKey::Step),
    ("downstream", ClassifyKey::Downstream),
    ("error_type", ClassifyKey::ErrorType),
    ("error_code", ClassifyKey::ErrorCode),
    ("http_status", ClassifyKey::HttpStatus),
    ("message", ClassifyKey::Message),
];

/// `[[classify]]`
pub(super) fn classify(root: &Cursor<'_>) -> Vec<ClassifyRule> {
    let read = |rule: Cursor<'_>| {
        let asked = rule.inside("match");
        let keys = CLASSIFY_KEYS.into_iter();
        Some(ClassifyRule {
            name: rule.string("name")?,
            globs: keys.filter_map(|(name, key)| Some((key, globs(asked.node(name)?)))).collect(),
            message_regex: asked.parsed::<Regex>("message_regex"),
            class: Class::parse(rule.text("class")?)?,
            disposition: rule.text("disposition").and_then(Disposition::parse),
        })
    };
    root.tables("classify").into_iter().filter_map(read).collect()
}

/// `[redact]`
pub(super) fn redact(root: &Cursor<'_>) -> RedactSettings {
    let redact = root.inside("redact");
    let patterns = redact.texts("patterns");
    RedactSettings {
        keys: redact.texts("keys"),
        patterns: patterns.iter().filter_map(|p| Regex::new(p).ok()).collect(),
    }
}

/// `[watch]`
pub(super) fn watch(root: &Cursor<'_>) -> WatchSettings {
    let watch = root.inside("watch");
    let stream = |s: Cursor<'_>| {
        let (name, stream) = (s.string("name")?, s.string("stream")?);
        Some(WatchedStream { name, stream, consumer: s.string("consumer"), every: s.time("every")? })
    };
    let table = |s: Cursor<'_>| {
        let (url, query) = (s.text("url")?, s.string("query")?);
        let name = s.string("name").unwrap_or_else(|| table_name(url, &query));
        Some(WatchedTable { name, url: url.into(), query, every: s.time("every")? })
    };
    WatchSettings {
        streams: watch.tables("streams").into_iter().filter_map(stream).collect(),
        sql: watch.tables("sql").into_iter().filter_map(table).collect(),
    }
}

/// A name for a watched table that has none: made from the place and the query, and from no credential.
fn table_name(url: &str, query: &str) -> String {
    let place = url::Url::parse(url).map(|url| format!("{}{}", url.host_str().unwrap_or_default(), url.path()));
    format!("sql-{}", short_hash(&[place.unwrap_or_default(), query.to_owned()]))
}
