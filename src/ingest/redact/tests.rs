//! What is hidden, what is not, and that nothing of a secret is left.

use super::*;
use proptest::prelude::*;
use serde_json::json;
use std::sync::LazyLock;

static REDACTOR: LazyLock<Redactor> = LazyLock::new(|| Redactor::new(&RedactSettings::default(), &[7; 32]));

fn redacted(value: Value) -> Value {
    let Value::Object(mut fields) = value else { panic!("an object") };
    REDACTOR.redact(&mut fields);
    Value::Object(fields)
}

fn text(message: &str) -> String {
    REDACTOR.redacted_text(message, Cards::Hidden).unwrap_or_else(|| message.to_owned())
}

/// The text with every marker written as `#`.
fn shape(message: &str) -> String {
    let mut out = text(message);
    while let Some(at) = out.find(OPEN) {
        out.replace_range(at..at + MARKER_LEN, "#");
    }
    out
}

#[test]
fn equal_values_stay_equal_and_different_ones_different() {
    let out = redacted(json!({
        "Password": "hunter2-Zq8", "nested": [{"API-Key": "apikey-AAA-123", "cookie": {"sid": "x"}}], "secret": "hunter2-Zq8",
        "client_secret": "tok_live_51Hqq", "token": "tok_live_51Hqq", "amount": 1200, "pwd": 4711, "cookies": [], "password": null,
        "tokens": {"prompt": 12, "refresh": "abc"}, "max_tokens": 100,
    }));
    assert_eq!(out["Password"], out["secret"]);
    assert_eq!(out["token"], out["client_secret"]);
    assert_ne!(out["Password"], out["token"]);
    assert!(is_marker(out["Password"].as_str().unwrap()));
    assert!(is_marker(out["nested"][0]["cookie"].as_str().unwrap()) && is_marker(out["pwd"].as_str().unwrap()));
    assert_eq!(
        (&out["amount"], &out["cookies"], &out["password"], &out["max_tokens"]),
        (&json!(1200), &json!([]), &json!(null), &json!(100))
    );
    assert_eq!(out["tokens"]["prompt"], json!(12));
    assert!(is_marker(out["tokens"]["refresh"].as_str().unwrap()));
}

#[test]
fn a_marker_is_a_known_keyed_hash() {
    assert_eq!(redacted(json!({"token": "tok_live_51Hqq"}))["token"], "‹redacted:e30d900a›");
    let other = Redactor::new(&RedactSettings::default(), &[8; 32]);
    assert_ne!(other.marker("tok_live_51Hqq"), REDACTOR.marker("tok_live_51Hqq"));
    assert_eq!(format!("{:?}", *REDACTOR), "Redactor { patterns: [], .. }");
}

