//! Holds a tree against the descriptions of `sections`: unknown and missing keys, wrong types, values that can't be read,
//! names that nothing is called by. Whether the parts make sense together is looked at in `sense`.

use super::keys::{Defined, Form, Key, Section};
use super::sections::{CLASSES, DOMAINS, keys_of};
use super::source::{Place, Report};
use super::tree::{Entry, Node, Table, Text, Value};
use super::value;
use crate::calendar::parse_zone;
use crate::matcher::{Glob, MatchKey};
use std::collections::BTreeSet;

/// Checks one config.
pub(super) struct Checker<'a> {
    root: &'a Table,
    report: &'a Report,
    /// Whether every file could be read: else a name may be defined in the one that could not.
    complete: bool,
}

impl<'a> Checker<'a> {
    /// Looks at `root`, the sum of all files.
    pub(super) fn new(root: &'a Table, report: &'a Report, complete: bool) -> Self {
        Self { root, report, complete }
    }

    /// Looks at the whole. Gives the names of the top-level keys in which something is wrong.
    pub(super) fn file(&self, section: &'static Section) -> BTreeSet<String> {
        let mut wrong = BTreeSet::new();
        for entry in &self.root.0 {
            let before = self.report.error_count();
            match section.key(&entry.key) {
                Some(key) => self.value(&entry.node, &key.form, &entry.key),
                None => self.unknown_key(entry, section, None, "the config"),
            }
            if self.report.error_count() > before {
                wrong.insert(entry.key.clone());
            }
        }
        wrong
    }

    /// Reports everything in `table` that does not fit `section`.
    fn section(&self, table: &Table, at: Place, section: &'static Section, name: &str) {
        let kind = table.get("kind").and_then(Node::text).filter(|_| !section.kinds.is_empty());
        let known = kind.is_none_or(|k| section.kind(k).is_some());
        for entry in &table.0 {
            match keys_of(section, kind).find(|k| k.name == entry.key) {
                Some(key) => self.value(&entry.node, &key.form, &inside(name, &entry.key)),
                None if known && kind.is_some() || section.kinds.is_empty() => {
                    self.unknown_key(entry, section, kind, name)
                }
                None => {}
            }
        }
        let required = keys_of(section, kind).filter(|k| k.required);
        for key in required.filter(|k| table.get(k.name).is_none()) {
            self.missing(key, at, name);
        }
    }

    fn missing(&self, key: &Key, at: Place, name: &str) {
        self.report.error(at, format!("{name} lacks {:?}: {}", key.name, key.doc));
    }

    fn unknown_key(&self, entry: &Entry, section: &'static Section, kind: Option<&str>, name: &str) {
        let owner = section.kinds.iter().find(|s| s.key(&entry.key).is_some());
        let message = match (owner, kind) {
            (Some(owner), Some(kind)) => {
                format!("{:?} belongs to kind {:?}; {name} is of kind {kind:?}", entry.key, owner.title)
            }
            _ => format!("unknown key {:?} in {name}", entry.key),
        };
        self.report.unknown(entry.at, &entry.key, message, keys_of(section, kind).map(|k| k.name));
    }

