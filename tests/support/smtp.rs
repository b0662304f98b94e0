//! A mail server that keeps what it is given and can be told to refuse, stall or hang up at any stage.

use mail_parser::MessageParser;
use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;

/// Where a conversation stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Stage {
    Connect,
    Ehlo,
    Auth,
    Mail,
    Rcpt,
    Data,
    Dot,
}

/// What is done instead of the normal answer.
#[derive(Clone, Debug)]
pub enum Action {
    /// This line; 421 hangs up after it.
    Say(&'static str),
    /// This line, to this mailbox only.
    SayTo(&'static str, &'static str),
    /// Hangs up.
    Drop,
    /// At the end of a mail: keeps it, then hangs up without a word.
    KeepAndDrop,
    /// Says nothing for so long, then hangs up.
    Stall(Duration),
}

/// A mail that was taken.
#[derive(Clone, Debug)]
pub struct Mail {
    pub from: String,
    pub to: Vec<String>,
    pub raw: String,
}

impl Mail {
    pub fn message_id(&self) -> String {
        let mail = MessageParser::default().parse(&self.raw).unwrap();
        mail.message_id().unwrap().to_owned()
    }

    pub fn subject(&self) -> String {
        MessageParser::default().parse(&self.raw).unwrap().subject().unwrap().to_owned()
    }

    pub fn text(&self) -> String {
        MessageParser::default().parse(&self.raw).unwrap().body_text(0).unwrap().into_owned()
    }
}

#[derive(Default)]
struct State {
    mails: Vec<Mail>,
    tries: Vec<Stage>,
    scripts: BTreeMap<Stage, VecDeque<Action>>,
    always: BTreeMap<Stage, Action>,
}

impl State {
    fn action(&mut self, stage: Stage, argument: &str) -> Option<Action> {
        self.tries.push(stage);
        let scripted = self.scripts.get_mut(&stage).and_then(VecDeque::pop_front);
        match scripted.or_else(|| self.always.get(&stage).cloned()) {
            Some(Action::SayTo(_, mailbox)) if mailbox != argument => None,
            action => action,
        }
    }
}

/// The server; gone when dropped.
pub struct Smtp {
    pub port: u16,
    state: Arc<Mutex<State>>,
    _tasks: JoinSet<()>,
}

impl Smtp {
    pub async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let state = Arc::<Mutex<State>>::default();
        let served = state.clone();
        let mut tasks = JoinSet::new();
        tasks.spawn(async move {
            let mut lines = JoinSet::new();
            while let Ok((stream, _)) = listener.accept().await {
                let state = served.clone();
                lines.spawn(async move { Conversation::new(stream, &state).run().await.unwrap_or_default() });
            }
        });
        Self { port, state, _tasks: tasks }
    }

    /// Acts so in turn, then normally.
    pub fn script(&self, stage: Stage, actions: impl IntoIterator<Item = Action>) {
        self.state.lock().unwrap().scripts.insert(stage, actions.into_iter().collect());
    }

    /// Acts so from now on.
    pub fn always(&self, stage: Stage, action: Action) {
        self.state.lock().unwrap().always.insert(stage, action);
    }

    pub fn mails(&self, to: &str) -> Vec<Mail> {
        self.state.lock().unwrap().mails.iter().filter(|m| m.to.iter().any(|t| t == to)).cloned().collect()
    }

    /// Every mail that was taken.
    pub fn everything(&self) -> Vec<Mail> {
        self.state.lock().unwrap().mails.clone()
    }

    /// How often a stage was reached.
    pub fn tries(&self, stage: Stage) -> usize {
        self.state.lock().unwrap().tries.iter().filter(|s| **s == stage).count()
    }

    /// Waits until `count` mails to a mailbox were taken.
    pub async fn expect(&self, to: &str, count: usize) -> Vec<Mail> {
        super::eventually("mails", async || Some(self.mails(to)).filter(|m| m.len() >= count)).await
    }
}

/// Whether a conversation goes on.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Step {
    Done,
    Refused,
    HangUp,
}

