//! Approach 6 of the SRE Workbook as it is computed from counters: the ratio of two sums in a long and a short window. No
//! floor and no hold: without runs a ratio is undefined, which compares as false. A page at each rising edge.

use crate::decided::Paged;
use crate::month::{HOUR, MINUTE, Month, budget};
use crate::timeline::{STEP, Timeline};

/// Factor, long and short window in s of the two tiers that page.
const TIERS: [(f64, i64, i64); 2] = [(14.4, HOUR, 5 * MINUTE), (6.0, 6 * HOUR, 30 * MINUTE)];

/// Sums up to each step.
struct Sums(Vec<(u64, u64)>);

impl Sums {
    /// (all, failed) of the window before a step.
    fn window(&self, end: usize, length: i64) -> (u64, u64) {
        let start = end.saturating_sub(usize::try_from(length / STEP).unwrap_or(0));
        let at = |place: usize| self.0.get(place).copied().unwrap_or_default();
        (at(end).0 - at(start).0, at(end).1 - at(start).1)
    }

    fn is_over(&self, end: usize, length: i64, threshold: f64) -> bool {
        let (total, failed) = self.window(end, length);
        total > 0 && failed as f64 / total as f64 > threshold
    }
}

/// When it pages, in s of the month.
pub fn pages(month: &Month, line: &Timeline) -> Vec<Paged> {
    let mut sums = vec![(0, 0)];
    for count in &line.counters {
        let last = sums.last().copied().unwrap_or_default();
        sums.push((last.0 + u64::from(count.total), last.1 + u64::from(count.failed)));
    }
    let sums = Sums(sums);
    let budget = budget(month.slo);
    let fires = |end: usize| {
        TIERS.iter().any(|(burn, long, short)| {
            sums.is_over(end, *long, burn * budget) && sums.is_over(end, *short, burn * budget)
        })
    };
    let mut pages = Vec::new();
    let mut was_firing = false;
    for end in 1..line.counters.len() {
        let is_firing = fires(end);
        if is_firing && !was_firing {
            pages.push(Paged { at: i64::try_from(end).unwrap_or(0) * STEP, resolved_at: None });
        }
        was_firing = is_firing;
    }
    pages
}
