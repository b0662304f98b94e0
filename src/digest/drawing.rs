//! Tables in characters, for plain text and for narrow places. What they hold is composed elsewhere.

use super::view::{ClassBar, DownstreamRow, Footer, HeatRow, LlmRow, RecoveryRow, Tile, WorkflowRow};
use crate::render::words;

/// Longest name in a table.
const NAME_MAX: usize = 64;

/// A first column of names, then columns of numbers, each with its width.
struct Table {
    name_width: usize,
    widths: Vec<usize>,
    lines: Vec<String>,
}

impl Table {
    fn new(name_width: usize, widths: &[usize]) -> Self {
        Self { name_width, widths: widths.to_vec(), lines: Vec::new() }
    }

    /// Numbers stand at the right of their columns; a name that is too long has a line of its own.
    fn row(&mut self, name: &str, numbers: &[&str]) {
        let name = words::cut(&words::one_line(name), NAME_MAX);
        let numbers: String = self.widths.iter().zip(numbers).map(|(width, text)| format!("{text:>width$}")).collect();
        let width = self.name_width;
        if name.chars().count() > width {
            self.lines.push(name);
            self.lines.push(format!("{:width$}{numbers}", ""));
        } else {
            self.lines.push(format!("{name:width$}{numbers}"));
        }
    }

    fn note(&mut self, text: &str) {
        self.lines.push(format!("  {}", words::one_line(text)));
    }

    fn finish(self) -> String {
        let lines: Vec<&str> = self.lines.iter().map(|l| l.trim_end()).collect();
        lines.join("\n")
    }
}

pub(super) fn draw_numbers(tiles: &[Tile]) -> String {
    let mut table = Table::new(24, &[12]);
    for tile in tiles {
        table.row(&tile.label, &[&tile.value]);
        if let (Some(line), false) = (table.lines.last_mut(), tile.change.is_empty()) {
            line.push_str("   ");
            line.push_str(&tile.change);
        }
    }
    table.finish()
}

/// 72 columns, with a second line a workflow; with changes instead of ages if asked for.
pub(super) fn draw_workflows(rows: &[WorkflowRow], total: &WorkflowRow, shows_change: bool) -> String {
    let mut table = Table::new(24, &[9, 11, 8, 8, 11]);
    let last = |row: &WorkflowRow| if shows_change { row.change.clone() } else { row.oldest.clone() };
    table.row("Workflow", &["Runs", "Failures", "Final", "Open", if shows_change { "Change" } else { "Oldest" }]);
    for row in rows {
        table.row(&row.name, &[&row.runs, &row.failures, &row.final_failures, &row.open, &last(row)]);
        let parts = [row.contact.owner.as_str(), &row.contact.domain, &row.detail];
        let parts: Vec<&str> = parts.into_iter().filter(|p| !p.is_empty() && *p != "none set").collect();
        table.note(&parts.join(" · "));
    }
    table.row(&total.name, &[&total.runs, &total.failures, &total.final_failures, &total.open, &last(total)]);
    table.finish()
}

/// At most 34 columns, and only rows that have something to say.
pub(super) fn draw_workflows_narrow(rows: &[WorkflowRow]) -> String {
    let mut table = Table::new(18, &[5, 6, 5]);
    table.row("workflow", &["fail", "final", "open"]);
    let busy: Vec<_> = rows.iter().filter(|r| r.failures != "0" || r.has_open).collect();
    for row in &busy {
        let name: String = match row.name.chars().count() {
            n if n > 17 => row.name.chars().take(16).chain(['…']).collect(),
            _ => row.name.clone(),
        };
        table.row(&name, &[&row.failures, &row.final_failures, &row.open]);
    }
    if busy.is_empty() { String::new() } else { table.finish() }
}

pub(super) fn draw_classes(bars: &[ClassBar]) -> String {
    let mut table = Table::new(18, &[8]);
    for bar in bars {
        table.row(&bar.class, &[&bar.count]);
        if let Some(line) = table.lines.last_mut() {
            line.push_str("  ");
            line.push_str(&bar.bar);
        }
    }
    table.finish()
}

pub(super) fn draw_heat(rows: &[HeatRow]) -> String {
    let mut lines: Vec<String> = rows.iter().map(|r| format!("{}  {}  {:>6}", r.day, r.bars, r.count)).collect();
    lines.push("     00    06    12    18".to_owned());
    lines.join("\n")
}

pub(super) fn draw_recoveries(rows: &[RecoveryRow]) -> String {
    let mut table = Table::new(24, &[9, 13, 16]);
    table.row("What worked", &["Healed", "Mean tries", "Mean time"]);
    rows.iter().for_each(|r| table.row(&r.strategy, &[&r.count, &r.tries, &r.time]));
    table.finish()
}

pub(super) fn draw_downstreams(rows: &[DownstreamRow]) -> String {
    let mut table = Table::new(24, &[10, 10, 10]);
    table.row("Downstream", &["Failed", "Final", "Share"]);
    for row in rows {
        table.row(&row.downstream, &[&row.failures, &row.final_failures, &row.share]);
        table.note(&row.workflows);
    }
    table.finish()
}

pub(super) fn draw_llm(rows: &[LlmRow]) -> String {
    let mut table = Table::new(24, &[10, 10]);
    table.row("Class", &["Failures", "Final"]);
    for row in rows {
        table.row(&row.class, &[&row.failures, &row.final_failures]);
        table.note(&row.workflows);
    }
    table.finish()
}

pub(super) fn draw_balance(footer: &Footer) -> String {
    let mut table = Table::new(44, &[8]);
    footer.rows.iter().for_each(|r| table.row(&r.label, &[&r.count]));
    table.lines.push(format!("{:44}{:>8}", "", "------"));
    table.row("Received", &[&footer.received]);
    table.finish()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_name_has_a_line_of_its_own() {
        let mut table = Table::new(5, &[4]);
        table.row("ab", &["1"]);
        table.row("abcdefgh", &["22"]);
        assert_eq!(table.finish(), "ab      1\nabcdefgh\n       22");
    }

    #[test]
    fn data_can_not_add_lines() {
        let mut table = Table::new(9, &[4]);
        table.row("a\nb", &["1"]);
        assert_eq!(table.finish(), "a b         1");
    }

    #[test]
    fn tables_keep_within_their_columns() {
        let row =
            WorkflowRow { name: "x".repeat(200), failures: "1,234,567".into(), has_open: true, ..Default::default() };
        let wide = draw_workflows(std::slice::from_ref(&row), &row, false);
        assert!(wide.lines().filter(|l| !l.contains("xxx")).all(|l| l.chars().count() <= 72), "{wide}");
        let narrow = draw_workflows_narrow(&[WorkflowRow { failures: "99".into(), ..row }]);
        assert!(narrow.lines().all(|l| l.chars().count() <= 34), "{narrow}");
    }
}
