//! The error budgets of a long window, worst first: what is left of each, and how long that lasts.

use super::drawing::draw_budgets;
use super::input::{BudgetLine, DigestInput};
use super::tally::{and_more, name_some};
use super::view::{BudgetRow, Budgets};
use crate::render::words;
use std::time::Duration;

const BUDGETS_MAX: usize = 10;
const NAMES_MAX: usize = 4;

/// Shares are fractions of two: what is nearer to a whole per cent than this is that per cent.
const HAIR: f64 = 1e-9;

/// The pace is that of a week.
const WEEK_SECS: f64 = 604_800.0;

/// Budgets of a window that is long enough to tell of them.
pub(super) fn list_budgets(input: &DigestInput) -> Budgets {
    if !input.window.tells_budgets() {
        return Budgets::default();
    }
    let mut budgets: Vec<(&BudgetLine, f64)> = input.budgets.iter().filter_map(|b| Some((b, b.share_left?))).collect();
    budgets.retain(|(budget, _)| !budget.is_too_small());
    budgets.sort_by(|(one, left), (other, more)| {
        let name = |budget: &BudgetLine| (budget.workflow.clone(), budget.rule.clone());
        left.total_cmp(more).then_with(|| name(one).cmp(&name(other)))
    });
    let period = budgets.first().map(|(budget, _)| budget.period);
    let is_one = budgets.iter().all(|(budget, _)| Some(budget.period) == period);
    let shown = budgets.iter().take(BUDGETS_MAX);
    let items: Vec<BudgetRow> = shown.map(|(budget, left)| row(budget, *left, !is_one)).collect();
    Budgets {
        note: period.filter(|_| is_one).map(period_words).unwrap_or_default(),
        more: and_more(items.len(), budgets.len()),
        rest: rest(&input.budgets),
        table_lines: draw_budgets(&items),
        items,
    }
}

/// "30 days"
fn period_words(period: Duration) -> String {
    match period.as_secs() {
        seconds if seconds.is_multiple_of(86_400) => words::noun(seconds / 86_400, "day"),
        _ => words::duration(period),
    }
}

fn row(budget: &BudgetLine, left: f64, names_period: bool) -> BudgetRow {
    let spent = format!("{} of {}", words::count(budget.failed), failures(budget.allowed));
    let period = if names_period { format!("{}: ", period_words(budget.period)) } else { String::new() };
    let is_known = budget.known >= budget.period;
    let known = if is_known { String::new() } else { format!("; only {} are known", words::duration(budget.known)) };
    BudgetRow {
        workflow: budget.workflow.to_string(),
        objective: budget.objective.clone(),
        spent,
        spent_percent: whole_percent((1.0 - left).clamp(0.0, 1.0)).to_string(),
        left: format!("{period}{}{known}", left_words(budget, left)),
    }
}

/// "31 % left, lasts 12 days at this week's pace", "none left, overspent by 4 %".
fn left_words(budget: &BudgetLine, left: f64) -> String {
    match whole_percent(left.abs()) {
        _ if left.abs() < HAIR => "none left".to_owned(),
        0 if left > 0.0 => format!("under 1 % left, {}", lasts(budget, left)),
        percent if left > 0.0 => format!("{percent} % left, {}", lasts(budget, left)),
        0 => "none left, overspent by under 1 %".to_owned(),
        percent => format!("none left, overspent by {} %", words::count(percent)),
    }
}

#[expect(clippy::cast_precision_loss, reason = "a count, for words")]
fn lasts(budget: &BudgetLine, left: f64) -> String {
    let rest = left * budget.allowed;
    let seconds = rest / budget.failed_lately as f64 * WEEK_SECS;
    if seconds >= budget.period.as_secs_f64() {
        return "lasts the period".to_owned();
    }
    let lasts = match whole(seconds) {
        seconds if seconds >= 172_800 => words::noun(seconds / 86_400, "day"),
        seconds => words::duration(Duration::from_secs(seconds)),
    };
    format!("lasts {lasts} at this week’s pace")
}

/// One decimal below ten.
fn failures(allowed: f64) -> String {
    if allowed < 10.0 { format!("{allowed:.1}") } else { words::count(whole(allowed)) }
}

fn whole_percent(share: f64) -> u64 {
    whole((share + HAIR) * 100.0)
}

#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a positive number, cut to a whole one")]
fn whole(number: f64) -> u64 {
    number.max(0.0) as u64
}

