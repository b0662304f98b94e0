//! Whole messages: goldens, and what must hold for any text.

use super::page_facts::{PageFacts, PageKind};
use super::page_view::PageView;
use super::sample::{plain_page, with_words};
use super::{Content, MailContent, MailFrame, Renderer, Sample, SlackMessage, page_samples};
use crate::deliver::Channel;
use proptest::prelude::*;
use serde_json::Value;
use std::sync::LazyLock;

fn renderer() -> &'static Renderer {
    static RENDERER: LazyLock<Renderer> = LazyLock::new(|| {
        let (renderer, problems) = Renderer::new(&[]);
        assert_eq!(problems, []);
        renderer
    });
    &RENDERER
}

fn samples() -> &'static [Sample] {
    static SAMPLES: LazyLock<Vec<Sample>> = LazyLock::new(page_samples);
    &SAMPLES
}

/// Every string in a value, at any depth.
fn strings(value: &Value) -> Vec<String> {
    match value {
        Value::String(text) => vec![text.clone()],
        Value::Array(items) => items.iter().flat_map(strings).collect(),
        Value::Object(fields) => fields.values().flat_map(strings).collect(),
        Value::Null | Value::Bool(_) | Value::Number(_) => Vec::new(),
    }
}

fn slack_of(view: &Value, template: &str) -> SlackMessage {
    let rendered = renderer().render(template, Channel::Slack, view, &MailFrame::default());
    assert_eq!(rendered.problem, None);
    let Content::Slack(message) = rendered.content else { panic!("not for Slack") };
    message
}

fn mail_of(view: &Value, template: &str) -> MailContent {
    let rendered = renderer().render(template, Channel::Email, view, &MailFrame::default());
    assert_eq!(rendered.problem, None);
    let Content::Email(mail) = rendered.content else { panic!("no mail") };
    mail
}

/// What Slack would refuse, and what data must never do.
fn slack_faults(message: &SlackMessage) -> Vec<String> {
    let blocks = Value::Array(message.blocks.clone());
    let all: Vec<String> = strings(&blocks).into_iter().chain([message.text.clone()]).collect();
    let mut faults = Vec::new();
    let total: usize = strings(&blocks).iter().map(|s| s.encode_utf16().count()).sum();
    let mut need = |holds: bool, what: String| {
        if !holds {
            faults.push(what);
        }
    };
    need(message.blocks.len() <= 50, format!("{} blocks", message.blocks.len()));
    need(total < 12_000, format!("{total} characters"));
    need(!message.text.is_empty() && message.text.chars().count() <= 300, format!("text {:?}", message.text));
    need(!message.text.contains('\n'), "text of several lines".to_owned());
    for text in &all {
        need(!text.is_empty(), "an empty string".to_owned());
        need(text.encode_utf16().count() <= 3_000, format!("a string of {}", text.chars().count()));
        need(text.matches("```").count() % 2 == 0, format!("odd fences in {text:?}"));
        for mark in ["<!", "<@", "<#", "<http://evil"] {
            need(!text.contains(mark), format!("{mark} in {text:?}"));
        }
    }
    for block in message.blocks.iter().filter(|b| b["type"] == "header") {
        let title = block["text"]["text"].as_str().unwrap_or_default();
        need(title.encode_utf16().count() <= 150, format!("header {title:?}"));
    }
    faults
}

#[test]
fn every_built_in_template_passes_every_sample() {
    let problems: Vec<String> = renderer().check(samples()).iter().map(ToString::to_string).collect();
    assert_eq!(problems, Vec::<String>::new());
}

#[test]
fn slack_takes_every_sample() {
    for sample in samples() {
        let message = slack_of(&sample.view, &sample.template);
        assert_eq!(slack_faults(&message), Vec::<String>::new(), "{} {}", sample.template, sample.name);
    }
}

#[test]
fn mails_of_every_sample_keep_their_limits_and_their_markup() {
    for sample in samples() {
        let mail = mail_of(&sample.view, &sample.template);
        assert!(mail.subject.chars().count() <= 120 && !mail.subject.contains(char::is_control), "{}", mail.subject);
        assert!(mail.html.len() < 100_000);
        assert!(!mail.html.contains("<script") && !mail.html.contains("<!channel"), "{}", mail.html);
        assert!(!mail.html.contains("href=\"\""), "{}", mail.html);
        assert!(mail.text.lines().count() > 3);
    }
}

/// Every message about incidents as it looks on every channel, plain and hostile.
#[test]
fn messages_look_as_agreed() {
    for sample in samples().iter().filter(|s| ["plain", "bare", "hostile"].contains(&s.name)) {
        let message = slack_of(&sample.view, &sample.template);
        let mail = mail_of(&sample.view, &sample.template);
        let reason = sample.view["reason"].as_str().unwrap_or("operator");
        let blocks = serde_json::to_string_pretty(&message.blocks).unwrap();
        let shown =
            format!("text: {}\n{blocks}\n\n==== subject\n{}\n\n==== text\n{}", message.text, mail.subject, mail.text);
        insta::assert_snapshot!(format!("{reason}-{}", sample.name), shown);
        if sample.name != "bare" {
            insta::assert_snapshot!(format!("{reason}-{}-html", sample.name), mail.html);
        }
    }
}

