//! Slack's mrkdwn as a person sees it: text in pieces, each with its look, wrapped to a width. Colours and boxes are
//! `screen`'s.

use std::iter::Peekable;
use std::str::Chars;

/// How a piece of text looks.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Look {
    /// Stands out.
    pub bold: bool,
    /// Leans.
    pub italic: bool,
    /// Steps back.
    pub dim: bool,
    /// As a machine wrote it.
    pub code: bool,
    /// Where it leads.
    pub link: Option<String>,
}

/// A piece of one look.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Piece {
    /// As shown, entities decoded.
    pub text: String,
    /// How.
    pub look: Look,
}

/// A line on the screen.
pub type Line = Vec<Piece>;

impl Piece {
    /// Text without a look of its own.
    pub fn plain(text: impl Into<String>) -> Self {
        Self { text: text.into(), look: Look::default() }
    }

    /// Text that stands out.
    pub fn bold(text: impl Into<String>) -> Self {
        Self { text: text.into(), look: Look { bold: true, ..Look::default() } }
    }

    /// Text that steps back.
    pub fn dim(text: impl Into<String>) -> Self {
        Self { text: text.into(), look: Look { dim: true, ..Look::default() } }
    }
}

/// Signs that a line takes on the screen.
pub fn width(line: &[Piece]) -> usize {
    line.iter().map(|piece| piece.text.chars().count()).sum()
}

/// The lines of a section, each at most `max` signs wide. What stands between fences is not wrapped: it is a table.
pub fn lines(text: &str, max: usize) -> Vec<Line> {
    let mut shown = Vec::new();
    for (index, part) in text.split("```").enumerate() {
        let (part, is_code) = (part.trim_matches('\n'), index % 2 == 1);
        if part.is_empty() {
            continue;
        }
        if is_code {
            let look = Look { code: true, ..Look::default() };
            shown.extend(part.lines().map(|line| cut(&decode(line), max, &look)));
        } else {
            shown.extend(part.lines().flat_map(|line| wrap(&pieces(line), max)));
        }
    }
    shown
}

fn cut(text: &str, max: usize, look: &Look) -> Line {
    vec![Piece { text: text.chars().take(max).collect(), look: look.clone() }]
}

/// One line of mrkdwn in its pieces.
pub fn pieces(text: &str) -> Vec<Piece> {
    let (mut found, mut open, mut look) = (Vec::new(), String::new(), Look::default());
    let mut signs = text.chars().peekable();
    let mut before = ' ';
    while let Some(sign) = signs.next() {
        let mut end = |found: &mut Vec<Piece>, look: &Look| {
            if !open.is_empty() {
                found.push(Piece { text: decode(&std::mem::take(&mut open)), look: look.clone() });
            }
        };
        match sign {
            '`' => {
                end(&mut found, &look);
                let code = until(&mut signs, '`');
                found.push(Piece { text: decode(&code), look: Look { code: true, ..look.clone() } });
            }
            '<' => {
                end(&mut found, &look);
                let inner = until(&mut signs, '>');
                let (url, name) = inner.split_once('|').unwrap_or((&inner, &inner));
                let link = Some(decode(url));
                found.push(Piece { text: decode(name), look: Look { link, ..look.clone() } });
            }
            '*' if look.bold || opens(before, signs.peek()) => {
                end(&mut found, &look);
                look.bold = !look.bold;
            }
            '_' if look.italic || (opens(before, signs.peek()) && closes(&signs)) => {
                end(&mut found, &look);
                look.italic = !look.italic;
            }
            sign => open.push(sign),
        }
        before = sign;
    }
    if !open.is_empty() {
        found.push(Piece { text: decode(&open), look });
    }
    found
}

/// A mark opens a look at the start of a word only: `order-*` and `push_contact` stay as they are.
fn opens(before: char, next: Option<&char>) -> bool {
    !before.is_alphanumeric() && next.is_some_and(|sign| !sign.is_whitespace())
}

fn closes(rest: &Peekable<Chars<'_>>) -> bool {
    rest.clone().any(|sign| sign == '_')
}

fn until(signs: &mut Peekable<Chars<'_>>, end: char) -> String {
    signs.by_ref().take_while(|sign| *sign != end).collect()
}

fn decode(text: &str) -> String {
    text.replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&")
}

