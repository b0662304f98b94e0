//! Months as they are described: how busy a workflow is, what goes wrong and when, and how its runs are told. What that
//! comes to, event by event, lives in `timeline`.

use crate::chance::Chance;

pub const MINUTE: i64 = 60;
pub const HOUR: i64 = 3_600;
pub const DAY: i64 = 86_400;
/// Length of a month, in s.
pub const MONTH: i64 = 30 * DAY;

/// What a month is about; one line of the table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    Clean,
    Blips,
    SlowBurns,
    Outages,
    LowTraffic,
    Batch,
    Gaps,
    Duplicates,
    Late,
}

impl Kind {
    pub fn words(self) -> &'static str {
        match self {
            Self::Clean => "clean",
            Self::Blips => "blips of 30 to 90 s",
            Self::SlowBurns => "slow burns",
            Self::Outages => "outages",
            Self::LowTraffic => "low traffic",
            Self::Batch => "a job a day",
            Self::Gaps => "gaps in the reports",
            Self::Duplicates => "duplicates, restarts",
            Self::Late => "late events",
        }
    }
}

/// How busy it is over the day.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shape {
    /// Always the same.
    Flat,
    /// Nights at a seventh of the mean, weekends at half.
    Office,
    /// One run a day, at 02:00.
    Daily,
}

impl Shape {
    /// Times the mean, at a second of the month.
    pub fn at(self, second: i64) -> f64 {
        match self {
            Self::Flat | Self::Daily => 1.0,
            Self::Office => {
                let noon = (second.rem_euclid(DAY) as f64 / DAY as f64 * std::f64::consts::TAU).cos();
                let is_weekend = (second.div_euclid(DAY) + 1).rem_euclid(7) >= 5;
                // The week adds up to seven means.
                (1.0 - 0.86 * noon) * if is_weekend { 0.58 } else { 1.17 }
            }
        }
    }
}

/// How runs are told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// Good and failed ones as counts, once a minute.
    Counts,
    /// Failures as events, good ones as counts, once a minute.
    Events,
    /// Totals since the producer's start, once a minute.
    Totals,
    /// Each run when it is over.
    EachRun,
}

/// What is injected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// People have to be paged.
    Incident,
    /// A ticket is enough: a page is false.
    Ticket,
    /// Nothing: a page is false.
    Blip,
}

/// A time in which more fails.
#[derive(Clone, Copy, Debug)]
pub struct Phase {
    pub fault: Fault,
    pub from: i64,
    pub to: i64,
    /// Share of runs that fail; above 1 for runs that do not even begin.
    pub share: f64,
}

/// A month of one workflow.
#[derive(Clone, Debug)]
pub struct Month {
    pub kind: Kind,
    pub seed: u64,
    pub slo: &'static str,
    /// Runs a day, in the mean.
    pub per_day: u64,
    /// Whether config says so; else it is learned.
    pub is_declared: bool,
    pub shape: Shape,
    pub form: Form,
    /// Share of runs that always fail.
    pub background: f64,
    pub phases: Vec<Phase>,
    /// Times of which nothing comes in, ever.
    pub gaps: Vec<(i64, i64)>,
    /// Share of messages that come twice.
    pub twice: f64,
    /// Failures come in up to so much later, in s.
    pub late_max: i64,
}

impl Month {
    fn new(kind: Kind, seed: u64, slo: &'static str, per_day: u64) -> Self {
        Self {
            kind,
            seed,
            slo,
            per_day,
            is_declared: seed.is_multiple_of(2),
            shape: Shape::Office,
            form: if seed.is_multiple_of(3) { Form::Events } else { Form::Counts },
            background: budget(slo) * 0.2,
            phases: Vec::new(),
            gaps: Vec::new(),
            twice: 0.0,
            late_max: 0,
        }
    }

    fn with(mut self, change: impl FnOnce(&mut Self, &mut Chance)) -> Self {
        let mut chance = Chance::new(self.seed);
        change(&mut self, &mut chance);
        self
    }

