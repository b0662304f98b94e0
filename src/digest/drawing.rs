//! Tables in characters, for plain text and for narrow places. What they hold is composed elsewhere.

use super::view::{BudgetRow, ClassBar, DownstreamRow, Footer, HeatRow, LlmRow, RecoveryRow, Tile, WorkflowRow};
use crate::render::words;

/// Longest name in a table.
const NAME_MAX: usize = 64;

/// Columns of a table on a phone.
const NARROW: usize = 34;
/// Columns that names should have in it.
const NARROW_NAME_MIN: usize = 12;
const NARROW_HEADS: [&str; 3] = ["fail", "final", "open"];

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

/// At most 34 columns, and only rows that have something to say. Columns are as wide as their numbers; when they leave
/// too little for names, numbers lose their commas, and names that are still too long are cut.
pub(super) fn draw_workflows_narrow(rows: &[WorkflowRow]) -> String {
    let busy: Vec<_> = rows.iter().filter(|r| r.failures != "0" || r.has_open).collect();
    if busy.is_empty() {
        return String::new();
    }
    let numbers = |row: &WorkflowRow| [row.failures.clone(), row.final_failures.clone(), row.open.clone()];
    let mut numbers: Vec<[String; 3]> = busy.iter().map(|r| numbers(r)).collect();
    let mut widths = narrow_widths(&numbers);
    if name_width(widths) < NARROW_NAME_MIN {
        numbers.iter_mut().flatten().for_each(|n| *n = without_commas(n));
        widths = narrow_widths(&numbers);
    }
    let width = name_width(widths);
    // A name without its number of columns has a line of its own.
    let name_max = if width < NARROW_NAME_MIN { NARROW } else { width };
    let mut table = Table::new(width, &widths);
    table.row("workflow", &NARROW_HEADS);
    for (row, [failures, finals, open]) in busy.iter().zip(&numbers) {
        table.row(&shorten(&row.name, name_max), &[failures, finals, open]);
    }
    table.finish()
}

/// A blank and the widest text of each column; wider when there is room, so that tables look alike.
fn narrow_widths(rows: &[[String; 3]]) -> [usize; 3] {
    std::array::from_fn(|i| {
        let widest = rows.iter().map(|r| r[i].chars().count()).max().unwrap_or(0);
        widest.max(NARROW_HEADS[i].len()) + 1
    })
}

fn name_width(widths: [usize; 3]) -> usize {
    NARROW.saturating_sub(widths.iter().sum())
}

/// At most 9 digits: more are no number that anybody reads off a phone.
fn without_commas(number: &str) -> String {
    let digits = number.replace(',', "");
    if digits.len() > 9 { "999999999+".to_owned() } else { digits }
}

fn shorten(name: &str, max: usize) -> String {
    let name = words::one_line(name);
    match name.chars().count() {
        n if n > max => name.chars().take(max.saturating_sub(1)).chain(['…']).collect(),
        _ => name,
    }
}

pub(super) fn draw_classes(bars: &[ClassBar]) -> String {
    let number = bars.iter().map(|b| b.count.len()).max().unwrap_or(0).max(6) + 1;
    let mut table = Table::new(17, &[number]);
    for bar in bars {
        table.row(&bar.class, &[&bar.count]);
        if let Some(line) = table.lines.last_mut() {
            line.push_str("  ");
            line.push_str(&bar.bar);
        }
    }
    indent(&table.finish())
}

/// Two blanks before each line.
pub(super) fn indent(lines: &str) -> String {
    lines.lines().map(|line| format!("  {line}")).collect::<Vec<_>>().join("\n")
}

pub(super) fn draw_heat(rows: &[HeatRow]) -> String {
    let mut lines: Vec<String> = rows.iter().map(|r| format!("{}  {}  {:>6}", r.day, r.bars, r.count)).collect();
    lines.push("     00    06    12    18".to_owned());
    lines.join("\n")
}

pub(super) fn draw_recoveries(rows: &[RecoveryRow], has_tries: bool) -> String {
    let mut table = Table::new(24, if has_tries { &[9, 13, 16] } else { &[9, 16] });
    let mut row = |name: &str, count: &str, tries: &str, time: &str| match has_tries {
        true => table.row(name, &[count, tries, time]),
        false => table.row(name, &[count, time]),
    };
    row("What worked", "Healed", "Mean tries", "Mean time");
    rows.iter().for_each(|r| row(&r.strategy, &r.count, &r.tries, &r.time));
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

pub(super) fn draw_budgets(rows: &[BudgetRow]) -> String {
    let mut table = Table::new(24, &[10, 18]);
    table.row("Workflow", &["Target", "Spent"]);
    for row in rows {
        table.row(&row.workflow, &[&row.objective, &row.spent]);
        table.note(&row.left);
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
    }

    fn narrow(name: &str, [failures, finals, open]: [&str; 3]) -> WorkflowRow {
        WorkflowRow {
            name: name.to_owned(),
            failures: failures.to_owned(),
            final_failures: finals.to_owned(),
            open: open.to_owned(),
            ..Default::default()
        }
    }

    #[test]
    fn a_narrow_table_keeps_its_columns_apart() {
        let rows =
            [narrow("order-to-crm", ["2,060", "2,000", "2,000"]), narrow("support-triage-of-all", ["5", "1", "0"])];
        let lines = [
            "workflow          fail final  open",
            "order-to-crm     2,060 2,000 2,000",
            "support-triage-…     5     1     0",
        ];
        assert_eq!(draw_workflows_narrow(&rows).lines().collect::<Vec<_>>(), lines);
    }

    #[test]
    fn a_narrow_table_gives_up_commas_then_the_line_of_the_name() {
        let rows = [narrow("order-to-crm", ["1,212,060", "1,212,000", "1,212,000"])];
        let lines = ["workflow      fail   final    open", "order-to-crm", "           1212060 1212000 1212000"];
        assert_eq!(draw_workflows_narrow(&rows).lines().collect::<Vec<_>>(), lines);
        let rows = [narrow("order-to-crm-of-shop", ["981,212,060", "98,121,200", "18,446,744,073,709,551,615"])];
        assert!(draw_workflows_narrow(&rows).ends_with("order-to-crm-of-shop\n     981212060 98121200 999999999+"));
    }

    #[test]
    fn a_narrow_table_has_34_columns_whatever_the_numbers() {
        for n in 0..64 {
            let number = words::count(1 << n);
            let table = draw_workflows_narrow(&[narrow(&"x".repeat(90), [&number, &number, &number])]);
            assert!(table.lines().all(|l| l.chars().count() <= 34), "{table}");
            let last = table.lines().last().unwrap_or_default();
            assert!((3..=4).contains(&last.split_whitespace().count()), "{table}");
        }
    }
}
