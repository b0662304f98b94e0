//! A config as a tree in which every key and value knows its place: TOML files read, `${NAME}` filled in, files merged.
//! What the keys mean is not known here.

use super::expand::{Lookup, expand};
use super::source::{Place, Report};
use std::ops::Range;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

/// A value and its place.
#[derive(Clone, Debug)]
pub(super) struct Node {
    pub(super) at: Place,
    pub(super) value: Value,
}

/// A TOML value. Numbers keep their digits.
#[derive(Clone, Debug)]
pub(super) enum Value {
    Text(Text),
    Integer(String),
    Float(String),
    Flag(bool),
    Instant(String),
    List(Vec<Node>),
    Table(Table),
}

impl Value {
    /// The TOML word for what it is.
    pub(super) fn noun(&self) -> &'static str {
        match self {
            Self::Text(_) => "a string",
            Self::Integer(_) => "an integer",
            Self::Float(_) => "a float",
            Self::Flag(_) => "a boolean",
            Self::Instant(_) => "a date or time",
            Self::List(_) => "a list",
            Self::Table(_) => "a table",
        }
    }
}

/// A string.
#[derive(Clone, Debug)]
pub(super) struct Text {
    /// As written: what problems may show.
    pub(super) written: String,
    /// With `${NAME}` filled in; none when that failed, which was reported then.
    pub(super) value: Option<String>,
}

impl Text {
    /// Whether the value is not what is written, and so must not be shown.
    pub(super) fn is_expanded(&self) -> bool {
        self.value.as_ref() != Some(&self.written)
    }
}

/// A key and its value.
#[derive(Clone, Debug)]
pub(super) struct Entry {
    pub(super) key: String,
    pub(super) at: Place,
    pub(super) node: Node,
}

/// Keys in the order of the file.
#[derive(Clone, Debug, Default)]
pub(super) struct Table(pub(super) Vec<Entry>);

impl Table {
    /// The value of a key.
    pub(super) fn get(&self, key: &str) -> Option<&Node> {
        self.entry(key).map(|e| &e.node)
    }

    /// A key with its place.
    pub(super) fn entry(&self, key: &str) -> Option<&Entry> {
        self.0.iter().find(|e| e.key == key)
    }
}

impl Node {
    /// The table that it is, if it is one.
    pub(super) fn table(&self) -> Option<&Table> {
        if let Value::Table(table) = &self.value { Some(table) } else { None }
    }

    /// The list that it is, if it is one.
    pub(super) fn list(&self) -> Option<&[Self]> {
        if let Value::List(items) = &self.value { Some(items) } else { None }
    }

    /// The elements of a list; a single value is a list of one.
    pub(super) fn items(&self) -> &[Self] {
        self.list().unwrap_or(std::slice::from_ref(self))
    }

    /// The boolean that it is, if it is one.
    pub(super) fn flag(&self) -> Option<bool> {
        if let Value::Flag(flag) = self.value { Some(flag) } else { None }
    }

    /// The string that it is, if it is one.
    pub(super) fn string(&self) -> Option<&Text> {
        if let Value::Text(text) = &self.value { Some(text) } else { None }
    }

    /// The text of a string, with `${NAME}` filled in.
    pub(super) fn text(&self) -> Option<&str> {
        self.string()?.value.as_deref()
    }

    /// Whether it is a string that could not be filled in, which was reported then.
    pub(super) fn is_unset(&self) -> bool {
        self.string().is_some_and(|t| t.value.is_none())
    }
}

/// Reads one file. Syntax errors are reported, all of them, and give `None`: what could be recovered would mislead.
pub(super) fn parse(file: usize, lookup: Lookup<'_>, report: &Report) -> Option<Table> {
    let text = &report.sources.get(file)?.text;
    let (root, errors) = DeTable::parse_recoverable(text);
    for error in &errors {
        let span = error.span().unwrap_or_default();
        report
            .error(Place { file, start: span.start, end: span.end }, format!("this is not TOML: {}", error.message()));
    }
    let reader = Reader { file, lookup, report };
    errors.is_empty().then(|| reader.table(root.get_ref()))
}

struct Reader<'a> {
    file: usize,
    lookup: Lookup<'a>,
    report: &'a Report,
}

impl Reader<'_> {
    fn place(&self, span: Range<usize>) -> Place {
        Place { file: self.file, start: span.start, end: span.end }
    }

    fn table(&self, table: &DeTable<'_>) -> Table {
        let mut entries: Vec<Entry> = table.iter().map(|(key, value)| self.entry(key, value)).collect();
        entries.sort_by_key(|e| e.at.start);
        Table(entries)
    }

    fn entry(&self, key: &Spanned<std::borrow::Cow<'_, str>>, value: &Spanned<DeValue<'_>>) -> Entry {
        Entry { key: key.get_ref().to_string(), at: self.place(key.span()), node: self.node(value) }
    }

    fn node(&self, value: &Spanned<DeValue<'_>>) -> Node {
        let at = self.place(value.span());
        let value = match value.get_ref() {
            DeValue::String(text) => Value::Text(self.text(at, text)),
            DeValue::Integer(number) => {
                let plain = i128::from_str_radix(number.as_str(), number.radix());
                Value::Integer(plain.map_or_else(|_| number.to_string(), |n| n.to_string()))
            }
            DeValue::Float(number) => Value::Float(number.as_str().to_owned()),
            DeValue::Boolean(flag) => Value::Flag(*flag),
            DeValue::Datetime(instant) => Value::Instant(instant.to_string()),
            DeValue::Array(items) => Value::List(items.iter().map(|item| self.node(item)).collect()),
            DeValue::Table(table) => Value::Table(self.table(table)),
        };
        Node { at, value }
    }

    fn text(&self, at: Place, written: &str) -> Text {
        // What it belongs to is not known here: it may be a secret.
        let value = expand(written, self.lookup).map_err(|e| self.report.error(at, e.to_string()));
        Text { written: written.to_owned(), value: value.ok() }
    }
}

/// Tables whose keys are names, each of which is written in one place only.
const NAMED: [&str; 3] = ["receivers", "calendars", "digests"];

/// Adds `more` to `into`: tables merge, lists append, and what is there twice is an error that names both places.
pub(super) fn merge(into: &mut Table, more: Table, report: &Report) {
    for entry in more.0 {
        let named = NAMED.contains(&entry.key.as_str());
        merge_entry(into, entry, named, true, report);
    }
}

fn merge_entry(into: &mut Table, entry: Entry, named: bool, tables_merge: bool, report: &Report) {
    let Some(there) = into.0.iter_mut().find(|e| e.key == entry.key) else {
        into.0.push(entry);
        return;
    };
    match (&mut there.node.value, entry.node.value) {
        (Value::Table(there), Value::Table(more)) if tables_merge => {
            for inner in more.0 {
                merge_entry(there, inner, false, !named, report);
            }
        }
        (Value::List(there), Value::List(more)) if tables_merge => there.extend(more),
        (_, _) => {
            let first = report.whereabouts(there.at);
            let message = format!("{:?} is already at {first}; it can be given in one file only", entry.key);
            report.value_error(entry.at, &entry.key, message);
        }
    }
}
