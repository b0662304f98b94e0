//! The end of a digest: silences and what they hid, unreadable messages, what Matins missed, and the balance.

use super::drawing::draw_balance;
use super::input::{Fate, SilenceLine};
use super::tally::{Tally, name_some};
use super::view::{DigestCounts, Footer, FooterRow, Link, Note};
use crate::render::words;
use std::collections::{BTreeMap, BTreeSet};

const SILENCES_MAX: usize = 6;
const SUBJECTS_MAX: usize = 5;
const INCIDENTS_MAX: usize = 5;
const SERVICE_MAX: usize = 10;

/// "Silence S-7 hid 15 rate-limit failures of staging-sync."
pub(super) fn list_silences(tally: &Tally<'_>, counts: &DigestCounts) -> Vec<Note> {
    let silences: BTreeMap<&str, &SilenceLine> = tally.input.silences.iter().map(|s| (s.id.as_str(), s)).collect();
    let mut notes: Vec<Note> = counts
        .silenced
        .iter()
        .take(SILENCES_MAX)
        .map(|(id, count)| silence_note(tally, id, *count, silences.get(id.as_str()).copied()))
        .collect();
    let left: Vec<u64> = counts.silenced.values().skip(SILENCES_MAX).copied().collect();
    if !left.is_empty() {
        let hid = words::noun(left.iter().sum(), "event");
        let text = format!("hid {hid}.");
        notes.push(Note { lead: words::noun(left.len() as u64, "more silence"), text, ..Note::default() });
    }
    notes
}

fn silence_note(tally: &Tally<'_>, id: &str, count: u64, silence: Option<&SilenceLine>) -> Note {
    let of: BTreeSet<&str> = tally
        .input
        .cells
        .iter()
        .filter(|c| matches!(&c.fate, Fate::Silenced(by) if by == id))
        .map(|c| c.workflow.as_str())
        .collect();
    let names = name_some(&of.into_iter().collect::<Vec<_>>(), 4);
    let text = format!("hid {} of {names}.", words::noun(count, "event"));
    let mut more = String::new();
    if let Some(silence) = silence {
        let verb = if silence.until > tally.end_at() { "Ends" } else { "Ended" };
        let until = words::date_time(silence.until, tally.input.zone);
        let (by, reason) = (words::one_line(&silence.by), words::cut(&words::one_line(&silence.reason), 200));
        more = format!("By {by}: “{reason}”. {verb} {until}.");
    }
    let links = vec![Link { text: "Silence".to_owned(), url: tally.url("silences", &[("id", id)]) }];
    Note { lead: format!("Silence {id}"), text, more, links }
}

/// "2 unreadable messages on failures.whatsapp-intake are in quarantine."
pub(super) fn list_unreadable(tally: &Tally<'_>) -> Vec<Note> {
    let all: u64 = tally.input.unreadable.iter().map(|u| u.count).sum();
    if all == 0 {
        return Vec::new();
    }
    let mut subjects: Vec<_> = tally.input.unreadable.iter().filter(|u| u.count > 0).collect();
    subjects.sort_by_key(|u| (std::cmp::Reverse(u.count), &u.subject));
    let names: Vec<&str> = subjects.iter().map(|u| u.subject.as_str()).collect();
    let be = if all == 1 { "is" } else { "are" };
    vec![Note {
        lead: words::noun(all, "unreadable message"),
        text: format!("on {} {be} in quarantine.", name_some(&names, SUBJECTS_MAX)),
        more: String::new(),
        links: vec![Link { text: "Quarantine".to_owned(), url: tally.url("quarantine", &[]) }],
    }]
}

/// What Matins itself missed.
pub(super) fn list_service(tally: &Tally<'_>) -> Vec<Note> {
    let note = |text: String| Note { lead: "Matins".to_owned(), text, ..Note::default() };
    let mut notes: Vec<Note> = tally
        .input
        .service
        .iter()
        .take(SERVICE_MAX)
        .map(|text| Note { lead: String::new(), ..note(text.clone()) })
        .collect();
    let is_sure = tally.input.incomplete.is_none() && tally.input.late.as_ref().is_none_or(|l| l.away.is_none());
    if notes.is_empty() && is_sure {
        notes.push(note("missed nothing.".to_owned()));
    }
    if tally.input.late_count > 0 {
        let events = words::noun(tally.input.late_count, "event");
        let text = format!("{events} arrived an hour or more after {} happened.", they(tally.input.late_count));
        notes.push(Note { lead: String::new(), ..note(text) });
    }
    notes
}

