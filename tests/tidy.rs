//! The rules of the source tree as tests: which room may name which, who reads the clock, how long a file may be.
//! They read text and nothing else; what a compiler or clippy can judge is not judged here.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Rooms and files in which nothing reads or writes the world outside: the same input gives the same output.
const PURE: &[&str] = &[
    "ack_link",
    "backtest/against",
    "backtest/agenda",
    "backtest/line",
    "backtest/report",
    "calendar",
    "config/schema",
    "dead_letter",
    "deliver/outcome",
    "deliver/receiver",
    "digest",
    "event",
    "fingerprint",
    "incident",
    "ingest/classify",
    "ingest/decode",
    "ingest/quarantine",
    "ingest/reader",
    "ingest/redact",
    "mailbox",
    "matcher",
    "name",
    "outbox/entry",
    "outbox/policy",
    "outbox/recipient",
    "render",
    "route",
    "silence",
    "symptom",
    "workflow",
];

/// What no pure file may name: runtimes, sockets, stores, the clock, randomness, the environment.
const IMPURE: &[&str] = &[
    "async_nats",
    "axum",
    "futures_util",
    "lettre::transport",
    "lettre::AsyncTransport",
    "notify",
    "reqwest",
    "ring::rand",
    "sqlx",
    "std::env",
    "std::fs",
    "std::io::stderr",
    "std::io::stdin",
    "std::io::stdout",
    "std::net::TcpListener",
    "std::net::TcpStream",
    "std::net::ToSocketAddrs",
    "std::net::UdpSocket",
    "std::process",
    "std::thread",
    "std::time::Instant",
    "std::time::SystemTime",
    "tokio",
    "tracing",
];

/// Most lines of a file before its tests.
const LINES_MAX: usize = 400;

/// Names that say nothing about what is inside.
const BUCKETS: &[&str] = &["common", "helper", "helpers", "manager", "misc", "type", "types", "util", "utils"];

/// The messages that people get, and the parts that each has.
const MESSAGES: &[&str] =
    &["digest-daily", "digest-hourly", "digest-weekly", "escalation", "operator", "page", "reminder", "resolved"];
const PARTS: &[&str] = &["html.hbs", "slack.hbs", "subject.hbs", "text.hbs"];

/// Where a rule does not hold, and why: rule, file, reason. One that is no longer needed fails `no_exception_is_stale`.
const EXCEPTIONS: &[(Rule, &str, &str)] = &[
    (Rule::Length, "src/digest/input.rs", "declarations only: what a digest is made from, each field with its meaning"),
    (Rule::Length, "src/digest/view.rs", "declarations only: what a template may name, each field with its meaning"),
];

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Rule {
    FirstLine,
    Purity,
    Clock,
    Length,
    Bucket,
    Anyhow,
    OutboxWriter,
}

/// A broken rule: which, where, and what was seen.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Finding {
    rule: Rule,
    path: String,
    seen: String,
}

/// A Rust file: its path from the root of the repository, all of it, and its code without tests and comments.
struct Source {
    path: String,
    text: String,
    code: String,
}

impl Source {
    fn new(path: &str, text: &str) -> Self {
        Self { path: path.to_owned(), text: text.to_owned(), code: without_comments(before_tests(text)) }
    }

    /// `src/ingest/decode/native.rs` is `ingest/decode/native`, and `src/event/mod.rs` is `event`.
    fn module(&self) -> &str {
        let module = self.path.trim_start_matches("src/").trim_end_matches(".rs");
        module.strip_suffix("/mod").unwrap_or(module)
    }

    fn is_test(&self) -> bool {
        self.path.ends_with("/tests.rs") || self.path.contains("/tests/")
    }

    fn is_pure(&self) -> bool {
        is_pure_module(self.module())
    }

    fn finding(&self, rule: Rule, seen: impl Into<String>) -> Finding {
        Finding { rule, path: self.path.clone(), seen: seen.into() }
    }
}

fn is_pure_module(module: &str) -> bool {
    PURE.iter().any(|pure| module == *pure || module.strip_prefix(pure).is_some_and(|rest| rest.starts_with('/')))
}

fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
}

fn walk(dir: &Path, found: &mut Vec<PathBuf>) {
    let Ok(entries) = fs::read_dir(dir) else { return };
    for path in entries.flatten().map(|entry| entry.path()) {
        if path.is_dir() {
            walk(&path, found);
        } else {
            found.push(path);
        }
    }
}

