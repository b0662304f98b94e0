//! The configs that the measurements run with, as text.

use crate::load::{WORKFLOWS, workflow_name};
use crate::sink::Sink;
use std::fmt::Write;

/// Money workflows whose pages are timed. Each has a receiver of its own, for Slack takes one message a second a
/// channel and that is honoured.
pub const PAGERS: usize = 60;

/// The name of a money workflow.
pub fn money_name(index: usize) -> String {
    format!("payout-{index:02}")
}

/// A config with everything on: 200 standard workflows with objectives, 60 money workflows that page, three digests.
pub fn full(nats_url: &str, http_port: u16, sink: &Sink) -> String {
    let mut text = format!(
        r#"[nats]
url = "{nats_url}"
stream = "FAILURES"
subjects = ["failures.>"]
durable = "matins"

[store]
url = "sqlite://matins.db"

[http]
listen = "127.0.0.1:{http_port}"
public_url = "http://127.0.0.1:{http_port}"

[operator]
to = ["operator"]

[receivers.operator]
kind = "slack"
webhook_url = "{operator}"

[receivers.ops]
kind = "slack"
webhook_url = "{ops}"

[receivers.archive]
kind = "file"
dir = "archive"

[digests.hourly]
cron = "0 * * * *"
timezone = "UTC"

[digests.daily]
cron = "0 10 * * *"
timezone = "UTC"

[digests.weekly]
cron = "0 10 * * MON"
timezone = "UTC"
"#,
        operator = sink.url("/operator"),
        ops = sink.url("/ops"),
    );
    for index in 0..WORKFLOWS {
        push_workflow(&mut text, &workflow_name(index), "standard");
    }
    for index in 0..PAGERS {
        push_workflow(&mut text, &money_name(index), "money");
        push_pager(&mut text, index, sink);
    }
    text.push_str(
        "\n[[routes]]\nname = \"everything\"\nmatch = {}\ndigest.hourly = [\"ops\", \"archive\"]\n\
         digest.daily = [\"ops\", \"archive\"]\ndigest.weekly = [\"archive\"]\n",
    );
    text
}

fn push_workflow(text: &mut String, name: &str, domain: &str) {
    let _ = write!(
        text,
        "\n[[workflows]]\nname = \"{name}\"\ndomain = \"{domain}\"\nowner = \"Asha <asha@example.com>\"\n\
         runbook = \"https://runbooks.example.com/{name}\"\nslo = 0.995\n"
    );
}

/// A new step is a new incident, so that each probe is a page of its own.
fn push_pager(text: &mut String, index: usize, sink: &Sink) {
    let name = money_name(index);
    let _ = write!(
        text,
        "\n[receivers.{name}]\nkind = \"slack\"\nwebhook_url = \"{url}\"\nfallback = \"archive\"\n\
         \n[[routes]]\nname = \"{name}\"\nmatch = {{ workflow = [\"{name}\"] }}\npage = [\"{name}\"]\n\
         group_by = [\"workflow\", \"step\"]\ncontinue = true\n",
        url = sink.url(&format!("/page/{name}")),
    );
}
