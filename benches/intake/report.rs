//! The figures, their marks, and how they are printed.

use serde_json::{Map, Value, json};

/// One figure.
struct Line {
    name: String,
    value: f64,
    unit: &'static str,
    mark: Option<Mark>,
}

/// What a figure must hold.
#[derive(Clone, Copy)]
pub enum Mark {
    AtLeast(f64),
    Under(f64),
    Exactly(f64),
}

impl Mark {
    fn holds(self, value: f64) -> bool {
        match self {
            Self::AtLeast(least) => value >= least,
            Self::Under(most) => value < most,
            Self::Exactly(wanted) => (value - wanted).abs() < f64::EPSILON,
        }
    }

    fn text(self) -> String {
        match self {
            Self::AtLeast(least) => format!("≥ {}", number(least)),
            Self::Under(most) => format!("< {}", number(most)),
            Self::Exactly(wanted) => format!("= {}", number(wanted)),
        }
    }
}

/// All figures of a run, in the order they were taken.
#[derive(Default)]
pub struct Report {
    lines: Vec<Line>,
}

impl Report {
    /// A figure that informs.
    pub fn note(&mut self, name: &str, value: f64, unit: &'static str) {
        self.push(name, value, unit, None);
    }

    /// A figure that must hold.
    pub fn judge(&mut self, name: &str, value: f64, unit: &'static str, mark: Mark) {
        self.push(name, value, unit, Some(mark));
    }

    fn push(&mut self, name: &str, value: f64, unit: &'static str, mark: Option<Mark>) {
        self.lines.push(Line { name: name.to_owned(), value, unit, mark });
    }

    /// Whether every figure with a mark meets it. A figure that is no number meets none.
    pub fn holds(&self) -> bool {
        self.lines.iter().all(|line| line.mark.is_none_or(|mark| mark.holds(line.value)))
    }

    /// For people.
    pub fn table(&self) -> String {
        let width = self.lines.iter().map(|line| line.name.chars().count()).max().unwrap_or(0);
        let rows = self.lines.iter().map(|line| {
            let verdict = line.mark.map_or_else(String::new, |mark| {
                format!("  {}  {}", mark.text(), if mark.holds(line.value) { "holds" } else { "MISSED" })
            });
            format!("{:width$}  {:>10} {:<8}{verdict}", line.name, number(line.value), line.unit).trim_end().to_owned()
        });
        rows.collect::<Vec<_>>().join("\n")
    }

    /// For machines, on one line.
    pub fn json(&self) -> String {
        let figures: Map<String, Value> = self
            .lines
            .iter()
            .map(|line| {
                (
                    format!("{} {}", line.name, line.unit).trim().replace(", ", "_").replace([' ', '/'], "_"),
                    json!(line.value),
                )
            })
            .collect();
        json!({"bench": "intake", "holds": self.holds(), "figures": figures}).to_string()
    }
}

fn number(value: f64) -> String {
    if value.abs() >= 100.0 || value.fract() == 0.0 { format!("{value:.0}") } else { format!("{value:.2}") }
}

/// The middle of some figures; no number when there are none.
pub fn median(values: &[f64]) -> f64 {
    percentile(values, 0.5)
}

/// The value below which the share `at` lies (nearest rank); no number when there are none.
pub fn percentile(values: &[f64], at: f64) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let rank = ((sorted.len() as f64) * at).ceil() as usize;
    sorted.get(rank.saturating_sub(1)).copied().unwrap_or(f64::NAN)
}
