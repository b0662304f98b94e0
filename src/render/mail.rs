//! Subject and text part of a mail: one line, and 72 columns. Headers and MIME are `deliver`'s.

use super::words;

const SUBJECT_MAX: usize = 120;
const COLUMNS: usize = 72;

/// One line of at most 120 characters. A number in brackets that ends it stays when the rest is cut.
pub(super) fn subject(rendered: &str) -> String {
    let line = words::one_line(rendered);
    if line.chars().count() <= SUBJECT_MAX {
        return line;
    }
    let (body, tail) = match line.rfind(" [#").filter(|at| line.ends_with(']') && line.len() - at < 16) {
        Some(at) => line.split_at(at),
        None => (line.as_str(), ""),
    };
    let room = SUBJECT_MAX - 1 - tail.chars().count();
    let kept: String = body.chars().take(room).collect();
    format!("{}…{tail}", kept.trim_end())
}

/// Breaks lines at blanks so that they have at most 72 columns, and joins runs of empty lines. Lines that quote a sample
/// (`>`) and words that are longer, such as addresses, stay whole: they are there to be copied.
pub(super) fn wrap(rendered: &str) -> String {
    let (mut out, mut empty) = (String::new(), 2);
    for line in rendered.lines().map(str::trim_end) {
        empty = if line.is_empty() { empty + 1 } else { 0 };
        if empty <= 2 {
            wrap_line(line, &mut out);
        }
    }
    format!("{}\n", out.trim_end().trim_start_matches('\n'))
}

fn wrap_line(line: &str, out: &mut String) {
    let body = line.trim_start();
    if line.chars().count() <= COLUMNS || body.starts_with('>') {
        out.push_str(line);
        out.push('\n');
        return;
    }
    let indent = " ".repeat((line.len() - body.len() + marker(body)).min(20));
    let mut column = 0;
    for word in line.split(' ') {
        let width = word.chars().count();
        if column > indent.len() && column + 1 + width > COLUMNS {
            out.truncate(out.trim_end_matches(' ').len());
            out.push('\n');
            out.push_str(&indent);
            column = indent.len();
        } else if column > 0 || word.is_empty() {
            out.push(' ');
            column += 1;
        }
        out.push_str(word);
        column += width;
    }
    out.push('\n');
}

/// Columns that `1. `, `- ` or `[NEW] ` takes at the start of a line; what follows hangs below it.
fn marker(body: &str) -> usize {
    match body.split_once(' ') {
        Some(("-" | "·", _)) => 2,
        Some((number, _)) if number.ends_with('.') && number.trim_end_matches('.').parse::<u32>().is_ok() => {
            number.len() + 1
        }
        Some(_) | None => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_subject_is_one_line_of_120_characters_and_keeps_its_number() {
        assert_eq!(subject("a\r\nBcc: b\n"), "a Bcc: b");
        let long = subject(&format!("{}: failed [#212]", "ü".repeat(300)));
        assert_eq!(long.chars().count(), 120);
        assert!(long.ends_with("ü… [#212]"), "{long}");
    }

    #[test]
    fn text_has_72_columns_and_hanging_indents() {
        let out = wrap(&format!("1. {}\n", "word ".repeat(30)));
        assert!(out.lines().all(|l| l.chars().count() <= 72), "{out}");
        assert!(out.lines().skip(1).all(|l| l.starts_with("   word")), "{out}");
    }

    #[test]
    fn addresses_and_samples_stay_whole() {
        let address = format!("https://example.com/{}", "x".repeat(90));
        assert_eq!(wrap(&address), format!("{address}\n"));
        let sample = format!("> {}", "word ".repeat(30).trim_end());
        assert_eq!(wrap(&sample), format!("{sample}\n"));
    }

    #[test]
    fn at_most_two_empty_lines_follow_each_other() {
        assert_eq!(wrap("\n\na\n\n\n\n\nb\n\n"), "a\n\n\nb\n");
    }
}
