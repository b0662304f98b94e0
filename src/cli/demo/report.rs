//! What came of the night: what was paged, what waits for the morning, the digest as it stands, and where to go from here.
//! Every number is read from the service.

use super::blocks;
use super::mail;
use super::night::ZONE;
use super::screen::{Screen, grouped};
use super::story::Heard;
use super::world::{World, file_url};
use crate::clock;
use crate::deliver::{Channel, email};
use crate::digest::Window;
use crate::digest_job::{self, Occasion, Target};
use crate::event::EventType;
use crate::outbox::{MessageKind, State, queue};
use crate::render::{Content, words};
use crate::store::{incidents, letters};
use chrono::{DateTime, TimeDelta, Utc};
use serde_json::json;
use std::sync::Arc;

/// Rows of a list that are read at most; the night makes far fewer.
const ROWS_MAX: u32 = 1000;
const DIGEST: &str = "daily";
const READER: &str = "ops";

/// What the night came to.
struct Sums {
    events: u64,
    unreadable: u64,
    /// Failures that were only logged.
    warnings: u64,
    recoveries: u64,
    open_letters: u64,
    pages: usize,
    delivered: usize,
}

/// Shows everything but the addresses of what stays up.
pub async fn show(
    world: &World,
    heard: &Heard,
    began_at: DateTime<Utc>,
    screen: &mut Screen<'_>,
) -> anyhow::Result<()> {
    let now = clock::now();
    let sums = add_up(world, began_at, now).await?;
    show_paged(world, &sums, heard, now, screen).await?;
    show_waiting(world, &sums, now, screen).await?;
    show_digest(world, now, screen).await?;
    show_sums(world, &sums, heard, screen)?;
    Ok(())
}

async fn add_up(world: &World, began_at: DateTime<Utc>, now: DateTime<Utc>) -> anyhow::Result<Sums> {
    let shared = world.shared();
    let reader = shared.store.reader();
    let window = Window { start_at: began_at - TimeDelta::minutes(1), end_at: now + TimeDelta::minutes(1) };
    let occasion = Occasion {
        window,
        due_at: now,
        late: None,
        incomplete: None,
        firing: shared.symptoms.load_full(),
        budgets: Arc::default(),
    };
    let target = Target { digest: DIGEST.into(), receiver: READER.into(), owner: None };
    let input = digest_job::read_one(&shared.store, &shared.live.load_full(), &target, &occasion).await?;
    let cells = &input.cells;
    let sum = |wanted: &dyn Fn(&crate::digest::Cell) -> bool| cells.iter().filter(|c| wanted(c)).map(|c| c.count).sum();
    let entries = queue::list(reader, None, ROWS_MAX).await?;
    Ok(Sums {
        events: sum(&|_| true),
        unreadable: input.unreadable.iter().map(|line| line.count).sum(),
        warnings: sum(&|c| c.is_failure() && !c.is_final_failure()),
        recoveries: sum(&|c| c.event_type == EventType::Recovery),
        open_letters: letters::backlog(reader).await?.iter().map(|b| b.open.unsigned_abs()).sum(),
        pages: incidents::list(reader, i64::MAX, ROWS_MAX.into()).await?.len(),
        delivered: entries.iter().filter(|e| e.state == State::Sent && e.kind != MessageKind::Digest).count(),
    })
}

async fn show_paged(
    world: &World,
    sums: &Sums,
    heard: &Heard,
    now: DateTime<Utc>,
    screen: &mut Screen<'_>,
) -> anyhow::Result<()> {
    let aside = format!("{} events in, {} out", grouped(sums.events), words::noun(sums.pages as u64, "page"));
    screen.heading("WHAT WAS PAGED", &aside)?;
    let shared = world.shared();
    let announcer = shared.live.load().announcer.clone();
    let mut paged = incidents::list(shared.store.reader(), i64::MAX, ROWS_MAX.into()).await?;
    paged.reverse();
    for incident in &paged {
        let workflow = incident.hits.first().map_or("", |hit| hit.workflow.as_str());
        let sentence = announcer.sentence(incident, incident.item_count(), now);
        screen.say(&format!("#{}  {workflow}: {sentence}", incident.told.page_number))?;
        if let Some(url) = heard.acknowledge.get(&format!("/ack/{}", incident.id.0)) {
            screen.say(&format!("    acknowledge: {url}"))?;
        }
    }
    Ok(())
}

