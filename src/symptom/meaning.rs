//! What the rules of a workflow mean in its own traffic, in words: what applies, how many failures a tier takes, which tiers
//! mean nothing and what stands in for them. Whether a tier is on is decided in `plan`.

use super::defaults::Rules;
use super::exact::Ratio;
use super::plan::{Applied, Ask, BurnPlan, OffReason, Plan, SharedAsk, Tier};
use super::rule::{Mode, Severity, SymptomRule};
use super::sentence::{listed, objective, span};
use crate::render::words;

const DAY: u64 = 86_400;

impl Plan {
    /// What applies to the workflow and what its tiers mean, a sentence without a full stop each. A line that begins with
    /// two spaces belongs to the one before.
    pub fn meaning(&self) -> Vec<String> {
        let pages = |rule: &&Applied| self.domain.is_protected() && rule.severity == Severity::Page;
        let asked = || self.rules.iter().filter(|rule| !rule.ask.is_of_input());
        let named = |of: &dyn Fn(&&Applied) -> bool| asked().filter(of).map(words_of).collect::<Vec<_>>();
        let lists = [("symptoms that page", named(&pages)), ("symptoms in digests", named(&|rule| !pages(rule)))];
        let mut lines: Vec<String> = lists
            .into_iter()
            .filter(|(_, names)| !names.is_empty())
            .map(|(head, names)| format!("{head}: {}", names.join(", ")))
            .collect();
        for (rule, plan) in self.burn_rates() {
            lines.push(format!("{}: {}", rule.name, self.budget_words(plan)));
            lines.extend(plan.tiers.iter().filter_map(|tier| tier_words(plan, tier)));
            lines.extend(plan.off.iter().filter_map(|off| off_words(plan, &off.tier, off.why)));
            let is_per_run = plan.off.iter().any(|off| off.why == OffReason::PerRun);
            if is_per_run && !self.rules.iter().any(|rule| matches!(rule.ask, Ask::RunFailed)) {
                lines.push("  a symptom of kind run_failed would tell of each failed run".to_owned());
            }
        }
        lines
    }

    /// `at 40 runs a day and 99.5 % one failure spends 17 % of the month's budget: page_fast is off, …`
    fn budget_words(&self, plan: &BurnPlan) -> String {
        let objective = objective(&plan.slo);
        let budget = budget_of(plan.period);
        let known = plan.expected_per_day.zip(plan.share_of_one());
        let head = match known {
            Some((runs, share)) if share.compare(Ratio::ONE) == std::cmp::Ordering::Greater => {
                format!("at {} a day and {objective} one failure spends more than {budget}", words::noun(runs, "run"))
            }
            Some((runs, share)) => {
                let runs = words::noun(runs, "run");
                format!("at {runs} a day and {objective} one failure spends {} of {budget}", rounded(share))
            }
            None => {
                format!("at {objective} and a volume that is learned in the first day, as no expected_per_day is given")
            }
        };
        format!("{head}: {}", self.tiers_words(plan))
    }

    fn tiers_words(&self, plan: &BurnPlan) -> String {
        let off: Vec<&str> = plan.off.iter().map(|off| off.tier.as_str()).collect();
        let be = if off.len() == 1 { "is" } else { "are" };
        let stand_ins = self.stand_ins(plan);
        match (off.as_slice(), stand_ins.is_empty()) {
            ([], _) => "all tiers are on".to_owned(),
            (_, true) => format!("{} {be} off, and nothing stands in", listed(off.into_iter())),
            (_, false) => {
                let verb = if stand_ins.len() == 1 && !stand_ins[0].ends_with("tiers") { "stands" } else { "stand" };
                format!(
                    "{} {be} off, {} {verb} in",
                    listed(off.into_iter()),
                    listed(stand_ins.iter().map(String::as_str))
                )
            }
        }
    }

    /// What tells of failures when tiers are off: rules that judge run by run, and the tiers that are on.
    fn stand_ins(&self, plan: &BurnPlan) -> Vec<String> {
        let judges_runs = |rule: &&Applied| matches!(rule.ask, Ask::FailingStreak { .. } | Ask::RunFailed);
        let mut names: Vec<String> = self.rules.iter().filter(judges_runs).map(|rule| rule.name.to_string()).collect();
        let tickets = plan.tiers.iter().all(|tier| tier.severity == Severity::Digest);
        match (plan.tiers.as_slice(), tickets) {
            ([], _) => {}
            ([_, _, ..], true) => names.push("the ticket tiers".to_owned()),
            (tiers, _) => names.extend(tiers.iter().map(|tier| tier.name.clone())),
        }
        names
    }
}

