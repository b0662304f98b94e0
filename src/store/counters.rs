//! Counters of events, by minute of arrival, cause and decision.

use super::bulk::Bulk;
use super::{StoreError, WriteTx};

/// Sums of one counter row.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sums {
    /// Events.
    pub events: i64,
    /// Good runs reported.
    pub ok: i64,
    /// Failed runs reported.
    pub failed: i64,
    /// Time to recover, ms, summed.
    pub took_ms: i64,
    /// Recoveries that said how long they took.
    pub took: i64,
    /// Events that happened in an earlier hour than they arrived.
    pub late: i64,
}

impl Sums {
    /// Adds what else was counted.
    pub fn add(&mut self, other: Self) {
        self.events += other.events;
        self.ok += other.ok;
        self.failed += other.failed;
        self.took_ms += other.took_ms;
        self.took += other.took;
        self.late += other.late;
    }
}

/// Key and sums of a counter row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CounterRow {
    /// Start of the minute of arrival, ms.
    pub minute: i64,
    /// What is counted.
    pub cause_id: i64,
    /// For whom.
    pub decision_id: i64,
    /// How many.
    pub sums: Sums,
}

/// What comes after its digest was told belongs to the next one: each event is in exactly one window.
static ADD_COUNTERS: Bulk = Bulk::new(
    "INSERT INTO counters (minute, cause_id, decision_id, event_count, ok_count, failed_count, took_ms, took_count, late_count) \
     SELECT max(column1, (SELECT coalesce(max(covered_until), 0) / 60000 * 60000 FROM digest_cover)), \
     column2, column3, column4, column5, column6, column7, column8, column9 FROM (VALUES",
    9,
    ") WHERE true ON CONFLICT (minute, cause_id, decision_id) DO UPDATE SET event_count = event_count + excluded.event_count, \
     ok_count = ok_count + excluded.ok_count, failed_count = failed_count + excluded.failed_count, \
     took_ms = took_ms + excluded.took_ms, took_count = took_count + excluded.took_count, late_count = late_count + excluded.late_count",
);

/// Adds to the counters, of a later minute where theirs is told already.
pub async fn add_counters(tx: &mut WriteTx, rows: &[CounterRow]) -> Result<(), StoreError> {
    if let Some(played) = tx.played() {
        played.counters.add(rows);
        return Ok(());
    }
    ADD_COUNTERS
        .execute(tx, rows, |query, row| {
            query
                .bind(row.minute)
                .bind(row.cause_id)
                .bind(row.decision_id)
                .bind(row.sums.events)
                .bind(row.sums.ok)
                .bind(row.sums.failed)
                .bind(row.sums.took_ms)
                .bind(row.sums.took)
                .bind(row.sums.late)
        })
        .await?;
    Ok(())
}
