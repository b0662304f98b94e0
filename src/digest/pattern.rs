//! What only a longer window shows: who fails again and again, what hits several workflows at once, which downstreams and
//! which kinds of model failure stand out.

use super::compose::Form;
use super::drawing::{draw_downstreams, draw_llm};
use super::input::DownstreamCount;
use super::tally::{Tally, and_more, name_some};
use super::view::{DownstreamRow, LlmRow, Note, Patterns, Section};
use crate::event::Class;
use crate::name::WorkflowName;
use crate::render::words;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

const OFFENDERS_MAX: usize = 3;
/// Dead letters among the last ones that make a workflow a repeat offender.
const OFFENCES_MIN: u64 = 3;
const LAST_LETTERS_MAX: usize = 20;
/// Workflows that one cause must hit to count as systemic.
const SYSTEMIC_MIN: usize = 3;
const SYSTEMIC_MAX: usize = 3;
const DOWNSTREAMS_MAX: usize = 8;
const NAMES_MAX: usize = 4;

/// Patterns of the weekly digest; the other forms have none.
pub(super) fn list_patterns(tally: &Tally<'_>, form: Form) -> Patterns {
    match form {
        Form::Hourly | Form::Daily => Patterns::default(),
        Form::Weekly => {
            let (downstreams, llm) = (list_downstreams(tally), list_llm(tally));
            Patterns {
                items: repeat_offender(tally).into_iter().chain(systemic(tally)).collect(),
                downstreams_lines: draw_downstreams(&downstreams.items),
                llm_lines: draw_llm(&llm.items),
                downstreams,
                llm,
                ..Patterns::default()
            }
        }
    }
}

fn note(lead: &str, text: String) -> Note {
    Note { lead: lead.to_owned(), text, ..Note::default() }
}

/// "lead-enrichment has 9 of the last 20 dead letters, whatsapp-intake 4."
fn repeat_offender(tally: &Tally<'_>) -> Option<Note> {
    let last = &tally.input.last_letters[..tally.input.last_letters.len().min(LAST_LETTERS_MAX)];
    let mut counts: BTreeMap<&WorkflowName, u64> = BTreeMap::new();
    for workflow in last {
        *counts.entry(workflow).or_default() += 1;
    }
    let mut offenders: Vec<_> = counts.into_iter().filter(|(_, n)| *n >= OFFENCES_MIN).collect();
    offenders.sort_by_key(|(_, n)| Reverse(*n));
    let ((first, count), rest) = offenders.split_first()?;
    let rest: String = rest.iter().take(OFFENDERS_MAX - 1).map(|(w, n)| format!(", {w} {n}")).collect();
    let lead = if rest.is_empty() { "Repeat offender." } else { "Repeat offenders." };
    Some(note(lead, format!("{first} has {count} of the last {} dead letters{rest}.", last.len())))
}

/// One downstream, or one type of error, in several workflows.
fn systemic(tally: &Tally<'_>) -> Vec<Note> {
    let mut hits: BTreeMap<String, (BTreeSet<&WorkflowName>, u64)> = BTreeMap::new();
    for count in &tally.input.downstreams {
        let hit = hits.entry(words::one_line(&count.downstream)).or_default();
        hit.0.insert(&count.workflow);
        hit.1 += count.failures_count;
    }
    for cause in &tally.causes {
        let kind = tally.input.fingerprints.get(cause.fingerprint).and_then(|i| i.error_type.as_ref());
        if let Some(kind) = kind {
            let hit = hits.entry(words::one_line(kind)).or_default();
            hit.0.insert(cause.workflow);
            hit.1 += cause.count;
        }
    }
    let mut hits: Vec<_> = hits.into_iter().filter(|(_, (w, _))| w.len() >= SYSTEMIC_MIN).collect();
    hits.sort_by_key(|(_, (w, n))| Reverse((w.len(), *n)));
    let line = |(what, (workflows, count)): (String, (BTreeSet<&WorkflowName>, u64))| {
        let names: Vec<&str> = workflows.iter().map(|w| w.as_str()).collect();
        let (hit, times) = (words::noun(names.len() as u64, "workflow"), words::noun(count, "time"));
        note("Systemic.", format!("{what} hit {hit}, {times} in all: {}.", name_some(&names, NAMES_MAX)))
    };
    hits.into_iter().take(SYSTEMIC_MAX).map(line).collect()
}

