//! The night that is played: what pipelines publish, scene by scene. Pure: the same dawn gives the same messages.

use chrono::{DateTime, Days, NaiveTime, TimeDelta, Utc};
use chrono_tz::Tz;
use serde_json::{Value, json};

/// Where the office of the demo is.
pub const ZONE: Tz = chrono_tz::Asia::Kolkata;
/// Orders that the outage hits.
pub const ORDERS: i64 = 2000;

/// A message for the stream.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Message {
    /// `failures.<workflow>`
    pub subject: String,
    /// As a pipeline writes it.
    pub body: String,
}

/// Something that happens.
#[derive(Clone, Debug)]
pub struct Scene {
    /// When it begins.
    pub at: DateTime<Utc>,
    /// In a few words.
    pub title: &'static str,
    /// What is published, in order.
    pub messages: Vec<Message>,
    /// Pages that it must cause.
    pub pages: usize,
}

/// 06:30 of the newest morning that is over at `now`.
pub fn dawn(now: DateTime<Utc>) -> DateTime<Utc> {
    let half_past_six = |days: u64| {
        let day = now.with_timezone(&ZONE).date_naive().checked_sub_days(Days::new(days))?;
        let local = day.and_time(NaiveTime::from_hms_opt(6, 30, 0)?).and_local_timezone(ZONE).earliest()?;
        Some(local.with_timezone(&Utc)).filter(|at| *at <= now)
    };
    half_past_six(0).or_else(|| half_past_six(1)).unwrap_or(now)
}

/// The scenes of the night that ends at `dawn`, in order.
pub fn scenes(dawn: DateTime<Utc>) -> Vec<Scene> {
    let night = Night { start: dawn - TimeDelta::hours(9) };
    vec![
        night.evening(),
        night.first_order(),
        night.other_orders(),
        night.flaky_api(),
        night.spent_quota(),
        night.refusal(),
        night.expired_token(),
        night.malformed_invoice(),
        night.morning(),
    ]
}

/// Hands out instants and events of one night.
struct Night {
    start: DateTime<Utc>,
}

impl Night {
    fn at(&self, minutes: i64) -> DateTime<Utc> {
        self.start + TimeDelta::minutes(minutes)
    }

    fn scene(&self, minutes: i64, title: &'static str, messages: Vec<Message>) -> Scene {
        Scene { at: self.at(minutes), title, messages, pages: 0 }
    }

    /// An event of `workflow`, `seconds` into the night.
    fn event(&self, workflow: &str, id: &str, seconds: i64, fields: Value) -> Message {
        let mut event = json!({
            "id": format!("demo-{workflow}-{id}"),
            "workflow": workflow,
            "occurred_at": self.start + TimeDelta::seconds(seconds),
        });
        if let (Some(event), Value::Object(fields)) = (event.as_object_mut(), fields) {
            event.extend(fields);
        }
        Message { subject: format!("failures.{workflow}"), body: event.to_string() }
    }

    fn runs(&self, workflow: &str, minutes: i64, ok: u64) -> Message {
        let fields = json!({"type": "outcome", "ok": ok, "failed": 0});
        self.event(workflow, &format!("runs-{minutes}"), minutes * 60, fields)
    }

    fn evening(&self) -> Scene {
        let runs = [
            ("order-to-crm", 409),
            ("payment-capture", 212),
            ("invoice-sync", 96),
            ("lead-enrichment", 61),
            ("support-triage", 48),
            ("catalog-refresh", 24),
        ];
        self.scene(0, "pipelines report their runs", runs.map(|(name, ok)| self.runs(name, 1, ok)).into())
    }

    /// A try of an order at the step that fails all night.
    fn order(&self, order: i64, attempt: i64, seconds: i64) -> Message {
        let item = format!("order-{}", 10_412 + order);
        let fields = json!({
            "step": "push-contact", "item": item, "downstream": "hubspot", "attempt": attempt, "max_attempts": 3,
            "error": {"type": "HttpError", "http_status": 503, "message": "503 Service Unavailable: upstream connect error"},
            "payload": {"order": item, "total": format!("{}.00", 400 + order % 90), "currency": "INR"},
            "links": {"n8n run": format!("https://n8n.example.com/executions/{}", 88_100 + order)},
        });
        self.event("order-to-crm", &format!("{order}-{attempt}"), seconds, fields)
    }

