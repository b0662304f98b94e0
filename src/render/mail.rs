//! Subject and text part of a mail: one line, and 72 columns. Headers and MIME are `deliver`'s.

use super::words;

const SUBJECT_MAX: usize = 120;
const COLUMNS: usize = 72;
/// Longest word that makes what follows after two blanks hang.
const MARKER_MAX: usize = 8;

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
    let margin = line.len() - body.len();
    let indent = " ".repeat((margin + marker(body)).min(20));
    out.push_str(&line[..margin]);
    let (mut column, mut is_first) = (margin, true);
    for word in glue_units(body) {
        let width = word.chars().count();
        if !is_first && column + 1 + width > COLUMNS {
            out.truncate(out.trim_end_matches(' ').len());
            out.push('\n');
            out.push_str(&indent);
            column = indent.len();
        } else if !is_first {
            out.push(' ');
            column += 1;
        }
        out.push_str(&word);
        column += width;
        is_first = false;
    }
    out.push('\n');
}

/// Words between blanks; a number and its unit are one.
fn glue_units(body: &str) -> Vec<String> {
    let mut words: Vec<String> = Vec::new();
    for word in body.split(' ') {
        let is_unit = matches!(word.trim_end_matches(['.', ',', ';', ':', ')']), "s" | "min" | "h" | "d" | "%");
        match words.last_mut().filter(|last| is_unit && last.ends_with(|c: char| c.is_ascii_digit())) {
            Some(number) => {
                number.push(' ');
                number.push_str(word);
            }
            None => words.push(word.to_owned()),
        }
    }
    words
}

/// Columns that `1. `, `- ` or a short word and two blanks take at the start of a line; what follows hangs below it.
fn marker(body: &str) -> usize {
    if let Some((word, rest)) = body.split_once("  ").filter(|(word, _)| word.len() <= MARKER_MAX) {
        return word.chars().count() + 2 + (rest.len() - rest.trim_start_matches(' ').len());
    }
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
    fn what_follows_two_blanks_hangs_below_itself() {
        let out = wrap(&format!("  44  {}\n", "word ".repeat(30)));
        assert!(out.starts_with("  44  word"), "{out}");
        assert!(out.lines().skip(1).all(|l| l.starts_with("      word")), "{out}");
    }

    #[test]
    fn addresses_and_samples_stay_whole() {
        let address = format!("https://example.com/{}", "x".repeat(90));
        assert_eq!(wrap(&address), format!("{address}\n"));
        let sample = format!("> {}", "word ".repeat(30).trim_end());
        assert_eq!(wrap(&sample), format!("{sample}\n"));
    }

    #[test]
    fn an_indent_stays_as_it_is_and_a_number_keeps_its_unit() {
        let out = wrap(&format!("   {} 9 s. End", "x".repeat(66)));
        assert_eq!(out, format!("   {}\n   9 s. End\n", "x".repeat(66)));
        let address = format!("https://example.com/{}", "x".repeat(90));
        assert_eq!(wrap(&format!("a\n   {address}")), format!("a\n   {address}\n"));
    }

    #[test]
    fn at_most_two_empty_lines_follow_each_other() {
        assert_eq!(wrap("\n\na\n\n\n\n\nb\n\n"), "a\n\n\nb\n");
    }
}
