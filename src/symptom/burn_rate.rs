//! `burn_rate`: the error budget is spent too fast, in a long and in a short window. Fractions are exact and the
//! comparison is strict.
//!
//! What failures are measured against is the largest of: the runs seen, the failures, and the expected runs (declared,
//! else learned) for the seconds that are covered. So a quiet night is no catastrophe, and a busy hour is what it is.
//! While nothing is known the state is kept: it neither fires nor clears.

use super::buckets::{HOUR, KEPT_MAX, Sum, TICK, floor};
use super::counts::Window;
use super::exact::{Ratio, is_over};
use super::plan::{BurnPlan, Tier};
use super::reading::{Context, Read};
use super::sentence::{self, Against, Burn, Sentence, span};
use super::span::Holes;
use super::state::{Finding, Reading};
use std::cmp::Ordering;
use std::time::Duration;

/// History from which on the usual number of runs is learned, in s.
pub(super) const LEARNED_FROM: i64 = 86_400;

/// Runs in the long window that a page tier asks for before that.
const WARM_RUNS: u64 = 10;

/// After a gap, so much of the short window (or a fifth of it) has to be covered before anything is said, in s.
const COVERED_MIN: i64 = 60;

/// Before a window tells that something is over, so many failures are expected in it, as if all went on, for each part of
/// the runs that is good: then so few as a quarter come by chance in one of some hundred windows.
const TELLING_FAILURES: u64 = 8;

/// And so many runs: one good run ends nothing.
const TELLING_RUNS: u64 = 3;

/// All that a look at one workflow needs.
struct Look<'a> {
    context: &'a Context<'a>,
    plan: &'a BurnPlan,
    /// By place in `plan.windows`.
    windows: Vec<Window>,
    /// Expected runs a second.
    floor: Ratio,
    holes: Holes,
    /// Reports are missed, and failures are known from them only.
    is_blind: bool,
    /// Reports are missed, but failures come as events.
    is_stale: bool,
    is_warming: bool,
}

/// What a tier says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Verdict {
    Fires,
    Quiet,
    Keeps,
}

/// Reads the highest tier that fires.
pub(super) fn read(context: &Context<'_>, plan: &BurnPlan) -> Read {
    if plan.tiers.is_empty() {
        return (Reading::QUIET, None);
    }
    if !has_denominator(context, plan) {
        return (unknown(context), None);
    }
    if !context.is_known() && has_no_failure(context, plan) {
        return (Reading::QUIET, None);
    }
    let look = Look::new(context, plan);
    let verdicts: Vec<Verdict> = plan.tiers.iter().map(|tier| look.verdict(tier)).collect();
    (look.reading(&verdicts), look.next(&verdicts))
}

fn unknown(context: &Context<'_>) -> Reading {
    let why = match context.memory.reports.last_at {
        Some(last) => format!("no runs reported for {}", span((context.at - last).max(0))),
        None => "no runs are reported".to_owned(),
    };
    Reading::Unknown(why)
}

/// The cheap way out: most workflows have nothing that could burn.
fn has_no_failure(context: &Context<'_>, plan: &BurnPlan) -> bool {
    let counts = &context.memory.counts;
    let longest = plan.windows.last().copied().unwrap_or_default();
    counts.bad.sum(context.at, longest).n == 0 && counts.failed.sum(context.at, longest).n == 0
}

fn windows(context: &Context<'_>, plan: &BurnPlan) -> (Vec<Window>, bool) {
    let counts = &context.memory.counts;
    let sums = |series: &super::buckets::Series| {
        let mut sums = vec![Sum::default(); plan.windows.len()];
        series.sums(context.at, &plan.windows, &mut sums);
        sums
    };
    let (good, bad, failed) = (sums(&counts.good), sums(&counts.bad), sums(&counts.failed));
    let by_reports = failed.last().map_or(0, |sum| sum.n) >= bad.last().map_or(0, |sum| sum.n);
    let windows = good.iter().zip(&bad).zip(&failed).map(|((good, bad), failed)| Window::of(*good, *bad, *failed));
    (windows.collect(), by_reports)
}

