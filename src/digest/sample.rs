//! Made-up digests to try templates with: a realistic night, a quiet day, an empty one, a large one, a hostile one.
//! Nothing here is ever sent.

use super::compose;
use super::input::*;
use crate::event::{Class, Disposition, EventType, Fingerprint};
use crate::name::WorkflowName;
use crate::render::Sample;
use crate::workflow::Domain;
use chrono::{DateTime, Utc};
use std::collections::BTreeMap;
use std::time::Duration;

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
    Fingerprint(format!("v1:{cause}"))
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
        letter_flow: LetterFlow::default(),
        last_letters: Vec::new(),
        fingerprints: BTreeMap::new(),
        downstreams: Vec::new(),
        pages: Vec::new(),
        urgent: Vec::new(),
        unreadable: Vec::new(),
        silences: Vec::new(),
        service: Vec::new(),
        workflows: BTreeMap::new(),
        late_count: 0,
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

/// The night of the reference page: an outage that was paged, a new cause, one that is back, credits used up.
pub(super) fn night(digest: &str) -> DigestInput {
    let mut input = nothing(digest);
    input.cells = night_cells();
    input.fingerprints = night_causes();
    input.open_letters = vec![
        letters("lead-enrichment", "credits", 9, 6, 26.3, "lead-8812"),
        letters("support-triage", "refusal", 1, 1, 19.0, "ticket-3310"),
        letters("whatsapp-intake", "quantity", 3, 3, 14.6, "msg-77102"),
        letters("catalog-refresh", "scope", 4, 4, 5.9, "page-14"),
    ];
    input.letter_flow = night_flow();
    input.pages = vec![night_page()];
    input.silences = vec![SilenceLine {
        id: "S-7".to_owned(),
        reason: "load test".to_owned(),
        by: "Ravi Menon".to_owned(),
        until: at("2026-11-19T12:30:00Z"),
    }];
    input.unreadable = vec![UnreadableLine { subject: "failures.whatsapp-intake".to_owned(), count: 2 }];
    input.workflows = night_workflows();
    input.previous = Some(Totals {
        runs: Some(1_262),
        failures: 71,
        final_failures: 6,
        recoveries: 44,
        took_count: 44,
        took_ms_sum: 44 * 130_000,
        letters_opened: 6,
        letters_resolved: 14,
        letters_open: 7,
        pages: 0,
        failures_by_workflow: BTreeMap::from([("order-to-crm".into(), 13), ("invoice-sync".into(), 18)]),
    });
    let of = |workflow: &str, n| std::iter::repeat_n(WorkflowName::from(workflow), n);
    input.last_letters =
        of("catalog-refresh", 4).chain(of("whatsapp-intake", 3)).chain(of("lead-enrichment", 9)).collect();
    let down = |downstream: &str, workflow: &str, failures_count, final_count| DownstreamCount {
        downstream: downstream.to_owned(),
        workflow: workflow.into(),
        failures_count,
        final_count,
    };
    input.downstreams = vec![
        down("hubspot", "order-to-crm", 58, 14),
        down("hubspot", "lead-enrichment", 2, 0),
        down("hubspot", "support-triage", 2, 0),
        down("zoho-books", "invoice-sync", 12, 0),
        down("clearbit", "lead-enrichment", 12, 6),
        down("shopify", "catalog-refresh", 4, 4),
    ];
    input
}