fn they(count: u64) -> &'static str {
    if count == 1 { "it" } else { "they" }
}

/// The balance, in rows and in one line.
pub(super) fn write_footer(tally: &Tally<'_>, counts: &DigestCounts) -> Footer {
    let input = tally.input;
    let zone = words::zone_name(input.zone, tally.end_at());
    let mut footer = Footer {
        rows: rows(tally, counts),
        balance_lines: String::new(),
        received: words::count(counts.received),
        line: line(counts),
        zone: match zone == input.zone.name() {
            true => format!("Times are {zone}."),
            false => format!("Times are {zone} ({}).", input.zone.name()),
        },
        reason: reason(tally),
        url: tally.url(&format!("digests/{}", input.number), &[]),
        explain_url: tally.url("explain", &[]),
        routes_url: tally.url("routes", &[]),
    };
    footer.balance_lines = draw_balance(&footer);
    footer
}

fn rows(tally: &Tally<'_>, counts: &DigestCounts) -> Vec<FooterRow> {
    let row = |label: String, count: u64| FooterRow { label, count: words::count(count) };
    let mut rows = vec![
        row("Listed here, with their cause".to_owned(), counts.listed),
        row("Folded into totals, no line of their own".to_owned(), counts.folded),
    ];
    rows.extend(counts.silenced.iter().take(SILENCES_MAX).map(|(id, n)| row(format!("Silenced by {id}"), *n)));
    let left = counts.silenced.len().saturating_sub(SILENCES_MAX);
    if left > 0 {
        let hidden = counts.silenced.values().skip(SILENCES_MAX).sum();
        rows.push(row(format!("Silenced by {}", words::noun(left as u64, "more silence")), hidden));
    }
    if counts.paged > 0 {
        rows.push(row(paged_label(tally), counts.paged));
    }
    rows
}

/// "Paged, incidents #188 and #193"
fn paged_label(tally: &Tally<'_>) -> String {
    let numbers: BTreeMap<&str, i64> = tally.input.pages.iter().map(|p| (p.incident_id.as_str(), p.number)).collect();
    let incidents: BTreeSet<&str> = tally
        .input
        .cells
        .iter()
        .filter_map(|c| match &c.fate {
            Fate::Paged(id) => Some(id.as_str()),
            Fate::Digest | Fate::Silenced(_) => None,
        })
        .collect();
    let known: Vec<String> = incidents.iter().filter_map(|id| numbers.get(id)).map(|n| format!("#{n}")).collect();
    let known: Vec<&str> = known.iter().map(String::as_str).collect();
    match known.len() {
        0 => "Paged".to_owned(),
        1 => format!("Paged, incident {}", known[0]),
        _ => format!("Paged, incidents {}", name_some(&known, INCIDENTS_MAX)),
    }
}

/// "133 received = 26 listed + 78 folded + 15 silenced by S-7 + 14 paged"
fn line(counts: &DigestCounts) -> String {
    let mut line = format!(
        "{} received = {} listed + {} folded",
        words::count(counts.received),
        words::count(counts.listed),
        words::count(counts.folded)
    );
    match counts.silenced.len() {
        0 => line.push_str(" + 0 silenced"),
        1..=SILENCES_MAX => {
            line.extend(counts.silenced.iter().map(|(id, n)| format!(" + {} silenced by {id}", words::count(*n))));
        }
        n => {
            let hidden = words::count(counts.silenced.values().sum());
            line.push_str(&format!(" + {hidden} silenced by {n} silences"));
        }
    }
    line.push_str(&format!(" + {} paged", words::count(counts.paged)));
    line
}

/// "You read this because route “everything” sends the daily digest to ops."
fn reason(tally: &Tally<'_>) -> String {
    let input = tally.input;
    let routes: Vec<String> = input.routes.iter().map(|r| format!("“{r}”")).collect();
    let routes: Vec<&str> = routes.iter().map(String::as_str).collect();
    let (digest, receiver) = (&input.digest, words::one_line(&input.receiver));
    match routes.len() {
        0 => format!("You read this because the {digest} digest goes to {receiver}."),
        1 => format!("You read this because route {} sends the {digest} digest to {receiver}.", routes[0]),
        _ => format!("You read this because routes {} send the {digest} digest to {receiver}.", name_some(&routes, 4)),
    }
}
