//! Tests: what the ledger of digests promises, over random schedules, hours, zones and downtimes, with the intake and the tick of the
//! service on a store in memory.

use super::*;
use crate::calendar::{Calendar, Schedule};
use crate::config::{self, DigestSettings};
use crate::digest::DigestCounts;
use crate::ingest::commit::Redelivered;
use crate::ingest::{DecodeOutcome, Inbound};
use crate::render::Parts;
use crate::store::ledger::{self, DigestRow};
use crate::{app, digest_job};
use chrono::TimeDelta;
use proptest::prelude::*;
use serde_json::json;
use std::collections::BTreeMap;

/// Two days before the clocks of Berlin go forward.
const START: &str = "2026-03-27T05:00:00Z";
const HOURS: u32 = 120;

#[derive(Clone, Debug)]
struct Plan {
    cron: &'static str,
    zone: &'static str,
    hours: Option<&'static str>,
    max_hold: Option<&'static str>,
    empty: &'static str,
    /// Seconds after the start at which events arrive, in order.
    arrivals: Vec<u32>,
    /// First and last second of each time at which the service is away.
    away: Vec<(u32, u32)>,
    /// Seconds between two ticks.
    tick_every: u32,
}

fn plans() -> impl Strategy<Value = Plan> {
    let seconds = || 0..HOURS * 3_600;
    let shape = (
        prop::sample::select(vec![
            "0 * * * *",
            "*/20 * * * *",
            "0 10 * * *",
            "30 2 * * *",
            "0 9 * * MON",
            "15 0-6/2 * * *",
        ]),
        prop::sample::select(vec!["UTC", "Europe/Berlin", "Asia/Kolkata", "America/New_York", "Australia/Lord_Howe"]),
        prop::option::of(prop::sample::select(vec!["09:00-17:00", "22:00-03:30", "00:00-24:00"])),
        prop::option::of(prop::sample::select(vec!["1h", "30h"])),
        prop::sample::select(vec!["skip", "send"]),
    );
    let events = prop::collection::vec(seconds(), 1..60);
    let away = prop::collection::vec((seconds(), 60_u32..100_000), 0..3);
    (shape, events, away, 240_u32..1_500).prop_map(
        |((cron, zone, hours, max_hold, empty), mut arrivals, away, tick_every)| {
            arrivals.sort_unstable();
            let away = away.into_iter().map(|(from, length)| (from, from + length)).collect();
            Plan { cron, zone, hours, max_hold, empty, arrivals, away, tick_every }
        },
    )
}

impl Plan {
    fn config(&self) -> String {
        let calendar = self.hours.map_or(String::new(), |hours| {
            format!("[calendars.office]\ntimezone = \"{}\"\nhours = {{ mon-fri = [\"{hours}\"] }}\n", self.zone)
        });
        let when = match self.hours {
            Some(_) => "calendar = \"office\"".to_owned(),
            None => format!("timezone = \"{}\"", self.zone),
        };
        let hold = self.max_hold.filter(|_| self.hours.is_some());
        let hold = hold.map_or(String::new(), |hold| format!("max_hold = \"{hold}\"\n"));
        format!(
            "[receivers.oncall]\nkind = \"file\"\ndir = \"out\"\nfallback = \"ops\"\n[receivers.ops]\nkind = \"file\"\ndir = \"out\"\n\
             {calendar}[digests.daily]\ncron = \"{}\"\nempty = \"{}\"\n{when}\n{hold}\
             [[workflows]]\nname = \"pay\"\ndomain = \"money\"\n\
             [[routes]]\nname = \"protected\"\nmatch = {{ domain = [\"money\"] }}\npage = [\"oncall\"]\ncontinue = true\n\
             [[routes]]\nname = \"all\"\nmatch = {{}}\ndigest.daily = [\"ops\"]\n",
            self.cron, self.empty,
        )
    }

    fn at(&self, second: u32) -> DateTime<Utc> {
        START.parse::<DateTime<Utc>>().unwrap() + TimeDelta::seconds(second.into())
    }

    fn is_up(&self, second: u32) -> bool {
        !self.away.iter().any(|(from, to)| (*from..*to).contains(&second))
    }

    fn item(&self, live: &Live, n: usize) -> Item {
        let (received_at, sequence) = (self.at(self.arrivals[n]), n as u64 + 1);
        let workflow = ["pay", "report", "stray"][n % 3];
        let kind = if n.is_multiple_of(4) { "outcome" } else { "failure" };
        let event = json!({"id": format!("e{n}"), "workflow": workflow, "type": kind, "ok": 3, "item": format!("i{n}"), "error": {"http_status": 402}});
        let payload = event.to_string();
        let inbound = Inbound {
            subject: "failures.x",
            headers: &[],
            payload: payload.as_bytes(),
            stream: "S",
            sequence,
            received_at,
        };
        let DecodeOutcome::Event(decoded) = live.reader.read(inbound) else { panic!("{payload}") };
        Item::Event(decoded, Redelivered::No)
    }
}

