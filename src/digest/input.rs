//! What a digest is composed from: plain data that was read from the store, and nothing that is read later.
//! Sentences, orders and caps are `compose`'s work.

use crate::event::{Class, Disposition, EventType, Fingerprint};
use crate::name::{DigestName, RouteName, WorkflowName};
use crate::workflow::Domain;
use chrono::{DateTime, Utc};
use chrono_tz::Tz;
use foldhash::{HashMap, HashSet};
use std::borrow::Borrow;
use std::collections::BTreeMap;
use std::time::Duration;

/// Causes of open dead letters that are named.
pub const LETTERS_MAX: usize = 10;

/// A half-open span of arrival time: `start_at` is inside, `end_at` is not.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Window {
    /// First instant inside.
    pub start_at: DateTime<Utc>,
    /// First instant after it.
    pub end_at: DateTime<Utc>,
}

impl Window {
    /// How long it is, in seconds; a window is never shorter than one second.
    pub fn seconds(&self) -> u64 {
        (self.end_at - self.start_at).num_seconds().max(1).unsigned_abs()
    }

    /// Whether it is long enough for error budgets to be told: about a week at least.
    pub fn tells_budgets(&self) -> bool {
        self.seconds() >= 6 * 86_400
    }

    /// What a window of about this length is called; a day may be an hour shorter or longer, when clocks change.
    pub fn period(&self) -> &'static str {
        match self.seconds() / 60 {
            55..=65 => "hour",
            1_380..=1_500 => "day",
            10_020..=10_140 => "week",
            _ => "window",
        }
    }
}

/// Everything that one digest to one receiver is composed from.
///
/// All counts cover what is routed to this digest and receiver, and nothing else.
#[derive(Clone, Debug)]
pub struct DigestInput {
    /// `hourly`, `daily` and `weekly` have forms of their own; every other name is composed as `daily`.
    pub digest: DigestName,
    /// Who reads it: a receiver's name, or the address of an owner.
    pub receiver: String,
    /// Names of the routes that send this digest to this receiver, in config order; shown in the footer.
    pub routes: Vec<RouteName>,
    /// What it covers.
    pub window: Window,
    /// The numbers of the window before, of the same length; none when Matins did not run then.
    pub previous: Option<Totals>,
    /// The slot at which it is due.
    pub due_at: DateTime<Utc>,
    /// Set when it comes late.
    pub late: Option<Late>,
    /// Why it is incomplete, as a sentence without full stop: "214 messages before 10:00 are still unread".
    pub incomplete: Option<String>,
    /// Zone of all times shown.
    pub zone: Tz,
    /// Its notification number, shown as `#216`.
    pub number: i64,
    /// Base of all links, without a slash at its end.
    pub public_url: String,
    /// What arrived, counted; each event of the window is in exactly one cell.
    pub cells: Vec<Cell>,
    /// Open dead letters at the end of the window of the workflows that it has [news](Self::news) of, one entry a workflow and
    /// fingerprint, oldest first. Those of others may be left out: they are only counted.
    pub open_letters: Vec<LetterGroup>,
    /// Open dead letters that `open_letters` leaves out.
    pub older_letters: OlderLetters,
    /// Dead letters that came and went; whole, whatever `open_letters` leaves out.
    pub letter_flow: LetterFlow,
    /// Workflows of the newest dead letters, newest first, at most 20; of letters that arrived before the window's end.
    pub last_letters: Vec<WorkflowName>,
    /// What is known about causes: all that are in `cells` as failures, and of `open_letters` those that are named: the oldest
    /// [`LETTERS_MAX`], and what is the only cause of its workflow.
    pub fingerprints: BTreeMap<Fingerprint, FingerprintInfo>,
    /// Failures by downstream and workflow; the weekly digest alone needs it.
    pub downstreams: Vec<DownstreamCount>,
    /// Incidents that are open at the end of the window, or were opened or resolved in it.
    pub pages: Vec<PageRecord>,
    /// Firing symptoms, most urgent first.
    pub urgent: Vec<SymptomLine>,
    /// Error budgets at the end of the window, in any order; only a window that [tells](Window::tells_budgets) them needs any.
    pub budgets: Vec<BudgetLine>,
    /// Messages that could not be decoded, by subject.
    pub unreadable: Vec<UnreadableLine>,
    /// Silences that hid something in the window (their ids occur in `Fate::Silenced`).
    pub silences: Vec<SilenceLine>,
    /// What Matins itself missed, a sentence each with its full stop; empty means that it missed nothing.
    pub service: Vec<String>,
    /// Every workflow that occurs above, and every one of config that is routed here and expected to be heard.
    pub workflows: HashMap<WorkflowName, WorkflowInfo>,
    /// Events of the window that arrived an hour or more after they happened.
    pub late_count: u64,
}

