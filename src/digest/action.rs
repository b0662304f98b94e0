//! What the numbers suggest to do: an imperative, then the number that it follows from. No number, no action.

use super::attention::brief;
use super::cause::sentence_case;
use super::compose::Form;
use super::input::Cell;
use super::pattern::is_llm;
use super::tally::{CauseTally, Tally};
use super::view::{ActionItem, Section};
use crate::event::{Class, EventType};
use crate::name::WorkflowName;
use crate::render::words;
use chrono::Timelike;
use std::collections::BTreeMap;

const ACTIONS_MAX: usize = 4;
/// Failures from which on a share is worth acting on.
const FAILURES_MIN: u64 = 5;
/// The part of all that one cause must hold, in per cent.
const SHARE_MIN: u64 = 20;
/// The part of a day's rate limits that two hours must hold, in per cent.
const RUSH_SHARE_MIN: u64 = 50;
const RUSH_MIN: u64 = 20;

/// Actions, those with the largest numbers first.
pub(super) fn list_actions(tally: &Tally<'_>, form: Form) -> Section<ActionItem> {
    let mut items: Vec<ActionItem> = match form {
        Form::Hourly => Vec::new(),
        Form::Daily | Form::Weekly => tally.causes.iter().filter_map(|c| cause_action(tally, c)).collect(),
    };
    if form == Form::Weekly {
        items.extend(rush_hours(tally).into_iter().filter_map(|(w, hours)| rush_action(tally, w, &hours)));
    }
    items.truncate(ACTIONS_MAX);
    Section { note: "from the numbers".to_owned(), items, more: String::new() }
}

fn cause_action(tally: &Tally<'_>, cause: &CauseTally<'_>) -> Option<ActionItem> {
    let all = tally.totals.final_failures;
    let count = cause.final_count;
    if count < FAILURES_MIN || count * 100 < all * SHARE_MIN {
        return None;
    }
    let info = tally.input.fingerprints.get(cause.fingerprint)?;
    let text = advice(cause, info.downstream.as_deref(), info.step.as_deref())?;
    let share = match count == all {
        true => format!("All {} final failures", words::count(count)),
        false => {
            format!("{} of {} final failures ({})", words::count(count), words::count(all), words::share(count, all))
        }
    };
    let cause_text = brief(&info.sample);
    let reason = format!("{share} have one cause: {}.", cause_text.trim_end_matches('.'));
    Some(ActionItem { text: sentence_case(&text), reason, contact: tally.contact(cause.workflow, Vec::new()) })
}

/// What helps against a class; nothing against what passes by itself.
fn advice<'a>(cause: &CauseTally<'_>, downstream: Option<&'a str>, step: Option<&'a str>) -> Option<String> {
    let workflow = cause.workflow;
    let named = |text: Option<&'a str>| text.filter(|t| !t.trim().is_empty());
    let downstream = named(downstream);
    let step = named(step).map_or_else(|| workflow.to_string(), |s| format!("{s} of {workflow}"));
    match cause.class {
        Class::Persistent => Some(format!("Check access and quota at {}.", downstream.unwrap_or(&step))),
        Class::InvalidInput => Some(format!("Check what goes into {step}.")),
        Class::OutcomeUnknown => {
            Some(format!("Compare with {} before a redrive.", downstream.unwrap_or("the other side")))
        }
        Class::Unclassified => Some(format!("Give this error of {workflow} a class.")),
        Class::Catastrophic => Some(format!("Stop {workflow} until its data is checked.")),
        class if is_llm(class) => Some(format!("State what is expected in the prompt of {step}.")),
        Class::Transient
        | Class::RateLimited
        | Class::Interrupted
        | Class::LlmOutput
        | Class::LlmRefusal
        | Class::LlmHallucination
        | Class::LlmContext
        | Class::LlmBehavior => None,
    }
}

/// Answers that the rate was too high, by workflow and hour of the day.
fn rush_hours<'a>(tally: &Tally<'a>) -> BTreeMap<&'a WorkflowName, [u64; 24]> {
    let mut rush: BTreeMap<&WorkflowName, [u64; 24]> = BTreeMap::new();
    let is_limit = |c: &&Cell| c.event_type == EventType::Failure && c.class == Class::RateLimited;
    for cell in tally.input.cells.iter().filter(is_limit).filter(|c| !c.is_silenced()) {
        let hour = cell.at.with_timezone(&tally.input.zone).hour() as usize;
        rush.entry(&cell.workflow).or_default()[hour] += cell.count;
    }
    rush
}

/// "Move invoice-sync out of 18:00 to 20:00. 62 of 88 rate-limit answers came then."
fn rush_action(tally: &Tally<'_>, workflow: &WorkflowName, hours: &[u64; 24]) -> Option<ActionItem> {
    let all: u64 = hours.iter().sum();
    let two = |hour: usize| hours[hour] + hours[(hour + 1) % 24];
    let (most, hour) =
        (0..24).map(|h| (two(h), h)).fold((0, 0), |best, next| if next.0 > best.0 { next } else { best });
    if all < RUSH_MIN || most * 100 < all * RUSH_SHARE_MIN {
        return None;
    }
    let span = format!("{hour:02}:00 and {:02}:00", (hour + 2) % 24);
    Some(ActionItem {
        text: format!("Move {workflow} out of the time between {span}."),
        reason: format!("{} of {} rate-limit answers came then.", words::count(most), words::count(all)),
        contact: tally.contact(workflow, Vec::new()),
    })
}
