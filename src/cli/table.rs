//! Lists and single things for a terminal: aligned columns, short ages, nothing that could steer the terminal. Pure.

use chrono::{DateTime, TimeDelta, Utc};
use serde_json::Value;
use std::fmt::Write as _;

/// Longest cell, and longest of the last column, in characters.
const CELL_MAX: usize = 40;
const LAST_MAX: usize = 90;

/// Shows `rows` under `heads`, columns aligned. Numbers go to the right.
pub(super) fn table(heads: &[&str], rows: &[Vec<String>]) -> String {
    let last = heads.len().saturating_sub(1);
    let cut_row = |row: &Vec<String>| -> Vec<String> {
        let max = |column| if column == last { LAST_MAX } else { CELL_MAX };
        row.iter().enumerate().map(|(column, cell)| cut(&clean(cell), max(column))).collect()
    };
    let rows: Vec<Vec<String>> = rows.iter().map(cut_row).collect();
    let cells = |column: usize| rows.iter().filter_map(move |row| row.get(column));
    let widths: Vec<usize> = (0..heads.len())
        .map(|column| {
            cells(column).map(|c| c.chars().count()).chain([heads[column].chars().count()]).max().unwrap_or(0)
        })
        .collect();
    let numeric: Vec<bool> =
        (0..heads.len()).map(|column| !rows.is_empty() && cells(column).all(|c| is_number(c))).collect();
    let line = |row: &[String]| {
        let padded = row.iter().enumerate().map(|(column, cell)| {
            let gap = " ".repeat(widths.get(column).copied().unwrap_or(0).saturating_sub(cell.chars().count()));
            if numeric.get(column) == Some(&true) { format!("{gap}{cell}") } else { format!("{cell}{gap}") }
        });
        padded.collect::<Vec<_>>().join("  ").trim_end().to_owned() + "\n"
    };
    let heads: Vec<String> = heads.iter().map(|head| (*head).to_owned()).collect();
    std::iter::once(line(&heads)).chain(rows.iter().map(|row| line(row))).collect()
}

fn is_number(cell: &str) -> bool {
    !cell.is_empty() && cell.chars().all(|c| c.is_ascii_digit())
}

/// Fields that say what a thing is; they come first. What is long comes last.
const FIRST: &[&str] = &[
    "id",
    "number",
    "kind",
    "digest",
    "receiver",
    "workflow",
    "workflows",
    "step",
    "item",
    "class",
    "state",
    "subject",
    "reason",
    "error_message",
];
const LAST: &[&str] = &["links", "headers", "payload", "raw", "counts", "view", "content"];

/// Place of a field in a card; those of one place are in the order of their names.
fn place(name: &str) -> usize {
    let first = FIRST.iter().position(|f| *f == name);
    let last = || LAST.iter().position(|l| *l == name).map(|at| FIRST.len() + 1 + at);
    first.or_else(last).unwrap_or(FIRST.len())
}

/// Shows one thing: a name and its value a line, longer values below their name. What is absent or empty is left out.
pub(super) fn card(thing: &Value) -> String {
    let Some(fields) = thing.as_object() else { return format!("{thing:#}\n") };
    let mut fields: Vec<(&String, &Value)> = fields.iter().filter(|(_, value)| !is_empty(value)).collect();
    fields.sort_by_key(|(name, _)| (place(name), *name));
    let width = fields.iter().map(|(name, _)| name.chars().count()).max().unwrap_or(0);
    let mut out = String::new();
    for (name, value) in fields {
        let words = match value {
            Value::String(text) => lines_clean(text),
            Value::Array(items) if items.iter().all(Value::is_string) => lines_clean(&words_of(items)),
            Value::Array(_) | Value::Object(_) => lines_clean(&format!("{value:#}")),
            Value::Null | Value::Bool(_) | Value::Number(_) => value.to_string(),
        };
        let indented = words.replace('\n', &format!("\n{}", " ".repeat(width + 2)));
        // Writing to a String can't fail.
        let _ = writeln!(out, "{name:width$}  {indented}");
    }
    out
}

fn is_empty(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::String(text) => text.is_empty(),
        Value::Array(items) => items.is_empty(),
        Value::Object(fields) => fields.is_empty(),
        Value::Bool(_) | Value::Number(_) => false,
    }
}

fn words_of(items: &[Value]) -> String {
    items.iter().filter_map(Value::as_str).collect::<Vec<_>>().join(", ")
}

