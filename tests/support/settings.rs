//! The config of a test: one text with places where a test adds or changes something.

/// A `matins.toml` on its way. Money is `pay-*`, compliance `audit-*`; everything else is standard.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Where NATS, Slack and the mail server are.
    pub nats_url: String,
    pub slack_url: String,
    pub smtp_port: u16,
    pub http_port: u16,
    /// Cron line of the digest; one that is not due for years unless a test is about digests.
    pub digest_cron: &'static str,
    /// Digests and receivers of the route for everything, as lines of a route.
    pub digest_to: &'static str,
    /// Who is paged first; `oncall-mail` for a test of mails.
    pub page: &'static str,
    /// Further lines of the route that pages.
    pub page_route: &'static str,
    /// Further text at the end.
    pub more: String,
}

impl Settings {
    pub fn text(&self) -> String {
        let Self { nats_url, slack_url, smtp_port, http_port, digest_cron, digest_to, page, page_route, more } = self;
        let fallback = if *page == "oncall" { "oncall-mail" } else { "oncall" };
        format!(
            r#"[nats]
url = "{nats_url}"
[store]
url = "sqlite://matins.db"
[http]
listen = "127.0.0.1:{http_port}"
public_url = "http://127.0.0.1:{http_port}"
[smtp]
host = "127.0.0.1"
port = {smtp_port}
tls = "none"
from = "Matins <matins@example.com>"

[receivers.{page}]
{paged}
fallback = "{fallback}"
[receivers.{fallback}]
{instead}
[receivers.ops]
kind = "slack"
webhook_url = "{slack_url}/ops"
[operator]
to = ["ops", "oncall-mail"]

[digests.daily]
cron = "{digest_cron}"
timezone = "UTC"

[[workflows]]
name = "pay-*"
domain = "money"
owner = "Asha <asha@example.com>"
runbook = "https://runbooks.example.com/pay"
[[workflows]]
name = "audit-*"
domain = "compliance"
owner = "Chen <chen@example.com>"
runbook = "https://runbooks.example.com/audit"

[[routes]]
name = "protected"
match = {{ domain = ["money", "compliance"] }}
page = ["{page}"]
{page_route}
continue = true
[[routes]]
name = "everything"
match = {{}}
{digest_to}
{more}
"#,
            paged = receiver(page, slack_url),
            instead = receiver(fallback, slack_url),
        )
    }
}

fn receiver(name: &str, slack_url: &str) -> String {
    match name {
        "oncall" => format!("kind = \"slack\"\nwebhook_url = \"{slack_url}/oncall\""),
        _ => "kind = \"email\"\nto = [\"oncall@example.com\"]".to_owned(),
    }
}
