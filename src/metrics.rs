//! Series for Prometheus. Counters live here; gauges that mirror the store are read from it when they are asked for, so that they can't
//! drift. What is worth counting is decided by those who call.

use crate::event::Event;
use crate::outbox::queue;
use crate::store::{Store, StoreError, incidents, ledger, letters};
use crate::symptom::{Budget, SymptomState, ToldSymptom, is_clamped};
use crate::workflow::Domain;
use chrono::{DateTime, DurationRound as _, TimeDelta, Utc};
use prometheus_client::encoding::prometheus_text;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::Registry;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::AtomicU64;
use std::time::Duration;

/// The `Content-Type` of what `encode` gives.
pub const CONTENT_TYPE: &str = prometheus_text::CONTENT_TYPE;

/// Series per workflow at most; the rest is summed as `other`.
const WORKFLOWS_MAX: usize = 200;

/// Series of symptoms at most; more fire only when something is wrong with all of it.
const SYMPTOMS_MAX: usize = 1000;

/// Upper bounds of the latency histogram, in seconds: a page is late after 5, hopeless after 120.
const LATENCY_BUCKETS: [f64; 12] = [0.1, 0.25, 0.5, 1.0, 2.0, 3.0, 5.0, 10.0, 30.0, 60.0, 120.0, 600.0];

