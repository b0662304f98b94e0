//! Made-up digests to try templates with: a realistic night, a quiet day, an empty one, a large one, a hostile one.
//! Nothing here is ever sent.

mod night;

use super::compose;
use super::input::*;
use crate::event::{Class, Disposition, EventType, Fingerprint};
use crate::name::WorkflowName;
use crate::render::Sample;
use crate::workflow::Domain;
use chrono::{DateTime, Utc};
use foldhash::HashMap;
use std::collections::BTreeMap;
use std::time::Duration;

pub(super) use night::night;

/// Strings that try to mention, link, format, break lines and break out of markup.
const HOSTILE: &str =
    "<!here> <@U1> <http://evil.example|login> ``` *b* `c` & \"q\" </td><script>x</script> {{#if}} \r\n# h\n---\n> q";

/// Views of every digest, for templates to be tried with.
pub fn digest_samples() -> Vec<Sample> {
    let mut samples = Vec::new();
    for digest in ["hourly", "daily", "weekly"] {
        let inputs = [
            ("full", full(digest)),
            ("night", night(digest)),
            ("quiet", quiet(digest)),
            ("empty", nothing(digest)),
            ("large", large(digest, 120)),
            ("hostile", hostile(digest)),
        ];
        samples.extend(inputs.into_iter().map(|(name, input)| Sample {
            template: format!("digest-{digest}"),
            name,
            view: serde_json::to_value(compose(&input)).unwrap_or_default(),
            is_full: name == "full",
        }));
    }
    samples
}

/// 10:00 in India.
const END: &str = "2026-11-18T04:30:00Z";

pub(super) fn at(text: &str) -> DateTime<Utc> {
    text.parse().unwrap_or_default()
}

/// `hours` before the end of the window.
pub(super) fn ago(hours: f64) -> DateTime<Utc> {
    at(END) - Duration::from_secs_f64(hours * 3600.0)
}

pub(super) fn fp(cause: &str) -> Fingerprint {
    Fingerprint(format!("v1:{cause}").into())
}

fn hours(n: u64) -> Duration {
    Duration::from_hours(n)
}

pub(super) fn failures(
    workflow: &str,
    class: Class,
    disposition: Disposition,
    cause: &str,
    n: u64,
    hours: f64,
) -> Cell {
    Cell::failures(ago(hours), workflow.into(), class, disposition, fp(cause), n)
}

pub(super) fn recoveries(workflow: &str, strategy: &str, n: u64, took_ms: u64, hours: f64) -> Cell {
    Cell {
        event_type: EventType::Recovery,
        strategy: Some(strategy.to_owned()),
        took_count: n,
        took_ms_sum: n * took_ms,
        attempts_count: n,
        attempts_sum: n * 2,
        ..failures(workflow, Class::Unclassified, Disposition::Skipped, "none", n, hours)
    }
}

pub(super) fn outcomes(workflow: &str, reports: u64, ok: u64, failed: u64) -> Cell {
    Cell {
        event_type: EventType::Outcome,
        ok_count: ok,
        failed_count: failed,
        ..failures(workflow, Class::Unclassified, Disposition::Skipped, "none", reports, 12.0)
    }
}

pub(super) fn workflow(owner: &str, domain: Domain, last_heard: f64) -> WorkflowInfo {
    WorkflowInfo {
        owner: Some(owner.to_owned()),
        domain,
        runbook: None,
        item_noun: None,
        last_heard_at: Some(ago(last_heard)),
        every: Some(hours(24)),
        grace: hours(1),
    }
}

pub(super) fn cause(workflow: &str, class: Class, sample: &str, first_seen_at: DateTime<Utc>) -> FingerprintInfo {
    FingerprintInfo {
        workflow: workflow.into(),
        step: None,
        class,
        error_type: None,
        sample: sample.to_owned(),
        pattern: sample.to_owned(),
        sample_event_id: None,
        downstream: None,
        first_seen_at,
        first_in_window_at: Some(ago(15.0)),
        last_seen_before_at: Some(ago(40.0)),
        resolved_at: None,
    }
}

