//! Makes a view safe for a channel before any template sees it, so that no template can switch escaping off.
//! How blocks and mails are put together is not decided here.

use super::words::{cut_mark, is_line_break, one_line, split_mark, turns_direction};
use serde_json::Value;

/// What a template writes, and so what its data must not be able to say.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Flavour {
    /// mrkdwn: `&`, `<` and `>` are entities; data can't mention, link or format.
    Slack,
    /// Markup of a mail.
    Html,
    /// Plain text of a mail or a file.
    Text,
    /// Subject of a mail: one line.
    Subject,
}

impl Flavour {
    pub(super) const ALL: [Self; 4] = [Self::Slack, Self::Subject, Self::Text, Self::Html];

    /// The file of a template folder that writes it.
    pub(super) fn file(self) -> &'static str {
        match self {
            Self::Slack => "slack.hbs",
            Self::Html => "html.hbs",
            Self::Text => "text.hbs",
            Self::Subject => "subject.hbs",
        }
    }

    /// Whether nothing in it is markup.
    fn is_plain(self) -> bool {
        match self {
            Self::Text | Self::Subject => true,
            Self::Slack | Self::Html => false,
        }
    }

    /// Characters that one value may take once escaped; what is over is cut, and said.
    fn value_max(self) -> usize {
        match self {
            Self::Slack => 700,
            Self::Html | Self::Text | Self::Subject => 4_000,
        }
    }

    /// Whether line breaks of the value under `key` stay. Names that end in `_lines` are drawings of ours: tables, bars.
    fn keeps_lines(self, key: &str) -> bool {
        let sample = matches!(key, "message" | "sample" | "stack" | "note");
        match self {
            Self::Slack => key.ends_with("_lines"),
            Self::Html | Self::Text => key.ends_with("_lines") || sample,
            Self::Subject => false,
        }
    }
}

const ZERO_WIDTH: char = '\u{200b}';

/// The view with every string, and every name that data could have chosen, escaped for `flavour`.
pub(super) fn escape_view(mut view: Value, flavour: Flavour) -> Value {
    escape_value(&mut view, "", &mut Escaping { flavour, site: String::new() });
    view
}

/// How a view is escaped.
struct Escaping {
    flavour: Flavour,
    /// Start of the last good address: nearly all of a view begin alike.
    site: String,
}