/// A field of an item, as text; empty when it is absent.
pub(super) fn field(item: &Value, name: &str) -> String {
    match &item[name] {
        Value::Null => String::new(),
        Value::String(text) => text.clone(),
        Value::Array(items) if items.iter().all(Value::is_string) => words_of(items),
        other @ (Value::Bool(_) | Value::Number(_) | Value::Array(_) | Value::Object(_)) => other.to_string(),
    }
}

/// How long ago a field was, in words; empty when it is absent.
pub(super) fn age(item: &Value, name: &str, now: DateTime<Utc>) -> String {
    let at = item[name].as_str().and_then(|text| text.parse::<DateTime<Utc>>().ok());
    at.map(|at| match now - at {
        ago if ago >= TimeDelta::zero() => format!("{} ago", span(ago)),
        ahead => format!("in {}", span(-ahead)),
    })
    .unwrap_or_default()
}

/// A span in its largest unit, cut down: `3 min`, `27 h`, `4 d`.
fn span(time: TimeDelta) -> String {
    match time.num_seconds() {
        seconds @ ..=119 => format!("{seconds} s"),
        seconds @ 120..=7199 => format!("{} min", seconds / 60),
        seconds @ 7200..=172_799 => format!("{} h", seconds / 3600),
        seconds => format!("{} d", seconds / 86_400),
    }
}

/// One line without control characters: what others wrote must not steer the terminal.
fn clean(text: &str) -> String {
    text.chars().map(|c| if is_steering(c) { ' ' } else { c }).collect()
}

fn lines_clean(text: &str) -> String {
    text.chars().map(|c| if is_steering(c) && c != '\n' { ' ' } else { c }).collect()
}

/// Control characters, and those that turn the direction of text around.
fn is_steering(c: char) -> bool {
    c.is_control() || matches!(c, '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

fn cut(text: &str, max: usize) -> String {
    if text.chars().count() <= max {
        return text.to_owned();
    }
    text.chars().take(max - 1).chain(['…']).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn row(cells: &[&str]) -> Vec<String> {
        cells.iter().map(|c| (*c).to_owned()).collect()
    }

    #[test]
    fn columns_are_aligned_and_numbers_go_to_the_right() {
        let shown = table(
            &["ID", "WORKFLOW", "TIMES", "ERROR"],
            &[row(&["12", "pay", "3", "declined"]), row(&["7", "Zürich-überweisung", "1200", ""])],
        );
        insta::assert_snapshot!(shown, @r"
        ID  WORKFLOW            TIMES  ERROR
        12  pay                     3  declined
         7  Zürich-überweisung   1200
        ");
    }

    #[test]
    fn what_others_wrote_can_not_steer_the_terminal() {
        let shown = table(&["ERROR"], &[row(&["\u{1b}[2J\u{202e}a\nb\u{9b}31m"])]);
        assert_eq!(shown, "ERROR\n [2J a b 31m\n");
        assert_eq!(card(&json!({ "error": "a\u{7}\nb" })), "error  a \n       b\n");
    }

    #[test]
    fn long_cells_are_cut_with_a_mark() {
        let shown = table(&["ITEM", "X"], &[row(&[&"i".repeat(50), "1"])]);
        assert!(shown.contains(&format!("{}…  1", "i".repeat(39))), "{shown}");
    }

    #[test]
    fn ages_have_one_unit() {
        let now = DateTime::from_timestamp(1_800_000_000, 0).expect("an instant");
        let ago = |seconds| {
            let at = (now - TimeDelta::seconds(seconds)).to_rfc3339();
            age(&json!({ "at": at }), "at", now)
        };
        assert_eq!(
            [ago(5), ago(119), ago(120), ago(7200), ago(172_800), ago(-300)],
            ["5 s ago", "119 s ago", "2 min ago", "2 h ago", "2 d ago", "in 5 min"]
        );
        assert_eq!(age(&json!({}), "at", now), "");
    }

    #[test]
    fn a_card_begins_with_what_a_thing_is_and_leaves_out_what_is_absent() {
        let thing = json!({ "attempt_count": 3, "id": "1", "step": null, "links": {}, "workflows": ["pay", "payout"], "payload": { "a": 1 }, "times": 2 });
        insta::assert_snapshot!(card(&thing), @r#"
        id             1
        workflows      pay, payout
        attempt_count  3
        times          2
        payload        {
                         "a": 1
                       }
        "#);
    }
}
