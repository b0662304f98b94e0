//! `kill -9` between any two steps of the digest ledger: plan, compose, enqueue, claim, send, settle. Windows join, each event is in one
//! window of each digest, and no more is repeated than what was on its way when a kill came.

use crate::digest::be_away;
use crate::support::app::{App, failure};
use crate::support::eventually;
use crate::support::slack::Reply;
use chrono::{DurationRound, TimeDelta};
use matins::clock;
use matins::digest::DigestCounts;
use sqlx::Row;
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

const ROUNDS: u64 = 3;
/// One round of kills. No more than five, so that no message is given up as the cause of them.
const KILLS: [Kill; 4] = [Kill::Random, Kill::Composed, Kill::Sending, Kill::Random];

/// When a kill comes, so that each step is met by some.
#[derive(Clone, Copy)]
enum Kill {
    /// At an instant that nobody chose.
    Random,
    /// As soon as the round's first windows are in the ledger.
    Composed,
    /// As soon as a message has come, which is answered later.
    Sending,
}

/// What a kill leaves unacked comes again so soon.
const ACK_WAIT: Duration = Duration::from_secs(2);
/// Long enough to be hit by a kill that follows the arrival.
const ANSWER_AFTER: Duration = Duration::from_millis(300);
const CHANNELS: [&str; 6] = ["c1", "c2", "c3", "c4", "c5", "c6"];
const MAILBOXES: [&str; 2] = ["m1", "m2"];
/// Owners by mailbox; the first is told of what happens here, the others of nothing.
const OWNERS: [&str; 3] = ["bela@example.com", "asha@example.com", "chen@example.com"];
/// Events of half a round: of nobody, and of the first owner.
const EVENTS: (u64, u64) = (20, 7);

/// Two digests to six channels, two mailboxes and three owners: more windows are due at once than one transaction writes.
fn widen(app: &mut App) {
    app.settings.digest_cron = "* * * * *";
    app.settings.digest_to = r#"digest.daily = ["c1", "c2", "c3", "c4", "c5", "c6", "m1", "m2", "owners"]
digest.second = ["c1", "c2", "c3", "c4", "c5", "c6", "m1", "m2", "owners"]"#;
    let mut more = format!(
        "[digests.second]\ncron = \"*/2 * * * *\"\ntimezone = \"UTC\"\nempty = \"send\"\n\
         [[workflows]]\nname = \"stock-*\"\nowner = \"Bela <{}>\"\n\
         [receivers.owners]\nkind = \"email\"\nto = \"owner\"\n",
        OWNERS[0]
    );
    for name in CHANNELS {
        let url = app.slack.url(&format!("/{name}"));
        more.push_str(&format!("[receivers.{name}]\nkind = \"slack\"\nwebhook_url = \"{url}\"\n"));
        app.slack.always(&format!("/{name}"), Some(Reply::ok().delay(ANSWER_AFTER)));
    }
    for name in MAILBOXES {
        more.push_str(&format!("[receivers.{name}]\nkind = \"email\"\nto = [\"{name}@example.com\"]\n"));
    }
    app.settings.more = more;
}

/// Failures of half a round.
async fn publish(app: &App, half: &str) {
    let of = |workflow: &'static str, count| {
        (0..count).map(move |n| failure(workflow, &format!("{half}-{n}"), "no such column"))
    };
    app.fail_all(of("report", EVENTS.0).chain(of("stock-1", EVENTS.1))).await;
}

/// One row of the ledger, with its message.
#[derive(Debug)]
struct Window {
    receiver: String,
    window_start: i64,
    window_end: i64,
    state: String,
    number: Option<i64>,
    counts: String,
    messages: i64,
    /// Number, state and tries of its message.
    message_number: Option<i64>,
    message_state: Option<String>,
    attempts: Option<i64>,
}

type Target = (String, String);

