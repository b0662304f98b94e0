//! An HTTP server that plays Slack: it keeps what it is sent and answers by script, or hangs up. Every path is a webhook.

use serde_json::Value;
use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::Instant;

/// When the line is cut instead of an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Drop {
    /// Nothing is kept: the request was lost.
    Before,
    /// The message is kept: the answer was lost.
    After,
}

/// One scripted answer.
#[derive(Clone, Debug)]
pub struct Reply {
    pub status: u16,
    pub body: String,
    pub headers: Vec<(&'static str, String)>,
    pub delay: Duration,
    pub drop: Option<Drop>,
}

impl Reply {
    pub fn new(status: u16, body: &str) -> Self {
        Self { status, body: body.to_owned(), headers: vec![], delay: Duration::ZERO, drop: None }
    }

    pub fn ok() -> Self {
        Self::new(200, "ok")
    }

    pub fn header(mut self, name: &'static str, value: &str) -> Self {
        self.headers.push((name, value.to_owned()));
        self
    }

    pub fn delay(mut self, delay: Duration) -> Self {
        self.delay = delay;
        self
    }

    pub fn drop(when: Drop) -> Self {
        Self { drop: Some(when), ..Self::ok() }
    }
}

/// A request that came.
#[derive(Clone, Debug)]
pub struct Message {
    pub path: String,
    pub headers: BTreeMap<String, String>,
    pub body: Value,
    pub at: Instant,
    /// The answer was a success.
    pub accepted: bool,
}

impl Message {
    /// All that is shown, and the text for notifications.
    pub fn words(&self) -> String {
        let mut words = Vec::new();
        collect(&self.body, &mut words);
        words.join("\n")
    }

