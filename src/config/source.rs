//! The files that a config was read from, and places in them. Problems are filed here, so that every file of this room
//! can report one without stopping.

use super::problem::{Problem, Snippet, hide_addresses, nearest};
use std::cell::RefCell;
use std::path::PathBuf;

/// A file of the config.
#[derive(Clone, Debug)]
pub(super) struct Source {
    /// As problems name it.
    pub(super) name: String,
    /// Where it is.
    pub(super) path: PathBuf,
    /// What it holds.
    pub(super) text: String,
}

/// A part of a file, in bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Place {
    pub(super) file: usize,
    pub(super) start: usize,
    pub(super) end: usize,
}

/// The files and what was found in them so far.
#[derive(Debug, Default)]
pub(super) struct Report {
    pub(super) sources: Vec<Source>,
    /// Files of another form that the config names, such as holidays.
    named: RefCell<Vec<Source>>,
    problems: RefCell<Vec<Problem>>,
    warnings: RefCell<Vec<Problem>>,
}

impl Report {
    /// A file of another form was read for the config.
    pub(super) fn note_named(&self, source: Source) {
        self.named.borrow_mut().push(source);
    }

    /// Every file that the config is made of.
    pub(super) fn all_sources(&self) -> Vec<Source> {
        self.sources.iter().chain(self.named.borrow().iter()).cloned().collect()
    }

    /// Files an error.
    pub(super) fn error(&self, at: Place, message: impl Into<String>) {
        self.problems.borrow_mut().push(self.problem(at, message.into()));
    }

    /// Files an error about a value that is safe to show.
    pub(super) fn value_error(&self, at: Place, value: &str, message: impl Into<String>) {
        let problem = Problem { value: Some(hide_addresses(value)), ..self.problem(at, message.into()) };
        self.problems.borrow_mut().push(problem);
    }

    /// Files an error about a name that is none of `known`.
    pub(super) fn unknown<'k>(
        &self,
        at: Place,
        name: &str,
        message: impl Into<String>,
        known: impl IntoIterator<Item = &'k str>,
    ) {
        let near = nearest(name, known);
        let problem = Problem { value: Some(hide_addresses(name)), near, ..self.problem(at, message.into()) };
        self.problems.borrow_mut().push(problem);
    }

    /// Files an error that has no place.
    pub(super) fn file_error(&self, problem: Problem) {
        self.problems.borrow_mut().push(problem);
    }

    /// Files a warning.
    pub(super) fn warn(&self, at: Place, message: impl Into<String>) {
        self.warnings.borrow_mut().push(self.problem(at, message.into()));
    }

    /// How many errors were filed so far.
    pub(super) fn error_count(&self) -> usize {
        self.problems.borrow().len()
    }

    /// `file:line:column` of a place.
    pub(super) fn whereabouts(&self, at: Place) -> String {
        let problem = self.problem(at, String::new());
        format!("{}:{}:{}", problem.file, problem.line, problem.column)
    }

    /// Everything found, in the order of files and lines: errors, then warnings.
    pub(super) fn into_found(self) -> (Vec<Problem>, Vec<Problem>) {
        let order: Vec<String> = self.sources.iter().map(|s| s.name.clone()).collect();
        let sorted = |mut found: Vec<Problem>| {
            found.sort_by_key(|p| (order.iter().position(|f| *f == p.file), p.line, p.column));
            found.dedup();
            found
        };
        (sorted(self.problems.into_inner()), sorted(self.warnings.into_inner()))
    }

    fn problem(&self, at: Place, message: String) -> Problem {
        let message = hide_addresses(&message);
        let Some(source) = self.sources.get(at.file) else {
            return Problem::of_file("config", message);
        };
        let (line, start, text) = line_of(&source.text, at.start);
        let column = text.get(..at.start.saturating_sub(start)).map_or(0, |t| t.chars().count());
        let end = at.end.min(start + text.len()).max(at.start);
        let width = source.text.get(at.start..end).map_or(1, |t| t.chars().count());
        let snippet = Some(Snippet::new(text, column, width)).filter(|_| !text.trim().is_empty());
        Problem { file: source.name.clone(), line, column: column + 1, message, value: None, near: None, snippet }
    }
}

/// Number (1-based), first byte and text of the line that holds byte `at`; the last line when `at` is past the end.
fn line_of(text: &str, at: usize) -> (usize, usize, &str) {
    let before = text.get(..at).unwrap_or(text);
    let start = before.rfind('\n').map_or(0, |n| n + 1);
    let line = text[start..].split('\n').next().unwrap_or_default();
    (before.matches('\n').count() + 1, start, line.trim_end_matches('\r'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_count_characters() {
        let report = Report {
            sources: vec![Source {
                name: "a.toml".into(),
                path: "a.toml".into(),
                text: "x = 1\r\nü = \"é\"\r\n".into(),
            }],
            ..Report::default()
        };
        assert_eq!(report.whereabouts(Place { file: 0, start: 12, end: 15 }), "a.toml:2:5");
        assert_eq!(report.whereabouts(Place { file: 0, start: 99, end: 99 }), "a.toml:3:1");
    }
}
