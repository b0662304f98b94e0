//! Silences that people asked for: kept, listed, ended. Those that are over stay, because digests name what they hid.
//! Silences of config are not here. What one hides is `silence`'s to say, what one may hide `web`'s.

use super::{StoreError, from_ms, to_ms};
use crate::matcher::{Glob, MatchKey, Matcher};
use crate::silence::Silence;
use chrono::{DateTime, Utc};
use serde_json::Value;
use sqlx::sqlite::SqliteRow;
use sqlx::{Row, SqliteConnection, SqliteExecutor, SqlitePool};
use std::collections::BTreeMap;

/// A silence to keep.
#[derive(Clone, Debug)]
pub struct NewSilence {
    /// What it hides, as given: `{"workflow": ["pay"]}`.
    pub matcher: Value,
    /// When it begins.
    pub since: DateTime<Utc>,
    /// When it ends.
    pub until: DateTime<Utc>,
    /// Why.
    pub reason: String,
    /// Who asked for it.
    pub by: String,
    /// Whether it may hide protected workflows.
    pub protected: bool,
}

/// A kept silence.
#[derive(Clone, Debug)]
pub struct StoredSilence {
    /// Its row; `S-<row>` is its id.
    pub id: i64,
    /// What was asked for.
    pub new: NewSilence,
}

/// Reads a match table in JSON: keys of `match` to a glob or a list of globs.
///
/// # Errors
/// A sentence that says what is wrong with it.
pub fn read_matcher(table: &Value) -> Result<Matcher, String> {
    let keys = table.as_object().ok_or("match is a table, such as {\"workflow\": [\"pay\"]}")?;
    let mut read = BTreeMap::new();
    for (name, globs) in keys {
        let key = MatchKey::parse(name).ok_or_else(|| {
            format!("unknown key {name:?} in match: use workflow, domain, class, step, downstream or label.<key>")
        })?;
        let texts = match globs {
            Value::String(text) => Some(vec![text.as_str()]),
            Value::Array(list) => list.iter().map(Value::as_str).collect(),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::Object(_) => None,
        };
        let texts = texts.filter(|t| !t.is_empty()).ok_or_else(|| format!("match.{name} is a list of globs"))?;
        read.insert(key, texts.into_iter().map(Glob::new).collect());
    }
    Ok(Matcher::new(read))
}

impl StoredSilence {
    /// As decisions use it.
    ///
    /// # Errors
    /// When what is stored does not read as a match.
    pub fn read(&self) -> Result<Silence, StoreError> {
        let matcher =
            read_matcher(&self.new.matcher).map_err(|why| StoreError::Corrupt { what: "silences.matcher", why })?;
        Ok(Silence {
            id: format!("S-{}", self.id),
            matcher,
            since: self.new.since,
            until: self.new.until,
            reason: self.new.reason.clone(),
            by: self.new.by.clone(),
            protected: self.new.protected,
        })
    }
}

/// Keeps a silence. Gives its row.
///
/// # Errors
/// When the database refuses.
pub async fn insert(tx: &mut SqliteConnection, new: &NewSilence) -> Result<i64, StoreError> {
    let (id,): (i64,) = sqlx::query_as(
        "INSERT INTO silences (matcher, since, until, reason, by, protected) VALUES (?, ?, ?, ?, ?, ?) RETURNING id",
    )
    .bind(new.matcher.to_string())
    .bind(to_ms(new.since))
    .bind(to_ms(new.until))
    .bind(&new.reason)
    .bind(&new.by)
    .bind(new.protected)
    .fetch_one(tx)
    .await?;
    Ok(id)
}

/// Ends a silence at `now`; one that is over already stays as it is.
///
/// # Errors
/// When the database refuses.
pub async fn expire(tx: &mut SqliteConnection, id: i64, now: DateTime<Utc>) -> Result<(), StoreError> {
    sqlx::query("UPDATE silences SET until = ?2 WHERE id = ?1 AND until > ?2")
        .bind(id)
        .bind(to_ms(now))
        .execute(tx)
        .await?;
    Ok(())
}

const SILENCE: &str = "SELECT id, matcher, since, until, reason, by, protected FROM silences";

