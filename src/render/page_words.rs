//! The sentences of messages about incidents, from facts. Which of them a view holds, and under what name, is not known here.

use super::page_facts::{FailureSample, PageFacts, PageKind, PagedWorkflow, Resolution};
use super::words;
use crate::event::{Class, Disposition, ErrorInfo};

/// Names of workflows, steps, items and the like, in characters.
const NAME_MAX: usize = 120;
/// An error message or sample, in characters; each channel may show less.
pub(super) const SAMPLE_MAX: usize = 2_000;

pub(super) fn name(text: &str) -> String {
    words::cut(&words::one_line(text), NAME_MAX)
}

pub(super) fn more(length: usize, shown: usize) -> Option<u64> {
    length.checked_sub(shown).filter(|more| *more > 0).map(|more| more as u64)
}

/// The workflows, when there is more than the one that every message names.
pub(super) fn several(facts: &PageFacts) -> &[PagedWorkflow] {
    if facts.workflows.len() > 1 { &facts.workflows } else { &[] }
}

pub(super) fn owner(workflow: Option<&PagedWorkflow>) -> String {
    let written = workflow.and_then(|w| w.owner.as_deref()).map(words::owner_name);
    written.map(name).filter(|owner| !owner.is_empty()).unwrap_or_else(|| "none set".to_owned())
}

pub(super) fn title(facts: &PageFacts) -> String {
    let (whom, what) = (whom(facts), sentence(facts));
    let number = facts.first_number;
    let told = match names(facts, &what, &whom) {
        true => what,
        false if facts.kind == PageKind::Growth => format!("{whom}, now {what}"),
        false => format!("{whom}, {what}"),
    };
    match facts.kind {
        PageKind::Page => format!("Page: {told}"),
        PageKind::Reminder => format!("Still open #{number}: {told}"),
        PageKind::Growth => format!("Update on #{number}: {told}"),
        PageKind::Escalation => format!("Not acknowledged #{number}: {told}"),
        PageKind::Resolved => format!("Resolved #{number}: {told}"),
    }
}

/// Whether a sentence names the workflow already: a symptom's own may do so anywhere.
fn names(facts: &PageFacts, what: &str, whom: &str) -> bool {
    what.starts_with(whom) || (facts.sample.is_none() && what.contains(whom))
}

fn whom(facts: &PageFacts) -> String {
    match facts.workflows.as_slice() {
        [] => "unnamed workflow".to_owned(),
        [one] => name(one.name.as_str()),
        all => words::noun(all.len() as u64, "workflow"),
    }
}

pub(super) fn subject(facts: &PageFacts, title: &str) -> String {
    let what = sentence(facts);
    let whom = whom(facts);
    let line = match facts.kind {
        PageKind::Page if names(facts, &what, &whom) => what,
        PageKind::Page => format!("{whom}: {what}"),
        PageKind::Reminder | PageKind::Growth | PageKind::Escalation | PageKind::Resolved => title.to_owned(),
    };
    format!("{line} [#{}]", facts.number)
}

pub(super) fn notice(facts: &PageFacts, title: &str) -> String {
    let item = facts.sample.as_ref().and_then(|s| s.item.as_deref()).filter(|_| facts.kind == PageKind::Page);
    let item = item.map(|item| format!(" ({})", name(item))).unwrap_or_default();
    let owner = match facts.workflows.first().and_then(|w| w.owner.as_ref()) {
        Some(_) => format!(" Owner {}.", owner(facts.workflows.first())),
        None => String::new(),
    };
    format!("#{} {title}{item}.{owner}", facts.number)
}

/// What has happened, with numbers; without the workflow.
pub fn sentence(facts: &PageFacts) -> String {
    if let (PageKind::Resolved, Some(resolution)) = (facts.kind, &facts.resolution) {
        return resolved_sentence(facts, resolution);
    }
    match (&facts.sample, facts.symptoms.first()) {
        (Some(sample), _) => failure_sentence(facts, sample),
        (None, Some(symptom)) => words::cut(&words::one_line(symptom), 300).trim_end_matches('.').to_owned(),
        (None, None) => format!("{} failed", counted(facts).have()),
    }
}

fn failure_sentence(facts: &PageFacts, sample: &FailureSample) -> String {
    let counted = counted(facts);
    let place = sample.step.as_deref().map(|step| format!(" in {}", name(step))).unwrap_or_default();
    match (sample.class, sample.downstream.as_deref().map(name)) {
        (Class::OutcomeUnknown, Some(downstream)) => {
            format!("{} may or may not have reached {downstream}", counted.noun())
        }
        (Class::OutcomeUnknown, None) => format!("{} may or may not have gone through{place}", counted.noun()),
        (_, Some(downstream)) => format!("{} not reached {downstream}", counted.have()),
        (_, None) => format!("{} failed{place}", counted.have()),
    }
}

