//! Headline numbers, the sentence below the verdict, what was healed, and who was heard.

use super::cause::sentence_case;
use super::drawing::{draw_numbers, draw_recoveries};
use super::input::{Cell, Totals};
use super::tally::{CauseKind, Hearing, Tally, WorkflowTally, name_some};
use super::view::{Heard, Numbers, Recoveries, RecoveryRow, ShortNumber, Tile};
use crate::event::EventType;
use crate::name::WorkflowName;
use crate::render::words;
use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::time::Duration;

const STRATEGIES_MAX: usize = 8;
const NAMES_MAX: usize = 5;

/// The tiles. A number that can't be known is "?", never 0.
pub(super) fn list_numbers(tally: &Tally<'_>) -> Numbers {
    let (now, before) = (&tally.totals, tally.input.previous.as_ref());
    let plain = |label: &str, of: fn(&Totals) -> u64| Tile {
        label: label.to_owned(),
        value: words::count(of(now)),
        change: before.map(|b| words::change(of(now), Some(of(b)))).unwrap_or_default(),
    };
    let partial = |label: &str, of: fn(&Totals) -> Option<u64>, write: fn(&u64) -> String| Tile {
        label: label.to_owned(),
        value: of(now).as_ref().map_or("?".to_owned(), write),
        change: match (of(now), before) {
            (Some(value), Some(before)) => words::change_as(value, of(before), write),
            (None, _) | (_, None) => String::new(),
        },
    };
    let items = vec![
        partial("Runs", |t| t.runs, |n| words::count(*n)),
        plain("Failures", |t| t.failures),
        partial("Healed by itself", healed_percent, |n| format!("{n} %")),
        partial("Mean time to heal", mean_ms, |ms| words::duration(Duration::from_millis(*ms))),
        plain("Dead letters in", |t| t.letters_opened),
        plain("Dead letters resolved", |t| t.letters_resolved),
        plain("Dead letters open", |t| t.letters_open),
        plain("Pages", |t| t.pages),
    ];
    let note = match before {
        Some(_) => format!("against the {} before", tally.input.window.period()),
        None => format!("no data for the {} before", tally.input.window.period()),
    };
    Numbers { note, table_lines: draw_numbers(&items), short: list_short(tally), items }
}

/// The same in fewer words, in two columns; what can't be known is left out.
fn list_short(tally: &Tally<'_>) -> Vec<ShortNumber> {
    let (now, before) = (&tally.totals, tally.input.previous.as_ref());
    let moved = |of: fn(&Totals) -> Option<u64>, write: fn(&u64) -> String| match (of(now), before) {
        (Some(value), Some(before)) => format!(", {}", words::change_as(value, of(before), write)),
        (None, _) | (_, None) => String::new(),
    };
    let count: fn(&u64) -> String = |n| words::count(*n);
    let percent: fn(&u64) -> String = |n| format!("{n} %");
    let time: fn(&u64) -> String = |ms| words::duration(Duration::from_millis(*ms));
    let short = |value: String, text: String| ShortNumber { value, text };
    let runs = now.runs.map(|n| format!(" in {}", words::noun(n, "run"))).unwrap_or_default();
    let failures = format!("{}{runs}{}", unit(now.failures, "failure"), moved(|t| Some(t.failures), count));
    let healed =
        healed_percent(now).map(|n| short(percent(&n), format!("healed by itself{}", moved(healed_percent, percent))));
    let open = format!("{} open{}", unit(now.letters_open, "dead letter"), moved(|t| Some(t.letters_open), count));
    let flow =
        format!("{} in, {} resolved", unit(now.letters_opened, "dead letter"), words::count(now.letters_resolved));
    let mean = mean_ms(now).map(|ms| short(time(&ms), format!("mean time to heal{}", moved(mean_ms, time))));
    let pages = format!("{}{}", unit(now.pages, "page"), moved(|t| Some(t.pages), count));
    let numbers = [
        Some(short(words::count(now.failures), failures)),
        healed,
        Some(short(words::count(now.letters_open), open)),
        Some(short(words::count(now.letters_opened), flow)),
        mean,
        Some(short(words::count(now.pages), pages)),
    ];
    numbers.into_iter().flatten().collect()
}

/// "failures": a noun that agrees with its number, without the number.
fn unit(count: u64, noun: &str) -> String {
    let text = words::noun(count, noun);
    text.split_once(' ').map(|(_, noun)| noun.to_owned()).unwrap_or_default()
}

fn healed_percent(totals: &Totals) -> Option<u64> {
    let (healed, ended) = Tally::healed(totals);
    (healed * 100).checked_div(ended)
}

fn mean_ms(totals: &Totals) -> Option<u64> {
    totals.took_ms_sum.checked_div(totals.took_count)
}

