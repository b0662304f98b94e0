//! Secrets inside text: `user:pass@` of URLs, `name=value` and `"name": "value"` with the name of a secret, headers,
//! bearer and basic tokens. Finds spans; what they are replaced by is not decided here.

use super::key::{KeyNames, Secrecy};
use super::marker_at;
use aho_corasick::AhoCorasick;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD_NO_PAD;
use std::ops::Range;

/// What a text must hold before it is worth a closer look. One cheap pass over every text of every event.
#[derive(Debug)]
pub struct Triggers {
    words: Option<AhoCorasick>,
    always: bool,
}

/// What the cheap pass saw.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Found {
    /// Something that can be a secret by its surroundings.
    pub has_words: bool,
    /// Enough digits for a card number.
    pub has_digits: bool,
}

impl Triggers {
    /// With keys of config every `=` and `:` is worth a look.
    pub fn new(extra: &[String]) -> Self {
        let words = [
            "://",
            "bearer",
            "basic",
            "eyj",
            "pass",
            "pwd",
            "secret",
            "token",
            "cookie",
            "auth",
            "key",
            "cvv",
            "cvc",
            "jwt",
            "sig=",
            "signature=",
            "xapp-",
            "xox",
            "sk_",
            "sk-",
            "rk_",
            "ghp_",
            "gho_",
            "ghu_",
            "ghs_",
            "ghr_",
            "github_pat_",
            "glpat-",
        ];
        Self { words: AhoCorasick::builder().ascii_case_insensitive(true).build(words).ok(), always: !extra.is_empty() }
    }

    /// Looks once.
    pub fn find(&self, text: &str) -> Found {
        // Nothing shorter than `pwd=x` holds a secret.
        if text.len() < 5 {
            return Found { has_words: false, has_digits: false };
        }
        let has_words = self.always || self.words.as_ref().is_none_or(|words| words.is_match(text));
        let has_digits = text.len() >= 13 && text.bytes().filter(u8::is_ascii_digit).count() >= 13;
        Found { has_words, has_digits }
    }
}

/// Adds the spans of all secrets that their surroundings give away. Linear in the text: nothing inside a secret is
/// looked at again, and what is looked ahead for a refusal is bounded.
pub fn find_secrets(text: &str, names: &KeyNames, spans: &mut Vec<Range<usize>>) {
    let mut done = 0;
    for (at, byte) in text.bytes().enumerate() {
        if at < done {
            continue;
        }
        let found = match byte {
            b':' if text[at..].starts_with("://") => url_password(text, at + 3),
            b'=' | b':' => assigned(text, at, names),
            b'b' | b'B' => scheme_token(text, at),
            b'e' => web_token(text, at),
            b'-' => private_key(text, at).or_else(|| option(text, at, names)),
            b'P' => sql_password(text, at),
            b's' | b'r' | b'g' | b'x' => issued_token(text, at),
            _ => None,
        };
        if let Some(span) = found.filter(|span| !span.is_empty()) {
            done = span.end;
            spans.push(span);
        }
    }
}

/// The password of `scheme://user:password@host`, from just behind the slashes. A lone long user is a token.
fn url_password(text: &str, from: usize) -> Option<Range<usize>> {
    let rest = &text[from..];
    let rest = &rest[..rest.find("://").unwrap_or(rest.len())];
    let ends = |c: char| c.is_whitespace() || matches!(c, '"' | '<' | '>' | '`');
    let word = &rest[..rest.find(ends).unwrap_or(rest.len())];
    let authority = &word[..word.find(['/', '?', '#']).unwrap_or(word.len())];
    let user_info = match (authority.rfind('@'), authority.find(':')) {
        (Some(end), _) => &authority[..end],
        // A password with an unescaped `/`, `?` or `#`: not a port, not IPv6, and there is an `@` further on.
        (None, Some(colon)) if !authority[colon + 1..].bytes().all(|b| b.is_ascii_digit() || b == b']') => {
            word.rfind('@').map(|end| &word[..end]).filter(|info| !info.starts_with('['))?
        }
        (None, _) => return None,
    };
    match colon_outside_marks(user_info) {
        Some(colon) => Some(from + colon + 1..from + user_info.len()),
        None => (user_info.len() >= 16 && !user_info.contains(MARK)).then(|| from..from + user_info.len()),
    }
}

