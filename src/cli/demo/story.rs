//! The demo as it is told: the night scene by scene, the messages as they come, then the report, then a stay.

use super::inbox::Arrival;
use super::mail::{self, Mail};
use super::night::{self, Message, Scene, ZONE};
use super::report;
use super::screen::Screen;
use super::world::World;
use super::{DemoOptions, blocks, mrkdwn, wait_until};
use crate::clock;
use crate::ingest::jetstream;
use crate::outbox::queue;
use anyhow::Context as _;
use serde_json::Value;
use std::collections::BTreeMap;
use std::time::Duration;

/// Messages that are on their way to the stream at a time.
const CHUNK: usize = 100;
/// A moment to read, where somebody does.
const BREATH: Duration = Duration::from_millis(600);
const LOOK_EVERY: Duration = Duration::from_millis(20);

/// What came so far.
#[derive(Debug, Default)]
pub struct Heard {
    /// Messages in `#oncall`.
    pub oncall: usize,
    /// Mails.
    pub mails: usize,
    /// Where pages are acknowledged, the newest link of each incident, by path.
    pub acknowledge: BTreeMap<String, String>,
    /// Messages that were published.
    pub published: usize,
}

/// Tells the whole story.
pub async fn tell(world: &mut World, options: &DemoOptions, screen: &mut Screen<'_>) -> anyhow::Result<()> {
    let began_at = clock::now();
    let dawn = night::dawn(began_at);
    screen.heading(
        "THE NIGHT",
        &format!("before {}, replayed", dawn.with_timezone(&ZONE).format("%a %-d %b %H:%M %Z")),
    )?;
    let mut heard = Heard::default();
    let mut pages = 0;
    for scene in night::scenes(dawn) {
        pages += scene.pages;
        play(world, &scene, &mut heard, screen).await?;
        hear(world, &mut heard, pages, screen).await.with_context(|| format!("no page for: {}", scene.title))?;
        if screen.is_live() {
            tokio::time::sleep(BREATH).await;
        }
    }
    // One page has grown, and is told once more.
    screen.wait("a page that has grown is told again, at most every 5 s here")?;
    hear(world, &mut heard, pages + 1, screen).await.context("no update on the page that grew")?;
    settle(world).await?;
    report::show(world, &heard, began_at, screen).await?;
    stay(world, options, &mut heard, screen).await
}

/// Publishes a scene; every message is stored by the stream before the next few go out.
async fn play(world: &mut World, scene: &Scene, heard: &mut Heard, screen: &mut Screen<'_>) -> anyhow::Result<()> {
    let title = format!("{}  {}", scene.at.with_timezone(&ZONE).format("%H:%M"), scene.title);
    let all = scene.messages.len();
    for (index, chunk) in scene.messages.chunks(CHUNK).enumerate() {
        publish(world, chunk).await?;
        heard.published += chunk.len();
        screen.bar(&title, (index * CHUNK + chunk.len()).min(all), all)?;
    }
    Ok(())
}

async fn publish(world: &World, messages: &[Message]) -> anyhow::Result<()> {
    let context = jetstream::context(&world.pipeline);
    let mut acks = Vec::with_capacity(messages.len());
    for message in messages {
        acks.push(context.publish(message.subject.clone(), message.body.clone().into()).await?);
    }
    for ack in acks {
        ack.await?;
    }
    Ok(())
}

/// Shows what comes, until so many pages and updates have come on Slack and by mail.
async fn hear(world: &mut World, heard: &mut Heard, pages: usize, screen: &mut Screen<'_>) -> anyhow::Result<()> {
    while heard.oncall < pages || heard.mails < pages {
        let arrival = wait_until(world.inbox.next()).await?.context("the receivers are gone")?;
        show(world, heard, arrival, screen)?;
    }
    while let Some(arrival) = world.inbox.ready() {
        show(world, heard, arrival, screen)?;
    }
    Ok(())
}

fn show(world: &World, heard: &mut Heard, arrival: Arrival, screen: &mut Screen<'_>) -> anyhow::Result<()> {
    match arrival {
        Arrival::Slack { channel, message } => show_slack(heard, &channel, &message, screen),
        Arrival::Mail(mail) => show_mail(world, heard, &mail, screen),
    }
}

fn show_slack(heard: &mut Heard, channel: &str, message: &Value, screen: &mut Screen<'_>) -> anyhow::Result<()> {
    let lines = blocks::lines(message, Screen::message_width());
    if channel == "#oncall" {
        heard.oncall += 1;
        let acknowledge = lines.iter().flatten().find(|piece| piece.text == "Acknowledge");
        if let Some(url) = acknowledge.and_then(|piece| url::Url::parse(piece.look.link.as_deref()?).ok()) {
            heard.acknowledge.insert(url.path().to_owned(), url.into());
        }
    }
    let now = clock::now().with_timezone(&ZONE).format("%H:%M:%S %Z").to_string();
    screen.message(&format!("Slack {channel}"), &now, &lines)?;
    Ok(())
}

fn show_mail(world: &World, heard: &mut Heard, mail: &Mail, screen: &mut Screen<'_>) -> anyhow::Result<()> {
    heard.mails += 1;
    let subject = mail::subject(&mail.raw);
    let name = format!("{:02}-{}", heard.mails, file_name(&subject));
    mail::save(&mail.raw, &world.folder.join("mails"), &name)?;
    let lines = mrkdwn::wrap(&[mrkdwn::Piece::plain(subject)], Screen::message_width());
    screen.message(&format!("Mail to {}", mail.to.join(", ")), &format!("{name}.html"), &lines)?;
    Ok(())
}

/// The first words of a subject, for a file system.
fn file_name(subject: &str) -> String {
    let words = subject.split(|c: char| !c.is_ascii_alphanumeric()).filter(|word| !word.is_empty());
    words.take(5).collect::<Vec<_>>().join("-").to_lowercase()
}

/// Waits until everything published is committed, and everything decided is delivered.
async fn settle(world: &World) -> anyhow::Result<()> {
    let settled = async {
        loop {
            let waiting = queue::pending_counts(world.shared().store.reader()).await?.pending_count;
            if waiting == 0 && world.unacked().await? == 0 {
                return anyhow::Ok(());
            }
            tokio::time::sleep(LOOK_EVERY).await;
        }
    };
    wait_until(settled).await.context("not everything was taken in and delivered")?
}

/// Keeps everything up as long as it was asked for, and shows what comes.
async fn stay(
    world: &mut World,
    options: &DemoOptions,
    heard: &mut Heard,
    screen: &mut Screen<'_>,
) -> anyhow::Result<()> {
    let Some(seconds) = options.seconds else { return Ok(()) };
    report::show_addresses(world, seconds, screen)?;
    let over = async {
        match seconds {
            0 => std::future::pending().await,
            seconds => tokio::time::sleep(Duration::from_secs(seconds)).await,
        }
    };
    let mut over = std::pin::pin!(over);
    loop {
        tokio::select! {
            arrival = world.inbox.next() => show(world, heard, arrival.context("the receivers are gone")?, screen)?,
            () = &mut over => return Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_subject_makes_a_file_name_without_a_path_in_it() {
        assert_eq!(file_name("order-to-crm: 1 order has not [#1]"), "order-to-crm-1-order");
        assert_eq!(file_name("../../etc/passwd"), "etc-passwd");
    }
}
