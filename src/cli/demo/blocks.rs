//! A message of Block Kit as lines. What its text means is `mrkdwn`'s, where it is drawn `screen`'s.

use super::mrkdwn::{self, Line, Piece};
use serde_json::Value;

/// The lines of a message, each at most `max` signs wide; a message without blocks is its text.
pub fn lines(message: &Value, max: usize) -> Vec<Line> {
    let blocks = message["blocks"].as_array().map_or(&[][..], Vec::as_slice);
    if blocks.is_empty() {
        return mrkdwn::lines(text_of(&message["text"]), max);
    }
    let mut shown: Vec<Line> = Vec::new();
    for block in blocks {
        let lines = block_lines(block, max);
        if !shown.is_empty() && !is_small(block) {
            shown.push(Vec::new());
        }
        shown.extend(lines);
    }
    shown
}

fn is_small(block: &Value) -> bool {
    block["type"] == "context"
}

fn block_lines(block: &Value, max: usize) -> Vec<Line> {
    match block["type"].as_str().unwrap_or_default() {
        "header" => mrkdwn::wrap(&[Piece::bold(text_of(&block["text"]["text"]))], max),
        "divider" => vec![vec![Piece::dim("─".repeat(max))]],
        "context" => {
            let elements = block["elements"].as_array().into_iter().flatten();
            elements.flat_map(|element| mrkdwn::lines(text_of(&element["text"]), max)).map(dimmed).collect()
        }
        _ => match block["fields"].as_array() {
            Some(fields) => columns(fields, max),
            None => mrkdwn::lines(text_of(&block["text"]["text"]), max),
        },
    }
}

fn text_of(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

fn dimmed(mut line: Line) -> Line {
    line.iter_mut().for_each(|piece| piece.look.dim = true);
    line
}

/// Fields stand in two columns, as Slack shows them.
fn columns(fields: &[Value], max: usize) -> Vec<Line> {
    let (gap, column) = (2, max.saturating_sub(2) / 2);
    let mut shown = Vec::new();
    for pair in fields.chunks(2) {
        let cells: Vec<Vec<Line>> = pair.iter().map(|f| mrkdwn::lines(text_of(&f["text"]), column)).collect();
        for row in 0..cells.iter().map(Vec::len).max().unwrap_or(0) {
            let mut line = cells.first().and_then(|cell| cell.get(row)).cloned().unwrap_or_default();
            if let Some(right) = cells.get(1).and_then(|cell| cell.get(row)) {
                line.push(Piece::plain(" ".repeat(column + gap - mrkdwn::width(&line))));
                line.extend(right.iter().cloned());
            }
            shown.push(line);
        }
    }
    shown
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn texts(message: &Value, max: usize) -> Vec<String> {
        lines(message, max).iter().map(|line| line.iter().map(|p| p.text.as_str()).collect()).collect()
    }

    #[test]
    fn a_message_is_drawn_in_the_order_of_its_blocks() {
        let message = json!({"text": "not shown", "blocks": [
            {"type": "header", "text": {"type": "plain_text", "text": "1 order has not reached hubspot"}},
            {"type": "context", "elements": [{"type": "mrkdwn", "text": "#1 · money"}]},
            {"type": "section", "text": {"type": "mrkdwn", "text": "Owner: *Asha Rao*\nsecond"}},
            {"type": "section", "fields": [{"type": "mrkdwn", "text": "*1* page"}, {"type": "mrkdwn", "text": "*2* runs"}]},
            {"type": "divider"},
        ]});
        let shown = texts(&message, 32);
        assert_eq!(
            shown,
            [
                "1 order has not reached hubspot",
                "#1 · money",
                "",
                "Owner: Asha Rao",
                "second",
                "",
                "1 page           2 runs",
                "",
                "────────────────────────────────",
            ]
        );
        assert!(lines(&message, 32)[0][0].look.bold && lines(&message, 32)[1][0].look.dim);
    }

    #[test]
    fn a_message_without_blocks_is_its_text() {
        assert_eq!(texts(&json!({"text": "declined &amp; told"}), 40), ["declined & told"]);
    }

    #[test]
    fn an_odd_field_stands_alone() {
        let message = json!({"blocks": [{"type": "section", "fields": [{"type": "mrkdwn", "text": "one"}]}]});
        assert_eq!(texts(&message, 20), ["one"]);
    }
}