/// What happened, in one or two sentences.
pub(super) fn write_lede(tally: &Tally<'_>, is_quiet: bool) -> String {
    let totals = &tally.totals;
    let runs = totals.runs.map(|n| format!(" in {}", words::noun(n, "run"))).unwrap_or_default();
    let mut text = format!("{}{runs}", words::noun(totals.failures, "failure"));
    if let Some(before) = &tally.input.previous {
        text.push_str(&difference(totals.failures, before.failures, tally.input.window.period()));
    }
    let (healed, ended) = Tally::healed(totals);
    match (healed, is_quiet && totals.failures == 0) {
        (1.., _) => text.push_str(&format!("; {} healed by itself", words::share(healed, ended))),
        (0, true) => text.push_str(&heard_share(tally)),
        (0, false) => {}
    }
    text.push('.');
    text.push_str(&write_news(tally));
    text
}

fn difference(now: u64, before: u64, period: &str) -> String {
    match (now, before) {
        (0, 0) => String::new(),
        (a, b) if a > b => format!(", {} more than the {period} before", words::count(a - b)),
        (a, b) if a < b => format!(", {} fewer than the {period} before", words::count(b - a)),
        _ => format!(", as many as the {period} before"),
    }
}

fn heard_share(tally: &Tally<'_>) -> String {
    let expected: Vec<_> = expected(tally).collect();
    let heard = expected.iter().filter(|(_, t)| t.hearing == Hearing::Heard).count();
    match expected.len() as u64 {
        0 => String::new(),
        n => format!("; {} of {} heard", words::count(heard as u64), words::noun(n, "workflow")),
    }
}

/// "1 cause is new, 1 is back." or nothing.
fn write_news(tally: &Tally<'_>) -> String {
    let count = |kind| tally.causes.iter().filter(|c| c.kind == kind).count() as u64;
    let be = |n: u64| if n == 1 { "is" } else { "are" };
    let (new, back) = (count(CauseKind::New), count(CauseKind::Regressed));
    match (new, back) {
        (0, 0) => String::new(),
        (n, 0) => format!(" {} new.", words::noun_be(n, "cause")),
        (0, b) => format!(" {} back.", words::noun_be(b, "cause")),
        (n, b) => format!(" {} new, {} {} back.", words::noun_be(n, "cause"), words::count(b), be(b)),
    }
}

/// Recoveries of one strategy.
#[derive(Default)]
struct Healing {
    count: u64,
    took_count: u64,
    took_ms: u64,
    tries_count: u64,
    tries: u64,
}

/// What went through after it had failed, by what worked.
pub(super) fn list_recoveries(tally: &Tally<'_>) -> Recoveries {
    let (healed, ended) = Tally::healed(&tally.totals);
    if ended == 0 {
        return Recoveries { text: letters_text(tally), ..Recoveries::default() };
    }
    let strategies = by_strategy(&tally.input.cells);
    let shown = &strategies[..strategies.len().min(STRATEGIES_MAX)];
    let clauses: Vec<String> = shown.iter().enumerate().map(|(i, (name, h))| clause(name, h, i == 0)).collect();
    let mut text = sentence_case(&clauses.join(", "));
    match (healed, ended - healed) {
        (_, 0) => text.push('.'),
        (0, n) => text.push_str(&format!("Nothing healed by itself; {} given up.", was_were(n))),
        (_, 1) => text.push_str(". The other one was given up."),
        (_, n) => text.push_str(&format!(". The other {} given up.", was_were(n))),
    }
    let letters = letters_text(tally);
    if !letters.is_empty() {
        text = format!("{text} {letters}");
    }
    let has_tries = shown.iter().any(|(_, h)| h.tries_count > 0);
    let items: Vec<_> = shown.iter().map(|(name, h)| recovery_row(name, h, has_tries)).collect();
    Recoveries {
        has_tries,
        note: format!("{} of {}", words::count(healed), words::count(ended)),
        text,
        table_lines: if items.is_empty() { String::new() } else { draw_recoveries(&items, has_tries) },
        items,
    }
}

fn letters_text(tally: &Tally<'_>) -> String {
    let flow = &tally.input.letter_flow;
    match (flow.resolved_count, flow.redriven_count) {
        (0, _) => String::new(),
        (n, 0) => format!("{} resolved.", was(n)),
        (n, r) => format!("{} resolved, {} of them by redrive.", was(n), words::count(r)),
    }
}

fn was(letters: u64) -> String {
    format!("{} {}", words::noun(letters, "dead letter"), if letters == 1 { "was" } else { "were" })
}