    /// Something goes wrong on a day at some minute of an hour, for so long.
    fn goes_wrong(&mut self, chance: &mut Chance, fault: Fault, day: i64, hour: i64, lasts: i64, share: f64) {
        let from = day * DAY + hour * HOUR + chance.between(0, HOUR);
        self.phases.push(Phase { fault, from, to: from + lasts, share });
    }
}

/// Share that may fail.
pub fn budget(slo: &str) -> f64 {
    1.0 - slo.parse::<f64>().unwrap_or(1.0)
}

/// All months, with their seeds.
pub fn months() -> Vec<Month> {
    let mut months = Vec::new();
    months.extend([("0.999", 100_000), ("0.999", 5_000), ("0.995", 20_000)].iter().zip(1..).map(clean));
    months
        .extend([("0.995", 100_000), ("0.995", 20_000), ("0.99", 20_000), ("0.99", 5_000)].iter().zip(11..).map(blips));
    months.extend(
        [("0.999", 100_000), ("0.999", 50_000), ("0.995", 20_000), ("0.99", 20_000)].iter().zip(21..).map(slow),
    );
    let outages =
        [("0.999", 100_000), ("0.999", 50_000), ("0.995", 20_000), ("0.995", 5_000), ("0.99", 20_000), ("0.99", 5_000)];
    months.extend(outages.iter().zip(31..).map(outage));
    let low = [("0.99", 240), ("0.99", 240), ("0.999", 240), ("0.995", 40), ("0.995", 40), ("0.99", 40)];
    months.extend(low.iter().zip(41..).map(low_traffic));
    months.extend([51, 52, 53].map(batch));
    months
        .extend([("0.999", 100_000), ("0.995", 20_000), ("0.995", 5_000), ("0.99", 20_000)].iter().zip(61..).map(gaps));
    months.extend([("0.999", 50_000), ("0.995", 20_000), ("0.99", 5_000)].iter().zip(71..).map(duplicates));
    months.extend([("0.999", 50_000), ("0.995", 20_000), ("0.99", 5_000)].iter().zip(81..).map(late));
    months
}

