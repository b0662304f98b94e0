//! What a reader is to do something about: open incidents, firing symptoms, workflows that are not heard, dead letters that
//! wait, and the verdict over them. Worst first, capped.

use super::input::{LetterGroup, PageRecord, PageState, SymptomLine};
use super::tally::{Hearing, Tally, WorkflowTally, and_more, name_some};
use super::view::{Contact, Headline, Link, PageItem, Section, UrgentItem};
use crate::event::Class;
use crate::name::WorkflowName;
use crate::render::words;
use foldhash::{HashMap, HashSet};
use std::cmp::Reverse;
use std::collections::BTreeSet;
use std::time::Duration;

const URGENT_MAX: usize = 5;
const PAGES_MAX: usize = 10;
const OWNERS_MAX: usize = 4;
/// A dead letter that waited so long is worth a look, however old the window in which it came.
const LONG_WAIT: Duration = Duration::from_hours(24);
/// Windows from this length on remind of dead letters that nothing is new of; in shorter ones that would be a nag.
const REMINDING: Duration = Duration::from_hours(12);

/// What needs a person, before it is capped.
pub(super) struct Attention {
    pub needs_you: Section<PageItem>,
    pub urgent: Section<UrgentItem>,
    pub closed: Section<PageItem>,
    needs_you_count: usize,
    urgent_count: usize,
}

impl Attention {
    pub fn new(tally: &Tally<'_>) -> Self {
        let (open, closed): (Vec<_>, Vec<_>) = tally.input.pages.iter().partition(|p| p.state != PageState::Resolved);
        let paged: HashSet<_> = open.iter().flat_map(|p| &p.workflows).collect();
        let candidates = list_urgent(tally, &paged);
        let urgent_count = candidates.len();
        // Wording all of many takes longer than choosing among them.
        let mut urgent: Vec<_> = candidates.iter().filter_map(|c| c.item(tally)).take(URGENT_MAX).collect();
        for (index, item) in urgent.iter_mut().enumerate() {
            item.rank = index + 1;
        }
        Self {
            needs_you: section(tally, &open, open_page),
            closed: Section { note: words::noun(closed.len() as u64, "page"), ..section(tally, &closed, closed_page) },
            urgent: Section { note: String::new(), more: and_more(urgent.len(), urgent_count), items: urgent },
            needs_you_count: open.len(),
            urgent_count,
        }
    }

    /// Whether nobody has to do anything.
    pub fn is_quiet(&self) -> bool {
        self.needs_you_count == 0 && self.urgent_count == 0
    }

    /// The verdict, with `lede` below it.
    pub fn headline(&self, lede: String) -> Headline {
        let (needs, look) = (self.needs_you_count as u64, self.urgent_count as u64);
        let verb = if needs == 1 { "needs" } else { "need" };
        let (needs_short, needs) = match needs {
            0 => ("Nothing needs you".to_owned(), "Nothing needs you.".to_owned()),
            n => (format!("{} {verb} you", words::count(n)), format!("{} {verb} you.", words::noun(n, "thing"))),
        };
        let (look_short, look) = match look {
            0 => ("nothing to look at".to_owned(), "Nothing to look at.".to_owned()),
            n => (format!("{} to look at", words::count(n)), format!("{} to look at.", words::noun(n, "thing"))),
        };
        Headline {
            verdict: format!("{needs} {look}"),
            subject: format!("{needs_short}, {look_short}"),
            preheader: self.preheader(&lede),
            lede,
        }
    }

    fn preheader(&self, lede: &str) -> String {
        let pages = self.needs_you.items.iter().map(|p| format!("{}.", p.text));
        let items = self.urgent.items.iter().map(|u| format!("{}.", u.text));
        let all: Vec<String> = pages.chain(items).collect();
        if all.is_empty() { lede.to_owned() } else { all.join(" ") }
    }
}

