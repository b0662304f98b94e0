//! Delivery against real servers: what is sent, how often, to whom instead, and what the outbox says of it.

#![allow(clippy::unwrap_used, reason = "helpers of tests fail the test")]

mod support;

use chrono::{DateTime, TimeDelta, Utc};
use matins::clock;
use matins::config::{SmtpSettings, SmtpTls};
use matins::deliver::{Channel, Deliverer, DeliveryNews, DeliverySettings, Receiver, ReceiverKind, Recipients, Render};
use matins::name::ReceiverName;
use matins::outbox::queue::{self, RedriveOutcome};
use matins::outbox::{Entry, EntryId, EntrySummary, MessageKind, NewEntry, State};
use matins::render::{Content, MailContent, SlackMessage};
use matins::store::Store;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use support::nats::Nats;
use support::slack::{Drop, Reply, Slack};
use support::smtp::{Action, Smtp, Stage};
use support::{eventually, install_tls};
use tokio::sync::{Notify, watch};
use tokio::task::JoinHandle;

/// A receiver whose tries panic once they are written down.
const CURSED: &str = "cursed";
const ONCALL: &str = "oncall@example.com";

/// Says the view's text in every form.
struct Plain;

impl Plain {
    fn content(text: &str, id: &str, receiver: &Receiver) -> Content {
        match receiver.kind.channel() {
            Channel::Slack => slack_content(text),
            Channel::Email => mail_content(text, id),
            Channel::Json => Content::Json(json!({ "text": text })),
            Channel::Text => Content::Text(text.to_owned()),
        }
    }
}

impl Render for Plain {
    fn copy(&self, entry: &Entry, receiver: &Receiver) -> Content {
        Self::content(entry.new.view["text"].as_str().unwrap(), &entry.new.number.to_string(), receiver)
    }

    fn news(&self, news: &DeliveryNews, number: i64, receiver: &Receiver) -> (Value, Content) {
        let instead: Vec<&str> = news.instead.iter().map(ReceiverName::as_str).collect();
        let text = format!("receiver {} is broken: {}; instead: {}", news.receiver, news.reason, instead.join(", "));
        (json!({ "text": text }), Self::content(&text, &number.to_string(), receiver))
    }
}

fn slack_content(text: &str) -> Content {
    let blocks = vec![json!({"type": "section", "text": {"type": "mrkdwn", "text": text}})];
    Content::Slack(SlackMessage { text: text.to_owned(), blocks })
}

fn mail_content(text: &str, id: &str) -> Content {
    Content::Email(MailContent {
        subject: text.to_owned(),
        text: text.to_owned(),
        html: format!("<p>{text}</p>"),
        message_id: format!("{id}@matins.example.com"),
        references: vec![],
        list_id: "pages.matins.example.com".to_owned(),
        images: vec![],
    })
}

/// Servers, a store and a running delivery loop.
struct World {
    slack: Slack,
    smtp: Smtp,
    store: Store,
    settings: watch::Sender<Arc<DeliverySettings>>,
    nats: watch::Sender<Option<async_nats::Client>>,
    wake: Arc<Notify>,
    running: Option<JoinHandle<()>>,
}

impl World {
    /// `oncall` on Slack falls back to `oncall-mail`, which falls back to nothing; the operator is at `ops`.
    async fn new() -> Self {
        install_tls();
        let (slack, smtp) = (Slack::start().await, Smtp::start().await);
        let mut settings = DeliverySettings {
            operator: vec!["ops".into(), "oncall-mail".into()],
            smtp: Some(smtp_settings(smtp.port)),
            ..DeliverySettings::default()
        };
        for (name, kind, fallback) in [
            ("oncall", webhook_of(&slack, "/oncall"), Some("oncall-mail")),
            ("oncall-mail", email(&[ONCALL]), None),
            ("second", webhook_of(&slack, "/second"), Some("oncall-mail")),
            ("ops", webhook_of(&slack, "/ops"), None),
        ] {
            add(&mut settings, name, kind, fallback);
        }
        let store = Store::open("sqlite::memory:").await.unwrap();
        let (settings, nats) = (watch::channel(Arc::new(settings)).0, watch::channel(None).0);
        let mut world = Self { slack, smtp, store, settings, nats, wake: Arc::default(), running: None };
        world.start();
        world
    }

