//! `matins slo test`: when each tier and rule would fire and clear, tried in virtual time with the rules of the config, and
//! whether the vectors of the specification hold in this program. Nothing is sent or stored.

use super::Failure;
use super::args::{Slo, SloTestArgs};
use super::list::say;
use crate::clock;
use crate::config::{self, Config};
use crate::name::WorkflowName;
use crate::render::words;
use crate::symptom::{Firing, Mode, Rules, Severity, Trial, VectorOutcome, VectorResult, run_vectors, try_rules};
use crate::workflow::Workflow;
use std::process::ExitCode;
use std::time::Duration;

/// Runs a day of a workflow that does not say how many it expects.
const DEFAULT_PER_DAY: u64 = 8_640;

/// Exit code 1 when a vector does not hold.
pub(super) fn run(command: Slo) -> Result<ExitCode, Failure> {
    let Slo::Test(args) = command;
    let loaded = config::load(&args.config.config, &config::environment, clock::now());
    let config = loaded.map_err(|error| Failure::Usage(error.to_string()))?.config;
    let results = run_vectors()?;
    say(&format!("{}{}", trials(&config, &args)?, vectors(&results)))?;
    let fails = |result: &VectorResult| matches!(result.outcome, VectorOutcome::Fail(_));
    Ok(if results.iter().any(fails) { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

/// What would fire for each workflow with an objective, or for the one that is asked for.
fn trials(config: &Config, args: &SloTestArgs) -> Result<String, Failure> {
    let rules = Rules::new(config.symptoms.as_deref(), &config.workflows);
    let named = args.workflow.as_deref().map(WorkflowName::new);
    let is_asked = |workflow: &&Workflow| match &named {
        Some(name) => workflow.name.matches(name.as_str()),
        None => true,
    };
    let tried: Vec<WorkflowName> = match named.clone() {
        Some(name) => vec![name],
        None => config.workflows.iter().map(|workflow| WorkflowName::new(workflow.name.as_str())).collect(),
    };
    if config.workflows.iter().filter(is_asked).count() == 0 && named.is_some() {
        return Err(Failure::Usage("no workflow of the config has that name".to_owned()));
    }
    let texts: Vec<String> = tried.iter().filter_map(|name| trials_of(&rules, name)).collect();
    if texts.is_empty() {
        return Ok("No workflow has an slo; nothing is tried.\n\n".to_owned());
    }
    Ok(texts.concat())
}

/// None for a workflow without an objective.
fn trials_of(rules: &Rules, name: &WorkflowName) -> Option<String> {
    let plan = rules.plan(name);
    let (_, burn) = plan.burn_rates().next()?;
    let (per_day, source) = match burn.expected_per_day {
        Some(per_day) => (per_day, "as config says"),
        None => (DEFAULT_PER_DAY, "assumed, as config says nothing"),
    };
    let mut text = format!("{name} ({}), {} a day, {source}\n", plan.domain.as_str(), words::noun(per_day, "run"));
    for trial in try_rules(rules, name, per_day) {
        text.push_str(&trial_words(&trial, plan.domain.is_protected()));
    }
    text.push('\n');
    Some(text)
}

fn trial_words(trial: &Trial, is_protected: bool) -> String {
    let lasts = if trial.lasts > 0 { format!(" for {}", span(trial.lasts)) } else { String::new() };
    let paging = |firing: &&Firing| firing.severity == Severity::Page && firing.mode == Mode::Live;
    let page = trial.firings.iter().filter(paging).map(|firing| firing.from).min().filter(|_| is_protected);
    let page = page.map_or("nobody is paged".to_owned(), |at| format!("a page after {}", span(at)));
    let mut text = format!("  {}{lasts}: {page}\n", trial.fault);
    let mut names: Vec<&str> = Vec::new();
    for firing in &trial.firings {
        if !names.contains(&firing.name.as_str()) {
            names.push(&firing.name);
        }
    }
    for name in names {
        let own: Vec<&Firing> = trial.firings.iter().filter(|firing| firing.name == name).collect();
        text.push_str(&format!("    {name} {}\n", firing_words(&own, trial.lasts)));
    }
    text
}

/// `fires after 1 min, clears 5 min after it ends`
fn firing_words(own: &[&Firing], lasts: i64) -> String {
    let (Some(first), Some(last)) = (own.first(), own.last()) else { return String::new() };
    let end = if lasts > 0 { "it ends" } else { "it" };
    let clears = match last.to {
        None => "and still does days later".to_owned(),
        Some(to) if to >= lasts => format!("clears {} after {end}", span(to - lasts)),
        Some(to) => format!("clears {} before {end}", span(lasts - to)),
    };
    let times = if own.len() > 1 { format!(", {} times in all", own.len()) } else { String::new() };
    let held = if own.iter().any(|firing| firing.was_held) { ", held while nothing is heard" } else { "" };
    format!("fires after {}, {clears}{times}{held}", span(first.from))
}

fn vectors(results: &[VectorResult]) -> String {
    let mut text = "Vectors of the specification\n".to_owned();
    let (mut held, mut not_offered) = (0, 0);
    for result in results {
        let (id, title) = (&result.id, &result.title);
        match &result.outcome {
            VectorOutcome::Pass => {
                held += 1;
                text.push_str(&format!("  PASS {id}: {title}\n"));
            }
            VectorOutcome::NotOffered(why) => {
                not_offered += 1;
                text.push_str(&format!("  none {id}: no rule here {why}\n"));
            }
            VectorOutcome::Fail(problems) => {
                text.push_str(&format!("  FAIL {id}: {title}\n"));
                problems.iter().for_each(|problem| text.push_str(&format!("       {problem}\n")));
            }
        }
    }
    let offered = results.len() - not_offered;
    let (be, rules) = if not_offered == 1 { ("is", "a rule") } else { ("are", "rules") };
    text.push_str(&format!("{held} of {offered} hold; {not_offered} {be} of {rules} that Matins does not have.\n"));
    text
}

fn span(seconds: i64) -> String {
    words::duration(Duration::from_secs(seconds.max(0).unsigned_abs()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn firing(from: i64, to: Option<i64>) -> Firing {
        let (name, severity, mode) = ("page_fast".to_owned(), Severity::Page, Mode::Live);
        Firing { name, severity, mode, from, to, was_held: false }
    }

    #[test]
    fn a_trial_reads_as_when_it_fires_and_when_it_clears() {
        let firings = vec![
            firing(60, Some(3_899)),
            Firing { name: "ticket_slow".to_owned(), severity: Severity::Digest, ..firing(260, None) },
        ];
        let trial = Trial { fault: "total outage", lasts: 3_600, firings };
        assert_eq!(
            trial_words(&trial, true),
            "  total outage for 1 h: a page after 1 min\n    page_fast fires after 1 min, clears 4 min 59 s after it ends\n    ticket_slow fires after 4 min 20 s, and still does days later\n"
        );
        assert!(trial_words(&trial, false).starts_with("  total outage for 1 h: nobody is paged\n"));
    }

    #[test]
    fn what_fires_more_than_once_and_before_the_end_says_so() {
        let (one, two) = (firing(60, Some(100)), firing(200, Some(500)));
        assert_eq!(
            firing_words(&[&one, &two], 600),
            "fires after 1 min, clears 1 min 40 s before it ends, 2 times in all"
        );
    }

    #[test]
    fn a_vector_that_does_not_hold_stands_out() {
        let result = |outcome| VectorResult { id: "B1".to_owned(), title: "all fail".to_owned(), outcome };
        let text = vectors(&[
            result(VectorOutcome::Pass),
            result(VectorOutcome::Fail(vec!["page_fast fires in [] instead of [(52, None)]".to_owned()])),
            result(VectorOutcome::NotOffered("waits before it fires")),
        ]);
        insta::assert_snapshot!(text, @r"
        Vectors of the specification
          PASS B1: all fail
          FAIL B1: all fail
               page_fast fires in [] instead of [(52, None)]
          none B1: no rule here waits before it fires
        1 of 2 hold; 1 is of a rule that Matins does not have.
        ");
    }
}
