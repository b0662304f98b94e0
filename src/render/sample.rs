//! Made-up views to try templates with: full, bare, huge, Unicode, hostile. Nothing here is ever sent.

use super::lint::Sample;
use super::operator_view::{OperatorFacts, OperatorView};
use super::page_facts::{
    Acknowledgement, FailureSample, NextEscalation, PageFacts, PageKind, PagedWorkflow, Resolution,
};
use super::page_view::PageView;
use crate::event::{Class, Disposition, ErrorInfo, Fingerprint};
use crate::name::WorkflowName;
use crate::workflow::Domain;
use chrono::{DateTime, TimeDelta, Utc};
use chrono_tz::Tz;
use std::collections::BTreeMap;
use std::time::Duration;

/// Strings that try to mention, link, format, break lines and break out of markup.
const HOSTILE: &str = "<!channel> <@U1> <http://evil.example|login> ``` *b* _i_ ~s~ `c` & </td><script>x</script> {{#if}} \r\n# h\n---\n> q";
const UNICODE: &str = "Müller – Zahlung 🔥 支払い עברית\u{202e} e\u{301}";

/// Views of every message about incidents and of operator messages.
pub fn page_samples() -> Vec<Sample> {
    let mut samples = Vec::new();
    for kind in PageKind::ALL {
        let mut add = |name, facts: &PageFacts| {
            let view = PageView::of(facts).to_json();
            samples.push(Sample { template: kind.template().to_owned(), name, view, is_full: name == "full" });
        };
        add("plain", &plain_page(kind));
        add("full", &full_page(kind));
        add("bare", &bare_page(kind));
        add("huge", &with_words(full_page(kind), &"x<&>* ".repeat(2_000)));
        add("unicode", &with_words(full_page(kind), UNICODE));
        add("hostile", &with_words(plain_page(kind), HOSTILE));
        add("hostile, with everything", &with_words(full_page(kind), HOSTILE));
    }
    samples.extend(operator_samples());
    samples
}

fn operator_samples() -> Vec<Sample> {
    let texts = [("full", "Receiver oncall is broken"), ("unicode", UNICODE), ("hostile", HOSTILE)];
    let make = |(name, text): (&'static str, &str)| {
        let view = OperatorView::of(&operator_facts(text)).to_json();
        Sample { template: "operator".to_owned(), name, view, is_full: name == "full" }
    };
    let bare = OperatorFacts { action: None, url: None, is_test: true, ..operator_facts("x") };
    let bare = Sample {
        template: "operator".to_owned(),
        name: "bare",
        view: OperatorView::of(&bare).to_json(),
        is_full: false,
    };
    texts.into_iter().map(make).chain([bare]).collect()
}

fn operator_facts(text: &str) -> OperatorFacts {
    OperatorFacts {
        number: 217,
        is_test: false,
        title: text.to_owned(),
        what: format!("Slack said no_service. Pages go to oncall-mail. {text}"),
        action: Some(format!("Check the webhook address of receivers.oncall. {text}")),
        url: Some("https://matins.example.com/outbox".to_owned()),
        now: instant(),
        zone: zone(),
    }
}

/// The instant of every sample: Tue 17 Nov 2026, 21:50 in India.
fn instant() -> DateTime<Utc> {
    DateTime::from_timestamp(1_794_932_400, 0).unwrap_or_default()
}

fn zone() -> Tz {
    chrono_tz::Asia::Kolkata
}

/// What most messages are like: one workflow, one failure.
pub(super) fn plain_page(kind: PageKind) -> PageFacts {
    let now = instant();
    let is_first = kind == PageKind::Page;
    let items = if is_first { 1 } else { 10 };
    PageFacts {
        number: if is_first { 212 } else { 213 },
        first_number: 212,
        kind,
        severity: "page".to_owned(),
        now,
        zone: zone(),
        since: if is_first { now } else { now - TimeDelta::minutes(9) },
        workflows: vec![workflow("order-to-crm", items)],
        sample: Some(failure()),
        oldest_item: Some("order-1041".to_owned()),
        symptoms: Vec::new(),
        open_dead_letters: if kind == PageKind::Resolved { 0 } else { items },
        acknowledge_url: (kind != PageKind::Resolved && kind != PageKind::Growth)
            .then(|| "https://matins.example.com/a/212?sig=Zk3v9".to_owned()),
        incident_url: Some("https://matins.example.com/i/212".to_owned()),
        dead_letters_url: Some("https://matins.example.com/d?i=212".to_owned()),
        acknowledged: (kind == PageKind::Growth)
            .then(|| Acknowledgement { by: "Asha Rao".to_owned(), at: now - TimeDelta::minutes(5) }),
        remind_in: Some(Duration::from_secs(4 * 3600)),
        escalation: is_first
            .then(|| NextEscalation { to: vec!["oncall-mail".to_owned()], after: Duration::from_secs(1800) }),
        resolution: (kind == PageKind::Resolved).then(|| Resolution {
            at: now,
            by: None,
            note: None,
            resolved: items,
            recovered: items,
            open: 0,
            quiet_for: Some(Duration::from_secs(900)),
            is_dropped: false,
        }),
    }
}

