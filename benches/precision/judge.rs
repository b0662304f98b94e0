//! Pages held against what was injected: false, repeated, missed, and how late against the bound.

use crate::decided::{self, Paged};
use crate::month::{DAY, Fault, Form, HOUR, Kind, MINUTE, Month};
use crate::timeline::{STEP, Timeline};
use matins::symptom::Tier;

/// A page so long after an incident still belongs to it.
const AFTERMATH: i64 = 30 * MINUTE;

/// What one side did over some months.
#[derive(Clone, Debug, Default)]
pub struct Score {
    pub months: u64,
    pub incidents: u64,
    pub false_pages: u64,
    pub repeated_pages: u64,
    pub missed: u64,
    /// From the start of an incident to its first page, in s.
    pub delays: Vec<i64>,
    /// First pages that came after the bound, with how much, in s.
    pub late: Vec<i64>,
    /// From the end of an incident to the word that it is over, in s.
    pub clears: Vec<i64>,
    /// What went wrong, for whoever looks into it.
    pub notes: Vec<String>,
}

/// An incident that has to be paged.
#[derive(Clone, Copy, Debug)]
pub struct Truth {
    pub from: i64,
    pub to: i64,
    /// The latest second at which the specification lets the page come.
    pub bound: i64,
}

/// The incidents of a month with their bounds. Those in which chance let too little fail for any rule are left out.
pub fn truths(month: &Month, line: &Timeline) -> Vec<Truth> {
    let sums = Sums::of(month, line);
    let tiers: Vec<Tier> = decided::burn_plan(month).map(|plan| plan.tiers).unwrap_or_default();
    let injected = month.phases.iter().zip(&line.injected).filter(|(phase, _)| phase.fault == Fault::Incident);
    injected
        .filter_map(|(phase, failures)| {
            let (from, to) = (phase.from, phase.to);
            let bound = if month.kind == Kind::Batch {
                // The grace of a run that does not come.
                Some(if phase.share > 1.0 { from + HOUR + 2 * STEP } else { from + 2 * STEP })
            } else {
                let pages = tiers.iter().filter(|tier| tier.is_page);
                let tier = pages.filter_map(|tier| sums.tier_bound(tier, failures, (from, to))).min();
                [tier, streak_bound(month, phase.share, failures)].into_iter().flatten().min()
            };
            Some(Truth { from, to, bound: bound? + heard_within(month) })
        })
        .collect()
}

/// How often runs are told, in s; where failures are events, that is so of the good ones.
fn told_every(month: &Month) -> i64 {
    match month.form {
        Form::Counts | Form::Totals | Form::Events => MINUTE,
        Form::EachRun => STEP,
    }
}

/// How much later a failure is heard, and a look comes.
fn heard_within(month: &Month) -> i64 {
    1 + month.late_max + STEP
}

/// Five in a row over five minutes. Of a minute whose runs are told together nobody knows the order, so that the row may
/// begin a minute later.
fn streak_bound(month: &Month, share: f64, failures: &[i64]) -> Option<i64> {
    let order = if month.form == Form::EachRun { 0 } else { MINUTE };
    let first = failures.first().filter(|_| share >= 1.0)? + order;
    let last = failures.iter().filter(|at| **at >= first).skip(4).find(|at| **at - first >= 5 * MINUTE)?;
    Some(last + told_every(month))
}

/// Runs up to each step, and how many are expected a second.
struct Sums<'a> {
    month: &'a Month,
    totals: Vec<u64>,
}

impl<'a> Sums<'a> {
    fn of(month: &'a Month, line: &Timeline) -> Self {
        let mut totals = vec![0];
        for count in &line.counters {
            totals.push(totals.last().copied().unwrap_or(0) + u64::from(count.total));
        }
        Self { month, totals }
    }

    fn until(&self, second: i64) -> u64 {
        let place = usize::try_from(second.max(0) / STEP).unwrap_or(0);
        self.totals.get(place).or(self.totals.last()).copied().unwrap_or(0)
    }

    /// Expected runs of a window: as declared, else as learned after a day.
    fn expected(&self, at: i64, window: i64) -> f64 {
        let per_second = match (self.month.is_declared, at >= DAY) {
            (true, _) => self.month.per_day as f64 / DAY as f64,
            (false, true) => self.until(at) as f64 / at as f64,
            (false, false) => 0.0,
        };
        per_second * window as f64
    }

