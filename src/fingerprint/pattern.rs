//! The pattern of a message: its words stay, what varies from event to event becomes `<*>`. One pass, no regular
//! expressions: the result is a promise (see `fingerprint`), and every event takes this way.

use crate::ingest::redact::marker_at;

/// What stands for anything that varies.
const VARIABLE: &str = "<*>";

/// The pattern ends after the token that reaches this many bytes. It is counted on what is written, not on what is
/// read, so that long and short ids end at the same word.
const PATTERN_MAX: usize = 1000;

/// Longest quoted value, in bytes.
const QUOTED_MAX: usize = 4096;

/// Letters that may follow a number without making it an id.
const UNITS: [&str; 30] = [
    "ms", "us", "ns", "s", "m", "h", "d", "min", "sec", "hrs", "b", "k", "kb", "mb", "gb", "tb", "kib", "mib", "gib",
    "xx", "x", "st", "nd", "rd", "th", "px", "bit", "bytes", "am", "pm",
];

const MONTHS: [&str; 12] = ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"];

const DAYS: [&str; 7] = ["mon", "tue", "wed", "thu", "fri", "sat", "sun"];

/// Replaces ids, numbers, UUIDs, addresses, dates, hex, quoted values and redaction marks by `<*>`, lists of them by
/// one, and white space by one space.
pub fn parametrise(message: &str) -> String {
    let mut scan =
        Scan { text: message, at: 0, out: String::with_capacity(message.len().min(PATTERN_MAX + 64)), in_url: false };
    while scan.at < message.len() && scan.out.len() < PATTERN_MAX {
        scan.step();
    }
    scan.out.truncate(scan.out.trim_end().len());
    scan.out
}

struct Scan<'a> {
    text: &'a str,
    at: usize,
    out: String,
    in_url: bool,
}

