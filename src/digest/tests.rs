//! What a digest promises, over arbitrary input; and what one looks like, on every channel.

use super::sample::{failures, full, hostile, large, night, nothing, quiet, recoveries};
use super::*;
use crate::deliver::Channel;
use crate::event::{Class, Disposition};
use crate::render::{Content, MailContent, MailFrame, Rendered, Renderer, SlackMessage};
use proptest::prelude::*;
use serde_json::Value;
use std::sync::LazyLock;

static RENDERER: LazyLock<Renderer> = LazyLock::new(|| Renderer::new(&[]).0);

fn render(input: &DigestInput, channel: Channel) -> Content {
    let view = compose(input);
    let frame = MailFrame { images: view.plot.images(), ..MailFrame::default() };
    let folder = format!("digest-{}", view.digest);
    let Rendered { content, problem } =
        RENDERER.render(&folder, channel, &serde_json::to_value(&view).unwrap(), &frame);
    assert_eq!(problem, None);
    content
}

fn mail(input: &DigestInput) -> MailContent {
    match render(input, Channel::Email) {
        Content::Email(mail) => mail,
        Content::Slack(_) | Content::Json(_) | Content::Text(_) => panic!("no mail"),
    }
}

fn slack(input: &DigestInput) -> SlackMessage {
    match render(input, Channel::Slack) {
        Content::Slack(message) => message,
        Content::Email(_) | Content::Json(_) | Content::Text(_) => panic!("no Slack message"),
    }
}

/// The blocks as a reader sees them, one after the other.
fn plain(message: &SlackMessage) -> String {
    fn texts(value: &Value, out: &mut String) {
        match value {
            Value::Object(fields) => fields.iter().filter(|(k, _)| *k != "type").for_each(|(_, v)| texts(v, out)),
            Value::Array(items) => items.iter().for_each(|v| texts(v, out)),
            Value::String(text) => {
                out.push_str(text);
                out.push('\n');
            }
            Value::Null | Value::Bool(_) | Value::Number(_) => {}
        }
    }
    let mut out = format!("{}\n", message.text);
    for block in &message.blocks {
        out.push_str(&format!("[{}]\n", block["type"].as_str().unwrap()));
        texts(block, &mut out);
    }
    out
}

#[test]
fn digests_read_as_agreed() {
    for digest in ["hourly", "daily", "weekly"] {
        for (name, input) in [("night", night(digest)), ("empty", nothing(digest)), ("hostile", hostile(digest))] {
            let mail = mail(&input);
            insta::assert_snapshot!(format!("{digest}-{name}-text"), format!("{}\n\n{}", mail.subject, mail.text));
            if name == "night" || digest == "daily" {
                insta::assert_snapshot!(format!("{digest}-{name}-html"), mail.html);
            }
            insta::assert_snapshot!(format!("{digest}-{name}-slack"), plain(&slack(&input)));
        }
    }
}

#[test]
fn templates_know_every_name_and_write_every_sample() {
    let problems: Vec<String> = RENDERER.check(&digest_samples()).iter().map(ToString::to_string).collect();
    assert_eq!(problems, Vec::<String>::new());
}

#[test]
fn hostile_data_opens_no_tag_and_no_mention() {
    for digest in ["hourly", "daily", "weekly"] {
        let (html, text) = (mail(&hostile(digest)).html, plain(&slack(&hostile(digest))));
        assert!(!html.contains("<script") && !html.contains("<!here") && !html.contains("<@U1"), "{html}");
        assert!(!text.contains("<!here") && !text.contains("<@U1") && !text.contains("<http://evil"), "{text}");
    }
}

#[test]
fn a_night_on_which_all_is_well_says_so_in_two_sentences() {
    let view = compose(&quiet("daily"));
    assert_eq!(view.headline.verdict, "Nothing needs you. Nothing to look at.");
    assert_eq!(view.headline.lede, "0 failures in 566 runs; 3 of 3 workflows heard.");
    assert!(!view.is_empty(), "runs were heard, so there is something to tell");
    assert!(compose(&nothing("daily")).is_empty());
}

#[test]
fn what_is_not_heard_is_never_zero() {
    let view = compose(&night("daily"));
    let row = view.workflows.items.iter().find(|r| r.name == "nightly-backup").unwrap();
    assert_eq!([&row.runs, &row.failures, &row.final_failures], ["?", "?", "?"]);
    assert_eq!(row.detail, "not heard for 31 h");
}

#[test]
fn a_new_cause_and_one_that_is_back_are_marked() {
    let view = compose(&night("daily"));
    let marks: Vec<_> = view.fingerprints.new.items.iter().map(|c| (c.mark.as_str(), c.workflow.as_str())).collect();
    assert_eq!(marks, [("REGRESSED", "catalog-refresh"), ("NEW", "whatsapp-intake")]);
    assert!(view.fingerprints.known.items.iter().all(|c| c.mark.is_empty()));
}

