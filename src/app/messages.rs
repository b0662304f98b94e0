//! Renders for delivery: the message of an entry again for a fallback, and what is said about broken receivers.

use crate::clock;
use crate::deliver::{DeliveryNews, DeliveryTrouble, Receiver, Render};
use crate::live::Live;
use crate::name::ReceiverName;
use crate::outbox::Entry;
use crate::render::{Content, OperatorFacts};
use arc_swap::ArcSwap;
use serde_json::Value;
use std::sync::Arc;

/// Renders with the config of now.
pub struct LiveRender(pub Arc<ArcSwap<Live>>);

impl Render for LiveRender {
    fn copy(&self, entry: &Entry, receiver: &Receiver) -> Content {
        self.0.load().announcer.render_for(&entry.new, receiver)
    }

    fn news(&self, news: &DeliveryNews, number: i64, receiver: &Receiver) -> (Value, Content) {
        let live = self.0.load();
        let facts = OperatorFacts {
            number,
            is_test: false,
            title: title(news),
            what: what(news),
            action: Some(action(news)),
            url: None,
            now: clock::now(),
            zone: live.announcer.zone(),
        };
        live.announcer.operator_content(receiver, &facts)
    }
}

fn title(news: &DeliveryNews) -> String {
    match news.what {
        DeliveryTrouble::ReceiverBroken => format!("Receiver {} is broken", news.receiver),
        DeliveryTrouble::MessageRefused => format!("Receiver {} refused a message", news.receiver),
        DeliveryTrouble::GaveUp => format!("Messages to receiver {} were given up", news.receiver),
        DeliveryTrouble::UnknownReceiver => format!("Receiver {} is no longer in config", news.receiver),
    }
}

fn what(news: &DeliveryNews) -> String {
    let mailbox = news.address.as_deref().map(|a| format!(" ({a})")).unwrap_or_default();
    let names: Vec<&str> = news.instead.iter().map(ReceiverName::as_str).collect();
    let instead = match (news.what, names.as_slice()) {
        (DeliveryTrouble::UnknownReceiver, []) => "Nobody was told instead.".to_owned(),
        (DeliveryTrouble::UnknownReceiver, names) => format!("The message went to {} instead.", names.join(" and ")),
        (_, []) => "It has no fallback.".to_owned(),
        (_, names) => format!("Its messages go to {}.", names.join(" and ")),
    };
    if news.what == DeliveryTrouble::UnknownReceiver {
        return format!("A message for receiver {}{mailbox} was waiting: {}. {instead}", news.receiver, news.reason);
    }
    format!("Receiver {}{mailbox} said: {}. {instead}", news.receiver, news.reason.trim_end_matches('.'))
}

fn action(news: &DeliveryNews) -> String {
    if news.what == DeliveryTrouble::UnknownReceiver {
        let words = "If the receiver has a new name, nothing is left to do; messages from now on go there, and so does a digest that waited";
        return words.to_owned();
    }
    format!("Mend [receivers.{0}] in config, reload, then run: matins receivers test {0}", news.receiver)
}
