//! Known answers: these values are promises. A change that breaks one needs a new version prefix.

use super::*;
use crate::event::*;
use chrono::DateTime;
use proptest::prelude::*;
use std::collections::BTreeMap;

fn failure(message: &str) -> Event {
    let at = DateTime::from_timestamp_millis(1_796_112_000_000).unwrap();
    Event {
        id: EventId("e".into()),
        event_type: EventType::Failure,
        workflow: "order-to-crm".into(),
        step: Some("push".into()),
        run_id: None,
        item: None,
        class: Class::Transient,
        class_rule: String::new(),
        disposition: Disposition::Retrying,
        fingerprint: Fingerprint("".into()),
        error: ErrorInfo { kind: Some("Timeout".into()), message: Some(message.into()), ..ErrorInfo::default() },
        attempt: None,
        max_attempts: None,
        downstream: None,
        occurred_at: at,
        time_mark: TimeMark::Given,
        received_at: at,
        payload: None,
        payload_cut: false,
        links: BTreeMap::new(),
        labels: BTreeMap::new(),
        detail: Detail::Failure,
        redriven_from: None,
        redrive_count: None,
    }
}

#[test]
fn fingerprints_keep_their_values() {
    assert_eq!(of(&failure("upstream timed out after 30 s")).0.as_ref(), "v1:038f0de8bc57755f");
    assert_eq!(of(&failure("upstream timed out after 45 s")).0.as_ref(), "v1:038f0de8bc57755f");
    let mut bare = failure("");
    (bare.step, bare.error) = (None, ErrorInfo::default());
    assert_eq!(of(&bare).0.as_ref(), "v1:9b6fd1e9ca347d17");
    bare.error.http_status = Some(503);
    assert_eq!(of(&bare).0.as_ref(), "v1:45d75665f94c2dbb");
    bare.error.code = Some("ETIMEDOUT".into());
    assert_eq!(of(&bare).0.as_ref(), "v1:06e849246f9118ac");
}

#[test]
fn workflow_step_class_and_type_make_another_cause() {
    let base = of(&failure("x"));
    let mut others = vec![failure("y"); 5];
    others[1].workflow = "other".into();
    others[2].step = None;
    others[3].class = Class::Persistent;
    others[4].error.kind = Some("Reset".into());
    for other in &mut others[1..] {
        other.error.message = Some("x".into());
    }
    for other in others {
        assert_ne!(of(&other), base);
    }
    let mut same = failure("x");
    same.item = Some("invoice-1".into());
    same.error.code = Some("unused beside a type".into());
    assert_eq!(of(&same), base);
}