fn was_were(n: u64) -> String {
    format!("{} {}", words::count(n), if n == 1 { "was" } else { "were" })
}

/// Most first. A recovery that names no strategy was a retry.
fn by_strategy(cells: &[Cell]) -> Vec<(&str, Healing)> {
    let mut strategies: BTreeMap<&str, Healing> = BTreeMap::new();
    for cell in cells.iter().filter(|c| c.event_type == EventType::Recovery && !c.is_silenced()) {
        let healing = strategies.entry(cell.strategy.as_deref().unwrap_or("retry")).or_default();
        healing.count += cell.count;
        healing.took_count += cell.took_count;
        healing.took_ms += cell.took_ms_sum;
        healing.tries_count += cell.attempts_count;
        healing.tries += cell.attempts_sum;
    }
    let mut strategies: Vec<_> = strategies.into_iter().collect();
    strategies.sort_by_key(|(_, h)| Reverse(h.count));
    strategies
}

/// "a retry brought 36 through in 4 min 27 s on average", then "a reprompt 8 in 9 s".
fn clause(name: &str, healing: &Healing, is_first: bool) -> String {
    let name = words::one_line(name);
    let article = if name.starts_with(['a', 'e', 'i', 'o', 'u']) { "an" } else { "a" };
    let count = words::count(healing.count);
    let time =
        mean(healing).map(|t| format!(" in {}{}", words::duration(t), if is_first { " on average" } else { "" }));
    let verb = if is_first { format!("brought {count} through") } else { count };
    format!("{article} {name} {verb}{}", time.unwrap_or_default())
}

fn mean(healing: &Healing) -> Option<Duration> {
    healing.took_ms.checked_div(healing.took_count).map(Duration::from_millis)
}

fn recovery_row(name: &str, healing: &Healing, has_tries: bool) -> RecoveryRow {
    let tenths = (healing.tries * 10).checked_div(healing.tries_count);
    RecoveryRow {
        strategy: sentence_case(&words::one_line(name)),
        count: words::count(healing.count),
        tries: match tenths {
            Some(t) => format!("{}.{}", t / 10, t % 10),
            None if has_tries => "?".to_owned(),
            None => String::new(),
        },
        time: mean(healing).map_or("?".to_owned(), words::duration),
    }
}

/// Workflows that were heard, or that should have been.
fn expected<'t>(tally: &'t Tally<'_>) -> impl Iterator<Item = (&'t WorkflowName, &'t WorkflowTally)> {
    tally.workflows.iter().map(|(w, t)| (*w, t)).filter(|(_, t)| t.arrived || t.is_expected)
}

/// Who was heard and who was not; "not heard" is never told as 0 failures.
pub(super) fn list_heard(tally: &Tally<'_>) -> Heard {
    let expected: Vec<_> = expected(tally).collect();
    let missing: Vec<String> = expected.iter().filter_map(|(w, t)| missing(w, t.hearing)).collect();
    let heard = (expected.len() - missing.len()) as u64;
    let missing: Vec<&str> = missing.iter().map(String::as_str).collect();
    let mut text = match (heard, expected.is_empty()) {
        (_, true) => return Heard::default(),
        (0, false) => "nobody.".to_owned(),
        (n, false) => match tally.totals.runs {
            Some(runs) => format!("{}, {}.", words::noun(n, "workflow"), words::noun(runs, "run")),
            None => format!("{}.", words::noun(n, "workflow")),
        },
    };
    text.push_str(&flawless(tally));
    Heard {
        note: format!("{} of {}", words::count(heard), words::count(expected.len() as u64)),
        missing: if missing.is_empty() { String::new() } else { format!("{}.", name_some(&missing, NAMES_MAX)) },
        text,
    }
}

fn missing(workflow: &WorkflowName, hearing: Hearing) -> Option<String> {
    match hearing {
        Hearing::Heard => None,
        Hearing::Missing(age) => Some(format!("{workflow} for {}", words::duration(age))),
        Hearing::Never => Some(format!("{workflow}, never")),
    }
}

/// Workflows that ran without a failure: " 0 failures in 96 runs of payout-reconcile and in 1 run of gst-filing."
fn flawless(tally: &Tally<'_>) -> String {
    let flawless = tally.workflows.iter().filter(|(_, t)| t.sums.failures() == 0);
    let runs = flawless.filter_map(|(w, t)| Some((w, t.sums.runs()?)));
    let parts: Vec<String> = runs.map(|(w, n)| format!("in {} of {w}", words::noun(n, "run"))).collect();
    let parts: Vec<&str> = parts.iter().map(String::as_str).collect();
    match parts.is_empty() {
        true => String::new(),
        false => format!(" 0 failures {}.", name_some(&parts, NAMES_MAX)),
    }
}