/// All files under a folder of the repository, as paths from its root, in order.
fn files(dir: &str) -> Vec<String> {
    let (root, mut found) = (root(), Vec::new());
    walk(&root.join(dir), &mut found);
    let from_root = |path: &PathBuf| path.strip_prefix(&root).map(|path| path.display().to_string()).ok();
    let mut paths: Vec<String> = found.iter().filter_map(from_root).collect();
    paths.sort();
    paths
}

fn read(path: &str) -> String {
    fs::read_to_string(root().join(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
}

fn rust_files(dir: &str) -> Vec<Source> {
    files(dir).iter().filter(|path| path.ends_with(".rs")).map(|path| Source::new(path, &read(path))).collect()
}

fn sources() -> Vec<Source> {
    let sources = rust_files("src");
    assert!(sources.len() > 10, "the walk found next to nothing");
    sources
}

/// The text up to the unit tests at the end.
fn before_tests(text: &str) -> &str {
    let mut offset = 0;
    let mut lines = text.split_inclusive('\n').peekable();
    while let Some(line) = lines.next() {
        if line.trim() == "#[cfg(test)]" && lines.peek().is_some_and(|next| next.trim_start().starts_with("mod ")) {
            return &text[..offset];
        }
        offset += line.len();
    }
    text
}

/// Comments hold prose, and prose may name anything. A `//` within a string cuts that line short, which hides at most
/// the rest of an address.
fn without_comments(text: &str) -> String {
    text.lines().map(|line| line.split_once("//").map_or(line, |(code, _)| code)).collect::<Vec<_>>().join("\n")
}

/// Every path that starts at `start` (`crate`, `std`, `tokio` …), with `use` groups written out.
fn paths_from(code: &str, start: &str) -> Vec<String> {
    let mut paths = Vec::new();
    for (at, _) in code.match_indices(start) {
        let before = code[..at].chars().next_back();
        let rest = &code[at + start.len()..];
        let whole = before.is_none_or(|c| !c.is_alphanumeric() && c != '_' && c != ':') || code[..at].ends_with(" ::");
        if whole && rest.starts_with("::") {
            expand(start, rest, &mut paths);
        }
    }
    paths
}

/// Follows `::a::b::{c, d::e}` from `prefix` and returns what is left of the text.
fn expand<'a>(prefix: &str, text: &'a str, paths: &mut Vec<String>) -> &'a str {
    let Some(rest) = text.strip_prefix("::") else {
        paths.push(prefix.to_owned());
        return text;
    };
    let Some(mut rest) = rest.strip_prefix('{') else {
        let end = rest.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(rest.len());
        return expand(&format!("{prefix}::{}", &rest[..end]), &rest[end..], paths);
    };
    loop {
        rest = rest.trim_start_matches(|c: char| c.is_whitespace() || c == ',');
        let end = rest.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(rest.len());
        if end == 0 {
            return rest.strip_prefix('}').unwrap_or(rest);
        }
        rest = expand(&format!("{prefix}::{}", &rest[..end]), &rest[end..], paths);
        if let Some(renamed) = rest.trim_start().strip_prefix("as ") {
            rest = renamed.trim_start().trim_start_matches(|c: char| c.is_alphanumeric() || c == '_');
        }
    }
}

/// Whether `path` (`crate::deliver::Channel`) leads to a pure file: the module itself is pure, or the item it names is
/// defined in a pure file of that room and only handed on by the room's `mod.rs`.
fn leads_to_pure(path: &str, sources: &[Source]) -> bool {
    let segments: Vec<&str> = path.split("::").skip(1).collect();
    let module_pure = (1..=segments.len()).any(|count| is_pure_module(&segments[..count].join("/")));
    module_pure || (segments.len() > 1 && is_defined_pure(segments[0], segments[1], sources))
}

fn is_defined_pure(room: &str, item: &str, sources: &[Source]) -> bool {
    let of_room = |source: &&Source| source.module().split('/').next() == Some(room);
    let defines = |source: &&Source| {
        ["struct", "enum", "trait", "type", "fn", "const"].iter().any(|keyword| {
            source.code.match_indices(&format!("pub {keyword} {item}")).any(|(at, found)| {
                source.code[at + found.len()..].starts_with(|c: char| !c.is_alphanumeric() && c != '_')
            })
        })
    };
    let mut definitions = sources.iter().filter(of_room).filter(defines).peekable();
    definitions.peek().is_some() && definitions.all(Source::is_pure)
}

