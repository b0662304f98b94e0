//! Reads values out of a tree that was checked, each by the form and with the default that `sections` gives it.
//! A value that did not pass is simply absent here: it was reported before.

use super::keys::{Form, Section};
use super::sections::keys_of;
use super::source::Place;
use super::tree::{Node, Table};
use super::value;
use crate::matcher::{Glob, MatchKey, Matcher};
use secrecy::SecretString;
use std::collections::BTreeMap;
use std::str::FromStr;
use std::time::Duration;

static EMPTY: Table = Table(Vec::new());

/// A table with the description of its keys.
#[derive(Clone, Copy, Debug)]
pub(super) struct Cursor<'a> {
    pub(super) table: &'a Table,
    pub(super) at: Place,
    section: &'static Section,
}

impl<'a> Cursor<'a> {
    /// A table and what describes it.
    pub(super) fn new(table: &'a Table, at: Place, section: &'static Section) -> Self {
        Self { table, at, section }
    }

    /// The value of a key, if it is given.
    pub(super) fn node(&self, key: &str) -> Option<&'a Node> {
        self.table.get(key)
    }

    /// Where a key is, else where its table is.
    pub(super) fn place(&self, key: &str) -> Place {
        self.table.entry(key).map_or(self.at, |e| e.at)
    }

    /// A string that fits its form, else the default.
    pub(super) fn text(&self, key: &str) -> Option<&'a str> {
        let form = self.form(key)?;
        match self.node(key) {
            Some(node) => node.text().filter(|t| !t.trim().is_empty() && value::problem(form, t).is_none()),
            None => self.default(key),
        }
    }

    /// The same, owned.
    pub(super) fn string(&self, key: &str) -> Option<String> {
        self.text(key).map(str::to_owned)
    }

    /// A credential.
    pub(super) fn secret(&self, key: &str) -> Option<SecretString> {
        self.text(key).map(SecretString::from)
    }

    /// A string of a type that reads itself.
    pub(super) fn parsed<T: FromStr>(&self, key: &str) -> Option<T> {
        self.text(key)?.parse().ok()
    }

    /// A time, else the default.
    pub(super) fn time(&self, key: &str) -> Option<Duration> {
        value::time(self.text(key)?)
    }

    /// A whole number, else the default.
    pub(super) fn count<T: TryFrom<i128> + FromStr>(&self, key: &str) -> Option<T> {
        match self.node(key) {
            Some(node) => value::integer(node).and_then(|n| T::try_from(n).ok()),
            None => self.default(key)?.parse().ok(),
        }
    }

    /// A number as decimal text, else the default.
    pub(super) fn decimal(&self, key: &str) -> Option<String> {
        match self.node(key) {
            Some(node) => value::decimal(node),
            None => self.default(key).map(str::to_owned),
        }
    }

    /// A boolean, else the default, else false.
    pub(super) fn flag(&self, key: &str) -> bool {
        self.node(key).map_or_else(|| self.default(key) == Some("true"), |node| node.flag() == Some(true))
    }

    /// One string or several, else the default, in which commas stand between.
    pub(super) fn texts(&self, key: &str) -> Vec<String> {
        match self.node(key) {
            Some(node) => node.items().iter().filter_map(Node::text).map(str::to_owned).collect(),
            None => self.default(key).into_iter().flat_map(|d| d.split(", ")).map(str::to_owned).collect(),
        }
    }

    /// The table of a key, an empty one when it is not given.
    pub(super) fn inside(&self, key: &str) -> Self {
        let node = self.node(key);
        let section = if let Some(Form::Table(section) | Form::FlagOrTable(section)) = self.form(key) {
            section
        } else {
            self.section
        };
        Self { table: node.and_then(Node::table).unwrap_or(&EMPTY), at: node.map_or(self.at, |n| n.at), section }
    }

    /// The table of a key, if it is given.
    pub(super) fn given(&self, key: &str) -> Option<Self> {
        self.node(key).map(|_| self.inside(key))
    }

    /// The tables of `[[key]]`.
    pub(super) fn tables(&self, key: &str) -> Vec<Self> {
        let Some(Form::Tables(section)) = self.form(key) else { return Vec::new() };
        let items = self.node(key).and_then(Node::list).unwrap_or_default();
        items.iter().filter_map(|n| n.table().map(|t| Self::new(t, n.at, section))).collect()
    }

    /// The tables of `[key.<name>]` by name.
    pub(super) fn named(&self, key: &str) -> Vec<(&'a str, Self)> {
        let Some(Form::Named(section)) = self.form(key) else { return Vec::new() };
        let entries = self.node(key).and_then(Node::table).unwrap_or(&EMPTY);
        let named = entries.0.iter();
        named.filter_map(|e| e.node.table().map(|t| (e.key.as_str(), Self::new(t, e.node.at, section)))).collect()
    }

    /// A table of one's own keys and texts.
    pub(super) fn map(&self, key: &str) -> BTreeMap<String, String> {
        let entries = self.node(key).and_then(Node::table).unwrap_or(&EMPTY);
        entries.0.iter().filter_map(|e| Some((e.key.clone(), e.node.text()?.to_owned()))).collect()
    }

    /// A `match` table; `label.<key>` may be dotted or quoted.
    pub(super) fn matcher(&self, key: &str) -> Matcher {
        let mut keys = BTreeMap::new();
        for entry in &self.node(key).and_then(Node::table).unwrap_or(&EMPTY).0 {
            if let (Some(labels), "label") = (entry.node.table(), entry.key.as_str()) {
                keys.extend(labels.0.iter().map(|l| (MatchKey::Label(l.key.clone()), globs(&l.node))));
            } else if let Some(key) = MatchKey::parse(&entry.key) {
                keys.insert(key, globs(&entry.node));
            }
        }
        Matcher::new(keys)
    }

    fn form(&self, key: &str) -> Option<&'static Form> {
        let kind = self.table.get("kind").and_then(Node::text);
        let found = keys_of(self.section, kind).find(|k| k.name == key);
        debug_assert!(found.is_some() || !self.section.kinds.is_empty(), "{} has no key {key}", self.section.title);
        found.map(|k| &k.form)
    }

    fn default(&self, key: &str) -> Option<&'static str> {
        let kind = self.table.get("kind").and_then(Node::text);
        keys_of(self.section, kind).find(|k| k.name == key).and_then(|k| k.default)
    }
}

/// The globs of one string or several.
pub(super) fn globs(node: &Node) -> Vec<Glob> {
    node.items().iter().filter_map(Node::text).map(Glob::new).collect()
}
