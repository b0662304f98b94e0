//! Causes with a line of their own, and open dead letters folded by cause. Which causes are listed decides what the footer
//! counts as listed.

use super::attention::{brief, letter_name};
use super::compose::Form;
use super::input::{FingerprintInfo, LETTERS_MAX, LetterGroup};
use super::tally::{CauseKind, CauseTally, Tally, and_more};
use super::view::{CauseItem, Causes, LetterItem, Link, Section};
use crate::event::Fingerprint;
use crate::render::words;
use foldhash::HashMap;

const NEW_MAX: usize = 8;
const KNOWN_MAX: usize = 10;
const SAMPLE_MAX: usize = 200;
/// How often a known cause must come to be listed when every try of it was followed by another.
const RETRIED_MIN: u64 = 10;

/// The listed causes, and how many events they have.
pub(super) fn list_causes(tally: &Tally<'_>, form: Form) -> (Causes, u64) {
    let (known, new): (Vec<_>, Vec<_>) = tally.causes.iter().partition(|c| c.kind == CauseKind::Known);
    let known_max = match form {
        Form::Hourly => 0,
        Form::Daily | Form::Weekly => KNOWN_MAX,
    };
    let worthy = |c: &&CauseTally<'_>| c.final_count > 0 || c.count >= RETRIED_MIN;
    let known_shown: Vec<_> = known.iter().copied().filter(worthy).take(known_max).collect();
    let new_shown: Vec<_> = new.iter().copied().take(NEW_MAX).collect();
    let listed = new_shown.iter().chain(&known_shown).map(|c| c.count).sum();
    let open = open_by_cause(tally);
    let causes = Causes {
        new: section(tally, &new_shown, new.len(), &open),
        known: section(tally, &known_shown, if known_max == 0 { 0 } else { known.len() }, &open),
    };
    (causes, listed)
}

fn section(
    tally: &Tally<'_>,
    shown: &[&CauseTally<'_>],
    all: usize,
    open: &HashMap<&Fingerprint, u64>,
) -> Section<CauseItem> {
    Section {
        note: format!("{} of {}", words::count(shown.len() as u64), words::noun(tally.causes.len() as u64, "cause")),
        items: shown.iter().map(|c| cause_item(tally, c, open.get(c.fingerprint).copied().unwrap_or(0))).collect(),
        more: and_more(shown.len(), all),
    }
}

fn open_by_cause<'a>(tally: &Tally<'a>) -> HashMap<&'a Fingerprint, u64> {
    let mut open = HashMap::default();
    for group in &tally.input.open_letters {
        *open.entry(&group.fingerprint).or_default() += group.count;
    }
    open
}

fn cause_item(tally: &Tally<'_>, cause: &CauseTally<'_>, open: u64) -> CauseItem {
    let info = tally.input.fingerprints.get(cause.fingerprint);
    let letters = (open > 0).then(|| words::noun(open, "dead letter"));
    let times = words::noun(cause.count, "time");
    let mut links = Vec::new();
    if open > 0 {
        links.push(tally.letters_link(open, &[("fingerprint", &cause.fingerprint.0)]));
    }
    if let Some(id) = info.and_then(|i| i.sample_event_id.as_ref()) {
        links.push(Link { text: "Sample".to_owned(), url: tally.url("events", &[("id", id)]) });
    }
    CauseItem {
        mark: mark(cause.kind).to_owned(),
        fingerprint: cause.fingerprint.0.to_string(),
        workflow: cause.workflow.to_string(),
        step: info.and_then(|i| i.step.as_deref()).map(words::one_line).unwrap_or_default(),
        sample: sample(info),
        count_lines: format!("{:>4}", words::count(cause.count)),
        count: words::count(cause.count),
        short: letters.map_or(times.clone(), |letters| format!("{times}, {letters}")),
        detail: cause_detail(tally, cause, info, open),
        seen: info.map(|i| format!("first seen {}", tally.time(i.first_seen_at))).unwrap_or_default(),
        contact: tally.contact(cause.workflow, links),
    }
}

fn mark(kind: CauseKind) -> &'static str {
    match kind {
        CauseKind::New => "NEW",
        CauseKind::Regressed => "REGRESSED",
        CauseKind::Known => "",
    }
}

