//! Matins over a month: the watch of the `symptom` room, and the rule by which a symptom opens an incident or rejoins one,
//! as the service has it. Nothing else of the service runs.

use crate::month::{HOUR, Kind, MONTH, Month};
use crate::timeline::{STEP, Timeline, instant, workflow};
use matins::incident::{Incident, IncidentId, JoinedSymptom, Reading, Terms, Transition, advance};
use matins::matcher::{Glob, Matcher};
use matins::symptom::{BurnPlan, Change, Mode, Rules, Severity, SymptomKind, SymptomRule, SymptomState, Watch};
use matins::workflow::{Domain, Workflow, Workflows};
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

/// The rules of a month: the defaults, and for a job a day those that fit one.
pub fn rules(month: &Month) -> Rules {
    let entry = Workflow {
        name: Glob::new(workflow().as_str()),
        domain: Domain::Money,
        owner: None,
        runbook: None,
        slo: Some(month.slo.to_owned()),
        every: (month.kind == Kind::Batch).then(|| Duration::from_hours(24)),
        grace: Duration::from_secs(HOUR.unsigned_abs()),
        item_noun: None,
        expected_per_day: month.is_declared.then_some(month.per_day),
        labels: BTreeMap::new(),
    };
    let burn =
        SymptomKind::BurnRate { slo: None, period: None, expected_per_day: None, tiers: None, min_failures: None };
    let daily = [("run_failed", SymptomKind::RunFailed), ("absence", SymptomKind::Absence), ("burn_rate", burn)];
    let rule = |(name, kind): (&str, SymptomKind)| SymptomRule {
        name: name.to_owned(),
        matcher: Matcher::default(),
        kind,
        severity: Severity::Page,
        mode: Mode::Live,
    };
    let given: Vec<SymptomRule> = daily.into_iter().map(rule).collect();
    Rules::new((month.kind == Kind::Batch).then_some(given.as_slice()), &Workflows::new(vec![entry]))
}

/// The burn rate of a month as the room plans it.
pub fn burn_plan(month: &Month) -> Option<BurnPlan> {
    rules(month).plan(&workflow()).burn_rates().next().map(|(_, plan)| plan.clone())
}

/// What an incident was to people, in s of the month.
#[derive(Clone, Copy, Debug)]
pub struct Paged {
    /// When they were paged.
    pub at: i64,
    /// When they were told that it is over.
    pub resolved_at: Option<i64>,
}

/// Plays a month.
pub fn pages(month: &Month, line: &Timeline) -> Vec<Paged> {
    let mut watch = Watch::new(rules(month));
    watch.know(&workflow(), instant(0));
    let mut desk = Desk::default();
    let mut heard = line.heard.iter().peekable();
    for now in (0..=MONTH).step_by(STEP as usize) {
        while let Some(heard) = heard.next_if(|heard| heard.arrives < now) {
            watch.take(&heard.signal);
        }
        if watch.next_look_at().is_some_and(|at| at <= instant(now)) {
            for change in watch.look(instant(now), &[]) {
                desk.settle(&change, now);
            }
        }
        if !desk.known.is_empty() || desk.incident.is_some() {
            desk.advance(&watch, now);
        }
    }
    desk.pages
}

/// What becomes of symptoms.
#[derive(Default)]
struct Desk {
    incident: Option<Incident>,
    /// What was last known of a symptom: whether it is part of an incident, and its tiers.
    known: BTreeMap<String, (bool, Vec<String>)>,
    pages: Vec<Paged>,
}

impl Desk {
    fn settle(&mut self, change: &Change, now: i64) {
        let (key, tiers) = (change.state().key.id(), change.state().tiers.clone());
        let (was_told, known) = self.known.get(&key).cloned().unwrap_or_default();
        let is_told = match change {
            Change::Fired(state) => self.tell(state, now),
            Change::Moved(state) if !was_told || is_new_page(state, &known) => self.tell(state, now),
            Change::Moved(_) | Change::Cleared(_) | Change::Held(_) | Change::Dropped(_) => was_told,
        };
        self.known.insert(key, (is_told, tiers));
    }

    /// Opens or joins an incident, when it is one to page for.
    fn tell(&mut self, state: &SymptomState, now: i64) -> bool {
        if state.severity != Severity::Page {
            return false;
        }
        let (text, since) = (state.text.clone(), state.since);
        let symptom =
            JoinedSymptom { key: state.key.id(), text, since, ended_at: None, is_dropped: false, is_of_letters: false };
        match &mut self.incident {
            Some(open) => open.join(symptom),
            None => {
                let (id, workflows) = (IncidentId(1), [workflow()]);
                let incident =
                    Incident::open_by_symptom(id, symptom, &workflows, Domain::Money, terms(), 1, instant(now));
                self.incident = Some(incident);
                self.pages.push(Paged { at: now, resolved_at: None });
            }
        }
        true
    }

    fn advance(&mut self, watch: &Watch, now: i64) {
        self.known.retain(|key, _| watch.states().any(|state| state.key.id() == *key));
        let Some(incident) = &mut self.incident else { return };
        let active: BTreeSet<String> = watch.states().filter(|s| s.is_hot).map(|s| s.key.id()).collect();
        let over: Vec<String> =
            incident.symptoms.iter().map(|s| s.key.clone()).filter(|key| !active.contains(key)).collect();
        for key in over {
            incident.end_symptom(&key, instant(now));
        }
        if advance(incident, Reading { open_letters: 0 }, instant(now)) == Transition::Resolve {
            self.incident = None;
            if let Some(page) = self.pages.last_mut() {
                page.resolved_at = Some(now);
            }
        }
    }
}

/// Whether a tier pages that did not fire when the symptom was last written.
fn is_new_page(state: &SymptomState, known: &[String]) -> bool {
    state.severity == Severity::Page && state.tier.as_ref().is_some_and(|tier| !known.contains(tier))
}

fn terms() -> Terms {
    Terms {
        routes: Vec::new(),
        page: Vec::new(),
        remind_every: None,
        resolve_after: Duration::from_mins(15),
        growth_every: Duration::from_hours(1),
        escalate: Vec::new(),
    }
}
