//! The table `counters` of a store that is played into.

use crate::digest::Window;
use crate::store::counters::{CounterRow, Sums};
use crate::store::digest_input::Count;
use crate::store::{from_ms, to_ms};
use chrono::{DateTime, TimeDelta, Utc};
use std::collections::{BTreeMap, HashMap};

/// Rows are kept by the hour.
const HOUR_MS: i64 = 3_600_000;
const MINUTE_MS: i64 = 60_000;

/// Counters, as they came: what is counted twice is added up when it is read.
#[derive(Debug, Default)]
pub struct Counters {
    hours: BTreeMap<i64, Vec<CounterRow>>,
    /// Up to when some digest is told, ms.
    told_until: i64,
}

impl Counters {
    /// Adds `rows`, to a later minute where theirs is told already.
    pub fn add(&mut self, rows: &[CounterRow]) {
        let told_minute = self.told_until.div_euclid(MINUTE_MS) * MINUTE_MS;
        for row in rows {
            let minute = row.minute.max(told_minute);
            let hour = minute.div_euclid(HOUR_MS);
            if !self.hours.contains_key(&hour) {
                // The one before is as long as it will be.
                if let Some(mut last) = self.hours.last_entry() {
                    last.get_mut().shrink_to_fit();
                }
            }
            self.hours.entry(hour).or_default().push(CounterRow { minute, ..*row });
        }
    }

    /// A digest is told, or begins to be told, at this instant.
    pub fn note_told(&mut self, until: DateTime<Utc>) {
        self.told_until = self.told_until.max(to_ms(until));
    }

    /// The first minute that was counted.
    pub fn first_minute(&self) -> Option<DateTime<Utc>> {
        let (_, first) = self.hours.first_key_value()?;
        first.iter().map(|row| row.minute).min().map(from_ms)
    }

    /// What was counted in a window, by bucket, cause and decision, in that order.
    pub fn counts(&self, window: Window, bucket: TimeDelta) -> Vec<Count> {
        let (start, end, bucket) = (to_ms(window.start_at), to_ms(window.end_at), bucket.num_milliseconds().max(1));
        let mut sums: HashMap<(i64, i64, i64), (Sums, i64)> = HashMap::new();
        let hours = self.hours.range(start.div_euclid(HOUR_MS)..=end.div_euclid(HOUR_MS));
        for row in hours.flat_map(|(_, rows)| rows).filter(|row| (start..end).contains(&row.minute)) {
            let at = start + (row.minute - start) / bucket * bucket;
            let (sum, first) = sums.entry((at, row.cause_id, row.decision_id)).or_insert((Sums::default(), row.minute));
            sum.add(row.sums);
            *first = row.minute.min(*first);
        }
        let mut counts: Vec<Count> = sums
            .into_iter()
            .map(|((at, cause, decision), (sums, first))| Count {
                at: from_ms(at),
                pair: (cause, decision),
                events: sums.events.unsigned_abs(),
                ok: sums.ok.unsigned_abs(),
                failed: sums.failed.unsigned_abs(),
                took_ms: sums.took_ms.unsigned_abs(),
                took: sums.took.unsigned_abs(),
                late: sums.late.unsigned_abs(),
                first_at: from_ms(first),
            })
            .collect();
        counts.sort_unstable_by_key(|count| (count.at, count.pair));
        counts
    }

    /// Forgets what was counted before `at`.
    pub fn forget_before(&mut self, at: DateTime<Utc>) {
        let until = to_ms(at);
        self.hours = self.hours.split_off(&until.div_euclid(HOUR_MS));
        if let Some(mut first) = self.hours.first_entry() {
            first.get_mut().retain(|row| row.minute >= until);
            if first.get().is_empty() {
                first.remove();
            }
        }
    }
}