fn resolved_sentence(facts: &PageFacts, resolution: &Resolution) -> String {
    let counted = counted(facts);
    let arrived = match facts.sample.as_ref().and_then(|s| s.downstream.as_deref()) {
        Some(downstream) => format!("reached {}", name(downstream)),
        None => "gone through".to_owned(),
    };
    let closed = || format!("closed by {}", name(resolution.by.as_deref().unwrap_or("nobody")));
    if resolution.open > 0 {
        let closed = if resolution.by.is_some() { closed() } else { "nothing new".to_owned() };
        return format!("{closed}, {} still open", words::noun_be(resolution.open, "dead letter"));
    }
    if resolution.recovered > 0 && resolution.recovered >= counted.n {
        let all = if counted.n == 1 { "" } else { "all " };
        return format!("{all}{} {arrived}", counted.have());
    }
    match resolution.resolved {
        0 if resolution.by.is_some() => closed(),
        0 if resolution.is_dropped => "its rule was taken out of the config, it may go on unseen".to_owned(),
        0 => "it has cleared".to_owned(),
        n => format!("{} resolved", words::noun_be(n, "dead letter")),
    }
}

/// A number of things and what they are called.
struct Counted<'f> {
    n: u64,
    singular: &'f str,
}

impl Counted<'_> {
    fn noun(&self) -> String {
        words::noun(self.n, self.singular)
    }

    fn have(&self) -> String {
        words::noun_have(self.n, self.singular)
    }
}

fn counted(facts: &PageFacts) -> Counted<'_> {
    let items: u64 = facts.workflows.iter().map(|w| w.items).sum();
    let events: u64 = facts.workflows.iter().map(|w| w.events).sum();
    let first = facts.workflows.first().and_then(|w| w.item_noun.as_deref());
    let alike = facts.workflows.iter().all(|w| w.item_noun.as_deref() == first);
    match items {
        0 => Counted { n: events.max(1), singular: "run" },
        n => Counted { n, singular: first.filter(|_| alike).unwrap_or("item") },
    }
}

pub(super) fn ending(sample: &FailureSample) -> String {
    let end = match (sample.disposition, sample.attempt) {
        (Disposition::Retrying, _) => "being retried".to_owned(),
        (Disposition::Skipped, _) => "skipped".to_owned(),
        (Disposition::DeadLettered | Disposition::Failed, Some(attempt)) if attempt > 1 => {
            format!("final after {}", words::noun(u64::from(attempt), "attempt"))
        }
        (Disposition::DeadLettered | Disposition::Failed, _) => "final".to_owned(),
    };
    format!("{end}, {}", words::class(sample.class))
}

/// `503 ServerError: upstream connect error`, without saying twice what the message says itself.
pub(super) fn sample_text(error: &ErrorInfo) -> Option<String> {
    let message = error.message.as_deref().map(str::trim).filter(|m| !m.is_empty());
    let said = |part: &str| message.is_some_and(|m| m.contains(part));
    let status = error.http_status.map(|s| s.to_string()).filter(|s| !said(s));
    let kind = error.kind.as_deref().or(error.code.as_deref()).map(name).filter(|k| !k.is_empty() && !said(k));
    let head = [status, kind].into_iter().flatten().collect::<Vec<_>>().join(" ");
    let message = message.map(|m| words::cut(m, SAMPLE_MAX));
    match (head.is_empty(), message) {
        (true, message) => message,
        (false, None) => Some(head),
        (false, Some(message)) if error.kind.is_none() && error.code.is_none() => Some(format!("{head} {message}")),
        (false, Some(message)) => Some(format!("{head}: {message}")),
    }
}

/// The lines of a sample; many lines are cut to twenty.
pub(super) fn rows(sample: &str) -> Vec<String> {
    const ROWS_MAX: usize = 20;
    let all: Vec<&str> = sample.lines().map(str::trim_end).filter(|l| !l.is_empty()).collect();
    let mut rows: Vec<String> = all.iter().take(ROWS_MAX).map(|l| (*l).to_owned()).collect();
    rows.extend(more(all.len(), ROWS_MAX).map(|n| format!("… ({})", words::noun(n, "more line"))));
    rows
}

pub(super) fn next(facts: &PageFacts) -> Option<String> {
    if let (PageKind::Resolved, Some(resolution)) = (facts.kind, &facts.resolution) {
        return resolution.quiet_for.map(|quiet| format!("nothing new for {}", words::duration(quiet)));
    }
    let growth = (facts.kind == PageKind::Growth).then(|| "10 times what was last told".to_owned());
    let remind = facts.remind_in.map(|wait| format!("reminder in {}", words::duration(wait)));
    let escalate = facts.escalation.as_ref().filter(|_| facts.acknowledged.is_none()).map(|step| {
        let to = step.to.iter().take(3).map(|receiver| name(receiver)).collect::<Vec<_>>().join(" and ");
        format!("to {to} in {}", words::duration(step.after))
    });
    let conditional: Vec<String> = remind.into_iter().chain(escalate).collect();
    let unless = match conditional.is_empty() {
        true => None,
        false => Some(format!("{} unless acknowledged", conditional.join(", "))),
    };
    let parts: Vec<String> = growth.into_iter().chain(unless.filter(|_| facts.acknowledged.is_none())).collect();
    Some(parts.join(" · ")).filter(|line| !line.is_empty())
}