impl DigestInput {
    /// Workflows that the window has news of: an event that no silence hid, a dead letter, an incident or a firing symptom.
    pub fn news(&self) -> HashSet<&WorkflowName> {
        let heard = self.cells.iter().filter(|c| !c.is_silenced()).map(|c| &c.workflow);
        let fresh = self.open_letters.iter().filter(|g| g.new_count > 0).map(|g| &g.workflow);
        let paged = self.pages.iter().flat_map(|p| &p.workflows);
        let firing = self.urgent.iter().map(|s| &s.workflow);
        heard.chain(fresh).chain(paged).chain(firing).collect()
    }
}

/// Open dead letters that are counted and not named, because nothing is new of their workflows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct OlderLetters {
    /// How many.
    pub count: u64,
    /// Their causes.
    pub causes_count: u64,
}

/// Why a digest comes after its slot.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Late {
    /// Slots that this one digest covers, at least 1.
    pub slots_count: u32,
    /// When Matins was away, if that is the cause.
    pub away: Option<Window>,
}

/// Events that are alike, counted. A digest may be given several cells with the same key: they add up.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cell {
    /// Arrival, to the minute or to the start of a bucket; used for plots only, clamped to the window.
    pub at: DateTime<Utc>,
    /// The workflow.
    pub workflow: WorkflowName,
    /// Failure, recovery …
    pub event_type: EventType,
    /// Kind of fault; `unclassified` when it is no failure.
    pub class: Class,
    /// What became of it; `skipped` when it is no failure.
    pub disposition: Disposition,
    /// The cause.
    pub fingerprint: Fingerprint,
    /// What was decided about telling it.
    pub fate: Fate,
    /// Events.
    pub count: u64,
    /// Of `outcome` events: good runs.
    pub ok_count: u64,
    /// Of `outcome` events: failed runs.
    pub failed_count: u64,
    /// Of `recovery` events: what worked.
    pub strategy: Option<String>,
    /// Of `recovery` events: how many of `count` say how long it took.
    pub took_count: u64,
    /// Of `recovery` events: their times added up, in ms.
    pub took_ms_sum: u64,
    /// Of `recovery` events: how many of `count` say which attempt it was.
    pub attempts_count: u64,
    /// Of `recovery` events: their attempts added up.
    pub attempts_sum: u64,
}

impl Cell {
    /// A cell of `count` events that carry nothing but their key.
    pub fn failures(
        at: DateTime<Utc>,
        workflow: WorkflowName,
        class: Class,
        disposition: Disposition,
        fingerprint: Fingerprint,
        count: u64,
    ) -> Self {
        Self {
            at,
            workflow,
            event_type: EventType::Failure,
            class,
            disposition,
            fingerprint,
            fate: Fate::Digest,
            count,
            ok_count: 0,
            failed_count: 0,
            strategy: None,
            took_count: 0,
            took_ms_sum: 0,
            attempts_count: 0,
            attempts_sum: 0,
        }
    }

    /// Whether a silence hid its events.
    pub fn is_silenced(&self) -> bool {
        match self.fate {
            Fate::Silenced(_) => true,
            Fate::Digest | Fate::Paged(_) => false,
        }
    }

