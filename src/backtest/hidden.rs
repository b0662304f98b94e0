//! Lines of events that nobody is paged for, and of what is no event. Pure.

use super::line::{Line, LineKind};
use crate::event::{Event, EventType};
use crate::route::{Decision, Paging, Suppression};
use crate::store::intake::QuarantineRow;

/// The line of what is no event. `number` is its line in the file.
pub(super) fn unreadable_line(number: u32, row: &QuarantineRow) -> Line {
    Line {
        event: Some(format!("line {number}")),
        reason: Some(row.reason.to_owned()),
        text: Some(row.explanation.clone()),
        ..Line::new(row.received_at, LineKind::Quarantined)
    }
}

/// A failure that a silence hid, a final failure of a protected workflow that pages nobody, and a failure that nobody hears of.
pub(super) fn suppress_line(event: &Event, decision: &Decision, is_told: bool) -> Option<Line> {
    let Paging::Suppress(suppression) = &decision.paging else { return None };
    let is_failure = event.event_type == EventType::Failure;
    let silenced = decision.silence_id.as_ref().filter(|_| is_failure);
    let unpaged = event.is_final_failure() && decision.domain.is_protected();
    if silenced.is_none() && !unpaged && (is_told || !is_failure) {
        return None;
    }
    let (reason, text) = match silenced {
        Some(id) => (Suppression::Silenced.as_str(), format!("Silence {id} hides it.")),
        None if !is_told && !unpaged => ("unrouted", "No route sends it to anybody.".to_owned()),
        None => (suppression.as_str(), format!("{}.", sentence_case(suppression.explanation()))),
    };
    Some(Line {
        workflow: Some(event.workflow.to_string()),
        event: Some(event.id.0.clone()),
        item: event.item.clone(),
        reason: Some(reason.to_owned()),
        text: Some(text),
        ..Line::new(event.received_at, LineKind::Suppress)
    })
}

fn sentence_case(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().map_or_else(String::new, |first| first.to_uppercase().chain(letters).collect())
}