fn check_first_line(source: &Source) -> Vec<Finding> {
    let first = source.text.lines().next().unwrap_or_default();
    if first.starts_with("//! ") { vec![] } else { vec![source.finding(Rule::FirstLine, first)] }
}

fn check_purity(source: &Source, sources: &[Source]) -> Vec<Finding> {
    if !source.is_pure() || source.is_test() {
        return vec![];
    }
    let mut seen: BTreeSet<String> =
        paths_from(&source.code, "crate").into_iter().filter(|path| !leads_to_pure(path, sources)).collect();
    for banned in IMPURE {
        let (start, _) = banned.split_once("::").unwrap_or((banned, ""));
        let under = |path: &String| path == banned || path.starts_with(&format!("{banned}::"));
        seen.extend(paths_from(&source.code, start).into_iter().filter(under));
    }
    // Two steps up leave the room without saying where to.
    let words = ["async ", ".await", "super::super::", "println!", "eprintln!", "thread_local!"];
    seen.extend(words.iter().filter(|word| source.code.contains(**word)).map(|word| (*word).to_owned()));
    seen.into_iter().map(|path| source.finding(Rule::Purity, path)).collect()
}

fn check_clock(source: &Source) -> Vec<Finding> {
    if source.module() == "clock" {
        return vec![];
    }
    let readings = ["Utc::now", "Local::now", "SystemTime::now", "Instant::now", "SystemRandom", ".elapsed()"];
    let seen = readings.iter().filter(|reading| source.code.contains(**reading));
    seen.map(|reading| source.finding(Rule::Clock, *reading)).collect()
}

fn check_length(source: &Source) -> Vec<Finding> {
    let lines = before_tests(&source.text).lines().count();
    let over = lines > LINES_MAX && !source.is_test();
    if over { vec![source.finding(Rule::Length, format!("{lines} lines"))] } else { vec![] }
}

fn check_bucket(source: &Source) -> Vec<Finding> {
    let names = source.module().split('/').filter(|name| BUCKETS.contains(name));
    names.map(|name| source.finding(Rule::Bucket, name)).collect()
}

fn check_anyhow(source: &Source) -> Vec<Finding> {
    let room = source.module().split('/').next().unwrap_or_default();
    let used = source.code.contains("anyhow::") || source.code.contains("anyhow!");
    let allowed = ["app", "cli", "main"].contains(&room) || source.is_test();
    if used && !allowed { vec![source.finding(Rule::Anyhow, "anyhow")] } else { vec![] }
}

fn check_outbox_writer(source: &Source) -> Vec<Finding> {
    if is_within(source.module(), "outbox/queue") || source.is_test() {
        return vec![];
    }
    let code = source.code.to_lowercase().split_whitespace().collect::<Vec<_>>().join(" ");
    let writes = ["insert into outbox", "insert or ignore into outbox", "replace into outbox", "update outbox"];
    let ends = |rest: &str| !rest.starts_with(|c: char| c.is_alphanumeric() || c == '_');
    let found = |write: &&&str| code.match_indices(**write).any(|(at, _)| ends(&code[at + write.len()..]));
    writes.iter().filter(found).map(|write| source.finding(Rule::OutboxWriter, *write)).collect()
}

fn is_within(module: &str, other: &str) -> bool {
    module == other || module.strip_prefix(other).is_some_and(|rest| rest.starts_with('/'))
}

fn is_excepted(finding: &Finding) -> bool {
    EXCEPTIONS.iter().any(|(rule, path, _)| *rule == finding.rule && *path == finding.path)
}

fn all_findings() -> Vec<Finding> {
    let sources = sources();
    let mut findings: Vec<Finding> = Vec::new();
    for source in &sources {
        findings.extend(check_first_line(source));
        findings.extend(check_purity(source, &sources));
        findings.extend(check_clock(source));
        findings.extend(check_length(source));
        findings.extend(check_bucket(source));
        findings.extend(check_anyhow(source));
        findings.extend(check_outbox_writer(source));
    }
    findings
}

#[track_caller]
fn assert_holds(rule: Rule) {
    let broken: Vec<Finding> = all_findings().into_iter().filter(|f| f.rule == rule && !is_excepted(f)).collect();
    let lines: Vec<String> = broken.iter().map(|finding| format!("  {}: {}", finding.path, finding.seen)).collect();
    assert!(broken.is_empty(), "{rule:?} is broken:\n{}", lines.join("\n"));
}