#[test]
fn open_incidents_need_somebody_and_are_not_told_twice() {
    let view = compose(&full("daily"));
    assert_eq!(view.headline.subject, "1 needs you, 6 to look at");
    assert_eq!(view.needs_you.items.len(), 1);
    assert!(view.urgent.items.iter().all(|u| u.workflow != "payout-reconcile"));
    assert_eq!(view.urgent.more, "And 1 more.");
    assert_eq!(view.late, "Late: covers 3 slots; Matins was away Tue 22:12 to Wed 06:42.");
}

#[test]
fn the_footer_of_the_night_balances() {
    let counts = compose(&night("daily")).counts().clone();
    assert_eq!((counts.received, counts.paged), (344, 14));
    assert_eq!(counts.silenced, [("S-7".to_owned(), 15)].into());
    assert_eq!(counts.sum(), counts.received);
}

#[test]
fn a_large_digest_is_capped_and_says_how_many_more() {
    for digest in ["hourly", "daily", "weekly"] {
        let input = large(digest, 120);
        let (mail, message) = (mail(&input), slack(&input));
        assert!(mail.html.len() < 100_000, "{digest}: {} bytes of HTML", mail.html.len());
        assert!(message.blocks.len() <= 50);
        assert!(plain(&message).chars().count() < 12_000);
        assert!(plain(&message).contains(" more"));
        let named = (0..120).filter(|n| mail.text.contains(&format!("wf-{n:03}"))).count();
        assert!(named >= 60, "{digest}: {named} names");
    }
}

#[test]
fn weekly_patterns_name_offenders_downstreams_and_what_healed() {
    let text = mail(&night("weekly")).text;
    for part in ["Repeat offenders. lead-enrichment has 9", "hubspot hit 3 workflows", "Reprompt", "LLM output"] {
        assert!(text.contains(part), "{part}\n{text}");
    }
    assert!(text.contains("week before"), "{text}");
}

#[test]
fn pictures_are_those_that_the_page_shows() {
    for digest in ["hourly", "daily", "weekly"] {
        let mail = mail(&night(digest));
        let shown = mail.html.matches("src=\"cid:").count();
        assert_eq!(shown, mail.images.len());
        assert!(mail.images.iter().all(|i| mail.html.contains(&format!("\"cid:{}\"", i.cid))));
    }
}

#[test]
fn a_digest_in_a_zone_with_half_hours_labels_full_hours_of_that_zone() {
    let labels: Vec<_> = compose(&night("daily")).plot.failures.labels.into_iter().map(|l| l.text).collect();
    assert_eq!(labels, ["10:00", "14:00", "18:00", "22:00", "02:00", "06:00"]);
}

fn any_cell() -> impl Strategy<Value = Cell> {
    let classes = prop::sample::select(Class::ALL);
    let dispositions = prop::sample::select(Disposition::ALL);
    let fate = prop_oneof![
        3 => Just(Fate::Digest),
        1 => (0..9_u8).prop_map(|n| Fate::Silenced(format!("S-{n}"))),
        1 => (0..9_u8).prop_map(|n| Fate::Paged(format!("i-{n}"))),
    ];
    (0..40_u8, classes, dispositions, 0..60_u8, 0..2_000_u64, 0.0..30.0_f64, fate, any::<bool>()).prop_map(
        |(workflow, class, disposition, cause, count, hours, fate, is_recovery)| {
            // A fingerprint holds its workflow and its class.
            let (workflow, cause) = (format!("w-{workflow}"), format!("{workflow}-{class}-{cause}"));
            let cell = match is_recovery {
                true => recoveries(&workflow, "retry", count, 10, hours),
                false => failures(&workflow, class, disposition, &cause, count, hours),
            };
            Cell { fate, ..cell }
        },
    )
}

fn any_input() -> impl Strategy<Value = DigestInput> {
    let digests = prop::sample::select(vec!["hourly", "daily", "weekly", "of-my-own"]);
    (digests, prop::collection::vec(any_cell(), 0..120)).prop_map(|(digest, cells)| {
        let mut input = night(digest);
        input.cells.extend(cells);
        input
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]

    #[test]
    fn every_event_is_accounted_for_and_every_list_is_capped(input in any_input()) {
        let view = compose(&input);
        let counts = view.counts();
        prop_assert_eq!(counts.received, input.cells.iter().map(|c| c.count).sum::<u64>());
        prop_assert_eq!(counts.received, counts.sum());
        prop_assert!(view.fingerprints.new.items.len() <= 8);
        prop_assert!(view.fingerprints.known.items.len() <= 10);
        prop_assert!(view.urgent.items.len() <= 5);
        prop_assert!(view.workflows.items.len() <= 20);
        prop_assert!(view.footer.rows.len() <= 10);
    }

    #[test]
    fn the_order_of_what_was_read_does_not_show(input in any_input()) {
        let mut turned = input.clone();
        turned.cells.reverse();
        turned.open_letters.reverse();
        prop_assert_eq!(compose(&input), compose(&turned));
    }
}