impl Scan<'_> {
    fn bytes(&self) -> &[u8] {
        self.text.as_bytes()
    }

    fn byte(&self, at: usize) -> Option<u8> {
        self.bytes().get(at).copied()
    }

    fn is_digit(&self, at: usize) -> bool {
        self.byte(at).is_some_and(|b| b.is_ascii_digit())
    }

    fn is_alnum(&self, at: usize) -> bool {
        self.byte(at).is_some_and(|b| b.is_ascii_alphanumeric())
    }

    /// Whether a word could begin here. Letters outside ASCII belong to the word before them.
    fn follows_word(&self) -> bool {
        self.at.checked_sub(1).is_some_and(|n| self.is_alnum(n) || !self.bytes()[n].is_ascii())
    }

    fn step(&mut self) {
        match self.bytes()[self.at] {
            b if b.is_ascii_alphanumeric() => self.word(),
            b if b.is_ascii_whitespace() => {
                self.in_url = false;
                if !self.out.is_empty() && !self.out.ends_with(' ') {
                    self.out.push(' ');
                }
                self.at += 1;
            }
            b'"' | b'\'' | b'`' => self.quote(),
            b'?' | b'#' if self.in_url => self.query(),
            b'-' | b'+' if self.is_digit(self.at + 1) && self.is_sign() => self.at += 1,
            b':' if self.text[self.at..].starts_with("::") => {
                if !self.variable(self.ipv6()) {
                    self.copy("::".len());
                }
            }
            b':' if self.text[self.at..].starts_with("://") => {
                self.in_url = true;
                self.copy("://".len());
            }
            b if b.is_ascii() => self.copy(1),
            _ => self.beyond_ascii(),
        }
    }

    fn copy(&mut self, length: usize) {
        self.out.push_str(&self.text[self.at..self.at + length]);
        self.at += length;
    }

    fn beyond_ascii(&mut self) {
        let rest = &self.text[self.at..];
        if let Some(length) = marker_at(rest) {
            self.variable(Some(length));
            return;
        }
        let first = rest.chars().next().unwrap_or(' ');
        let closing = match first {
            '“' => Some('”'),
            '‘' => Some('’'),
            '«' => Some('»'),
            _ => None,
        };
        let width = first.len_utf8();
        match closing.and_then(|c| head(&rest[width..], QUOTED_MAX).find(c).map(|n| (c, n))) {
            Some((closing, length)) => self.quoted(width, length, closing.len_utf8()),
            None => self.copy(width),
        }
    }

    /// Writes one `<*>` for the next `length` bytes. What parted it from a `<*>` just before goes, so that lists of any
    /// length, dates with their times and compound ids are one.
    fn variable(&mut self, length: Option<usize>) -> bool {
        let Some(length) = length else { return false };
        self.at += length;
        let bare = self.out.trim_end_matches([' ', ',', '-', '_', ':', '/', '.']);
        let is_list = bare.ends_with(VARIABLE) && self.out.len() - bare.len() <= 2;
        if is_list {
            self.out.truncate(bare.len());
        } else {
            self.out.push_str(VARIABLE);
        }
        true
    }

    /// A minus or plus that belongs to the number behind it.
    fn is_sign(&self) -> bool {
        let before = self.at.checked_sub(1).and_then(|n| self.byte(n));
        before.is_none_or(|b| b.is_ascii_whitespace() || b"([{=:,<>$".contains(&b))
    }

    fn quote(&mut self) {
        let sign = self.bytes()[self.at];
        let length = if self.follows_word() { None } else { self.quoted_len(sign) };
        match length {
            Some(length) => self.quoted(1, length, 1),
            None => self.copy(1),
        }
    }

    fn quoted(&mut self, open: usize, length: usize, close: usize) {
        self.copy(open);
        self.out.push_str(VARIABLE);
        self.at += length;
        self.copy(close);
    }

    /// Bytes up to the closing quote on the same line; an apostrophe inside a word closes nothing.
    fn quoted_len(&self, sign: u8) -> Option<usize> {
        let from = self.at + 1;
        let inside = self.bytes()[from..].iter().take(QUOTED_MAX).take_while(|b| **b != b'\n');
        let closes = |n: usize, b: u8| b == sign && (sign != b'\'' || !self.is_alnum(from + n + 1));
        inside.enumerate().find(|(n, b)| closes(*n, **b)).map(|(n, _)| n)
    }

    /// Query and fragment of a URL.
    fn query(&mut self) {
        self.copy(1);
        let rest = &self.text[self.at..];
        let end = rest.find(|c: char| c.is_whitespace() || matches!(c, '"' | '\'' | '<' | '>' | '`' | ')'));
        self.in_url = false;
        self.out.push_str(VARIABLE);
        self.at += end.unwrap_or(rest.len());
    }

    fn word(&mut self) {
        if !self.follows_word() {
            let found = self.uuid().or_else(|| self.email()).or_else(|| self.ipv6()).or_else(|| self.hex_literal());
            if self.variable(found) {
                return;
            }
        }
        let length = self.bytes()[self.at..].iter().take_while(|b| b.is_ascii_alphanumeric()).count();
        let word = &self.text[self.at..self.at + length];
        let digits = word.bytes().take_while(u8::is_ascii_digit).count();
        if !word.bytes().any(|b| b.is_ascii_digit()) {
            self.plain(length);
        } else if digits > 0 && (digits == length || self.is_number(digits)) {
            self.variable(Some(self.number()));
        } else if length >= 6 && word.bytes().all(|b| b.is_ascii_hexdigit()) {
            self.variable(Some(length));
        } else if digits > 0 && UNITS.contains(&word[digits..].to_ascii_lowercase().as_str()) {
            self.variable(Some(digits));
            self.copy(length - digits);
        } else {
            self.mixed(length);
        }
    }

    /// `order1041` keeps its word; anything more mixed is an id.
    fn mixed(&mut self, length: usize) {
        let word = &self.text[self.at..self.at + length];
        let letters = word.bytes().take_while(u8::is_ascii_alphabetic).count();
        if letters > 0 && word[letters..].bytes().all(|b| b.is_ascii_digit()) {
            self.copy(letters);
            self.out.push_str(VARIABLE);
            self.at += length - letters;
        } else {
            self.variable(Some(length));
        }
    }

    /// Letters only: a word, unless a date or an id goes on with it.
    fn plain(&mut self, length: usize) {
        let word = &self.text[self.at..self.at + length];
        let bare = self.out.trim_end_matches([' ', '-', '_', '/', ',']);
        let after_variable = bare.ends_with(VARIABLE);
        let parted = self.out.len() > bare.len();
        let next = self.text[self.at + length..].trim_start_matches([' ', '-', '/', ',', '.']);
        let before_digit = next.bytes().next().is_some_and(|b| b.is_ascii_digit());
        let is_name = word.bytes().next().is_some_and(|b| b.is_ascii_uppercase());
        let is_month = is_name && begins_with(&MONTHS, word) && (before_digit || (after_variable && parted));
        let is_day = is_name && begins_with(&DAYS, word) && (before_digit || begins_with(&MONTHS, first_word(next)));
        let is_half_day = after_variable && matches!(word, "AM" | "PM" | "am" | "pm");
        // `Z5jdHi6B-myT`: letters of both cases behind an id are its end.
        let is_tail = after_variable && self.out.ends_with(['-', '_']) && is_mixed_case(word);
        if is_month || is_day || is_half_day || is_tail {
            self.variable(Some(length));
        } else {
            self.copy(length);
        }
    }

    /// Whether `2026-11-30T08…` or `1.5ms` begins here: digits that go on behind a sign although a letter follows.
    fn is_number(&self, digits: usize) -> bool {
        let next = self.at + digits;
        self.byte(next).is_some_and(|b| b"-.,:/".contains(&b)) && self.is_digit(next + 1)
    }

    /// Length of a number, version, date, time or IPv4 address with port.
    fn number(&self) -> usize {
        let mut at = self.at;
        let (mut has_dash, mut has_colon) = (false, false);
        loop {
            while self.is_digit(at) {
                at += 1;
            }
            match self.byte(at) {
                Some(sign @ (b'-' | b'.' | b',' | b':' | b'/')) if self.is_digit(at + 1) => {
                    has_dash |= sign == b'-';
                    has_colon |= sign == b':';
                }
                Some(b'T' | b't') if has_dash && self.is_digit(at + 1) => {}
                Some(b'+') if has_colon && self.is_digit(at + 1) => {}
                Some(b'Z' | b'z') if has_colon && !self.is_alnum(at + 1) => return at + 1 - self.at,
                _ => return at - self.at,
            }
            at += 1;
        }
    }

    fn uuid(&self) -> Option<usize> {
        let text = self.bytes().get(self.at..self.at + 36)?;
        let fits = text.iter().enumerate().all(|(n, b)| match n {
            8 | 13 | 18 | 23 => *b == b'-',
            _ => b.is_ascii_hexdigit(),
        });
        (fits && !self.is_alnum(self.at + 36)).then_some(36)
    }

    fn hex_literal(&self) -> Option<usize> {
        let rest = self.text[self.at..].strip_prefix("0x").or_else(|| self.text[self.at..].strip_prefix("0X"))?;
        let digits = rest.bytes().take_while(u8::is_ascii_hexdigit).count();
        (digits > 0).then_some(digits + 2)
    }

    fn email(&self) -> Option<usize> {
        let rest = &self.bytes()[self.at..];
        let name = rest.iter().take(64).take_while(|b| b.is_ascii_alphanumeric() || b"._%+-".contains(b)).count();
        if rest.get(name) != Some(&b'@') {
            return None;
        }
        let host = rest[name + 1..].iter().take(255).take_while(|b| b.is_ascii_alphanumeric() || b".-".contains(b));
        let host = &rest[name + 1..name + 1 + host.count()];
        let host = host.strip_suffix(b".").unwrap_or(host);
        (host.contains(&b'.')).then_some(name + 1 + host.len())
    }

    /// IPv6, or a hardware address.
    fn ipv6(&self) -> Option<usize> {
        let rest = &self.bytes()[self.at..];
        let first = rest.iter().take(5).take_while(|b| b.is_ascii_hexdigit()).count();
        if first > 4 || rest.get(first) != Some(&b':') {
            return None;
        }
        let length = rest.iter().take(45).take_while(|b| b.is_ascii_hexdigit() || matches!(b, b':' | b'.')).count();
        let text = self.text[self.at..self.at + length].trim_end_matches(['.', ':']);
        let colons = text.matches(':').count();
        let is_address = (colons >= 2 && text.contains("::")) || colons == 7 || colons == 5;
        let is_complete = !self.is_alnum(self.at + text.len());
        let fits = is_complete
            && text.bytes().any(|b| b.is_ascii_digit())
            && text.split(':').all(|g| g.len() <= 4 || g.contains('.'));
        (is_address && fits).then_some(text.len())
    }
}

/// As much of a text as has at most so many bytes.
fn head(text: &str, bytes: usize) -> &str {
    &text[..text.floor_char_boundary(bytes)]
}

fn first_word(text: &str) -> &str {
    &text[..text.find(|c: char| !c.is_ascii_alphabetic()).unwrap_or(text.len())]
}

/// Whether a word is one of these names, cut to three letters or in full.
fn begins_with(names: &[&str], word: &str) -> bool {
    const FULL: [&str; 19] = [
        "january",
        "february",
        "march",
        "april",
        "may",
        "june",
        "july",
        "august",
        "september",
        "october",
        "november",
        "december",
        "monday",
        "tuesday",
        "wednesday",
        "thursday",
        "friday",
        "saturday",
        "sunday",
    ];
    let lower = word.to_ascii_lowercase();
    let is_whole = lower.len() == 3 || lower == "sept" || FULL.contains(&lower.as_str());
    is_whole && lower.get(..3).is_some_and(|three| names.contains(&three))
}

/// Small and large letters, other than a capital at the start.
fn is_mixed_case(word: &str) -> bool {
    word.bytes().skip(1).any(|b| b.is_ascii_uppercase()) && word.bytes().any(|b| b.is_ascii_lowercase())
}