fn section(
    tally: &Tally<'_>,
    pages: &[&PageRecord],
    item: impl Fn(&Tally<'_>, &PageRecord) -> PageItem,
) -> Section<PageItem> {
    let items: Vec<_> = pages.iter().take(PAGES_MAX).map(|p| item(tally, p)).collect();
    Section { note: String::new(), more: and_more(items.len(), pages.len()), items }
}

fn open_page(tally: &Tally<'_>, page: &PageRecord) -> PageItem {
    let mut detail = Vec::new();
    if page.class == Class::OutcomeUnknown {
        detail.push("What was sent may have been done: compare before a redrive.".to_owned());
    }
    detail.push(match page.acknowledged_at {
        Some(at) => format!("Acknowledged {}, still open.", tally.time(at)),
        None => format!("Paged {}; nobody has acknowledged it.", tally.time(page.opened_at)),
    });
    page_item(tally, page, detail.join(" "))
}

fn closed_page(tally: &Tally<'_>, page: &PageRecord) -> PageItem {
    let acknowledged = match page.acknowledged_at {
        Some(at) => format!("acknowledged after {}", words::duration(words::between(page.opened_at, at))),
        None => "not acknowledged".to_owned(),
    };
    let resolved = match page.resolved_at {
        Some(at) => {
            let after = words::duration(words::between(page.opened_at, at));
            format!("resolved {} after {after}", tally.time(at))
        }
        None => "resolved".to_owned(),
    };
    page_item(tally, page, format!("Paged {}, {acknowledged}, {resolved}.", tally.time(page.opened_at)))
}

fn page_item(tally: &Tally<'_>, page: &PageRecord, detail: String) -> PageItem {
    let url = tally.url(&format!("incidents/{}", page.incident_id), &[]);
    let mut links = vec![Link { text: format!("Incident #{}", page.number), url }];
    if page.open_letters_count > 0 {
        links.push(tally.letters_link(page.open_letters_count, &[("incident", &page.incident_id)]));
    }
    let contact = page.workflows.first().map(|w| tally.contact(w, links)).unwrap_or_default();
    let text = page.sentence.trim_end_matches('.').to_owned();
    PageItem { text, detail, number: page.number, contact }
}

/// Something to look at, not worded yet.
enum Candidate<'a> {
    Symptom(&'a SymptomLine),
    Silent(&'a WorkflowName, Hearing),
    Waiting(Waiting<'a>),
    Backlog(UrgentItem),
}

impl Candidate<'_> {
    fn item(&self, tally: &Tally<'_>) -> Option<UrgentItem> {
        match self {
            Self::Symptom(symptom) => Some(symptom_item(tally, symptom)),
            Self::Silent(workflow, hearing) => silent_item(tally, workflow, *hearing),
            Self::Waiting(waiting) => Some(waiting_item(tally, waiting)),
            Self::Backlog(item) => Some(item.clone()),
        }
    }
}

/// Symptoms first, as they are given; then what is not heard; then dead letters of workflows that no symptom speaks of.
fn list_urgent<'a>(tally: &Tally<'a>, paged: &HashSet<&WorkflowName>) -> Vec<Candidate<'a>> {
    let mut candidates: Vec<_> = tally.input.urgent.iter().map(Candidate::Symptom).collect();
    let mut spoken: HashSet<&WorkflowName> = tally.input.urgent.iter().map(|s| &s.workflow).collect();
    for (workflow, tally) in tally.workflows.iter().filter(|(_, t)| t.hearing != Hearing::Heard) {
        if spoken.insert(workflow) {
            candidates.push(Candidate::Silent(workflow, tally.hearing));
        }
    }
    let unspoken = |w: &Waiting<'_>| !spoken.contains(w.workflow) && !paged.contains(w.workflow);
    candidates.extend(waiting(tally).into_iter().filter(unspoken).map(Candidate::Waiting));
    candidates.extend(backlog_item(tally).map(Candidate::Backlog));
    candidates
}

/// What waits in workflows that this window has no news of, all in one line and without their names.
fn backlog_item(tally: &Tally<'_>) -> Option<UrgentItem> {
    let old: Vec<(&WorkflowName, &WorkflowTally)> = tally.with_old_letters().collect();
    let count = old.iter().map(|(_, t)| t.open_count).sum();
    let age = tally.age(old.iter().filter_map(|(_, t)| t.oldest_at).min()?);
    if !waited_long(age) || tally.input.window.seconds() < REMINDING.as_secs() {
        return None;
    }
    let up_to = if count == 1 { "" } else { "up to " };
    Some(UrgentItem {
        rank: 0,
        text: format!("{} waited for {up_to}{}", words::noun_have(count, "older dead letter"), words::duration(age)),
        aside: String::new(),
        detail: format!("Nothing is new of their {}.", words::noun(old.len() as u64, "workflow")),
        workflow: String::new(),
        contact: owners_of(tally, old.iter().map(|(w, _)| *w)),
    })
}

/// All whom to ask about dead letters of several workflows.
fn owners_of<'a>(tally: &Tally<'_>, workflows: impl Iterator<Item = &'a WorkflowName>) -> Contact {
    let owners: BTreeSet<&str> =
        workflows.filter_map(|w| tally.info(w)?.owner.as_deref()).map(words::owner_name).collect();
    let owner = name_some(&owners.into_iter().collect::<Vec<_>>(), OWNERS_MAX);
    let link = Link { text: "Dead letters".to_owned(), url: tally.url("dead-letters", &[]) };
    Contact {
        owner: if owner.is_empty() { "none set".to_owned() } else { owner },
        url: link.url.clone(),
        links: vec![link],
        ..Contact::default()
    }
}

/// In whole minutes, as ages are read.
fn waited_long(age: Duration) -> bool {
    age.as_secs() / 60 > LONG_WAIT.as_secs() / 60
}

fn symptom_item(tally: &Tally<'_>, symptom: &SymptomLine) -> UrgentItem {
    let link = symptom.path.as_ref().map(|path| Link { text: "Symptom".to_owned(), url: tally.url(path, &[]) });
    UrgentItem {
        rank: 0,
        text: symptom.text.trim_end_matches('.').to_owned(),
        aside: String::new(),
        detail: symptom.detail.clone(),
        workflow: symptom.workflow.to_string(),
        contact: tally.contact(&symptom.workflow, link.into_iter().collect()),
    }
}

