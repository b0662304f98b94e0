//! Every symptom as a sentence with numbers: the bold half without a full stop, and the sentences after it. No rate is
//! claimed where nothing is known. What is found, and when, lives with the kinds.

use super::burn_rate::Left;
use crate::name::WorkflowName;
use crate::render::words;
use std::time::Duration;

/// The bold half, and the rest.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Sentence {
    pub text: String,
    pub detail: String,
}

/// Seconds in words: `1 h 12 min`.
pub(super) fn span(seconds: i64) -> String {
    words::duration(Duration::from_secs(u64::try_from(seconds).unwrap_or(0)))
}

/// Names in a row: `a, b and c`, at most five of them.
pub(super) fn listed<'a>(names: impl Iterator<Item = &'a str>) -> String {
    const LISTED_MAX: usize = 5;
    let names: Vec<&str> = names.collect();
    let (shown, more) = names.split_at(names.len().min(LISTED_MAX));
    match (shown, more.len()) {
        ([], _) => String::new(),
        ([only], 0) => (*only).to_owned(),
        ([first @ .., last], 0) => format!("{} and {last}", first.join(", ")),
        (_, more) => format!("{} and {more} more", shown.join(", ")),
    }
}

/// A factor with one decimal below 100: `6.8×`.
pub(super) fn times(factor: f64) -> String {
    if factor < 100.0 { format!("{:.1}×", (factor * 10.0).floor() / 10.0) } else { format!("{factor:.0}×") }
}

/// A share of a budget, which may be more than all of it: `23 %`, `5.1 %`, `139 %`.
pub(super) fn percent(share: f64) -> String {
    let percent = share * 100.0;
    if percent >= 10.0 {
        format!("{percent:.0} %")
    } else if percent >= 0.1 {
        format!("{percent:.1} %")
    } else {
        "under 0.1 %".to_owned()
    }
}

/// What failures are counted against.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Against {
    /// Runs that were seen.
    Observed,
    /// Runs a day that config expects.
    Declared(u64),
    /// Runs a day on average, as learned.
    Learned(u64),
}

/// The numbers of a burn rate.
pub(super) struct Burn<'a> {
    pub workflow: &'a WorkflowName,
    pub noun: &'a str,
    pub slo: &'a str,
    /// Of the tier's long window.
    pub failed: u64,
    pub total: u64,
    /// Long window and period, in s.
    pub long: i64,
    pub period: i64,
    /// Share of the budget of a period that the long window spent.
    pub spent: f64,
    /// Times the rate that the objective allows.
    pub rate: f64,
    pub left: Left,
    pub against: Against,
    /// Lower tiers that fire too.
    pub others: &'a [String],
}

/// `order-to-crm spent 23 % of its 30-day error budget in 1 h: 14 of 409 orders failed`.
pub(super) fn burn_rate(burn: &Burn<'_>) -> Sentence {
    let period = match burn.period % 86_400 {
        0 => format!("{}-day", burn.period / 86_400),
        _ => span(burn.period),
    };
    let text = format!(
        "{} spent {} of its {period} error budget in {}: {} of {} failed",
        burn.workflow,
        percent(burn.spent),
        span(burn.long),
        words::count(burn.failed),
        words::noun(burn.total, burn.noun),
    );
    let objective = objective(burn.slo);
    let mut detail = format!("That is {} the rate that {objective} allows. {}", times(burn.rate), exhausts(burn));
    let (noun, day) = (burn.noun, "a day");
    match burn.against {
        Against::Observed => {}
        Against::Declared(n) => {
            detail.push_str(&format!(" Measured against {} {day}, as declared.", words::noun(n, noun)))
        }
        Against::Learned(n) => {
            detail.push_str(&format!(" Measured against {} {day}, the usual number.", words::noun(n, noun)));
        }
    }
    if !burn.others.is_empty() {
        detail.push_str(&format!(" Over as well: {}.", listed(burn.others.iter().map(String::as_str))));
    }
    Sentence { text, detail }
}

#[expect(clippy::cast_possible_truncation, reason = "seconds, cut to whole ones")]
fn exhausts(burn: &Burn<'_>) -> String {
    let Left { share, known, .. } = burn.left;
    // What was before the first run is not known to have gone well.
    let is_known = known >= burn.period;
    if share <= 0.0 {
        return match is_known {
            true => "The budget is spent.".to_owned(),
            false => format!("The whole budget was spent in the {} that are known.", span(known)),
        };
    }
    #[expect(clippy::cast_precision_loss, reason = "seconds of at most some years")]
    let seconds = share * burn.period as f64 / burn.rate.max(f64::MIN_POSITIVE);
    let lasts = span(seconds as i64);
    if is_known {
        return format!("{} of the budget is left; at this rate it lasts {lasts}.", percent(share));
    }
    let spent = percent(1.0 - share);
    format!(
        "So far {spent} of the budget was spent, in the {} that are known; at this rate the rest lasts {lasts}.",
        span(known)
    )
}