fn sample(info: Option<&FingerprintInfo>) -> String {
    let Some(info) = info else { return "no sample was kept".to_owned() };
    let message = words::one_line(&info.sample);
    let text = match (&info.error_type, message.is_empty()) {
        (Some(kind), true) => kind.clone(),
        (None, true) => "no message".to_owned(),
        (Some(_) | None, false) => message,
    };
    words::cut(&text, SAMPLE_MAX)
}

fn cause_detail(tally: &Tally<'_>, cause: &CauseTally<'_>, info: Option<&FingerprintInfo>, open: u64) -> String {
    let class = sentence_case(words::class(cause.class));
    let since = info.and_then(|i| i.first_in_window_at).map(|at| format!(" since {}", tally.time(at)));
    let from = info.and_then(|i| i.downstream.as_ref()).map(|d| words::one_line(d)).filter(|d| !d.is_empty());
    let from = from.map(|d| format!(", from {d}"));
    let times = words::noun(cause.count, "time");
    let mut text = format!("{class}, {times}{}{}.", since.unwrap_or_default(), from.unwrap_or_default());
    if open > 0 {
        let verb = if open == 1 { "is a dead letter" } else { "are dead letters" };
        text.push_str(&format!(" {} {verb}.", words::noun(open, tally.noun(cause.workflow))));
    } else if cause.final_count == 0 {
        text.push_str(" All retried.");
    }
    if let (CauseKind::Regressed, Some(at)) = (cause.kind, info.and_then(|i| i.resolved_at)) {
        let ago = match tally.age(at).as_secs() / 86_400 {
            0 | 1 => words::age(tally.age(at)),
            days => words::noun(days, "day"),
        };
        text.push_str(&format!(" Resolved {}, {ago} ago.", tally.time(at)));
    }
    text
}

/// The first letter in upper case; `LLM output` stays.
pub(super) fn sentence_case(text: &str) -> String {
    let mut chars = text.chars();
    chars.next().map(|c| c.to_uppercase().chain(chars).collect()).unwrap_or_default()
}

/// Open dead letters by cause, oldest first. Those of workflows without news are counted only.
pub(super) fn list_letters(tally: &Tally<'_>) -> Section<LetterItem> {
    let older = tally.input.older_letters;
    let all = tally.input.open_letters.iter().map(|g| g.count).sum::<u64>() + older.count;
    let open = tally.totals.letters_open.max(all);
    let (mut groups, old): (Vec<&LetterGroup>, Vec<&LetterGroup>) =
        tally.input.open_letters.iter().partition(|g| tally.is_current(&g.workflow));
    groups.sort_by_key(|g| (g.oldest_at, &g.workflow, &g.fingerprint));
    let old = old.iter().map(|g| g.count).sum::<u64>() + older.count;
    let shown = &groups[..groups.len().min(LETTERS_MAX)];
    let left = open - old - shown.iter().map(|g| g.count).sum::<u64>();
    let causes = words::noun(tally.input.open_letters.len() as u64 + older.causes_count, "cause");
    Section {
        note: match open {
            0 => String::new(),
            _ => format!("{} open, {causes}, oldest first", words::count(open)),
        },
        items: shown.iter().map(|g| letter_item(tally, g)).collect(),
        more: more_letters(left, old),
    }
}

/// "And 3 more, and 9 dead letters of earlier windows."
fn more_letters(left: u64, old: u64) -> String {
    let older = format!("{} of earlier windows", words::noun(old, "dead letter"));
    match (left, old) {
        (0, 0) => String::new(),
        (left, 0) => format!("And {}.", words::noun(left, "more dead letter")),
        (0, _) => format!("And {older}."),
        (left, _) => format!("And {} more, and {older}.", words::count(left)),
    }
}

fn letter_item(tally: &Tally<'_>, group: &LetterGroup) -> LetterItem {
    let query = [("workflow", group.workflow.as_str()), ("fingerprint", &group.fingerprint.0)];
    let text = match group.count {
        1 => "Open".to_owned(),
        n => format!("Open all {}", words::count(n)),
    };
    LetterItem {
        age_lines: format!("{:4}", words::age(tally.age(group.oldest_at))),
        age: words::age(tally.age(group.oldest_at)),
        item: brief(letter_name(group)),
        others: match group.count {
            0 | 1 => String::new(),
            n => format!("and {} more", words::count(n - 1)),
        },
        count: words::count(group.count),
        sample: sample(tally.input.fingerprints.get(&group.fingerprint)),
        workflow: group.workflow.to_string(),
        contact: tally.contact(&group.workflow, vec![Link { text, url: tally.url("dead-letters", &query) }]),
    }
}
