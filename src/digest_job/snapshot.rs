//! What the digests of one look are read from: each window is read once, whoever its receivers are. Nothing is decided or written here.

use super::target::mailbox;
use crate::config::Config;
use crate::digest::plan::Window;
use crate::digest::{Fate, UnreadableLine};
use crate::event::Fingerprint;
use crate::live::Live;
use crate::name::WorkflowName;
use crate::silence::Silence;
use crate::store::catalogue::{Catalogue, Pair};
use crate::store::digest_input::{self as read, LetterShift, Lists, OpenIncident};
use crate::store::incidents::Known;
use crate::store::{ReadConn, StoreError, silences};
use chrono::{DateTime, Utc};
use foldhash::HashSet;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, OnceLock};

/// What the store says, for some windows.
pub struct Snapshot {
    pub(super) last_heard: BTreeMap<WorkflowName, DateTime<Utc>>,
    pub(super) windows: BTreeMap<Window, WindowSnapshot>,
    /// Silences that hid something and that config does not know.
    pub(super) silences: BTreeMap<String, Silence>,
    /// Workflows by the mailbox of their owner, once somebody has asked.
    owned: OnceLock<BTreeMap<String, Arc<HashSet<WorkflowName>>>>,
}

/// What the store says about one window.
pub(super) struct WindowSnapshot {
    pub window: Window,
    pub lists: Lists,
    pub shift: LetterShift,
    pub incidents: Vec<OpenIncident>,
    pub regressed: BTreeMap<Fingerprint, DateTime<Utc>>,
    pub unreadable: Vec<UnreadableLine>,
    /// None when Matins did not run then.
    pub previous: Option<PreviousSnapshot>,
}

/// What the store says about the window of the same length before.
pub(super) struct PreviousSnapshot {
    pub window: Window,
    pub lists: Lists,
}

impl Snapshot {
    /// Reads `windows`, and brings the catalogue up to date with them.
    ///
    /// # Errors
    /// When the store can't be read; the catalogue is then empty.
    pub async fn read(
        conn: &mut ReadConn,
        (catalogue, known): (&mut Catalogue, &mut Known),
        live: &Live,
        windows: &BTreeSet<Window>,
    ) -> Result<Self, StoreError> {
        catalogue.trim();
        let read = Self::try_read(conn, (catalogue, known), live, windows).await;
        if read.is_err() {
            *catalogue = Catalogue::default();
        }
        read
    }

    async fn try_read(
        conn: &mut ReadConn,
        (catalogue, known): (&mut Catalogue, &mut Known),
        live: &Live,
        windows: &BTreeSet<Window>,
    ) -> Result<Self, StoreError> {
        let (last_heard, first_minute) = read::hearing(conn).await?;
        catalogue.look_at_letters(conn).await?;
        let mut found = BTreeMap::new();
        for window in windows {
            let snapshot = read_window(conn, known, *window, first_minute).await?;
            catalogue.learn(conn, snapshot.pairs()).await?;
            let paged = snapshot.incidents.iter().flat_map(|i| i.decisions.iter().copied());
            catalogue.learn_decisions(conn, paged).await?;
            found.insert(*window, snapshot);
        }
        catalogue.learn_infos(conn).await?;
        let silences = read_silences(conn, catalogue, live, &found).await?;
        Ok(Self { last_heard, windows: found, silences, owned: OnceLock::new() })
    }

    /// The workflows of the owner with this mailbox, of those that were ever heard.
    pub(super) fn owned_by(&self, config: &Config, owner: &str) -> Arc<HashSet<WorkflowName>> {
        let owned = self.owned.get_or_init(|| owned(config, self.last_heard.keys()));
        owned.get(&mailbox(owner)).cloned().unwrap_or_default()
    }
}

impl WindowSnapshot {
    fn pairs(&self) -> impl Iterator<Item = Pair> {
        let lists = std::iter::once(&self.lists).chain(self.previous.iter().map(|p| &p.lists));
        let of_lists = lists.flat_map(|l| {
            let changes = l.opened.iter().chain(&l.resolved).map(|c| c.pair);
            l.counts.iter().map(|c| c.pair).chain(changes)
        });
        of_lists.chain(self.shift.gone.iter().map(|(pair, _)| *pair))
    }
}

async fn read_window(
    conn: &mut ReadConn,
    known: &mut Known,
    window: Window,
    first_minute: Option<DateTime<Utc>>,
) -> Result<WindowSnapshot, StoreError> {
    let length = window.end_at - window.start_at;
    let before = Window { start_at: window.start_at - length, end_at: window.start_at };
    let happened = read::happened(conn, window, before).await?;
    let ran_before = first_minute.is_some_and(|first| first < window.start_at);
    let with_before = Window { start_at: before.start_at, ..window };
    Ok(WindowSnapshot {
        window,
        lists: happened.lists,
        shift: happened.shift,
        incidents: read::incidents(conn, known, with_before).await?,
        regressed: happened.regressed,
        unreadable: happened.unreadable,
        previous: ran_before.then_some(PreviousSnapshot { window: before, lists: happened.before }),
    })
}

/// Silences that hid something in `windows` and were given by hand: config may have forgotten them.
async fn read_silences(
    conn: &mut ReadConn,
    catalogue: &Catalogue,
    live: &Live,
    windows: &BTreeMap<Window, WindowSnapshot>,
) -> Result<BTreeMap<String, Silence>, StoreError> {
    let mut found = BTreeMap::new();
    let decisions: BTreeSet<i64> = windows.values().flat_map(|w| &w.lists.counts).map(|c| c.pair.1).collect();
    for decision in decisions {
        let Fate::Silenced(id) = catalogue.fate(decision)? else { continue };
        if found.contains_key(id) || live.policy.silences.iter().any(|silence| silence.id == *id) {
            continue;
        }
        if let Some(silence) = silences::find(&mut **conn, id).await? {
            found.insert(id.clone(), silence);
        }
    }
    Ok(found)
}

fn owned<'a>(
    config: &Config,
    known: impl Iterator<Item = &'a WorkflowName>,
) -> BTreeMap<String, Arc<HashSet<WorkflowName>>> {
    let mut owned: BTreeMap<String, HashSet<WorkflowName>> = BTreeMap::new();
    // Owners are few and written alike, so each way of writing one is read once.
    let mut mailboxes: BTreeMap<&str, String> = BTreeMap::new();
    for name in known {
        if let Some(owner) = config.workflows.find(name).and_then(|w| w.owner.as_deref()) {
            let key = mailboxes.entry(owner).or_insert_with(|| mailbox(owner));
            owned.entry(key.clone()).or_default().insert(name.clone());
        }
    }
    owned.into_iter().map(|(mailbox, workflows)| (mailbox, Arc::new(workflows))).collect()
}