#[test]
fn a_page_says_what_how_many_since_when_whose_and_where_to_click() {
    let view = PageView::of(&plain_page(PageKind::Page)).to_json();
    let message = slack_of(&view, "page");
    let all = strings(&Value::Array(message.blocks.clone())).join("\n");
    for part in [
        "Page: order-to-crm, 1 order has not reached hubspot",
        "Owner: *Asha Rao* · since Tue 21:50 · final after 3 attempts, transient",
        "order-1041 in push-contact: `503 Service Unavailable: upstream connect error`",
        "*<https://matins.example.com/a/212?sig=Zk3v9|Acknowledge>*  ·  <https://matins.example.com/i/212|Incident>",
        "<https://matins.example.com/r/order-to-crm|Runbook>  ·  <https://matins.example.com/l/212/1|n8n run>",
        "#212 · money · IST · reminder in 4 h, to oncall-mail in 30 min unless acknowledged",
    ] {
        assert!(all.contains(part), "{part}\n{all}");
    }
    assert_eq!(message.text, "#212 Page: order-to-crm, 1 order has not reached hubspot (order-1041). Owner Asha Rao.");
    assert_eq!(mail_of(&view, "page").subject, "order-to-crm: 1 order has not reached hubspot [#212]");
}

#[test]
fn a_cut_message_says_how_much_is_missing() {
    let mut facts = plain_page(PageKind::Page);
    facts.sample.as_mut().unwrap().error.message = Some("a<b && c>d ".repeat(900));
    let message = slack_of(&PageView::of(&facts).to_json(), "page");
    let all = strings(&Value::Array(message.blocks)).join("\n");
    assert!(all.contains("a&lt;b &amp;&amp; c&gt;d"), "{all}");
    assert!(all.contains(" more characters)`"), "{all}");
}

#[test]
fn triple_braces_escape_like_double_ones() {
    let view = PageView::of(&with_words(plain_page(PageKind::Page), "<!channel> & 'x'")).to_json();
    let (_, text) = super::builtin_files().iter().find(|(name, _)| *name == "page/slack.hbs").unwrap();
    let loose =
        text.replace("{{title}}", "{{{title}}}").replace("{{sample}}", "{{{sample}}}").replace("{{item}}", "{{&item}}");
    let (loose, problems) = Renderer::new(&[("page/slack.hbs".to_owned(), loose)]);
    assert_eq!(problems, []);
    let frame = MailFrame::default();
    assert_eq!(
        loose.render("page", Channel::Slack, &view, &frame),
        renderer().render("page", Channel::Slack, &view, &frame)
    );
}

#[test]
fn a_broken_template_costs_no_page() {
    let view = PageView::of(&plain_page(PageKind::Page)).to_json();
    let expected = slack_of(&view, "page");
    for broken in ["{{#if eror}}x {{workflow}\n{{error.mesage}}", "{{error.mesage}}", "{{#if eror}}x{{/if}}"] {
        let (renderer, mut problems) = Renderer::new(&[("page/slack.hbs".to_owned(), broken.to_owned())]);
        let rendered = renderer.render("page", Channel::Slack, &view, &MailFrame::default());
        problems.extend(rendered.problem);
        assert_eq!(rendered.content, Content::Slack(expected.clone()), "{broken}");
        assert_eq!(problems[0].file, "page/slack.hbs");
    }
}

#[test]
fn a_view_that_no_template_knows_is_still_told() {
    let view = serde_json::json!({"number": 5, "workflow": "pay", "error": {"message": "declined"}});
    let rendered = renderer().render("page", Channel::Slack, &view, &MailFrame::default());
    let Content::Slack(message) = rendered.content else { panic!("not Slack") };
    let all = strings(&Value::Array(message.blocks)).join("\n");
    assert!(all.contains("#5 pay") && all.contains("Error: declined"), "{all}");
    assert!(rendered.problem.is_some());
}

#[test]
fn a_digest_of_ones_own_is_written_by_its_folder_or_by_the_daily_one() {
    let own = [("digest-night/text.hbs".to_owned(), "night {{number}}".to_owned())];
    let (renderer, problems) = Renderer::new(&own);
    assert_eq!(problems, []);
    let view = serde_json::json!({"number": 3});
    let text = |folder| renderer.render(folder, Channel::Text, &view, &MailFrame::default()).content;
    assert_eq!(text("digest-night"), Content::Text("night 3\n".to_owned()));
    assert_eq!(text("digest-other"), text("digest-daily"));
}