    fn start(&mut self) {
        let deliverer = Deliverer::new(
            self.store.clone(),
            self.settings.subscribe(),
            self.nats.subscribe(),
            Arc::new(Plain),
            Arc::new(|report| assert_ne!(report.entry.new.receiver.as_str(), CURSED, "this try was to end badly")),
        )
        .unwrap();
        self.wake = deliverer.waker();
        self.running = Some(tokio::spawn(async move { deliverer.run(std::future::pending()).await.unwrap() }));
    }

    /// Ends the loop between two instructions, as a kill does.
    async fn kill(&mut self) {
        let running = self.running.take().unwrap();
        running.abort();
        assert!(running.await.unwrap_err().is_cancelled());
    }

    fn configure(&self, change: impl FnOnce(&mut DeliverySettings)) {
        self.settings.send_modify(|settings| change(Arc::make_mut(settings)));
    }

    async fn say(&self, kind: MessageKind, receiver: &str, text: &str) -> EntryId {
        self.say_at(kind, receiver, text, clock::now()).await
    }

    async fn say_at(&self, kind: MessageKind, receiver: &str, text: &str, created_at: DateTime<Utc>) -> EntryId {
        let settings = self.settings.borrow().clone();
        let mut tx = self.store.begin().await.unwrap();
        let number = queue::next_numbers(&mut tx, 1).await.unwrap();
        let entry = NewEntry {
            number,
            kind,
            receiver: receiver.into(),
            address: None,
            workflow: Some("pay".into()),
            incident_id: None,
            digest_id: None,
            template: kind.as_str().to_owned(),
            view: json!({ "text": text }),
            content: Plain::content(text, &number.to_string(), &settings.receivers[&ReceiverName::from(receiver)]),
            fallback_of: None,
            due_at: created_at,
            created_at,
        };
        let id = queue::enqueue(&mut tx, &entry).await.unwrap();
        tx.commit().await.unwrap();
        self.wake.notify_one();
        id
    }

    async fn row(&self, id: EntryId) -> EntrySummary {
        self.rows().await.into_iter().find(|row| row.id == id).unwrap()
    }

    async fn rows(&self) -> Vec<EntrySummary> {
        queue::list(self.store.reader(), None, 1000).await.unwrap()
    }

    async fn rows_of(&self, kind: MessageKind) -> Vec<EntrySummary> {
        self.rows().await.into_iter().filter(|row| row.kind == kind).collect()
    }

    async fn expect_state(&self, id: EntryId, state: State) -> EntrySummary {
        let what = format!("entry {} is {}", id.0, state.as_str());
        eventually(&what, async || Some(self.row(id).await).filter(|row| row.state == state)).await
    }

    /// Waits until a failed try is written down.
    async fn expect_error(&self, id: EntryId) -> EntrySummary {
        eventually("a failed try", async || Some(self.row(id).await).filter(|row| row.last_error.is_some())).await
    }

    /// Waits until nothing is pending, so that what was not sent by then never is.
    async fn settle_down(&self) {
        eventually("nothing is pending", async || {
            self.rows().await.iter().all(|row| row.state != State::Pending).then_some(())
        })
        .await;
    }
}

fn webhook_of(slack: &Slack, path: &str) -> ReceiverKind {
    ReceiverKind::SlackWebhook { url: slack.url(path).into() }
}

fn email(to: &[&str]) -> ReceiverKind {
    ReceiverKind::Email { to: Recipients::Fixed(to.iter().map(|&m| m.to_owned()).collect()) }
}

fn add(settings: &mut DeliverySettings, name: &str, kind: ReceiverKind, fallback: Option<&str>) {
    let receiver = Receiver { name: name.into(), kind, fallback: fallback.map(ReceiverName::from) };
    settings.receivers.insert(name.into(), receiver);
}

fn smtp_settings(port: u16) -> SmtpSettings {
    SmtpSettings {
        host: "127.0.0.1".to_owned(),
        port,
        tls: SmtpTls::None,
        username: None,
        password: None,
        from: "Matins <matins@example.com>".to_owned(),
    }
}