/// How a redacted value begins, up to its colon.
const MARK: &str = "‹redacted";

/// The colon between user and password; that of a redacted value is none.
fn colon_outside_marks(user_info: &str) -> Option<usize> {
    user_info.match_indices(':').map(|(at, _)| at).find(|at| !user_info[..*at].ends_with(MARK))
}

/// The value in `name=value`, `"name":"value"`, `Header: value` around the sign at `at`.
fn assigned(text: &str, at: usize, names: &KeyNames) -> Option<Range<usize>> {
    let (name, quoted) = name_before(text, at);
    let is_assignment = text.as_bytes().get(at) == Some(&b'=');
    let secrecy = names.secrecy(name);
    let is_secret = matches!(secrecy, Secrecy::Secret | Secrecy::SecretText);
    if name.is_empty() || !(is_secret || (is_assignment && is_signature_name(name))) {
        return None;
    }
    let lower = name.to_ascii_lowercase();
    let is_authorization = lower.ends_with("authorization") || lower.ends_with("authorisation");
    let is_cookie = lower.ends_with("cookie") && !is_assignment && !quoted;
    if !(is_assignment || quoted || is_authorization || is_cookie) && is_prose(&text[at + 1..]) {
        return None;
    }
    let value = value_after(text, at + 1, is_assignment);
    let is_count = text[value.clone()].bytes().all(|b| b.is_ascii_digit() || matches!(b, b',' | b'.' | b'_'));
    if is_cookie {
        Some(cookies(text, value.start))
    } else if is_authorization {
        Some(credentials(text, value))
    } else if secrecy == Secrecy::SecretText && is_count {
        None
    } else {
        Some(value)
    }
}

/// `sig`, `Signature`, `X-Amz-Signature`: what signs a URL opens it.
fn is_signature_name(name: &str) -> bool {
    let lower = name.to_ascii_lowercase();
    lower == "sig" || lower.ends_with("signature")
}

/// The name that ends just before `at`, and whether it stands in quotes. Quotes may be escaped, as in JSON in JSON.
fn name_before(text: &str, at: usize) -> (&str, bool) {
    let bare = text[..at].trim_end_matches([' ', '\t']);
    let end = bare.trim_end_matches(['"', '\'']).trim_end_matches('\\');
    let is_name = |c: char| c.is_alphanumeric() || matches!(c, '_' | '-' | '.' | '%');
    let start = end.char_indices().rev().take_while(|(_, c)| is_name(*c)).last().map_or(end.len(), |(n, _)| n);
    (&end[start..], end.len() < bare.len())
}

/// The value that begins at `from`: in quotes up to the closing one, else up to a separator.
fn value_after(text: &str, from: usize, is_assignment: bool) -> Range<usize> {
    let skipped = if is_assignment { text[from..].len() } else { text[from..].trim_start_matches([' ', '\t']).len() };
    let mut start = text.len() - skipped;
    let slashes = text[start..].len() - text[start..].trim_start_matches('\\').len();
    if let Some(quote) = text[start + slashes..].chars().next().filter(|c| matches!(c, '"' | '\'')) {
        start += slashes + 1;
        return start..start + quoted_len(&text[start..], quote, slashes);
    }
    if let Some(length) = marker_at(&text[start..]) {
        return start..start + length;
    }
    let stops = |c: char| c.is_whitespace() || matches!(c, '&' | '#' | '"' | '\'' | '<' | '>' | '`' | ';');
    let length = text[start..].find(stops).unwrap_or(skipped);
    start..start + text[start..start + length].trim_end_matches([',', ')', ']', '}', '.']).len()
}

/// Bytes up to the closing quote that has as many backslashes before it as the opening one.
fn quoted_len(text: &str, quote: char, slashes: usize) -> usize {
    let mut run = 0;
    for (n, c) in text.char_indices() {
        match c {
            '\\' => run += 1,
            _ if c == quote && run == slashes => return n - run,
            _ => run = 0,
        }
    }
    text.len()
}

