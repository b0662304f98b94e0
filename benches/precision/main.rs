//! How good the symptoms are: what Matins pages over simulated months of known incidents, beside the Workbook's approach 6
//! computed from counters on the same months. Fixed seeds, virtual time, no database: the same figures on every machine.
//! A table as Markdown; exit code 1 when a figure misses its mark. `cargo bench --bench precision`

mod chance;
mod classic;
mod decided;
mod judge;
mod month;
mod timeline;

use judge::Score;
use month::{Kind, Month};
use std::collections::BTreeMap;
use std::process::ExitCode;

/// Both sides over the months of a kind.
#[derive(Clone, Debug, Default)]
struct Pair {
    matins: Score,
    classic: Score,
    bounds: Vec<i64>,
}

fn main() -> ExitCode {
    let is_loud = std::env::args().any(|arg| arg == "--notes");
    let mut pairs: BTreeMap<Kind, Pair> = BTreeMap::new();
    for month in month::months() {
        let pair = pairs.entry(month.kind).or_default();
        judge_month(&month, pair);
        eprint!(".");
    }
    eprintln!();
    let mut all = Pair::default();
    for pair in pairs.values() {
        all.matins.join(&pair.matins);
        all.classic.join(&pair.classic);
        all.bounds.extend(&pair.bounds);
    }
    print!("{HEAD}");
    for (kind, pair) in &pairs {
        print!("{}", row(kind.words(), pair));
    }
    print!("{}", row("**all**", &all));
    if is_loud {
        all.classic.notes.iter().for_each(|note| println!("classic: {note}"));
    }
    if is_loud {
        all.matins.notes.iter().for_each(|note| println!("matins: {note}"));
    }
    verdict(&all)
}

fn judge_month(month: &Month, pair: &mut Pair) {
    let line = timeline::timeline(month);
    let truths = judge::truths(month, &line);
    pair.bounds.extend(truths.iter().map(|truth| truth.bound - truth.from));
    pair.classic.add(month, &truths, &classic::pages(month, &line));
    pair.matins.add(month, &truths, &decided::pages(month, &line));
}

const HEAD: &str = "\
| months | n | incidents | false pages | repeated | missed | pages an incident | delay: median, worst | bound: median, worst | after it | over after |
|---|---|---|---|---|---|---|---|---|---|---|
";

fn row(name: &str, pair: &Pair) -> String {
    let (ours, theirs) = (&pair.matins, &pair.classic);
    let both = |of: fn(&Score) -> u64| format!("{} / {}", of(ours), of(theirs));
    let pages =
        |score: &Score| (score.delays.len() as u64 + score.repeated_pages) as f64 / score.incidents.max(1) as f64;
    let pages = match ours.incidents {
        0 => "–".to_owned(),
        _ => format!("{:.2} / {:.2}", pages(ours), pages(theirs)),
    };
    format!(
        "| {name} | {} | {} | {} | {} | {} | {pages} | {} / {} | {} | {} | {} |\n",
        ours.months,
        ours.incidents,
        both(|score| score.false_pages),
        both(|score| score.repeated_pages),
        both(|score| score.missed),
        spread(&ours.delays),
        spread(&theirs.delays),
        spread(&pair.bounds),
        ours.late.len(),
        spread(&ours.clears),
    )
}

/// Median and worst, in words.
fn spread(seconds: &[i64]) -> String {
    let mut sorted = seconds.to_vec();
    sorted.sort_unstable();
    match (sorted.get(sorted.len() / 2), sorted.last()) {
        (Some(median), Some(worst)) => format!("{}, {}", words(*median), words(*worst)),
        _ => "–".to_owned(),
    }
}

fn words(seconds: i64) -> String {
    match seconds {
        ..=119 => format!("{seconds} s"),
        120..=7_199 => format!("{} min", seconds / 60),
        _ => format!("{:.1} h", seconds as f64 / 3_600.0),
    }
}

fn verdict(all: &Pair) -> ExitCode {
    let (ours, theirs) = (&all.matins, &all.classic);
    let marks = [
        ("no incident is missed", ours.missed == 0),
        ("at most one page an incident", ours.repeated_pages == 0),
        ("fewer false pages than the classic rules", ours.false_pages < theirs.false_pages),
        ("no page after the bound", ours.late.is_empty()),
    ];
    println!();
    for (mark, holds) in marks {
        println!("{} {mark}", if holds { "ok  " } else { "FAIL" });
    }
    if marks.iter().all(|(_, holds)| *holds) { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
