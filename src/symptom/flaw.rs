//! What is wrong with a rule whatever workflow it meets: thresholds that nothing can cross, windows that are not kept, and
//! what means nothing. Where it stands in a file is for config to say.

use super::buckets::{KEPT_MAX, TICK};
use super::plan::{default_tiers, seconds};
use super::rule::{BurnTier, SymptomKind, SymptomRule};
use super::sentence::span;
use super::shared::{CALLS_MAX, LETTERS_MAX, WORKFLOWS_MAX};
use super::trend;
use crate::matcher::MatchKey;

/// Windows of tiers below this are coarse: they are whole buckets. In s.
const FINE_MIN: i64 = 60;

/// How bad a flaw is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Gravity {
    /// The rule can't fire, or says what can't be meant.
    Refused,
    /// It does something else than one may expect.
    Odd,
}

/// Something that is wrong with a rule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Flaw {
    /// The place among the rule's tiers, when it is one of them that is wrong.
    pub tier: Option<usize>,
    /// The key whose value is wrong.
    pub key: &'static str,
    /// What is wrong and what to do, without a full stop.
    pub words: String,
    /// How bad it is.
    pub gravity: Gravity,
}

impl SymptomRule {
    /// Everything that is wrong with it.
    pub fn flaws(&self) -> Vec<Flaw> {
        let mut flaws = Flaws::default();
        self.match_flaws(&mut flaws);
        match &self.kind {
            SymptomKind::BurnRate { slo, period, tiers, .. } => {
                let period = period.map(seconds);
                flaws.period(period, tiers.as_deref());
                flaws.tiers(tiers.as_deref(), slo.as_deref(), period.unwrap_or(MONTH));
            }
            SymptomKind::DeadLetterRate { window, .. } => flaws.window(Some(seconds(*window)), None),
            SymptomKind::FailureTrend { window, .. } => flaws.window(
                window.map(seconds),
                Some((trend::WINDOW_MAX, "what earlier weeks had in it is not kept for longer")),
            ),
            SymptomKind::RetryPressure { window, .. } => {
                flaws.window(window.map(seconds), Some((KEPT_MAX, "counts are kept no longer")));
            }
            SymptomKind::RepeatOffender { count, of } => {
                flaws.share(count.unwrap_or(3), of.unwrap_or(20));
                flaws.most("of", of.unwrap_or(20), LETTERS_MAX, "dead letters");
            }
            SymptomKind::Systemic { count, window } => {
                flaws.several(count.unwrap_or(3), "workflow");
                flaws.most("count", count.unwrap_or(3), WORKFLOWS_MAX, "workflows of each downstream and error");
                flaws.window(window.map(seconds), None);
            }
            SymptomKind::Breaker { of, .. } => {
                flaws.most("of", of.unwrap_or(10), CALLS_MAX, "calls of each downstream")
            }
            SymptomKind::FailingStreak { .. }
            | SymptomKind::RunFailed
            | SymptomKind::DeadLetterAge { .. }
            | SymptomKind::DeadLetterDepth { .. }
            | SymptomKind::Absence
            | SymptomKind::Unhealthy { .. }
            | SymptomKind::QueueAge { .. }
            | SymptomKind::QueueDepth { .. } => {}
        }
        flaws.0
    }

    /// A key that the subject of the rule never has fits nothing.
    fn match_flaws(&self, flaws: &mut Flaws) {
        let has_downstream = matches!(self.kind, SymptomKind::Systemic { .. } | SymptomKind::Breaker { .. });
        for (key, _) in self.matcher.keys() {
            let has = match key {
                MatchKey::Workflow | MatchKey::Domain | MatchKey::Label(_) => true,
                MatchKey::Downstream => has_downstream,
                MatchKey::Class | MatchKey::Step => false,
            };
            if !has {
                let words = match has_downstream {
                    true => format!(
                        "can't fire: nothing that it is of has a {key}; match workflow, domain, label.<key> or downstream"
                    ),
                    false => format!(
                        "can't fire: it is of a workflow, which has no {key}; match workflow, domain or label.<key>"
                    ),
                };
                flaws.refuse("match", words);
            }
        }
    }
}

/// Period of an objective unless given, in s.
const MONTH: i64 = 30 * 86_400;