/// `token: expired` is a sentence, `token: 8f3a-1` is a secret. Looks no further than a token is likely to go.
fn is_prose(text: &str) -> bool {
    let near = text.trim_start_matches([' ', '\t']);
    let near = &near[..near.floor_char_boundary(256)];
    let word = near.split(|c: char| c.is_whitespace() || matches!(c, '&' | ';' | '<' | '>')).next().unwrap_or_default();
    let is_plain = !is_mixed_case(word) && !word.bytes().any(|b| b.is_ascii_digit());
    word.len() < 6 || (is_plain && word.len() < 24)
}

/// Small letters, and capitals elsewhere than at the start.
fn is_mixed_case(word: &str) -> bool {
    word.bytes().skip(1).any(|b| b.is_ascii_uppercase()) && word.bytes().any(|b| b.is_ascii_lowercase())
}

/// Schemes of `Authorization` that are shown; what follows one is the secret.
const SCHEMES: [&str; 10] = ["bearer", "basic", "digest", "token", "apikey", "bot", "negotiate", "ntlm", "hawk", "jwt"];

/// Behind `Authorization:`: the word after a known scheme; else the first word, and the next when it looks like a token.
fn credentials(text: &str, value: Range<usize>) -> Range<usize> {
    if !text[value.end..].starts_with(' ') {
        return value;
    }
    let next = value_after(text, value.end + 1, false);
    if SCHEMES.contains(&text[value.clone()].to_ascii_lowercase().as_str()) {
        next
    } else if is_token(&text[next.clone()]) {
        value.start..next.end
    } else {
        value
    }
}

/// Behind `Cookie:`: all pairs up to the last one that ends without a semicolon.
fn cookies(text: &str, start: usize) -> Range<usize> {
    let mut end = start;
    for word in text[start..].split_inclusive(' ') {
        let bare = word.trim_end();
        end += bare.len();
        if !bare.ends_with(';') || bare.len() == word.len() || bare.len() + 1 < word.len() {
            break;
        }
        end += word.len() - bare.len();
    }
    let pairs = &text[start..end];
    let stop = pairs.find(['"', '\n', '\r', '<', '>']).unwrap_or(pairs.len());
    start..start + pairs[..stop].trim_end().len()
}

/// Whether a word goes on at `at`. What was hidden just before counts as its beginning, so that a second pass sees the
/// same words as the first.
fn is_inside(text: &str, at: usize, further: &[char]) -> bool {
    text[..at].ends_with(|c: char| c.is_alphanumeric() || c == '›' || further.contains(&c))
}

/// The token behind `Bearer ` or `Basic `.
fn scheme_token(text: &str, at: usize) -> Option<Range<usize>> {
    let bytes = text.as_bytes();
    let is_inside = is_inside(text, at, &[]);
    let word = |name: &str| bytes.get(at..at + name.len()).is_some_and(|w| w.eq_ignore_ascii_case(name.as_bytes()));
    let length = if is_inside {
        return None;
    } else if word("bearer") {
        6
    } else if word("basic") {
        5
    } else {
        return None;
    };
    let rest = bytes.get(at + length..)?;
    let gap = rest.iter().take_while(|b| matches!(b, b' ' | b':' | b'\t' | b'+')).count();
    let encoded = if rest.starts_with(b"%20") { 3 } else { gap };
    let start = at + length + encoded;
    let is_basic = length == 5;
    let fits =
        |b: &u8| b.is_ascii_alphanumeric() || matches!(b, b'+' | b'/' | b'=') || (!is_basic && b"._~-".contains(b));
    let token = bytes.get(start..)?;
    let end = token.iter().take_while(|b| fits(b)).count();
    let token = text.get(start..start + end)?.trim_end_matches('.');
    let fits = if is_basic { is_user_and_password(token) } else { is_token(token) };
    (encoded > 0 && fits).then(|| start..start + token.len())
}

/// Longest name of an option, and longest kind of a key, that is looked at, in bytes.
const NAME_MAX: usize = 64;

/// The next `NAME_MAX` bytes, or a little less.
fn near(text: &str) -> &str {
    &text[..text.floor_char_boundary(NAME_MAX)]
}

/// The body of a private key in PEM; one that has no end goes on to the end of the text.
fn private_key(text: &str, at: usize) -> Option<Range<usize>> {
    const KEY: &str = "PRIVATE KEY-----";
    let kind = text[at..].strip_prefix("-----BEGIN ")?;
    let start = text.len() - kind.len() + near(kind).find(KEY)? + KEY.len();
    let length = text[start..].find("-----END").unwrap_or(text.len() - start);
    Some(start..start + length)
}

