//! What a digest says, ready for templates: words, numbers written out, lists that are capped. Field names are part of the
//! contract with templates. How it is laid out, and all escaping, is `render`'s.
//!
//! Texts are never null: what does not apply is empty, so that `{{#if late}}` does what it says.

use serde::Serialize;
use std::collections::BTreeMap;

/// A digest, composed.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct DigestView {
    /// Its name in config.
    pub digest: String,
    /// `Daily digest`.
    pub title: String,
    /// Its notification number.
    pub number: i64,
    /// Who reads it.
    pub receiver: String,
    /// One line for notifications: "#216 Daily digest: Nothing needs you. 3 things to look at."
    pub notice: String,
    /// Local date of the end of the window: `Wed 18 Nov 2026`.
    pub date: String,
    /// The same without the year, for subjects.
    pub short_date: String,
    /// What it covers.
    pub window: WindowView,
    /// "Late: covers 3 slots; Matins was away Tue 22:10 to Wed 06:40."
    pub late: String,
    /// "Incomplete: 214 messages before 10:00 are still unread."
    pub incomplete: String,
    /// The verdict and what stands at the top.
    pub headline: Headline,
    /// Open incidents of money and compliance.
    pub needs_you: Section<PageItem>,
    /// What to look at, worst first.
    pub urgent: Section<UrgentItem>,
    /// What the numbers suggest to do.
    pub actions: Section<ActionItem>,
    /// Causes.
    pub fingerprints: Causes,
    /// Incidents that were paged and are over.
    pub pages: Section<PageItem>,
    /// Headline numbers against the window before.
    pub numbers: Numbers,
    /// Plots and their words.
    pub plot: PlotView,
    /// Workflows, those with most failures first.
    pub workflows: WorkflowTable,
    /// Open dead letters, folded by cause, oldest first.
    pub dead_letters: Section<LetterItem>,
    /// What went through in the end.
    pub recoveries: Recoveries,
    /// Who was heard.
    pub heard: Heard,
    /// Silences and what they hid.
    pub silences: Vec<Note>,
    /// "2 unreadable messages on failures.whatsapp-intake are in quarantine."
    pub unreadable: Vec<Note>,
    /// What Matins itself missed.
    pub service: Vec<Note>,
    /// What only a longer window shows; weekly.
    pub patterns: Patterns,
    /// Every event accounted for, and where to read on.
    pub footer: Footer,
    #[serde(skip)]
    pub(super) empty: bool,
    #[serde(skip)]
    pub(super) counts: DigestCounts,
}

impl DigestView {
    /// Whether there is nothing to tell: no event and no unreadable message arrived, and nothing is open or late.
    pub fn is_empty(&self) -> bool {
        self.empty
    }

    /// The balance of its footer.
    pub fn counts(&self) -> &DigestCounts {
        &self.counts
    }
}

/// Where the events of a window went. `received` is always the sum of the rest.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, serde::Deserialize)]
pub struct DigestCounts {
    /// Events of the window, of any type, that are routed to this digest. Unreadable messages are no events.
    pub received: u64,
    /// Failures whose cause has a line of its own in this digest.
    pub listed: u64,
    /// Everything else that is told by totals only.
    pub folded: u64,
    /// Hidden, by silence id.
    pub silenced: BTreeMap<String, u64>,
    /// Of paged incidents, later failures included.
    pub paged: u64,
}

impl DigestCounts {
    /// What the rows of the footer add up to.
    pub fn sum(&self) -> u64 {
        self.listed + self.folded + self.paged + self.silenced.values().sum::<u64>()
    }
}

/// A list with its heading.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Section<T> {
    /// What stands beside the heading: "2 of 5 causes"; may be empty.
    pub note: String,
    /// The items that are shown.
    pub items: Vec<T>,
    /// "And 12 more." or empty.
    pub more: String,
}

/// The window, written out.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct WindowView {
    /// RFC 3339, UTC.
    pub start: String,
    /// RFC 3339, UTC.
    pub end: String,
    /// "Tue 17 Nov 10:00 to Wed 18 Nov 10:00 IST"
    pub text: String,
    /// `IST`
    pub zone: String,
    /// Local time of its end: "10:00".
    pub clock: String,
}