fn list_downstreams(tally: &Tally<'_>) -> Section<DownstreamRow> {
    let mut by_name: BTreeMap<&str, Vec<&DownstreamCount>> = BTreeMap::new();
    for count in &tally.input.downstreams {
        by_name.entry(&count.downstream).or_default().push(count);
    }
    let all_failures: u64 = tally.input.downstreams.iter().map(|d| d.failures_count).sum();
    let mut rows: Vec<_> = by_name.into_iter().collect();
    rows.sort_by_key(|(_, counts)| Reverse(counts.iter().map(|c| c.failures_count).sum::<u64>()));
    let shown = rows.iter().take(DOWNSTREAMS_MAX).map(|(name, counts)| downstream_row(name, counts, all_failures));
    let items: Vec<_> = shown.collect();
    Section { note: "most failures first".to_owned(), more: and_more(items.len(), rows.len()), items }
}

fn downstream_row(name: &str, counts: &[&DownstreamCount], all_failures: u64) -> DownstreamRow {
    let failures = counts.iter().map(|c| c.failures_count).sum();
    let mut workflows: Vec<_> = counts.iter().map(|c| (c.workflow.as_str(), c.failures_count)).collect();
    workflows.sort_by_key(|(name, n)| (Reverse(*n), *name));
    let names: Vec<&str> = workflows.iter().map(|(name, _)| *name).collect();
    DownstreamRow {
        downstream: words::one_line(name),
        failures: words::count(failures),
        final_failures: words::count(counts.iter().map(|c| c.final_count).sum()),
        share: words::share_fine(failures, all_failures),
        workflows: name_some(&names, NAMES_MAX),
    }
}

/// Whether a class is one of the failures of language models.
pub(super) fn is_llm(class: Class) -> bool {
    match class {
        Class::LlmOutput | Class::LlmRefusal | Class::LlmHallucination | Class::LlmContext | Class::LlmBehavior => true,
        Class::Transient
        | Class::RateLimited
        | Class::Persistent
        | Class::InvalidInput
        | Class::OutcomeUnknown
        | Class::Catastrophic
        | Class::Interrupted
        | Class::Unclassified => false,
    }
}

fn list_llm(tally: &Tally<'_>) -> Section<LlmRow> {
    let mut classes: BTreeMap<Class, (u64, u64, BTreeSet<&str>)> = BTreeMap::new();
    let cells = tally.input.cells.iter().filter(|c| c.is_failure() && !c.is_silenced() && is_llm(c.class));
    for cell in cells {
        let row = classes.entry(cell.class).or_default();
        row.0 += cell.count;
        row.1 += if cell.is_final_failure() { cell.count } else { 0 };
        row.2.insert(cell.workflow.as_str());
    }
    let mut rows: Vec<_> = classes.into_iter().collect();
    rows.sort_by_key(|(_, (n, ..))| Reverse(*n));
    let all: u64 = rows.iter().map(|(_, (n, ..))| n).sum();
    let row = |(class, (failures, finals, names)): (Class, (u64, u64, BTreeSet<&str>))| LlmRow {
        class: words::class(class).to_owned(),
        failures: words::count(failures),
        final_failures: words::count(finals),
        workflows: name_some(&names.into_iter().collect::<Vec<_>>(), NAMES_MAX),
    };
    Section { note: words::noun(all, "failure"), items: rows.into_iter().map(row).collect(), more: String::new() }
}