#[test]
fn every_file_says_first_what_lives_in_it() {
    assert_holds(Rule::FirstLine);
    for source in rust_files("tests").iter().chain(&rust_files("benches")) {
        assert_eq!(check_first_line(source), [], "{}", source.path);
    }
}

#[test]
fn pure_rooms_name_no_shell_room_and_nothing_outside() {
    assert_holds(Rule::Purity);
}

#[test]
fn only_clock_reads_clock_and_randomness() {
    assert_holds(Rule::Clock);
}

#[test]
fn no_file_is_longer_than_a_reader_can_hold() {
    assert_holds(Rule::Length);
}

#[test]
fn no_module_is_a_bucket() {
    assert_holds(Rule::Bucket);
}

#[test]
fn anyhow_stays_at_the_edge() {
    assert_holds(Rule::Anyhow);
}

#[test]
fn only_the_queue_writes_outbox_rows() {
    assert_holds(Rule::OutboxWriter);
}

#[test]
fn no_exception_is_stale() {
    let findings = all_findings();
    for (rule, path, reason) in EXCEPTIONS {
        assert!(reason.len() > 10, "{path} needs a reason");
        let needed = findings.iter().any(|finding| finding.rule == *rule && finding.path == *path);
        assert!(needed, "{path} keeps {rule:?} by now: take its exception out");
    }
}

#[test]
fn migrations_are_numbered_without_holes_and_alike_in_every_dialect() {
    let mut dialects: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for path in files("migrations").iter().filter(|path| path.ends_with(".sql")) {
        let mut parts = path.split('/').skip(1);
        let (dialect, file) = (parts.next().unwrap(), parts.next().unwrap());
        dialects.entry(dialect.to_owned()).or_default().push(file.to_owned());
    }
    assert!(!dialects.is_empty(), "no migrations were found");
    let lists = files("src/store").iter().map(|path| read(path)).collect::<String>();
    for (dialect, names) in &dialects {
        for (index, name) in names.iter().enumerate() {
            let number = format!("{:04}_", index + 1);
            assert!(name.starts_with(&number), "migrations/{dialect}/{name}: the next number is {number}");
            assert!(lists.contains(&format!("{dialect}/{name}")), "migrations/{dialect}/{name} is applied by nobody");
        }
    }
    let numberings: BTreeSet<usize> = dialects.values().map(Vec::len).collect();
    assert_eq!(numberings.len(), 1, "the dialects have different migrations: {dialects:?}");
}

/// A folder that is not there yet is not missed; one that is there is whole. A leading `_` marks parts that messages
/// share.
#[test]
fn every_template_folder_is_a_message_with_all_its_parts() {
    let mut folders: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for path in files("templates") {
        let Some((folder, part)) = path.trim_start_matches("templates/").split_once('/') else { continue };
        if folder.starts_with('_') {
            continue;
        }
        folders.entry(folder.to_owned()).or_default().insert(part.to_owned());
    }
    for (folder, parts) in &folders {
        assert!(MESSAGES.contains(&folder.as_str()), "templates/{folder} is no message");
        let parts: Vec<&str> = parts.iter().map(String::as_str).collect();
        assert_eq!(parts, PARTS, "templates/{folder}");
    }
}

/// What the repository tracks, or everything but build output where there is no git.
fn tracked_files() -> Vec<String> {
    let listed = Command::new("git").args(["ls-files", "--cached", "-z"]).current_dir(root()).output();
    match listed {
        Ok(output) if output.status.success() && !output.stdout.is_empty() => {
            let names = String::from_utf8_lossy(&output.stdout).into_owned();
            names.split('\0').filter(|name| !name.is_empty()).map(str::to_owned).collect()
        }
        _ => ["src", "tests", "benches", "templates", "migrations", "config", ".ci"]
            .iter()
            .flat_map(|d| files(d))
            .collect(),
    }
}