/// Those without a rate, and why.
fn rest(budgets: &[BudgetLine]) -> String {
    let named = |of: &dyn Fn(&&BudgetLine) -> bool| {
        let mut names: Vec<&str> = budgets.iter().filter(of).map(|budget| budget.workflow.as_str()).collect();
        names.sort_unstable();
        names.dedup();
        names
    };
    let (unknown, small) = (named(&|b| b.share_left.is_none()), named(&|b| b.share_left.is_some() && b.is_too_small()));
    let sentence = |lead: &str, names: &[&str]| match names {
        [] => None,
        names => Some(format!("{lead}: {}.", name_some(names, NAMES_MAX))),
    };
    let small = sentence("Too few runs for a budget of one failure", &small);
    [sentence("No runs are known", &unknown), small].into_iter().flatten().collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::super::sample::{budget, nothing};
    use super::*;

    fn list(budgets: Vec<BudgetLine>) -> Budgets {
        list_budgets(&DigestInput { budgets, ..nothing("weekly") })
    }

    fn left(budget: BudgetLine) -> String {
        list(vec![budget]).items.remove(0).left
    }

    #[test]
    fn the_worst_ten_are_named_and_the_rest_is_counted() {
        let budgets = (0..12).map(|n| budget(&format!("w{n:02}"), "99 %", n, 10_000, 30)).collect();
        let all = list(budgets);
        let names: Vec<&str> = all.items.iter().map(|row| row.workflow.as_str()).collect();
        assert_eq!(names, ["w11", "w10", "w09", "w08", "w07", "w06", "w05", "w04", "w03", "w02"]);
        assert_eq!((all.more.as_str(), all.note.as_str()), ("And 2 more.", "30 days"));
    }

    #[test]
    fn the_order_in_which_they_come_does_not_show() {
        let mut budgets = vec![budget("b", "99 %", 5, 1_000, 30), budget("a", "99 %", 5, 1_000, 30)];
        let one = list(budgets.clone());
        budgets.reverse();
        assert_eq!(one, list(budgets));
        assert_eq!(one.items[0].workflow, "a");
    }

    #[test]
    fn what_is_left_reads_as_agreed() {
        let of = |failed, lately| BudgetLine { failed_lately: lately, ..budget("a", "99 %", failed, 10_000, 30) };
        assert_eq!(left(of(69, 18)), "31 % left, lasts 12 days at this week’s pace");
        assert_eq!(left(of(30, 1)), "70 % left, lasts the period");
        assert_eq!(left(of(0, 0)), "100 % left, lasts the period");
        assert_eq!(left(of(100, 9)), "none left");
        assert_eq!(left(of(340, 9)), "none left, overspent by 240 %");
        let hair = |share| BudgetLine { share_left: Some(share), ..of(99, 70) };
        assert_eq!(left(hair(0.004)), "under 1 % left, lasts 57 min at this week’s pace");
        assert_eq!(left(hair(-0.004)), "none left, overspent by under 1 %");
    }

    #[test]
    fn history_that_is_shorter_than_the_period_is_said() {
        let young = budget("a", "99 %", 30, 10_000, 2);
        assert_eq!(left(young), "70 % left, lasts the period; only 2 d are known");
    }

    #[test]
    fn budgets_of_several_periods_name_their_own() {
        let week = BudgetLine { period: Duration::from_secs(604_800), ..budget("week", "99 %", 50, 10_000, 30) };
        let both = list(vec![budget("month", "99 %", 30, 10_000, 30), week]);
        assert_eq!(both.note, "");
        assert!(both.items[0].left.starts_with("7 days: 50 % left"), "{:?}", both.items);
        assert!(both.items[1].left.starts_with("30 days: 70 % left"), "{:?}", both.items);
    }

    #[test]
    fn a_workflow_that_has_no_rate_is_named_and_never_said_to_be_well() {
        let unknown = BudgetLine { share_left: None, ..budget("silent", "99 %", 0, 10_000, 30) };
        let all = list(vec![unknown, budget("rare", "99 %", 0, 30, 30)]);
        assert_eq!(all.items, []);
        assert_eq!(all.rest, "No runs are known: silent. Too few runs for a budget of one failure: rare.");
    }

    #[test]
    fn a_window_below_six_days_tells_no_budgets() {
        let mut input = DigestInput { budgets: vec![budget("a", "99 %", 5, 1_000, 30)], ..nothing("weekly") };
        input.window.start_at = input.window.end_at - chrono::TimeDelta::days(6);
        assert_eq!(list_budgets(&input).items.len(), 1);
        input.window.start_at += chrono::TimeDelta::seconds(1);
        assert_eq!(list_budgets(&input), Budgets::default());
    }
}