#[derive(Default)]
struct Flaws(Vec<Flaw>);

impl Flaws {
    fn refuse(&mut self, key: &'static str, words: String) {
        self.0.push(Flaw { tier: None, key, words, gravity: Gravity::Refused });
    }

    /// `longest`: how long it may be, and why.
    fn window(&mut self, window: Option<i64>, longest: Option<(i64, &str)>) {
        let Some(window) = window else { return };
        if window < TICK {
            self.refuse(
                "window",
                format!("its window is shorter than the {} between two looks; make it longer", span(TICK)),
            );
        }
        if let Some((longest, why)) = longest.filter(|(longest, _)| window > *longest) {
            self.refuse("window", format!("its window is longer than {}: {why}; make it shorter", span(longest)));
        }
    }

    fn most(&mut self, key: &'static str, asked: u64, most: usize, what: &str) {
        if asked > most as u64 {
            self.refuse(key, format!("can't fire: only {most} {what} are remembered; ask for {most} or fewer"));
        }
    }

    fn share(&mut self, count: u64, of: u64) {
        self.several(count, "dead letter");
        if count > of {
            self.refuse(
                "count",
                format!("can't fire: it takes {count} of the last {of}; lower \"count\" or raise \"of\""),
            );
        }
    }

    fn several(&mut self, count: u64, noun: &str) {
        if count < 2 {
            self.refuse("count", format!("one {noun} is no pattern; ask for 2 or more"));
        }
    }

    fn period(&mut self, period: Option<i64>, tiers: Option<&[BurnTier]>) {
        let Some(period) = period else { return };
        let longest = default_tiers().iter().map(|tier| seconds(tier.long)).max().unwrap_or(0);
        if tiers.is_none() && period < longest {
            let words = format!(
                "the default tiers look back {}, longer than the period of the objective; give \"tiers\" with shorter windows",
                span(longest)
            );
            self.refuse("period", words);
        }
        if period > KEPT_MAX {
            let words = format!(
                "counts are kept for {}: what is left of the budget is told from those, not from the whole period",
                span(KEPT_MAX)
            );
            self.0.push(Flaw { tier: None, key: "period", words, gravity: Gravity::Odd });
        }
    }

    fn tiers(&mut self, tiers: Option<&[BurnTier]>, slo: Option<&str>, period: i64) {
        if tiers.is_some_and(<[BurnTier]>::is_empty) {
            self.refuse(
                "tiers",
                "can't fire: it has no tiers; leave \"tiers\" out for the four default ones".to_owned(),
            );
        }
        for (place, tier) in tiers.into_iter().flatten().enumerate() {
            let flaw = |key, words, gravity| self.0.push(Flaw { tier: Some(place), key, words, gravity });
            tier_flaws(tier, slo, period, flaw);
        }
    }
}

fn tier_flaws(tier: &BurnTier, slo: Option<&str>, period: i64, mut flaw: impl FnMut(&'static str, String, Gravity)) {
    let (long, short) = (seconds(tier.long), seconds(tier.short));
    if short >= long {
        flaw("short", "\"short\" must be shorter than \"long\"".to_owned(), Gravity::Refused);
    }
    if long > period {
        flaw("long", "\"long\" is longer than the period of the objective".to_owned(), Gravity::Refused);
    }
    if long > KEPT_MAX {
        flaw("long", format!("\"long\" is over {}: counts are kept no longer", span(KEPT_MAX)), Gravity::Refused);
    }
    if short < TICK {
        let words = format!("\"short\" is under {}: counts are no finer, and it is looked at no oftener", span(TICK));
        flaw("short", words, Gravity::Refused);
    } else if short < FINE_MIN {
        let words = format!("\"short\" is under {}: counts are by {}, so it is coarse", span(FINE_MIN), span(TICK));
        flaw("short", words, Gravity::Odd);
    }
    if let Some(slo) = slo.filter(|slo| !tier.can_fire(slo)) {
        let words =
            format!("can't fire: at slo {slo} even a total failure burns no more than {}; lower \"burn\"", tier.burn);
        flaw("burn", words, Gravity::Refused);
    }
    if tier.is_within_objective() {
        let words = format!("a burn of {} is within the objective: it fires though the budget would last", tier.burn);
        flaw("burn", words, Gravity::Odd);
    }
}