impl<'a> Look<'a> {
    fn new(context: &'a Context<'a>, plan: &'a BurnPlan) -> Self {
        let (windows, by_reports) = windows(context, plan);
        let reports = &context.memory.reports;
        let is_missed = reports.missed_from().is_some_and(|from| context.at > from);
        // The second of the last report is known.
        let gaps = reports.gaps_until(context.at).map(|(last, first)| (last + 1, first));
        let holes = if by_reports { context.lost.with(gaps) } else { context.lost.clone() };
        let declared = plan.expected_per_day.map(|runs| Ratio { num: runs.into(), den: 86_400 });
        Self {
            context,
            plan,
            windows,
            floor: declared.unwrap_or(context.learned),
            holes,
            is_blind: is_missed && by_reports,
            is_stale: is_missed && !by_reports,
            is_warming: declared.is_none() && context.memory.history(context.at) < LEARNED_FROM,
        }
    }

    fn window(&self, length: i64) -> Window {
        let place = self.plan.windows.binary_search(&length).ok();
        place.and_then(|place| self.windows.get(place)).copied().unwrap_or_default()
    }

    fn expected(&self, length: i64) -> Ratio {
        let covered = self.holes.covered(self.context.at, length).max(0).unsigned_abs();
        Ratio { num: self.floor.num.saturating_mul(covered.into()), den: self.floor.den }
    }

    /// What a window's failures are measured against.
    fn denominator(&self, length: i64) -> Ratio {
        Ratio::from(self.window(length).total).or_more(self.expected(length))
    }

    /// Whether a window is over a threshold; none when there is nothing to measure against.
    fn is_over(&self, length: i64, threshold: Ratio) -> Option<bool> {
        let whole = self.denominator(length);
        (whole.num > 0).then(|| is_over(self.window(length).failed, threshold, whole))
    }

    fn verdict(&self, tier: &Tier) -> Verdict {
        let at = self.context.at;
        let needed = (tier.short / 5).min(COVERED_MIN);
        if self.context.lost.ends_in_one(at) || self.holes.covered(at, tier.short) < needed {
            return Verdict::Keeps;
        }
        let (Some(long), Some(short)) =
            (self.is_over(tier.long, tier.threshold), self.is_over(tier.short, tier.threshold))
        else {
            return Verdict::Keeps;
        };
        let window = self.window(tier.long);
        let is_warm = !self.is_warming || !tier.is_page || window.total >= WARM_RUNS;
        let fires = long && short && window.failed >= tier.min_failures && is_warm;
        // Reports are missed: the expected number stands in for them, so that late ones can still fire; but what fires is held.
        if self.holes.ends_in_one(at) && (self.fired(tier) || !fires) {
            return Verdict::Keeps;
        }
        match (fires, self.is_blind || self.is_stale) {
            // Lost good runs would make it fire, unless the expected number stands in for them.
            (true, true) if self.floor.num == 0 => Verdict::Keeps,
            (true, _) => Verdict::Fires,
            (false, true) => Verdict::Keeps,
            (false, false) => Verdict::Quiet,
        }
    }

    /// Whether a tier fired at the last look.
    fn fired(&self, tier: &Tier) -> bool {
        let before = self.context.before.filter(|state| state.is_firing());
        before.is_some_and(|state| state.tiers.contains(&tier.name))
    }

    fn reading(&self, verdicts: &[Verdict]) -> Reading {
        let pairs = || self.plan.tiers.iter().zip(verdicts);
        let firing: Vec<&Tier> = pairs()
            .filter(|(tier, verdict)| **verdict == Verdict::Fires || (**verdict == Verdict::Keeps && self.fired(tier)))
            .map(|(tier, _)| tier)
            .collect();
        let Some(highest) = firing.first() else {
            let is_unsure = self.context.is_known() && verdicts.contains(&Verdict::Keeps);
            return if is_unsure { unknown(self.context) } else { Reading::Quiet { is_hot: self.is_hot() } };
        };
        let is_held = |tier: &Tier| pairs().any(|(other, verdict)| other == tier && *verdict == Verdict::Keeps);
        let same = self.context.before.is_some_and(|state| state.tiers.iter().eq(firing.iter().map(|tier| &tier.name)));
        if same && firing.iter().all(|tier| is_held(tier)) {
            return self.held();
        }
        let held = is_held(highest).then(|| self.why_held());
        Reading::Firing(self.finding(highest, firing.iter().map(|tier| tier.name.clone()).collect(), held))
    }

    fn held(&self) -> Reading {
        Reading::Unknown(self.why_held())
    }