impl Rules {
    /// The rules that ask of all workflows together, with their numbers.
    pub fn shared_meaning(&self) -> Vec<String> {
        let words = |(rule, ask): (&SymptomRule, SharedAsk)| match ask {
            SharedAsk::RepeatOffender { count, of } => format!("{} ({count} of the last {of} dead letters)", rule.name),
            SharedAsk::Systemic { count, window } => {
                format!("{} ({count} workflows within {})", rule.name, span(window))
            }
            SharedAsk::Breaker { ratio, of } => {
                format!("{} ({:.0} % of the last {of} calls)", rule.name, ratio * 100.0)
            }
        };
        self.shared().map(words).collect()
    }
}

/// A rule with the number that matters: `failing_streak (5 in a row over 5 min)`.
fn words_of(rule: &Applied) -> String {
    let number = match &rule.ask {
        Ask::BurnRate(plan) => format!("{} over {}", objective(&plan.slo), span(plan.period)),
        Ask::FailingStreak { count, over } => format!("{count} in a row over {}", span(*over)),
        Ask::RunFailed => "until the next good run".to_owned(),
        Ask::DeadLetterAge { over } => format!("unresolved for {}", span(*over)),
        Ask::DeadLetterDepth { over } => format!("more than {over}"),
        Ask::DeadLetterRate { over, window } => format!("more than {over} in {}", span(*window)),
        Ask::FailureTrend { factor, window } => format!("{factor}× what is usual in {}", span(*window)),
        Ask::RetryPressure { over, window } => format!("more than {over} a run in {}", span(*window)),
        Ask::Absence { every, grace } => format!("not heard for {}", span(every.saturating_add(*grace))),
        Ask::InputMissing { after } => format!("no runs reported for {}", span(*after)),
        Ask::InputInconsistent => "events against reports".to_owned(),
        Ask::Unhealthy { degraded_for } => format!("degraded for {}", span(*degraded_for)),
    };
    let observed = if rule.mode == Mode::Observe { ", observed only" } else { "" };
    format!("{} ({number}{observed})", rule.name)
}

fn budget_of(period: i64) -> String {
    match period / 86_400 {
        30 => "the month's budget".to_owned(),
        7 => "the week's budget".to_owned(),
        _ => format!("the budget of {}", span(period)),
    }
}

/// To the nearest whole per cent from 10 % on, else to one decimal.
fn rounded(share: Ratio) -> String {
    match share.to_f64() * 100.0 {
        percent if percent >= 10.0 => format!("{percent:.0} %"),
        percent if percent >= 0.1 => format!("{percent:.1} %"),
        _ => "under 0.1 %".to_owned(),
    }
}

/// How many failures fire a tier at the expected volume, and how soon that is when all runs fail.
fn tier_words(plan: &BurnPlan, tier: &Tier) -> Option<String> {
    let (long, short) = (span(tier.long), span(tier.short));
    let Some(per_day) = plan.expected_per_day else {
        return Some(format!(
            "  {}: more than {} of the runs failed, in {long} and in {short}",
            tier.name,
            rounded(tier.threshold)
        ));
    };
    let runs = Ratio::new(u128::from(per_day) * u128::from(tier.long.unsigned_abs()), DAY.into())?;
    let allowed = tier.threshold.times(runs)?;
    let needed = u64::try_from(allowed.num / allowed.den + 1).ok()?.max(tier.min_failures);
    let seconds = (u128::from(needed) * u128::from(DAY)).div_ceil(u128::from(per_day));
    let soon = span(i64::try_from(seconds).ok()?);
    let failures = words::noun(needed, "failure");
    Some(format!("  {}: from {failures} in {long} on; when all runs fail, after about {soon}", tier.name))
}