/// The top of a digest.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Headline {
    /// "Nothing needs you. 3 things to look at."
    pub verdict: String,
    /// "Nothing needs you, 3 to look at"
    pub subject: String,
    /// What happened, in one or two sentences.
    pub lede: String,
    /// The items, for the line that mail clients show beside the subject.
    pub preheader: String,
}

/// A named address.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Link {
    /// What opens.
    pub text: String,
    /// Where.
    pub url: String,
}

/// Whom to ask and where to click.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Contact {
    /// "Asha Rao" or "none set".
    pub owner: String,
    /// `money`, `compliance` or empty.
    pub domain: String,
    /// The address that matters most; may be empty.
    pub url: String,
    /// All of them, that one first.
    pub links: Vec<Link>,
}

/// An incident that was paged.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct PageItem {
    /// "14 orders have not reached hubspot for 1 h 12 min", without full stop.
    pub text: String,
    /// What became of it, as sentences.
    pub detail: String,
    /// Number of the page.
    pub number: i64,
    /// Whom to ask.
    #[serde(flatten)]
    pub contact: Contact,
}

/// Something to look at.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct UrgentItem {
    /// 1, 2, 3 …
    pub rank: usize,
    /// The bold half, without full stop.
    pub text: String,
    /// What follows it directly: "(oldest: lead-8812)" or empty.
    pub aside: String,
    /// The rest, as sentences; may be empty.
    pub detail: String,
    /// Its workflow.
    pub workflow: String,
    /// Whom to ask.
    #[serde(flatten)]
    pub contact: Contact,
}

/// Something to do, and the number that it follows from.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct ActionItem {
    /// "Check the credentials and the quota at clearbit.", with full stop.
    pub text: String,
    /// "34 of 96 dead letters (35 %) are its 402.", with full stop.
    pub reason: String,
    /// Whom to ask.
    #[serde(flatten)]
    pub contact: Contact,
}

/// Causes by what is known of them.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Causes {
    /// First seen in this window, or back after they were resolved.
    pub new: Section<CauseItem>,
    /// Seen before.
    pub known: Section<CauseItem>,
}

/// A cause with a line of its own.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct CauseItem {
    /// `NEW`, `REGRESSED` or empty.
    pub mark: String,
    /// The cause: `v1:…`.
    pub fingerprint: String,
    /// Its workflow.
    pub workflow: String,
    /// Its step; may be empty.
    pub step: String,
    /// A message as it came, on one line.
    pub sample: String,
    /// How often.
    pub count: String,
    /// The same at the right of 4 columns, for text.
    pub count_lines: String,
    /// "11 times, 3 dead letters"
    pub short: String,
    /// "LLM output, 11 times since Tue 18:22, from openai. 3 orders are dead letters." as sentences.
    pub detail: String,
    /// "first seen 2 Nov"
    pub seen: String,
    /// Whom to ask.
    #[serde(flatten)]
    pub contact: Contact,
}

/// Headline numbers.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Numbers {
    /// "against the day before"
    pub note: String,
    /// One tile each.
    pub items: Vec<Tile>,
    /// The same in fewer words, for two columns; without what can't be known.
    pub short: Vec<ShortNumber>,
    /// The same as lines of text.
    pub table_lines: String,
}

/// A number with its name.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Tile {
    /// "Dead letters open"
    pub label: String,
    /// "17", or "?" when it can't be known.
    pub value: String,
    /// "↑ from 7"
    pub change: String,
}

/// A number that begins a phrase.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct ShortNumber {
    /// "116"
    pub value: String,
    /// "failures in 1,231 runs, ↑ from 71"
    pub text: String,
}

/// Plots, as numbers and as words.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct PlotView {
    /// Failures over time.
    pub failures: Plot,
    /// Open dead letters over time.
    pub open: Plot,
    /// What the bands of the failures are.
    pub legend: Vec<LegendItem>,
    /// Failures by class, most first, with bars for text.
    pub classes: Vec<ClassBar>,
    /// The same as lines of text.
    pub classes_lines: String,
    /// By hour and weekday; weekly.
    pub heat: Heat,
    #[serde(skip)]
    pub(super) stacks: Vec<[u64; crate::render::plot::BAND_COUNT]>,
    #[serde(skip)]
    pub(super) levels: Vec<u64>,
    #[serde(skip)]
    pub(super) week: Option<Box<[[u64; 24]; 7]>>,
}