    /// Whether its events are failures that nobody retries any more.
    pub fn is_final_failure(&self) -> bool {
        self.is_failure()
            && match self.disposition {
                Disposition::DeadLettered | Disposition::Failed => true,
                Disposition::Retrying | Disposition::Skipped => false,
            }
    }

    /// Whether its events are failures; what waits for a human is none.
    pub fn is_failure(&self) -> bool {
        self.event_type == EventType::Failure && self.class != Class::Interrupted
    }
}

/// What became of an event, as decided when it was taken in.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Fate {
    /// This digest is the one to tell it.
    Digest,
    /// Hidden by the silence of this id.
    Silenced(String),
    /// It opened, or joined, the incident of this id, which was paged.
    Paged(String),
}

/// The numbers of a window, for comparison. `Totals::measure` makes them from the same data as a digest's own.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Totals {
    /// Finished runs; none when no outcome was heard.
    pub runs: Option<u64>,
    /// Failures, retried ones included, silenced ones not.
    pub failures: u64,
    /// Failures that nobody retries any more.
    pub final_failures: u64,
    /// Recoveries.
    pub recoveries: u64,
    /// Recoveries that say how long it took.
    pub took_count: u64,
    /// Their times added up, in ms.
    pub took_ms_sum: u64,
    /// Dead letters that came.
    pub letters_opened: u64,
    /// Dead letters that were resolved.
    pub letters_resolved: u64,
    /// Dead letters open at the end.
    pub letters_open: u64,
    /// Incidents paged in the window.
    pub pages: u64,
    /// Failures by workflow.
    pub failures_by_workflow: BTreeMap<WorkflowName, u64>,
}

impl Totals {
    /// Adds up what a window holds. `pages` is the number of incidents that were opened in it.
    pub fn measure(cells: impl Iterator<Item = impl Borrow<Cell>>, flow: &LetterFlow, pages: u64) -> Self {
        let mut sums: HashMap<WorkflowName, WorkflowSums> = HashMap::default();
        for cell in cells {
            let cell = cell.borrow();
            match sums.get_mut(&cell.workflow) {
                Some(sums) => sums.add(cell),
                None => sums.entry(cell.workflow.clone()).or_default().add(cell),
            }
        }
        Self::of(sums.iter(), flow, pages)
    }

    /// Adds up workflows.
    pub(super) fn of<'s>(
        workflows: impl Iterator<Item = (&'s WorkflowName, &'s WorkflowSums)>,
        flow: &LetterFlow,
        pages: u64,
    ) -> Self {
        let mut totals = Self {
            letters_opened: flow.opened_count,
            letters_resolved: flow.resolved_count,
            letters_open: flow.open_at_end,
            pages,
            ..Self::default()
        };
        for (workflow, sums) in workflows {
            totals.add(workflow, sums);
        }
        totals
    }

    fn add(&mut self, workflow: &WorkflowName, sums: &WorkflowSums) {
        self.runs = self.runs.into_iter().chain(sums.runs()).reduce(|a, b| a + b);
        self.failures += sums.failures();
        self.final_failures += sums.final_failures();
        self.recoveries += sums.recoveries;
        self.took_count += sums.took_count;
        self.took_ms_sum += sums.took_ms_sum;
        if sums.failures() > 0 {
            self.failures_by_workflow.insert(workflow.clone(), sums.failures());
        }
    }
}

/// The cells of one workflow added up, silenced ones left out.
#[derive(Clone, Debug, Default)]
pub(super) struct WorkflowSums {
    reports: u64,
    good: u64,
    /// Failed runs that it reports.
    reported: u64,
    failures: u64,
    final_failures: u64,
    recoveries: u64,
    took_count: u64,
    took_ms_sum: u64,
}