    /// 503 until the tries of the first order are used up.
    fn first_order(&self) -> Scene {
        let tries = |attempt: i64| (0..30).map(move |order| (order, attempt, 11 * 60 + attempt * 20 + order));
        let tries = tries(1).chain(tries(2)).chain([(0, 3, 12 * 60 + 20)]);
        let messages = tries.map(|(order, attempt, seconds)| self.order(order, attempt, seconds)).collect();
        Scene { pages: 1, ..self.scene(11, "hubspot is down, one order is given up", messages) }
    }

    /// Then of all the others.
    fn other_orders(&self) -> Scene {
        let messages = (1..ORDERS).map(|order| self.order(order, 3, 12 * 60 + 20 + order * 2)).collect();
        self.scene(13, "and 1,999 more orders, to 22:49", messages)
    }

    /// Time-outs that a second or third try gets over.
    fn flaky_api(&self) -> Scene {
        let mut messages = Vec::new();
        for page in 1..=24_i64 {
            let (item, start) = (format!("page-{page}"), 85 * 60 + page * 40);
            let attempts = 1 + page % 3 / 2;
            for attempt in 1..=attempts {
                let fields = json!({
                    "step": "pull-products", "item": item, "downstream": "shopify", "attempt": attempt, "max_attempts": 4,
                    "error": {"type": "TimeoutError", "code": "ETIMEDOUT", "message": "no answer from shopify within 30 s"},
                });
                messages.push(self.event(
                    "catalog-refresh",
                    &format!("{page}-{attempt}"),
                    start + attempt * 30,
                    fields,
                ));
            }
            let took_ms = (attempts * 31 + page) * 1000;
            let fields = json!({"type": "recovery", "step": "pull-products", "item": item, "strategy": "retry",
                "attempt": attempts + 1, "took_ms": took_ms, "downstream": "shopify"});
            messages.push(self.event("catalog-refresh", &format!("{page}-ok"), start + took_ms / 1000, fields));
        }
        self.scene(85, "shopify times out, retries get through", messages)
    }

    /// First told to slow down, then out of credits.
    fn spent_quota(&self) -> Scene {
        let failure = |lead: i64, status: i64, error: &str, message: &str| {
            let item = format!("lead-{}", 8_803 + lead);
            let fields = json!({
                "step": "enrich", "item": item, "downstream": "clearbit", "attempt": 1, "max_attempts": 5,
                "error": {"type": error, "http_status": status, "message": message},
            });
            self.event("lead-enrichment", &format!("{lead}-{status}"), 130 * 60 + lead * 45, fields)
        };
        let slow = (0..12).map(|lead| failure(lead, 429, "RateLimited", "429 Too Many Requests: slow down"));
        let spent =
            (9..18).map(|lead| failure(lead, 402, "PaymentRequired", "402 Payment Required: monthly credits used up"));
        self.scene(130, "clearbit is out of credits for 9 leads", slow.chain(spent).collect())
    }

    fn refusal(&self) -> Scene {
        let mut messages = Vec::new();
        for ticket in 1..=4_i64 {
            let (item, seconds) = (format!("ticket-{}", 3_320 + ticket), 178 * 60 + ticket * 50);
            let fields = json!({
                "step": "classify", "item": item, "class": "llm_output", "disposition": "retrying", "attempt": 1,
                "max_attempts": 3, "downstream": "openai",
                "error": {"type": "SchemaMismatch", "message": "missing field \"priority\" in tool result"},
            });
            messages.push(self.event("support-triage", &format!("{ticket}-1"), seconds, fields));
            let fields = json!({"type": "recovery", "step": "classify", "item": item, "strategy": "reprompt", "attempt": 2,
                "took_ms": 8_000 + ticket * 400, "downstream": "openai"});
            messages.push(self.event("support-triage", &format!("{ticket}-ok"), seconds + 9, fields));
        }
        let fields = json!({
            "step": "classify", "item": "ticket-3310", "class": "llm_refusal", "downstream": "openai",
            "error": {"type": "Refusal", "message": "refusal: the model declined to classify this ticket"},
            "payload": {"ticket": "ticket-3310", "subject": "Chargeback, fourth reminder"},
        });
        messages.push(self.event("support-triage", "refused", 182 * 60, fields));
        self.scene(178, "a model refuses a ticket", messages)
    }