fn silence(row: &SqliteRow) -> Result<StoredSilence, StoreError> {
    let matcher: String = row.get(1);
    let matcher = serde_json::from_str(&matcher)
        .map_err(|e| StoreError::Corrupt { what: "silences.matcher", why: e.to_string() })?;
    let new = NewSilence {
        matcher,
        since: from_ms(row.get(2)),
        until: from_ms(row.get(3)),
        reason: row.get(4),
        by: row.get(5),
        protected: row.get(6),
    };
    Ok(StoredSilence { id: row.get(0), new })
}

/// Silences that are not over at `now`.
///
/// # Errors
/// When the database refuses or a row can't be read.
pub async fn active(pool: &SqlitePool, now: DateTime<Utc>) -> Result<Vec<Silence>, StoreError> {
    let sql = format!("{SILENCE} WHERE until > ? ORDER BY id");
    let rows = sqlx::query(sqlx::AssertSqlSafe(sql)).bind(to_ms(now)).fetch_all(pool).await?;
    rows.iter().map(|row| silence(row)?.read()).collect()
}

/// Silences with a row number below `before`, newest first, at most `limit`; those that are over too.
///
/// # Errors
/// When the database refuses or a row can't be read.
pub async fn list(pool: &SqlitePool, before: i64, limit: i64) -> Result<Vec<StoredSilence>, StoreError> {
    let sql = format!("{SILENCE} WHERE id < ? ORDER BY id DESC LIMIT ?");
    let rows = sqlx::query(sqlx::AssertSqlSafe(sql)).bind(before).bind(limit).fetch_all(pool).await?;
    rows.iter().map(silence).collect()
}

/// One silence.
///
/// # Errors
/// When the database refuses or the row can't be read.
pub async fn get(executor: impl SqliteExecutor<'_>, id: i64) -> Result<Option<StoredSilence>, StoreError> {
    let sql = format!("{SILENCE} WHERE id = ?");
    let row = sqlx::query(sqlx::AssertSqlSafe(sql)).bind(id).fetch_optional(executor).await?;
    row.as_ref().map(silence).transpose()
}

/// The silence `S-<row>`, over or not; none for the id of another kind.
///
/// # Errors
/// When the database refuses or the row can't be read.
pub async fn find(executor: impl SqliteExecutor<'_>, id: &str) -> Result<Option<Silence>, StoreError> {
    let Some(row) = id.strip_prefix("S-").and_then(|row| row.parse().ok()) else { return Ok(None) };
    get(executor, row).await?.map(|silence| silence.read()).transpose()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::Store;
    use chrono::TimeDelta;
    use serde_json::json;

    #[test]
    fn a_match_is_refused_in_words() {
        for (table, word) in [
            (json!("pay"), "table"),
            (json!({"flow": ["pay"]}), "\"flow\""),
            (json!({"workflow": 5}), "match.workflow"),
            (json!({"workflow": []}), "match.workflow"),
            (json!({"workflow": ["pay", 5]}), "match.workflow"),
        ] {
            let why = read_matcher(&table).expect_err("a refusal");
            assert!(why.contains(word), "{why}");
        }
        assert!(read_matcher(&json!({"workflow": "pay", "label.team": ["*"]})).is_ok());
    }

    #[tokio::test]
    async fn an_expired_silence_is_kept_but_not_active() {
        let store = Store::open("sqlite::memory:").await.expect("a store");
        let now = DateTime::from_timestamp(1_800_000_000, 0).expect("an instant");
        let new = NewSilence {
            matcher: json!({"workflow": ["report"]}),
            since: now,
            until: now + TimeDelta::hours(1),
            reason: "upgrade".to_owned(),
            by: "asha".to_owned(),
            protected: false,
        };
        let mut tx = store.begin().await.expect("a transaction");
        let id = insert(&mut tx, &new).await.expect("an insert");
        tx.commit().await.expect("a commit");
        let active_now = active(store.reader(), now).await.expect("a list");
        assert_eq!(active_now.iter().map(|s| s.id.as_str()).collect::<Vec<_>>(), ["S-1"]);
        let mut tx = store.begin().await.expect("a transaction");
        expire(&mut tx, id, now + TimeDelta::minutes(1)).await.expect("an update");
        expire(&mut tx, id, now + TimeDelta::minutes(2)).await.expect("an update");
        tx.commit().await.expect("a commit");
        assert!(active(store.reader(), now + TimeDelta::minutes(1)).await.expect("a list").is_empty());
        let kept = get(store.reader(), id).await.expect("a row").expect("a silence");
        assert_eq!((kept.new.until, kept.new.reason.as_str()), (now + TimeDelta::minutes(1), "upgrade"));
    }
}
