//! Which firing symptoms and error budgets a digest tells. Pure.

use super::target::{Target, mailbox};
use crate::digest::plan::Window;
use crate::digest::{BudgetLine, Cell, PageRecord, PageState, SymptomLine};
use crate::live::Live;
use crate::name::WorkflowName;
use crate::symptom::{Budget, Mode, SymptomState, ToldSymptom};
use std::cmp::Reverse;
use std::time::Duration;

/// The symptoms that the digest of `target` is to tell, most urgent first: those of its workflows that fire, unless an open incident that
/// the digest lists tells of them, a silence hides them, or they are only observed.
///
/// Dead letters that wait in a workflow of which this window has no news were told when they came; `compose` counts them in one line.
pub(super) fn urgent(
    live: &Live,
    target: &Target,
    window: Window,
    firing: &[ToldSymptom],
    cells: &[Cell],
    pages: &[PageRecord],
) -> Vec<SymptomLine> {
    let mut told: Vec<&SymptomState> =
        for_reader(live, target, window, firing, pages).filter(|s| !s.is_of_letters() || has_news(s, cells)).collect();
    told.sort_by_key(|state| (state.severity, Reverse(is_protected(live, state)), state.since));
    told.into_iter().map(line).collect()
}

/// Whether a symptom that the digest of `target` tells began in its window: then the digest is not empty.
pub(super) fn is_news(
    live: &Live,
    target: &Target,
    window: Window,
    firing: &[ToldSymptom],
    pages: &[PageRecord],
) -> bool {
    let began = |state: &SymptomState| window.start_at <= state.since && state.since < window.end_at;
    for_reader(live, target, window, firing, pages).any(|state| began(state) && !state.is_of_letters())
}

/// The error budgets that the digest of `target` is to tell: those of its workflows.
pub(super) fn budgets(live: &Live, target: &Target, window: Window, budgets: &[Budget]) -> Vec<BudgetLine> {
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
    told.filter(|budget| reads(live, target, &budget.workflow, window)).map(line).collect()
}

fn for_reader<'a>(
    live: &'a Live,
    target: &'a Target,
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
        .filter(move |state| state.workflows.iter().any(|w| reads(live, target, w, window)))
}

fn has_news(state: &SymptomState, cells: &[Cell]) -> bool {
    cells.iter().any(|cell| !cell.is_silenced() && state.workflows.contains(&cell.workflow))
}

fn is_protected(live: &Live, state: &SymptomState) -> bool {
    state.workflows.iter().any(|w| live.policy.subject_of(w).domain.is_protected())
}

/// Whether `target` is told of a workflow itself.
pub(super) fn reads(live: &Live, target: &Target, workflow: &WorkflowName, window: Window) -> bool {
    let owner = || live.config.workflows.find(workflow).and_then(|w| w.owner.as_deref()).map(mailbox);
    let is_owner = target.owner.as_deref().is_none_or(|wanted| owner() == Some(mailbox(wanted)));
    let sends = |route: &&crate::route::Route| {
        route.digest.get(&target.digest).is_some_and(|receivers| receivers.contains(&target.receiver))
    };
    is_owner
        && live.policy.routes_of(workflow).iter().any(sends)
        && live.policy.silence_of(workflow, window.end_at).is_none()
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