fn off_words(plan: &BurnPlan, tier: &str, why: OffReason) -> Option<String> {
    match why {
        OffReason::Unreachable => {
            let most = Ratio::ONE.over(plan.budget)?.to_f64();
            Some(format!("  {tier} can't fire: even when all runs fail, the budget burns only {most:.1}×"))
        }
        OffReason::PerRun => None,
        OffReason::TooFewRuns { needed_per_day, .. } => {
            Some(format!("  {tier} would mean something from {} a day on", words::noun(needed_per_day, "run")))
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::name::WorkflowName;
    use crate::symptom::tests::workflow;
    use crate::symptom::{Rules, SymptomKind};
    use crate::workflow::{Domain, Workflows};

    fn meaning(slo: &str, per_day: Option<u64>, domain: Domain) -> String {
        let mut own = workflow("orders");
        (own.slo, own.expected_per_day, own.domain) = (Some(slo.to_owned()), per_day, domain);
        let rules = Rules::new(None, &Workflows::new(vec![own]));
        rules.plan(&WorkflowName::new("orders")).meaning().join("\n")
    }

    #[test]
    fn tiers_that_mean_nothing_in_its_traffic_are_named_with_what_stands_in() {
        insta::assert_snapshot!(meaning("0.995", Some(40), Domain::Money), @r"
        symptoms that page: burn_rate (99.5 % over 30 d), failing_streak (5 in a row over 5 min), dead_letter_age (unresolved for 1 h), unhealthy (degraded for 5 min)
        symptoms in digests: dead_letter_depth (more than 10), failure_trend (3× what is usual in 1 h), retry_pressure (more than 2 a run in 1 h)
        burn_rate: at 40 runs a day and 99.5 % one failure spends 17 % of the month's budget: page_fast, page_slow, ticket_fast and ticket_slow are off, failing_streak stands in
          page_fast would mean something from 667 runs a day on
          page_slow would mean something from 267 runs a day on
          ticket_fast would mean something from 67 runs a day on
          ticket_slow would mean something from 67 runs a day on
        ");
        let busier = meaning("0.99", Some(96), Domain::Money);
        let told = "one failure spends 3.5 % of the month's budget: page_fast and page_slow are off, failing_streak and the ticket tiers stand in";
        assert!(busier.contains(told), "{busier}");
    }

    #[test]
    fn a_busy_workflow_is_told_how_many_failures_a_tier_takes() {
        insta::assert_snapshot!(meaning("0.999", Some(100_000), Domain::Standard), @r"
        symptoms in digests: burn_rate (99.9 % over 30 d), failing_streak (5 in a row over 5 min), dead_letter_age (unresolved for 24 h), dead_letter_depth (more than 10), unhealthy (degraded for 5 min), failure_trend (3× what is usual in 1 h), retry_pressure (more than 2 a run in 1 h)
        burn_rate: at 100,000 runs a day and 99.9 % one failure spends under 0.1 % of the month's budget: all tiers are on
          page_fast: from 61 failures in 1 h on; when all runs fail, after about 53 s
          page_slow: from 151 failures in 6 h on; when all runs fail, after about 2 min 11 s
          ticket_fast: from 301 failures in 24 h on; when all runs fail, after about 4 min 21 s
          ticket_slow: from 301 failures in 3 d on; when all runs fail, after about 4 min 21 s
        ");
    }

    #[test]
    fn a_daily_job_has_no_rate() {
        insta::assert_snapshot!(meaning("0.99", Some(1), Domain::Money), @r"
        symptoms that page: burn_rate (99 % over 30 d), failing_streak (5 in a row over 5 min), dead_letter_age (unresolved for 1 h), unhealthy (degraded for 5 min)
        symptoms in digests: dead_letter_depth (more than 10), failure_trend (3× what is usual in 1 h), retry_pressure (more than 2 a run in 1 h)
        burn_rate: at 1 run a day and 99 % one failure spends more than the month's budget: page_fast, page_slow, ticket_fast and ticket_slow are off, failing_streak stands in
          a symptom of kind run_failed would tell of each failed run
        ");
    }

    #[test]
    fn a_tier_out_of_reach_says_why() {
        insta::assert_snapshot!(meaning("0.9", None, Domain::Money), @r"
        symptoms that page: burn_rate (90 % over 30 d), failing_streak (5 in a row over 5 min), dead_letter_age (unresolved for 1 h), unhealthy (degraded for 5 min)
        symptoms in digests: dead_letter_depth (more than 10), failure_trend (3× what is usual in 1 h), retry_pressure (more than 2 a run in 1 h)
        burn_rate: at 90 % and a volume that is learned in the first day, as no expected_per_day is given: page_fast is off, failing_streak, page_slow, ticket_fast and ticket_slow stand in
          page_slow: more than 60 % of the runs failed, in 6 h and in 30 min
          ticket_fast: more than 30 % of the runs failed, in 24 h and in 2 h
          ticket_slow: more than 10 % of the runs failed, in 3 d and in 6 h
          page_fast can't fire: even when all runs fail, the budget burns only 10.0×
        ");
    }

    #[test]
    fn a_workflow_without_an_objective_still_has_symptoms() {
        let rules = Rules::new(None, &Workflows::default());
        let lines = rules.plan(&WorkflowName::new("any")).meaning();
        assert_eq!(lines.len(), 1);
        assert!(lines[0].starts_with("symptoms in digests: failing_streak (5 in a row over 5 min), "), "{lines:?}");
        let none =
            Rules::new(Some(&[crate::symptom::tests::rule("absence", SymptomKind::Absence)]), &Workflows::default());
        assert!(none.plan(&WorkflowName::new("any")).meaning().is_empty());
    }
}
