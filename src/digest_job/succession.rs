//! What becomes of the window that is open when config stops naming whom it is for: who takes its place tells it, or else the operator
//! is told of it. Pure.
//!
//! ```text
//!   a receiver of a digest is gone, one is new           the new one begins where the old one ended
//!   a digest is gone, one is new                         its receivers begin where the same receivers of the old one ended
//!   an owner is gone or new                              a new one begins where the owners of the same digest stand
//!   gone with nobody in its place, or nobody knows who   the operator is told
//! ```

use super::target::Target;
use crate::store::ledger::{Cover, Covers};
use chrono::{DateTime, Utc};
use std::collections::{BTreeMap, BTreeSet};

/// A digest and a receiver, whatever owners it stands for.
pub type Line = (String, String);

/// What is to be written after a change of config.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Succession {
    /// New targets that do not begin now, and where they begin.
    pub begun: Vec<(Target, Cover)>,
    /// Lines that another takes the place of: old and new.
    pub moved: Vec<(Line, Line)>,
    /// Covers whose windows go on elsewhere, by digest and receiver as in the ledger.
    pub ended: Vec<(String, String)>,
    /// Covers that go on when config names them again.
    pub left: Vec<(String, String)>,
    /// Covers of `left` that config names again.
    pub back: Vec<(String, String)>,
    /// What nobody tells.
    pub untold: Vec<Untold>,
}

/// What came since an instant and is told by no digest.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Untold {
    /// The line that is gone, or of which an owner is.
    pub line: Line,
    /// End of the last window that was told.
    pub since: DateTime<Utc>,
    /// Only events of workflows that have no owner: the line goes on for the other owners.
    pub without_owner: bool,
}

/// Covers of a line, by receiver as in the ledger.
type Rows<'a> = BTreeMap<&'a str, &'a Cover>;

struct Lines<'a> {
    /// Lines that config names.
    named: BTreeMap<Line, Vec<&'a Target>>,
    /// Lines that the ledger knows and that have not left.
    known: BTreeMap<Line, Rows<'a>>,
}

impl Succession {
    /// Compares what the ledger knows with what config names.
    pub fn find(covers: &Covers, targets: &[Target]) -> Self {
        let lines = Lines::new(covers, targets);
        let mut found = Self::default();
        for target in targets {
            let key = (target.digest.to_string(), target.key());
            if covers.get(&key).is_some_and(|cover| cover.left_at.is_some()) {
                found.back.push(key);
            }
        }
        for (line, rows) in &lines.known {
            if let Some(targets) = lines.named.get(line) {
                found.change_owners(line, rows, targets, covers);
            }
        }
        let heirs = lines.heirs();
        for (line, rows) in lines.gone() {
            match heirs.get(line) {
                Some(heir) => found.hand_over(line, rows, heir, &lines.named[*heir]),
                None => found.leave(line, rows),
            }
        }
        found
    }

    /// Whether there is nothing to do.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// Windows of owners are of the workflows that are theirs when it is composed, so that a workflow takes its events along.
    fn change_owners(&mut self, line: &Line, rows: &Rows<'_>, targets: &[&Target], covers: &Covers) {
        let Some(latest) = latest(rows) else { return };
        for target in targets {
            if !covers.contains_key(&(line.0.clone(), target.key())) {
                self.begun.push(((*target).clone(), latest.clone()));
            }
        }
        let named: BTreeSet<String> = targets.iter().map(|t| t.key()).collect();
        let gone: Vec<_> = rows.iter().filter(|(key, _)| !named.contains(**key)).collect();
        self.ended.extend(gone.iter().map(|(key, _)| (line.0.clone(), (**key).to_owned())));
        if let Some(since) = gone.iter().map(|(_, cover)| cover.until).min()
            && targets.iter().all(|t| t.owner.is_some())
        {
            self.untold.push(Untold { line: line.clone(), since, without_owner: true });
        }
    }

    fn hand_over(&mut self, line: &Line, rows: &Rows<'_>, heir: &Line, targets: &[&Target]) {
        let Some(latest) = latest(rows) else { return };
        self.moved.push((line.clone(), heir.clone()));
        self.ended.extend(rows.keys().map(|key| (line.0.clone(), (*key).to_owned())));
        self.begun.extend(targets.iter().map(|target| ((*target).clone(), latest.clone())));
    }

