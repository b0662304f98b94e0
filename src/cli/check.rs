//! `matins check`: what is wrong with a config, and what it will do: when digests are due, when people read, who hears
//! of which workflow. What is right and wrong is decided in `config`.

use crate::calendar::Calendar;
use crate::config::{self, Config, DigestSettings, Loaded, Problem};
use crate::name::WorkflowName;
use crate::render::words;
use crate::symptom::Rules;
use crate::workflow::Workflow;
use chrono::{DateTime, Days, TimeDelta, Utc};
use std::io::{self, Write};
use std::path::Path;
use std::process::ExitCode;

/// What `check` needs from outside.
pub struct Check<'a> {
    /// The config file.
    pub path: &'a Path,
    /// The environment, for `${NAME}`.
    pub env: &'a dyn Fn(&str) -> Option<String>,
    /// What slots and silences are held against.
    pub now: DateTime<Utc>,
    /// Tries every template of a config; one line for each that is broken, naming file and cause.
    pub template_problems: &'a dyn Fn(&Config) -> Vec<String>,
}

/// How long before the last holiday that is listed the next ones are asked for.
const HOLIDAYS_NOTICE: TimeDelta = TimeDelta::days(60);
/// Exit code of a config that is refused.
const REFUSED: u8 = 2;

/// Checks, and writes what was found to `out` and problems to `err`. Exit code 0 when all is well, 2 when it is not, 1
/// when nothing can be written. Whoever reads `out` may have seen enough: that changes no code.
pub fn run(check: &Check<'_>, out: &mut dyn Write, err: &mut dyn Write) -> ExitCode {
    let written = match config::load(check.path, check.env, check.now) {
        Ok(loaded) => report(check, &loaded, out, err),
        Err(error) => writeln!(err, "{error}").map(|()| REFUSED),
    };
    written.map_or(ExitCode::FAILURE, ExitCode::from)
}

fn report(check: &Check<'_>, loaded: &Loaded, out: &mut dyn Write, err: &mut dyn Write) -> io::Result<u8> {
    let broken = (check.template_problems)(&loaded.config);
    for problem in &broken {
        writeln!(err, "{problem}")?;
    }
    match findings(check, loaded, broken.is_empty(), out) {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => Err(error),
        Ok(()) | Err(_) => Ok(if broken.is_empty() { 0 } else { REFUSED }),
    }
}

fn findings(check: &Check<'_>, loaded: &Loaded, is_good: bool, out: &mut dyn Write) -> io::Result<()> {
    if is_good {
        writeln!(out, "OK: {}", summary(check.path, &loaded.config))?;
    }
    warnings(&loaded.warnings, out)?;
    overview(&loaded.config, check.now, out)
}

/// Writes what the config will do.
///
/// # Errors
/// When `out` can't be written.
pub fn overview(config: &Config, now: DateTime<Utc>, out: &mut dyn Write) -> io::Result<()> {
    writeln!(out, "\nDigests")?;
    for digest in config.digests.values() {
        let calendar = digest.calendar.as_ref().and_then(|c| config.calendars.get(c));
        write!(out, "{}", digest_lines(digest, calendar, now))?;
    }
    if !config.calendars.is_empty() {
        writeln!(out, "\nOpen hours of the next week")?;
    }
    for (name, calendar) in &config.calendars {
        writeln!(out, "  {name} ({})", calendar.timezone)?;
        write!(out, "{}", week_lines(calendar, now))?;
        if let Some(last) = calendar.holidays_run_out(now, HOLIDAYS_NOTICE) {
            writeln!(out, "    warning: no holiday is listed after {}", last.format("%a %-d %b %Y"))?;
        }
    }
    writeln!(out, "\nWorkflows")?;
    let rules = Rules::new(config.symptoms.as_deref(), &config.workflows);
    for workflow in config.workflows.iter() {
        write!(out, "{}", workflow_lines(config, workflow))?;
        let plan = rules.plan(&WorkflowName::new(workflow.name.as_str()));
        plan.meaning().iter().try_for_each(|line| writeln!(out, "    {line}"))?;
    }
    let shared = rules.shared_meaning();
    if !shared.is_empty() {
        writeln!(out, "\nSymptoms across workflows: {}", shared.join(", "))?;
    }
    Ok(())
}

fn summary(path: &Path, config: &Config) -> String {
    let counts = [
        (config.workflows.iter().count(), "workflow"),
        (config.routes.len(), "route"),
        (config.receivers.len(), "receiver"),
        (config.digests.len(), "digest"),
    ];
    let counts: Vec<String> = counts.iter().map(|(n, noun)| words::noun(*n as u64, noun)).collect();
    format!("{} (version {}): {}", path.display(), config.version, counts.join(", "))
}

fn warnings(warnings: &[Problem], out: &mut dyn Write) -> io::Result<()> {
    if !warnings.is_empty() {
        writeln!(out, "\n{}", words::noun(warnings.len() as u64, "warning"))?;
    }
    warnings.iter().try_for_each(|warning| writeln!(out, "{warning}"))
}

