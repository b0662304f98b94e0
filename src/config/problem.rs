//! What is wrong with a config: where, what, and what may have been meant. How it prints.
//! Finding problems is the work of the other files of this room.

use regex::Regex;
use std::fmt;
use std::sync::LazyLock;

/// One thing that is wrong, or that is worth a warning, at one place of one file.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Problem {
    /// File as it was named, such as `matins.toml` or `workflows/extra.toml`.
    pub file: String,
    /// Line, 1-based; 0 when the whole file is meant.
    pub line: usize,
    /// Column in characters, 1-based; 0 when the whole file is meant.
    pub column: usize,
    /// What is wrong and what to write instead.
    pub message: String,
    /// The value as written, before `${NAME}` is filled in; none when it may be a secret.
    pub value: Option<String>,
    /// A name that is spelled much the same.
    pub near: Option<String>,
    pub(super) snippet: Option<Snippet>,
}

/// The line of a problem and the part of it that is meant.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Snippet {
    text: String,
    indent: usize,
    width: usize,
}

impl Problem {
    /// A problem of a whole file.
    pub(super) fn of_file(file: impl Into<String>, message: impl Into<String>) -> Self {
        let (file, message) = (file.into(), message.into());
        Self { file, line: 0, column: 0, message, value: None, near: None, snippet: None }
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.line {
            0 => write!(f, "{}: {}", self.file, self.message)?,
            line => write!(f, "{}:{line}:{}: {}", self.file, self.column, self.message)?,
        }
        if let Some(near) = &self.near {
            write!(f, "; did you mean {near:?}?")?;
        }
        if let Some(snippet) = &self.snippet {
            let gutter = self.line.to_string().len().max(4);
            write!(f, "\n{:>gutter$} | {}", self.line, snippet.text)?;
            write!(
                f,
                "\n{:>gutter$} | {:indent$}{:^>width$}",
                "",
                "",
                "",
                indent = snippet.indent,
                width = snippet.width
            )?;
        }
        Ok(())
    }
}

/// Everything that is wrong with a config.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub struct ConfigError {
    /// In the order of files and lines; never empty.
    pub problems: Vec<Problem>,
}

impl fmt::Display for ConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for problem in &self.problems {
            writeln!(f, "{problem}")?;
        }
        match self.problems.len() {
            1 => f.write_str("1 problem in the config"),
            n => write!(f, "{n} problems in the config"),
        }
    }
}

/// Longest part of a line that is shown, in characters.
const SHOWN_MAX: usize = 160;

impl Snippet {
    /// The line with secrets hidden; `start` and `width` in characters.
    pub(super) fn new(line: &str, start: usize, width: usize) -> Self {
        let (text, start, width) = hide_secrets(line, start, width);
        let text: String = text.chars().take(SHOWN_MAX).map(|c| if c.is_control() { ' ' } else { c }).collect();
        let shown = text.chars().count();
        let indent = start.min(shown);
        Self { text, indent, width: width.clamp(1, (shown - indent).max(1)) }
    }
}

/// A value that may be a credential written straight into the file, after a key that sounds like one. `${NAME}` is shown.
static SECRET: LazyLock<Option<Regex>> = LazyLock::new(|| {
    let keys = r"(?:[a-z_]*(?:pass|pas+w|token|secret|nkey|hash|webhook|ping_url|hook_url|api_key)[a-z_]*)";
    Regex::new(&format!(r#"(?i)\b{keys}"?\s*=\s*["']+([^"'$][^"']*)"#)).ok()
});

fn hide_secrets(line: &str, start: usize, width: usize) -> (String, usize, usize) {
    let (mut text, mut from, mut until) = (String::new(), start, start + width);
    let mut rest = 0;
    let found = SECRET.iter().flat_map(|r| r.captures_iter(line)).filter_map(|c| c.get(1));
    for secret in found {
        text.push_str(&line[rest..secret.start()]);
        text.push('…');
        rest = secret.end();
        let (at, end) = (line[..secret.start()].chars().count(), line[..secret.end()].chars().count());
        let shorter = end - at - 1;
        from = moved(from, start, end, at, shorter);
        until = moved(until, start + width, end, at, shorter);
    }
    text.push_str(&line[rest..]);
    (text, from, until.saturating_sub(from).max(1))
}

/// Where a column lands once the `at..end` of the line is `shorter` by so many characters.
fn moved(now: usize, original: usize, end: usize, at: usize, shorter: usize) -> usize {
    match original {
        column if column >= end => now.saturating_sub(shorter),
        column if column > at => now.saturating_sub(column - at),
        _ => now,
    }
}

/// The nearest of `known` to a misspelled name, if any is near enough to be meant.
pub(super) fn nearest<'a>(name: &str, known: impl IntoIterator<Item = &'a str>) -> Option<String> {
    let name = name.to_lowercase();
    let scored = known.into_iter().filter_map(|candidate| {
        let lower = candidate.to_lowercase();
        let distance = strsim::damerau_levenshtein(&name, &lower);
        let likeness = strsim::jaro_winkler(&name, &lower);
        let longest = name.chars().count().max(lower.chars().count());
        (distance <= (longest / 3).max(1) && longest > 1 || likeness >= 0.88).then_some((distance, likeness, candidate))
    });
    let best = scored.min_by(|a, b| a.0.cmp(&b.0).then(b.1.total_cmp(&a.1)));
    best.map(|(_, _, candidate)| candidate.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn misspelled_names_find_the_meant_one() {
        let known = ["domain", "oncall", "oncall-mail", "daily", "office", "slack", "password", "webhook_url"];
        for (wrong, meant) in [
            ("domian", "domain"),
            ("oncal", "oncall"),
            ("oncall-mal", "oncall-mail"),
            ("dayly", "daily"),
            ("offce", "office"),
            ("slak", "slack"),
            ("pasword", "password"),
            ("webhook", "webhook_url"),
            ("Domain", "domain"),
        ] {
            assert_eq!(nearest(wrong, known).as_deref(), Some(meant), "{wrong}");
        }
        assert_eq!(nearest("kitten", known), None);
    }

    #[test]
    fn a_literal_secret_is_not_shown_and_the_caret_moves_along() {
        let line = r#"smtp = { password = "hunter2", tls = "nonne" }"#;
        let at = line.find("\"nonne").unwrap();
        let snippet = Snippet::new(line, at, 7);
        assert_eq!(snippet.text, r#"smtp = { password = "…", tls = "nonne" }"#);
        assert_eq!(&snippet.text.chars().skip(snippet.indent).take(snippet.width).collect::<String>(), "\"nonne\"");
        assert_eq!(Snippet::new(r#"pasword = "x1""#, 0, 7).text, r#"pasword = "…""#);
        assert_eq!(Snippet::new(r#"password = "${PW}""#, 0, 8).text, r#"password = "${PW}""#);
    }

    #[test]
    fn a_problem_prints_place_near_name_and_caret() {
        let problem = Problem {
            file: "matins.toml".into(),
            line: 12,
            column: 3,
            message: "unknown key \"tsl\"".into(),
            value: None,
            near: Some("tls".into()),
            snippet: Some(Snippet::new("  tsl = \"none\"", 2, 3)),
        };
        insta::assert_snapshot!(problem.to_string(), @r#"
        matins.toml:12:3: unknown key "tsl"; did you mean "tls"?
          12 |   tsl = "none"
             |   ^^^
        "#);
    }
}