#[test]
fn every_name_of_the_contract_is_in_the_view_of_a_page() {
    let names = super::field_names(samples());
    let contract = "number kind workflow domain class severity step item downstream counts.events counts.items since \
        error.type error.message error.http_status owner runbook links[].url acknowledge_url incident_url fingerprint \
        symptoms[].text workflows[].name";
    for folder in ["page", "reminder", "escalation", "resolved"] {
        for name in contract.split_whitespace() {
            assert!(names[folder].iter().any(|known| known == name), "{folder} {name}");
        }
    }
}

#[test]
fn all_32_templates_are_exported() {
    assert_eq!(super::builtin_files().len(), 32);
}

#[test]
fn several_workflows_of_one_page_are_listed() {
    let mut facts = plain_page(PageKind::Page);
    let mut second = facts.workflows[0].clone();
    second.name = "refunds".into();
    facts.workflows.push(second);
    let message = slack_of(&PageView::of(&facts).to_json(), "page");
    let all = strings(&Value::Array(message.blocks)).join("\n");
    assert!(all.contains("Page: 2 workflows, 2 orders have not reached hubspot"), "{all}");
    assert!(all.contains("· *refunds*: 1 order, owner Asha Rao"), "{all}");
}

#[test]
fn a_symptom_that_names_its_workflow_is_not_named_twice() {
    let mut facts = plain_page(PageKind::Page);
    facts.sample = None;
    facts.symptoms = vec!["order-to-crm has not been heard for 31 h.".to_owned()];
    assert_eq!(PageView::of(&facts).title, "Page: order-to-crm has not been heard for 31 h");
    facts.symptoms = vec!["14 orders have not reached hubspot for 1 h 12 min (oldest: order-1041)".to_owned()];
    assert_eq!(
        PageView::of(&facts).title,
        "Page: order-to-crm, 14 orders have not reached hubspot for 1 h 12 min (oldest: order-1041)"
    );
}

fn title_when_resolved(change: impl Fn(&mut PageFacts)) -> String {
    let mut facts = plain_page(PageKind::Resolved);
    change(&mut facts);
    PageView::of(&facts).title
}

#[test]
fn a_resolution_claims_no_more_than_is_known() {
    assert_eq!(title_when_resolved(|_| {}), "Resolved #212: order-to-crm, all 10 orders have reached hubspot");
    let by_hand = title_when_resolved(|f| f.resolution.as_mut().unwrap().recovered = 0);
    assert_eq!(by_hand, "Resolved #212: order-to-crm, 10 dead letters are resolved");
    let left_open = title_when_resolved(|f| {
        let resolution = f.resolution.as_mut().unwrap();
        (resolution.by, resolution.open) = (Some("Asha Rao".to_owned()), 1);
    });
    assert_eq!(left_open, "Resolved #212: order-to-crm, closed by Asha Rao, 1 dead letter is still open");
}

fn any_text() -> impl Strategy<Value = String> {
    let pieces = prop::sample::select(vec![
        "<!here>",
        "<@U1>",
        "<#C1>",
        "<http://evil.example|x>",
        "```",
        "`",
        "*",
        "_",
        "~",
        "&",
        "<",
        ">",
        "\n",
        "\r\n",
        "# ",
        "-# ",
        "---",
        "| ",
        "… (5 more characters)",
        "word ",
        "🔥",
        "é",
        "{{x}}",
        "\u{200b}",
        "\u{0}",
        "'",
    ]);
    let piece = prop_oneof![4 => pieces.prop_map(str::to_owned), 1 => ".{0,40}"];
    prop::collection::vec(piece, 0..60).prop_flat_map(|parts| {
        let text = parts.concat();
        (1usize..40).prop_map(move |n| text.repeat(n))
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn slack_takes_any_text_and_data_can_do_nothing(text in any_text(), kind in prop::sample::select(PageKind::ALL.to_vec())) {
        let view = PageView::of(&with_words(plain_page(kind), &text)).to_json();
        let message = slack_of(&view, kind.template());
        prop_assert_eq!(slack_faults(&message), Vec::<String>::new());
    }

    #[test]
    fn no_template_text_breaks_the_renderer(text in "([{}#/]{1,3}|if|each|eror|workflow|error\\.message|links|this| |\n|\\.\\./|@root|\\(|\\)|\\|){0,30}") {
        let (renderer, _) = Renderer::new(&[("page/slack.hbs".to_owned(), text)]);
        renderer.check(&samples()[..1]);
        let view = PageView::of(&plain_page(PageKind::Page)).to_json();
        let rendered = renderer.render("page", Channel::Slack, &view, &MailFrame::default());
        prop_assert!(matches!(rendered.content, Content::Slack(_)));
    }

    #[test]
    fn a_template_that_writes_anything_still_makes_a_message_that_slack_takes(text in any_text()) {
        // What templates write is trusted with markup; only lengths and fences are ours to keep.
        let message = super::slack::pack(&text, "");
        let faults = slack_faults(&message);
        let ours: Vec<&String> = faults.iter().filter(|f| !f.starts_with('<')).collect();
        prop_assert_eq!(ours, Vec::<&String>::new());
    }
}