/// A digest and its next three slots.
fn digest_lines(digest: &DigestSettings, calendar: Option<&Calendar>, now: DateTime<Utc>) -> String {
    let held = digest.calendar.as_ref().map_or(String::new(), |c| format!(", held outside {c}"));
    let empty = if digest.send_empty { "sent when empty" } else { "skipped when empty" };
    let mut text = format!("  {}: {} in {}{held}, {empty}\n", digest.name, digest.schedule.line(), digest.timezone);
    let slots = std::iter::successors(Some(now), |at| digest.schedule.next_after(*at, digest.timezone));
    for slot in slots.skip(1).take(3) {
        let due = slot.with_timezone(&digest.timezone).format("%a %-d %b %H:%M %Z").to_string();
        let held = calendar.map_or(String::new(), |c| hold_words(slot, digest, c));
        text.push_str(&format!("    {due:<22} in {}{held}\n", words::duration(words::between(now, slot))));
    }
    text
}

/// When a slot in closed hours is sent instead.
fn hold_words(slot: DateTime<Utc>, digest: &DigestSettings, calendar: &Calendar) -> String {
    let longest = digest.max_hold.and_then(|hold| TimeDelta::from_std(hold).ok()).map(|hold| slot + hold);
    let sent = match (calendar.next_open(slot), longest) {
        (Some(open), Some(longest)) => open.min(longest),
        (Some(at), None) | (None, Some(at)) => at,
        (None, None) => return ", held: the calendar never opens".to_owned(),
    };
    if sent == slot {
        return String::new();
    }
    format!(", held until {}", sent.with_timezone(&digest.timezone).format("%a %-d %b %H:%M"))
}

/// Seven days of a calendar, one line each.
fn week_lines(calendar: &Calendar, now: DateTime<Utc>) -> String {
    let zone = calendar.timezone;
    let today = now.with_timezone(&zone).date_naive();
    let spans = calendar.spans_between(now - TimeDelta::days(1), now + TimeDelta::days(9));
    let mut text = String::new();
    for date in (0..7).filter_map(|n| today.checked_add_days(Days::new(n))) {
        let starting = spans.iter().filter(|span| span.0.with_timezone(&zone).date_naive() == date);
        let hours: Vec<String> = starting.map(|(start, end)| span_words(*start, *end, calendar)).collect();
        let hours = if hours.is_empty() { "closed".to_owned() } else { hours.join(", ") };
        let holiday = if calendar.holidays.contains(&date) { " (holiday)" } else { "" };
        text.push_str(&format!("    {:<12} {hours}{holiday}\n", date.format("%a %-d %b").to_string()));
    }
    text
}

fn span_words(start: DateTime<Utc>, end: DateTime<Utc>, calendar: &Calendar) -> String {
    let (start, end) = (start.with_timezone(&calendar.timezone), end.with_timezone(&calendar.timezone));
    let form = if end.date_naive() == start.date_naive() { "%H:%M" } else { "%a %H:%M" };
    format!("{} to {}", start.format("%H:%M"), end.format(form))
}

/// Who hears of a workflow.
fn workflow_lines(config: &Config, workflow: &Workflow) -> String {
    let owner = workflow.owner.as_deref().unwrap_or("none set");
    let mut text = format!("  {} ({}), owner: {owner}\n", workflow.name.as_str(), workflow.domain.as_str());
    let routes = config.routes_of(workflow);
    let named =
        routes.iter().map(|(r, all)| format!("{}{}", r.name, if *all { "" } else { " (some of its failures)" }));
    text.push_str(&format!("    routes: {}\n", list(named)));
    if workflow.domain.is_protected() {
        let pages = config.pages_of(workflow).into_iter().map(|name| {
            let fallback = config.receivers.get(name).and_then(|r| r.fallback.as_ref());
            fallback.map_or(name.to_string(), |f| format!("{name}, else {f}"))
        });
        text.push_str(&format!("    pages: {}\n", list(pages)));
    }
    let digests = routes.iter().flat_map(|(r, _)| &r.digest);
    let digests = digests.map(|(digest, to)| format!("{digest} to {}", list(to.iter().map(ToString::to_string))));
    text.push_str(&format!("    digests: {}\n", list(digests)));
    text
}

