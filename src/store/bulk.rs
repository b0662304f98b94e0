//! Multi-row inserts. A statement has one of a few fixed row counts, so that all of them stay prepared.

use sqlx::query::Query;
use sqlx::sqlite::SqliteArguments;
use sqlx::{Sqlite, SqliteConnection};
use std::sync::OnceLock;

/// Row counts of the prepared statements, largest first.
const SIZES: [usize; 34] = sizes();

/// Every count up to 32, because batches are often small, and two larger ones.
const fn sizes() -> [usize; 34] {
    let mut sizes = [128; 34];
    sizes[1] = 64;
    let mut at = 2;
    while at < sizes.len() {
        sizes[at] = 34 - at;
        at += 1;
    }
    sizes
}

/// One kind of multi-row insert.
pub struct Bulk {
    /// `INSERT INTO t (a, b) VALUES`
    head: &'static str,
    /// Columns of a row.
    columns: usize,
    /// What follows the rows: `ON CONFLICT …`.
    tail: &'static str,
    statements: [OnceLock<&'static str>; SIZES.len()],
}

/// A statement with its values.
pub type Bound<'q> = Query<'q, Sqlite, SqliteArguments>;

impl Bulk {
    /// A statement that is written out when it is first used.
    pub const fn new(head: &'static str, columns: usize, tail: &'static str) -> Self {
        Self { head, columns, tail, statements: [const { OnceLock::new() }; SIZES.len()] }
    }

    fn statement(&self, index: usize) -> &'static str {
        self.statements[index].get_or_init(|| {
            let row = format!("({})", vec!["?"; self.columns].join(", "));
            let rows = vec![row; SIZES[index]].join(", ");
            // A few statements per kind, kept for the life of the process.
            Box::leak(format!("{} {rows} {}", self.head, self.tail).into_boxed_str())
        })
    }

    /// Inserts all `rows` and gives how many were inserted or updated; `bind` adds one row's values in column order.
    pub async fn execute<T>(
        &self,
        connection: &mut SqliteConnection,
        rows: &[T],
        bind: impl for<'q> Fn(Bound<'q>, &'q T) -> Bound<'q>,
    ) -> Result<u64, sqlx::Error> {
        let mut affected = 0;
        for (index, chunk) in chunks(rows) {
            let query = chunk.iter().fold(sqlx::query(self.statement(index)), &bind);
            affected += query.execute(&mut *connection).await?.rows_affected();
        }
        Ok(affected)
    }
}

/// Cuts `rows` into pieces for which there is a statement; each with the index of its size.
fn chunks<T>(rows: &[T]) -> Vec<(usize, &[T])> {
    let mut pieces = Vec::new();
    let mut rest = rows;
    for (index, size) in SIZES.into_iter().enumerate() {
        while rest.len() >= size {
            let (piece, after) = rest.split_at(size);
            pieces.push((index, piece));
            rest = after;
        }
    }
    pieces
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_row_is_in_one_piece_and_in_order() {
        for count in [0, 1, 4, 5, 99, 128, 131, 1000] {
            let rows: Vec<usize> = (0..count).collect();
            let pieces = chunks(&rows);
            assert!(pieces.iter().all(|(index, piece)| piece.len() == SIZES[*index]));
            let joined: Vec<usize> = pieces.iter().flat_map(|(_, piece)| piece.iter().copied()).collect();
            assert_eq!(joined, rows);
        }
    }
}