fn workflow(name: &str, items: u64) -> PagedWorkflow {
    PagedWorkflow {
        name: WorkflowName::new(name),
        domain: Domain::Money,
        owner: Some("Asha Rao <asha@example.com>".to_owned()),
        runbook: Some("https://matins.example.com/r/order-to-crm".to_owned()),
        item_noun: Some("order".to_owned()),
        events: items,
        items,
    }
}

fn failure() -> FailureSample {
    FailureSample {
        step: Some("push-contact".to_owned()),
        item: Some("order-1041".to_owned()),
        downstream: Some("hubspot".to_owned()),
        class: Class::Transient,
        error: ErrorInfo {
            message: Some("503 Service Unavailable: upstream connect error".to_owned()),
            http_status: Some(503),
            ..ErrorInfo::default()
        },
        attempt: Some(3),
        disposition: Disposition::DeadLettered,
        fingerprint: Fingerprint("v1:9c41d2e07b6a5f38".into()),
        links: BTreeMap::from([("n8n run".to_owned(), "https://matins.example.com/l/212/1".to_owned())]),
    }
}

/// Everything that a message can have at once.
fn full_page(kind: PageKind) -> PageFacts {
    let mut facts = plain_page(kind);
    let now = facts.now;
    facts.since = now - TimeDelta::minutes(72);
    facts.workflows = (1..=12).map(|n| workflow(&format!("order-to-crm-{n}"), n)).collect();
    facts.symptoms = (1..=7).map(|n| format!("{n} orders have not reached hubspot for 1 h 12 min")).collect();
    facts.acknowledge_url = Some("https://matins.example.com/a/212?sig=Zk3v9".to_owned());
    facts.acknowledged = Some(Acknowledgement { by: "Dev Patel".to_owned(), at: now });
    if let Some(failure) = &mut facts.sample {
        failure.error.kind = Some("ServerError".to_owned());
        failure.error.code = Some("ECONNRESET".to_owned());
    }
    if let Some(resolution) = &mut facts.resolution {
        resolution.by = Some("Dev Patel".to_owned());
        resolution.note = Some("sent again by hand".to_owned());
    }
    // Names of what only some kinds have must be known in all of them.
    facts.resolution.get_or_insert(Resolution {
        at: now,
        by: Some("Dev Patel".to_owned()),
        note: Some("sent again by hand".to_owned()),
        resolved: 3,
        recovered: 1,
        open: 2,
        quiet_for: None,
        is_dropped: false,
    });
    facts
}

/// As little as a message can have.
fn bare_page(kind: PageKind) -> PageFacts {
    PageFacts {
        workflows: vec![PagedWorkflow { owner: None, runbook: None, item_noun: None, items: 0, ..workflow("pay", 1) }],
        sample: None,
        oldest_item: None,
        open_dead_letters: 0,
        acknowledge_url: None,
        incident_url: None,
        dead_letters_url: None,
        acknowledged: None,
        remind_in: None,
        escalation: None,
        resolution: None,
        ..plain_page(kind)
    }
}

/// The same facts with `text` in every place that data or config can fill.
pub(super) fn with_words(mut facts: PageFacts, text: &str) -> PageFacts {
    let some = || Some(text.to_owned());
    for workflow in &mut facts.workflows {
        workflow.name = WorkflowName::new(text);
        (workflow.owner, workflow.runbook, workflow.item_noun) = (some(), some(), some());
    }
    if let Some(failure) = &mut facts.sample {
        (failure.step, failure.item, failure.downstream) = (some(), some(), some());
        (failure.error.kind, failure.error.message, failure.error.code) = (some(), some(), some());
        failure.fingerprint = Fingerprint(text.into());
        failure.links = BTreeMap::from([
            (text.to_owned(), format!("https://x.example/?q={text}")),
            ("odd".to_owned(), text.to_owned()),
        ]);
    }
    if let Some(resolution) = &mut facts.resolution {
        (resolution.by, resolution.note) = (some(), some());
    }
    if let Some(taken) = &mut facts.acknowledged {
        text.clone_into(&mut taken.by);
    }
    facts.oldest_item = some();
    facts.symptoms = vec![text.to_owned(); 3];
    facts
}