pub(super) fn letters(workflow: &str, cause: &str, count: u64, new: u64, hours: f64, item: &str) -> LetterGroup {
    LetterGroup {
        workflow: workflow.into(),
        fingerprint: fp(cause),
        count,
        new_count: new,
        oldest_at: ago(hours),
        oldest_item: Some(item.to_owned()),
        oldest_id: format!("D-{item}"),
    }
}

/// A day on which nothing arrived and nobody is expected.
pub(super) fn nothing(digest: &str) -> DigestInput {
    let days = if digest == "weekly" { 7 } else { 1 };
    DigestInput {
        digest: digest.into(),
        receiver: "ops".to_owned(),
        routes: vec!["everything".into()],
        window: Window { start_at: at(END) - hours(if digest == "hourly" { 1 } else { days * 24 }), end_at: at(END) },
        previous: None,
        due_at: at(END),
        late: None,
        incomplete: None,
        zone: chrono_tz::Asia::Kolkata,
        number: 216,
        public_url: "https://matins.example.com".to_owned(),
        cells: Vec::new(),
        open_letters: Vec::new(),
        older_letters: OlderLetters::default(),
        letter_flow: LetterFlow::default(),
        last_letters: Vec::new(),
        fingerprints: BTreeMap::new(),
        downstreams: Vec::new(),
        pages: Vec::new(),
        urgent: Vec::new(),
        budgets: Vec::new(),
        unreadable: Vec::new(),
        silences: Vec::new(),
        service: Vec::new(),
        workflows: HashMap::default(),
        late_count: 0,
    }
}

/// The budget of 30 days at so many runs, a third of the failures in the last week; so many days are known.
#[expect(clippy::cast_precision_loss, reason = "small numbers")]
pub(super) fn budget(workflow: &str, objective: &str, failed: u64, runs: u64, known_days: u64) -> BudgetLine {
    let share: f64 = objective.trim_end_matches(" %").parse().unwrap_or_default();
    let allowed = runs as f64 * (1.0 - share / 100.0);
    let days = |n: u64| Duration::from_secs(n * 86_400);
    BudgetLine {
        rule: "burn_rate".to_owned(),
        workflow: workflow.into(),
        objective: objective.to_owned(),
        period: days(30),
        failed,
        failed_lately: failed / 3,
        allowed,
        share_left: Some(1.0 - failed as f64 / allowed),
        known: days(known_days),
    }
}

/// Everybody was heard and nothing failed.
pub(super) fn quiet(digest: &str) -> DigestInput {
    let mut input = nothing(digest);
    for (name, runs) in [("order-to-crm", 409), ("payout-reconcile", 96), ("support-triage", 61)] {
        input.cells.push(outcomes(name, 24, runs, 0));
        input.workflows.insert(name.into(), workflow("Asha Rao <asha@example.com>", Domain::Standard, 0.5));
    }
    input
}

/// `workflows` workflows with two dead letters each, every cause new and long.
pub(super) fn large(digest: &str, workflows: u64) -> DigestInput {
    let mut input = nothing(digest);
    for n in 0..workflows {
        let (name, key) = (format!("wf-{n:03}"), format!("c{n:03}"));
        let (class, sample) = (Class::InvalidInput, format!("cause {n} <&> {}", "z".repeat(300)));
        input.cells.push(failures(&name, class, Disposition::DeadLettered, &key, 2, 3.0));
        input.fingerprints.insert(
            fp(&key),
            FingerprintInfo {
                step: Some("step & <b>".to_owned()),
                downstream: Some("hubspot".to_owned()),
                sample_event_id: Some("01J8".to_owned()),
                ..cause(&name, class, &sample, if n % 2 == 0 { ago(3.0) } else { ago(900.0) })
            },
        );
        input.open_letters.push(letters(&name, &key, 2, 2, 3.0, "it0"));
        let count = LetterCount { opened_count: 2, resolved_count: 0, open_count: 2, oldest_at: Some(ago(3.0)) };
        input.letter_flow.by_workflow.insert(name.as_str().into(), count);
        let info = WorkflowInfo {
            runbook: Some(format!("https://runbooks.example.com/pipelines/{name}?from=digest")),
            ..workflow("Asha Rao <asha@example.com>", Domain::Standard, 3.0)
        };
        input.workflows.insert(name.as_str().into(), info);
        input.downstreams.push(DownstreamCount {
            downstream: format!("api-{}", n % 12),
            workflow: name.as_str().into(),
            failures_count: 2,
            final_count: 2,
        });
    }
    input.letter_flow.opened_count = 2 * workflows;
    input.letter_flow.open_at_end = 2 * workflows;
    input.letter_flow.steps = vec![LetterStep { at: ago(3.0), opened_count: 2 * workflows, resolved_count: 0 }];
    input
}