/// Breaks at blanks so that no line is wider than `max`; a word that is wider has a line of its own, cut.
pub fn wrap(pieces: &[Piece], max: usize) -> Vec<Line> {
    let (mut done, mut line): (Vec<Line>, Line) = (Vec::new(), Vec::new());
    for word in words(pieces) {
        let blanks = word.first().map_or(0, |p| p.text.chars().take_while(|c| *c == ' ').count());
        if !line.is_empty() && width(&line) + width(&word) > max {
            done.push(std::mem::take(&mut line));
        }
        let starts = line.is_empty() && !done.is_empty();
        for (index, mut piece) in word.into_iter().enumerate() {
            if starts && index == 0 {
                piece.text.drain(..blanks);
            }
            let room = max.saturating_sub(width(&line));
            piece.text = piece.text.chars().take(room).collect();
            push(&mut line, piece);
        }
    }
    done.push(line);
    done
}

/// Adds to a line; what looks like its last piece joins that.
fn push(line: &mut Line, piece: Piece) {
    match line.last_mut() {
        Some(last) if last.look == piece.look => last.text.push_str(&piece.text),
        Some(_) | None => line.push(piece),
    }
}

/// Words with the blanks before them; a word may be of several looks.
fn words(pieces: &[Piece]) -> Vec<Line> {
    let mut words: Vec<Line> = vec![Vec::new()];
    let mut in_word = false;
    for piece in pieces {
        for sign in piece.text.chars() {
            if sign == ' ' && in_word {
                words.push(Vec::new());
            }
            in_word = sign != ' ';
            if let Some(word) = words.last_mut() {
                push(word, Piece { text: sign.to_string(), look: piece.look.clone() });
            }
        }
    }
    words
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn link(text: &str, url: &str) -> Piece {
        Piece { text: text.to_owned(), look: Look { link: Some(url.to_owned()), ..Look::default() } }
    }

    fn code(text: &str) -> Piece {
        Piece { text: text.to_owned(), look: Look { code: true, ..Look::default() } }
    }

    fn texts(lines: &[Line]) -> Vec<String> {
        lines.iter().map(|line| line.iter().map(|p| p.text.as_str()).collect()).collect()
    }

    #[test]
    fn bold_code_and_links_are_told_apart() {
        let shown = pieces("Owner: *Asha Rao* · <https://x.example/a?b=1&amp;c=2|Runbook> · `503 &lt;html&gt;`");
        assert_eq!(
            shown,
            [
                Piece::plain("Owner: "),
                Piece::bold("Asha Rao"),
                Piece::plain(" · "),
                link("Runbook", "https://x.example/a?b=1&c=2"),
                Piece::plain(" · "),
                code("503 <html>"),
            ]
        );
    }

    #[test]
    fn marks_inside_words_and_alone_are_text() {
        for text in ["push_contact in a_b", "order-* and 3 * 4", "5 * 6", "snake_"] {
            assert_eq!(pieces(text), [Piece::plain(text)], "{text}");
        }
    }

    #[test]
    fn marks_inside_code_are_text() {
        assert_eq!(pieces("`a *b* <c`"), [code("a *b* <c")]);
    }

    #[test]
    fn a_bold_link_is_both() {
        let shown = pieces("*<https://x.example|Acknowledge>*");
        assert_eq!(shown.len(), 1);
        assert!(shown[0].look.bold && shown[0].look.link.is_some() && shown[0].text == "Acknowledge");
    }

    #[test]
    fn fences_keep_their_columns_and_prose_is_wrapped() {
        let shown = lines("Most of it fell at ten\n```a   b\n1   2```", 12);
        assert_eq!(texts(&shown), ["Most of it", "fell at ten", "a   b", "1   2"]);
        assert!(shown[2][0].look.code && !shown[0][0].look.code);
    }

    #[test]
    fn a_line_breaks_between_words_of_different_looks() {
        let shown = wrap(&[Piece::plain("since "), Piece::bold("Tue 21:41"), Piece::plain(", final")], 10);
        assert_eq!(texts(&shown), ["since Tue", "21:41,", "final"]);
    }

    proptest! {
        #[test]
        fn no_line_is_wider_than_the_box(text in "\\PC{0,200}", max in 8usize..80) {
            prop_assert!(lines(&text, max).iter().all(|line| width(line) <= max));
        }

        #[test]
        fn words_survive_wrapping(text in "[a-z]{1,7}( [a-z]{1,7}){0,20}", max in 8usize..40) {
            prop_assert_eq!(texts(&lines(&text, max)).join(" "), text);
        }
    }
}