    fn value(&self, node: &Node, form: &'static Form, name: &str) {
        match form {
            Form::Table(section) => self.table(node, section, name),
            Form::FlagOrTable(section) if node.flag().is_none() => self.table(node, section, name),
            Form::FlagOrTable(_) => {}
            Form::Tables(section) => self.tables(node, section, name),
            Form::Named(section) => self.named(node, section, name),
            Form::OneOrList(inner) => self.one_or_list(node, inner, name),
            Form::Map(inner) => self.each(node, name, |e| self.value(&e.node, inner, &inside(name, &e.key))),
            Form::MapOf(defined, inner) => self.each(node, name, |entry| {
                self.defined(entry.at, &entry.key, &entry.key, *defined);
                self.value(&entry.node, inner, &inside(name, &entry.key));
            }),
            Form::Match => self.each(node, name, |entry| self.match_key(entry, name)),
            Form::Hours => self.each(node, name, |e| self.one_or_list(&e.node, &Form::Text, &inside(name, &e.key))),
            Form::Recipients if node.text() == Some("owner") => {}
            Form::Recipients => self.one_or_list(node, &Form::Mailbox, name),
            Form::Flag if node.flag().is_some() => {}
            Form::Count(least, most) => self.count(node, *least, *most, name),
            Form::Decimal(over, under) => self.decimal(node, *over, *under, name),
            Form::Flag
            | Form::Text
            | Form::Secret
            | Form::Word(_)
            | Form::Time
            | Form::Period
            | Form::TimeOrNever
            | Form::Day
            | Form::Instant
            | Form::Url(_)
            | Form::SecretUrl(_)
            | Form::Mailbox
            | Form::Zone
            | Form::Cron
            | Form::Regex
            | Form::Subject { .. }
            | Form::NatsName
            | Form::Socket
            | Form::Path
            | Form::Ref(_)
            | Form::MatchKey { .. } => self.leaf(node, form, name),
        }
    }

    /// A string, or a date or time that TOML writes without quotes.
    fn leaf(&self, node: &Node, form: &'static Form, name: &str) {
        match &node.value {
            Value::Text(text) if !matches!(form, Form::Flag) => self.text(node, text, form, name),
            Value::Instant(text) if matches!(form, Form::Day | Form::Instant) => {
                self.judged(node, text, value::problem(form, text));
            }
            Value::Text(_) | Value::Instant(_) => self.wrong_type(node, form, name),
            Value::Integer(_) | Value::Float(_) | Value::Flag(_) | Value::List(_) | Value::Table(_) => {
                self.wrong_type(node, form, name);
            }
        }
    }

    fn table(&self, node: &Node, section: &'static Section, name: &str) {
        match node.table() {
            Some(table) => self.section(table, node.at, section, name),
            None => self.wrong_type(node, &Form::Match, name),
        }
    }

    fn tables(&self, node: &Node, section: &'static Section, name: &str) {
        let Some(items) = node.list() else {
            return self.wrong_type(node, &Form::Tables(section), name);
        };
        let mut seen: Vec<&Entry> = Vec::new();
        for (n, item) in items.iter().enumerate() {
            let entry = item.table().and_then(|t| t.entry("name"));
            let title = entry.and_then(|e| e.node.string()).map_or_else(
                || format!("{} {}", singular(name), n + 1),
                |given| format!("{} {:?}", singular(name), given.written),
            );
            self.table(item, section, &title);
            let Some(entry) = entry.filter(|e| e.node.text().is_some()) else { continue };
            match seen.iter().find(|s| s.node.text() == entry.node.text()) {
                Some(first) => self.duplicate(entry, first, &title),
                None => seen.push(entry),
            }
        }
    }

    fn duplicate(&self, entry: &Entry, first: &Entry, title: &str) {
        let first = self.report.whereabouts(first.node.at);
        self.report.error(entry.node.at, format!("duplicate name: {title} is already at {first}; names are unique"));
    }

    fn named(&self, node: &Node, section: &'static Section, name: &str) {
        self.each(node, name, |entry| {
            if entry.key.trim().is_empty() {
                self.report.error(entry.at, format!("a name in [{name}] is blank"));
            } else if let Some(problem) = value::name_problem(&entry.key).filter(|_| name != "calendars") {
                // Names of receivers and digests become parts of addresses, subjects and files.
                self.report.value_error(
                    entry.at,
                    &entry.key,
                    format!("{:?} is no name in [{name}]: {problem}", entry.key),
                );
            }
            self.table(&entry.node, section, &format!("[{name}.{}]", entry.key));
        });
    }

    fn each(&self, node: &Node, name: &str, look: impl Fn(&Entry)) {
        match node.table() {
            Some(table) => table.0.iter().for_each(look),
            None => self.wrong_type(node, &Form::Match, name),
        }
    }