    fn leave(&mut self, line: &Line, rows: &Rows<'_>) {
        self.left.extend(rows.keys().map(|key| (line.0.clone(), (*key).to_owned())));
        if let Some(since) = rows.values().map(|cover| cover.until).min() {
            self.untold.push(Untold { line: line.clone(), since, without_owner: false });
        }
    }
}

impl<'a> Lines<'a> {
    fn new(covers: &'a Covers, targets: &'a [Target]) -> Self {
        let (mut named, mut known) = (BTreeMap::<Line, Vec<_>>::new(), BTreeMap::<Line, Rows<'_>>::new());
        let mut keys = BTreeSet::new();
        for target in targets {
            named.entry((target.digest.to_string(), target.receiver.to_string())).or_default().push(target);
            keys.insert((target.digest.to_string(), target.key()));
        }
        for (key, cover) in covers {
            if cover.left_at.is_none() || keys.contains(key) {
                let receiver = key.1.split_once(':').map_or(key.1.as_str(), |(receiver, _)| receiver);
                known.entry((key.0.clone(), receiver.to_owned())).or_default().insert(&key.1, cover);
            }
        }
        Self { named, known }
    }

    fn gone(&self) -> impl Iterator<Item = (&Line, &Rows<'a>)> {
        self.known.iter().filter(|(line, _)| !self.named.contains_key(*line))
    }

    fn fresh(&self) -> impl Iterator<Item = &Line> {
        self.named.keys().filter(|line| !self.known.contains_key(*line))
    }

    /// Who takes the place of lines that are gone, where there is no doubt.
    fn heirs(&self) -> BTreeMap<&Line, &Line> {
        let digests: BTreeSet<&str> = self.gone().map(|(line, _)| line.0.as_str()).collect();
        let receivers = digests.into_iter().filter_map(|digest| sole(self.gone_of(digest), self.fresh_of(digest)));
        receivers.chain(self.heirs_of_digest()).collect()
    }

    /// A digest with another name: each receiver takes its own place, and one that is new the place of the one that is gone.
    fn heirs_of_digest(&self) -> BTreeMap<&Line, &Line> {
        let named: BTreeSet<&str> = self.named.keys().map(|line| line.0.as_str()).collect();
        let known: BTreeSet<&str> = self.known.keys().map(|line| line.0.as_str()).collect();
        let Some((old, new)) = sole(known.difference(&named), named.difference(&known)) else { return BTreeMap::new() };
        let same = |line: &Line| self.fresh_of(new).find(|heir| heir.1 == line.1);
        let mut heirs: BTreeMap<_, _> = self.gone_of(old).filter_map(|line| Some((line, same(line)?))).collect();
        let is_free = |line: &&Line| !heirs.keys().chain(heirs.values()).any(|taken| taken == line);
        let rest = sole(self.gone_of(old).filter(is_free), self.fresh_of(new).filter(is_free));
        heirs.extend(rest);
        heirs
    }

    fn gone_of(&self, digest: &str) -> impl Iterator<Item = &Line> {
        self.gone().map(|(line, _)| line).filter(move |line| line.0 == digest)
    }

    fn fresh_of(&self, digest: &str) -> impl Iterator<Item = &Line> {
        self.fresh().filter(move |line| line.0 == digest)
    }
}

/// The cover that reaches furthest: what one line was told is not told again.
fn latest<'a>(rows: &Rows<'a>) -> Option<&'a Cover> {
    rows.values().copied().max_by_key(|cover| cover.until)
}