/// One plot.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Plot {
    /// Content-ID of its picture; empty when there is nothing to show.
    pub cid: String,
    /// "Failures by hour"
    pub title: String,
    /// "Most: 28 between 22:00 and 23:00"
    pub note: String,
    /// Both in two columns, for text.
    pub heading_lines: String,
    /// The numbers in a sentence, for those who do not see the picture.
    pub alt: String,
    /// The number at the top of the axis.
    pub top: String,
    /// Labels below the picture, from its left.
    pub labels: Vec<PlotLabel>,
    /// The same in Unicode bars with their labels, for text.
    pub bars_lines: String,
    /// The same for narrow places, one sign a bucket.
    pub short_lines: String,
}

/// A label of a time axis.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct PlotLabel {
    /// "14:00"
    pub text: String,
    /// Its share of the axis, in per cent with two decimals.
    pub width: String,
}

/// A band of the plot of failures.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct LegendItem {
    /// `■`
    pub symbol: String,
    /// `#858B96`
    pub colour: String,
    /// "92"
    pub count: String,
    /// "retried: transient, rate limited"
    pub text: String,
}

/// Failures of one class.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct ClassBar {
    /// "rate limited"
    pub class: String,
    /// "20"
    pub count: String,
    /// `███`
    pub bar: String,
}

/// Failures by hour and weekday.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Heat {
    /// Content-ID of its picture; empty when there is none.
    pub cid: String,
    /// Content-ID of its key.
    pub key_cid: String,
    /// The numbers in a sentence.
    pub alt: String,
    /// What stands out: "64 of 684 fell on Tue between 21:00 and 22:00."
    pub note: String,
    /// One row a weekday for text.
    pub rows: Vec<HeatRow>,
    /// The same as lines of text.
    pub rows_lines: String,
}

/// A weekday of the heat map.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct HeatRow {
    /// "Mon"
    pub day: String,
    /// 24 signs.
    pub bars: String,
    /// "119"
    pub count: String,
}

/// The table of workflows.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct WorkflowTable {
    /// "9", or "20 of 120, most failures first".
    pub note: String,
    /// Its rows.
    pub items: Vec<WorkflowRow>,
    /// "And 95 more with 190 failures: wf-025, …" or empty.
    pub more: String,
    /// The sums, of all workflows, shown or not.
    pub total: WorkflowRow,
    /// What `?` and the headings mean.
    pub legend: String,
    /// The rows and the sums as lines of text, 72 columns.
    pub table_lines: String,
    /// The first busy rows in at most 34 columns.
    pub narrow_lines: String,
}

/// One workflow.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct WorkflowRow {
    /// Its name.
    pub name: String,
    /// "409", or "?" when it does not report runs.
    pub runs: String,
    /// "58"
    pub failures: String,
    /// "+45", against the window before; empty without one.
    pub change: String,
    /// Failures that nobody retries: "14".
    pub final_failures: String,
    /// Open dead letters: "9".
    pub open: String,
    /// Whether `open` is more than 0.
    pub has_open: bool,
    /// Age of the oldest: "26 h" or "–".
    pub oldest: String,
    /// "58 transient", "0 failures in 96 runs" or "not heard for 31 h".
    pub detail: String,
    /// "409 runs"; empty when `detail` says it.
    pub runs_text: String,
    /// Address of its runbook; may be empty.
    pub runbook: String,
    /// Whom to ask.
    #[serde(flatten)]
    pub contact: Contact,
}

/// Open dead letters of one cause.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct LetterItem {
    /// Age of the oldest: "26 h".
    pub age: String,
    /// The same at the left of 4 columns, for text.
    pub age_lines: String,
    /// "lead-8812"
    pub item: String,
    /// "and 8 more" or empty.
    pub others: String,
    /// "9"
    pub count: String,
    /// Their message.
    pub sample: String,
    /// Their workflow.
    pub workflow: String,
    /// Whom to ask.
    #[serde(flatten)]
    pub contact: Contact,
}

