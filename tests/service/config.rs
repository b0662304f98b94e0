//! Config and start-up: a bad file changes nothing, a good one sends nothing again, and one store serves one process.

use crate::support::app::{App, failure};
use crate::support::eventually;
use std::fs;

/// Waits until the metrics say whether the config last read is the one in use.
async fn reloaded(app: &App, successful: bool) {
    let line = format!("matins_config_last_reload_successful {}", u8::from(successful));
    eventually("the reload is seen", async || {
        app.get("/metrics").await.ok()?.text().await.ok()?.lines().any(|l| l == line).then_some(())
    })
    .await;
}

#[tokio::test]
async fn a_bad_file_keeps_the_old_config_and_is_told_once_and_a_good_one_sends_nothing_again() {
    let mut app = App::up().await;
    app.fail(&failure("pay-1", "a", "declined")).await;
    app.expect_slack("/oncall", 1).await;
    let good = app.settings.text();

    fs::write(app.path("matins.toml"), good.replace("[[workflows]]", "[[workflow]]")).unwrap();
    app.hup();
    let told = app.expect_slack("/ops", 1).await;
    assert!(told.words().contains("workflow"), "{}", told.words());
    reloaded(&app, false).await;
    app.hup();
    let refusals = || app.log().matches("the config was not reloaded").count();
    eventually("the second refusal", async || (refusals() >= 2).then_some(())).await;
    app.fail(&failure("audit-1", "a", "the old config pages for this")).await;
    app.expect_slack("/oncall", 2).await;

    app.settings.more = "[[workflows]]\nname = \"ledger\"\ndomain = \"money\"\n".to_owned();
    app.write_config();
    app.hup();
    reloaded(&app, true).await;
    app.fail(&failure("ledger", "a", "only the new config pages for this")).await;
    let page = app.expect_slack("/oncall", 3).await;
    assert!(page.words().contains("only the new config"), "{}", page.words());
    app.end().await;
}

#[tokio::test]
async fn a_file_that_was_replaced_is_noticed_without_a_signal() {
    let mut app = App::up().await;
    app.settings.more = "[[workflows]]\nname = \"ledger\"\ndomain = \"money\"\n".to_owned();
    // As editors do it: written beside, then moved over.
    fs::write(app.path("matins.toml.new"), app.settings.text()).unwrap();
    fs::rename(app.path("matins.toml.new"), app.path("matins.toml")).unwrap();
    eventually("the new config is in use", async || app.log().contains("config reloaded").then_some(())).await;
    app.fail(&failure("ledger", "a", "declined")).await;
    app.expect_slack("/oncall", 1).await;
    app.end().await;
}

#[tokio::test]
async fn a_second_process_on_the_same_store_is_refused_with_a_clear_sentence_and_the_first_lives_on() {
    let mut app = App::up().await;
    let own = format!("127.0.0.1:{}", app.settings.http_port);
    let second = app.settings.text().replace(&format!("listen = \"{own}\""), "listen = \"127.0.0.1:0\"");
    fs::write(app.path("second.toml"), second).unwrap();
    let mut process = app.spawn("second.toml", "second");
    let status = eventually("the second process ends", async || process.try_wait().unwrap()).await;
    assert_eq!(status.code(), Some(1));
    let words = fs::read_to_string(app.path("second")).unwrap();
    assert!(words.contains("matins.db is in use by another matins"), "{words}");
    app.fail(&failure("pay-1", "a", "declined")).await;
    app.expect_slack("/oncall", 1).await;
    app.end().await;
}

#[tokio::test]
async fn a_port_in_use_and_a_bad_config_are_told_apart_by_exit_code() {
    let app = App::up().await;
    let text = app.settings.text();
    for (name, text, code, says) in [
        ("port", text.replace("matins.db", "other.db"), 1, "can't be used"),
        ("config", text.replace("[store]", "[stores]"), 2, "stores"),
    ] {
        let file = format!("{name}.toml");
        fs::write(app.path(&file), text).unwrap();
        let mut process = app.spawn(&file, name);
        let status = eventually("it ends", async || process.try_wait().unwrap()).await;
        let words = fs::read_to_string(app.path(name)).unwrap();
        assert_eq!(status.code(), Some(code), "{words}");
        assert!(words.contains(says), "{words}");
    }
    app.end().await;
}
