//! `matins exec`: runs a command and reports how it ended. Whatever happens to the report, the command's output and exit code are kept.

use super::Failure;
use super::args::{ExecArgs, Service};
use super::report;
use serde_json::{Map, Value, json};
use std::ffi::OsString;
use std::io::{self, IsTerminal as _, Write as _};
use std::os::unix::process::ExitStatusExt as _;
use std::process::{ExitCode, ExitStatus, Stdio};
use tokio::io::AsyncReadExt as _;
use tokio::process::{Child, ChildStderr, Command};
use tokio::signal::unix::{SignalKind, signal};

/// Bytes of the end of stderr that go into the report.
const TAIL_MAX: usize = 2000;
/// Exit codes of a shell for a command that is not there, and for one that can't be run.
const NOT_FOUND: u8 = 127;
const NOT_RUNNABLE: u8 = 126;

/// How a command ended.
struct Ended {
    code: u8,
    /// None when it ended well.
    failure: Option<(String, String)>,
}

pub(super) async fn run(service: &Service, args: ExecArgs) -> Result<ExitCode, Failure> {
    let Some((program, rest)) = args.command.split_first() else {
        return Err(Failure::Usage("exec needs a command after --".to_owned()));
    };
    let ended = run_command(program, rest).await;
    let handed = match report::with_id(event(&args, &ended)) {
        Ok(event) => report::hand_over(service, &args.fallback, &event, report::Patience::SHORT).await.map(|_| ()),
        Err(failure) => Err(failure),
    };
    // The report is about the run, never the other way round.
    match handed {
        Ok(()) => {}
        Err(Failure::Usage(why)) => eprintln!("matins: the run was not reported: {why}"),
        Err(Failure::Failed(error)) => eprintln!("matins: the run was not reported: {error:#}"),
    }
    Ok(ExitCode::from(ended.code))
}

async fn run_command(program: &OsString, rest: &[OsString]) -> Ended {
    // A terminal stays one for the command; only what nobody watches is read along.
    let keep_tail = !io::stderr().is_terminal();
    let mut command = Command::new(program);
    command.args(rest);
    if keep_tail {
        command.stderr(Stdio::piped());
    }
    let name = program.to_string_lossy();
    let mut child = match command.spawn() {
        Ok(child) => child,
        Err(error) => {
            eprintln!("matins: {name}: {error}");
            let code = if error.kind() == io::ErrorKind::NotFound { NOT_FOUND } else { NOT_RUNNABLE };
            return Ended {
                code,
                failure: Some(("NotStarted".to_owned(), format!("{name} could not be started: {error}"))),
            };
        }
    };
    let tail = child.stderr.take().map(|stderr| tokio::spawn(copy_through(stderr)));
    let status = wait(&mut child).await;
    let tail = match tail {
        // A process that it left behind may hold the other end: what it says then is no longer ours.
        Some(copying) => tokio::time::timeout(std::time::Duration::from_secs(1), copying).await.ok(),
        None => None,
    };
    let tail = tail.and_then(Result::ok).unwrap_or_default();
    ended(&name, status, &tail)
}

/// Waits for the child. Signals that would end us are passed on, and the child decides.
async fn wait(child: &mut Child) -> io::Result<ExitStatus> {
    let mut terminate = signal(SignalKind::terminate())?;
    let mut hangup = signal(SignalKind::hangup())?;
    // A terminal sends this one to the child as well.
    let mut interrupt = signal(SignalKind::interrupt())?;
    loop {
        tokio::select! {
            status = child.wait() => return status,
            _ = terminate.recv() => pass_on("TERM", child.id()).await,
            _ = hangup.recv() => pass_on("HUP", child.id()).await,
            _ = interrupt.recv() => {}
        }
    }
}

/// Signals the child with the system's own tool: doing it ourselves would need unsafe code.
async fn pass_on(signal: &str, child: Option<u32>) {
    let Some(id) = child else { return };
    if let Err(error) = Command::new("kill").arg(format!("-{signal}")).arg(id.to_string()).status().await {
        eprintln!("matins: {signal} could not be passed on: {error}");
    }
}