/// `0.995` reads as `99.5 %`.
pub(super) fn objective(slo: &str) -> String {
    let digits: String = slo.split_once('.').map(|(_, after)| after).unwrap_or_default().to_owned();
    let padded = format!("{digits:0<2}");
    let (whole, rest) = padded.split_at(2.min(padded.len()));
    match rest.trim_end_matches('0') {
        "" => format!("{} %", whole.trim_start_matches('0')),
        rest => format!("{}.{rest} %", if whole == "00" { "0" } else { whole.trim_start_matches('0') }),
    }
}

/// `The last 5 runs of busy all failed, over 8 min`.
pub(super) fn streak(workflow: &WorkflowName, count: u64, length: i64, good_ago: Option<i64>) -> Sentence {
    Sentence {
        text: format!("The last {} of {workflow} all failed, over {}", words::noun(count, "run"), span(length)),
        detail: last_good(good_ago),
    }
}

/// `The last run of busy failed 2 h ago`.
pub(super) fn run_failed(workflow: &WorkflowName, count: u64, ago: i64, good_ago: Option<i64>) -> Sentence {
    let text = match count {
        0 | 1 => format!("The last run of {workflow} failed {} ago", span(ago)),
        _ => format!("The last {} of {workflow} failed, the latest {} ago", words::noun(count, "run"), span(ago)),
    };
    Sentence { text, detail: format!("{} It clears with the next good run.", last_good(good_ago)) }
}

fn last_good(ago: Option<i64>) -> String {
    match ago {
        Some(ago) => format!("The last good run was {} ago.", span(ago)),
        None => "No good run is known.".to_owned(),
    }
}

/// Dead letters that wait.
pub(super) struct Waiting<'a> {
    pub noun: &'a str,
    pub count: u64,
    pub downstream: Option<&'a str>,
    /// Age of the oldest, in s, and its name.
    pub age: i64,
    pub oldest: &'a str,
    /// How long ago one was resolved, in s.
    pub resolved_ago: Option<i64>,
}

/// `14 orders have not reached hubspot for 1 h 12 min (oldest: order-1041)`.
pub(super) fn dead_letter_age(waiting: &Waiting<'_>) -> Sentence {
    let (have, age) = (words::noun_have(waiting.count, waiting.noun), span(waiting.age));
    let what = match (waiting.downstream, waiting.count) {
        (Some(downstream), _) => format!("{have} not reached {downstream} for {age}"),
        (None, 1) => format!("{have} waited for {age}"),
        (None, _) => format!("{have} waited for up to {age}"),
    };
    let detail = match waiting.resolved_ago {
        Some(ago) => format!("None was resolved in the last {}.", span(ago)),
        None => "None was resolved so far.".to_owned(),
    };
    Sentence { text: format!("{what} (oldest: {})", waiting.oldest), detail }
}

/// `report has 14 dead letters open, more than 10`.
pub(super) fn dead_letter_depth(workflow: &WorkflowName, over: u64, waiting: &Waiting<'_>) -> Sentence {
    let count = words::noun(waiting.count, "dead letter");
    Sentence {
        text: format!("{workflow} has {count} open, more than {}", words::count(over)),
        detail: match waiting.oldest {
            "" => String::new(),
            oldest => format!("The oldest, {oldest}, has waited for {}.", span(waiting.age)),
        },
    }
}

/// `report left 14 dead letters in 1 h, more than 10`.
pub(super) fn dead_letter_rate(workflow: &WorkflowName, arrived: u64, over: u64, window: i64, open: u64) -> Sentence {
    let count = words::noun(arrived, "dead letter");
    Sentence {
        text: format!("{workflow} left {count} in {}, more than {}", span(window), words::count(over)),
        detail: format!("{} open.", words::noun_be(open, "dead letter")),
    }
}

/// `nightly-backup has not been heard for 31 h`.
pub(super) fn absence(workflow: &WorkflowName, silent: i64, every: i64, was_heard: bool) -> Sentence {
    let expected = format!("A run is expected every {}.", span(every));
    Sentence {
        text: format!("{workflow} has not been heard for {}", span(silent)),
        detail: if was_heard { expected } else { format!("{expected} Nothing was ever heard of it.") },
    }
}

/// `payout-reconcile has been unhealthy for 6 min, says its heartbeat`.
pub(super) fn unhealthy(workflow: &WorkflowName, word: &str, lasts: i64, said_ago: i64) -> Sentence {
    Sentence {
        text: format!("{workflow} has been {word} for {}, says its heartbeat", span(lasts)),
        detail: format!("The last heartbeat was {} ago.", span(said_ago)),
    }
}

/// `order-to-crm had 31 failures and retries in 1 h, 4.4× what is usual at this hour of the week`.
pub(super) fn failure_trend(workflow: &WorkflowName, seen: u64, window: i64, usual: f64, weeks: usize) -> Sentence {
    let (seen_words, span) = (words::count(seen), span(window));
    #[expect(clippy::cast_precision_loss, reason = "a count, for words")]
    let text = match usual < 1.0 {
        true => format!("{workflow} had {seen_words} failures and retries in {span}, where there are usually none"),
        false => format!(
            "{workflow} had {seen_words} failures and retries in {span}, {} what is usual at this hour of the week",
            times(seen as f64 / usual)
        ),
    };
    let weeks = words::noun(weeks as u64, "earlier week");
    Sentence { text, detail: format!("Usual: {usual:.0}, from the same hour of {weeks}.") }
}