struct Conversation<'a> {
    line: BufReader<TcpStream>,
    state: &'a Mutex<State>,
    from: String,
    to: Vec<String>,
}

impl<'a> Conversation<'a> {
    fn new(stream: TcpStream, state: &'a Mutex<State>) -> Self {
        Self { line: BufReader::new(stream), state, from: String::new(), to: vec![] }
    }

    async fn run(mut self) -> std::io::Result<()> {
        if self.step(Stage::Connect, "", "220 sink.example ESMTP").await? != Step::Done {
            return Ok(());
        }
        while let Some(said) = self.read().await? {
            let verb = said.to_ascii_uppercase();
            let argument = said.split_once('<').and_then(|(_, rest)| rest.split_once('>')).map_or("", |(a, _)| a);
            let step = if verb.starts_with("EHLO") {
                let offers = "250-sink.example\r\n250-PIPELINING\r\n250-AUTH PLAIN LOGIN\r\n250 8BITMIME";
                self.step(Stage::Ehlo, "", offers).await?
            } else if verb.starts_with("AUTH") {
                self.step(Stage::Auth, "", "235 2.7.0 ok").await?
            } else if verb.starts_with("MAIL") {
                (self.from, self.to) = (argument.to_owned(), vec![]);
                self.step(Stage::Mail, argument, "250 2.1.0 ok").await?
            } else if verb.starts_with("RCPT") {
                let step = self.step(Stage::Rcpt, argument, "250 2.1.5 ok").await?;
                if step == Step::Done {
                    self.to.push(argument.to_owned());
                }
                step
            } else if verb == "DATA" {
                match self.step(Stage::Data, "", "354 go ahead").await? {
                    Step::Done => self.take().await?,
                    step @ (Step::Refused | Step::HangUp) => step,
                }
            } else if verb == "RSET" {
                self.say("250 ok").await?
            } else if verb == "QUIT" {
                self.say("221 bye").await?;
                Step::HangUp
            } else {
                self.say("502 5.5.2 not known").await?
            };
            if step == Step::HangUp {
                break;
            }
        }
        Ok(())
    }

    async fn take(&mut self) -> std::io::Result<Step> {
        let mut raw = String::new();
        loop {
            // A line that breaks before the end leaves no mail.
            let Some(line) = self.read().await? else { return Ok(Step::HangUp) };
            if line == "." {
                break;
            }
            raw.push_str(line.strip_prefix('.').unwrap_or(&line));
            raw.push_str("\r\n");
        }
        let action = self.state.lock().unwrap().action(Stage::Dot, "");
        if matches!(action, None | Some(Action::KeepAndDrop)) {
            let mail = Mail { from: self.from.clone(), to: self.to.clone(), raw };
            self.state.lock().unwrap().mails.push(mail);
        }
        self.act(action, "250 2.0.0 queued").await
    }

    async fn step(&mut self, stage: Stage, argument: &str, normal: &str) -> std::io::Result<Step> {
        let action = self.state.lock().unwrap().action(stage, argument);
        self.act(action, normal).await
    }

    async fn act(&mut self, action: Option<Action>, normal: &str) -> std::io::Result<Step> {
        match action {
            None => self.say(normal).await,
            Some(Action::Say(text) | Action::SayTo(text, _)) => {
                self.say(text).await?;
                Ok(if text.starts_with("421") { Step::HangUp } else { Step::Refused })
            }
            Some(Action::Drop | Action::KeepAndDrop) => Ok(Step::HangUp),
            Some(Action::Stall(time)) => {
                tokio::time::sleep(time).await;
                Ok(Step::HangUp)
            }
        }
    }

    async fn say(&mut self, text: &str) -> std::io::Result<Step> {
        self.line.write_all(format!("{text}\r\n").as_bytes()).await?;
        Ok(Step::Done)
    }

    async fn read(&mut self) -> std::io::Result<Option<String>> {
        let mut line = String::new();
        let read = self.line.read_line(&mut line).await?;
        Ok((read > 0).then(|| line.trim_end_matches(['\r', '\n']).to_owned()))
    }
}