/// One of each, when there is no other.
fn sole<T>(mut one: impl Iterator<Item = T>, mut other: impl Iterator<Item = T>) -> Option<(T, T)> {
    let pair = (one.next()?, other.next()?);
    (one.next().is_none() && other.next().is_none()).then_some(pair)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::name::{DigestName, ReceiverName};
    use chrono::TimeDelta;

    /// Covers of (digest, receiver), each told up to its number of hours.
    fn covers(of: &[(&str, &str, i64)]) -> Covers {
        let cover = |hours| Cover {
            until: DateTime::UNIX_EPOCH + TimeDelta::hours(hours),
            schedule: String::new(),
            in_force_since: None,
            left_at: None,
        };
        of.iter()
            .map(|(digest, receiver, hours)| (((*digest).to_owned(), (*receiver).to_owned()), cover(*hours)))
            .collect()
    }

    fn targets(of: &[(&str, &str)]) -> Vec<Target> {
        let target = |(digest, key): &(&str, &str)| {
            let (receiver, owner) = key.split_once(':').map_or((*key, None), |(r, owner)| (r, Some(owner.to_owned())));
            Target { digest: DigestName::new(*digest), receiver: ReceiverName::new(receiver), owner }
        };
        of.iter().map(target).collect()
    }

    /// Who begins with whose hours.
    fn begun(found: &Succession) -> Vec<(String, i64)> {
        let hours = |cover: &Cover| (cover.until - DateTime::UNIX_EPOCH).num_hours();
        found
            .begun
            .iter()
            .map(|(target, cover)| (format!("{}/{}", target.digest, target.key()), hours(cover)))
            .collect()
    }

    #[test]
    fn a_first_start_a_new_receiver_and_no_change_need_nothing() {
        assert!(Succession::find(&Covers::new(), &targets(&[("daily", "ops")])).is_empty());
        let known = covers(&[("daily", "ops", 5)]);
        assert!(Succession::find(&known, &targets(&[("daily", "ops")])).is_empty());
        assert!(Succession::find(&known, &targets(&[("daily", "ops"), ("daily", "team")])).is_empty());
    }

    #[test]
    fn where_two_are_gone_or_two_are_new_nobody_takes_a_place() {
        let known = covers(&[("daily", "a", 5), ("daily", "b", 5), ("daily", "c", 5)]);
        let found = Succession::find(&known, &targets(&[("daily", "x"), ("daily", "c")]));
        assert_eq!((found.moved.len(), found.left.len(), found.untold.len()), (0, 2, 2));
        let found =
            Succession::find(&known, &targets(&[("daily", "x"), ("daily", "y"), ("daily", "b"), ("daily", "c")]));
        assert_eq!((found.moved.len(), found.left.len(), begun(&found)), (0, 1, vec![]));
    }

    #[test]
    fn a_digest_and_a_receiver_renamed_at_once_are_found() {
        let known = covers(&[("daily", "a", 5), ("daily", "b", 4), ("weekly", "a", 1)]);
        let found = Succession::find(&known, &targets(&[("morning", "a"), ("morning", "x"), ("weekly", "a")]));
        assert_eq!(begun(&found), [("morning/a".to_owned(), 5), ("morning/x".to_owned(), 4)]);
        assert!(found.untold.is_empty(), "{found:?}");
    }

    #[test]
    fn a_receiver_of_owners_with_another_name_begins_where_the_last_of_them_ended() {
        let known = covers(&[("daily", "owner:a@x", 5), ("daily", "owner:b@x", 4)]);
        let found = Succession::find(&known, &targets(&[("daily", "people:a@x"), ("daily", "people:c@x")]));
        assert_eq!(begun(&found), [("daily/people:a@x".to_owned(), 5), ("daily/people:c@x".to_owned(), 5)]);
        assert_eq!((found.ended.len(), found.untold.len()), (2, 0));
    }

    #[test]
    fn one_that_has_left_is_told_of_once_takes_no_part_and_comes_back() {
        let mut known = covers(&[("daily", "a", 5), ("daily", "b", 3)]);
        known.get_mut(&("daily".to_owned(), "b".to_owned())).unwrap().left_at = Some(DateTime::UNIX_EPOCH);
        assert!(Succession::find(&known, &targets(&[("daily", "a")])).is_empty());
        assert!(Succession::find(&known, &targets(&[("daily", "a"), ("daily", "x")])).is_empty());
        let back = Succession { back: vec![("daily".to_owned(), "b".to_owned())], ..Succession::default() };
        assert_eq!(Succession::find(&known, &targets(&[("daily", "a"), ("daily", "b")])), back);
    }
}