    fn expired_token(&self) -> Scene {
        let failure = |payment: i64| {
            let fields = json!({
                "step": "capture", "item": format!("pay-{}", 55_017 + payment), "downstream": "razorpay", "attempt": 1,
                "max_attempts": 3,
                "error": {"type": "TokenExpired", "http_status": 401, "message": "401 Unauthorized: the access token expired"},
                "payload": {"amount": "1499.00", "currency": "INR", "authorization": "Bearer rzp_demo_only"},
                "links": {"n8n run": format!("https://n8n.example.com/executions/{}", 91_200 + payment)},
            });
            self.event("payment-capture", &payment.to_string(), 284 * 60 + payment * 70, fields)
        };
        Scene { pages: 1, ..self.scene(284, "the token for razorpay has expired", (0..3).map(failure).collect()) }
    }

    /// An invoice that nobody can read, and a message about another that Matins can't.
    fn malformed_invoice(&self) -> Scene {
        let fields = json!({
            "step": "post-invoice", "item": "invoice-1041", "downstream": "zoho", "attempt": 1, "max_attempts": 3,
            "error": {"type": "ValidationError", "http_status": 422, "message": "422 amount \"1.299,00\" is no number"},
            "payload": {"invoice": "invoice-1041", "amount": "1.299,00", "currency": "EUR"},
        });
        let broken = Message {
            subject: "failures.invoice-sync".to_owned(),
            body: r#"{"workflow": "invoice-sync", "item": "invoice-1042", "error": {"mess"#.to_owned(),
        };
        let messages = vec![self.event("invoice-sync", "1041", 371 * 60, fields), broken];
        self.scene(371, "a malformed invoice, a cut off message", messages)
    }

    fn morning(&self) -> Scene {
        let backup = json!({"type": "heartbeat", "status": "ok", "queue_depth": 0});
        let messages = vec![
            self.runs("payout-reconcile", 520, 96),
            self.runs("gst-filing", 521, 1),
            self.runs("payment-capture", 522, 188),
            self.event("nightly-backup", "done", 523 * 60, backup),
        ];
        self.scene(520, "payouts, filing and backup are fine", messages)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    fn at(text: &str) -> DateTime<Utc> {
        text.parse().unwrap()
    }

    #[test]
    fn the_night_is_the_newest_one_that_is_over() {
        assert_eq!(dawn(at("2026-11-18T09:00:00+05:30")), at("2026-11-18T06:30:00+05:30"));
        assert_eq!(dawn(at("2026-11-18T06:30:00+05:30")), at("2026-11-18T06:30:00+05:30"));
        assert_eq!(dawn(at("2026-11-18T02:00:00+05:30")), at("2026-11-17T06:30:00+05:30"));
    }

    #[test]
    fn scenes_come_in_order_and_inside_the_night() {
        let dawn = at("2026-11-18T06:30:00+05:30");
        let scenes = scenes(dawn);
        assert!(scenes.windows(2).all(|pair| pair[0].at < pair[1].at));
        for message in scenes.iter().flat_map(|s| &s.messages) {
            let Ok(event) = serde_json::from_str::<Value>(&message.body) else { continue };
            let occurred_at = at(event["occurred_at"].as_str().unwrap());
            assert!(occurred_at <= dawn && occurred_at >= dawn - TimeDelta::hours(9), "{}", message.body);
        }
    }

    #[test]
    fn titles_leave_room_for_a_bar() {
        let scenes = scenes(at("2026-11-18T01:00:00Z"));
        assert!(scenes.iter().all(|scene| scene.title.chars().count() <= 39));
    }

    #[test]
    fn every_event_has_an_id_of_its_own_and_one_message_has_none() {
        let scenes = scenes(at("2026-11-18T01:00:00Z"));
        let bodies: Vec<&str> = scenes.iter().flat_map(|s| &s.messages).map(|m| m.body.as_str()).collect();
        let events = bodies.iter().filter_map(|b| serde_json::from_str::<Value>(b).ok());
        let ids: BTreeSet<String> = events.map(|e| e["id"].as_str().unwrap().to_owned()).collect();
        assert_eq!(ids.len() + 1, bodies.len());
    }
}