fn night_cells() -> Vec<Cell> {
    use Class::{InvalidInput, LlmOutput, LlmRefusal, Persistent, RateLimited, Transient};
    use Disposition::{DeadLettered, Retrying};
    vec![
        outcomes("order-to-crm", 24, 371, 0),
        outcomes("whatsapp-intake", 24, 189, 0),
        outcomes("invoice-sync", 24, 277, 0),
        outcomes("lead-enrichment", 24, 134, 0),
        outcomes("catalog-refresh", 24, 18, 0),
        outcomes("support-triage", 24, 58, 0),
        outcomes("payout-reconcile", 24, 96, 0),
        outcomes("gst-filing", 1, 1, 0),
        failures("order-to-crm", Transient, Retrying, "hub-retry", 19, 12.6),
        failures("order-to-crm", Transient, Retrying, "hub-retry", 25, 11.4),
        Cell {
            fate: Fate::Paged("i-212".to_owned()),
            ..failures("order-to-crm", Transient, DeadLettered, "hub", 14, 11.6)
        },
        failures("whatsapp-intake", LlmOutput, Retrying, "quantity", 5, 15.6),
        failures("whatsapp-intake", LlmOutput, Retrying, "quantity", 3, 14.6),
        failures("whatsapp-intake", LlmOutput, DeadLettered, "quantity", 3, 14.5),
        failures("whatsapp-intake", Transient, Retrying, "wa-retry", 9, 17.0),
        failures("invoice-sync", RateLimited, Retrying, "zoho", 12, 8.0),
        failures("invoice-sync", Transient, Retrying, "zoho-t", 3, 3.0),
        failures("lead-enrichment", RateLimited, Retrying, "clearbit-rl", 8, 20.0),
        failures("lead-enrichment", Persistent, DeadLettered, "credits", 6, 22.0),
        failures("catalog-refresh", Persistent, DeadLettered, "scope", 4, 5.9),
        failures("catalog-refresh", InvalidInput, DeadLettered, "price", 2, 18.0),
        failures("support-triage", Transient, Retrying, "tri-t", 2, 9.0),
        failures("support-triage", LlmRefusal, DeadLettered, "refusal", 1, 19.0),
        recoveries("order-to-crm", "retry", 24, 330_000, 11.0),
        recoveries("invoice-sync", "retry", 12, 142_000, 8.0),
        recoveries("whatsapp-intake", "reprompt", 8, 9_000, 14.0),
        Cell {
            fate: Fate::Silenced("S-7".to_owned()),
            ..failures("staging-sync", RateLimited, Retrying, "load", 15, 6.0)
        },
    ]
}

fn night_causes() -> BTreeMap<Fingerprint, FingerprintInfo> {
    use Class::{InvalidInput, LlmOutput, LlmRefusal, Persistent, RateLimited, Transient};
    let old = at("2026-11-02T06:00:00Z");
    let known = |workflow, class, sample| cause(workflow, class, sample, old);
    BTreeMap::from([
        (
            fp("quantity"),
            FingerprintInfo {
                step: Some("extract-order".to_owned()),
                sample_event_id: Some("01J8".to_owned()),
                first_in_window_at: Some(ago(15.63)),
                last_seen_before_at: None,
                ..cause("whatsapp-intake", LlmOutput, "missing field \"quantity\" in tool result", ago(15.63))
            },
        ),
        (
            fp("scope"),
            FingerprintInfo {
                step: Some("pull-products".to_owned()),
                downstream: Some("shopify".to_owned()),
                sample_event_id: Some("01J9".to_owned()),
                first_in_window_at: Some(ago(5.96)),
                last_seen_before_at: Some(at("2026-10-28T10:00:00Z")),
                resolved_at: Some(at("2026-10-29T10:00:00Z")),
                ..known("catalog-refresh", Persistent, "403 Forbidden: API key lacks scope read_products")
            },
        ),
        (
            fp("credits"),
            FingerprintInfo {
                downstream: Some("clearbit".to_owned()),
                ..known("lead-enrichment", Persistent, "402 Payment Required: monthly credits used up")
            },
        ),
        (fp("price"), known("catalog-refresh", InvalidInput, "sku ‹value› has no price")),
        (fp("refusal"), known("support-triage", LlmRefusal, "refusal: model declined to classify")),
        (fp("hub-retry"), known("order-to-crm", Transient, "504 Gateway Timeout from hubspot")),
        (fp("wa-retry"), known("whatsapp-intake", Transient, "connection reset by peer")),
        (fp("zoho"), known("invoice-sync", RateLimited, "429 Too Many Requests")),
        (fp("zoho-t"), known("invoice-sync", Transient, "read timeout after 30 s")),
        (fp("clearbit-rl"), known("lead-enrichment", RateLimited, "429 rate limit exceeded")),
        (fp("tri-t"), known("support-triage", Transient, "503 model overloaded")),
    ])
}