fn silent_item(tally: &Tally<'_>, workflow: &WorkflowName, hearing: Hearing) -> Option<UrgentItem> {
    let info = tally.info(workflow)?;
    let every = format!("A run is expected every {}", words::duration(info.every?));
    let (text, detail) = match hearing {
        Hearing::Heard => return None,
        Hearing::Missing(age) => {
            let last = info.last_heard_at.map(|at| format!("; the last was {}", tally.time(at))).unwrap_or_default();
            (format!("{workflow} has not been heard for {}", words::duration(age)), format!("{every}{last}."))
        }
        Hearing::Never => (format!("{workflow} has never been heard"), format!("{every}.")),
    };
    let link = Link { text: "Workflow".to_owned(), url: tally.url("workflows", &[("name", workflow.as_str())]) };
    let contact = tally.contact(workflow, vec![link]);
    Some(UrgentItem { rank: 0, text, aside: String::new(), detail, workflow: workflow.to_string(), contact })
}

/// Open dead letters of one workflow.
struct Waiting<'a> {
    workflow: &'a WorkflowName,
    count: u64,
    oldest: &'a LetterGroup,
    /// The group that holds all of them, if one does.
    sole: Option<&'a LetterGroup>,
}

/// Workflows with news, whose dead letters came in the window or wait for long: protected ones first, then by number, then by age.
fn waiting<'a>(tally: &Tally<'a>) -> Vec<Waiting<'a>> {
    let mut groups: HashMap<&WorkflowName, Vec<&LetterGroup>> = HashMap::default();
    for group in tally.input.open_letters.iter().filter(|g| tally.is_current(&g.workflow)) {
        groups.entry(&group.workflow).or_default().push(group);
    }
    let mut found: Vec<Waiting<'_>> =
        groups.into_iter().filter_map(|(workflow, groups)| sum_up(tally, workflow, &groups)).collect();
    found.sort_by_cached_key(|w| {
        (Reverse(tally.is_protected(w.workflow)), Reverse(w.count), w.oldest.oldest_at, w.workflow)
    });
    found
}

fn sum_up<'a>(tally: &Tally<'a>, workflow: &'a WorkflowName, groups: &[&'a LetterGroup]) -> Option<Waiting<'a>> {
    let listed: u64 = groups.iter().map(|g| g.count).sum();
    let oldest = groups.iter().min_by_key(|g| (g.oldest_at, &g.oldest_id))?;
    let count = tally.input.letter_flow.by_workflow.get(workflow).map_or(listed, |c| c.open_count.max(listed));
    let is_fresh = groups.iter().any(|g| g.new_count > 0);
    let sole = groups.first().copied().filter(|g| g.count == count);
    (is_fresh || waited_long(tally.age(oldest.oldest_at))).then_some(Waiting { workflow, count, oldest, sole })
}

fn waiting_item(tally: &Tally<'_>, waiting: &Waiting<'_>) -> UrgentItem {
    let items = words::noun(waiting.count, tally.noun(waiting.workflow));
    let has = format!("{items} of {} {}", waiting.workflow, if waiting.count == 1 { "has" } else { "have" });
    let age = words::duration(tally.age(waiting.oldest.oldest_at));
    let name = letter_name(waiting.oldest);
    let (text, aside) = match waiting.count {
        1 => (format!("{has} waited for {age}"), format!("({name})")),
        _ => (format!("{has} waited for up to {age}"), format!("(oldest: {name})")),
    };
    let mut detail = Vec::new();
    let resolved = tally.input.letter_flow.by_workflow.get(waiting.workflow).map_or(0, |c| c.resolved_count);
    if resolved == 0 && waited_long(tally.age(waiting.oldest.oldest_at)) {
        detail.push("None was resolved in this window.".to_owned());
    }
    if let Some(info) = waiting.sole.and_then(|g| tally.input.fingerprints.get(&g.fingerprint)) {
        let lead = if waiting.count == 1 { "Its cause" } else { "All have one cause" };
        detail.push(format!("{lead}: {}.", brief(&info.sample).trim_end_matches('.')));
    }
    let link = tally.letters_link(waiting.count, &[("workflow", waiting.workflow.as_str())]);
    UrgentItem {
        rank: 0,
        text,
        aside,
        detail: detail.join(" "),
        workflow: waiting.workflow.to_string(),
        contact: tally.contact(waiting.workflow, vec![link]),
    }
}

/// What a dead letter is called: its item, else its id.
pub(super) fn letter_name(group: &LetterGroup) -> &str {
    group.oldest_item.as_deref().unwrap_or(&group.oldest_id)
}

/// A sample as part of a sentence.
pub(super) fn brief(sample: &str) -> String {
    words::cut(&words::one_line(sample), 100)
}
