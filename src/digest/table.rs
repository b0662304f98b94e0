//! The table of workflows: those with most failures first, capped, with sums over all of them.

use super::compose::Form;
use super::drawing::{draw_workflows, draw_workflows_narrow};
use super::tally::{Hearing, Tally, WorkflowTally, name_some};
use super::view::{Contact, Link, WorkflowRow, WorkflowTable};
use crate::name::WorkflowName;
use crate::render::words;
use std::cmp::Reverse;

const ROWS_MAX: usize = 20;
/// Names that stand in the line below the table.
const NAMES_MAX: usize = 40;
const CLASSES_MAX: usize = 4;

/// Workflows that have something to show: a silenced one has not.
pub(super) fn list_workflows(tally: &Tally<'_>, form: Form) -> WorkflowTable {
    let mut all: Vec<(&WorkflowName, &WorkflowTally)> =
        tally.workflows.iter().map(|(w, t)| (*w, t)).filter(|(_, t)| is_shown(t, form)).collect();
    all.sort_by_key(|(_, t)| Reverse((t.sums.failures(), t.sums.final_failures(), t.open_count, t.sums.runs())));
    let shown = &all[..all.len().min(ROWS_MAX)];
    let items: Vec<_> = shown.iter().map(|(w, t)| workflow_row(tally, w, t)).collect();
    let total = total_row(tally);
    WorkflowTable {
        table_lines: draw_workflows(&items, &total, form == Form::Weekly),
        narrow_lines: draw_workflows_narrow(&items),
        note: match (all.len(), form) {
            (n, _) if n > shown.len() => format!("{} of {}, most failures first", shown.len(), words::count(n as u64)),
            (n, Form::Weekly) => format!("{}, week over week", words::count(n as u64)),
            (n, Form::Hourly | Form::Daily) => words::count(n as u64),
        },
        items,
        more: [write_more(&all[shown.len()..]), write_old(tally)].join(" ").trim().to_owned(),
        total,
        legend: "Final: no more retries. Open: dead letters not resolved yet. ?: unknown.".to_owned(),
    }
}

/// The hourly digest leaves out what was quiet.
fn is_shown(workflow: &WorkflowTally, form: Form) -> bool {
    let is_busy = workflow.sums.failures() > 0 || (workflow.is_current && workflow.open_count > 0);
    let is_missing = workflow.hearing != Hearing::Heard;
    match form {
        Form::Hourly => is_busy || is_missing,
        Form::Daily | Form::Weekly => is_busy || is_missing || workflow.told,
    }
}

fn write_more(left: &[(&WorkflowName, &WorkflowTally)]) -> String {
    if left.is_empty() {
        return String::new();
    }
    let failures: u64 = left.iter().map(|(_, t)| t.sums.failures()).sum();
    let names: Vec<&str> = left.iter().map(|(w, _)| w.as_str()).collect();
    let count = words::count(left.len() as u64);
    format!("And {count} more with {}: {}.", words::noun(failures, "failure"), name_some(&names, NAMES_MAX))
}

/// What the total holds beside the rows: "The total holds 9 dead letters of 2 workflows with nothing new as well."
fn write_old(tally: &Tally<'_>) -> String {
    let (count, workflows) = tally.with_old_letters().fold((0, 0), |(n, w), (_, t)| (n + t.open_count, w + 1));
    if workflows == 0 {
        return String::new();
    }
    let letters = words::noun(count, "dead letter");
    format!("The total holds {letters} of {} with nothing new as well.", words::noun(workflows, "workflow"))
}