#[test]
fn secrets_in_text_are_found_by_what_is_around_them() {
    for (message, expected) in [
        (
            "GET https://bob:p4ss@pay.example/x with Authorization: Bearer ZZtop99 for card 4111111111111111",
            "GET https://bob:#@pay.example/x with Authorization: Bearer # for card #",
        ),
        ("postgres://u:a/b@c@db:5432/x and redis://:pw@h", "postgres://u:#@db:5432/x and redis://:#@h"),
        (
            "https://ghp_0123456789abcdef@github.com/a git@github.com:a ssh://git@h",
            "https://#@github.com/a git@github.com:a ssh://git@h",
        ),
        ("http://host:8080/a@b?x=1", "http://host:8080/a@b?x=1"),
        ("GET /x?api_key=abc&page=2&access_token=d%20e#top&sig=1", "GET /x?api_key=#&page=2&access_token=##top&sig=#"),
        ("https://s3/x?X-Amz-Signature=0af&X-Amz-Date=1", "https://s3/x?X-Amz-Signature=#&X-Amz-Date=1"),
        ("dsn password=hunter2 host=db; pwd='two words'", "dsn password=# host=db; pwd='#'"),
        (r#"body {"password":"hunter2","n":1,"token": "a b"}"#, r##"body {"password":"#","n":1,"token": "#"}"##),
        (r#"twice {\"password\":\"hunter2\",\"n\":1}"#, r##"twice {\"password\":\"#\",\"n\":1}"##),
        ("{'api_key': 'k1', 'n': 2}", "{'api_key': '#', 'n': 2}"),
        ("Cookie: a=b; sid=1 and more", "Cookie: # and more"),
        ("Set-Cookie: sid=1; Path=/; HttpOnly\nnext", "Set-Cookie: #\nnext"),
        ("Authorization: Basic dXNlcjpwYXNz", "Authorization: Basic #"),
        ("authorization: rawvalue then", "authorization: # then"),
        ("Authorization: Custom ab12cd34 then", "Authorization: # then"),
        ("bearer abcDEF123.x-y_z~/+== end", "bearer # end"),
        ("x-api-key: 12ab34cd", "x-api-key: #"),
        ("token: 8f3a-1bb2 used", "token: # used"),
        ("jwt eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.c2ln, done", "jwt #, done"),
        ("4111 1111 1111 1111", "#"),
        ("ran psql --password hunter2 --host db", "ran psql --password # --host db"),
        ("ran x --password=hunter2 --db-password 'two words'", "ran x --password=# --db-password '#'"),
        ("ALTER ROLE u PASSWORD 'hunter' VALID", "ALTER ROLE u PASSWORD '#' VALID"),
        ("u PASSWORD hunter2 VALID", "u PASSWORD # VALID"),
        (
            "key -----BEGIN RSA PRIVATE KEY-----\nMIIE\nabc=\n-----END RSA PRIVATE KEY----- end",
            "key -----BEGIN RSA PRIVATE KEY-----#-----END RSA PRIVATE KEY----- end",
        ),
        ("-----BEGIN PRIVATE KEY-----\nMIIE cut off", "-----BEGIN PRIVATE KEY-----#"),
        ("with sk_live_51HqLyjWDarjtT1 and xoxb-1234-5678-abc.", "with # and #."),
        ("sk-proj-abcdefghijklmnop1234, ghp_0123456789abcdefABCD", "#, #"),
        ("x_password_y=hunter2 n=1", "x_password_y=# n=1"),
    ] {
        assert_eq!(shape(message), expected, "{}", text(message));
    }
}

#[test]
fn a_word_behind_a_hidden_one_is_the_same_word_in_a_second_pass() {
    for tail in
        ["bearer:41111111111111114111111111111111", "sk-abcdefghijklmnop1234567", "eyJhbGciOiJIUzI1NiJ9.eyJz.c2ln"]
    {
        let once = text(&format!("4111111111111111{tail}"));
        assert_eq!(text(&once), once);
    }
}

#[test]
fn sentences_about_secrets_stay() {
    for message in [
        "access token has expired",
        "Invalid token: expired",
        "the bearer token is invalid",
        "Bearer authentication failed",
        "basic auth refused",
        "Basic authentication-required",
        "Basic Plan2024 is over",
        "max_tokens=4096 tokens: 128,000 pass=12",
        "GET http://[::1]:8080/a@b",
        "WWW-Authenticate: Bearer realm=\"x\"",
        "password: incorrect",
        "passenger=12 monkey=3 token_count=12",
        "connect ECONNREFUSED 192.0.2.40:993",
        "at 08:00:00 key=value",
        "order 1796112000000 of 2026-11-30T08:00:00.123456789Z",
        "Cookie",
        "password=",
        "use --password --host db",
        "PASSWORD IS WRONG",
        "-----BEGIN CERTIFICATE----- MIIE",
        "task-risk_live_ sk-learn-and-some-more-words disk-0123456789abcdef01234567",
    ] {
        assert_eq!(text(message), message);
    }
}

#[test]
fn ids_and_instants_keep_their_digits() {
    let kept =
        json!({"id": "4111111111111111", "occurred_at": 4_111_111_111_111_111_u64, "run_id": "4111111111111111"});
    assert_eq!(redacted(kept.clone()), kept);
    let out = redacted(
        json!({"item": "4111111111111111", "pan": 4_111_111_111_111_111_u64, "4111111111111111": 1, "id": "https://u:pw@h"}),
    );
    assert_eq!(out["item"], out["pan"]);
    assert!(is_marker(out["item"].as_str().unwrap()) && out.get("4111111111111111").is_none());
    assert!(!out["id"].as_str().unwrap().contains("pw"));
}

#[test]
fn config_adds_keys_and_patterns() {
    let settings =
        RedactSettings { keys: vec!["tax-number".into()], patterns: vec![Regex::new("CUST-[0-9]+").unwrap()] };
    let redactor = Redactor::new(&settings, &[7; 32]);
    let mut fields = json!({"TaxNumber": 12, "note": "of CUST-77, tax_number=9"}).as_object().unwrap().clone();
    redactor.redact(&mut fields);
    let note = fields["note"].as_str().unwrap();
    assert!(
        is_marker(fields["TaxNumber"].as_str().unwrap()) && note.starts_with("of ‹redacted:") && !note.ends_with('9')
    );
    assert_eq!(note.matches(OPEN).count(), 2);
}

#[test]
fn a_hostile_megabyte_takes_no_more_than_a_pass() {
    for unit in [
        "://",
        "token:",
        "token=",
        "eyJ_",
        "eyJ.",
        "bearer+",
        "cookie:",
        "a4111111111111111",
        "4111111111111111 ",
        "token='",
        "b@:/",
        "--password ",
        "--a",
        "-----BEGIN ",
        "-----BEGIN PRIVATE KEY-----",
        "PASSWORD ",
        "PASSWORD '",
        "sk-",
        "sk-a ",
        "xoxb-1",
    ] {
        let hostile = unit.repeat(1024 * 1024 / unit.len());
        let began = crate::clock::instant();
        let _ = text(&hostile);
        let _ = crate::fingerprint::parametrise(&hostile);
        assert!(crate::clock::instant() - began < std::time::Duration::from_secs(30), "{unit}");
    }
}

#[test]
fn a_header_that_signs_in_is_hidden() {
    let reader = crate::ingest::Reader::new(&RedactSettings::default(), &[], &[7; 32]);
    let shown = reader.redact_header("Authorization", "Bearer ZZtopSecretBearer99");
    assert!(!shown.contains("ZZtopSecretBearer99"), "{shown}");
    assert_eq!(reader.redact_header("Nats-Msg-Id", "order-1041"), "order-1041");
}

proptest! {
    #[test]
    fn nothing_of_a_secret_is_left(secret in "[A-Z][a-z]{3}[0-9]{3}[A-Za-z0-9._~-]{6,20}[A-Za-z0-9]", place in 0..9_usize) {
        let message = match place {
            0 => format!("GET https://bob:{secret}@pay.example/x failed"),
            1 => format!("https://x.example/cb?access_token={secret}&n=1"),
            2 => format!("Authorization: Bearer {secret} sent"),
            3 => format!("{{\"clientSecret\":\"{secret}\"}}"),
            4 => format!("password={secret} host=db"),
            5 => format!("Cookie: sid={secret}"),
            6 => format!("X-Api-Key: {secret}"),
            7 => format!("bearer {secret}, refused"),
            _ => format!("{{'token': '{secret}'}}"),
        };
        let out = redacted(json!({"error": {"message": message, "stack": [message]}, "labels": {"m": message}, "password": secret}));
        prop_assert!(!out.to_string().contains(&secret), "{}", out);
        prop_assert_eq!(redacted(out.clone()), out);
    }

    #[test]
    fn plain_text_that_was_redacted_stays_as_it_is(message in "(\\PC{0,40}|[a-z0-9 ]{1,9}|https://|[@/ ]|4111111111111111){0,6}") {
        let once = text(&message);
        prop_assert_eq!(text(&once), once);
    }
}