    /// When the injected failures alone pass a tier, for one who is told so often and whose oldest bucket counts whole. At a
    /// steady rate above the expected one that is beta / e × W × B, and what a bucket adds to it.
    fn tier_bound(&self, tier: &Tier, failures: &[i64], (from, to): (i64, i64)) -> Option<i64> {
        let threshold = tier.threshold.to_f64();
        let failed = |at: i64, window: i64| {
            failures.partition_point(|f| *f < at) as u64 - failures.partition_point(|f| *f < at - window) as u64
        };
        let whole = |at: i64, window: i64| {
            let bucket = if window <= HOUR { STEP } else { MINUTE };
            let start = (at - window).div_euclid(bucket) * bucket;
            ((self.until(at) - self.until(start)) as f64).max(self.expected(at, window))
        };
        let is_over = |at: i64, window: i64| failed(at, window) as f64 > threshold * whole(at, window);
        let fires = |at: &i64| {
            is_over(*at, tier.long) && is_over(*at, tier.short) && failed(*at, tier.long) >= tier.min_failures
        };
        let every = told_every(self.month);
        let first = from.div_euclid(every) * every + every;
        (first..=to + every).step_by(usize::try_from(every).ok()?).find(fires)
    }
}

impl Score {
    /// Adds a month.
    pub fn add(&mut self, month: &Month, truths: &[Truth], pages: &[Paged]) {
        self.months += 1;
        self.incidents += truths.len() as u64;
        let mut firsts: Vec<Option<Paged>> = vec![None; truths.len()];
        for page in pages {
            let place = truths.iter().rposition(|truth| (truth.from..=truth.to + AFTERMATH).contains(&page.at));
            match place.and_then(|place| firsts.get_mut(place)) {
                Some(first @ None) => *first = Some(*page),
                Some(Some(_)) => {
                    self.repeated_pages += 1;
                    self.notes.push(format!("{} {}: repeated at {}", month.kind.words(), month.seed, when(page.at)));
                }
                None if is_slight(month, truths, page.at) => {}
                None => {
                    self.false_pages += 1;
                    self.notes.push(format!("{} {}: false at {}", month.kind.words(), month.seed, when(page.at)));
                }
            }
        }
        for (truth, first) in truths.iter().zip(firsts) {
            self.note_first(month, truth, first);
        }
    }

    fn note_first(&mut self, month: &Month, truth: &Truth, first: Option<Paged>) {
        let name = format!("{} {}: incident of {}", month.kind.words(), month.seed, when(truth.from));
        let Some(first) = first else {
            self.missed += 1;
            self.notes.push(format!("{name} missed"));
            return;
        };
        if let Some(resolved_at) = first.resolved_at.filter(|at| *at >= truth.to) {
            self.clears.push(resolved_at - truth.to);
        }
        let first = first.at;
        self.delays.push(first - truth.from);
        if first > truth.bound {
            self.late.push(first - truth.bound);
            self.notes.push(format!(
                "{name} paged {} s after the bound of {} s",
                first - truth.bound,
                truth.bound - truth.from
            ));
        }
    }

    /// Adds up two.
    pub fn join(&mut self, other: &Self) {
        self.months += other.months;
        self.incidents += other.incidents;
        self.false_pages += other.false_pages;
        self.repeated_pages += other.repeated_pages;
        self.missed += other.missed;
        self.delays.extend(&other.delays);
        self.late.extend(&other.late);
        self.clears.extend(&other.clears);
        self.notes.extend(other.notes.iter().cloned());
    }
}

/// Whether a page belongs to an incident that no rule has to page for, by chance.
fn is_slight(month: &Month, truths: &[Truth], page: i64) -> bool {
    month.phases.iter().any(|phase| {
        let is_truth = truths.iter().any(|truth| truth.from == phase.from);
        phase.fault == Fault::Incident && !is_truth && (phase.from..=phase.to + AFTERMATH).contains(&page)
    })
}

fn when(second: i64) -> String {
    let (day, rest) = (second.div_euclid(DAY), second.rem_euclid(DAY));
    format!("day {day} {:02}:{:02}:{:02}", rest / HOUR, rest % HOUR / MINUTE, rest % MINUTE)
}