/// Runs the service: what arrived while it was away is read when it is back.
async fn run(plan: &Plan, live: &Arc<Live>) -> Store {
    let store = Store::open("sqlite::memory:").await.unwrap();
    let (mut intake, mut ticker, mut read) = (Intake::new(store.clone(), Keeping::All), Ticker::default(), 0);
    for second in (0..HOURS * 3_600).step_by(plan.tick_every as usize) {
        if !plan.is_up(second) {
            // What a ticker remembers is lost with its process.
            ticker = Ticker::default();
            continue;
        }
        let now = plan.at(second);
        let until = plan.arrivals.partition_point(|at| *at < second);
        let batch: Vec<Item> = (read..until).map(|n| plan.item(live, n)).collect();
        read = until;
        let progress = Progress {
            stream: "S".to_owned(),
            stream_made_at: DateTime::UNIX_EPOCH,
            sequence: i64::try_from(read).unwrap(),
            arrival_at: now,
            lag: 0,
        };
        intake.commit(&batch, &progress, &live.policy, &*live.announcer, now).await.unwrap();
        let ticked = ticker.tick(&store, live, &mut AllRead, now).await;
        assert!(ticked.failures.is_empty(), "{:?}", ticked.failures);
    }
    store
}

async fn rows(store: &Store) -> Vec<DigestRow> {
    let mut rows = ledger::list(store.reader(), i64::MAX, i64::MAX).await.unwrap();
    rows.sort_by_key(|row| row.window_end);
    rows
}

async fn counted_from(store: &Store, from: DateTime<Utc>) -> u64 {
    let sql = "SELECT coalesce(sum(event_count), 0) FROM counters WHERE minute >= ?";
    let (count,): (i64,) = sqlx::query_as(sql).bind(from.timestamp_millis()).fetch_one(store.reader()).await.unwrap();
    count.unsigned_abs()
}

/// Open, or held for as long as the longest hold from the first slot of the window.
fn may_be_sent(settings: &DigestSettings, calendar: Option<&Calendar>, row: &DigestRow) -> bool {
    let schedule: &Schedule = &settings.schedule;
    let first = schedule.next_after(row.window_start, settings.timezone);
    let held_enough = settings
        .max_hold
        .is_some_and(|hold| first.is_some_and(|slot| slot + TimeDelta::from_std(hold).unwrap() <= row.composed_at));
    held_enough || calendar.is_none_or(|calendar| calendar.open_at(row.composed_at))
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 12, max_shrink_iters: 40, ..ProptestConfig::default() })]

    #[test]
    fn windows_join_each_event_is_in_one_and_nothing_is_sent_in_closed_hours(plan in plans()) {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("matins.toml");
        std::fs::write(&path, plan.config()).unwrap();
        let loaded = config::load(&path, &|_| None, plan.at(0)).unwrap_or_else(|e| panic!("{e}"));
        let live = Arc::new(app::compile(loaded, Vec::new(), &KEYS, Parts::Words).0);
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let (rows, left, seen) = runtime.block_on(async {
            let store = run(&plan, &live).await;
            let rows = rows(&store).await;
            let left = counted_from(&store, rows.last().map_or(DateTime::UNIX_EPOCH, |row| row.window_end)).await;
            (rows, left, counted_from(&store, DateTime::UNIX_EPOCH).await)
        });
        let settings = live.config.digests.values().next().unwrap();
        let calendar = settings.calendar.as_ref().and_then(|name| live.config.calendars.get(name));
        let (mut told, mut end_at) = (0, None);
        for row in &rows {
            prop_assert!(end_at.is_none_or(|end| end == row.window_start), "a hole or an overlap before {row:?}");
            prop_assert!(row.window_start < row.window_end);
            prop_assert_eq!(settings.schedule.latest_at_or_before(row.window_end, settings.timezone), Some(row.window_end));
            prop_assert!(row.composed_at >= row.window_end);
            prop_assert!(may_be_sent(settings, calendar, row), "sent in closed hours: {row:?}");
            let counts: DigestCounts = serde_json::from_str(&row.counts).unwrap();
            prop_assert_eq!(counts.sum(), counts.received);
            prop_assert_eq!(row.state == "skipped", row.number.is_none());
            prop_assert!(row.state == "enqueued" || counts.received == 0);
            told += counts.received;
            end_at = Some(row.window_end);
        }
        prop_assert_eq!(told + left, seen, "each event is in exactly one window, or in the one that is open");
        let by_slot: BTreeMap<_, _> = rows.iter().map(|row| (row.window_end, row.id)).collect();
        prop_assert_eq!(by_slot.len(), rows.len());
        prop_assert_eq!(digest_job::targets(&live.config).len(), 1);
    }
}