/// Copies to our stderr and keeps the end.
async fn copy_through(mut from: ChildStderr) -> Vec<u8> {
    let (mut tail, mut buffer) = (Vec::new(), [0; 8192]);
    while let Ok(count @ 1..) = from.read(&mut buffer).await {
        let some = &buffer[..count];
        // Nobody to read it is no reason to stop the command.
        let _ = io::stderr().write_all(some);
        tail.extend_from_slice(some);
        let surplus = tail.len().saturating_sub(TAIL_MAX);
        tail.drain(..surplus);
    }
    tail
}

fn ended(name: &str, status: io::Result<ExitStatus>, tail: &[u8]) -> Ended {
    let (code, kind, how) = match status {
        Ok(status) if status.success() => return Ended { code: 0, failure: None },
        Ok(status) => match (status.code(), status.signal()) {
            (Some(code), _) => {
                (u8::try_from(code).unwrap_or(u8::MAX), "ExitCode".to_owned(), format!("ended with exit code {code}"))
            }
            (None, signal) => {
                let signal = signal.unwrap_or_default();
                let code = u8::try_from(128 + signal).unwrap_or(u8::MAX);
                (code, format!("Signal{signal}"), format!("was ended by signal {signal}"))
            }
        },
        Err(error) => (1, "Lost".to_owned(), format!("could not be waited for: {error}")),
    };
    let said = String::from_utf8_lossy(tail);
    let said = said.trim();
    let message = if said.is_empty() { format!("{name} {how}") } else { format!("{name} {how}: {said}") };
    Ended { code, failure: Some((kind, message)) }
}

fn event(args: &ExecArgs, ended: &Ended) -> Map<String, Value> {
    let mut event = Map::new();
    let mut set = |name: &str, value: Value| event.insert(name.to_owned(), value);
    set("workflow", json!(args.workflow));
    if let Some(step) = &args.step {
        set("step", json!(step));
    }
    let Some((kind, message)) = &ended.failure else {
        set("type", json!("outcome"));
        set("ok", json!(1));
        set("failed", json!(0));
        return event;
    };
    set("error", json!({ "type": kind, "code": format!("exit_{}", ended.code), "message": message }));
    // The run is over, whatever class its words suggest. Without an item there is nothing to keep for later.
    set("disposition", json!(if args.item.is_some() { "dead_lettered" } else { "failed" }));
    if let Some(item) = &args.item {
        set("item", json!(item));
    }
    if let Some(class) = &args.class {
        set("class", json!(class));
    }
    event
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::Cli;
    use crate::cli::args;
    use clap::Parser as _;

    async fn end(script: &str) -> Ended {
        run_command(&OsString::from("sh"), &["-c".into(), script.into()]).await
    }

    fn args(words: &str) -> ExecArgs {
        let cli = Cli::try_parse_from(words.split(' ')).expect("arguments");
        let args::Command::Exec(args) = cli.command else { panic!("exec is expected") };
        args
    }

    #[tokio::test]
    async fn the_exit_code_is_that_of_the_command() {
        assert_eq!(end("exit 0").await.code, 0);
        assert_eq!(end("exit 7").await.code, 7);
        assert_eq!(end("kill -TERM $$").await.code, 143);
        assert_eq!(run_command(&OsString::from("/no/such/program"), &[]).await.code, 127);
        assert_eq!(run_command(&OsString::from("/"), &[]).await.code, 126);
    }

    #[test]
    fn a_good_run_is_an_outcome_and_a_bad_one_a_final_failure() {
        let good = event(&args("matins exec --workflow pay -- true"), &Ended { code: 0, failure: None });
        assert_eq!(Value::Object(good), json!({ "workflow": "pay", "type": "outcome", "ok": 1, "failed": 0 }));
        let bad = Ended { code: 7, failure: Some(("ExitCode".to_owned(), "sh ended with exit code 7".to_owned())) };
        let kept = event(&args("matins exec --workflow pay --item i -- sh"), &bad);
        assert_eq!((&kept["disposition"], &kept["item"]), (&json!("dead_lettered"), &json!("i")));
        let unkept = event(&args("matins exec --workflow pay -- sh"), &bad);
        assert_eq!((&unkept["disposition"], &unkept["error"]["code"]), (&json!("failed"), &json!("exit_7")));
    }

    #[test]
    fn the_report_has_the_last_words_of_the_command() {
        let status = Ok(ExitStatus::from_raw(7 << 8));
        let (_, message) = ended("sh", status, b"warming up\nno space left\n").failure.expect("a failure");
        assert_eq!(message, "sh ended with exit code 7: warming up\nno space left");
    }
}
