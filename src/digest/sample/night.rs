//! One realistic night: an outage that was paged, a new cause, one that is back, credits that are used up.

use super::{ago, at, budget, cause, failures, fp, letters, nothing, outcomes, recoveries, workflow};
use crate::digest::input::*;
use crate::event::{Class, Disposition, Fingerprint};
use crate::name::WorkflowName;
use crate::workflow::Domain;
use foldhash::HashMap;
use std::collections::BTreeMap;

/// The night of the reference page: an outage that was paged, a new cause, one that is back, credits used up.
pub(in crate::digest) fn night(digest: &str) -> DigestInput {
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
    input.budgets = vec![
        budget("order-to-crm", "99.5 %", 18, 12_200, 30),
        budget("whatsapp-intake", "98 %", 88, 6_420, 30),
        budget("payout-reconcile", "99.9 %", 3, 2_880, 30),
        budget("invoice-sync", "99.5 %", 9, 8_620, 12),
        budget("gst-filing", "99 %", 0, 30, 30),
        BudgetLine { share_left: None, ..budget("nightly-backup", "99 %", 0, 30, 30) },
    ];
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
        by_workflow: HashMap::from_iter([
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

fn night_workflows() -> HashMap<WorkflowName, WorkflowInfo> {
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
    let mut workflows: HashMap<WorkflowName, WorkflowInfo> = entries
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
