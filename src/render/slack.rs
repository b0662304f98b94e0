//! Packs mrkdwn text that a template wrote into Slack blocks that Slack accepts. Limits hold for what is sent, that is
//! after escaping. What the lines say, and that data in them is escaped, is settled before.
//!
//! ```text
//! ---            a divider
//! # text         a header
//! -# text        small print
//! | text         a field; a paragraph of such lines is shown in two columns
//! ``` … ```      kept in one piece, and always closed
//! anything else  a paragraph; a blank line ends it
//! ```

use super::content::SlackMessage;
use super::words;
use serde_json::{Value, json};

const BLOCKS_MAX: usize = 50;
/// Paragraphs are sections of their own up to so many blocks, and share sections beyond.
const BLOCKS_AIRY: usize = 44;
const SECTION_MAX: usize = 3_000;
const HEADER_MAX: usize = 150;
const FIELD_MAX: usize = 2_000;
const FIELDS_MAX: usize = 10;
const CONTEXT_MAX: usize = 2_000;
const TOTAL_MAX: usize = 11_900;
const TEXT_MAX: usize = 300;
const FENCE: &str = "```";

/// A block before it is written as JSON; texts are within their limits.
#[derive(Clone, Debug, PartialEq)]
enum Block {
    Header(String),
    Section(String),
    Fields(Vec<String>),
    Context(String),
    Divider,
}

/// The message for `rendered`, with `notice` as its fallback text when there is one. Both are escaped already.
pub(super) fn pack(rendered: &str, notice: &str) -> SlackMessage {
    let blocks = limit(air(parse(rendered)));
    // A text without blocks can't be told to leave addresses alone, and a notice never means one as a link.
    let notice = words::one_line(notice).replace("://", ":\u{200b}//");
    let text = match cut_line(&notice, TEXT_MAX) {
        empty if empty.is_empty() => fallback(&blocks),
        notice => notice,
    };
    SlackMessage { text, blocks: blocks.iter().map(Block::to_json).collect() }
}

/// The first words of the message, for a template whose view brings no notice.
fn fallback(blocks: &[Block]) -> String {
    let texts = blocks.iter().flat_map(|block| match block {
        Block::Header(text) | Block::Section(text) | Block::Context(text) => vec![text.as_str()],
        Block::Fields(fields) => fields.iter().map(String::as_str).collect(),
        Block::Divider => Vec::new(),
    });
    let mut lines = texts.flat_map(str::lines).map(|line| words::one_line(&line.replace('`', "'")));
    let first = lines.find(|line| line.contains(char::is_alphanumeric));
    cut_line(&first.unwrap_or_else(|| "Matins".to_owned()), TEXT_MAX)
}

fn parse(rendered: &str) -> Vec<Block> {
    let (mut blocks, mut paragraph, mut in_fence) = (Vec::new(), Vec::new(), false);
    for line in rendered.lines().flat_map(split_fence) {
        let line = if in_fence { line.trim_end() } else { line.trim() };
        let single = if in_fence { None } else { single_line_block(line) };
        match single {
            Some(single) => {
                end_paragraph(&mut blocks, &mut paragraph);
                blocks.extend(single);
            }
            None if line.is_empty() && !in_fence => end_paragraph(&mut blocks, &mut paragraph),
            None => paragraph.push(line),
        }
        in_fence ^= line == FENCE;
    }
    if in_fence {
        paragraph.push(FENCE);
    }
    end_paragraph(&mut blocks, &mut paragraph);
    blocks
}

/// Puts a fence that opens or closes on a line of its own, so that a cut never meets half of a pair.
fn split_fence(line: &str) -> Vec<&str> {
    if line.matches(FENCE).count().is_multiple_of(2) {
        return vec![line];
    }
    let Some((before, after)) = line.split_once(FENCE) else { return vec![line] };
    let parts = [before, FENCE, after].into_iter().filter(|part| !part.trim().is_empty());
    // What follows holds whole pairs only, and may hold none: a pair on the line of an opening fence is no code of ours.
    parts.flat_map(|part| if part == FENCE { vec![part] } else { part.split(FENCE).collect() }).collect()
}

fn single_line_block(line: &str) -> Option<Vec<Block>> {
    if line == "---" {
        return Some(vec![Block::Divider]);
    }
    if let Some(small) = line.strip_prefix("-# ") {
        return Some(some_text(small).map(|t| Block::Context(cut_line(t, CONTEXT_MAX))).into_iter().collect());
    }
    let title = some_text(line.strip_prefix("# ")?);
    Some(title.map(header).unwrap_or_default())
}

/// A header, and the whole sentence below it when the header has no room for it.
fn header(title: &str) -> Vec<Block> {
    let title = title.replace('`', "'");
    if width(&title) <= HEADER_MAX {
        return vec![Block::Header(title)];
    }
    let short = format!("{}…", prefix(&title, HEADER_MAX - 1).trim_end());
    vec![Block::Header(short), Block::Section(cut_line(&title, SECTION_MAX))]
}