/// What was healed.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Recoveries {
    /// "44 of 74"; empty when nothing was healed and nothing given up.
    pub note: String,
    /// In sentences.
    pub text: String,
    /// By what worked, most first.
    pub items: Vec<RecoveryRow>,
    /// Whether any recovery said which try it was.
    pub has_tries: bool,
    /// The same as lines of text.
    pub table_lines: String,
}

/// One strategy.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct RecoveryRow {
    /// "Retry"
    pub strategy: String,
    /// "370"
    pub count: String,
    /// "1.6"; "?" when none of these said, empty when none of any strategy did.
    pub tries: String,
    /// "3 min 19 s", or "?" when nobody said.
    pub time: String,
}

/// Who was heard.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Heard {
    /// "8 of 9"; empty when there are no workflows.
    pub note: String,
    /// "nightly-backup, for 31 h." or empty.
    pub missing: String,
    /// "8 workflows, 1,231 runs." and what went without a failure.
    pub text: String,
}

/// A sentence whose first words stand out.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Note {
    /// The first words: "Silence S-7".
    pub lead: String,
    /// The rest, with full stop.
    pub text: String,
    /// What may stand on a line of its own, with full stop; may be empty.
    pub more: String,
    /// Where to read on.
    pub links: Vec<Link>,
}

/// What only a longer window shows.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Patterns {
    /// "Repeat offender." and the like.
    pub items: Vec<Note>,
    /// Downstreams with most failures.
    pub downstreams: Section<DownstreamRow>,
    /// Failures of language models, by class.
    pub llm: Section<LlmRow>,
    /// The downstreams as lines of text.
    pub downstreams_lines: String,
    /// The failures of language models as lines of text.
    pub llm_lines: String,
    /// Error budgets, worst first; of windows of about a week and more.
    pub budgets: Budgets,
}

/// What is left of error budgets.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Budgets {
    /// "30 days", when all have the same period; else rows name theirs.
    pub note: String,
    /// Its rows.
    pub items: Vec<BudgetRow>,
    /// "And 12 more." or empty.
    pub more: String,
    /// Workflows without a row, and why; may be empty.
    pub rest: String,
    /// The rows as lines of text.
    pub table_lines: String,
}

/// The error budget of one workflow.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct BudgetRow {
    /// Its name.
    pub workflow: String,
    /// "99.5 %"
    pub objective: String,
    /// Failed runs of those that the budget allows: "88 of 128".
    pub spent: String,
    /// The same in whole per cent, 100 at most: "69".
    pub spent_percent: String,
    /// "31 % left, lasts 12 days at this week’s pace"
    pub left: String,
}

/// One downstream.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct DownstreamRow {
    /// Its name.
    pub downstream: String,
    /// "61"
    pub failures: String,
    /// "34"
    pub final_failures: String,
    /// Its share of all failures that name a downstream: "6.2 %".
    pub share: String,
    /// "lead-enrichment and 2 more"
    pub workflows: String,
}

/// One class of failures of language models.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct LlmRow {
    /// "LLM refusal"
    pub class: String,
    /// "9"
    pub failures: String,
    /// "7"
    pub final_failures: String,
    /// "support-triage and 1 more"
    pub workflows: String,
}

/// The end of a digest.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Footer {
    /// What `received` is made of.
    pub rows: Vec<FooterRow>,
    /// "133"
    pub received: String,
    /// The balance as lines of text.
    pub balance_lines: String,
    /// "133 received = 26 listed + 78 folded + 15 silenced by S-7 + 14 paged"
    pub line: String,
    /// "Times are IST (Asia/Kolkata)."
    pub zone: String,
    /// Why this receiver reads it.
    pub reason: String,
    /// This digest on the web.
    pub url: String,
    /// Why an event was not told.
    pub explain_url: String,
    /// Routes.
    pub routes_url: String,
}

/// A row of the balance.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct FooterRow {
    /// "Silenced by S-7"
    pub label: String,
    /// "15"
    pub count: String,
}
