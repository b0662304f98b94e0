//! From what was counted to what is said. Pure: the same input gives the same view, to the letter.
//!
//! ```text
//! input ─► tally ─┬─► attention   verdict, needs you, to look at, paged
//!                 ├─► action      what the numbers suggest
//!                 ├─► cause       new, back and known causes; dead letters by cause
//!                 ├─► number      tiles, lede, healed, heard
//!                 ├─► table       workflows
//!                 ├─► picture     plots
//!                 ├─► pattern     weekly only
//!                 ├─► budget      windows of about a week and more
//!                 └─► footer      silences, unreadable, balance
//! ```

use super::action::list_actions;
use super::attention::Attention;
use super::budget::list_budgets;
use super::cause::{list_causes, list_letters, sentence_case};
use super::footer::{list_service, list_silences, list_unreadable, write_footer};
use super::input::{DigestInput, Late};
use super::number::{list_heard, list_numbers, list_recoveries, write_lede};
use super::pattern::list_patterns;
use super::picture::draw_up;
use super::table::list_workflows;
use super::tally::Tally;
use super::view::{DigestView, Patterns, WindowView};
use crate::name::DigestName;
use crate::render::words;
use chrono::SecondsFormat;

/// How much a digest says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Form {
    /// The short one: what is new, and the numbers.
    Hourly,
    /// The whole one; also of every digest with a name of its own.
    Daily,
    /// The whole one and patterns.
    Weekly,
}

impl Form {
    fn of(digest: &str) -> Self {
        match digest {
            "hourly" => Self::Hourly,
            "weekly" => Self::Weekly,
            _ => Self::Daily,
        }
    }
}

/// Whether a digest of this name shows patterns, and so needs what only they are made from.
pub fn has_patterns(digest: &DigestName) -> bool {
    Form::of(digest.as_str()) == Form::Weekly
}

/// Composes a digest: everything it says, in words, with every list capped and every event accounted for.
pub fn compose(input: &DigestInput) -> DigestView {
    let form = Form::of(input.digest.as_str());
    let tally = Tally::new(input);
    let attention = Attention::new(&tally);
    let (fingerprints, listed_count) = list_causes(&tally, form);
    let counts = tally.counts(listed_count);
    let title = format!("{} digest", sentence_case(&words::one_line(input.digest.as_str())));
    let headline = attention.headline(write_lede(&tally, attention.is_quiet()));
    DigestView {
        digest: input.digest.to_string(),
        notice: format!("#{} {title}: {}", input.number, headline.verdict),
        title,
        number: input.number,
        receiver: input.receiver.clone(),
        date: words::date_with_year(tally.end_at(), input.zone),
        short_date: words::date(tally.end_at(), input.zone),
        window: write_window(input),
        late: input.late.as_ref().map(|late| write_late(&tally, late)).unwrap_or_default(),
        incomplete: input.incomplete.as_ref().map(|why| format!("Incomplete: {why}.")).unwrap_or_default(),
        headline,
        actions: list_actions(&tally, form),
        numbers: list_numbers(&tally),
        plot: draw_up(&tally, form),
        workflows: list_workflows(&tally, form),
        dead_letters: list_letters(&tally),
        recoveries: list_recoveries(&tally),
        heard: list_heard(&tally),
        silences: list_silences(&tally, &counts),
        unreadable: list_unreadable(&tally),
        service: list_service(&tally),
        patterns: Patterns { budgets: list_budgets(input), ..list_patterns(&tally, form) },
        footer: write_footer(&tally, &counts),
        empty: is_empty(input, counts.received, attention.is_quiet()),
        needs_you: attention.needs_you,
        urgent: attention.urgent,
        pages: attention.closed,
        fingerprints,
        counts,
    }
}

/// Nothing arrived, nothing waits, and there is nothing that a reader must know about the digest itself.
fn is_empty(input: &DigestInput, received: u64, is_quiet: bool) -> bool {
    received == 0
        && is_quiet
        && input.pages.is_empty()
        && input.unreadable.iter().all(|u| u.count == 0)
        && input.incomplete.is_none()
        && input.service.is_empty()
}

fn write_window(input: &DigestInput) -> WindowView {
    let window = input.window;
    WindowView {
        start: window.start_at.to_rfc3339_opts(SecondsFormat::Millis, true),
        end: window.end_at.to_rfc3339_opts(SecondsFormat::Millis, true),
        text: words::window(window.start_at, window.end_at, input.zone),
        zone: words::zone_name(input.zone, window.end_at),
        clock: words::clock(window.end_at, input.zone),
    }
}

/// "Late: covers 3 slots; Matins was away Tue 22:10 to Wed 06:40."
fn write_late(tally: &Tally<'_>, late: &Late) -> String {
    let slots = words::noun(u64::from(late.slots_count.max(1)), "slot");
    let away = late.away.map(|w| words::span(w.start_at, w.end_at, tally.end_at(), tally.input.zone));
    let away = away.map(|span| format!("; Matins was away {span}")).unwrap_or_default();
    format!("Late: covers {slots}{away}.")
}