/// The ledger by target, oldest window first.
async fn ledger(app: &App) -> BTreeMap<Target, Vec<Window>> {
    let sql = "SELECT d.digest, d.receiver, d.window_start, d.window_end, d.state, d.number, d.counts, \
               count(o.id), max(o.number), max(o.state), max(o.attempts) \
               FROM digests d LEFT JOIN outbox o ON o.digest_id = d.id GROUP BY d.id ORDER BY d.window_start";
    let mut ledger: BTreeMap<Target, Vec<Window>> = BTreeMap::new();
    for row in sqlx::query(sql).fetch_all(&mut app.database().await).await.unwrap() {
        let window = Window {
            receiver: row.get(1),
            window_start: row.get(2),
            window_end: row.get(3),
            state: row.get(4),
            number: row.get(5),
            counts: row.get(6),
            messages: row.get(7),
            message_number: row.get(8),
            message_state: row.get(9),
            attempts: row.get(10),
        };
        ledger.entry((row.get(0), row.get(1))).or_default().push(window);
    }
    ledger
}

/// How far each target is told.
async fn covers(app: &App) -> BTreeMap<Target, i64> {
    let sql = "SELECT digest, receiver, covered_until FROM digest_cover";
    let rows: Vec<(String, String, i64)> = sqlx::query_as(sql).fetch_all(&mut app.database().await).await.unwrap();
    rows.into_iter().map(|(digest, receiver, until)| ((digest, receiver), until)).collect()
}

/// Kills and starts again; `windows` is how many were in the ledger when the round began.
async fn kill_once(app: &mut App, kill: Kill, windows: i64) {
    match kill {
        Kill::Random => tokio::time::sleep(Duration::from_millis((clock::jitter() * 1500.0) as u64)).await,
        Kill::Composed => {
            let has_more = async || (app.count("SELECT count(*) FROM digests").await > windows).then_some(());
            eventually("windows are in the ledger", has_more).await;
        }
        Kill::Sending => {
            let before = app.slack.everything().len();
            eventually("a message comes", async || (app.slack.everything().len() > before).then_some(())).await;
        }
    }
    app.kill();
    app.launch();
}

/// Waits until every slot that has passed is told, and every message settled.
async fn told(app: &mut App) {
    let slot = clock::now().duration_trunc(TimeDelta::minutes(2)).unwrap().timestamp_millis();
    app.ready().await;
    eventually("every slot is told", async || covers(app).await.values().all(|until| *until >= slot).then_some(()))
        .await;
    app.settled().await;
}

/// Runs until all is told, and stops with nothing on its way, even when a slot passes meanwhile.
async fn rest(app: &mut App) {
    loop {
        app.launch();
        told(app).await;
        assert!(app.stop().await.success(), "{}", app.log());
        if app.count("SELECT count(*) FROM outbox WHERE state = 'pending'").await == 0 {
            return;
        }
    }
}

/// Each window follows the one before, and the last one ends where the next will begin.
fn assert_windows_join(rows: &[Window], covered_until: i64) {
    let starts = rows.iter().skip(1).map(|row| row.window_start).chain([covered_until]);
    for (row, next_start) in rows.iter().zip(starts) {
        assert!(row.window_start < row.window_end, "{row:?}");
        assert_eq!(row.window_end, next_start, "{row:?}");
    }
}

/// Events of all windows; each footer balances.
fn sum_of_footers(rows: &[Window]) -> u64 {
    let footers = rows.iter().map(|row| serde_json::from_str::<DigestCounts>(&row.counts).unwrap());
    footers
        .inspect(|counts| assert_eq!(counts.sum(), counts.received, "{counts:?}"))
        .map(|counts| counts.received)
        .sum()
}

/// A composed window has one message, which went out under its number; a skipped one has none.
fn assert_one_message_each(rows: &[Window]) {
    for row in rows {
        let is_told = row.state == "enqueued";
        assert_eq!(row.messages, i64::from(is_told), "{row:?}");
        assert_eq!(row.number, row.message_number, "{row:?}");
        assert_eq!(row.message_state.as_deref(), is_told.then_some("sent"), "{row:?}");
    }
}

