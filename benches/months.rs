//! Pages over simulated months: this room's burn rates against approach 6 of the SRE Workbook on the same reports. Traffic
//! follows the day, failures are random, and there are outages, slow burns and blips of up to 30 s. Prints one line a month.
//! `cargo bench --bench months`

use chrono::{DateTime, Utc};
use matins::matcher::{Glob, Matcher};
use matins::name::WorkflowName;
use matins::symptom::{Change, Mode, Rules, Severity, Signal, SymptomKind, SymptomRule, Watch, What};
use matins::workflow::{Domain, Workflow, Workflows};
use std::collections::BTreeMap;
use std::time::Duration;

const START: i64 = 1_798_588_800;
const DAY: i64 = 86_400;
const DAYS: i64 = 30;

/// Quiet for so long, an incident is over.
const RESOLVE_AFTER: i64 = 900;

/// Peak runs a second, and objectives, of the simulated workflows.
const PEAKS: [f64; 6] = [0.02, 0.1, 1.0, 20.0, 300.0, 5.0];
const OBJECTIVES: [&str; 3] = ["0.99", "0.995", "0.999"];

/// Random numbers that are the same in every run.
struct Dice(u64);

impl Dice {
    fn next(&mut self) -> f64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) as f64 / (1u64 << 53) as f64
    }

    /// How many of rare things happen, when `mean` of them do on average.
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a count that is not below 0")]
    fn poisson(&mut self, mean: f64) -> u64 {
        if mean > 50.0 {
            let (a, b) = (self.next().max(1e-12), self.next());
            let normal = (-2.0 * a.ln()).sqrt() * (std::f64::consts::TAU * b).cos();
            return (mean + normal * mean.sqrt()).round().max(0.0) as u64;
        }
        let (limit, mut product, mut count) = ((-mean).exp(), self.next(), 0);
        while product > limit {
            product *= self.next();
            count += 1;
        }
        count
    }

    #[expect(clippy::cast_possible_truncation, reason = "seconds")]
    fn seconds(&mut self, from: i64, more: f64) -> i64 {
        from + (self.next() * more) as i64
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Outage,
    Slow,
    Blip,
}

struct Incident {
    from: i64,
    to: i64,
    error: f64,
    kind: Kind,
}

fn incidents(dice: &mut Dice, budget: f64) -> Vec<Incident> {
    let mut all = Vec::new();
    for day in 2..DAYS {
        let from = dice.seconds(day * DAY, 80_000.0);
        let (kind, to, error) = match dice.next() {
            pick if pick < 0.15 => (Kind::Outage, dice.seconds(from + 900, 5_000.0), 0.3 + 0.7 * dice.next()),
            pick if pick < 0.30 => {
                (Kind::Slow, dice.seconds(from + 20_000, 50_000.0), budget * (3.0 + 6.0 * dice.next()))
            }
            pick if pick < 0.55 => (Kind::Blip, dice.seconds(from + 10, 20.0), 1.0),
            _ => continue,
        };
        all.push(Incident { from, to, error, kind });
    }
    all
}

/// Reports every `step` seconds: (second, total, failed).
fn reports(dice: &mut Dice, peak: f64, budget: f64, incidents: &[Incident]) -> Vec<(i64, u64, u64)> {
    let step = if peak < 0.5 { 60 } else { 10 };
    let report = |second: i64| {
        let turn = (second % DAY) as f64 / DAY as f64 * std::f64::consts::TAU;
        let rate = peak * (0.05 + 0.95 * (0.5 - 0.5 * turn.cos()));
        let part = |i: &Incident| (i.to.min(second + step) - i.from.max(second)).max(0) as f64 / step as f64 * i.error;
        let error = incidents.iter().map(part).fold(0.25 * budget, f64::max);
        let total = dice.poisson(rate * step as f64);
        (second, total, dice.poisson(total as f64 * error).min(total))
    };
    (0..DAYS * DAY).step_by(usize::try_from(step).unwrap_or(10)).map(report).collect()
}

fn at(second: i64) -> DateTime<Utc> {
    DateTime::from_timestamp(START + second, 0).unwrap_or_default()
}

fn watch(slo: &str) -> Watch {
    let workflow = Workflow {
        name: Glob::new("w"),
        domain: Domain::Money,
        owner: None,
        runbook: None,
        slo: Some(slo.to_owned()),
        every: None,
        grace: Duration::ZERO,
        item_noun: None,
        expected_per_day: None,
        labels: BTreeMap::new(),
    };
    let kind =
        SymptomKind::BurnRate { slo: None, period: None, expected_per_day: None, tiers: None, min_failures: None };
    let matcher = Matcher::default();
    let rule = SymptomRule { name: "burn".to_owned(), matcher, kind, severity: Severity::Page, mode: Mode::Live };
    Watch::new(Rules::new(Some(&[rule]), &Workflows::new(vec![workflow])))
}