fn list(items: impl Iterator<Item = String>) -> String {
    let mut unique: Vec<String> = Vec::new();
    items.for_each(|item| {
        if !unique.contains(&item) {
            unique.push(item);
        }
    });
    if unique.is_empty() { "none".to_owned() } else { unique.join(", ") }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn checked(text: &str, templates: &[&str]) -> (String, String, ExitCode) {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("matins.toml");
        std::fs::write(&path, text).unwrap();
        let problems = |_: &Config| templates.iter().map(|t| (*t).to_owned()).collect();
        let now = "2026-11-17T10:00:00Z".parse().unwrap();
        let check = Check { path: &path, env: &|_| None, now, template_problems: &problems };
        let (mut out, mut err) = (Vec::new(), Vec::new());
        let code = run(&check, &mut out, &mut err);
        let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap().replace(&dir.path().display().to_string(), "");
        (text(out), text(err), code)
    }

    const GOOD: &str = r#"
[smtp]
host = "127.0.0.1"
from = "Matins <matins@example.com>"
[receivers.oncall]
kind = "file"
dir = "out"
fallback = "ops"
[receivers.ops]
kind = "email"
to = ["ops@example.com"]
[calendars.office]
timezone = "Asia/Kolkata"
hours = { mon-fri = ["09:30-13:00", "14:00-18:30"], sat = ["22:00-02:00"] }
holidays = [2026-11-18]
[digests.daily]
cron = "0 10 * * *"
calendar = "office"
[[workflows]]
name = "pay"
domain = "money"
owner = "Asha <asha@example.com>"
[[workflows]]
name = "report"
[[routes]]
name = "protected"
match = { domain = ["money"] }
page = ["oncall"]
continue = true
[[routes]]
name = "everything"
match = {}
digest.daily = ["ops"]
"#;

    #[test]
    fn a_good_config_says_what_it_will_do() {
        let (out, err, code) = checked(GOOD, &[]);
        assert_eq!((err.as_str(), code), ("", ExitCode::SUCCESS));
        insta::assert_snapshot!(out, @"
        OK: /matins.toml (version 7e7e434c4c56): 2 workflows, 2 routes, 2 receivers, 1 digest

        Digests
          daily: 0 10 * * * in Asia/Kolkata, held outside office, skipped when empty
            Wed 18 Nov 10:00 IST   in 18 h, held until Thu 19 Nov 09:30
            Thu 19 Nov 10:00 IST   in 42 h
            Fri 20 Nov 10:00 IST   in 2 d 18 h

        Open hours of the next week
          office (Asia/Kolkata)
            Tue 17 Nov   09:30 to 13:00, 14:00 to 18:30
            Wed 18 Nov   closed (holiday)
            Thu 19 Nov   09:30 to 13:00, 14:00 to 18:30
            Fri 20 Nov   09:30 to 13:00, 14:00 to 18:30
            Sat 21 Nov   22:00 to Sun 02:00
            Sun 22 Nov   closed
            Mon 23 Nov   09:30 to 13:00, 14:00 to 18:30
            warning: no holiday is listed after Wed 18 Nov 2026

        Workflows
          pay (money), owner: Asha <asha@example.com>
            routes: protected, everything
            pages: oncall, else ops
            digests: daily to ops
            symptoms that page: failing_streak (5 in a row over 5 min), dead_letter_age (unresolved for 1 h), unhealthy (degraded for 5 min)
            symptoms in digests: dead_letter_depth (more than 10), failure_trend (3× what is usual in 1 h), retry_pressure (more than 2 a run in 1 h)
          report (standard), owner: none set
            routes: everything
            digests: daily to ops
            symptoms in digests: failing_streak (5 in a row over 5 min), dead_letter_age (unresolved for 24 h), dead_letter_depth (more than 10), unhealthy (degraded for 5 min), failure_trend (3× what is usual in 1 h), retry_pressure (more than 2 a run in 1 h)

        Symptoms across workflows: systemic (3 workflows within 15 min), repeat_offender (3 of the last 20 dead letters), breaker (50 % of the last 10 calls)
        ");
    }

    #[test]
    fn a_list_of_holidays_that_goes_on_is_not_warned_of() {
        let (out, _, _) = checked(&GOOD.replace("[2026-11-18]", "[2026-11-18, 2027-03-22]"), &[]);
        assert!(!out.contains("no holiday is listed"), "{out}");
    }

    #[test]
    fn a_broken_template_is_refused_though_the_config_is_good() {
        let (out, err, code) = checked(GOOD, &["templates/page/slack.hbs: unknown name eror"]);
        assert!(err.contains("slack.hbs") && !out.contains("OK"), "{out}{err}");
        assert_eq!(code, ExitCode::from(2));
    }

    #[test]
    fn a_bad_config_is_refused_with_its_line() {
        let (out, err, code) = checked(&GOOD.replace("host =", "hots ="), &[]);
        assert!(err.contains("matins.toml:3:1: unknown key \"hots\"") && err.contains("\"host\""), "{err}");
        assert_eq!((out.as_str(), code), ("", ExitCode::from(2)));
    }

    /// Whoever reads has seen enough.
    struct Closed;

    impl Write for Closed {
        fn write(&mut self, _: &[u8]) -> io::Result<usize> {
            Err(io::ErrorKind::BrokenPipe.into())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn a_reader_that_goes_away_changes_no_code() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("matins.toml");
        std::fs::write(&path, GOOD).unwrap();
        let now = "2026-11-17T10:00:00Z".parse().unwrap();
        for (problems, code) in [(vec![], ExitCode::SUCCESS), (vec!["broken".to_owned()], ExitCode::from(REFUSED))] {
            let check = Check { path: &path, env: &|_| None, now, template_problems: &|_| problems.clone() };
            let mut err = Vec::new();
            assert_eq!(run(&check, &mut Closed, &mut err), code);
            assert_eq!(err.is_empty(), problems.is_empty(), "what is broken is said");
        }
    }
}