    fn one_or_list(&self, node: &Node, inner: &'static Form, name: &str) {
        if node.items().is_empty() {
            self.report.error(node.at, format!("{name} is empty; name at least one, or leave the key out"));
        }
        node.items().iter().for_each(|item| self.value(item, inner, name));
    }

    fn match_key(&self, entry: &Entry, name: &str) {
        if let (Some(labels), true) = (entry.node.table(), entry.key == "label") {
            return labels
                .0
                .iter()
                .for_each(|l| self.globs(&MatchKey::Label(l.key.clone()), &l.node, &inside(name, &l.key)));
        }
        match MatchKey::parse(&entry.key) {
            Some(key) => self.globs(&key, &entry.node, &inside(name, &entry.key)),
            None => {
                let message = format!(
                    "unknown key {:?} in {name}: it takes workflow, domain, class, step, downstream and label.<key>",
                    entry.key
                );
                self.report.unknown(
                    entry.at,
                    &entry.key,
                    message,
                    ["workflow", "domain", "class", "step", "downstream", "label"],
                );
            }
        }
    }

    fn globs(&self, key: &MatchKey, node: &Node, name: &str) {
        self.one_or_list(node, &Form::Text, name);
        let words: &[&str] = match key {
            MatchKey::Domain => DOMAINS,
            MatchKey::Class => CLASSES,
            MatchKey::Workflow | MatchKey::Step | MatchKey::Downstream | MatchKey::Label(_) => return,
        };
        for item in node.items() {
            let (Some(text), Some(shown)) = (item.text(), item.string().map(|s| &s.written)) else { continue };
            let glob = Glob::new(text);
            if !words.iter().any(|w| glob.matches(w)) {
                self.report.unknown(
                    item.at,
                    shown,
                    format!("{shown:?} fits no {}", key_word(key)),
                    words.iter().copied(),
                );
            }
        }
    }

    fn count(&self, node: &Node, least: u64, most: u64, name: &str) {
        match value::integer(node) {
            Some(number) if (i128::from(least)..=i128::from(most)).contains(&number) => {}
            Some(_) => {
                let shown = value::shown(node);
                self.report.value_error(node.at, &shown, format!("{name} = {shown} must be from {least} to {most}"));
            }
            None if node.is_unset() => {}
            None => self.wrong_type(node, &Form::Count(least, most), name),
        }
    }

    fn decimal(&self, node: &Node, over: f64, under: f64, name: &str) {
        let number = value::decimal(node).and_then(|text| text.parse::<f64>().ok());
        match number {
            Some(number) if number > over && number < under => {}
            Some(_) => {
                let bound = if under < f64::MAX { format!(" and under {under}") } else { String::new() };
                let shown = value::shown(node);
                self.report.value_error(node.at, &shown, format!("{name} = {shown} must be over {over}{bound}"));
            }
            None if node.is_unset() => {}
            None => self.wrong_type(node, &Form::Decimal(over, under), name),
        }
    }

    fn text(&self, node: &Node, text: &Text, form: &'static Form, name: &str) {
        let Some(value) = &text.value else { return };
        if value.trim().is_empty() {
            self.report.error(node.at, format!("{name} is blank"));
        } else if let Form::Ref(defined) = form {
            self.defined(node.at, value, &text.written, *defined);
        } else if let Form::Word(words) = form {
            self.word(node, text, words, name);
        } else if matches!(form, Form::Zone) {
            self.zone(node, text, value, name);
        } else if matches!(form, Form::Secret | Form::SecretUrl(_) | Form::Url(_)) {
            value::problem(form, value).into_iter().for_each(|p| self.report.error(node.at, format!("{name}: {p}")));
        } else {
            self.judged(node, &text.written, value::problem(form, value).map(|p| hush(p, text)));
        }
    }

    /// Reports what is wrong with a value, if anything is.
    fn judged(&self, node: &Node, shown: &str, problem: Option<String>) {
        if let Some(problem) = problem {
            self.report.value_error(node.at, shown, format!("{shown:?}: {problem}"));
        }
    }