/// When this room pages: an incident opens with a page tier and ends when nothing has been hot for a while.
fn ours(slo: &str, reports: &[(i64, u64, u64)]) -> Vec<i64> {
    let (mut watch, name) = (watch(slo), WorkflowName::new("w"));
    let (mut pages, mut open, mut hot_at) = (Vec::new(), false, 0);
    let mut reports = reports.iter().peekable();
    for now in (10..=DAYS * DAY).step_by(10) {
        while let Some((second, total, failed)) = reports.next_if(|(second, ..)| *second < now) {
            let what = What::Runs { ok: total - failed, failed: *failed, downstream: None };
            watch.take(&Signal { workflow: name.clone(), at: at(*second), what });
        }
        let changes = watch.look(at(now), &[]);
        let paged = |change: &Change| matches!(change, Change::Fired(state) | Change::Moved(state) if state.severity == Severity::Page);
        if changes.iter().any(paged) && !open {
            open = true;
            pages.push(now);
        }
        if watch.states().any(|state| state.is_hot) {
            hot_at = now;
        }
        open &= now - hot_at < RESOLVE_AFTER;
    }
    pages
}

/// When approach 6 pages: failed of seen runs, over 14.4 in 1 h and 5 min or over 6 in 6 h and 30 min. Each time that it
/// fires anew, unless it had fired less than a quarter of an hour before.
fn classic(budget: f64, reports: &[(i64, u64, u64)]) -> Vec<i64> {
    let mut sums = vec![(0u64, 0u64)];
    let mut reports = reports.iter().peekable();
    let (mut pages, mut fired_at) = (Vec::new(), i64::MIN);
    for now in (10..=DAYS * DAY).step_by(10) {
        let mut sum = sums.last().copied().unwrap_or_default();
        while let Some((_, total, failed)) = reports.next_if(|(second, ..)| *second < now) {
            sum = (sum.0 + total, sum.1 + failed);
        }
        sums.push(sum);
        let over = |window: usize, factor: f64| {
            let before = sums.get(sums.len().saturating_sub(1 + window / 10)).copied().unwrap_or_default();
            let (total, failed) = (sum.0 - before.0, sum.1 - before.1);
            total > 0 && failed as f64 / total as f64 > factor * budget
        };
        if (over(3_600, 14.4) && over(300, 14.4)) || (over(21_600, 6.0) && over(1_800, 6.0)) {
            if now.saturating_sub(fired_at) > RESOLVE_AFTER {
                pages.push(now);
            }
            fired_at = now;
        }
    }
    pages
}

#[derive(Clone, Copy, Default)]
struct Score {
    pages: usize,
    fitting: usize,
    repeated: usize,
    groundless: usize,
    outages_paged: usize,
}

fn score(pages: &[i64], incidents: &[Incident]) -> Score {
    let mut score = Score { pages: pages.len(), ..Score::default() };
    let mut seen: BTreeMap<usize, usize> = BTreeMap::new();
    for page in pages {
        let fits = |i: &Incident| i.kind != Kind::Blip && i.from <= *page && *page <= i.to + 3_600;
        match incidents.iter().position(fits) {
            Some(place) => *seen.entry(place).or_default() += 1,
            None => score.groundless += 1,
        }
    }
    score.fitting = seen.len();
    score.repeated = seen.values().map(|times| times - 1).sum();
    let is_outage = |place: &&usize| incidents.get(**place).is_some_and(|i| i.kind == Kind::Outage);
    score.outages_paged = seen.keys().filter(is_outage).count();
    score
}

fn print(what: &str, score: Score, outages: usize) {
    let Score { pages, fitting, repeated, groundless, outages_paged } = score;
    println!(
        "  {what:8} {pages} pages: {fitting} first, {repeated} repeated, {groundless} false; {outages_paged} of {outages} outages"
    );
}

fn main() {
    let mut sums = [Score::default(); 2];
    let mut all_outages = 0;
    for month in 0..12 {
        let mut dice = Dice(0x9E37_79B9_7F4A_7C15 ^ ((month as u64 + 1) * 7_919));
        // The first numbers of close seeds are alike.
        let _ = (0..20).map(|_| dice.next()).last();
        let (peak, slo) = (PEAKS[month % PEAKS.len()], OBJECTIVES[month % OBJECTIVES.len()]);
        let budget = 1.0 - slo.parse::<f64>().unwrap_or(0.99);
        let incidents = incidents(&mut dice, budget);
        let reports = reports(&mut dice, peak, budget, &incidents);
        let outages = incidents.iter().filter(|i| i.kind == Kind::Outage).count();
        println!("month {month}: {peak} runs a second at most, objective {slo}, {} incidents", incidents.len());
        for (sum, (what, pages)) in
            sums.iter_mut().zip([("ours", ours(slo, &reports)), ("workbook", classic(budget, &reports))])
        {
            let one = score(&pages, &incidents);
            print(what, one, outages);
            sum.pages += one.pages;
            sum.fitting += one.fitting;
            sum.repeated += one.repeated;
            sum.groundless += one.groundless;
            sum.outages_paged += one.outages_paged;
        }
        all_outages += outages;
    }
    println!("all:");
    print("ours", sums[0], all_outages);
    print("workbook", sums[1], all_outages);
}
