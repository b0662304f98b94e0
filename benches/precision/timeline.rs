//! What a month comes to: every run, and what is heard of it and when. Who pages for it lives in `matins` and `classic`.

use crate::chance::Chance;
use crate::month::{DAY, Form, MINUTE, MONTH, Month, Phase, Shape};
use chrono::{DateTime, Utc};
use matins::name::WorkflowName;
use matins::symptom::{Signal, What};

/// A Tuesday, 00:00 UTC.
const T0: i64 = 1_798_588_800;
/// Runs are counted in steps of so many seconds.
pub const STEP: i64 = 10;

/// The instant of a second of the month.
pub fn instant(second: i64) -> DateTime<Utc> {
    DateTime::from_timestamp(T0 + second, 0).unwrap_or_default()
}

/// The workflow of every month.
pub fn workflow() -> WorkflowName {
    WorkflowName::new("orders")
}

/// A message that comes in.
#[derive(Clone, Debug)]
pub struct Heard {
    /// When, in s of the month.
    pub arrives: i64,
    pub signal: Signal,
}

/// Runs of one step.
#[derive(Clone, Copy, Debug, Default)]
pub struct Count {
    pub total: u32,
    pub failed: u32,
}

/// A month, event by event.
#[derive(Clone, Debug, Default)]
pub struct Timeline {
    /// In the order in which it comes in.
    pub heard: Vec<Heard>,
    /// What counters say, step by step: each run once, when its end came in.
    pub counters: Vec<Count>,
    /// When injected failures happened, by place of the phase.
    pub injected: Vec<Vec<i64>>,
}

/// Plays a month out.
pub fn timeline(month: &Month) -> Timeline {
    let steps = usize::try_from(MONTH / STEP).unwrap_or(0);
    let mut teller = Teller::new(month, Chance::new(month.seed ^ 0x7e11));
    teller.line.counters = vec![Count::default(); steps + 1];
    teller.line.injected = vec![Vec::new(); month.phases.len()];
    let mut chance = Chance::new(month.seed);
    for start in (0..MONTH).step_by(STEP as usize) {
        for second in ends(month, start, &mut chance) {
            let phase = month.phases.iter().position(|phase| (phase.from..phase.to).contains(&second));
            let share = phase.and_then(|place| month.phases.get(place)).map_or(month.background, |phase| phase.share);
            let is_failed = chance.happens(share);
            if let Some(own) = phase.filter(|_| is_failed).and_then(|place| teller.line.injected.get_mut(place)) {
                own.push(second);
            }
            teller.run(second, is_failed);
        }
        if (start + STEP) % MINUTE == 0 {
            teller.minute(start + STEP);
        }
    }
    let mut line = teller.line;
    line.heard.sort_by_key(|heard| heard.arrives);
    line
}

/// The seconds of a step at which runs are over, in order.
fn ends(month: &Month, start: i64, chance: &mut Chance) -> Vec<i64> {
    if month.shape == Shape::Daily {
        let is_due = start % DAY == 2 * 3_600;
        let is_missed = |phase: &Phase| phase.share > 1.0 && (phase.from..phase.to).contains(&start);
        return if is_due && !month.phases.iter().any(is_missed) { vec![start] } else { Vec::new() };
    }
    let mean = month.per_day as f64 / (DAY / STEP) as f64 * month.shape.at(start);
    let mut seconds: Vec<i64> = (0..chance.arrivals(mean)).map(|_| chance.between(start, start + STEP)).collect();
    seconds.sort_unstable();
    seconds
}

/// Tells of runs in the form of the month.
struct Teller<'a> {
    month: &'a Month,
    chance: Chance,
    line: Timeline,
    /// Good and failed runs of the minute that are not told yet.
    untold: (u64, u64),
    /// The producer's start, and its totals since then.
    epoch: u64,
    totals: (u64, u64),
    run: u64,
}

impl<'a> Teller<'a> {
    fn new(month: &'a Month, chance: Chance) -> Self {
        Self { month, chance, line: Timeline::default(), untold: (0, 0), epoch: 1, totals: (0, 0), run: 0 }
    }

    fn run(&mut self, second: i64, is_failed: bool) {
        self.run += 1;
        let late = if is_failed && self.month.late_max > 0 { self.chance.between(0, self.month.late_max) } else { 0 };
        self.count(second + late, is_failed);
        let (ok, failed) = (u64::from(!is_failed), u64::from(is_failed));
        match self.month.form {
            Form::EachRun => self.tell(second, second + 1, What::Runs { ok, failed, downstream: None }),
            Form::Events if is_failed => self.tell(second, second + 1 + late, failure(self.run)),
            Form::Counts | Form::Events | Form::Totals => {
                self.untold = (self.untold.0 + ok, self.untold.1 + failed);
            }
        }
    }

    /// Counters, true: nothing twice, and what is lost is lost.
    fn count(&mut self, second: i64, is_failed: bool) {
        if self.is_lost(second) {
            return;
        }
        let place = usize::try_from(second / STEP).unwrap_or(usize::MAX);
        if let Some(count) = self.line.counters.get_mut(place) {
            count.total += 1;
            count.failed += u32::from(is_failed);
        }
    }

    fn minute(&mut self, end: i64) {
        let (ok, failed) = std::mem::take(&mut self.untold);
        let what = match self.month.form {
            Form::EachRun => return,
            Form::Counts | Form::Events => What::Runs { ok, failed, downstream: None },
            Form::Totals => {
                // It starts anew every other day or so.
                if self.chance.happens(1.0 / 3_000.0) {
                    self.epoch += 1;
                    self.totals = (0, 0);
                }
                self.totals = (self.totals.0 + ok, self.totals.1 + failed);
                What::Totals {
                    producer: 1,
                    epoch: self.epoch,
                    ok_total: self.totals.0,
                    failed_total: self.totals.1,
                    started_at: None,
                }
            }
        };
        self.tell(end - 1, end + 1, what);
    }

    fn tell(&mut self, second: i64, arrives: i64, what: What) {
        // Counts without an identity of their own are kept apart by their id, before they come here.
        let can_repeat = !matches!(what, What::Runs { .. });
        let signal = Signal { workflow: workflow(), at: instant(second), arrived_at: None, what };
        if can_repeat && self.chance.happens(self.month.twice) {
            let again = arrives + self.chance.between(1, MINUTE);
            self.hear(again, signal.clone());
        }
        self.hear(arrives, signal);
    }

    fn hear(&mut self, arrives: i64, signal: Signal) {
        if !self.is_lost(arrives) {
            self.line.heard.push(Heard { arrives, signal });
        }
    }

    fn is_lost(&self, second: i64) -> bool {
        self.month.gaps.iter().any(|(from, to)| (*from..*to).contains(&second))
    }
}

fn failure(run: u64) -> What {
    What::Failure {
        is_final: true,
        letter: None,
        run: Some(run),
        is_redriven: false,
        downstream: None,
        error_type: None,
        times: 1,
    }
}