fn some_text(text: &str) -> Option<&str> {
    Some(text.trim()).filter(|t| !t.is_empty())
}

fn end_paragraph(blocks: &mut Vec<Block>, lines: &mut Vec<&str>) {
    let lines = std::mem::take(lines);
    if lines.is_empty() {
        return;
    }
    let fields: Option<Vec<String>> =
        lines.iter().map(|l| l.strip_prefix("| ").and_then(some_text).map(|t| cut_line(t, FIELD_MAX))).collect();
    match fields {
        Some(fields) => blocks.extend(fields.chunks(FIELDS_MAX).map(|few| Block::Fields(few.to_vec()))),
        None => blocks.extend(sections(&lines).into_iter().map(Block::Section)),
    }
}

/// Fills sections line by line; a fence that goes over the edge is closed and opened again.
fn sections(lines: &[&str]) -> Vec<String> {
    let (mut done, mut open, mut in_fence) = (Vec::new(), String::new(), false);
    let room = SECTION_MAX - 2 * FENCE.len() - 2;
    for line in lines {
        let line = cut_line(line, room - FENCE.len());
        if !open.is_empty() && width(&open) + 1 + width(&line) > room {
            if in_fence {
                open.push('\n');
                open.push_str(FENCE);
            }
            done.push(std::mem::take(&mut open));
            if in_fence {
                open.push_str(FENCE);
            }
        }
        if !open.is_empty() {
            open.push('\n');
        }
        open.push_str(&line);
        in_fence ^= line == FENCE;
    }
    done.push(open);
    done.retain(|text| text.contains(|c: char| !c.is_whitespace() && c != '`'));
    done
}

/// Lets neighbouring sections share one block when there are too many blocks.
fn air(blocks: Vec<Block>) -> Vec<Block> {
    if blocks.len() <= BLOCKS_AIRY {
        return blocks;
    }
    let mut packed: Vec<Block> = Vec::new();
    for block in blocks {
        match (packed.last_mut(), block) {
            (Some(Block::Section(open)), Block::Section(next)) if width(open) + 2 + width(&next) <= SECTION_MAX => {
                open.push_str("\n\n");
                open.push_str(&next);
            }
            (Some(_) | None, block) => packed.push(block),
        }
    }
    packed
}

/// Drops what has no room from the end, keeps the small print that closes the message, and says how much was dropped.
fn limit(mut blocks: Vec<Block>) -> Vec<Block> {
    let is_context = |block: &Block| matches!(block, Block::Context(_));
    let closing = blocks.iter().rev().take_while(|b| is_context(b)).count().min(3);
    let closing = blocks.split_off(blocks.len() - closing);
    let room = TOTAL_MAX - closing.iter().map(Block::size).sum::<usize>();
    let mut dropped = 0;
    while blocks.iter().map(Block::size).sum::<usize>() + 120 > room || blocks.len() + closing.len() + 1 > BLOCKS_MAX {
        let Some(last) = blocks.pop() else { break };
        dropped += last.lines();
    }
    if dropped > 0 {
        while blocks.last() == Some(&Block::Divider) {
            blocks.pop();
        }
        blocks.push(Block::Context(format!("And {} that had no room here.", words::noun(dropped, "more line"))));
    }
    blocks.extend(closing);
    blocks
}

impl Block {
    fn to_json(&self) -> Value {
        let mrkdwn = |text: &str| json!({"type": "mrkdwn", "text": text, "verbatim": true});
        match self {
            Self::Header(text) => {
                json!({"type": "header", "text": {"type": "plain_text", "text": text, "emoji": false}})
            }
            Self::Section(text) => json!({"type": "section", "text": mrkdwn(text)}),
            Self::Fields(fields) => {
                json!({"type": "section", "fields": fields.iter().map(|f| mrkdwn(f)).collect::<Vec<_>>()})
            }
            Self::Context(text) => json!({"type": "context", "elements": [mrkdwn(text)]}),
            Self::Divider => json!({"type": "divider"}),
        }
    }

    /// Characters that it adds to the message, names of types included.
    fn size(&self) -> usize {
        match self {
            Self::Header(text) | Self::Section(text) | Self::Context(text) => width(text) + 20,
            Self::Fields(fields) => fields.iter().map(|f| width(f) + 10).sum::<usize>() + 10,
            Self::Divider => 10,
        }
    }

    fn lines(&self) -> u64 {
        match self {
            Self::Header(text) | Self::Section(text) | Self::Context(text) => {
                text.lines().filter(|l| !l.is_empty() && *l != FENCE).count() as u64
            }
            Self::Fields(fields) => fields.len() as u64,
            Self::Divider => 0,
        }
    }
}