    fn why_held(&self) -> String {
        let at = self.context.at;
        let last = self.context.memory.reports.last_at.or(self.context.memory.heard_at);
        match last.filter(|_| self.is_blind || self.is_stale) {
            Some(last) => format!("no runs reported for {}", span((at - last).max(0))),
            None => "events of this time were lost".to_owned(),
        }
    }

    fn finding(&self, tier: &Tier, tiers: Vec<String>, held: Option<String>) -> Finding {
        let rate = self.rate(tier.long);
        Finding {
            severity: tier.severity,
            words: self.context.wants_words(&tiers).then(|| self.sentence(tier, rate, &tiers)),
            tiers,
            value: rate,
            workflows: vec![self.context.plan.workflow.clone()],
            // What is left for a ticket keeps nobody's page open.
            is_hot: tier.is_page || held.is_some() || self.is_hot(),
            held,
        }
    }

    fn sentence(&self, tier: &Tier, rate: f64, tiers: &[String]) -> Sentence {
        let (window, period, long) = (self.window(tier.long), self.plan.period, tier.long);
        sentence::burn_rate(&Burn {
            workflow: &self.context.plan.workflow,
            noun: self.context.run_noun(),
            slo: &self.plan.slo,
            failed: window.failed,
            total: window.total,
            long,
            period,
            spent: rate * share(long, period),
            rate,
            left: self.left(),
            against: self.against(long),
            others: tiers.get(1..).unwrap_or_default(),
        })
    }

    /// Times the rate that the objective allows; for words only.
    fn rate(&self, length: i64) -> f64 {
        let (failed, whole) = (Ratio::from(self.window(length).failed), self.denominator(length));
        if whole.num == 0 { 0.0 } else { failed.to_f64() / whole.to_f64() / self.plan.budget.to_f64() }
    }

    /// What the budget of the period is, and what is left of it; for words only.
    fn left(&self) -> Left {
        let period = self.plan.period;
        let window = self.context.memory.counts.window(self.context.at, period);
        let whole = Ratio::from(window.total).or_more(self.expected(period));
        // With less history than a period, the rest of it is taken to be as busy.
        let known = self.context.memory.history(self.context.at).min(KEPT_MAX).clamp(1, period);
        let whole = whole.to_f64() * if self.floor.num == 0 { share(period, known) } else { 1.0 };
        let allowed = whole.max(1.0) * self.plan.budget.to_f64();
        Left { allowed, share: 1.0 - Ratio::from(window.failed).to_f64() / allowed, known }
    }

    fn against(&self, long: i64) -> Against {
        // A few runs less than expected are not worth a word.
        let seen = Ratio::from(self.window(long).total.saturating_mul(20) / 19);
        let is_seen = seen.compare(self.expected(long)) != Ordering::Less;
        let learned = self.floor.num.saturating_mul(86_400) / self.floor.den;
        match self.plan.expected_per_day {
            _ if is_seen => Against::Observed,
            Some(runs) => Against::Declared(runs),
            None => Against::Learned(u64::try_from(learned).unwrap_or(u64::MAX)),
        }
    }

    /// Whether it still burns: faster than the objective allows, and at least a quarter as fast as it did. An incident is
    /// not over then, whatever a tier near its threshold does. Asked of the shortest window that can tell: after a total
    /// outage some minutes do, but a slow burn may leave no failure for half an hour and go on.
    fn is_hot(&self) -> bool {
        self.context.is_known() && self.still_burns().unwrap_or(false)
    }

    fn still_burns(&self) -> Option<bool> {
        let burning = self.burning_share()?;
        let would_fail = |short: i64| burning.times(Ratio::from(self.window(short).total)).unwrap_or(Ratio::ZERO);
        let needed = burning.complement().and_then(|good| good.times(Ratio::from(TELLING_FAILURES)))?;
        let mut shorts: Vec<i64> = self.plan.tiers.iter().map(|tier| tier.short).collect();
        shorts.sort_unstable();
        let can_tell = |short: &&i64| {
            self.window(**short).total >= TELLING_RUNS && would_fail(**short).compare(needed) != Ordering::Less
        };
        let short = *shorts.iter().find(can_tell).or(shorts.last())?;
        let failed = Ratio::from(self.window(short).failed.saturating_mul(4));
        Some(failed.compare(would_fail(short)) != Ordering::Less && self.is_over(short, self.plan.budget)?)
    }

