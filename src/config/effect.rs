//! What this version reads and checks but does not act on yet: the one list of it. It only shrinks.

use super::source::Report;
use super::tree::{Entry, Table, Value};

/// Paths of keys without effect; `*` is any name, or any element of a list.
pub(super) const NO_EFFECT: &[&str] = &[
    "inhibit",
    "watchdog",
    "watch.streams",
    "watch.sql",
    "advisories",
    "web.auth.users",
    "web.auth.trusted_proxy_header",
    "classify.*.workflow",
    "max_redrives",
];

/// Warns of each key that has no effect yet, at its place.
pub(super) fn warn(root: &Table, report: &Report) {
    for path in NO_EFFECT {
        let steps: Vec<&str> = path.split('.').collect();
        for entry in find(root, &steps) {
            report.warn(entry.at, format!("{:?} has no effect yet ({path})", entry.key));
        }
    }
}

fn find<'a>(table: &'a Table, steps: &[&str]) -> Vec<&'a Entry> {
    let Some((first, rest)) = steps.split_first() else { return Vec::new() };
    let fitting = table.0.iter().filter(|e| *first == "*" || e.key == *first);
    fitting.flat_map(|entry| if rest.is_empty() { vec![entry] } else { within(entry, rest) }).collect()
}

fn within<'a>(entry: &'a Entry, steps: &[&str]) -> Vec<&'a Entry> {
    match &entry.node.value {
        Value::Table(table) => find(table, steps),
        Value::List(items) => {
            let inner = if steps.first() == Some(&"*") { &steps[1..] } else { steps };
            items.iter().filter_map(|i| i.table()).flat_map(|t| find(t, inner)).collect()
        }
        Value::Text(_) | Value::Integer(_) | Value::Float(_) | Value::Flag(_) | Value::Instant(_) => Vec::new(),
    }
}
