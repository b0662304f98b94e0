//! Which firing symptoms and error budgets a digest tells. Pure.

use super::reader::Reader;
use crate::digest::plan::Window;
use crate::digest::{BudgetLine, Cell, PageRecord, PageState, SymptomLine};
use crate::live::Live;
use crate::name::WorkflowName;
use crate::symptom::{Budget, Mode, SymptomState, ToldSymptom};
use foldhash::HashSet;
use std::cmp::Reverse;
use std::time::Duration;

/// The symptoms that a digest is to tell, most urgent first: those of its workflows that fire, unless an open incident that
/// the digest lists tells of them, a silence hides them, or they are only observed.
///
/// Dead letters that wait in a workflow of which this window has no news were told when they came; `compose` counts them in one line.
pub(super) fn urgent(
    live: &Live,
    reader: &Reader<'_>,
    window: Window,
    firing: &[ToldSymptom],
    cells: &[Cell],
    pages: &[PageRecord],
) -> Vec<SymptomLine> {
    let heard: HashSet<&WorkflowName> = cells.iter().filter(|c| !c.is_silenced()).map(|c| &c.workflow).collect();
    let has_news = |state: &SymptomState| state.workflows.iter().any(|w| heard.contains(w));
    let mut told: Vec<&SymptomState> =
        for_reader(reader, window, firing, pages).filter(|s| !s.is_of_letters() || has_news(s)).collect();
    told.sort_by_cached_key(|state| (state.severity, Reverse(is_protected(live, state)), state.since));
    told.into_iter().map(line).collect()
}

/// Whether a symptom that a digest tells began in its window: then the digest is not empty.
pub(super) fn is_news(reader: &Reader<'_>, window: Window, firing: &[ToldSymptom], pages: &[PageRecord]) -> bool {
    let began = |state: &SymptomState| window.start_at <= state.since && state.since < window.end_at;
    for_reader(reader, window, firing, pages).any(|state| began(state) && !state.is_of_letters())
}

/// The error budgets that a digest is to tell: those of its workflows.
pub(super) fn budgets(reader: &Reader<'_>, budgets: &[Budget]) -> Vec<BudgetLine> {
    let line = |budget: &Budget| BudgetLine {
        rule: budget.rule.clone(),
        workflow: budget.workflow.clone(),
        objective: budget.objective(),
        period: budget.period,
        failed: budget.failed,
        failed_lately: budget.failed_lately,
        allowed: budget.left.map_or(0.0, |left| left.allowed),
        share_left: budget.left.map(|left| left.share),
        known: budget.left.map_or(Duration::ZERO, |left| left.known),
    };
    let told = budgets.iter().filter(|budget| budget.mode == Mode::Live);
    told.filter(|budget| reader.reads(&budget.workflow)).map(line).collect()
}

fn for_reader<'a>(
    reader: &'a Reader<'_>,
    window: Window,
    firing: &'a [ToldSymptom],
    pages: &'a [PageRecord],
) -> impl Iterator<Item = &'a SymptomState> {
    let is_listed = |id: &str| pages.iter().any(|page| page.incident_id == id && page.state != PageState::Resolved);
    firing
        .iter()
        .filter(move |symptom| !symptom.told.incident_id().is_some_and(is_listed))
        .map(|symptom| &symptom.state)
        .filter(move |state| state.mode == Mode::Live && state.since < window.end_at)
        .filter(move |state| state.workflows.iter().any(|w| reader.reads(w)))
}

fn is_protected(live: &Live, state: &SymptomState) -> bool {
    state.workflows.iter().any(|w| live.policy.subject_of(w).domain.is_protected())
}

fn line(state: &SymptomState) -> SymptomLine {
    let workflow = state.key.workflow.clone().or_else(|| state.workflows.first().cloned());
    SymptomLine {
        text: state.text.clone(),
        detail: state.detail.clone(),
        workflow: workflow.unwrap_or_else(|| WorkflowName::new("-")),
        path: None,
    }
}