#[tokio::test]
async fn a_page_is_sent_once_with_text_and_blocks() {
    let world = World::new().await;
    let id = world.say(MessageKind::Page, "oncall", "declined").await;
    let row = world.expect_state(id, State::Sent).await;
    assert_eq!((row.attempts, row.last_error), (1, None));
    let message = world.slack.expect("/oncall", 1).await.remove(0);
    assert_eq!(message.body["text"], "declined");
    assert_eq!(message.body["blocks"][0]["text"]["text"], "declined");
    assert_eq!(message.headers["content-type"], "application/json");
}

#[tokio::test]
async fn a_bot_says_ok_true_and_gets_token_and_channel() {
    let world = World::new().await;
    world.slack.always("/chat.postMessage", Some(Reply::new(200, r#"{"ok":true,"ts":"1.0"}"#)));
    let kind = ReceiverKind::SlackBot {
        token: "xoxb-1".to_owned().into(),
        channel: "#money".to_owned(),
        api_url: world.slack.url(""),
    };
    world.configure(|s| add(s, "bot", kind, None));
    let id = world.say(MessageKind::Page, "bot", "declined").await;
    world.expect_state(id, State::Sent).await;
    let message = world.slack.messages("/chat.postMessage").remove(0);
    assert_eq!(
        (&message.body["channel"], message.headers["authorization"].as_str()),
        (&json!("#money"), "Bearer xoxb-1")
    );
}

#[tokio::test]
async fn a_page_is_tried_again_after_a_500_and_after_a_lost_answer() {
    let world = World::new().await;
    world.slack.script("/oncall", [Reply::new(500, "rollup_error"), Reply::drop(Drop::After)]);
    let id = world.say(MessageKind::Page, "oncall", "declined").await;
    let row = world.expect_state(id, State::Sent).await;
    assert_eq!(row.attempts, 3);
    let tries = world.slack.messages("/oncall");
    assert_eq!(tries.len(), 3);
    assert!(tries[1].at - tries[0].at < Duration::from_secs(5), "a page's first retry comes within five seconds");
}

#[tokio::test]
async fn what_slack_asks_for_holds_for_the_whole_channel_and_for_no_other() {
    let world = World::new().await;
    let wait = r#"{"retry_after":2,"ok":false,"error":"rate_limited"}"#;
    world.slack.script("/oncall", [Reply::new(429, wait)]);
    world.say(MessageKind::Page, "oncall", "one").await;
    world.slack.expect_tries("/oncall", 1).await;
    world.say(MessageKind::Page, "oncall", "two").await;
    world.say(MessageKind::Page, "second", "three").await;
    let other = world.slack.expect("/second", 1).await.remove(0);
    let tries = world.slack.expect_tries("/oncall", 3).await;
    assert!(other.at < tries[1].at);
    assert!(tries[1].at - tries[0].at >= Duration::from_millis(1900), "{:?}", tries[1].at - tries[0].at);
}

#[tokio::test]
async fn a_retry_survives_a_restart() {
    let mut world = World::new().await;
    world.slack.always("/oncall", Some(Reply::new(503, "away").header("Retry-After", "1")));
    let id = world.say(MessageKind::Page, "oncall", "declined").await;
    let first = world.expect_error(id).await;
    world.kill().await;
    world.slack.always("/oncall", None);
    world.start();
    let row = world.expect_state(id, State::Sent).await;
    assert!(row.attempts > first.attempts);
    assert_eq!(world.slack.accepted("/oncall").len(), 1);
}

#[tokio::test]
async fn a_try_that_is_open_at_a_kill_is_repeated_once_with_its_number() {
    let mut world = World::new().await;
    world.slack.script("/oncall", [Reply::ok().delay(Duration::from_secs(60))]);
    let id = world.say(MessageKind::Page, "oncall", "declined").await;
    world.slack.expect_tries("/oncall", 1).await;
    let before = world.row(id).await;
    world.kill().await;
    world.start();
    let row = world.expect_state(id, State::Sent).await;
    assert_eq!((row.attempts, row.number), (2, before.number));
    assert_eq!(world.slack.messages("/oncall").len(), 2);
}

#[tokio::test]
async fn a_page_that_seems_to_kill_the_service_goes_to_the_fallback() {
    let mut world = World::new().await;
    world.slack.always("/oncall", Some(Reply::ok().delay(Duration::from_secs(60))));
    let id = world.say(MessageKind::Page, "oncall", "declined").await;
    for crash in 1..=6 {
        world.slack.expect_tries("/oncall", crash).await;
        world.kill().await;
        world.start();
    }
    world.expect_state(id, State::Unsure).await;
    assert_eq!(world.smtp.expect(ONCALL, 1).await[0].text().trim(), "declined");
    world.settle_down().await;
    assert_eq!(world.slack.messages("/oncall").len(), 6);
}

#[tokio::test]
async fn a_sent_page_is_not_sent_again_after_a_kill() {
    let mut world = World::new().await;
    let id = world.say(MessageKind::Page, "oncall", "one").await;
    world.expect_state(id, State::Sent).await;
    world.kill().await;
    world.start();
    let next = world.say(MessageKind::Page, "oncall", "two").await;
    world.expect_state(next, State::Sent).await;
    assert_eq!(world.slack.messages("/oncall").len(), 2);
}

#[tokio::test]
async fn a_webhook_that_is_gone_uses_the_fallback_and_the_operator_hears_once() {
    let world = World::new().await;
    world.slack.always("/oncall", Some(Reply::new(404, "no_service")));
    let one = world.say(MessageKind::Page, "oncall", "declined one").await;
    let row = world.expect_state(one, State::Dead).await;
    assert_eq!(row.reason.as_deref(), Some("receiver_broken"));
    assert_eq!(row.last_error.as_deref(), Some("HTTP 404 no_service"));
    assert_eq!(world.smtp.expect(ONCALL, 1).await[0].subject(), "declined one");
    let two = world.say(MessageKind::Page, "oncall", "declined two").await;
    assert_eq!(world.expect_state(two, State::Dead).await.attempts, 0, "known to be broken: no try");
    world.smtp.expect(ONCALL, 2).await;
    world.settle_down().await;
    assert_eq!(world.slack.messages("/oncall").len(), 1);
    let told = world.slack.messages("/ops");
    assert_eq!(told.len(), 1);
    assert_eq!(told[0].body["text"], "receiver oncall is broken: HTTP 404 no_service; instead: oncall-mail");
    let copy = world.row(row.fallback_id.unwrap()).await;
    assert_eq!((copy.number, copy.fallback_of), (row.number, Some(one)));
}

#[tokio::test]
async fn a_broken_receiver_stays_broken_over_a_restart_and_until_its_address_changes() {
    let mut world = World::new().await;
    world.slack.always("/oncall", Some(Reply::new(410, "channel_is_archived")));
    let one = world.say(MessageKind::Page, "oncall", "one").await;
    world.expect_state(one, State::Dead).await;
    world.kill().await;
    world.start();
    let two = world.say(MessageKind::Page, "oncall", "two").await;
    world.expect_state(two, State::Dead).await;
    assert_eq!(world.slack.messages("/oncall").len(), 1);
    let moved = webhook_of(&world.slack, "/moved");
    world.configure(|s| add(s, "oncall", moved, Some("oncall-mail")));
    eventually("its standing is cleared", async || {
        queue::standing::read_all(world.store.reader()).await.unwrap().is_empty().then_some(())
    })
    .await;
    let three = world.say(MessageKind::Page, "oncall", "three").await;
    world.expect_state(three, State::Sent).await;
    assert_eq!(world.slack.messages("/moved").len(), 1);
    assert_eq!(world.rows_of(MessageKind::Operator).await.len(), 1);
}

#[tokio::test]
async fn the_operator_is_told_by_another_way_when_the_operators_own_is_broken() {
    let world = World::new().await;
    world.slack.always("/ops", Some(Reply::new(403, "invalid_token")));
    let id = world.say(MessageKind::Digest, "ops", "a quiet day").await;
    world.expect_state(id, State::Dead).await;
    assert!(world.smtp.expect(ONCALL, 1).await[0].subject().contains("receiver ops is broken"));
}

#[tokio::test]
async fn word_to_the_operator_goes_on_to_the_next_receiver_of_the_operator() {
    let world = World::new().await;
    for path in ["/second", "/ops"] {
        world.slack.always(path, Some(Reply::new(404, "no_service")));
    }
    world.say(MessageKind::Page, "second", "declined").await;
    let subjects = eventually("three mails", async || {
        let subjects: BTreeSet<_> = world.smtp.mails(ONCALL).iter().map(|m| m.subject()).collect();
        (subjects.len() == 3).then_some(subjects)
    })
    .await;
    let broken = |name, instead| format!("receiver {name} is broken: HTTP 404 no_service; instead:{instead}");
    assert_eq!(subjects, BTreeSet::from(["declined".to_owned(), broken("ops", ""), broken("second", " oncall-mail")]));
}

#[tokio::test]
async fn an_entry_of_a_broken_receiver_without_fallback_waits_for_the_probe() {
    let world = World::new().await;
    world.slack.always("/ops", Some(Reply::new(410, "")));
    let one = world.say(MessageKind::Digest, "ops", "monday").await;
    world.expect_state(one, State::Dead).await;
    let two = world.say(MessageKind::Digest, "ops", "tuesday").await;
    let row = world.expect_error(two).await;
    assert_eq!((row.state, row.attempts), (State::Pending, 0));
    assert!(row.due_at > clock::now() + TimeDelta::minutes(5));
}

#[tokio::test]
async fn a_page_for_a_receiver_that_config_renamed_goes_to_everybody_who_is_paged_now() {
    let world = World::new().await;
    let slack = webhook_of(&world.slack, "/third");
    world
        .kill_quietly_for_config_change(|s| {
            drop(s.receivers.remove(&ReceiverName::from("second")));
            add(s, "third", slack, Some("oncall-mail"));
            s.pages = vec!["third".into(), "oncall".into()];
        })
        .await;
    let row = world.rows_of(MessageKind::Page).await.into_iter().find(|r| r.receiver.as_str() == "second").unwrap();
    let row = world.expect_state(row.id, State::Dead).await;
    assert_eq!(row.reason.as_deref(), Some("unknown_receiver"));
    for path in ["/third", "/oncall"] {
        assert_eq!(world.slack.expect(path, 1).await[0].body["text"], "declined", "{path}");
    }
    world.settle_down().await;
    assert_eq!(world.rows_of(MessageKind::Page).await.len(), 3);
    let word = world.slack.expect("/ops", 1).await[0].body["text"].to_string();
    assert!(word.contains("third") && word.contains("oncall"), "{word}");
}

#[tokio::test]
async fn a_page_for_an_unknown_receiver_goes_to_the_operator_when_nobody_is_paged() {
    let world = World::new().await;
    world.kill_quietly_for_config_change(|s| drop(s.receivers.remove(&ReceiverName::from("second")))).await;
    let told = world.slack.expect("/ops", 2).await;
    assert!(told.iter().any(|message| message.body["text"] == "declined"));
    world.settle_down().await;
    assert_eq!(world.rows_of(MessageKind::Operator).await.len(), 1);
}

impl World {
    /// Enqueues a page for `second` and changes config before the loop sees it.
    async fn kill_quietly_for_config_change(&self, change: impl FnOnce(&mut DeliverySettings)) {
        self.slack.always("/second", Some(Reply::new(503, "away").header("Retry-After", "1")));
        let id = self.say(MessageKind::Page, "second", "declined").await;
        self.expect_error(id).await;
        self.configure(change);
    }
}

#[tokio::test]
async fn mail_that_is_put_off_stays_pending_and_troubles_nobody() {
    let world = World::new().await;
    world.smtp.script(Stage::Rcpt, [Action::Say("451 4.7.1 try later")]);
    let page = world.say(MessageKind::Page, "oncall-mail", "declined").await;
    let row = world.expect_error(page).await;
    assert!(row.last_error.unwrap().contains("451 4.7.1 try later"));
    assert_eq!(world.expect_state(page, State::Sent).await.attempts, 2);
    assert_eq!(world.smtp.mails(ONCALL).len(), 1);
    world.smtp.script(Stage::Connect, [Action::Say("421 4.3.2 busy")]);
    let digest = world.say(MessageKind::Digest, "oncall-mail", "a quiet day").await;
    let row = world.expect_error(digest).await;
    assert_eq!(row.state, State::Pending);
    assert!(row.due_at - row.created_at >= TimeDelta::minutes(1));
    assert_eq!(world.rows_of(MessageKind::Operator).await, []);
}

#[tokio::test]
async fn a_mailbox_that_does_not_exist_is_final_and_the_page_goes_to_the_fallback() {
    let world = World::new().await;
    world.configure(|s| add(s, "oncall-mail", email(&[ONCALL]), Some("second")));
    world.smtp.always(Stage::Rcpt, Action::SayTo("550 5.1.1 unknown", ONCALL));
    let id = world.say(MessageKind::Page, "oncall-mail", "declined").await;
    let row = world.expect_state(id, State::Dead).await;
    assert!(row.last_error.unwrap().contains("550 5.1.1 unknown"));
    assert_eq!(world.slack.expect("/second", 1).await[0].body["text"], "declined");
    world.settle_down().await;
    assert_eq!(world.smtp.tries(Stage::Rcpt), 1);
    assert_eq!(world.rows_of(MessageKind::Operator).await.len(), 1);
}

#[tokio::test]
async fn one_bad_mailbox_holds_up_nobody_and_nobody_gets_the_mail_twice() {
    let world = World::new().await;
    world.configure(|s| add(s, "team", email(&["bad@example.com", "late@example.com", "good@example.com"]), None));
    world.smtp.always(Stage::Rcpt, Action::SayTo("550 5.1.1 unknown", "bad@example.com"));
    world.smtp.script(
        Stage::Rcpt,
        [Action::SayTo("550 5.1.1 unknown", "bad@example.com"), Action::SayTo("451 4.7.1 later", "late@example.com")],
    );
    let id = world.say(MessageKind::Page, "team", "declined").await;
    let row = world.expect_state(id, State::Sent).await;
    assert_eq!(row.attempts, 2);
    assert!(row.last_error.unwrap().contains("bad@example.com: 550"));
    assert_eq!(world.smtp.mails("good@example.com").len(), 1);
    assert_eq!(world.smtp.mails("late@example.com").len(), 1);
    assert_eq!(world.smtp.tries(Stage::Rcpt), 4, "three, then the late one alone");
    world.slack.expect("/ops", 1).await;
}

#[tokio::test]
async fn a_page_that_may_have_arrived_by_mail_is_repeated_once_and_then_told_elsewhere() {
    let world = World::new().await;
    world.configure(|s| add(s, "oncall-mail", email(&[ONCALL]), Some("second")));
    world.smtp.always(Stage::Dot, Action::KeepAndDrop);
    let id = world.say(MessageKind::Page, "oncall-mail", "declined").await;
    world.expect_state(id, State::Unsure).await;
    let mails = world.smtp.mails(ONCALL);
    assert_eq!(mails.len(), 2);
    assert_eq!(mails[0].message_id(), mails[1].message_id());
    world.slack.expect("/second", 1).await;
}

#[tokio::test]
async fn a_digest_that_may_have_arrived_by_mail_is_not_repeated() {
    let world = World::new().await;
    world.configure(|s| add(s, "oncall-mail", email(&[ONCALL]), Some("second")));
    world.smtp.always(Stage::Dot, Action::KeepAndDrop);
    let id = world.say(MessageKind::Digest, "oncall-mail", "a quiet day").await;
    let row = world.expect_state(id, State::Unsure).await;
    assert_eq!((row.attempts, row.reason.as_deref(), row.fallback_id), (1, Some("answer_lost"), None));
    assert_eq!(world.smtp.mails(ONCALL).len(), 1);
}

#[tokio::test]
async fn a_person_can_send_an_unsure_digest_again() {
    let world = World::new().await;
    world.smtp.script(Stage::Dot, [Action::Drop]);
    let id = world.say(MessageKind::Digest, "oncall-mail", "a quiet day").await;
    world.expect_state(id, State::Unsure).await;
    let mut tx = world.store.begin().await.unwrap();
    assert_eq!(queue::redrive(&mut tx, id, clock::now()).await.unwrap(), RedriveOutcome::Redriven);
    tx.commit().await.unwrap();
    world.wake.notify_one();
    world.expect_state(id, State::Sent).await;
    assert_eq!(world.smtp.mails(ONCALL).len(), 1);
}

#[tokio::test]
async fn a_line_lost_before_the_mail_is_out_is_a_plain_retry() {
    let world = World::new().await;
    world.smtp.script(Stage::Data, [Action::Drop]);
    let id = world.say(MessageKind::Page, "oncall-mail", "declined").await;
    let row = world.expect_state(id, State::Sent).await;
    assert!(row.last_error.unwrap().contains("at DATA"));
    assert_eq!(world.smtp.mails(ONCALL).len(), 1);
}

#[tokio::test]
async fn a_server_without_starttls_never_sees_the_mail() {
    let world = World::new().await;
    world.configure(|s| s.smtp.as_mut().unwrap().tls = SmtpTls::StartTls);
    let id = world.say(MessageKind::Page, "oncall-mail", "declined").await;
    let row = world.expect_state(id, State::Dead).await;
    assert!(row.last_error.unwrap().contains("does not offer STARTTLS"));
    assert_eq!((world.smtp.tries(Stage::Mail), world.smtp.tries(Stage::Auth)), (0, 0));
}

#[tokio::test]
async fn a_slow_receiver_does_not_hold_up_another() {
    let world = World::new().await;
    world.slack.always("/oncall", Some(Reply::ok().delay(Duration::from_secs(8))));
    let slow = world.say(MessageKind::Page, "oncall", "slow").await;
    world.slack.expect_tries("/oncall", 1).await;
    let quick = world.say(MessageKind::Page, "second", "quick").await;
    world.expect_state(quick, State::Sent).await;
    assert_eq!(world.row(slow).await.state, State::Pending);
}

#[tokio::test]
async fn a_try_that_ends_badly_frees_its_own_receiver_and_no_other() {
    let world = World::new().await;
    world.configure(|s| add(s, CURSED, webhook_of(&world.slack, "/cursed"), None));
    world.slack.always("/oncall", Some(Reply::ok().delay(Duration::from_secs(8))));
    world.say(MessageKind::Page, "oncall", "slow").await;
    world.slack.expect_tries("/oncall", 1).await;
    world.say(MessageKind::Page, "oncall", "behind it").await;
    for text in ["one", "two", "three"] {
        let id = world.say(MessageKind::Page, CURSED, text).await;
        world.expect_state(id, State::Sent).await;
    }
    assert_eq!(world.slack.messages("/oncall").len(), 1, "its first try is still open");
}

#[tokio::test]
async fn only_ok_is_success_and_no_redirect_is_followed() {
    let world = World::new().await;
    let elsewhere = world.slack.url("/elsewhere");
    world.slack.always("/oncall", Some(Reply::new(302, "").header("Location", &elsewhere)));
    world.slack.always("/second", Some(Reply::new(200, "<html>please log in</html>")));
    let redirected = world.say(MessageKind::Page, "oncall", "declined").await;
    let login = world.say(MessageKind::Page, "second", "declined").await;
    world.expect_error(redirected).await;
    world.expect_error(login).await;
    world.slack.expect_tries("/oncall", 2).await;
    world.slack.expect_tries("/second", 2).await;
    assert_eq!(world.slack.messages("/elsewhere").len(), 0);
    assert!(world.rows().await.iter().all(|row| row.state == State::Pending));
}

#[tokio::test]
async fn refused_blocks_go_again_as_plain_text() {
    let world = World::new().await;
    world.slack.script("/oncall", [Reply::new(400, "invalid_blocks")]);
    let id = world.say(MessageKind::Page, "oncall", "declined").await;
    world.expect_state(id, State::Sent).await;
    let tries = world.slack.messages("/oncall");
    assert_eq!(tries.len(), 2);
    assert_eq!((&tries[1].body["text"], tries[1].body.get("blocks")), (&json!("declined"), None));
}

#[tokio::test]
async fn a_channel_gets_one_message_a_second_and_pages_first() {
    let world = World::new().await;
    for kind in [MessageKind::Digest, MessageKind::Reminder, MessageKind::Page] {
        world.say(kind, "oncall", kind.as_str()).await;
    }
    let messages = world.slack.expect("/oncall", 3).await;
    let gaps: Vec<_> = messages.windows(2).map(|two| two[1].at - two[0].at).collect();
    assert!(gaps.iter().all(|gap| *gap > Duration::from_millis(900)), "{gaps:?}");
    let order: Vec<_> = messages.iter().skip(1).map(|m| m.body["text"].as_str().unwrap()).collect();
    let page_waited = messages[0].body["text"] != "page";
    assert!(!page_waited || order[0] == "page", "a page that waits goes next: {order:?}");
}

#[tokio::test]
async fn a_page_that_waits_over_two_minutes_goes_to_the_fallback_too() {
    let world = World::new().await;
    world.slack.always("/oncall", Some(Reply::new(503, "away")));
    let created_at = clock::now() - TimeDelta::minutes(3);
    let id = world.say_at(MessageKind::Page, "oncall", "declined", created_at).await;
    assert_eq!(world.smtp.expect(ONCALL, 1).await[0].text().trim(), "declined");
    world.slack.always("/oncall", None);
    world.expect_state(id, State::Sent).await;
    world.settle_down().await;
    assert_eq!(world.smtp.mails(ONCALL).len(), 1, "once");
}

#[tokio::test]
async fn webhooks_files_and_nats_get_the_view() {
    let world = World::new().await;
    let server = Nats::start().await;
    let client = async_nats::connect(server.url()).await.unwrap();
    let mut listening = client.subscribe("alerts.money").await.unwrap();
    client.flush().await.unwrap();
    world.nats.send_replace(Some(client));
    let dir = tempfile::TempDir::new().unwrap();
    world.configure(|s| {
        add(s, "hook", ReceiverKind::Webhook { url: world.slack.url("/hook").into() }, None);
        add(s, "bus", ReceiverKind::Nats { subject: "alerts.money".to_owned() }, None);
        add(s, "disk", ReceiverKind::File { dir: dir.path().join("out") }, None);
    });
    for receiver in ["hook", "bus", "disk"] {
        world.say(MessageKind::Page, receiver, "declined").await;
    }
    world.settle_down().await;
    let hook = world.slack.messages("/hook").remove(0);
    assert_eq!((&hook.body["text"], hook.headers["matins-kind"].as_str()), (&json!("declined"), "page"));
    assert!(hook.headers.contains_key("idempotency-key"));
    let bus = futures_util::StreamExt::next(&mut listening).await.unwrap();
    assert_eq!(serde_json::from_slice::<Value>(&bus.payload).unwrap()["text"], "declined");
    let files: Vec<_> = std::fs::read_dir(dir.path().join("out")).unwrap().map(|f| f.unwrap().path()).collect();
    assert_eq!(files.len(), 1, "{files:?}");
    assert_eq!(files[0].extension().unwrap(), "txt");
    assert_eq!(std::fs::read_to_string(&files[0]).unwrap(), "declined");
    assert!(world.rows().await.iter().all(|row| row.state == State::Sent));
}

#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<u8>>>);

impl std::io::Write for Log {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

#[tokio::test]
async fn no_credential_is_in_a_log_or_in_the_outbox() {
    let log = Log::default();
    let writer = log.clone();
    let subscriber = tracing_subscriber::fmt()
        .with_max_level(tracing::Level::TRACE)
        .with_ansi(false)
        .with_writer(move || writer.clone())
        .finish();
    let _guard = tracing::subscriber::set_default(subscriber);
    let world = World::new().await;
    let path = "/services/T0/B0/SECRETSECRET";
    world.slack.script(path, [Reply::new(500, "no"), Reply::drop(Drop::Before)]);
    let (reached, away) = (webhook_of(&world.slack, path), format!("http://127.0.0.1:1{path}"));
    world.configure(|s| {
        add(s, "oncall", reached, None);
        add(s, "away", ReceiverKind::SlackWebhook { url: away.into() }, None);
        let smtp = s.smtp.as_mut().unwrap();
        (smtp.username, smtp.password) = (Some("u".to_owned()), Some("SECRETSECRET".to_owned().into()));
    });
    let page = world.say(MessageKind::Page, "oncall", "declined").await;
    let away = world.say(MessageKind::Page, "away", "declined").await;
    world.expect_error(away).await;
    let mail = world.say(MessageKind::Page, "oncall-mail", "declined").await;
    world.expect_state(mail, State::Sent).await;
    assert_eq!(world.smtp.tries(Stage::Auth), 1);
    world.expect_state(page, State::Sent).await;
    let log = String::from_utf8(log.0.lock().unwrap().clone()).unwrap();
    let rows = format!("{:?}", world.rows().await);
    assert!(log.contains("message not delivered yet"), "the log is there");
    let encoded = "AHUAU0VDUkVUU0VDUkVU";
    for (what, text) in [("log", &log), ("outbox", &rows)] {
        assert!(!text.contains("SECRETSECRET"), "{what} has the address");
        assert!(!text.contains(encoded), "{what} has the sign-in");
    }
    assert!(rows.contains("can't connect to 127.0.0.1"), "{rows}");
}