/// Length as the strictest reader counts it: UTF-16 units, never fewer than characters.
fn width(text: &str) -> usize {
    text.encode_utf16().count()
}

/// A line of at most `max`: what is over is cut before an entity, link or code that it would break, and said.
fn cut_line(line: &str, max: usize) -> String {
    if width(line) <= max {
        return line.to_owned();
    }
    let mut kept = prefix(line, max.saturating_sub(50));
    // A code span or fence that was cut through goes as a whole: an odd tick would open one.
    while kept.matches('`').count() % 2 == 1 || kept.matches(FENCE).count() % 2 == 1 {
        kept = kept.rfind('`').map_or("", |at| kept[..at].trim_end_matches('`'));
    }
    kept = kept.trim_end();
    let gone = (line.chars().count() - kept.chars().count()) as u64;
    format!("{kept}… (cut; {} left out)", words::noun(gone, "character"))
}

/// The longest start of `text` within `max` that ends neither in an entity nor in a link.
fn prefix(text: &str, max: usize) -> &str {
    let mut used = 0;
    let end = text.char_indices().find(|(_, c)| {
        used += c.len_utf16();
        used > max
    });
    let Some((end, _)) = end else { return text };
    let kept = &text[..end];
    let open_link = kept.rfind('<').filter(|at| !kept[*at..].contains('>'));
    let open_entity = kept.rfind('&').filter(|at| !kept[*at..].contains(';') && text[*at..].contains(';'));
    let end = [open_link, open_entity].into_iter().flatten().min().unwrap_or(end);
    &kept[..end]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn section(text: &str) -> Block {
        Block::Section(text.to_owned())
    }

    #[test]
    fn lines_become_blocks() {
        let text = "# Title\n\none\ntwo\n\n---\n| a\n| b\n\n-# small\n";
        let fields = Block::Fields(vec!["a".to_owned(), "b".to_owned()]);
        let blocks = [
            Block::Header("Title".to_owned()),
            section("one\ntwo"),
            Block::Divider,
            fields,
            Block::Context("small".to_owned()),
        ];
        assert_eq!(parse(text), blocks);
    }

    #[test]
    fn a_fence_keeps_its_blank_lines_and_is_closed() {
        assert_eq!(parse("Bars\n```a  b\n\n# c```\nrest"), [section("Bars\n```\na  b\n\n# c\n```\nrest")]);
        assert_eq!(parse("```\nopen"), [section("```\nopen\n```")]);
    }

    #[test]
    fn a_long_fence_is_closed_and_opened_again_at_the_edge() {
        let rows = "order-to-crm   14   0\n".repeat(300);
        let message = pack(&format!("```\n{rows}```"), "x");
        assert!(message.blocks.len() > 2);
        for block in &message.blocks {
            let text = block["text"]["text"].as_str().unwrap_or_default();
            assert!(text.starts_with("```\norder") && text.ends_with("\n```") && width(text) <= 3_000, "{text}");
        }
    }

    #[test]
    fn a_header_without_room_is_said_in_full_below() {
        let long = "word ".repeat(50);
        let message = pack(&format!("# {long}"), "");
        assert_eq!(message.blocks[1]["text"]["text"], long.trim());
        assert!(message.blocks[0]["text"]["text"].as_str().unwrap().ends_with("word…"));
    }

    #[test]
    fn a_cut_never_breaks_an_entity_a_link_or_a_code_span() {
        assert_eq!(prefix("ab&amp;cd", 4), "ab");
        assert_eq!(prefix("ab <https://x|y> z", 8), "ab ");
        let cut = cut_line(&format!("{} `{}`", "x".repeat(100), "y".repeat(200)), 200);
        assert_eq!(cut, format!("{}… (cut; 203 characters left out)", "x".repeat(100)));
    }

    #[test]
    fn a_notice_links_nothing() {
        assert_eq!(pack("x", "see http://evil.example").text, "see http:\u{200b}//evil.example");
    }

    #[test]
    fn many_paragraphs_share_sections() {
        let message = pack(&"a paragraph\n\n".repeat(60), "x");
        assert_eq!(message.blocks.len(), 1);
    }

    #[test]
    fn what_has_no_room_goes_from_the_end_but_the_small_print_stays() {
        let text = format!("# T\n\n{}---\n-# 1 received = 1 listed\n", format!("{}\n\n", "x".repeat(400)).repeat(60));
        let message = pack(&text, "x");
        let shown: Vec<&str> =
            message.blocks.iter().rev().map(|b| b["elements"][0]["text"].as_str()).take(2).flatten().collect();
        assert_eq!(shown[0], "1 received = 1 listed");
        assert!(
            shown[1].starts_with("And ") && shown[1].ends_with(" more lines that had no room here."),
            "{}",
            shown[1]
        );
    }
}