impl WorkflowSums {
    pub fn add(&mut self, cell: &Cell) {
        if cell.is_silenced() {
            return;
        }
        self.reported += cell.failed_count;
        self.failures += if cell.is_failure() { cell.count } else { 0 };
        self.final_failures += if cell.is_final_failure() { cell.count } else { 0 };
        match cell.event_type {
            EventType::Outcome => {
                self.reports += cell.count;
                self.good += cell.ok_count;
            }
            EventType::Recovery => {
                self.recoveries += cell.count;
                self.took_count += cell.took_count;
                self.took_ms_sum += cell.took_ms_sum;
            }
            EventType::Failure | EventType::Heartbeat | EventType::Resolution | EventType::Breaker => {}
        }
    }

    /// Finished runs: good ones, recoveries, and final failures. None when it reports no outcome: failures alone do not say how many ran.
    pub fn runs(&self) -> Option<u64> {
        (self.reports > 0).then(|| self.good + self.recoveries + self.final_failures())
    }

    pub fn failures(&self) -> u64 {
        self.failures + self.reported_only()
    }

    pub fn final_failures(&self) -> u64 {
        self.final_failures + self.reported_only()
    }

    /// Failed runs that only reports know of: a producer may send events of failures, or counts, or both.
    fn reported_only(&self) -> u64 {
        self.reported.saturating_sub(self.final_failures)
    }
}

/// Open dead letters of one workflow and one cause.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LetterGroup {
    /// The workflow.
    pub workflow: WorkflowName,
    /// The cause.
    pub fingerprint: Fingerprint,
    /// How many are open at the end of the window, at least 1.
    pub count: u64,
    /// How many of them are there only since the window began.
    pub new_count: u64,
    /// When the oldest became a dead letter.
    pub oldest_at: DateTime<Utc>,
    /// Item of the oldest.
    pub oldest_item: Option<String>,
    /// Id of the oldest, as `matins dead-letters` lists it.
    pub oldest_id: String,
}

/// Dead letters of the workflows of this digest, over the window.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LetterFlow {
    /// Open when the window began.
    pub open_at_start: u64,
    /// Came in the window.
    pub opened_count: u64,
    /// Resolved in the window.
    pub resolved_count: u64,
    /// Of those, resolved because a redrive went through.
    pub redriven_count: u64,
    /// Open when the window ended.
    pub open_at_end: u64,
    /// By workflow; a workflow without an entry has none.
    pub by_workflow: HashMap<WorkflowName, LetterCount>,
    /// Changes in time order, for the plot; to the minute or to the start of a bucket.
    pub steps: Vec<LetterStep>,
}

/// Dead letters of one workflow.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LetterCount {
    /// Came in the window.
    pub opened_count: u64,
    /// Resolved in the window.
    pub resolved_count: u64,
    /// Open when the window ended.
    pub open_count: u64,
    /// When the oldest open one became a dead letter.
    pub oldest_at: Option<DateTime<Utc>>,
}

/// A change of the number of open dead letters.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LetterStep {
    /// When.
    pub at: DateTime<Utc>,
    /// Came.
    pub opened_count: u64,
    /// Were resolved.
    pub resolved_count: u64,
}

/// What is known of a cause.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FingerprintInfo {
    /// Its workflow.
    pub workflow: WorkflowName,
    /// Its step.
    pub step: Option<String>,
    /// Its class.
    pub class: Class,
    /// Type or code of its error.
    pub error_type: Option<String>,
    /// A message of the window as it came, else the newest one.
    pub sample: String,
    /// The message with ids and numbers left out.
    pub pattern: String,
    /// Id of the event that the sample is of, for a link.
    pub sample_event_id: Option<String>,
    /// Downstream of the sample.
    pub downstream: Option<String>,
    /// First event ever.
    pub first_seen_at: DateTime<Utc>,
    /// First event inside the window.
    pub first_in_window_at: Option<DateTime<Utc>>,
    /// Last event before the window.
    pub last_seen_before_at: Option<DateTime<Utc>>,
    /// When all of its dead letters were resolved, if that was before its first event in the window.
    pub resolved_at: Option<DateTime<Utc>>,
}