type Given<'a> = (&'a (&'static str, u64), u64);

fn clean(((slo, per_day), seed): Given<'_>) -> Month {
    Month::new(Kind::Clean, seed, slo, *per_day)
}

/// Total failures so short that they spend less than a page is for, at all hours.
fn blips(((slo, per_day), seed): Given<'_>) -> Month {
    Month::new(Kind::Blips, seed, slo, *per_day).with(|month, chance| {
        for n in 0..28 {
            let (hour, lasts) = (chance.between(0, 23), chance.between(30, 91));
            month.goes_wrong(chance, Fault::Blip, n + 1, hour, lasts, 1.0);
        }
    })
}

/// Burns of hours that deserve a page, some of them just so, and slower ones that deserve a ticket.
fn slow(((slo, per_day), seed): Given<'_>) -> Month {
    Month::new(Kind::SlowBurns, seed, slo, *per_day).with(|month, chance| {
        let burns = [(2, 9.0, 10), (7, 7.0, 12), (12, 1.7, 72), (18, 12.0, 8), (22, 6.5, 14), (26, 2.2, 60)];
        for (day, burn, hours) in burns {
            let fault = if burn > 6.0 { Fault::Incident } else { Fault::Ticket };
            let hour = chance.between(5, 9);
            month.goes_wrong(chance, fault, day, hour, hours * HOUR, burn * budget(month.slo));
        }
    })
}

/// Steps, total and partial, day and night, near a threshold and far above, one soon after another.
fn outage(((slo, per_day), seed): Given<'_>) -> Month {
    Month::new(Kind::Outages, seed, slo, *per_day).with(|month, chance| {
        // The second of two comes while the first is still in the long windows.
        let steps = [(2, 10, 25, 1.0), (2, 14, 40, 1.0), (5, 2, 60, 1.0), (8, 15, 90, 0.5), (8, 19, 60, 0.6)];
        let more = [(12, 22, 120, 0.35), (15, 11, 20, 1.0), (19, 3, 90, 0.7), (23, 12, 240, 0.0), (27, 16, 45, 1.0)];
        for (day, hour, minutes, share) in steps.into_iter().chain(more) {
            // Just over the fast tier, for hours.
            let share = if share == 0.0 { 17.0 * budget(month.slo) } else { share };
            month.goes_wrong(chance, Fault::Incident, day, hour, minutes * MINUTE, share);
        }
    })
}

/// 10 an hour or 40 a day: single failures now and then, and times in which everything fails.
fn low_traffic(((slo, per_day), seed): Given<'_>) -> Month {
    Month::new(Kind::LowTraffic, seed, slo, *per_day).with(|month, chance| {
        month.form = Form::EachRun;
        month.shape = if seed.is_multiple_of(2) { Shape::Office } else { Shape::Flat };
        month.background = budget(month.slo) * 0.5;
        for (day, hour, hours, share) in
            [(4, 9, 8, 1.0), (11, 20, 12, 1.0), (15, 8, 30, 0.9), (20, 11, 6, 1.0), (25, 1, 14, 1.0)]
        {
            month.goes_wrong(chance, Fault::Incident, day, hour, hours * HOUR, share);
        }
    })
}

/// Failed nights one by one and in a row, and nights without a run.
fn batch(seed: u64) -> Month {
    Month::new(Kind::Batch, seed, "0.99", 1).with(|month, chance| {
        (month.form, month.shape, month.background) = (Form::EachRun, Shape::Daily, 0.0);
        for (day, days, share) in [(4, 1, 1.0), (9, 3, 1.0), (16, 1, 2.0), (21, 2, 1.0), (26, 2, 2.0)] {
            let day = day + chance.between(0, 2);
            // From the run of the day to the next good one.
            let from = day * DAY + 2 * HOUR;
            month.phases.push(Phase { fault: Fault::Incident, from, to: from + days * DAY, share });
        }
    })
}

/// Outages in whose middle nothing is told for a while, and quiet times that are lost.
fn gaps(((slo, per_day), seed): Given<'_>) -> Month {
    Month::new(Kind::Gaps, seed, slo, *per_day).with(|month, chance| {
        for (day, hour, minutes) in [(3, 10, 12), (8, 21, 25), (14, 3, 45), (20, 14, 8), (26, 9, 90)] {
            let lasts = (minutes + 80) * MINUTE;
            month.goes_wrong(chance, Fault::Incident, day, hour, lasts, if day == 20 { 0.4 } else { 1.0 });
            let from = month.phases.last().map_or(0, |phase| phase.from) + 40 * MINUTE;
            month.gaps.push((from, from + minutes * MINUTE));
        }
        for day in [5, 11, 17, 23] {
            let from = day * DAY + chance.between(0, 20 * HOUR);
            month.gaps.push((from, from + chance.between(5 * MINUTE, 3 * HOUR)));
        }
    })
}

/// A third of what is told comes twice, counters start anew, reports overtake each other.
fn duplicates(((slo, per_day), seed): Given<'_>) -> Month {
    Month::new(Kind::Duplicates, seed, slo, *per_day).with(|month, chance| {
        month.form = if seed.is_multiple_of(2) { Form::Events } else { Form::Totals };
        month.twice = 0.3;
        for (day, hour, share) in [(4, 11, 1.0), (10, 4, 0.8), (17, 15, 0.4), (24, 23, 1.0)] {
            month.goes_wrong(chance, Fault::Incident, day, hour, 50 * MINUTE, share);
        }
        // Below every page tier; counted twice it would not be.
        month.goes_wrong(chance, Fault::Ticket, 20, 10, 12 * HOUR, 3.5 * budget(month.slo));
    })
}

/// Failures come in up to four minutes later than good runs.
fn late(((slo, per_day), seed): Given<'_>) -> Month {
    Month::new(Kind::Late, seed, slo, *per_day).with(|month, chance| {
        (month.form, month.late_max) = (Form::Events, 4 * MINUTE);
        for (day, hour, share) in [(4, 12, 1.0), (10, 3, 0.9), (17, 16, 0.5), (24, 22, 1.0)] {
            month.goes_wrong(chance, Fault::Incident, day, hour, 60 * MINUTE, share);
        }
    })
}
