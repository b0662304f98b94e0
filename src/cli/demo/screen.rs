//! What the demo shows: headings, steps, bars that grow, boxes with messages. Colours only where they are wanted, and lines
//! that are written over only on a terminal.

use super::mrkdwn::{Line, Look, Piece, width};
use std::io::{self, Write};

/// Columns that are used at most.
pub const COLUMNS: usize = 78;
const BAR: usize = 16;
const INDENT: &str = "  ";

/// How output is made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Style {
    /// Colours, weights and links.
    pub colour: bool,
    /// A person watches: bars grow in place, and steps wait a moment.
    pub live: bool,
}

/// Where the demo is shown.
pub struct Screen<'a> {
    out: &'a mut (dyn Write + Send),
    style: Style,
    /// A line that the next one replaces stands there.
    is_open: bool,
}

impl<'a> Screen<'a> {
    /// Shows on `out`.
    pub fn new(out: &'a mut (dyn Write + Send), style: Style) -> Self {
        Self { out, style, is_open: false }
    }

    /// Whether a person watches.
    pub fn is_live(&self) -> bool {
        self.style.live
    }

    /// A part of the demo begins.
    pub fn heading(&mut self, title: &str, aside: &str) -> io::Result<()> {
        self.line(&[])?;
        self.line(&[Piece::bold(title), Piece::plain("  "), Piece::dim(aside)])
    }

    /// Something has started or is done.
    pub fn done(&mut self, what: &str, aside: &str) -> io::Result<()> {
        self.line(&[Piece::bold("✓ "), Piece::plain(format!("{what}  ")), Piece::dim(aside)])
    }

    /// A line of text.
    pub fn say(&mut self, text: &str) -> io::Result<()> {
        self.line(&[Piece::plain(text)])
    }

    /// A name and its value, in columns.
    pub fn pair(&mut self, name: &str, value: &str) -> io::Result<()> {
        self.line(&[Piece::dim(format!("{name:<18}")), Piece::plain(value)])
    }

    /// What is waited for; gone as soon as something comes, and not written where nobody watches.
    pub fn wait(&mut self, what: &str) -> io::Result<()> {
        if self.style.live {
            self.line(&[Piece::dim(format!("… {what}"))])?;
            self.is_open = true;
        }
        Ok(())
    }

    /// A bar that grows in place; only its last state is written where nobody watches.
    pub fn bar(&mut self, title: &str, done: usize, all: usize) -> io::Result<()> {
        if done < all && !self.style.live {
            return Ok(());
        }
        let filled = (BAR * done).checked_div(all).unwrap_or(BAR);
        let bar = format!("{}{}", "█".repeat(filled), "░".repeat(BAR - filled));
        let count = format!(" {:>5} {}", grouped(done as u64), if all == 1 { "event" } else { "events" });
        let line = [Piece::plain(format!("{title:<47}")), Piece::dim(bar), Piece::plain(count)];
        self.line(&line)?;
        self.is_open = done < all;
        Ok(())
    }

    /// A message in a box, as it stands in its channel.
    pub fn message(&mut self, title: &str, aside: &str, lines: &[Line]) -> io::Result<()> {
        let inner = COLUMNS - 2 * INDENT.len() - 4;
        let rule = "─".repeat((inner - 2).saturating_sub(title.chars().count() + aside.chars().count() + 2));
        self.line(&[
            Piece::dim("╭─ "),
            Piece::bold(title),
            Piece::dim(format!(" {rule} ")),
            Piece::dim(aside),
            Piece::dim(" ─╮"),
        ])?;
        for line in lines {
            let mut row = vec![Piece::dim("│ ")];
            row.extend(line.iter().cloned());
            row.push(Piece::plain(" ".repeat(inner.saturating_sub(width(line)))));
            row.push(Piece::dim(" │"));
            self.line(&row)?;
        }
        self.line(&[Piece::dim(format!("╰{}╯", "─".repeat(inner + 2)))])
    }

    /// Width of a message inside its box.
    pub fn message_width() -> usize {
        COLUMNS - 2 * INDENT.len() - 4
    }

