//! What people would get: a Slack and a mail server on loopback, and the messages that came, in their order.

use super::mail::{self, Mail};
use axum::Router;
use axum::body::Bytes;
use axum::extract::State;
use axum::http::Uri;
use serde_json::Value;
use std::net::SocketAddr;
use tokio::net::TcpListener;
use tokio::sync::mpsc::{self, UnboundedReceiver, UnboundedSender};
use tokio::task::JoinSet;

/// A message that came.
#[derive(Clone, Debug)]
pub enum Arrival {
    /// In a channel of Slack.
    Slack {
        /// `#oncall`
        channel: String,
        /// As it was posted.
        message: Value,
    },
    /// By mail.
    Mail(Mail),
}

/// The receivers; gone when dropped.
pub struct Inbox {
    /// Address of the webhooks: `<url>/oncall` posts to `#oncall`.
    pub slack: SocketAddr,
    /// Address of the mail server.
    pub smtp: SocketAddr,
    arrivals: UnboundedReceiver<Arrival>,
    _tasks: JoinSet<()>,
}

impl Inbox {
    /// Starts both receivers on free ports of loopback.
    pub async fn open() -> anyhow::Result<Self> {
        let (told, arrivals) = mpsc::unbounded_channel();
        let slack_listener = TcpListener::bind("127.0.0.1:0").await?;
        let smtp_listener = TcpListener::bind("127.0.0.1:0").await?;
        let (slack, smtp) = (slack_listener.local_addr()?, smtp_listener.local_addr()?);
        let mut tasks = JoinSet::new();
        tasks.spawn(serve_slack(slack_listener, told.clone()));
        tasks.spawn(serve_mail(smtp_listener, told));
        Ok(Self { slack, smtp, arrivals, _tasks: tasks })
    }

    /// The next message; waits for it.
    pub async fn next(&mut self) -> Option<Arrival> {
        self.arrivals.recv().await
    }

    /// A message that is there already.
    pub fn ready(&mut self) -> Option<Arrival> {
        self.arrivals.try_recv().ok()
    }
}

async fn serve_slack(listener: TcpListener, told: UnboundedSender<Arrival>) {
    let app = Router::new().fallback(take_message).with_state(told);
    if let Err(error) = axum::serve(listener, app).await {
        tracing::error!(%error, "the Slack of the demo ended");
    }
}

/// Every path is the webhook of a channel.
async fn take_message(State(told): State<UnboundedSender<Arrival>>, uri: Uri, body: Bytes) -> &'static str {
    let Ok(message) = serde_json::from_slice(&body) else { return "invalid_payload" };
    let channel = format!("#{}", uri.path().trim_matches('/'));
    // Nobody listens any more only when the demo ends.
    drop(told.send(Arrival::Slack { channel, message }));
    "ok"
}

async fn serve_mail(listener: TcpListener, told: UnboundedSender<Arrival>) {
    let mut lines = JoinSet::new();
    while let Ok((stream, _)) = listener.accept().await {
        let told = told.clone();
        lines.spawn(async move {
            let keep = |mail| drop(told.send(Arrival::Mail(mail)));
            if let Err(error) = mail::converse(stream, keep).await {
                tracing::warn!(%error, "a line to the mail server of the demo broke");
            }
        });
        while lines.try_join_next().is_some() {}
    }
}