    /// The notification number: `#N`.
    pub fn number(&self) -> Option<i64> {
        let words = self.words();
        let numbers = words.split('#').skip(1).map(|rest| rest.chars().take_while(char::is_ascii_digit));
        numbers.map(Iterator::collect::<String>).find_map(|digits| digits.parse().ok())
    }
}

/// Every text of a body, and no names of fields.
fn collect(value: &Value, words: &mut Vec<String>) {
    match value {
        Value::String(text) => words.push(text.clone()),
        Value::Array(items) => items.iter().for_each(|item| collect(item, words)),
        Value::Object(fields) => fields.values().for_each(|field| collect(field, words)),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

#[derive(Default)]
struct State {
    messages: Vec<Message>,
    scripts: BTreeMap<String, VecDeque<Reply>>,
    always: BTreeMap<String, Reply>,
}

/// The server; gone when dropped.
pub struct Slack {
    port: u16,
    state: Arc<Mutex<State>>,
    arrivals: watch::Receiver<usize>,
    _tasks: JoinSet<()>,
}

impl Slack {
    pub async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let state = Arc::<Mutex<State>>::default();
        let (arrived, arrivals) = watch::channel(0);
        let mut tasks = JoinSet::new();
        let served = state.clone();
        tasks.spawn(async move {
            let mut lines = JoinSet::new();
            while let Ok((stream, _)) = listener.accept().await {
                let (state, arrived) = (served.clone(), arrived.clone());
                // A line that breaks ends its task; the client's side of it is what a test looks at.
                lines.spawn(async move { serve(stream, &state, &arrived).await.unwrap_or_default() });
            }
        });
        Self { port, state, arrivals, _tasks: tasks }
    }

    pub fn url(&self, path: &str) -> String {
        format!("http://127.0.0.1:{}{path}", self.port)
    }

    /// Answers in turn, then `ok`.
    pub fn script(&self, path: &str, replies: impl IntoIterator<Item = Reply>) {
        self.state.lock().unwrap().scripts.insert(path.to_owned(), replies.into_iter().collect());
    }

    /// Answers so until told otherwise.
    pub fn always(&self, path: &str, reply: Option<Reply>) {
        let mut state = self.state.lock().unwrap();
        match reply {
            Some(reply) => state.always.insert(path.to_owned(), reply),
            None => state.always.remove(path),
        };
    }

    pub fn messages(&self, path: &str) -> Vec<Message> {
        self.state.lock().unwrap().messages.iter().filter(|m| m.path == path).cloned().collect()
    }

    /// Everything that came, whatever the path.
    pub fn everything(&self) -> Vec<Message> {
        self.state.lock().unwrap().messages.clone()
    }

    pub fn accepted(&self, path: &str) -> Vec<Message> {
        self.messages(path).into_iter().filter(|m| m.accepted).collect()
    }

    /// Waits until `count` messages were taken.
    pub async fn expect(&self, path: &str, count: usize) -> Vec<Message> {
        self.wait(path, count, |m| m.accepted).await
    }

    /// Waits until `count` messages came, whatever they were answered.
    pub async fn expect_tries(&self, path: &str, count: usize) -> Vec<Message> {
        self.wait(path, count, |_| true).await
    }

    async fn wait(&self, path: &str, count: usize, counts: fn(&Message) -> bool) -> Vec<Message> {
        let mut arrivals = self.arrivals.clone();
        let arrived = async {
            loop {
                arrivals.borrow_and_update();
                let found: Vec<_> = self.messages(path).into_iter().filter(counts).collect();
                if found.len() >= count {
                    return found;
                }
                arrivals.changed().await.unwrap();
            }
        };
        let waited = tokio::time::timeout(super::PATIENCE, arrived).await;
        waited.unwrap_or_else(|_| panic!("{count} messages at {path}, came: {:?}", self.messages(path)))
    }
}

async fn serve(stream: TcpStream, state: &Mutex<State>, arrived: &watch::Sender<usize>) -> std::io::Result<()> {
    let mut line = BufReader::new(stream);
    while let Some((path, headers, body)) = read_request(&mut line).await? {
        let reply = {
            let mut state = state.lock().unwrap();
            let scripted = state.scripts.get_mut(&path).and_then(VecDeque::pop_front);
            scripted.or_else(|| state.always.get(&path).cloned()).unwrap_or_else(Reply::ok)
        };
        if reply.drop == Some(Drop::Before) {
            return Ok(());
        }
        let accepted = reply.drop.is_none()
            && reply.status == 200
            && (reply.body == "ok" || reply.body.replace(' ', "").contains("\"ok\":true"));
        let body = serde_json::from_slice(&body).unwrap_or(Value::Null);
        state.lock().unwrap().messages.push(Message { path, headers, body, at: Instant::now(), accepted });
        arrived.send_modify(|n| *n += 1);
        tokio::time::sleep(reply.delay).await;
        if reply.drop == Some(Drop::After) {
            return Ok(());
        }
        let mut head = format!("HTTP/1.1 {} x\r\ncontent-length: {}\r\n", reply.status, reply.body.len());
        for (name, value) in &reply.headers {
            head.push_str(&format!("{name}: {value}\r\n"));
        }
        line.write_all(format!("{head}\r\n{}", reply.body).as_bytes()).await?;
    }
    Ok(())
}

type Request = (String, BTreeMap<String, String>, Vec<u8>);

async fn read_request(line: &mut BufReader<TcpStream>) -> std::io::Result<Option<Request>> {
    let mut first = String::new();
    if line.read_line(&mut first).await? == 0 {
        return Ok(None);
    }
    let path = first.split(' ').nth(1).unwrap_or_default().to_owned();
    let mut headers = BTreeMap::new();
    loop {
        let mut header = String::new();
        line.read_line(&mut header).await?;
        let Some((name, value)) = header.trim_end().split_once(':') else { break };
        headers.insert(name.to_ascii_lowercase(), value.trim().to_owned());
    }
    let length = headers.get("content-length").and_then(|n| n.parse().ok()).unwrap_or(0);
    let mut body = vec![0; length];
    line.read_exact(&mut body).await?;
    Ok(Some((path, headers, body)))
}