    /// The share of runs that failed, in the long window of a tier that pages: the largest.
    fn burning_share(&self) -> Option<Ratio> {
        let pages = self.plan.tiers.iter().filter(|tier| tier.is_page);
        let shares = pages.filter_map(|tier| {
            let window = self.window(tier.long);
            Ratio::new(window.failed.into(), window.total.into())
        });
        shares.reduce(Ratio::or_more)
    }

    /// When something could change without news: a bucket leaves a window, reports are missed, the usual number is learned
    /// anew. None when no tier could fire whatever leaves.
    fn next(&self, verdicts: &[Verdict]) -> Option<i64> {
        let at = self.context.at;
        let is_known = self.context.is_known();
        let could_fire = self.plan.tiers.iter().any(|tier| {
            self.window(tier.short).failed > 0 && self.window(tier.long).failed >= tier.min_failures.max(1)
        });
        if !is_known && !could_fire {
            return None;
        }
        let longest = self.plan.windows.last().copied().unwrap_or_default();
        let is_uneven = self.holes.touch(at, longest) || verdicts.contains(&Verdict::Keeps);
        if is_uneven {
            return Some(at + TICK);
        }
        let learns = self.plan.expected_per_day.is_none().then(|| floor(at, HOUR) + HOUR);
        let leaves = self.windows.iter().filter_map(|window| window.changes_at).min();
        let missed = self.context.memory.reports.missed_from().map(|from| from + 1).filter(|from| *from > at);
        let leaves = leaves.filter(|_| is_known || !self.is_out_of_reach());
        [learns, leaves, missed.filter(|_| is_known)].into_iter().flatten().min()
    }

    /// Whether no tier could fire even if all good runs were forgotten: what is expected alone keeps it quiet.
    fn is_out_of_reach(&self) -> bool {
        self.plan.tiers.iter().all(|tier| {
            [tier.long, tier.short].iter().any(|length| {
                let expected = self.expected(*length);
                expected.num > 0 && !is_over(self.window(*length).failed, tier.threshold, expected)
            })
        })
    }
}

const WEEK: i64 = 7 * 86_400;

/// What is left of the budget of a period.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Left {
    /// Failures that the budget allows.
    pub allowed: f64,
    /// Share of the budget, below 0 when more than all is spent.
    pub share: f64,
    /// How much of the period is known, in s.
    pub known: i64,
}

/// Numbers of a budget, for people.
pub(super) struct Numbers {
    pub burns: Vec<(Duration, Option<f64>)>,
    pub failed: u64,
    pub total: u64,
    pub left: Option<Left>,
    /// Failed runs of the last week.
    pub failed_lately: u64,
}

/// How fast a budget burns in each window, and what is left of it.
pub(super) fn numbers(context: &Context<'_>, plan: &BurnPlan) -> Numbers {
    let look = Look::new(context, plan);
    let is_known = has_denominator(context, plan);
    let burn = |length: &i64| {
        let rate = (is_known && look.denominator(*length).num > 0).then(|| look.rate(*length));
        (Duration::from_secs(length.unsigned_abs()), rate)
    };
    let period = context.memory.counts.window(context.at, plan.period);
    Numbers {
        burns: plan.windows.iter().map(burn).collect(),
        failed: period.failed,
        total: period.total,
        left: (is_known && period.total > 0).then(|| look.left()),
        failed_lately: context.memory.counts.window(context.at, WEEK).failed,
    }
}

fn has_denominator(context: &Context<'_>, plan: &BurnPlan) -> bool {
    plan.expected_per_day.is_some() || context.memory.reports.first_at.is_some()
}

#[expect(clippy::cast_precision_loss, reason = "seconds of at most some years, for words")]
fn share(part: i64, whole: i64) -> f64 {
    part as f64 / whole.max(1) as f64
}

/// Runs a second over the period, or since the first run: zero before a day of history.
pub(super) fn learned(context_at: i64, memory: &super::memory::Memory, period: i64) -> Ratio {
    let Some(first) = memory.first_run_at.filter(|_| memory.history(context_at) >= LEARNED_FROM) else {
        return Ratio::ZERO;
    };
    // Whole buckets only, so that runs and seconds belong together.
    let oldest = floor(context_at - period.min(30 * 86_400) + HOUR - 1, HOUR);
    let from = oldest.max(floor(first, TICK));
    let seconds = context_at - from;
    let runs = memory.counts.between(from, context_at).total;
    if seconds <= 0 { Ratio::ZERO } else { Ratio { num: runs.into(), den: seconds.unsigned_abs().into() } }
}