fn escape_value(value: &mut Value, key: &str, how: &mut Escaping) {
    match value {
        Value::String(text) if is_address(key) => *text = escape_address(text, how),
        Value::String(text) if is_safe(text, how.flavour) => {}
        Value::String(text) => *text = escape_unsafe(text, key, how.flavour),
        Value::Array(items) => items.iter_mut().for_each(|item| escape_value(item, key, how)),
        Value::Object(fields) => {
            fields.iter_mut().for_each(|(key, field)| escape_value(field, key, how));
            if fields.keys().any(|key| !is_safe(key, how.flavour)) {
                let renamed = std::mem::take(fields).into_iter();
                fields.extend(renamed.map(|(key, field)| (escape_text(&key, "", how.flavour), field)));
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

/// Names under which a view keeps web addresses.
fn is_address(key: &str) -> bool {
    key == "url" || key == "runbook" || key.ends_with("_url")
}

fn escape_text(text: &str, key: &str, flavour: Flavour) -> String {
    if is_safe(text, flavour) { text.to_owned() } else { escape_unsafe(text, key, flavour) }
}

/// Whether no rule of the channel changes a text, as is so for most words of a view: printable ASCII without marks, one line, no runs
/// of blanks.
fn is_safe(text: &str, flavour: Flavour) -> bool {
    let is_harmless = |byte: u8| match flavour.is_plain() {
        true => (b' '..=b'~').contains(&byte),
        false => byte.is_ascii_alphanumeric() || b" -.,:;/+%=".contains(&byte),
    };
    let bytes = text.as_bytes();
    let begins = bytes.first().is_none_or(|byte| byte.is_ascii_alphanumeric() || (flavour.is_plain() && *byte != b' '));
    // A mark of an earlier cut ends with a bracket.
    let ends = bytes.last().is_none_or(|byte| !b" )".contains(byte));
    begins
        && ends
        && bytes.len() <= flavour.value_max()
        && bytes.iter().all(|byte| is_harmless(*byte))
        && !text.contains("  ")
}

fn escape_unsafe(text: &str, key: &str, flavour: Flavour) -> String {
    let clean = if flavour.keeps_lines(key) { tidy_lines(text) } else { one_line(text) };
    // Drawings are as large as their maker wants; the packing of the channel cuts them.
    let max = if key.ends_with("_lines") { usize::MAX } else { flavour.value_max() };
    let escaped = cut_escaped(&clean, max, flavour);
    match flavour {
        Flavour::Slack => defuse(&escaped),
        Flavour::Html | Flavour::Text | Flavour::Subject => escaped,
    }
}

/// Keeps line breaks and blanks, drops every other control character.
fn tidy_lines(text: &str) -> String {
    let text = text.replace("\r\n", "\n");
    let tidy = text.chars().filter(|c| !turns_direction(*c)).map(|c| match c {
        '\n' => '\n',
        c if is_line_break(c) => '\n',
        c if c.is_control() => ' ',
        c => c,
    });
    tidy.collect::<String>().trim_matches('\n').to_owned()
}

/// Escapes as many characters as fit in `max` once escaped, then says how many did not.
fn cut_escaped(text: &str, max: usize, flavour: Flavour) -> String {
    let (body, cut_before) = split_mark(text);
    let (mut out, mut length, mut kept) = (String::new(), 0, 0);
    for (i, c) in body.char_indices() {
        let before = out.len();
        push_escaped(&mut out, c, body, i, flavour);
        length += out[before..].chars().count();
        if length > max {
            out.truncate(before);
            let gone = body.chars().count() - kept;
            out.truncate(out.trim_end().len());
            out.push_str(&cut_mark(gone as u64 + cut_before));
            return out;
        }
        kept += 1;
    }
    if cut_before > 0 {
        out.push_str(&cut_mark(cut_before));
    }
    out
}

fn push_escaped(out: &mut String, c: char, text: &str, i: usize, flavour: Flavour) {
    match (flavour, c) {
        (Flavour::Slack | Flavour::Html, '&') => out.push_str("&amp;"),
        (Flavour::Slack | Flavour::Html, '<') => out.push_str("&lt;"),
        (Flavour::Slack | Flavour::Html, '>') => out.push_str("&gt;"),
        (Flavour::Html, '"') => out.push_str("&quot;"),
        (Flavour::Html, '\'') => out.push_str("&#39;"),
        (Flavour::Slack, '`') => out.push('\''),
        (Flavour::Slack, '*' | '_' | '~') if could_format(text, i, c) => {
            // Readers differ in whether a zero-width space counts as a letter or as a blank; one on each side holds for both.
            out.push(ZERO_WIDTH);
            out.push(c);
            out.push(ZERO_WIDTH);
        }
        (Flavour::Slack | Flavour::Html | Flavour::Text | Flavour::Subject, c) => out.push(c),
    }
}

/// Text for HTML, in content and in quoted attributes.
pub fn escape_html(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for (i, c) in text.char_indices() {
        push_escaped(&mut out, c, text, i, Flavour::Html);
    }
    out
}

/// Slack takes `*`, `_` and `~` as format only where a word begins or ends; `snake_case` stays as it is.
fn could_format(text: &str, i: usize, mark: char) -> bool {
    let before = text[..i].chars().next_back();
    let after = text[i + mark.len_utf8()..].chars().next();
    let in_word = |c: Option<char>| c.is_some_and(char::is_alphanumeric);
    !(in_word(before) && in_word(after))
}

/// Keeps a value from being read as a header, small print, divider, field or quote at the start of a line.
fn defuse(escaped: &str) -> String {
    let lines = escaped.split('\n').map(|line| match starts_markup(line.trim_start()) {
        true => format!("{ZERO_WIDTH}{line}"),
        false => line.to_owned(),
    });
    lines.collect::<Vec<_>>().join("\n")
}

fn starts_markup(line: &str) -> bool {
    let title = line.strip_prefix('-').unwrap_or(line).strip_prefix('#');
    let is_title = title.is_some_and(|rest| rest.is_empty() || rest.starts_with(char::is_whitespace));
    let is_divider = !line.is_empty() && line.chars().all(|c| c == '-');
    is_title || is_divider || line.starts_with('|') || line.starts_with("&gt;")
}

/// A web address that can stand in a link of the channel; empty when it is none.
fn escape_address(address: &str, how: &mut Escaping) -> String {
    let Some(safe) = safe_address(address, &mut how.site) else { return String::new() };
    match how.flavour {
        Flavour::Slack | Flavour::Html => safe.replace('&', "&amp;"),
        Flavour::Text | Flavour::Subject => safe,
    }
}

/// The address when it is http(s), with what could end a link or a line percent-encoded; none for anything else.
pub fn web_address(address: &str) -> Option<String> {
    safe_address(address, &mut String::new())
}

/// The same; what comes after a `site` that was found to be good can't make an address bad.
fn safe_address(address: &str, site: &mut String) -> Option<String> {
    let address = address.trim();
    if address.len() > 2_000 {
        return None;
    }
    let start = &address[..site_length(address)?];
    if start != site {
        match url::Url::parse(start) {
            Ok(_) => start.clone_into(site),
            Err(_) => _ = url::Url::parse(address).ok()?,
        }
    }
    if address.bytes().all(|b| b.is_ascii_alphanumeric() || b"-._/:?&=%+#,".contains(&b)) {
        return Some(address.to_owned());
    }
    let mut safe = String::new();
    for c in address.chars() {
        let unsafe_here = c.is_control() || c.is_whitespace() || "<>|\"'`\\^{}*~\u{200b}".contains(c);
        match unsafe_here {
            true => c.encode_utf8(&mut [0; 4]).bytes().for_each(|byte| safe.push_str(&format!("%{byte:02X}"))),
            false => safe.push(c),
        }
    }
    Some(safe)
}

/// Bytes of `https://host:port`; none for what is no http(s).
fn site_length(address: &str) -> Option<usize> {
    let is_scheme =
        |scheme: &&&str| address.get(..scheme.len()).is_some_and(|start| start.eq_ignore_ascii_case(scheme));
    let scheme = ["http://", "https://"].iter().find(is_scheme)?;
    let host = &address[scheme.len()..];
    Some(scheme.len() + host.find(['/', '?', '#', '\\']).unwrap_or(host.len()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde_json::json;

    fn slack(text: &str) -> String {
        escape_text(text, "item", Flavour::Slack)
    }

    #[test]
    fn slack_data_can_not_mention_or_link() {
        assert_eq!(slack("<!here> <@U1> & <http://x|y>"), "&lt;!here&gt; &lt;@U1&gt; &amp; &lt;http://x|y&gt;");
    }

    #[test]
    fn slack_data_can_not_format() {
        assert_eq!(slack("`x` snake_case 2*3"), "'x' snake_case 2*3");
        assert_eq!(slack("*b*"), "\u{200b}*\u{200b}b\u{200b}*\u{200b}");
    }

    #[test]
    fn slack_data_can_not_start_a_header_divider_or_quote() {
        for text in ["# x", "#", "-# x", "---", "-", "| x", "> x", "  # x"] {
            assert!(slack(text).starts_with('\u{200b}'), "{text}");
        }
        assert_eq!(slack("#212"), "#212");
    }

    #[test]
    fn slack_data_is_one_line_but_drawings_keep_theirs() {
        assert_eq!(slack("a\r\nb\u{7}c"), "a b c");
        assert_eq!(escape_text("a  b\n--- ", "table_lines", Flavour::Slack), "a  b\n--- ");
        assert_eq!(escape_text("a\n---", "table_lines", Flavour::Slack), "a\n\u{200b}---");
    }

    #[test]
    fn names_chosen_by_data_are_escaped_too() {
        let out = escape_view(json!({"links": {"<!here>": "x"}}), Flavour::Slack);
        assert_eq!(out, json!({"links": {"&lt;!here&gt;": "x"}}));
    }

    #[test]
    fn html_is_escaped() {
        assert_eq!(escape_text("<b a=\"'\">&", "item", Flavour::Html), "&lt;b a=&quot;&#39;&quot;&gt;&amp;");
    }

    #[test]
    fn samples_keep_their_lines_in_mail_and_not_in_subjects() {
        assert_eq!(escape_text("a\r\nb\u{7}", "message", Flavour::Text), "a\nb ");
        assert_eq!(escape_text("a\r\nBcc: b", "message", Flavour::Subject), "a Bcc: b");
    }

    #[test]
    fn a_value_is_cut_by_its_escaped_length_and_never_inside_an_entity() {
        let out = slack(&"&".repeat(1000));
        assert_eq!(out, format!("{}… (860 more characters)", "&amp;".repeat(140)));
    }

    #[test]
    fn addresses_are_http_and_can_not_end_their_link() {
        assert_eq!(web_address("javascript:alert(1)"), None);
        assert_eq!(web_address("https://"), None);
        assert_eq!(web_address("undefined"), None);
        assert_eq!(web_address("https://x/a|b>c<d e\n"), Some("https://x/a%7Cb%3Ec%3Cd%20e".to_owned()));
        let view = json!({"links": [{"name": "n8n", "url": "https://x/?a=1&b=2"}], "runbook": "file:///etc/passwd"});
        let out = escape_view(view, Flavour::Slack);
        assert_eq!(out["links"][0]["url"], "https://x/?a=1&amp;b=2");
        assert_eq!(out["runbook"], "");
    }

    proptest! {
        #[test]
        fn an_address_is_good_or_bad_whatever_came_before_it(
            site in "https?://[a-z.:@\\t]{0,3}",
            ends in proptest::collection::vec("[a-z0-9.:@/?#\\\\\\t\\[%<-]{0,5}", 1..4),
        ) {
            let mut known = String::new();
            for address in ends.iter().map(|end| format!("{site}{end}")) {
                let is_good = url::Url::parse(address.trim()).is_ok();
                prop_assert_eq!(safe_address(&address, &mut known).is_some(), is_good, "{:?}", address);
                prop_assert_eq!(web_address(&address), safe_address(&address, &mut known), "{:?}", address);
            }
        }

        #[test]
        fn what_is_safe_is_what_no_rule_changes(text in "[ -~]{0,12}|[a-z #|>*_&-]{0,9}|a… \\(3 more characters\\)", key in "note|text|a_lines") {
            for flavour in Flavour::ALL {
                if is_safe(&text, flavour) {
                    prop_assert_eq!(escape_unsafe(&text, &key, flavour), text.clone());
                }
            }
        }
    }
}
