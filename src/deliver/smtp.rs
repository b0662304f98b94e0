//! The conversation with a mail server, step by step, because what a lost line means depends on how far it had come.
//! One transaction a mailbox: who refuses holds up nobody. The security of the line never falls back.

use super::bounded::Bounded;
use super::outcome::{Stage, smtp as read_refusal, smtp_lost};
use crate::clock;
use crate::config::{SmtpSettings, SmtpTls};
use crate::outbox::Outcome;
use lettre::Address;
use lettre::transport::smtp::Error as SmtpError;
use lettre::transport::smtp::authentication::{Credentials, Mechanism};
#[expect(deprecated, reason = "the library has no other way to TLS on a stream of ours")]
use lettre::transport::smtp::client::AsyncNetworkStream;
use lettre::transport::smtp::client::{AsyncSmtpConnection, AsyncTokioStream, TlsParameters};
use lettre::transport::smtp::commands::{Data, Mail, Rcpt, Rset};
use lettre::transport::smtp::extension::ClientId;
use secrecy::ExposeSecret;
use std::error::Error as _;
use std::time::Duration;
use tokio::net::TcpStream;
use tokio::time::{Instant, timeout, timeout_at};
use tokio_util::compat::FuturesAsyncReadCompatExt as _;

fn now() -> Instant {
    clock::instant().into()
}

/// Longest wait for one answer of the server.
pub const STEP_TIMEOUT: Duration = Duration::from_secs(10);
/// Longest time of a whole try.
pub const BUDGET: Duration = Duration::from_secs(20);

/// When the steps of one try must be over.
#[derive(Clone, Copy)]
struct Deadline {
    end: Instant,
}

impl Deadline {
    fn step(self) -> Instant {
        self.end.min(now() + STEP_TIMEOUT)
    }

    /// Whether a mailbox begun now has the time of one answer.
    fn leaves_a_step(self) -> bool {
        self.end.saturating_duration_since(now()) >= STEP_TIMEOUT / 2
    }
}

/// What each mailbox came to, in the order asked for.
pub type Results = Vec<(Address, Outcome)>;

/// Sends `mail` from `from` to each of `to`, within `limit` whatever the server does. What was said by then is kept.
pub async fn send(settings: &SmtpSettings, from: &Address, to: &[Address], mail: &[u8], limit: Duration) -> Results {
    let mut results = Results::new();
    if timeout(limit, converse(settings, from, to, mail, &mut results)).await.is_err() {
        let why = format!("the try was not over after {} s", limit.as_secs());
        fill(&mut results, to, &why);
    }
    results
}

/// Adds what is not known yet: the mailbox on its turn may have the mail, those after it have not.
fn fill(results: &mut Results, to: &[Address], why: &str) {
    let on_its_turn = results.len();
    for (n, address) in to.iter().enumerate().skip(on_its_turn) {
        let outcome = if n == on_its_turn {
            Outcome::Unsure { why: why.to_owned() }
        } else {
            Outcome::Retry { after: None, why: why.to_owned() }
        };
        results.push((address.clone(), outcome));
    }
}

async fn converse(settings: &SmtpSettings, from: &Address, to: &[Address], mail: &[u8], results: &mut Results) {
    let deadline = Deadline { end: now() + BUDGET };
    let opened = match timeout_at(deadline.step(), open(settings)).await {
        Ok(opened) => opened,
        Err(_) => Err(smtp_lost(Stage::Connect, &silence(settings))),
    };
    let mut line = match opened {
        Ok(line) => line,
        Err(outcome) => {
            results.extend(to.iter().map(|a| (a.clone(), outcome.clone())));
            return;
        }
    };
    for address in to {
        let outcome = if line.has_broken() {
            Outcome::Retry { after: None, why: "the line was lost before this mailbox".to_owned() }
        } else if !deadline.leaves_a_step() {
            Outcome::Retry { after: None, why: "the mailboxes before took too long".to_owned() }
        } else {
            transact(&mut line, from, address, mail, deadline).await
        };
        results.push((address.clone(), outcome));
    }
    hang_up(&mut line).await;
}

