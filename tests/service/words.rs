//! What people get, when data is hostile: it can't mention, link or format on Slack, and adds no header to a mail.

use crate::support::app::{App, failure};

const HOSTILE: &str = "<!channel> <@U024BE7LH> <https://evil.example.com|click> *bold* _it_ ~gone~ `code` &amp; @everyone\r\nBcc: evil@example.com\r\n\r\n.\r\n=?utf-8?q?x?= \u{202e}\u{0} ключ 🔑";

#[tokio::test]
async fn hostile_text_mentions_links_and_formats_nothing_on_slack() {
    let mut app = App::up().await;
    let mut event = failure("pay-1", HOSTILE, HOSTILE);
    event["step"] = HOSTILE.into();
    app.fail(&event).await;
    let page = app.expect_slack("/oncall", 1).await;
    for active in ["<!", "<@", "<#", "<https://evil"] {
        assert!(!page.words().contains(active), "{active} in {}", page.words());
    }
    assert!(page.words().contains("&lt;!channel&gt;"), "{}", page.words());
    let blocks = page.body["blocks"].as_array().unwrap();
    assert!(blocks.len() <= 50 && page.words().len() < 12_000);
    app.end().await;
}

#[tokio::test]
async fn hostile_text_adds_no_header_to_a_mail_and_breaks_no_line() {
    let mut app = App::new().await;
    app.settings.page = "oncall-mail";
    app.start().await;
    let mut event = failure("pay-1", HOSTILE, &format!("{HOSTILE} {}", "long ".repeat(1000)));
    event["step"] = HOSTILE.into();
    app.fail(&event).await;
    let mail = app.expect_mail("oncall@example.com", 1).await;
    assert_eq!(mail.from, "matins@example.com");
    assert_eq!(mail.to, ["oncall@example.com"]);
    let (head, _) = mail.raw.split_once("\r\n\r\n").unwrap();
    assert!(head.is_ascii(), "{head}");
    let names: Vec<String> = head
        .lines()
        .filter(|line| !line.starts_with([' ', '\t']))
        .map(|line| line.split(':').next().unwrap().to_ascii_lowercase())
        .collect();
    for name in ["from", "to", "subject", "date", "message-id", "list-id", "auto-submitted", "mime-version"] {
        assert_eq!(names.iter().filter(|n| *n == name).count(), 1, "{name} in\n{head}");
    }
    assert!(!names.iter().any(|n| n == "bcc" || n == "cc"), "{head}");
    assert!(mail.raw.lines().all(|line| line.len() <= 998), "a line is too long");
    assert!(mail.subject().chars().all(|c| !c.is_control()), "{:?}", mail.subject());
    app.end().await;
}