/// What came, by where to and number: the texts, which are alike when one is a repeat.
fn arrivals(app: &App) -> BTreeMap<(String, i64), Vec<String>> {
    let mut came: BTreeMap<(String, i64), Vec<String>> = BTreeMap::new();
    for message in app.slack.everything() {
        let number = message.number().unwrap();
        let receiver = message.path.trim_start_matches('/').to_owned();
        came.entry((receiver, number)).or_default().push(message.body.to_string());
    }
    for mail in app.smtp.everything() {
        let id = mail.message_id();
        let number = id.split('.').nth(1).unwrap().parse().unwrap();
        let [to] = &mail.to[..] else { panic!("one mailbox: {:?}", mail.to) };
        let receiver =
            if OWNERS.contains(&to.as_str()) { format!("owners:{to}") } else { to.replace("@example.com", "") };
        came.entry((receiver, number)).or_default().push(id);
    }
    came
}

/// Nothing came but what is in the ledger; each message came, and no more often than it was tried.
fn assert_repeats_are_tries(app: &App, ledger: &BTreeMap<Target, Vec<Window>>, kills: usize) {
    let came = arrivals(app);
    let told = ledger.values().flatten().filter_map(|row| Some((row, row.number?, row.attempts?.unsigned_abs())));
    let mut lost_tries: BTreeMap<&str, usize> = BTreeMap::new();
    let mut known = BTreeSet::new();
    for (row, number, attempts) in told {
        let key = (row.receiver.clone(), number);
        let texts = came.get(&key).map(Vec::as_slice).unwrap_or_default();
        assert!((1..=attempts).contains(&(texts.len() as u64)), "{row:?} came {} times", texts.len());
        assert!(texts.iter().all(|text| *text == texts[0]), "repeats of {row:?} differ: {texts:#?}");
        *lost_tries.entry(&row.receiver).or_default() += usize::try_from(attempts).unwrap() - 1;
        assert!(known.insert(key), "a number is used twice: {row:?}");
    }
    assert_eq!(known, came.keys().cloned().collect::<BTreeSet<_>>(), "what came is in the ledger");
    assert!(lost_tries.values().any(|count| *count > 0), "no kill came while a message was on its way");
    // A receiver is spoken to by one at a time, so a kill leaves one outcome of each unknown.
    assert!(lost_tries.values().all(|count| *count <= kills), "{kills} kills: {lost_tries:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn windows_join_and_hold_each_event_once_whatever_step_of_the_ledger_a_kill_meets() {
    let mut app = App::new().await;
    app.prepare(ACK_WAIT).await;
    widen(&mut app);
    app.start().await;
    let targets = 2 * (CHANNELS.len() + MAILBOXES.len() + OWNERS.len());
    eventually("every target is known", async || (covers(&app).await.len() == targets).then_some(())).await;
    for round in 1..=ROUNDS {
        publish(&app, &format!("{round}-before")).await;
        app.stored((2 * round - 1) * (EVENTS.0 + EVENTS.1)).await;
        be_away(&mut app, 4).await;
        publish(&app, &format!("{round}-meanwhile")).await;
        let windows = app.count("SELECT count(*) FROM digests").await;
        app.launch();
        for kill in KILLS {
            kill_once(&mut app, kill, windows).await;
        }
        told(&mut app).await;
        app.stored(2 * round * (EVENTS.0 + EVENTS.1)).await;
    }
    // What came last is in a window that is open yet.
    be_away(&mut app, 4).await;
    rest(&mut app).await;

    let (ledger, covers) = (ledger(&app).await, covers(&app).await);
    assert_eq!(ledger.keys().collect::<Vec<_>>(), covers.keys().collect::<Vec<_>>());
    for (target, rows) in &ledger {
        assert!(rows.len() as u64 > ROUNDS, "{target:?} has {} windows", rows.len());
        assert_windows_join(rows, covers[target]);
        assert_one_message_each(rows);
        let events = match target.1.strip_prefix("owners:") {
            Some(owner) if owner == OWNERS[0] => EVENTS.1,
            Some(_) => 0,
            None => EVENTS.0 + EVENTS.1,
        };
        assert_eq!(sum_of_footers(rows), 2 * ROUNDS * events, "{target:?}: {rows:#?}");
    }
    assert_repeats_are_tries(&app, &ledger, KILLS.len() * ROUNDS as usize);
    let orphans = "SELECT count(*) FROM outbox WHERE digest_id IS NULL OR digest_id NOT IN (SELECT id FROM digests)";
    assert_eq!(app.count(orphans).await, 0, "messages without a window");
}
