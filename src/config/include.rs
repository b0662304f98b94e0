//! Reads `matins.toml` and the files that it includes, and merges them: an included file counts as if its text stood at
//! the top of the file that includes it.

use super::expand::{Lookup, from_environment};
use super::keys::Form;
use super::problem::Problem;
use super::source::{Place, Report, Source};
use super::tree::{self, Node, Table};
use crate::matcher::Glob;
use std::path::{Component, Path, PathBuf};

/// The sum of all files.
pub(super) struct Read {
    pub(super) root: Table,
    pub(super) report: Report,
    /// Whether every file could be read.
    pub(super) complete: bool,
}

/// Reads the file at `path` and all that it includes.
pub(super) fn read(path: &Path, env: &dyn Fn(&str) -> Option<String>) -> Read {
    let lookup = |name: &str| from_environment(name, env);
    let mut files = Files { report: Report::default(), complete: true, base: folder(path), open: Vec::new() };
    let root = files.add(path, Place::default(), &lookup).unwrap_or_default();
    Read { root, report: files.report, complete: files.complete }
}

struct Files {
    report: Report,
    complete: bool,
    base: PathBuf,
    /// Files that are being read, outermost first: one of them must not include itself.
    open: Vec<PathBuf>,
}

impl Files {
    fn add(&mut self, path: &Path, from: Place, lookup: Lookup<'_>) -> Option<Table> {
        let file = self.report.sources.len();
        let name = self.name(path);
        let text = match std::fs::read(path).map(String::from_utf8) {
            Ok(Ok(text)) => text,
            Ok(Err(_)) => return self.unreadable(name, "it is not UTF-8"),
            Err(error) => return self.unreadable(name, &error.to_string()),
        };
        let text = text.strip_prefix('\u{feff}').map(str::to_owned).unwrap_or(text);
        let identity = std::fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
        if self.open.contains(&identity) {
            self.report.error(from, format!("{name} includes itself"));
            return None;
        }
        self.report.sources.push(Source { name, path: path.to_owned(), text });
        let Some(own) = tree::parse(file, lookup, &self.report) else {
            self.complete = false;
            return None;
        };
        self.open.push(identity);
        let mut sum = self.included(&own, &folder(path), lookup);
        self.open.pop();
        tree::merge(&mut sum, Table(own.0.into_iter().filter(|e| e.key != "include").collect()), &self.report);
        Some(sum)
    }

    fn included(&mut self, own: &Table, folder: &Path, lookup: Lookup<'_>) -> Table {
        let mut sum = Table::default();
        let Some(include) = own.get("include") else { return sum };
        for pattern in include.items() {
            let Some(text) = pattern.text().filter(|t| !t.trim().is_empty()) else {
                self.bad_pattern(pattern);
                continue;
            };
            for path in self.matching(pattern, folder, text) {
                if let Some(more) = self.add(&path, pattern.at, lookup) {
                    tree::merge(&mut sum, more, &self.report);
                }
            }
        }
        sum
    }

    fn bad_pattern(&mut self, pattern: &Node) {
        self.complete = false;
        if !pattern.is_unset() {
            self.report.error(pattern.at, format!("include takes {}", super::value::noun(&Form::Path)));
        }
    }

    /// The files that a pattern stands for, by name. One without `*` and `?` must be there.
    fn matching(&mut self, pattern: &Node, folder: &Path, text: &str) -> Vec<PathBuf> {
        let found = glob(folder, text);
        if found.is_empty() && Glob::new(text).is_literal() {
            self.complete = false;
            self.report.value_error(pattern.at, text, format!("include: there is no file {text:?}"));
        } else if found.is_empty() {
            self.report.warn(pattern.at, format!("include: no file fits {text:?}"));
        }
        found
    }

    fn unreadable(&mut self, name: String, why: &str) -> Option<Table> {
        self.complete = false;
        self.report.file_error(Problem::of_file(name, format!("can't be read: {why}")));
        None
    }

    /// A file as problems name it: the main one by its file name, others from its folder on.
    fn name(&self, path: &Path) -> String {
        let short = path.strip_prefix(&self.base).unwrap_or(path);
        short.display().to_string()
    }
}

fn folder(path: &Path) -> PathBuf {
    path.parent().unwrap_or(Path::new("")).to_owned()
}

/// Files under `folder` that fit a pattern with `*` and `?` within names, in the order of their paths.
fn glob(folder: &Path, pattern: &str) -> Vec<PathBuf> {
    let mut found = vec![if Path::new(pattern).is_absolute() { PathBuf::from("/") } else { folder.to_owned() }];
    for part in Path::new(pattern).components() {
        found = match part {
            Component::Normal(name) => {
                let name = Glob::new(name.to_string_lossy());
                found.iter().flat_map(|dir| step(dir, &name)).collect()
            }
            Component::ParentDir => found.into_iter().map(|dir| dir.join("..")).collect(),
            Component::CurDir | Component::RootDir | Component::Prefix(_) => found,
        };
    }
    found.retain(|path| path.is_file());
    found.sort();
    found
}

fn step(dir: &Path, name: &Glob) -> Vec<PathBuf> {
    if name.is_literal() {
        return Some(dir.join(name.as_str())).filter(|p| p.exists()).into_iter().collect();
    }
    let at = if dir.as_os_str().is_empty() { Path::new(".") } else { dir };
    let entries = std::fs::read_dir(at).into_iter().flatten().flatten();
    let names = entries.map(|e| e.file_name()).filter(|n| !n.to_string_lossy().starts_with('.'));
    names.filter(|n| name.matches(&n.to_string_lossy())).map(|n| dir.join(n)).collect()
}