    fn line(&mut self, pieces: &[Piece]) -> io::Result<()> {
        let start = if std::mem::take(&mut self.is_open) { "\x1b[1A\r\x1b[2K" } else { "" };
        let text: String = pieces.iter().map(|piece| paint(piece, self.style.colour)).collect();
        writeln!(self.out, "{start}{}", format!("{INDENT}{text}").trim_end_matches(' '))?;
        self.out.flush()
    }
}

/// Control characters of data have no way to the terminal; a link can be clicked where colours are wanted.
fn paint(piece: &Piece, colour: bool) -> String {
    let text: String = piece.text.chars().filter(|c| !c.is_control()).collect();
    if !colour || text.trim().is_empty() {
        return text;
    }
    let Look { bold, italic, dim, code, link } = &piece.look;
    let on = [(*bold, "1"), (*dim, "2"), (*italic, "3"), (link.is_some(), "4"), (*code, "36")];
    let codes: Vec<&str> = on.iter().filter(|(on, _)| *on).map(|(_, code)| *code).collect();
    let text = if codes.is_empty() { text } else { format!("\x1b[{}m{text}\x1b[0m", codes.join(";")) };
    match link {
        Some(url) if !url.chars().any(char::is_control) => format!("\x1b]8;;{url}\x1b\\{text}\x1b]8;;\x1b\\"),
        Some(_) | None => text,
    }
}

/// Digits in groups: `2,118`.
pub fn grouped(number: u64) -> String {
    crate::render::words::count(number)
}

#[cfg(test)]
mod tests {
    use super::super::mrkdwn;
    use super::*;

    fn shown(style: Style, draw: impl FnOnce(&mut Screen<'_>) -> io::Result<()>) -> String {
        let mut out = Vec::new();
        draw(&mut Screen::new(&mut out, style)).unwrap();
        String::from_utf8(out).unwrap()
    }

    const COLOUR: Style = Style { colour: true, live: false };
    const LIVE: Style = Style { colour: false, live: true };

    #[test]
    fn mrkdwn_is_painted_with_colour_and_readable_without() {
        let line: Line = mrkdwn::pieces("*14 orders* `503` <https://x.example|Runbook>");
        let plain: String = line.iter().map(|p| paint(p, false)).collect();
        assert_eq!(plain, "14 orders 503 Runbook");
        let painted: String = line.iter().map(|p| paint(p, true)).collect();
        assert_eq!(
            painted,
            "\x1b[1m14 orders\x1b[0m \x1b[36m503\x1b[0m \x1b]8;;https://x.example\x1b\\\x1b[4mRunbook\x1b[0m\x1b]8;;\x1b\\"
        );
    }

    #[test]
    fn data_can_not_move_the_cursor_or_break_out_of_a_link() {
        for colour in [false, true] {
            let look = Look { link: Some("https://x\x1b\\".to_owned()), ..Look::default() };
            let text = paint(&Piece { text: "a\x1b[2Jb".to_owned(), look }, colour);
            assert!(!text.contains("\x1b[2J") && !text.contains("\x1b]8"), "{text:?}");
        }
    }

    #[test]
    fn a_box_has_straight_sides() {
        let lines = mrkdwn::lines("*one* two\n\nthree `four`", Screen::message_width());
        let text = shown(Style::default(), |screen| screen.message("Slack #oncall", "14:03:12", &lines));
        let widths: Vec<usize> = text.lines().map(|line| line.chars().count()).collect();
        assert_eq!(widths, [COLUMNS - 2; 5], "{text}");
        assert!(!text.contains('\x1b'), "{text}");
    }

    #[test]
    fn a_bar_grows_in_place_only_where_somebody_watches() {
        let draw = |screen: &mut Screen<'_>| {
            screen.bar("21:41", 500, 2000)?;
            screen.bar("21:41", 2000, 2000)
        };
        assert_eq!(shown(Style::default(), draw).lines().count(), 1);
        let live = shown(LIVE, draw);
        assert!(live.contains("████░░░") && live.contains("\x1b[1A") && live.trim_end().ends_with("2,000 events"));
        assert!(!shown(COLOUR, draw).contains("\x1b[1A"));
    }
}