#[test]
fn patterns_keep_words_and_drop_what_varies() {
    for (message, pattern) in [
        (
            "order 1041 of user 7 at 2026-11-30T08:00:00Z from 10.0.0.7 failed: id 0c8f9a52-6a0e-4b0b-9a43-6f2f1b0f7d11 'abc'",
            "order <*> of user <*> at <*> from <*> failed: id <*> '<*>'",
        ),
        (
            "order 99 of user 1234567 at 2026-10-01T18:30:11Z from 192.0.2.40 failed: id 7d9c1f00-1111-4b0b-8a43-000000000001 'something else'",
            "order <*> of user <*> at <*> from <*> failed: id <*> '<*>'",
        ),
        ("ledger is closed", "ledger is closed"),
        ("  two\n\tlines  ", "two lines"),
        ("can't open the users' file", "can't open the users' file"),
        ("key \"a b\" and `c` and “d”", "key \"<*>\" and `<*>` and “<*>”"),
        ("{\"code\":\"x\",\"n\":1.5}", "{\"<*>\":\"<*>\",\"<*>\":<*>}"),
        ("connect ECONNREFUSED 192.0.2.40:993", "connect ECONNREFUSED <*>"),
        ("from fe80::1ff:fe23:4567:890a via ::1, 00:1a:2b:3c:4d:5e", "from <*> via <*>"),
        ("std::io::Error in a::b", "std::io::Error in a::b"),
        ("mail to a.b+c@example.co.uk bounced.", "mail to <*> bounced."),
        (
            "GET https://api.example.com/v1/charges/ch_1N2x3Y?expand=a&b=1 failed",
            "GET https://api.example.com/v<*>/charges/ch_<*>?<*> failed",
        ),
        ("took 30s, 1.5ms and 12% of 1,234.50", "took <*>s, <*>ms and <*>% of <*>"),
        ("invoice-1041 order1041 inv_8f3a", "invoice-<*> order<*> inv_<*>"),
        ("commit deadbeef1 0xFF3 facade decade", "commit <*> facade decade"),
        ("V1StGXR8_Z5jdHi6B-myT is gone", "<*> is gone"),
        ("ids 1, 2, 3, 4 and 5", "ids <*> and <*>"),
        ("on Mon, 30 Nov 2026 08:00:00 GMT and 30/Nov/2026:08:00:01 +0000", "on <*> GMT and <*>"),
        ("at 2026-11-30 08:00:00,123 at 8:05 PM", "at <*> at <*>"),
        ("2026-11-30T08:00:00.5+05:30 x", "<*> x"),
        ("balance -5 (402) [#12] a=-7", "balance <*> (<*>) [#<*>] a=<*>"),
        ("Bearer ‹redacted:0a1b2c3d› refused", "Bearer <*> refused"),
        ("/srv/app/tasks.py:41:16", "/srv/app/tasks.py:<*>"),
        ("Größe 12 überschritten für Müller3", "Größe <*> überschritten für Müller<*>"),
        ("", ""),
    ] {
        assert_eq!(parametrise(message), pattern);
    }
}

#[test]
fn long_and_short_ids_before_the_end_of_a_pattern_end_at_the_same_word() {
    let tail = "word ".repeat(300);
    let pattern = parametrise(&format!("order 1 {tail}"));
    assert_eq!(pattern, parametrise(&format!("order 123456789 {tail}other")));
    assert!(pattern.len() < 1010);
}

fn variable() -> impl Strategy<Value = String> {
    prop_oneof![
        "[0-9]{1,18}",
        "[1-9][0-9]{0,3}\\.[0-9]{1,4}",
        "[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}",
        "20[0-9]{2}-[01][0-9]-[0-3][0-9]T[0-2][0-9]:[0-5][0-9]:[0-5][0-9](\\.[0-9]{1,9})?Z",
        "[0-9a-f]{5}[0-9][a-f][0-9a-f]{5,30}",
        "(1?[0-9]{1,2}\\.){3}[0-9]{1,2}(:[0-9]{2,5})?",
        "[a-z]{1,8}@[a-z]{1,8}\\.(com|org)",
    ]
}

proptest! {
    #[test]
    fn what_varies_makes_no_other_cause(a in variable(), b in variable(), words in "[a-z]{2,9}( [a-z]{2,9}){0,4}") {
        let message = |v: &str| format!("{words} {v} failed for ({v}), {words}");
        prop_assert_eq!(parametrise(&message(&a)), parametrise(&message(&b)));
    }

    #[test]
    fn quoted_values_make_no_other_cause(a in "[^'\"\\n]{0,40}", b in "[^'\"\\n]{0,40}") {
        let message = |v: &str| format!("key \"{v}\" of table '{v}' is missing");
        prop_assert_eq!(parametrise(&message(&a)), parametrise(&message(&b)));
    }

    #[test]
    fn other_words_make_another_cause(a in "[g-z]{4,9}", b in "[g-z]{4,9}") {
        prop_assume!(a != b);
        prop_assert_ne!(of(&failure(&format!("the {a} failed"))), of(&failure(&format!("the {b} failed"))));
    }

    #[test]
    fn no_message_panics_and_patterns_are_their_own_patterns(message in "\\PC{0,80}|[0-9a-fT:/.,\"' \\-]{0,60}") {
        let once = parametrise(&message);
        prop_assert!(once.len() < 1100);
        prop_assert!(!once.contains('\n'));
    }
}