async fn show_waiting(world: &World, sums: &Sums, now: DateTime<Utc>, screen: &mut Screen<'_>) -> anyhow::Result<()> {
    let shared = world.shared();
    let config = shared.live.load().config.clone();
    let due = config.digests.values().find(|d| d.name.as_str() == DIGEST).and_then(|digest| {
        let slot = digest.schedule.next_after(now, digest.timezone)?;
        let calendar = digest.calendar.as_ref().and_then(|name| config.calendars.get(name));
        calendar.map_or(Some(slot), |calendar| calendar.next_open(slot))
    });
    let due = due.map(|at| at.with_timezone(&ZONE).format("%a %-d %b %H:%M %Z").to_string()).unwrap_or_default();
    screen.heading("WHAT WAITS FOR THE MORNING", &format!("the daily digest is due {due}"))?;
    for waiting in letters::backlog(shared.store.reader()).await?.iter().filter(|b| b.open > 0) {
        let workflow = config.workflows.find(&crate::name::WorkflowName::new(&waiting.workflow));
        if workflow.is_some_and(|w| w.domain.is_protected()) {
            continue;
        }
        let noun = workflow.and_then(|w| w.item_noun.as_deref()).unwrap_or("dead letter");
        let owner = workflow.and_then(|w| w.owner.as_deref()).map_or("none set", words::owner_name);
        screen
            .pair(&waiting.workflow, &format!("{}, owner {owner}", words::noun(waiting.open.unsigned_abs(), noun)))?;
    }
    let (retried, healed) = (words::noun(sums.warnings, "retried failure"), grouped(sums.recoveries));
    screen.pair("only logged", &format!("{retried}; {healed} items got through after all"))?;
    Ok(())
}

async fn show_digest(world: &World, now: DateTime<Utc>, screen: &mut Screen<'_>) -> anyhow::Result<()> {
    screen.heading("THE MORNING DIGEST", "as it stands now")?;
    let shared = world.shared();
    let live = shared.live.load_full();
    let end = Some(now + TimeDelta::minutes(1));
    let preview = |channel| {
        digest_job::preview(
            &shared.store,
            &live,
            DIGEST,
            READER,
            end,
            channel,
            shared.symptoms.load_full(),
            shared.budgets.load_full(),
            now,
        )
    };
    if let Content::Slack(message) = preview(Channel::Slack).await? {
        let message = json!({"text": message.text, "blocks": message.blocks});
        screen.message("Slack #ops", "preview", &blocks::lines(&message, Screen::message_width()))?;
    }
    if let Content::Email(content) = preview(Channel::Email).await? {
        let raw = email::eml(&content, "Matins <matins@example.com>", &["ops@example.com".to_owned()], now)?;
        let path = mail::save(&String::from_utf8_lossy(&raw), &world.folder.join("mails"), "daily-digest")?;
        screen.heading("THE SAME AS A MAIL", &file_url(&path))?;
        for line in content.text.lines() {
            screen.say(line)?;
        }
    }
    Ok(())
}

fn show_sums(world: &World, sums: &Sums, heard: &Heard, screen: &mut Screen<'_>) -> anyhow::Result<()> {
    let mails = world.folder.join("mails");
    screen.heading("SUMMARY", "")?;
    let (events, messages) = (words::noun(sums.events, "event"), grouped(heard.published as u64));
    screen.pair("events", &format!("{events} and {} unreadable = {messages} published", sums.unreadable))?;
    screen.pair("pages", &format!("{}, {} messages delivered on Slack and by mail", sums.pages, sums.delivered))?;
    screen.pair("warnings", &format!("{} retried failures, only logged", grouped(sums.warnings)))?;
    screen.pair("recoveries", &grouped(sums.recoveries))?;
    screen.pair("dead letters", &format!("{} open", grouped(sums.open_letters)))?;
    screen.pair("digest", &file_url(&mails.join("daily-digest.html")))?;
    screen.pair("mails", &file_url(&mails))?;
    screen.pair("log", &world.folder.join("matins.log").display().to_string())?;
    screen.heading("NEXT", "")?;
    let config = world.folder.join("matins.toml");
    screen.pair("look around", "matins demo --seconds 0 keeps everything up, so that links work")?;
    screen.pair("its config", &format!("matins check --config {}", config.display()))?;
    screen.pair("your own", "README.md; start with config/matins.toml")?;
    Ok(())
}

/// Where what stays up is reached.
pub fn show_addresses(world: &World, seconds: u64, screen: &mut Screen<'_>) -> anyhow::Result<()> {
    let aside = match seconds {
        0 => "until Ctrl-C".to_owned(),
        seconds => format!("for {seconds} s"),
    };
    screen.heading("STILL RUNNING", &aside)?;
    screen.pair("API", &format!("http://{}/api/v1/incidents", world.http))?;
    screen.pair("health", &format!("http://{}/healthz", world.http))?;
    screen.pair("NATS", &world.nats_url)?;
    let at = format!("--url http://{}", world.http);
    screen.pair("look", &format!("matins incidents list {at}"))?;
    screen.pair("fail yourself", &format!("matins emit {at} --workflow payout-reconcile --item payout-7"))?;
    Ok(())
}