/// Failures of one downstream in one workflow.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DownstreamCount {
    /// The downstream.
    pub downstream: String,
    /// The workflow.
    pub workflow: WorkflowName,
    /// Failures, retried ones included.
    pub failures_count: u64,
    /// Of those, final ones.
    pub final_count: u64,
}

/// Where an incident stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PageState {
    /// Nobody has it.
    Open,
    /// Somebody has it.
    Acknowledged,
    /// Over.
    Resolved,
}

/// An incident of protected workflows that was paged.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PageRecord {
    /// Id, as in `Fate::Paged`.
    pub incident_id: String,
    /// Number of the page, shown as `#212`.
    pub number: i64,
    /// The workflows it covers, at least one.
    pub workflows: Vec<WorkflowName>,
    /// Class of its first failure.
    pub class: Class,
    /// When it was opened.
    pub opened_at: DateTime<Utc>,
    /// When a person took it.
    pub acknowledged_at: Option<DateTime<Utc>>,
    /// When it was over.
    pub resolved_at: Option<DateTime<Utc>>,
    /// Where it stands at the end of the window.
    pub state: PageState,
    /// Its events, over all time.
    pub events_count: u64,
    /// Its items, over all time.
    pub items_count: u64,
    /// Its dead letters that are still open.
    pub open_letters_count: u64,
    /// What the page said last, without full stop: "14 orders have not reached hubspot for 1 h 12 min".
    pub sentence: String,
}

/// A firing symptom.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SymptomLine {
    /// The half that is set in bold: who and how much, without full stop.
    pub text: String,
    /// The rest, as sentences with full stops; may be empty.
    pub detail: String,
    /// Its workflow.
    pub workflow: WorkflowName,
    /// Where it can be read, below the public address: `symptoms/82`.
    pub path: Option<String>,
}

/// The error budget of one workflow by one rule.
#[derive(Clone, Debug, PartialEq)]
pub struct BudgetLine {
    /// Name of the rule.
    pub rule: String,
    /// Its workflow.
    pub workflow: WorkflowName,
    /// `99.5 %`
    pub objective: String,
    /// Period of the objective.
    pub period: Duration,
    /// Failed runs of the period.
    pub failed: u64,
    /// Failed runs of the last 7 days.
    pub failed_lately: u64,
    /// Failed runs that the objective allows in the period.
    pub allowed: f64,
    /// Share of the budget that is left, below 0 when more than all is spent; none when nothing is known.
    pub share_left: Option<f64>,
    /// How much of the period is known.
    pub known: Duration,
}

impl BudgetLine {
    /// Whether it is less than one failure: such a workflow is judged run by run.
    pub fn is_too_small(&self) -> bool {
        self.allowed < 1.0
    }
}

/// Messages of one subject that could not be decoded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnreadableLine {
    /// The NATS subject.
    pub subject: String,
    /// How many came in the window.
    pub count: u64,
}

/// A silence that hid something.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SilenceLine {
    /// Its id, as in `Fate::Silenced`.
    pub id: String,
    /// Why it is there.
    pub reason: String,
    /// Who asked for it.
    pub by: String,
    /// When it ends or ended.
    pub until: DateTime<Utc>,
}

/// A workflow as config and the last sign of life describe it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct WorkflowInfo {
    /// `Asha Rao <asha@example.com>`, as written in config.
    pub owner: Option<String>,
    /// Money, compliance or standard.
    pub domain: Domain,
    /// An http(s) address.
    pub runbook: Option<String>,
    /// Singular noun of one item, such as `order`.
    pub item_noun: Option<String>,
    /// Last event of any type before the end of the window.
    pub last_heard_at: Option<DateTime<Utc>>,
    /// A run, outcome or heartbeat is expected this often.
    pub every: Option<Duration>,
    /// How late it may be.
    pub grace: Duration,
}
