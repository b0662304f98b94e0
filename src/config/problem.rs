//! What is wrong with a config: where, what, and what may have been meant. How it prints.
//! Finding problems is the work of the other files of this room.

use regex::Regex;
use std::fmt;
use std::ops::Range;
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

/// A key and the `=` behind it.
static KEY: LazyLock<Option<Regex>> = LazyLock::new(|| Regex::new(r#"([A-Za-z0-9_-]+)["']?\s*=\s*"#).ok());
/// Names of keys whose values may be credentials; those of addresses end with `url`.
static SECRET: LazyLock<Option<Regex>> =
    LazyLock::new(|| Regex::new("(?i)pass|pas+w|pwd|token|secret|nkey|creds|hash|webhook|api_?key|urls?$").ok());
/// What stands before the `@` of an address, well written or not, its query, and the path of one that may be a webhook.
static ADDRESS: LazyLock<[Option<Regex>; 3]> = LazyLock::new(|| {
    let user = r#":/+\s?([^"'\s]+)@"#;
    let query = r#":/[^"'\s?]*\?([^"'\s]+)"#;
    let path = r#"(?i)https?:/+[^"'\s/?]+/([^"'\s]+)"#;
    [user, query, path].map(|pattern| Regex::new(pattern).ok())
});
/// Nothing but names of the environment, which is no secret.
static NAMES: LazyLock<Option<Regex>> = LazyLock::new(|| Regex::new(r"^(?:\$\{[A-Za-z_][A-Za-z0-9_]*\})+$").ok());

/// A text without user, password, path and query of the addresses in it.
pub(super) fn hide_addresses(text: &str) -> String {
    let mut found: Vec<Range<usize>> = Vec::new();
    for pattern in ADDRESS.iter().flatten() {
        found.extend(pattern.captures_iter(text).filter_map(|c| c.get(1)).map(|m| m.range()));
    }
    let found = apart(found);
    let (mut out, mut rest) = (String::with_capacity(text.len()), 0);
    for secret in found {
        out.push_str(&text[rest..secret.start]);
        out.push('…');
        rest = secret.end;
    }
    out + &text[rest..]
}

/// Ranges in order, overlapping ones as one.
fn apart(mut ranges: Vec<Range<usize>>) -> Vec<Range<usize>> {
    ranges.sort_by_key(|r| (r.start, r.end));
    let mut apart: Vec<Range<usize>> = Vec::new();
    for range in ranges {
        match apart.last_mut() {
            Some(last) if range.start <= last.end => last.end = last.end.max(range.end),
            _ => apart.push(range),
        }
    }
    apart
}

/// What of a line must not be shown.
fn secrets(line: &str) -> Vec<Range<usize>> {
    let mut found: Vec<Range<usize>> = Vec::new();
    for key in KEY.iter().flat_map(|r| r.captures_iter(line)) {
        let (Some(whole), Some(name)) = (key.get(0), key.get(1)) else { continue };
        if SECRET.as_ref().is_none_or(|r| r.is_match(name.as_str())) {
            found.extend(values(line, whole.end()));
        }
    }
    for pattern in ADDRESS.iter().flatten() {
        let places = pattern.captures_iter(line).filter_map(|c| c.get(1)).map(|m| m.range());
        found.extend(places.filter(|place| !is_of_environment(&line[place.clone()])));
    }
    apart(found)
}

/// The insides of the value that begins at `from`: of a string, of each string of a list, or what stands without quotes.
fn values(line: &str, from: usize) -> Vec<Range<usize>> {
    let rest = &line[from..];
    let list = rest.starts_with('[') && !rest[1..].trim_start().starts_with('{');
    let mut found = Vec::new();
    let mut at = from + usize::from(list);
    loop {
        at += line[at..].len() - line[at..].trim_start_matches([' ', '\t', ',']).len();
        let value = value_at(line, at);
        if value.is_empty() && !line[at..].starts_with(['"', '\'']) {
            return found;
        }
        at = value.end + line[value.end..].chars().take_while(|c| matches!(c, '"' | '\'')).count();
        if !value.is_empty() && !is_of_environment(&line[value.clone()]) {
            found.push(value);
        }
        if !list {
            return found;
        }
    }
}

fn value_at(line: &str, at: usize) -> Range<usize> {
    let text = &line[at..];
    let Some(quote) = text.chars().next().filter(|c| matches!(c, '"' | '\'')) else {
        let is_end = |c: char| c.is_whitespace() || matches!(c, ',' | '#' | '}' | ']' | '{' | '[');
        return at..at + text.find(is_end).unwrap_or(text.len());
    };
    let start = at + text.len() - text.trim_start_matches(quote).len();
    let (mut escaped, inside) = (false, &line[start..]);
    if text.starts_with("\"\"") && !text.starts_with("\"\"\"") || text.starts_with("''") && !text.starts_with("'''") {
        return at + 1..at + 1;
    }
    for (n, c) in inside.char_indices() {
        match c {
            _ if escaped => escaped = false,
            '\\' if quote == '"' => escaped = true,
            _ if c == quote => return start..start + n,
            _ => {}
        }
    }
    start..line.len()
}

fn is_of_environment(value: &str) -> bool {
    NAMES.as_ref().is_some_and(|names| names.is_match(value))
}

fn hide_secrets(line: &str, start: usize, width: usize) -> (String, usize, usize) {
    let (mut text, mut from, mut until) = (String::new(), start, start + width);
    let mut rest = 0;
    for secret in secrets(line) {
        text.push_str(&line[rest..secret.start]);
        text.push('…');
        rest = secret.end;
        let (at, end) = (line[..secret.start].chars().count(), line[..secret.end].chars().count());
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
    fn no_value_of_a_secret_key_and_no_sign_in_of_an_address_is_shown() {
        for (line, shown) in [
            (r#"url = "htp://a:S3@h/p?key=S3""#, r#"url = "…""#),
            (r#"url = ["nats://u:S3@h", "${X}", 'S3'] # two"#, r#"url = ["…", "${X}", '…'] # two"#),
            (r#"password = "${X_S3""#, r#"password = "…""#),
            (r#"hash = "$argon2id$S3""#, r#"hash = "…""#),
            (r#"password = "S3"#, r#"password = "…"#),
            (r#"token = "a\"S3", role = "read""#, r#"token = "…", role = "read""#),
            ("password = 12345", "password = …"),
            (r#"ping_url = '''S3'''"#, r#"ping_url = '''…'''"#),
            (r#"password = """#, r#"password = """#),
            (r#"tokens = [{ name = "ci", token = "S3" }]"#, r#"tokens = [{ name = "ci", token = "…" }]"#),
            (r#"  "nats:/ user:S3@h","#, r#"  "nats:/ …@h","#),
            (r#"page = ["https://h/x?S3"]"#, r#"page = ["https://h/…"]"#),
            (r#"from = "Matins <m@example.com>""#, r#"from = "Matins <m@example.com>""#),
        ] {
            assert_eq!(Snippet::new(line, 0, 1).text, shown);
        }
        assert_eq!(hide_addresses("no https://a:S3@h/x?k=S3 here"), "no https://…@h/… here");
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