/// The night with something in every place that may be empty: late, incomplete, an open incident, a symptom.
pub(super) fn full(digest: &str) -> DigestInput {
    let mut input = night(digest);
    let away = Window { start_at: ago(11.8), end_at: ago(3.3) };
    input.late = Some(Late { slots_count: 3, away: Some(away) });
    input.incomplete = Some("214 messages before 10:00 are still unread".to_owned());
    input.late_count = 3;
    input.pages.push(PageRecord {
        incident_id: "i-214".to_owned(),
        number: 214,
        workflows: vec!["payout-reconcile".into()],
        class: Class::OutcomeUnknown,
        opened_at: ago(9.0),
        acknowledged_at: None,
        resolved_at: None,
        state: PageState::Open,
        events_count: 3,
        items_count: 3,
        open_letters_count: 3,
        sentence: "3 payouts have had an unknown outcome for 9 h".to_owned(),
    });
    input.urgent.push(SymptomLine {
        text: "order-to-crm spent 23 % of its 30-day error budget in one day".to_owned(),
        detail: "14 of 409 orders failed.".to_owned(),
        workflow: "order-to-crm".into(),
        path: Some("symptoms/82".to_owned()),
    });
    input.service.push("Matins was away Wed 03:10 to 03:12; nothing was lost.".to_owned());
    input
}

/// The full night in the words of somebody who means harm.
pub(super) fn hostile(digest: &str) -> DigestInput {
    let mut input = full(digest);
    let name = WorkflowName::new(HOSTILE);
    for cell in &mut input.cells {
        cell.workflow = name.clone();
        cell.strategy = cell.strategy.as_ref().map(|_| HOSTILE.to_owned());
    }
    for info in input.fingerprints.values_mut() {
        info.workflow = name.clone();
        info.sample = format!("{HOSTILE}{HOSTILE}");
        info.step = Some(HOSTILE.to_owned());
        info.downstream = Some(HOSTILE.to_owned());
    }
    for letters in &mut input.open_letters {
        letters.workflow = name.clone();
        letters.oldest_item = Some(HOSTILE.to_owned());
    }
    let counts = std::mem::take(&mut input.letter_flow.by_workflow).into_values();
    let sum = counts.fold(LetterCount::default(), |sum, c| LetterCount {
        opened_count: sum.opened_count + c.opened_count,
        resolved_count: sum.resolved_count + c.resolved_count,
        open_count: sum.open_count + c.open_count,
        oldest_at: sum.oldest_at.into_iter().chain(c.oldest_at).min(),
    });
    input.letter_flow.by_workflow.insert(name.clone(), sum);
    for downstream in &mut input.downstreams {
        downstream.downstream = HOSTILE.to_owned();
        downstream.workflow = name.clone();
    }
    input.budgets.iter_mut().for_each(|budget| budget.workflow = name.clone());
    input.last_letters.fill(name.clone());
    for page in &mut input.pages {
        page.workflows = vec![name.clone()];
        page.sentence = HOSTILE.to_owned();
    }
    input.unreadable[..].iter_mut().for_each(|u| u.subject = HOSTILE.to_owned());
    input.silences.iter_mut().for_each(|s| (s.by, s.reason) = (HOSTILE.to_owned(), HOSTILE.to_owned()));
    let info = WorkflowInfo {
        owner: Some(HOSTILE.to_owned()),
        runbook: Some(format!("https://x.example/?a={HOSTILE}")),
        item_noun: Some(HOSTILE.to_owned()),
        ..workflow("", Domain::Money, 40.0)
    };
    input.workflows = HashMap::from_iter([(name, info)]);
    input.receiver = HOSTILE.to_owned();
    input
}