/// Says goodbye; everything is confirmed already, so a server that does not answer changes nothing.
async fn hang_up(line: &mut AsyncSmtpConnection) {
    if !line.has_broken() {
        drop(timeout(Duration::from_secs(1), line.abort()).await);
    }
}

async fn open(settings: &SmtpSettings) -> Result<AsyncSmtpConnection, Outcome> {
    let hello = ClientId::default();
    let address = (settings.host.as_str(), settings.port);
    let refused = |e: SmtpError| read_error(Stage::Connect, &e, &hint(settings, &e));
    let unreachable = |e: std::io::Error| {
        let why = format!("can't connect to {}:{}: {e}", settings.host, settings.port);
        Outcome::Retry { after: None, why }
    };
    let tls = || TlsParameters::new(settings.host.clone()).map_err(refused);
    let tcp = TcpStream::connect(address).await.map_err(unreachable)?;
    let peer = tcp.peer_addr().map_err(unreachable)?;
    // Mail and its final dot are two writes; without this the second waits 40 ms for the answer to the first.
    drop(tcp.set_nodelay(true));
    let tcp = Box::new(Bounded::new(tcp, peer));
    let stream: Box<dyn AsyncTokioStream> = match settings.tls {
        SmtpTls::Implicit => Box::new(Bounded::new(encrypt(tcp, tls()?).await.map_err(refused)?.compat(), peer)),
        SmtpTls::StartTls | SmtpTls::None => tcp,
    };
    let mut line = AsyncSmtpConnection::connect_with_transport(stream, &hello).await.map_err(refused)?;
    if settings.tls == SmtpTls::StartTls {
        if !line.can_starttls() {
            let why = "the server does not offer STARTTLS; tls = \"none\" would send in the clear, tls = \"implicit\" is for \
                       port 465"
                .to_owned();
            return Err(Outcome::Permanent { why, broken: true });
        }
        line.starttls(tls()?, &hello).await.map_err(refused)?;
    }
    if let (Some(user), Some(password)) = (&settings.username, &settings.password) {
        let credentials = Credentials::new(user.clone(), password.expose_secret().to_owned());
        let signed_in = line.auth(&[Mechanism::Plain, Mechanism::Login], &credentials).await;
        signed_in.map_err(|e| read_error(Stage::Auth, &e, ""))?;
    }
    Ok(line)
}

/// TLS from the first byte.
#[expect(deprecated, reason = "the library has no other way to TLS on a stream of ours")]
async fn encrypt(tcp: Box<dyn AsyncTokioStream>, tls: TlsParameters) -> Result<AsyncNetworkStream, SmtpError> {
    let mut stream = AsyncNetworkStream::use_existing_tokio1(tcp);
    stream.upgrade_tls(tls).await?;
    Ok(stream)
}

async fn transact(
    line: &mut AsyncSmtpConnection,
    from: &Address,
    to: &Address,
    mail: &[u8],
    deadline: Deadline,
) -> Outcome {
    let mut stage = Stage::Mail;
    match speak(line, from, to, mail, deadline, &mut stage).await {
        Ok(()) => Outcome::Delivered,
        Err(Some(error)) => {
            match error.status() {
                // 421 says that the server hangs up.
                Some(code) if u16::from(code) != 421 => reset(line, deadline).await,
                Some(_) | None => hang_up(line).await,
            }
            read_error(stage, &error, "")
        }
        Err(None) => {
            hang_up(line).await;
            smtp_lost(stage, &format!("no answer within {} s", STEP_TIMEOUT.as_secs()))
        }
    }
}