    fn word(&self, node: &Node, text: &Text, words: &[&str], name: &str) {
        if text.value.as_deref().is_some_and(|v| words.contains(&v)) {
            return;
        }
        let message = format!("{name} = {:?}: it takes {}", text.written, words.join(", "));
        self.report.unknown(node.at, &text.written, message, words.iter().copied());
    }

    fn zone(&self, node: &Node, text: &Text, value: &str, name: &str) {
        if let Err(error) = parse_zone(value) {
            let message = format!("{name} = {:?} is no IANA time zone, such as Europe/Berlin or UTC", text.written);
            self.report.unknown(node.at, &text.written, message, error.near.as_deref());
        }
    }

    /// Reports a name that nothing is called by; `shown` is the name as written.
    fn defined(&self, at: Place, name: &str, shown: &str, defined: Defined) {
        let known: Vec<&str> = names(self.root, defined.section()).collect();
        if self.complete && !known.contains(&name) {
            let has =
                if known.is_empty() { "none is defined".to_owned() } else { format!("defined: {}", known.join(", ")) };
            let message = format!("there is no {} {shown:?} ({has})", defined.noun());
            self.report.unknown(at, shown, message, known.iter().copied());
        }
    }

    fn wrong_type(&self, node: &Node, form: &Form, name: &str) {
        // A value in a place where no text is wanted may be anything, a credential too.
        let may_be_secret =
            matches!(form, Form::Secret | Form::SecretUrl(_) | Form::Url(_)) || value::noun(form).contains("table");
        let (shown, noun) = (if may_be_secret { String::new() } else { value::shown(node) }, node.value.noun());
        let is = if shown.is_empty() { noun.to_owned() } else { format!("{noun} ({shown})") };
        let hint = match (&node.value, form) {
            (Value::Integer(n), Form::Time | Form::Period | Form::TimeOrNever) => {
                format!("; put quotes around it and a unit behind it, such as \"{n}s\" or \"{n}m\"")
            }
            (Value::Text(text), Form::Count(..) | Form::Decimal(..) | Form::Flag) if !text.is_expanded() => {
                "; leave the quotes out".to_owned()
            }
            (_, _) => String::new(),
        };
        self.report.error(node.at, format!("{name} is {is}, but takes {}{hint}", value::noun(form)));
    }
}

/// The names defined in a section of named tables.
pub(super) fn names<'a>(root: &'a Table, section: &str) -> impl Iterator<Item = &'a str> + use<'a> {
    root.get(section).and_then(Node::table).into_iter().flat_map(|t| t.0.iter().map(|e| e.key.as_str()))
}

/// A problem's words may quote the value; what came from the environment is not to be quoted.
fn hush(problem: String, text: &Text) -> String {
    match &text.value {
        Some(value) if text.is_expanded() && !value.is_empty() && problem.contains(value.as_str()) => {
            "it can't be read once the environment is filled in".to_owned()
        }
        _ => problem,
    }
}

fn inside(name: &str, key: &str) -> String {
    match name {
        _ if name.starts_with('[') || name.contains('"') => format!("{key:?} of {name}"),
        _ => format!("{name}.{key}"),
    }
}

fn singular(name: &str) -> &str {
    let last = name.rsplit('.').next().unwrap_or(name);
    match last.split(' ').next().unwrap_or(last).trim_matches('"') {
        "workflows" => "workflow",
        "routes" => "route",
        "symptoms" => "symptom",
        "silences" => "silence",
        "streams" => "watched stream",
        "sql" => "watched table",
        "users" => "user",
        "tokens" => "token",
        "tiers" => "tier",
        "inhibit" => "inhibition",
        "classify" => "classify rule",
        "escalate" => "escalation",
        _ => last,
    }
}

fn key_word(key: &MatchKey) -> &str {
    match key {
        MatchKey::Workflow => "workflow",
        MatchKey::Domain => "domain",
        MatchKey::Class => "class",
        MatchKey::Step => "step",
        MatchKey::Downstream => "downstream",
        MatchKey::Label(name) => name,
    }
}