type Labels<const N: usize> = [(&'static str, String); N];
type Counters<const N: usize> = Family<Labels<N>, Counter>;
type Seconds = Gauge<f64, AtomicU64>;

/// All series of the service.
#[derive(Debug)]
pub struct Metrics {
    registry: Registry,
    events: Counters<2>,
    duplicates: Counter,
    clamped: Counter,
    quarantined: Counters<1>,
    notifications: Counters<3>,
    latency: Family<Labels<1>, Histogram>,
    reload_successful: Gauge,
    lag: Gauge,
    watermark: Seconds,
}

impl Default for Metrics {
    fn default() -> Self {
        let mut registry = Registry::default();
        let metrics = Self {
            events: Family::default(),
            duplicates: Counter::default(),
            clamped: Counter::default(),
            quarantined: Family::default(),
            notifications: Family::default(),
            latency: Family::new_with_constructor(|| Histogram::new(LATENCY_BUCKETS)),
            reload_successful: Gauge::default(),
            lag: Gauge::default(),
            watermark: Seconds::default(),
            registry: Registry::default(),
        };
        metrics.register(&mut registry);
        // The config that the process started with was good.
        metrics.reload_successful.set(1);
        Self { registry, ..metrics }
    }
}

impl Metrics {
    /// Registers every series that is kept here. The exposition appends `_total` to counters.
    fn register(&self, to: &mut Registry) {
        to.register("matins_events", "Events stored for the first time", self.events.clone());
        to.register(
            "matins_events_duplicate",
            "Events published again under an id seen before",
            self.duplicates.clone(),
        );
        to.register(
            "matins_future_ts_clamped",
            "Events that say that they happened a second or more after they arrived",
            self.clamped.clone(),
        );
        to.register("matins_quarantined", "Messages that could not be read", self.quarantined.clone());
        to.register("matins_notifications", "Tries to deliver a message", self.notifications.clone());
        to.register(
            "matins_notification_latency_seconds",
            "Time from the decision to its confirmed delivery",
            self.latency.clone(),
        );
        to.register(
            "matins_config_last_reload_successful",
            "Whether the config last read is the one in use",
            self.reload_successful.clone(),
        );
        to.register("matins_ingest_lag_messages", "Messages of the stream not yet committed", self.lag.clone());
        to.register(
            "matins_ingest_watermark_seconds",
            "Arrival time up to which everything is committed, Unix time",
            self.watermark.clone(),
        );
    }

    /// An event was stored for the first time.
    pub fn note_event(&self, event: &Event) {
        let labels = [("type", event.event_type.to_string()), ("class", event.class.to_string())];
        self.events.get_or_create(&labels).inc();
        if is_clamped(event) {
            self.clamped.inc();
        }
    }

    /// An event was published again.
    pub fn note_duplicate(&self) {
        self.duplicates.inc();
    }

    /// A message was put in quarantine.
    pub fn note_quarantined(&self, reason: &str) {
        self.quarantined.get_or_create(&[("reason", reason.to_owned())]).inc();
    }

    /// A try ended. `latency` counts from the decision, and is given when the message is confirmed.
    pub fn note_notification(&self, receiver: &str, kind: &str, outcome: &str, latency: Option<Duration>) {
        let labels = [("receiver", receiver.to_owned()), ("kind", kind.to_owned()), ("outcome", outcome.to_owned())];
        self.notifications.get_or_create(&labels).inc();
        if let Some(latency) = latency {
            self.latency.get_or_create(&[("kind", kind.to_owned())]).observe(latency.as_secs_f64());
        }
    }

    /// A config was read: whether it is the one in use now.
    pub fn set_reload(&self, successful: bool) {
        self.reload_successful.set(i64::from(successful));
    }

    /// Everything that arrived up to `at` is committed.
    pub fn set_watermark(&self, at: DateTime<Utc>) {
        self.watermark.set(seconds_of(at));
    }

    /// What `set_watermark` was last told; none before it was.
    pub fn watermark(&self) -> Option<DateTime<Utc>> {
        let seconds = self.watermark.get();
        if seconds <= 0.0 {
            return None;
        }
        let at = DateTime::UNIX_EPOCH + TimeDelta::from_std(Duration::try_from_secs_f64(seconds).ok()?).ok()?;
        // The gauge is not exact; what is only just later must not be judged.
        at.duration_trunc(TimeDelta::milliseconds(1)).ok()
    }

    /// Messages of the stream that are not committed yet.
    pub fn set_lag(&self, messages: u64) {
        self.lag.set(i64::try_from(messages).unwrap_or(i64::MAX));
    }

    /// What `set_lag` was last told.
    pub fn lag(&self) -> u64 {
        self.lag.get().unsigned_abs()
    }

    /// Everything in Prometheus' text format.
    pub fn encode(&self, snapshot: &GaugeSnapshot) -> String {
        let mut out = String::new();
        let mut mirrors = Registry::default();
        snapshot.register(&mut mirrors);
        for registry in [&self.registry, &mirrors] {
            if let Err(error) = prometheus_text::encode(&mut out, registry) {
                // A String takes everything; only an encoder with a defect ends here.
                tracing::error!(%error, "metrics can't be written");
            }
        }
        out
    }
}

/// What the store says at the time of a scrape.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct GaugeSnapshot {
    /// Open dead letters and age of the oldest in seconds, by workflow.
    pub dead_letters: BTreeMap<String, (i64, f64)>,
    /// Burn rates by workflow and window.
    pub burn_rates: BTreeMap<(String, String), f64>,
    /// Symptoms that fire, by name and workflow.
    pub symptoms: BTreeSet<(String, String)>,
    /// Unresolved incidents by domain.
    pub incidents_open: BTreeMap<String, i64>,
    /// Messages that wait.
    pub outbox_pending: i64,
    /// Age of the oldest of them, in seconds.
    pub outbox_oldest_age: f64,
    /// When each digest was last composed, Unix time.
    pub digest_last_success: BTreeMap<String, f64>,
}

impl GaugeSnapshot {
    /// Reads it. The oldest waiting message counts from when it was decided.
    ///
    /// # Errors
    /// When the database refuses.
    pub async fn read(
        store: &Store,
        firing: &[ToldSymptom],
        budgets: &[Budget],
        now: DateTime<Utc>,
    ) -> Result<Self, StoreError> {
        let reader = store.reader();
        let age = |at: Option<DateTime<Utc>>| at.map_or(0.0, |at| seconds(now - at).max(0.0));
        let backlog = letters::backlog(reader).await?;
        let letters = backlog.into_iter().map(|b| (b.workflow, (b.open, age(b.oldest_at))));
        let mut incidents_open: BTreeMap<String, i64> =
            Domain::ALL.iter().filter(|d| d.is_protected()).map(|d| (d.as_str().to_owned(), 0)).collect();
        incidents_open.extend(incidents::open_by_domain(reader).await?);
        let outbox = queue::pending_counts(reader).await?;
        let digests = ledger::last_success(reader).await?;
        Ok(Self {
            dead_letters: capped(letters.collect()),
            burn_rates: budgets.iter().take(WORKFLOWS_MAX).flat_map(burns_of).collect(),
            symptoms: firing.iter().flat_map(|s| series_of(&s.state)).take(SYMPTOMS_MAX).collect(),
            incidents_open,
            outbox_pending: i64::try_from(outbox.pending_count).unwrap_or(i64::MAX),
            outbox_oldest_age: age(outbox.oldest_at),
            digest_last_success: digests.into_iter().map(|(name, at)| (name, seconds_of(at))).collect(),
        })
    }

    fn register(&self, to: &mut Registry) {
        let open = Family::<Labels<1>, Gauge>::default();
        let oldest = Family::<Labels<1>, Seconds>::default();
        for (workflow, (count, age)) in &self.dead_letters {
            let labels = [("workflow", workflow.clone())];
            open.get_or_create(&labels).set(*count);
            oldest.get_or_create(&labels).set(*age);
        }
        to.register("matins_dead_letters_open", "Dead letters that are not resolved", open);
        to.register("matins_dead_letter_oldest_age_seconds", "Age of the oldest open dead letter", oldest);
        let burns = Family::<Labels<2>, Seconds>::default();
        for ((workflow, window), burn) in &self.burn_rates {
            burns.get_or_create(&[("workflow", workflow.clone()), ("window", window.clone())]).set(*burn);
        }
        to.register(
            "matins_burn_rate",
            "1 spends the error budget in just its period; no series when it is not known",
            burns,
        );
        let firing = Family::<Labels<2>, Gauge>::default();
        for (symptom, workflow) in &self.symptoms {
            firing.get_or_create(&[("symptom", symptom.clone()), ("workflow", workflow.clone())]).set(1);
        }
        to.register("matins_symptom_firing", "1 for each symptom that fires", firing);
        let incidents = Family::<Labels<1>, Gauge>::default();
        for (domain, count) in &self.incidents_open {
            incidents.get_or_create(&[("domain", domain.clone())]).set(*count);
        }
        to.register("matins_incidents_open", "Incidents that are not resolved", incidents);
        let pending = Gauge::<i64>::default();
        pending.set(self.outbox_pending);
        to.register("matins_outbox_pending", "Messages that wait to be delivered", pending);
        let oldest = Seconds::default();
        oldest.set(self.outbox_oldest_age);
        to.register("matins_outbox_oldest_age_seconds", "Age of the oldest message that waits", oldest);
        let digests = Family::<Labels<1>, Seconds>::default();
        for (digest, at) in &self.digest_last_success {
            digests.get_or_create(&[("digest", digest.clone())]).set(*at);
        }
        to.register("matins_digest_last_success_timestamp_seconds", "When a digest was last composed", digests);
    }
}

/// One series a window that something is known of.
fn burns_of(budget: &Budget) -> impl Iterator<Item = ((String, String), f64)> {
    let known = budget.burns.iter().filter_map(|(window, burn)| Some((window, (*burn)?)));
    known.map(|(window, burn)| ((budget.workflow.to_string(), window_label(*window)), burn))
}

/// `5m`, `6h`, `3d`, as config writes them.
fn window_label(window: Duration) -> String {
    match window.as_secs() {
        s if s % 86_400 == 0 => format!("{}d", s / 86_400),
        s if s % 3_600 == 0 => format!("{}h", s / 3_600),
        s if s % 60 == 0 => format!("{}m", s / 60),
        s => format!("{s}s"),
    }
}

/// One series a workflow that it speaks of.
fn series_of(state: &SymptomState) -> impl Iterator<Item = (String, String)> {
    state.workflows.iter().map(|w| (state.key.rule.clone(), w.to_string()))
}

/// Keeps the workflows with most open letters apart, and sums the rest.
fn capped(all: BTreeMap<String, (i64, f64)>) -> BTreeMap<String, (i64, f64)> {
    if all.len() <= WORKFLOWS_MAX {
        return all;
    }
    let mut by_weight: Vec<_> = all.into_iter().collect();
    by_weight.sort_by(|a, b| b.1.0.cmp(&a.1.0).then_with(|| a.0.cmp(&b.0)));
    let rest = by_weight.split_off(WORKFLOWS_MAX);
    let mut kept: BTreeMap<_, _> = by_weight.into_iter().collect();
    // A workflow may itself be called `other`.
    let other = kept.entry("other".to_owned()).or_insert((0, 0.0));
    for (_, (count, age)) in rest {
        *other = (other.0 + count, other.1.max(age));
    }
    kept
}

fn seconds(span: TimeDelta) -> f64 {
    span.as_seconds_f64()
}

fn seconds_of(at: DateTime<Utc>) -> f64 {
    seconds(at - DateTime::UNIX_EPOCH)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::symptom::Mode;

    fn lines(text: &str) -> Vec<&str> {
        text.lines().collect()
    }

    #[test]
    fn counters_have_the_names_of_the_contract() {
        let metrics = Metrics::default();
        metrics.note_duplicate();
        metrics.note_quarantined("not_json");
        metrics.clamped.inc();
        metrics.note_notification("oncall", "page", "sent", Some(Duration::from_millis(300)));
        let text = metrics.encode(&GaugeSnapshot::default());
        for line in [
            "# TYPE matins_events_duplicate_total counter",
            "matins_events_duplicate_total 1",
            "matins_future_ts_clamped_total 1",
            "# TYPE matins_quarantined_total counter",
            "matins_quarantined_total{reason=\"not_json\"} 1",
            "# TYPE matins_notifications_total counter",
            "matins_notifications_total{receiver=\"oncall\",kind=\"page\",outcome=\"sent\"} 1",
            "# TYPE matins_notification_latency_seconds histogram",
            "matins_notification_latency_seconds_bucket{kind=\"page\",le=\"0.5\"} 1",
            "matins_notification_latency_seconds_count{kind=\"page\"} 1",
        ] {
            assert!(lines(&text).contains(&line), "{line} is missing in\n{text}");
        }
    }

    #[test]
    fn gauges_show_the_snapshot_of_the_scrape_and_nothing_older() {
        let metrics = Metrics::default();
        let mut snapshot = GaugeSnapshot::default();
        snapshot.dead_letters.insert("pay".to_owned(), (2, 1.5));
        snapshot.incidents_open.insert("money".to_owned(), 1);
        let text = metrics.encode(&snapshot);
        assert!(lines(&text).contains(&"matins_dead_letters_open{workflow=\"pay\"} 2"), "{text}");
        assert!(lines(&text).contains(&"matins_dead_letter_oldest_age_seconds{workflow=\"pay\"} 1.5"), "{text}");
        assert!(lines(&text).contains(&"matins_incidents_open{domain=\"money\"} 1"), "{text}");
        assert!(!metrics.encode(&GaugeSnapshot::default()).contains("pay"), "an old series is left");
    }

    #[test]
    fn burn_rates_have_a_series_a_window_and_none_where_nothing_is_known() {
        let minutes = |n: u64| Duration::from_secs(n * 60);
        let budget = Budget {
            rule: "burn_rate".to_owned(),
            mode: Mode::Live,
            workflow: "pay".into(),
            slo: "0.99".to_owned(),
            period: minutes(30 * 1440),
            burns: vec![(minutes(5), Some(2.5)), (minutes(60), None), (minutes(4320), Some(0.0))],
            failed: 1,
            total: 40,
            left: None,
            failed_lately: 0,
        };
        let snapshot = GaugeSnapshot { burn_rates: burns_of(&budget).collect(), ..GaugeSnapshot::default() };
        let text = Metrics::default().encode(&snapshot);
        let burns: Vec<&str> = lines(&text).into_iter().filter(|l| l.starts_with("matins_burn_rate{")).collect();
        assert_eq!(burns.len(), 2, "{text}");
        assert!(burns.contains(&"matins_burn_rate{workflow=\"pay\",window=\"5m\"} 2.5"), "{burns:?}");
        assert!(burns.contains(&"matins_burn_rate{workflow=\"pay\",window=\"3d\"} 0.0"), "{burns:?}");
    }

    #[test]
    fn a_label_can_not_break_out_of_its_quotes() {
        let metrics = Metrics::default();
        let mut snapshot = GaugeSnapshot::default();
        snapshot.dead_letters.insert("a\"} 1\nb\\".to_owned(), (1, 0.0));
        let text = metrics.encode(&snapshot);
        assert!(text.contains(r#"{workflow="a\"} 1\nb\\"} 1"#), "{text}");
    }

    #[test]
    fn workflows_over_the_cap_are_summed_as_other() {
        let many = (0..WORKFLOWS_MAX + 3)
            .map(|n| (format!("w{n:04}"), (1 + i64::from(n == 0), f64::from(u8::from(n == 202)))));
        let kept = capped(many.collect());
        assert_eq!(kept.len(), WORKFLOWS_MAX + 1);
        assert_eq!(kept["other"], (3, 1.0));
        assert_eq!(kept["w0000"].0, 2);
    }

    #[tokio::test]
    async fn an_empty_store_still_shows_protected_domains_and_an_empty_outbox() {
        let store = Store::open("sqlite::memory:").await.expect("a store");
        let snapshot = GaugeSnapshot::read(&store, &[], &[], DateTime::UNIX_EPOCH).await.expect("a snapshot");
        let text = Metrics::default().encode(&snapshot);
        for line in [
            "matins_incidents_open{domain=\"money\"} 0",
            "matins_incidents_open{domain=\"compliance\"} 0",
            "matins_outbox_pending 0",
            "matins_outbox_oldest_age_seconds 0.0",
            "matins_config_last_reload_successful 1",
            "matins_ingest_lag_messages 0",
        ] {
            assert!(lines(&text).contains(&line), "{line} is missing in\n{text}");
        }
    }
}
