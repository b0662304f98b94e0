//! The demo against a real nats-server: what it shows is what must come of such a night.

use super::*;

fn install_tls() {
    // A second test in the same process finds it done.
    drop(rustls::crypto::ring::default_provider().install_default());
}

async fn played(options: DemoOptions) -> String {
    install_tls();
    let mut out = Vec::new();
    let ended = play(&options, Style::default(), &mut out, &CancellationToken::new()).await;
    let shown = String::from_utf8(out).unwrap();
    let log = std::fs::read_to_string(options.folder.unwrap().join("matins.log")).unwrap();
    assert!(ended.is_ok(), "{ended:?}\n{shown}\n{log}");
    shown
}

fn count(text: &str, part: &str) -> usize {
    text.matches(part).count()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_night_of_two_thousand_failures_is_two_pages_and_a_digest() {
    let folder = tempfile::tempdir().unwrap();
    let listen = Some("127.0.0.1:0".parse().unwrap());
    let options = DemoOptions { seconds: Some(1), folder: Some(folder.path().to_owned()), listen };
    let shown = played(options).await;
    assert_eq!(count(&shown, "╭─ Slack #oncall"), 3, "two pages, and one update on the first");
    assert_eq!(count(&shown, "│ Page: "), 2);
    assert_eq!(count(&shown, "│ Update on #1: order-to-crm, now 2,000 orders"), 2, "on Slack and by mail");
    assert_eq!(count(&shown, "╭─ Mail to oncall@example.com"), 3);
    assert!(shown.contains("2 pages out"));
    for name in
        ["order-to-crm", "payment-capture", "lead-enrichment", "invoice-1041", "ticket-3310", "Asha Rao", "Dev Patel"]
    {
        let digest = shown.split("THE SAME AS A MAIL").nth(1).unwrap();
        assert!(digest.contains(name), "{name} is not in the digest");
    }
    assert!(!shown.contains('\x1b'), "no colours without a terminal");
    let html = std::fs::read_to_string(folder.path().join("mails/daily-digest.html")).unwrap();
    assert!(html.contains("data:image/png;base64,") && !html.contains("cid:"), "a browser shows the plots");
    assert!(!shown.contains("rzp_demo_only") && !html.contains("rzp_demo_only"), "a token is never shown");
    assert!(!folder.path().join("nats-server").exists(), "what only the demo needs is gone");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_signal_ends_it_in_order_at_any_time() {
    install_tls();
    let folder = tempfile::tempdir().unwrap();
    let listen = Some("127.0.0.1:0".parse().unwrap());
    let options = DemoOptions { seconds: Some(0), folder: Some(folder.path().to_owned()), listen };
    let stop = CancellationToken::new();
    stop.cancel();
    let mut out = Vec::new();
    play(&options, Style::default(), &mut out, &stop).await.unwrap();
    assert!(!String::from_utf8(out).unwrap().contains("SUMMARY"));
}