/// One transaction; `stage` says how far it came. No error means silence.
async fn speak(
    line: &mut AsyncSmtpConnection,
    from: &Address,
    to: &Address,
    mail: &[u8],
    deadline: Deadline,
    stage: &mut Stage,
) -> Result<(), Option<SmtpError>> {
    let silent = |_| None;
    timeout_at(deadline.step(), line.command(Mail::new(Some(from.clone()), vec![]))).await.map_err(silent)??;
    *stage = Stage::Rcpt;
    timeout_at(deadline.step(), line.command(Rcpt::new(to.clone(), vec![]))).await.map_err(silent)??;
    *stage = Stage::Data;
    timeout_at(deadline.step(), line.command(Data)).await.map_err(silent)??;
    *stage = Stage::Dot;
    timeout_at(deadline.step(), line.message(mail)).await.map_err(silent)??;
    Ok(())
}

async fn reset(line: &mut AsyncSmtpConnection, deadline: Deadline) {
    if !matches!(timeout_at(deadline.step(), line.command(Rset)).await, Ok(Ok(_))) {
        hang_up(line).await;
    }
}

fn read_error(stage: Stage, error: &SmtpError, hint: &str) -> Outcome {
    let text = error.source().map_or_else(|| error.to_string(), ToString::to_string);
    match error.status() {
        Some(code) => read_refusal(stage, code.into(), &text),
        None => smtp_lost(stage, &format!("{text}{hint}")),
    }
}

/// What a failed start of TLS mostly means.
fn hint(settings: &SmtpSettings, error: &SmtpError) -> String {
    match settings.tls {
        SmtpTls::Implicit if error.status().is_none() => {
            format!("; tls = \"implicit\" on port {}: port 587 and 25 mostly want \"starttls\"", settings.port)
        }
        SmtpTls::Implicit | SmtpTls::StartTls | SmtpTls::None => String::new(),
    }
}

fn silence(settings: &SmtpSettings) -> String {
    let why = format!("{}:{} said nothing within {} s", settings.host, settings.port, STEP_TIMEOUT.as_secs());
    match settings.tls {
        SmtpTls::StartTls | SmtpTls::None => format!("{why}; a port that speaks TLS at once wants tls = \"implicit\""),
        SmtpTls::Implicit => why,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::io::AsyncWriteExt as _;
    use tokio::net::TcpListener;

    /// What becomes of a mail for a server that says `word` again and again before it was spoken to.
    async fn babble(word: &'static [u8]) -> Outcome {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let server = tokio::spawn(async move {
            let (mut socket, _) = listener.accept().await.unwrap();
            let much = word.repeat(60_000);
            while socket.write_all(&much).await.is_ok() {}
        });
        let settings = SmtpSettings {
            host: "127.0.0.1".to_owned(),
            port,
            tls: SmtpTls::None,
            username: None,
            password: None,
            from: "matins@example.com".to_owned(),
        };
        let to: Address = "a@example.com".parse().unwrap();
        let results = send(&settings, &to, std::slice::from_ref(&to), b"Subject: x\r\n\r\n", BUDGET).await;
        server.await.unwrap();
        results.into_iter().next().unwrap().1
    }

    #[tokio::test]
    async fn a_greeting_without_end_is_a_failed_try_and_holds_up_nobody() {
        let started = clock::instant();
        for word in [b"220-\r\n".as_slice(), b"220 hello "] {
            let outcome = babble(word).await;
            assert!(matches!(&outcome, Outcome::Retry { .. }), "{outcome:?}");
        }
        assert!(started.elapsed() < STEP_TIMEOUT, "{:?}", started.elapsed());
    }

    #[test]
    fn of_a_try_that_was_ended_what_was_said_is_kept_and_only_one_mailbox_is_unsure() {
        let to: Vec<Address> = ["a", "b", "c"].iter().map(|n| format!("{n}@example.com").parse().unwrap()).collect();
        let mut results = vec![(to[0].clone(), Outcome::Delivered)];
        fill(&mut results, &to, "late");
        let outcomes: Vec<&Outcome> = results.iter().map(|(_, outcome)| outcome).collect();
        assert!(
            matches!(outcomes[..], [Outcome::Delivered, Outcome::Unsure { .. }, Outcome::Retry { after: None, .. }]),
            "{outcomes:?}"
        );
    }
}
