//! The table `dead_letters` of a store that is played into, and what is counted of it. Rows are numbered from 1.

use crate::digest::Window;
use crate::store::catalogue::{Oldest, OpenLetters, Pair};
use crate::store::digest_input::{LetterChanges, LetterShift};
use crate::store::key::Key;
use crate::store::letters::{LetterRow, ResolutionRow};
use crate::store::to_the_ms;
use chrono::{DateTime, TimeDelta, Utc};
use std::collections::{BTreeMap, BTreeSet, HashMap};

/// Dead letters.
#[derive(Debug, Default)]
pub struct LetterTable {
    rows: Vec<Row>,
    open: HashMap<Key, i64>,
    by_arrival: BTreeSet<(DateTime<Utc>, i64)>,
    by_resolution: BTreeSet<(DateTime<Utc>, i64)>,
    groups: HashMap<Pair, Group>,
    by_version: BTreeMap<i64, Pair>,
    version: i64,
    of_cause: HashMap<i64, u64>,
    of_incident: HashMap<i64, u64>,
    /// Letters that were opened or resolved since somebody asked.
    news: Vec<News>,
}

/// What became of a letter, as it was then.
#[derive(Debug)]
pub(super) struct News {
    pub at: DateTime<Utc>,
    pub step: LetterStep,
    pub cause: i64,
    pub item: Option<String>,
    pub text: Option<String>,
    pub incident_id: Option<i64>,
}

/// What became of a dead letter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LetterStep {
    /// It was opened.
    Opened,
    /// It was resolved.
    Resolved,
}

/// What is kept of a dead letter: what a play can be asked for.
#[derive(Debug)]
pub(super) struct Row {
    pub key: Key,
    pub pair: Pair,
    pub item: Option<String>,
    pub arrived_at: DateTime<Utc>,
    pub resolved_at: Option<DateTime<Utc>>,
    /// The one that it failed for last.
    pub incident_id: Option<i64>,
    incidents: Vec<i64>,
    redrive_count: i64,
}

/// Open letters of one cause and decision.
#[derive(Debug, Default)]
struct Group {
    open: BTreeSet<(DateTime<Utc>, i64)>,
    version: i64,
}

/// A dead letter that was resolved: its cause, and when.
pub type Resolved = (i64, DateTime<Utc>);

impl LetterTable {
    /// Opens a letter, or repeats the open one of its key.
    pub fn open(&mut self, new: &LetterRow) {
        let arrived_at = to_the_ms(new.arrived_at);
        let known = self.open.get(&new.key).copied();
        let id = known.unwrap_or_else(|| {
            self.rows.push(Row {
                key: new.key,
                pair: (new.cause_id, new.decision_id),
                item: new.item.clone(),
                arrived_at,
                resolved_at: None,
                incident_id: None,
                incidents: Vec::new(),
                redrive_count: 0,
            });
            i64::try_from(self.rows.len()).unwrap_or(i64::MAX)
        });
        if known.is_some() {
            self.count_out(id);
        } else {
            self.open.insert(new.key, id);
            self.by_arrival.insert((arrived_at, id));
            self.news.push(News {
                at: arrived_at,
                step: LetterStep::Opened,
                cause: new.cause_id,
                item: new.item.clone(),
                text: new.error_message.clone(),
                incident_id: new.incident_id,
            });
        }
        if let Some(row) = self.row_mut(id) {
            row.pair = (new.cause_id, new.decision_id);
            row.incident_id = new.incident_id.or(row.incident_id);
            row.redrive_count = row.redrive_count.max(new.redrive_count);
        }
        self.count_in(id);
    }

    /// The open letter of a key is of an incident. True when that is new.
    pub fn join(&mut self, key: &Key, incident: i64) -> bool {
        let Some(row) = self.open.get(key).copied().and_then(|id| self.row_mut(id)) else { return false };
        if row.incidents.contains(&incident) {
            return false;
        }
        row.incidents.push(incident);
        *self.of_incident.entry(incident).or_default() += 1;
        true
    }

    /// Resolves the open letter of a key; none when there is no such letter.
    pub fn resolve(&mut self, resolution: &ResolutionRow) -> Option<Resolved> {
        let id = *self.open.get(&resolution.key)?;
        self.resolve_row(id, resolution.note.as_deref(), resolution.at)
    }

    /// Resolves an open letter by its row.
    pub fn resolve_row(&mut self, id: i64, note: Option<&str>, at: DateTime<Utc>) -> Option<Resolved> {
        let row = self.row(id).filter(|row| row.resolved_at.is_none())?;
        let (key, cause, at) = (row.key, row.pair.0, to_the_ms(at).max(row.arrived_at));
        self.count_out(id);
        self.open.remove(&key);
        self.by_resolution.insert((at, id));
        let row = self.row_mut(id)?;
        row.resolved_at = Some(at);
        let row_incidents = row.incidents.clone();
        let news = News {
            at,
            step: LetterStep::Resolved,
            cause,
            item: row.item.clone(),
            text: note.map(str::to_owned),
            incident_id: row.incident_id,
        };
        self.news.push(news);
        for incident in row_incidents {
            self.of_incident.entry(incident).and_modify(|count| *count = count.saturating_sub(1));
        }
        Some((cause, at))
    }