/// The word behind `--password`; what stands behind `--password=` is found by its sign.
fn option(text: &str, at: usize, names: &KeyNames) -> Option<Range<usize>> {
    let is_start =
        text[..at].chars().next_back().is_none_or(|c| c.is_whitespace() || matches!(c, '"' | '\'' | '`' | '('));
    let name = near(text[at..].strip_prefix("--")?);
    let name = &name[..name.find(|c: char| !(c.is_ascii_alphanumeric() || matches!(c, '-' | '_')))?];
    let end = at + 2 + name.len();
    if !is_start || !text[end..].starts_with(' ') || names.secrecy(name) != Secrecy::Secret {
        return None;
    }
    let value = value_after(text, end, false);
    (!text[value.clone()].starts_with('-')).then_some(value)
}

/// The password of SQL's `PASSWORD 'x'`; without quotes only what looks like one.
fn sql_password(text: &str, at: usize) -> Option<Range<usize>> {
    let rest = text[at..].strip_prefix("PASSWORD ")?;
    let is_inside = is_inside(text, at, &['_', '-']);
    let value = value_after(text, at + "PASSWORD".len(), false);
    let is_quoted = rest.trim_start_matches([' ', '\t']).starts_with(['"', '\'']);
    (!is_inside && (is_quoted || is_token(&text[value.clone()]))).then_some(value)
}

/// How tokens of well-known services begin, and the fewest characters that follow.
const ISSUED: [(&str, usize); 17] = [
    ("sk_live_", 8),
    ("sk_test_", 8),
    ("rk_live_", 8),
    ("rk_test_", 8),
    ("sk-", 20),
    ("ghp_", 16),
    ("gho_", 16),
    ("ghu_", 16),
    ("ghs_", 16),
    ("ghr_", 16),
    ("github_pat_", 16),
    ("glpat-", 16),
    ("xoxb-", 8),
    ("xoxp-", 8),
    ("xoxa-", 8),
    ("xoxs-", 8),
    ("xapp-", 8),
];

/// A token that its own beginning gives away. Looks at each word once: only its start counts.
fn issued_token(text: &str, at: usize) -> Option<Range<usize>> {
    let (head, least) = ISSUED.iter().find(|(head, _)| text[at..].starts_with(head))?;
    let bytes = text.as_bytes();
    let is_inside = is_inside(text, at, &['_', '-']);
    if is_inside {
        return None;
    }
    let fits = |b: &&u8| b.is_ascii_alphanumeric() || b"_-".contains(b);
    let length = bytes[at..].iter().take_while(fits).count();
    let body = &text[at + head.len()..at + length];
    (body.len() >= *least && body.bytes().any(|b| b.is_ascii_digit())).then(|| at..at + length)
}

/// Whether a word after `Basic` is the base64 of `user:password`.
fn is_user_and_password(word: &str) -> bool {
    let decoded = STANDARD_NO_PAD.decode(word.trim_end_matches('='));
    decoded.is_ok_and(|bytes| bytes.contains(&b':'))
}

/// Whether a word after `Bearer` is a token and not the next word of a sentence.
fn is_token(word: &str) -> bool {
    let core = word.trim_end_matches('=');
    core.len() >= 20 || (core.len() >= 4 && (is_mixed_case(core) || core.bytes().any(|b| b.is_ascii_digit())))
}

/// A JSON web token: three parts of base64, the first of which begins with `{"`.
fn web_token(text: &str, at: usize) -> Option<Range<usize>> {
    let bytes = text.as_bytes();
    let is_inside = is_inside(text, at, &['_', '-']);
    if is_inside || !text[at..].starts_with("eyJ") {
        return None;
    }
    let fits = |b: &&u8| b.is_ascii_alphanumeric() || matches!(b, b'.' | b'_' | b'-');
    let length = bytes[at..].iter().take_while(fits).count();
    let token = text.get(at..at + length)?.trim_end_matches('.');
    (token.matches('.').count() >= 2 && token.len() >= 20).then(|| at..at + token.len())
}
