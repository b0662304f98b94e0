//! What a digest promises, over arbitrary input; and what one looks like, on every channel.

use super::sample::*;
use super::*;
use crate::deliver::Channel;
use crate::event::{Class, Disposition};
use crate::render::{Content, MailContent, MailFrame, Rendered, Renderer, SlackMessage};
use crate::workflow::Domain;
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

/// A daily digest in which `old-flow` has `hours` old dead letters and nothing else, beside a workflow with news.
fn with_old_letters(hours: f64, fresh: u64) -> DigestInput {
    let mut input = quiet("daily");
    input.open_letters = vec![letters("old-flow", "old", 3, fresh, hours, "item-of-old")];
    let count = LetterCount { opened_count: fresh, resolved_count: 0, open_count: 3, oldest_at: Some(ago(hours)) };
    input.letter_flow.by_workflow.insert("old-flow".into(), count);
    input.letter_flow.open_at_end = 3;
    input.fingerprints.insert(fp("old"), cause("old-flow", Class::InvalidInput, "422 of old-flow", ago(hours)));
    input
        .workflows
        .insert("old-flow".into(), WorkflowInfo { every: None, ..workflow("Dev Patel", Domain::Standard, hours) });
    input
}

#[test]
fn letters_of_earlier_windows_are_counted_and_named_only_with_news_of_their_workflow() {
    for hours in [24.001, 47.9, 200.0] {
        let mail = mail(&with_old_letters(hours, 0));
        assert!(!mail.text.contains("old-flow") && !mail.html.contains("old-flow"), "{}", mail.text);
        assert!(mail.text.contains("Dead letters open                  3"), "{}", mail.text);
        assert!(mail.text.contains("And 3 dead letters of earlier windows."), "{}", mail.text);
    }
    assert!(mail(&with_old_letters(47.9, 1)).text.contains("3 items of old-flow have waited for up to 47 h"));
}

#[test]
fn letters_that_wait_for_over_24_h_in_whole_minutes_are_something_to_look_at() {
    let looked_at = |hours| compose(&with_old_letters(hours, 0)).urgent.items;
    assert_eq!(looked_at(24.001), []);
    let items = looked_at(25.5);
    assert_eq!(items[0].text, "3 older dead letters have waited for up to 25 h");
    assert_eq!((items[0].workflow.as_str(), items[0].contact.owner.as_str()), ("", "Dev Patel"));
}

#[test]
fn a_short_window_does_not_remind_of_letters_that_nothing_is_new_of() {
    let mut input = with_old_letters(300.0, 0);
    input.window.start_at = ago(1.0);
    assert_eq!(compose(&input).urgent.items, []);
}

#[test]
fn a_window_is_called_what_it_is() {
    let said = |minutes: i64| {
        let mut input = night("daily");
        input.window.start_at = input.window.end_at - chrono::Duration::minutes(minutes);
        compose(&input).numbers.note
    };
    let before = |period| format!("against the {period} before");
    let notes = [1, 60, 526, 23 * 60, 24 * 60, 25 * 60, 7 * 24 * 60].map(said);
    assert_eq!(notes, ["window", "hour", "window", "day", "day", "day", "week"].map(before));
}

#[test]
fn tries_that_nobody_told_have_no_column() {
    let mut input = night("weekly");
    assert!(mail(&input).text.contains("Mean tries"));
    input.cells.iter_mut().for_each(|c| c.attempts_count = 0);
    let mail = mail(&input);
    assert!(!mail.text.contains("Mean tries") && !mail.html.contains("Mean tries"));
    assert!(compose(&input).recoveries.items.iter().all(|r| r.tries.is_empty()));
}

#[test]
fn a_step_that_is_blank_leaves_no_separator() {
    let mut input = night("daily");
    for info in input.fingerprints.values_mut() {
        (info.step, info.downstream) = (Some(" ".to_owned()), Some(String::new()));
    }
    for text in [mail(&input).text, mail(&input).html, plain(&slack(&input))] {
        assert!(
            !text.contains(" /\n") && !text.contains(" / ,") && !text.contains(", from .") && !text.contains("at ."),
            "{text}"
        );
    }
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