fn workflow_row(tally: &Tally<'_>, workflow: &WorkflowName, counts: &WorkflowTally) -> WorkflowRow {
    let (failures, runs) = (counts.sums.failures(), counts.sums.runs());
    // Nothing arrived from a workflow that should have been heard: what it did is unknown.
    let is_unknown = !counts.arrived && counts.hearing != Hearing::Heard;
    let known = |n: u64| if is_unknown { "?".to_owned() } else { words::count(n) };
    let link = Link { text: "Workflow".to_owned(), url: tally.url("workflows", &[("name", workflow.as_str())]) };
    WorkflowRow {
        name: workflow.to_string(),
        runs: runs.map_or("?".to_owned(), words::count),
        failures: known(failures),
        change: if is_unknown { String::new() } else { change(tally, workflow, failures) },
        final_failures: known(counts.sums.final_failures()),
        open: words::count(counts.open_count),
        has_open: counts.open_count > 0,
        oldest: counts.oldest_at.map_or("–".to_owned(), |at| words::age(tally.age(at))),
        detail: detail(counts),
        runs_text: runs.filter(|_| failures > 0).map(|n| words::noun(n, "run")).unwrap_or_default(),
        runbook: tally.info(workflow).and_then(|i| i.runbook.clone()).unwrap_or_default(),
        contact: tally.contact(workflow, vec![link]),
    }
}

/// "+45", "−3" or "0"; empty without a window before.
fn change(tally: &Tally<'_>, workflow: &WorkflowName, failures: u64) -> String {
    let Some(before) = &tally.input.previous else { return String::new() };
    let before = before.failures_by_workflow.get(workflow).copied().unwrap_or(0);
    signed(failures, before)
}

fn signed(now: u64, before: u64) -> String {
    match now.abs_diff(before) {
        0 => "0".to_owned(),
        n if now > before => format!("+{}", words::count(n)),
        n => format!("−{}", words::count(n)),
    }
}

fn detail(counts: &WorkflowTally) -> String {
    match (counts.hearing, counts.sums.failures(), counts.sums.runs()) {
        (Hearing::Missing(age), 0, _) => format!("not heard for {}", words::duration(age)),
        (Hearing::Never, 0, _) => "never heard".to_owned(),
        (Hearing::Heard, 0, Some(runs)) => format!("0 failures in {}", words::noun(runs, "run")),
        (Hearing::Heard, 0, None) => "0 failures, runs not reported".to_owned(),
        (Hearing::Missing(_) | Hearing::Never | Hearing::Heard, _, _) => classes(counts),
    }
}

/// "11 LLM output, 9 transient", most first.
fn classes(counts: &WorkflowTally) -> String {
    let mut classes: Vec<_> = counts.classes.iter().map(|(c, n)| (*c, *n)).collect();
    classes.sort_by_key(|(_, n)| Reverse(*n));
    let mut parts: Vec<String> =
        classes.iter().take(CLASSES_MAX).map(|(c, n)| format!("{} {}", words::count(*n), words::class(*c))).collect();
    let left: u64 = classes.iter().skip(CLASSES_MAX).map(|(_, n)| n).sum();
    if left > 0 {
        parts.push(format!("{} other", words::count(left)));
    }
    parts.join(", ")
}

fn total_row(tally: &Tally<'_>) -> WorkflowRow {
    let totals = &tally.totals;
    let oldest = tally.input.letter_flow.by_workflow.values().filter_map(|c| c.oldest_at).min();
    WorkflowRow {
        name: "Total".to_owned(),
        runs: totals.runs.map_or("?".to_owned(), words::count),
        failures: words::count(totals.failures),
        change: tally.input.previous.as_ref().map(|p| signed(totals.failures, p.failures)).unwrap_or_default(),
        final_failures: words::count(totals.final_failures),
        open: words::count(totals.letters_open),
        has_open: totals.letters_open > 0,
        oldest: match oldest {
            Some(at) if totals.letters_open > 0 => words::age(tally.age(at)),
            Some(_) | None => "–".to_owned(),
        },
        detail: String::new(),
        runs_text: String::new(),
        runbook: String::new(),
        contact: Contact::default(),
    }
}

#[cfg(test)]
mod tests {
    use super::signed;

    #[test]
    fn a_change_has_its_sign() {
        assert_eq!([signed(5, 3), signed(3, 1_005), signed(4, 4)], ["+2", "−1,002", "0"]);
    }
}