#[test]
fn no_tracked_file_names_a_machine_or_a_registry() {
    // In two halves, so that this list does not find itself.
    let halves = [
        ("/wo", "rk/"),
        ("/tm", "p/w/"),
        ("/ro", "ot/"),
        ("/home/", "user/"),
        ("static.", "crates.io"),
        ("index.", "crates.io"),
        ("py", "pi.org"),
        ("files.python", "hosted.org"),
        ("proxy.golang", ".org"),
        ("registry.npm", "js.org"),
        ("deb.", "debian.org"),
    ];
    let foreign: Vec<String> = halves.iter().map(|(one, other)| format!("{one}{other}")).collect();
    // Machine-written, and a registry's name is part of its format.
    let skipped = ["Cargo.lock"];
    let mut found = Vec::new();
    for path in tracked_files().iter().filter(|path| !skipped.contains(&path.as_str())) {
        // A tracked file may be deleted but not yet committed, or hold no text.
        let Ok(text) = fs::read_to_string(root().join(path)) else { continue };
        for (number, line) in text.lines().enumerate() {
            found.extend(foreign.iter().filter(|f| names(line, f)).map(|f| format!("  {path}:{}: {f}", number + 1)));
        }
    }
    assert!(found.is_empty(), "these belong to one machine:\n{}", found.join("\n"));
}

/// A folder of that name deeper in a path is anybody's; at the root it is one machine's.
fn names(line: &str, foreign: &str) -> bool {
    let goes_on = |c: char| c.is_alphanumeric() || c == '.' || c == '-' || c == '}';
    line.match_indices(foreign).any(|(at, _)| !line[..at].ends_with(goes_on))
}

mod the_rules_can_fail {
    use super::*;

    #[test]
    fn a_group_is_written_out() {
        let code = "use crate::{a::b, c::{self, D as E}, f};\nlet x = crate::g::h(1);";
        assert_eq!(
            paths_from(code, "crate"),
            ["crate::a::b", "crate::c::self", "crate::c::D", "crate::f", "crate::g::h"]
        );
    }

    #[test]
    fn a_word_that_only_ends_like_a_crate_is_another() {
        assert_eq!(paths_from("my_crate::x; acrate::y; other::crate::z", "crate"), Vec::<String>::new());
    }

    #[test]
    fn pure_code_may_not_name_a_shell_room_or_a_runtime() {
        let code = "//! x\nuse crate::{store::Store, deliver::Channel};\nuse std::{fs, time::{Duration, Instant}};\n";
        let sources = [
            Source::new("src/render/mod.rs", code),
            Source::new("src/deliver/receiver.rs", "pub enum Channel {}"),
            Source::new("src/store/mod.rs", "pub struct Store;"),
        ];
        let seen: Vec<String> = check_purity(&sources[0], &sources).into_iter().map(|f| f.seen).collect();
        assert_eq!(seen, ["crate::store::Store", "std::fs", "std::time::Instant"]);
    }

    #[test]
    fn an_item_of_a_shell_file_stays_shell_when_it_is_handed_on() {
        let sources = [
            Source::new("src/outbox/entry.rs", "pub struct Entry {}"),
            Source::new("src/outbox/queue.rs", "pub struct Queue {}"),
        ];
        assert!(leads_to_pure("crate::outbox::Entry", &sources));
        assert!(!leads_to_pure("crate::outbox::Queue", &sources));
        assert!(!leads_to_pure("crate::outbox::queue::Queue", &sources));
    }

    #[test]
    fn tests_and_comments_are_not_judged() {
        let text = "//! x\n// std::fs::read\nfn f() {}\n\n#[cfg(test)]\nmod tests {\n    use std::fs;\n}\n";
        let source = Source::new("src/event/mod.rs", text);
        assert_eq!(check_purity(&source, &[]), []);
        assert_eq!(before_tests(text).lines().count(), 4);
    }

    #[test]
    fn a_second_writer_of_the_outbox_is_found() {
        let sql = "let q = \"INSERT INTO\n    outbox (id) VALUES (1)\"; let r = \"UPDATE outbox_recipients\";";
        let seen = check_outbox_writer(&Source::new("src/store/event.rs", sql));
        assert_eq!(seen.len(), 1, "{seen:?}");
        assert_eq!(check_outbox_writer(&Source::new("src/outbox/queue.rs", sql)), []);
    }

    #[test]
    fn a_bucket_a_long_file_a_clock_and_anyhow_are_found() {
        assert_eq!(check_bucket(&Source::new("src/ingest/util.rs", "")).len(), 1);
        assert_eq!(check_length(&Source::new("src/event/mod.rs", &"x\n".repeat(LINES_MAX + 1))).len(), 1);
        assert_eq!(check_clock(&Source::new("src/event/mod.rs", "chrono::Utc::now()")).len(), 1);
        assert_eq!(check_anyhow(&Source::new("src/store/mod.rs", "use anyhow::Result;")).len(), 1);
        assert_eq!(check_anyhow(&Source::new("src/cli/emit.rs", "use anyhow::Result;")).len(), 0);
    }
}