fn night_flow() -> LetterFlow {
    let count = |opened_count, resolved_count, open_count, oldest: Option<f64>| LetterCount {
        opened_count,
        resolved_count,
        open_count,
        oldest_at: oldest.map(ago),
    };
    let step = |hours, opened_count, resolved_count| LetterStep { at: ago(hours), opened_count, resolved_count };
    LetterFlow {
        open_at_start: 7,
        opened_count: 30,
        resolved_count: 20,
        redriven_count: 14,
        open_at_end: 17,
        by_workflow: BTreeMap::from([
            ("lead-enrichment".into(), count(6, 0, 9, Some(26.3))),
            ("support-triage".into(), count(1, 0, 1, Some(19.0))),
            ("whatsapp-intake".into(), count(3, 0, 3, Some(14.6))),
            ("catalog-refresh".into(), count(6, 2, 4, Some(5.9))),
            ("order-to-crm".into(), count(14, 14, 0, None)),
        ]),
        steps: vec![
            step(22.0, 6, 4),
            step(19.0, 1, 0),
            step(18.0, 2, 2),
            step(14.5, 3, 0),
            step(11.6, 14, 0),
            step(10.4, 0, 14),
            step(5.9, 4, 0),
        ],
    }
}

fn night_page() -> PageRecord {
    PageRecord {
        incident_id: "i-212".to_owned(),
        number: 212,
        workflows: vec!["order-to-crm".into()],
        class: Class::Transient,
        opened_at: at("2026-11-17T16:11:00Z"),
        acknowledged_at: Some(at("2026-11-17T16:15:00Z")),
        resolved_at: Some(at("2026-11-17T17:23:00Z")),
        state: PageState::Resolved,
        events_count: 14,
        items_count: 14,
        open_letters_count: 0,
        sentence: "14 orders have not reached hubspot for 1 h 12 min".to_owned(),
    }
}

fn night_workflows() -> BTreeMap<WorkflowName, WorkflowInfo> {
    let entries = [
        ("order-to-crm", "Asha Rao", Domain::Money, 0.1, "order"),
        ("whatsapp-intake", "Priya Nair", Domain::Standard, 0.1, "message"),
        ("invoice-sync", "Ravi Menon", Domain::Money, 0.1, "invoice"),
        ("lead-enrichment", "Dev Patel", Domain::Standard, 0.1, "lead"),
        ("catalog-refresh", "Dev Patel", Domain::Standard, 0.1, "page"),
        ("support-triage", "Priya Nair", Domain::Standard, 0.1, "ticket"),
        ("payout-reconcile", "Meera Iyer", Domain::Money, 0.1, "payout"),
        ("gst-filing", "Meera Iyer", Domain::Compliance, 2.0, "filing"),
        ("nightly-backup", "Ravi Menon", Domain::Standard, 31.05, "backup"),
    ];
    let mut workflows: BTreeMap<WorkflowName, WorkflowInfo> = entries
        .into_iter()
        .map(|(name, owner, domain, heard, noun)| {
            let info = WorkflowInfo {
                runbook: Some(format!("https://runbooks.example.com/{name}")),
                item_noun: Some(noun.to_owned()),
                ..workflow(&format!("{owner} <x@example.com>"), domain, heard)
            };
            (WorkflowName::from(name), info)
        })
        .collect();
    workflows.insert("staging-sync".into(), WorkflowInfo::default());
    workflows
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
    for downstream in &mut input.downstreams {
        downstream.downstream = HOSTILE.to_owned();
        downstream.workflow = name.clone();
    }
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
    input.workflows = BTreeMap::from([(name, info)]);
    input.receiver = HOSTILE.to_owned();
    input
}