    fn count_in(&mut self, id: i64) {
        let Some((pair, arrived_at)) = self.row(id).map(|row| (row.pair, row.arrived_at)) else { return };
        self.groups.entry(pair).or_default().open.insert((arrived_at, id));
        self.note_group(pair);
        *self.of_cause.entry(pair.0).or_default() += 1;
    }

    fn count_out(&mut self, id: i64) {
        let Some((pair, arrived_at)) = self.row(id).map(|row| (row.pair, row.arrived_at)) else { return };
        if let Some(group) = self.groups.get_mut(&pair) {
            group.open.remove(&(arrived_at, id));
        }
        self.note_group(pair);
        self.of_cause.entry(pair.0).and_modify(|count| *count = count.saturating_sub(1));
    }

    /// A group has changed.
    fn note_group(&mut self, pair: Pair) {
        self.version += 1;
        let group = self.groups.entry(pair).or_default();
        self.by_version.remove(&group.version);
        group.version = self.version;
        self.by_version.insert(group.version, pair);
    }

    pub(super) fn row(&self, id: i64) -> Option<&Row> {
        self.rows.get(usize::try_from(id).ok()?.checked_sub(1)?)
    }

    fn row_mut(&mut self, id: i64) -> Option<&mut Row> {
        self.rows.get_mut(usize::try_from(id).ok()?.checked_sub(1)?)
    }

    /// How many letters of a cause are open.
    pub(super) fn open_of_cause(&self, cause: i64) -> u64 {
        self.of_cause.get(&cause).copied().unwrap_or(0)
    }

    /// How many letters of an incident are open.
    pub fn open_of_incident(&self, incident: i64) -> u64 {
        self.of_incident.get(&incident).copied().unwrap_or(0)
    }

    /// Causes and decisions whose open letters have changed since a version, each with what is open now; and the version now.
    pub fn changed_groups(&self, since: i64) -> (i64, Vec<(Pair, Option<OpenLetters>)>) {
        let open = |pair: &Pair| {
            let group = self.groups.get(pair)?;
            let (at, id) = *group.open.first()?;
            let oldest = Oldest { at, id, item: self.row(id)?.item.clone() };
            Some(OpenLetters { count: group.open.len() as u64, oldest })
        };
        let changed = self.by_version.range(since + 1..).map(|(_, pair)| (*pair, open(pair)));
        (self.version, changed.collect())
    }

    fn arrived(&self, from: DateTime<Utc>, until: DateTime<Utc>) -> impl Iterator<Item = (DateTime<Utc>, i64, &Row)> {
        self.by_arrival.range((from, 0)..(until, 0)).filter_map(|(at, id)| Some((*at, *id, self.row(*id)?)))
    }

    fn resolved(&self, from: DateTime<Utc>, until: DateTime<Utc>) -> impl Iterator<Item = (DateTime<Utc>, i64, &Row)> {
        self.by_resolution.range((from, 0)..(until, 0)).filter_map(|(at, id)| Some((*at, *id, self.row(*id)?)))
    }

    /// Letters that came in a window, and those that were resolved in it, by bucket, cause and decision.
    pub fn lists(&self, window: Window, bucket: TimeDelta) -> (Vec<LetterChanges>, Vec<LetterChanges>) {
        let count = |rows: &mut dyn Iterator<Item = (DateTime<Utc>, i64, &Row)>| {
            let mut sums: BTreeMap<(DateTime<Utc>, Pair), (u64, u64)> = BTreeMap::new();
            for (at, _, row) in rows {
                let nth = (at - window.start_at).num_milliseconds() / bucket.num_milliseconds().max(1);
                let bucket_at = window.start_at + TimeDelta::milliseconds(nth * bucket.num_milliseconds());
                let sum = sums.entry((bucket_at, row.pair)).or_default();
                sum.0 += 1;
                sum.1 += u64::from(row.redrive_count > 0);
            }
            let change = |((at, pair), (count, redriven_count))| LetterChanges { at, pair, count, redriven_count };
            sums.into_iter().map(change).collect()
        };
        let (from, until) = (window.start_at, window.end_at);
        (count(&mut self.arrived(from, until)), count(&mut self.resolved(from, until)))
    }

    /// How the letters that are open now differ from those that were open at the end of a window.
    pub fn shift(&self, window: Window) -> LetterShift {
        let mut shift = LetterShift::default();
        for (at, _, row) in self.arrived(window.start_at, DateTime::<Utc>::MAX_UTC) {
            if row.resolved_at.is_none() {
                let counts = if at >= window.end_at { &mut shift.later } else { &mut shift.fresh };
                *counts.entry(row.pair).or_default() += 1;
            }
        }
        let mut gone: Vec<(Pair, Oldest)> = self
            .resolved(window.end_at, DateTime::<Utc>::MAX_UTC)
            .filter(|(_, _, row)| row.arrived_at < window.end_at)
            .map(|(_, id, row)| (row.pair, Oldest { at: row.arrived_at, id, item: row.item.clone() }))
            .collect();
        gone.sort_by_key(|(_, letter)| letter.id);
        shift.gone = gone;
        shift
    }

    /// The newest letters that arrived before `until`, newest first.
    pub(super) fn newest(&self, until: DateTime<Utc>) -> impl Iterator<Item = &Row> {
        self.by_arrival.range(..(until, 0)).rev().filter_map(|(_, id)| self.row(*id))
    }

    /// Takes the letters that were opened or resolved since the last call, in order.
    pub(super) fn take_news(&mut self) -> Vec<News> {
        std::mem::take(&mut self.news)
    }
}