/// `invoice-sync needed 2.3 retries an invoice in 1 h: 92 retries for 40 invoices`.
pub(super) fn retry_pressure(
    workflow: &WorkflowName,
    noun: &str,
    retries: u64,
    finished: u64,
    window: i64,
    over: f64,
) -> Sentence {
    #[expect(clippy::cast_precision_loss, reason = "counts, for words")]
    let each = retries as f64 / finished.max(1) as f64;
    Sentence {
        text: format!(
            "{workflow} needed {each:.1} retries per {noun} in {}: {} for {}",
            span(window),
            words::noun(retries, "retry"),
            words::noun(finished, noun)
        ),
        detail: format!("More than {over} are too many."),
    }
}

/// `lead-enrichment left 9 of the last 20 dead letters`.
pub(super) fn repeat_offender(workflow: &WorkflowName, own: u64, of: u64, oldest_ago: i64) -> Sentence {
    Sentence {
        text: format!("{workflow} left {} of the last {}", words::count(own), words::noun(of, "dead letter")),
        detail: format!("All {} came within {}.", words::count(of), span(oldest_ago)),
    }
}

/// `hubspot failed in 3 workflows within 15 min: a, b and c`.
pub(super) fn systemic(subject: &Subject<'_>, workflows: &[WorkflowName], window: i64) -> Sentence {
    let names = listed(workflows.iter().map(WorkflowName::as_str));
    let count = words::noun(workflows.len() as u64, "workflow");
    let (text, detail) = match subject {
        Subject::Downstream(name) => (format!("{name} failed in {count}"), format!("Probably one cause: {name}.")),
        Subject::Error(name) => (format!("{name} hit {count}"), format!("One error type in all of them: {name}.")),
    };
    Sentence { text: format!("{text} within {}: {names}", span(window)), detail }
}

/// What several workflows have in common.
pub(super) enum Subject<'a> {
    Downstream(&'a str),
    Error(&'a str),
}

/// `hubspot failed 8 of its last 10 calls`.
pub(super) fn breaker(downstream: &str, failed: u64, of: u64, within: i64, workflows: &[WorkflowName]) -> Sentence {
    let names = listed(workflows.iter().map(WorkflowName::as_str));
    Sentence {
        text: format!("{downstream} failed {} of its last {}", words::count(failed), words::noun(of, "call")),
        detail: format!("Called by {names}, within {}.", span(within)),
    }
}

/// `The circuit breaker of hubspot has been open for 4 min`.
pub(super) fn breaker_open(downstream: &str, lasts: i64, workflows: &[WorkflowName]) -> Sentence {
    let names = listed(workflows.iter().map(WorkflowName::as_str));
    Sentence {
        text: format!("The circuit breaker of {downstream} has been open for {}", span(lasts)),
        detail: format!("A pipeline said so; it was not counted here. Called by {names}."),
    }
}

/// `busy has reported no runs for 12 min`.
pub(super) fn input_missing(workflow: &WorkflowName, silent: i64, usual: i64, holds_page: bool) -> Sentence {
    let held = if holds_page { " What was paged is held: nobody can say whether it goes on." } else { "" };
    Sentence {
        text: format!("{workflow} has reported no runs for {}", span(silent)),
        detail: format!("It reports every {}. Until it does, its burn rate is not known.{held}", span(usual)),
    }
}

/// `busy told of 12 failures as events and of 40 in reports, in 1 h`.
pub(super) fn input_inconsistent(workflow: &WorkflowName, events: u64, reported: u64, window: i64) -> Sentence {
    Sentence {
        text: format!(
            "{workflow} told of {} as events and of {} in reports, in {}",
            words::noun(events, "failure"),
            words::count(reported),
            span(window)
        ),
        detail: "One of the two is incomplete. Its burn rate is counted from the larger.".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn left(share: f64, known: i64) -> String {
        exhausts(&Burn {
            workflow: &"busy".into(),
            noun: "run",
            slo: "0.99",
            failed: 1,
            total: 10,
            long: 3_600,
            period: 30 * 86_400,
            spent: 0.02,
            rate: 10.0,
            left: Left { allowed: 100.0, share, known },
            against: Against::Observed,
            others: &[],
        })
    }

    #[test]
    fn of_a_budget_no_more_is_said_to_be_left_than_is_known() {
        assert_eq!(left(0.5, 30 * 86_400), "50 % of the budget is left; at this rate it lasts 36 h.");
        let young =
            "So far under 0.1 % of the budget was spent, in the 26 h that are known; at this rate the rest lasts 3 d.";
        assert_eq!(left(1.0, 26 * 3_600), young);
        assert_eq!(left(-0.1, 30 * 86_400), "The budget is spent.");
        assert_eq!(left(-0.1, 5 * 86_400), "The whole budget was spent in the 5 d that are known.");
    }
}
