//! What is refused and how it is said: one small config, one mistake each.

use super::*;
use proptest::prelude::*;

const NOW: &str = "2026-11-17T10:00:00Z";

/// A config that passes, as close to the one that people write as it gets.
const GOOD: &str = r##"
[http]
listen = "127.0.0.1:8420"

[smtp]
host = "127.0.0.1"
tls = "none"
from = "Matins <matins@example.com>"

[receivers.oncall]
kind = "slack"
webhook_url = "http://127.0.0.1:1/oncall"
fallback = "oncall-mail"
[receivers.oncall-mail]
kind = "email"
to = ["oncall@example.com"]
[receivers.ops]
kind = "slack"
bot_token = "xoxb-1"
channel = "#ops"
[receivers.owner]
kind = "email"
to = "owner"

[calendars.office]
timezone = "Asia/Kolkata"
hours = { mon-fri = ["09:30-18:30"] }
holidays = ["2026-12-25", 2027-01-01]

[digests.daily]
cron = "0 10 * * *"
calendar = "office"
[digests.weekly]
cron = "0 10 * * MON"
timezone = "Europe/Berlin"

[[workflows]]
name = "pay"
domain = "money"
owner = "Asha <asha@example.com>"
slo = 0.9950
every = "24h"
[[workflows]]
name = "report"
owner = "Ben <ben@example.com>"

[[routes]]
name = "protected"
match = { domain = ["money", "compliance"] }
page = ["oncall"]
digest.daily = ["owner"]
continue = true
[[routes]]
name = "everything"
match = {}
digest.daily = ["ops", "owner"]
digest.weekly = ["ops"]
"##;

fn load_files(files: &[(&str, &str)], env: &dyn Fn(&str) -> Option<String>) -> Result<Loaded, ConfigError> {
    let dir = tempfile::tempdir().unwrap();
    for (name, text) in files {
        let path = dir.path().join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }
    load(&dir.path().join("matins.toml"), env, NOW.parse().unwrap())
}

fn load_text(text: &str) -> Result<Loaded, ConfigError> {
    load_files(&[("matins.toml", text)], &|name| (name == "SET").then(|| "from-env".to_owned()))
}

fn good() -> Loaded {
    load_text(GOOD).unwrap_or_else(|e| panic!("{e}"))
}

/// GOOD with one thing changed.
fn changed(from: &str, to: &str) -> String {
    assert!(GOOD.contains(from), "{from}");
    GOOD.replacen(from, to, 1)
}

/// Line of the first occurrence.
fn line_of(text: &str, needle: &str) -> usize {
    text.lines().position(|l| l.contains(needle)).unwrap() + 1
}

fn problems(text: &str) -> Vec<Problem> {
    load_text(text).expect_err("must be refused").problems
}

/// Holds the only problem of `text` to be at the line with `needle` and to say all `words`.
#[track_caller]
fn refused(text: &str, needle: &str, words: &[&str]) {
    let found = problems(text);
    let all = found.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n");
    assert_eq!(found.len(), 1, "{all}");
    assert_eq!(found[0].line, line_of(text, needle), "{all}");
    for word in words {
        assert!(all.contains(word), "{word} is not in:\n{all}");
    }
}

#[test]
fn a_good_config_is_read_whole() {
    let Loaded { config, warnings, files } = good();
    assert_eq!(warnings, []);
    assert_eq!(files.len(), 1);
    assert_eq!(config.version.len(), 12);
    assert_eq!(config.nats.urls, ["nats://127.0.0.1:4222"]);
    assert_eq!((config.nats.stream.as_str(), config.nats.durable.as_str()), ("FAILURES", "matins"));
    assert_eq!(config.http.public_url, "http://127.0.0.1:8420");
    assert_eq!(config.smtp.as_ref().map(|s| (s.port, s.tls)), Some((25, SmtpTls::None)));
    assert_eq!(config.workflows.iter().next().unwrap().slo.as_deref(), Some("0.9950"));
    assert_eq!(config.digests[&"daily".into()].timezone, chrono_tz::Tz::Asia__Kolkata);
    assert_eq!(config.digests[&"weekly".into()].timezone, chrono_tz::Tz::Europe__Berlin);
    assert_eq!(config.calendars[&"office".into()].holidays.len(), 2);
    assert_eq!(config.operator, [ReceiverName::from("ops")]);
    let route = &config.routes[0];
    assert_eq!(route.remind_every, parse_duration("4h"));
    assert_eq!((Some(route.resolve_after), Some(route.growth_every)), (parse_duration("15m"), parse_duration("5m")));
    assert_eq!(route.group_by.len(), 2);
    assert!(config.require_auth().is_ok());
}

#[test]
fn an_unknown_key_names_file_line_column_and_near_name() {
    let text = changed("tls = \"none\"", "tls = \"none\"\n  pasword = \"hunter2\"");
    let found = problems(&text);
    assert_eq!((found[0].file.as_str(), found[0].line, found[0].column), ("matins.toml", line_of(&text, "pasword"), 3));
    insta::assert_snapshot!(ConfigError { problems: found }, @r#"
    matins.toml:8:3: unknown key "pasword" in smtp; did you mean "password"?
       8 |   pasword = "…"
         |   ^^^^^^^
    1 problem in the config
    "#);
}

#[test]
fn keys_that_do_not_belong_are_refused() {
    refused(&changed("domain = [", "domian = ["), "domian", &["domian", "did you mean \"domain\""]);
    refused(&format!("colour = 1\n{GOOD}"), "colour", &["colour"]);
    refused(
        &changed("to = \"owner\"", "to = \"owner\"\nwebhook_url = \"http://a\""),
        "webhook_url = \"http://a\"",
        &["belongs to kind \"slack\""],
    );
    refused(&changed("digest.daily = [\"owner\"]", "digest.dayly = [\"owner\"]"), "dayly", &["dayly", "\"daily\""]);
}

#[test]
fn undefined_names_find_the_near_one() {
    for (from, to, near) in [
        ("page = [\"oncall\"]", "page = [\"oncal\"]", "\"oncall\""),
        ("calendar = \"office\"", "calendar = \"offce\"", "\"office\""),
        ("fallback = \"oncall-mail\"", "fallback = \"oncall-mal\"", "\"oncall-mail\""),
        ("kind = \"slack\"", "kind = \"slak\"", "\"slack\""),
        ("domain = \"money\"", "domain = \"mony\"", "\"money\""),
        ("timezone = \"Europe/Berlin\"", "timezone = \"Europe/Berln\"", "\"Europe/Berlin\""),
    ] {
        refused(&changed(from, to), to, &[to.split('"').nth(1).unwrap(), near]);
    }
}

#[test]
fn values_that_can_not_be_read_are_refused_where_they_stand() {
    for (from, to, words) in [
        ("every = \"24h\"", "every = 24", &["every", "quotes", "\"24s\""][..]),
        ("every = \"24h\"", "every = \"24 hours\"", &["24 hours", "1h30m"]),
        ("every = \"24h\"", "every = \"0s\"", &["longer than nothing"]),
        ("cron = \"0 10 * * *\"", "cron = \"0 25 * * *\"", &["0 25 * * *"]),
        ("timezone = \"Europe/Berlin\"", "timezone = \"CET+1\"", &["CET+1"]),
        ("[\"09:30-18:30\"]", "[\"9-17\"]", &["9-17"]),
        ("mon-fri =", "mon-fry =", &["mon-fry"]),
        ("slo = 0.9950", "slo = 99.5", &["99.5", "under 1"]),
        ("slo = 0.9950", "slo = \"0.9950\"", &["leave the quotes out"]),
        ("owner = \"Asha <asha@example.com>\"", "owner = \"Asha\"", &["no mailbox"]),
        ("2027-01-01", "\"1 Jan\"", &["2026-12-25"]),
        ("continue = true", "continue = \"true\"", &["true or false"]),
        ("listen = \"127.0.0.1:8420\"", "listen = \"8420\"", &["listen"]),
        ("\"http://127.0.0.1:1/oncall\"", "\"127.0.0.1:1/oncall\"", &["webhook_url", "http://"]),
        ("to = [\"oncall@example.com\"]", "to = [\"oncall@\"]", &["oncall@", "no mailbox"]),
        ("name = \"pay\"", "name = \" \"", &["blank"]),
        ("host = \"127.0.0.1\"", "port = 25", &["[smtp]", "host"]),
    ] {
        let text = changed(from, to);
        let found = problems(&text);
        let all = found.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n");
        let line = if to == "port = 25" { line_of(&text, "[smtp]") } else { line_of(&text, to) };
        assert!(found.len() == 1 && found[0].line == line, "{to}: {all}");
        words.iter().for_each(|w| assert!(all.contains(w), "{w} is not in:\n{all}"));
    }
}

#[test]
fn all_problems_come_at_once_in_the_order_of_lines() {
    let text = GOOD
        .replace("Europe/Berlin", "Mars/Base")
        .replace("0 10 * * *", "99 * * * *")
        .replace("page = [\"oncall\"]", "page = [\"nobody\"]")
        .replace("[http]", "[http]\ncolour = \"red\"");
    let found = problems(&text);
    let lines: Vec<usize> = found.iter().map(|p| p.line).collect();
    assert_eq!(lines, ["colour", "99 * * * *", "Mars/Base", "nobody"].map(|n| line_of(&text, n)));
}

#[test]
fn duplicate_names_name_both_places() {
    let text = changed("name = \"everything\"", "name = \"protected\"");
    let found = problems(&text);
    let first = line_of(&text, "name = \"protected\"");
    assert!(
        found[0].message.contains("duplicate") && found[0].message.contains(&format!("matins.toml:{first}:")),
        "{}",
        found[0]
    );
    assert!(found[0].line > first);
    let text = changed("name = \"report\"", "name = \"pay\"");
    assert!(problems(&text)[0].message.contains("workflow \"pay\" is already at"), "{:?}", problems(&text));
}

#[test]
fn every_key_of_a_syntax_error_is_found_and_other_files_are_still_looked_at() {
    let files = [
        ("matins.toml", &*format!("include = [\"more/*.toml\"]\n{GOOD}")),
        ("more/a.toml", "[nats\nurl = 1\n"),
        ("more/b.toml", "[[workflows]]\nname = \"x\"\ndomian = \"money\"\n"),
    ];
    let found = load_files(&files, &|_| None).expect_err("must be refused").problems;
    let places: Vec<(&str, usize)> = found.iter().map(|p| (p.file.as_str(), p.line)).collect();
    assert!(places.contains(&("more/a.toml", 1)) && places.contains(&("more/b.toml", 3)), "{places:?}");
    assert!(!places.iter().any(|p| p.0 == "matins.toml"), "{places:?}");
}

#[test]
fn included_files_merge_and_come_first() {
    let main = format!("include = [\"workflows/*.toml\", \"extra.toml\"]\n{GOOD}");
    let files = [
        ("matins.toml", main.as_str()),
        ("workflows/z.toml", "[[workflows]]\nname = \"z\"\n"),
        ("workflows/a.toml", "[[workflows]]\nname = \"a\"\ndomain = \"money\"\nowner = \"a@example.com\"\n"),
        ("extra.toml", "[redact]\nkeys = [\"iban\"]\n[receivers.extra]\nkind = \"file\"\ndir = \"out\"\n"),
    ];
    let loaded = load_files(&files, &|_| None).unwrap_or_else(|e| panic!("{e}"));
    let names: Vec<&str> = loaded.config.workflows.iter().map(|w| w.name.as_str()).collect();
    assert_eq!(names, ["a", "z", "pay", "report"]);
    assert_eq!(loaded.config.redact.keys, ["iban"]);
    assert_eq!(loaded.config.receivers.len(), 5);
    assert_eq!(loaded.files.len(), 4);
    assert_ne!(loaded.config.version, good().config.version);
}

#[test]
fn what_two_files_both_say_names_both_places() {
    let main = format!("include = \"extra.toml\"\n{GOOD}");
    let files = [
        ("matins.toml", main.as_str()),
        ("extra.toml", "[receivers.ops]\nkind = \"file\"\ndir = \"out\"\n[http]\nlisten = \"127.0.0.1:1\"\n"),
    ];
    let found = load_files(&files, &|_| None).expect_err("must be refused").problems;
    let all: Vec<String> = found.iter().map(|p| p.message.clone()).collect();
    assert!(all.iter().any(|m| m.contains("\"ops\"") && m.contains("extra.toml:1:")), "{all:?}");
    assert!(all.iter().any(|m| m.contains("\"listen\"") && m.contains("extra.toml:5:1")), "{all:?}");
    assert_eq!(found.len(), 2);
}

#[test]
fn includes_that_lead_nowhere_are_refused() {
    refused(&format!("include = \"gone.toml\"\n{GOOD}"), "gone.toml", &["gone.toml"]);
    let main = format!("include = \"matins.toml\"\n{GOOD}");
    refused(&main, "include", &["includes itself"]);
    let error = load(Path::new("no/such/matins.toml"), &|_| None, NOW.parse().unwrap()).expect_err("must be refused");
    assert!(error.to_string().contains("matins.toml: can't be read"), "{error}");
}

#[test]
fn the_environment_fills_values_in_and_is_never_shown() {
    use secrecy::ExposeSecret;
    let text = changed("\"xoxb-1\"", "\"${SET}$${lit}$5\"");
    let loaded = load_text(&text).unwrap();
    let receiver = &loaded.config.receivers[&"ops".into()];
    let crate::deliver::ReceiverKind::SlackBot { token, .. } = &receiver.kind else { panic!("{receiver:?}") };
    assert_eq!(token.expose_secret(), "from-env${lit}$5");
    refused(&changed("\"xoxb-1\"", "\"${NOT_SET}\""), "NOT_SET", &["NOT_SET is not set", "NOT_SET_FILE"]);
    refused(&changed("\"xoxb-1\"", "\"${\""), "\"${\"", &["$${"]);
    for (from, to) in [
        ("timezone = \"Europe/Berlin\"", "timezone = \"${SET}\""),
        ("cron = \"0 10 * * *\"", "cron = \"${SET}\""),
        ("owner = \"Asha <asha@example.com>\"", "owner = \"${SET}\""),
        ("page = [\"oncall\"]", "page = [\"x${SET}\"]"),
        ("webhook_url = \"http://127.0.0.1:1/oncall\"", "webhook_url = \"${SET}\""),
    ] {
        let all = load_text(&changed(from, to)).expect_err("must be refused").to_string();
        assert!(!all.contains("from-env") && all.contains("${SET}"), "{all}");
    }
}

#[test]
fn a_number_may_come_from_the_environment() {
    let text = changed("tls = \"none\"", "tls = \"none\"\nport = \"${PORT}\"");
    let loaded = load_files(&[("matins.toml", &text)], &|name| (name == "PORT").then(|| "2525".to_owned())).unwrap();
    assert_eq!(loaded.config.smtp.map(|s| s.port), Some(2525));
}

#[test]
fn routes_that_can_not_work_are_refused() {
    let cut = GOOD.split("[[routes]]\nname = \"everything\"").next().unwrap();
    let found = problems(cut);
    assert!(found[0].message.contains("catch-all") && found[0].message.contains("match = {}"), "{}", found[0]);
    let shadow =
        "[[routes]]\nname = \"shadow\"\nmatch = {}\ndigest.daily = [\"ops\"]\n[[routes]]\nname = \"everything\"";
    refused(&changed("[[routes]]\nname = \"everything\"", shadow), "\"everything\"", &["never reached", "shadow"]);
    let twice = "[[routes]]\nname = \"a\"\nmatch = { workflow = \"pa*\" }\npage = \"oncall\"\n[[routes]]\nname = \"b\"\nmatch = { workflow = [\"pay\"], class = \"transient\" }\npage = \"oncall\"\n";
    refused(&changed("[[routes]]", &format!("{twice}[[routes]]")), "name = \"b\"", &["never reached", "\"a\""]);
}

#[test]
fn a_protected_workflow_needs_a_page_receiver_and_a_fallback_behind_it() {
    refused(&changed("page = [\"oncall\"]\n", ""), "name = \"pay\"", &["pay", "page"]);
    refused(
        &changed(
            "match = { domain = [\"money\", \"compliance\"] }",
            "match = { domain = \"money\", class = \"transient\" }",
        ),
        "name = \"pay\"",
        &["page"],
    );
    refused(&changed("fallback = \"oncall-mail\"\n", ""), "[receivers.oncall]", &["oncall", "fallback"]);
    refused(&changed("fallback = \"oncall-mail\"", "fallback = \"oncall\""), "fallback", &["its own fallback"]);
    assert!(
        load_text(&changed("to = [\"oncall@example.com\"]", "to = [\"oncall@example.com\"]\nfallback = \"oncall\""))
            .is_ok()
    );
    let no_owner = changed("fallback = \"oncall-mail\"", "fallback = \"owner\"");
    refused(&no_owner, "fallback", &["can't stand in", "\"oncall\""]);
    // A receiver of owners' mail reaches nobody when there is no owner.
    let owner = changed("page = [\"oncall\"]", "page = [\"owner\"]")
        .replace("to = \"owner\"", "to = \"owner\"\nfallback = \"ops\"");
    assert!(load_text(&owner).is_ok());
    refused(&owner.replace("owner = \"Asha <asha@example.com>\"\n", ""), "name = \"pay\"", &["page"]);
}

#[test]
fn a_glob_of_protected_workflows_needs_a_route_that_covers_all_of_it() {
    let text = changed("name = \"pay\"", "name = \"pay-*\"");
    assert!(load_text(&text).is_ok());
    let by_name =
        |glob: &str| text.replace("{ domain = [\"money\", \"compliance\"] }", &format!("{{ workflow = \"{glob}\" }}"));
    for glob in ["pay-*", "p*", "*"] {
        assert!(load_text(&by_name(glob)).is_ok(), "{glob}");
    }
    for glob in ["pay-a*", "pay-?", "pay"] {
        refused(&by_name(glob), "name = \"pay-*\"", &["page"]);
    }
}

#[test]
fn no_route_takes_failures_of_a_protected_workflow_away_from_its_pages() {
    let first = |key: &str, rest: &str| {
        changed("[[routes]]", &format!("[[routes]]\nname = \"mine\"\nmatch = {{ {key} }}\n{rest}\n[[routes]]"))
    };
    let digest = "digest.daily = [\"ops\"]";
    for key in ["downstream = [\"hubspot\"]", "class = \"persistent\"", "step = \"a\"", "\"label.team\" = \"x\""] {
        refused(&first(key, digest), "name = \"mine\"", &["\"mine\"", "\"pay\"", "continue = true, or page receivers"]);
        assert!(load_text(&first(key, &format!("{digest}\ncontinue = true"))).is_ok(), "{key}");
        assert!(load_text(&first(key, "page = [\"oncall\"]")).is_ok(), "{key}");
        refused(&first(key, "page = [\"ops\"]"), "[receivers.ops]", &["\"ops\"", "fallback"]);
        let standard = format!("domain = \"standard\", {key}");
        assert!(load_text(&first(&standard, digest)).is_ok(), "{key}");
    }
    // Behind the route that pages for all of it, a route may keep what it likes.
    let later = "[[routes]]\nname = \"mine\"\nmatch = { step = \"a\" }\ndigest.daily = [\"ops\"]\n[[routes]]\nname = \"everything\"";
    assert!(load_text(&changed("[[routes]]\nname = \"everything\"", later)).is_ok());
}

#[test]
fn no_route_takes_some_names_of_a_protected_glob_away_from_its_pages() {
    let text = changed("name = \"pay\"", "name = \"pay-*\"");
    let first = |glob: &str, text: &str| {
        let route = format!(
            "[[routes]]\nname = \"mine\"\nmatch = {{ workflow = \"{glob}\" }}\ndigest.daily = [\"ops\"]\n[[routes]]"
        );
        text.replacen("[[routes]]", &route, 1)
    };
    for glob in ["pay-refund", "*-refund", "p?y-?"] {
        refused(&first(glob, &text), "name = \"mine\"", &["\"mine\"", "\"pay-*\""]);
    }
    for glob in ["report", "?ay", "refund-*"] {
        assert!(load_text(&first(glob, &text)).is_ok(), "{glob}");
    }
    let other = text.replacen("[[workflows]]", "[[workflows]]\nname = \"pay-test\"\n[[workflows]]", 1);
    assert!(load_text(&first("pay-test", &other)).is_ok(), "an exact name is another workflow's");
}

#[test]
fn the_last_route_reaches_somebody_for_each_workflow() {
    for digest in ["digest.daily = [\"owner\"]\n", ""] {
        let text = changed("digest.daily = [\"ops\", \"owner\"]\ndigest.weekly = [\"ops\"]\n", digest);
        refused(&text, "name = \"everything\"", &["\"everything\"", "reaches nobody for sure"]);
    }
}

#[test]
fn nobody_escalates_to_owners_that_are_not_there() {
    let text = changed("continue = true", "continue = true\nescalate = [{ after = \"10m\", to = [\"owner\"] }]");
    assert!(load_text(&text).is_ok());
    let text = text.replace("owner = \"Asha <asha@example.com>\"\n", "");
    let text = text
        .replace("owner = \"Ben <ben@example.com>\"\n", "")
        .replace("to = \"owner\"", "to = \"owner\"\nfallback = \"ops\"");
    refused(&text, "escalate", &["\"protected\"", "no workflow has one"]);
}

#[test]
fn no_problem_quotes_a_secret() {
    const S: &str = "S3cr3t";
    let nats = |rest: &str| format!("[nats]\n{rest}\n{GOOD}");
    for text in [
        changed("\"http://127.0.0.1:1/oncall\"", &format!("\"htp://a:{S}@h/x?key={S}\"")),
        changed("\"http://127.0.0.1:1/oncall\"", &format!("[\"http://h/{S}\"]")),
        format!("receivers.more = \"https://h/{S}\"\n{GOOD}"),
        changed("\"xoxb-1\"", &format!("\"${{{S}\"")),
        changed("page = [\"oncall\"]", &format!("page = [\"https://u:{S}@h/?{S}\"]")),
        nats(&format!("url = \"nats:/ user:{S}@h\"")),
        nats(&format!("url = [\n\"http://user:{S}@h\"\n]")),
        nats(&format!("user = \"u\"\npassword = \"${{X_{S}\"")),
        nats(&format!("token = \"{S}")),
        nats(&format!("password = [\"{S}\"]")),
    ] {
        let error = load_text(&text).expect_err("must be refused");
        let all = format!("{error}\n{error:?}");
        assert!(!all.contains(S), "{all}");
    }
}

#[test]
fn user_and_password_of_an_address_of_nats_are_kept_apart_from_it() {
    use secrecy::ExposeSecret;
    let nats = |rest: &str| load_text(&format!("[nats]\n{rest}\n{GOOD}"));
    let read = nats("url = [\"nats://us%40er:p+a%2Fss@h:4222\", \"nats://b:1\"]").unwrap().config.nats;
    assert_eq!(read.urls, ["nats://h:4222", "nats://b:1"]);
    let NatsAuth::Password(user, password) = read.auth else { panic!("a password") };
    assert_eq!((user.as_str(), password.expose_secret()), ("us@er", "p+a/ss"));
    assert!(matches!(nats("url = \"nats://t0ken@h\"").unwrap().config.nats.auth, NatsAuth::Token(_)));
    assert!(nats("url = \"nats://a:b@h\"\ntoken = \"c\"").unwrap_err().to_string().contains("two ways"));
    assert!(nats("url = [\"nats://a:b@h\", \"nats://a:c@h\"]").unwrap_err().to_string().contains("different users"));
}

#[test]
fn names_that_could_lead_elsewhere_are_refused() {
    for name in ["\"a/b\"", "\"a b\"", "\"..\"", "\"a..b\"", "\".a\"", "\"é\""] {
        let text = format!("{GOOD}\n[receivers.{name}]\nkind = \"file\"\ndir = \"out\"\n");
        refused(&text, &format!("[receivers.{name}]"), &["no name"]);
        let text = format!("{GOOD}\n[digests.{name}]\ncron = \"@daily\"\n");
        refused(&text, &format!("[digests.{name}]"), &["no name"]);
    }
}

#[test]
fn a_store_in_memory_and_a_stream_of_everything_are_refused() {
    for url in ["sqlite://:memory:", "sqlite://x?mode=memory"] {
        refused(&format!("[store]\nurl = \"{url}\"\n{GOOD}"), "url = ", &["in memory"]);
    }
    refused(&format!("[nats]\nsubjects = [\">\"]\n{GOOD}"), "subjects", &["every subject"]);
}

#[test]
fn what_goes_together_is_asked_for_together() {
    refused(&changed("channel = \"#ops\"\n", ""), "bot_token", &["\"channel\""]);
    refused(
        &changed("bot_token = \"xoxb-1\"\nchannel = \"#ops\"\n", ""),
        "[receivers.ops]",
        &["webhook_url", "bot_token"],
    );
    refused(
        &changed("bot_token = \"xoxb-1\"", "webhook_url = \"http://a/b\"\nbot_token = \"xoxb-1\""),
        "bot_token",
        &["two ways"],
    );
    refused(&changed("tls = \"none\"", "tls = \"none\"\nusername = \"bot\""), "username", &["\"password\""]);
    refused(&format!("[nats]\ntoken = \"a\"\nnkey = \"b\"\n{GOOD}"), "token = \"a\"", &["two ways"]);
    let smtp = "[smtp]\nhost = \"127.0.0.1\"\ntls = \"none\"\nfrom = \"Matins <matins@example.com>\"\n";
    assert!(problems(&changed(smtp, "")).iter().all(|p| p.message.contains("[smtp]")));
}

#[test]
fn a_minimal_file_says_what_is_needed() {
    let all = load_text("").expect_err("must be refused").to_string();
    assert!(all.contains("no [[routes]]") && all.contains("match = {}"), "{all}");
    let least = "[receivers.ops]\nkind = \"file\"\ndir = \"out\"\n[digests.daily]\ncron = \"@daily\"\n[[routes]]\nname = \"everything\"\nmatch = {}\ndigest.daily = \"ops\"\n";
    assert_eq!(load_text(least).unwrap().warnings, []);
}

#[test]
fn silences_end_in_time_and_say_when_they_hide_protected_workflows() {
    let silence = |rest: &str| format!("{GOOD}\n[[silences]]\nreason = \"r\"\nby = \"b\"\n{rest}\n");
    let read = load_text(&silence("match = { workflow = \"report\" }\nuntil = 2026-12-01T00:00:00Z")).unwrap();
    assert_eq!(read.config.silences[0].id, "config-d9f19482");
    refused(&silence("match = { workflow = \"report\" }\nuntil = \"2027-01-01T00:00:00Z\""), "until", &["30 days"]);
    refused(&silence("match = { workflow = \"report\" }\nuntil = 2026-12-01T00:00:00"), "until", &["offset"]);
    let long = "match = { workflow = \"pay\" }\nprotected = true\nuntil = 2026-11-19T00:00:00Z";
    refused(&silence(long), "until", &["24 h"]);
    let bare = silence("match = { domain = \"money\" }\nuntil = 2026-11-18T00:00:00Z");
    refused(&bare, "match = { domain = \"money\" }", &["protected = true"]);
    assert!(
        load_text(&silence("match = { workflow = \"pay\" }\nprotected = true\nuntil = 2026-11-18T00:00:00Z")).is_ok()
    );
    let over = load_text(&silence("match = {}\nuntil = 2026-11-01T00:00:00Z")).unwrap();
    assert!(over.warnings[0].message.contains("is over"));
}

#[test]
fn a_silence_and_a_watched_table_keep_their_id_wherever_they_stand() {
    let silence = |globs: &str| {
        format!(
            "[[silences]]\nreason = \"r\"\nby = \"b\"\nuntil = 2026-12-01T00:00:00Z\nmatch = {{ step = {globs} }}\n"
        )
    };
    let table = |query: &str, password: &str| {
        format!("[[watch.sql]]\nurl = \"postgres://u:{password}@db/x\"\nquery = \"{query}\"\n")
    };
    let ids = |text: String| {
        let config = load_text(&text).unwrap().config;
        let silences = config.silences.iter().map(|s| s.id.clone());
        silences.chain(config.watch.sql.iter().map(|t| t.name.clone())).collect::<Vec<_>>()
    };
    let one = ids(format!("{GOOD}\n{}{}", silence("[\"a\", \"b\"]"), table("SELECT 1", "p")));
    let more = format!("{}{}", silence("\"c\""), silence("[\"b\", \"a\"]"));
    let other = ids(format!("{GOOD}\n{more}{}{}", table("SELECT 2", "p"), table("SELECT 1", "q")));
    assert_eq!([&other[1], &other[3]], [&one[0], &one[1]], "order, glob order and password don't count");
    assert!(other[0] != other[1] && other[2] != other[3], "{other:?}");
}

#[test]
fn off_loopback_only_tokens_keep_strangers_out() {
    let open = changed("listen = \"127.0.0.1:8420\"", "listen = \"0.0.0.0:8420\"");
    refused(&open, "listen", &["[[web.auth.tokens]]"]);
    refused(&format!("{open}\n[web.auth]\ntrusted_proxy_header = \"x-user\"\n"), "listen", &["[[web.auth.tokens]]"]);
    let token = "[[web.auth.tokens]]\nname = \"t\"\ntoken = \"a-long-secret\"\nrole = \"read\"\n";
    let read = load_text(&format!("{open}\n{token}")).unwrap();
    assert!(read.warnings.iter().all(|w| !w.message.contains("no effect")), "{:?}", read.warnings);
}

#[test]
fn symptoms_take_the_keys_of_their_kind_and_must_be_able_to_fire() {
    let symptom = |rest: &str| format!("{GOOD}\n[[symptoms]]\nname = \"s\"\n{rest}\n");
    for good in [
        "kind = \"burn_rate\"\nslo = 0.999\nexpected_per_day = 9600\ntiers = [{ name = \"fast\", burn = 14.4, long = \"1h\", short = \"5m\", severity = \"page\" }]",
        "kind = \"failing_streak\"\ncount = 3\nover = \"0s\"",
        "kind = \"run_failed\"",
        "kind = \"dead_letter_age\"\nover = \"1h\"",
        "kind = \"dead_letter_depth\"\nover = 100000\nseverity = \"digest\"",
        "kind = \"dead_letter_rate\"\nover = 5\nwindow = \"1h\"",
        "kind = \"failure_trend\"\nfactor = 2.5",
        "kind = \"retry_pressure\"\nover = 1",
        "kind = \"absence\"",
        "kind = \"unhealthy\"\nfor = \"1m\"",
        "kind = \"repeat_offender\"\ncount = 3\nof = 20",
        "kind = \"systemic\"\nmatch = {}",
        "kind = \"breaker\"\nratio = 1.0",
        "kind = \"queue_age\"\nover = \"1h\"\n[[watch.streams]]\nname = \"q\"\nstream = \"WORK\"",
    ] {
        assert!(load_text(&symptom(good)).is_ok(), "{good}: {:?}", load_text(&symptom(good)).err());
    }
    for (bad, at, word) in [
        ("kind = \"absence\"\nover = \"1h\"", "over", "\"over\" belongs to kind"),
        ("kind = \"burn_rat\"", "burn_rat", "\"burn_rate\""),
        ("kind = \"dead_letter_depth\"\nover = \"1h\"", "over = \"1h\"", "whole number"),
        ("kind = \"absence\"\nmatch = { workflow = \"report\" }", "kind = \"absence\"", "can't fire"),
        ("kind = \"burn_rate\"\nmatch = { workflow = \"report\" }", "kind = \"burn_rate\"", "can't fire"),
        ("kind = \"repeat_offender\"\ncount = 30", "count", "can't fire"),
        ("kind = \"breaker\"\nratio = 1.5", "ratio", "1.5"),
        ("kind = \"failing_streak\"\ncount = 0", "count", "from 1"),
        ("kind = \"queue_depth\"\nover = 5", "kind = \"queue_depth\"", "watch.streams"),
        (
            "kind = \"burn_rate\"\nslo = 0.9\ntiers = [{ name = \"fast\", burn = 10, long = \"1h\", short = \"5m\" }]",
            "tiers",
            "can't fire",
        ),
        (
            "kind = \"burn_rate\"\nslo = 0.9\ntiers = [{ name = \"fast\", burn = 2, long = \"5m\", short = \"5m\" }]",
            "tiers",
            "shorter",
        ),
    ] {
        refused(&symptom(bad), at, &[word]);
    }
}

/// A rule of kind `burn_rate` with tiers; a `%` stands for the keys of a good one.
fn burn(keys: &str) -> String {
    let good = r#"name = "fast", burn = 14.4, long = "1h", short = "5m""#;
    format!("kind = \"burn_rate\"\nslo = 0.999\n{}", keys.replace('%', good))
}

#[test]
fn thresholds_that_nothing_can_cross_are_refused_where_they_stand() {
    let symptom = |rest: &str| format!("{GOOD}\n[[symptoms]]\nname = \"s\"\n{rest}\n");
    for (bad, at, words) in [
        (burn("tiers = []"), "tiers", ["has no tiers", "leave \"tiers\" out"]),
        (
            burn(r#"tiers = [{ name = "a", burn = 2, long = "1h", short = "5s" }]"#),
            "tiers",
            ["tier \"a\"", "under 10 s"],
        ),
        (
            burn("period = \"90d\"\ntiers = [{ name = \"a\", burn = 2, long = \"31d\", short = \"1h\" }]"),
            "tiers",
            ["over 30 d", "kept no longer"],
        ),
        (burn("period = \"2d\""), "period", ["default tiers look back 3 d", "shorter windows"]),
        (burn(r#"tiers = [{ name = "a", burn = inf, long = "1h", short = "5m" }]"#), "tiers", ["burn", "inf"]),
        ("kind = \"dead_letter_rate\"\nover = 5\nwindow = \"9s\"".into(), "window", ["window is shorter", "longer"]),
        ("kind = \"failure_trend\"\nwindow = \"49h\"".into(), "window", ["longer than 2 d", "earlier weeks"]),
        ("kind = \"retry_pressure\"\nwindow = \"31d\"".into(), "window", ["longer than 30 d", "kept"]),
        ("kind = \"repeat_offender\"\nof = 201".into(), "of = 201", ["can't fire", "only 200 dead letters"]),
        ("kind = \"repeat_offender\"\ncount = 1".into(), "count", ["no pattern", "2 or more"]),
        ("kind = \"systemic\"\ncount = 1".into(), "count", ["no pattern", "2 or more"]),
        ("kind = \"systemic\"\ncount = 65".into(), "count", ["can't fire", "only 64 workflows"]),
        ("kind = \"systemic\"\nwindow = \"1s\"".into(), "window", ["window is shorter", "longer"]),
        ("kind = \"breaker\"\nof = 101".into(), "of = 101", ["can't fire", "only 100 calls"]),
        (
            "kind = \"dead_letter_depth\"\nmatch = { class = \"persistent\" }".into(),
            "match = { class",
            ["can't fire", "no class"],
        ),
        (
            "kind = \"run_failed\"\nmatch = { \"label.team\" = \"nobody\" }".into(),
            "kind = \"run_failed\"",
            ["can't fire", "label \"team\""],
        ),
    ] {
        refused(&symptom(&bad), at, &words);
    }
}

#[test]
fn the_widest_thresholds_that_are_remembered_are_taken() {
    for good in [
        burn("period = \"3d\""),
        burn(r#"tiers = [{ %, severity = "page" }, { name = "slow", burn = 1, long = "30d", short = "1m" }]"#),
        "kind = \"dead_letter_rate\"\nover = 5\nwindow = \"10s\"".into(),
        "kind = \"failure_trend\"\nwindow = \"48h\"".into(),
        "kind = \"repeat_offender\"\ncount = 200\nof = 200".into(),
        "kind = \"systemic\"\ncount = 64".into(),
        "kind = \"breaker\"\nof = 100".into(),
        "kind = \"systemic\"\nmatch = { downstream = \"hub*\" }".into(),
        "kind = \"run_failed\"\nmatch = { \"label.team\" = \"sa*\" }\n[[workflows]]\nname = \"crm\"\nlabels = { team = \"sales\" }"
            .into(),
    ] {
        let loaded = load_text(&format!("{GOOD}\n[[symptoms]]\nname = \"s\"\n{good}\n"));
        let loaded = loaded.unwrap_or_else(|error| panic!("{good}: {error}"));
        let doubted = loaded.warnings.iter().any(|w| w.message.contains("symptom"));
        assert!(!doubted, "{good}: {:?}", loaded.warnings);
    }
}

#[test]
fn thresholds_that_do_something_else_than_one_may_think_are_warned_of() {
    for (odd, words) in [
        (burn(r#"tiers = [{ name = "a", burn = 0.99, long = "1h", short = "5m" }]"#), "within the objective"),
        (burn(r#"tiers = [{ name = "a", burn = 2, long = "1h", short = "59s" }]"#), "coarse"),
        (burn("period = \"90d\""), "counts are kept for 30 d"),
    ] {
        let loaded = load_text(&format!("{GOOD}\n[[symptoms]]\nname = \"s\"\n{odd}\n")).unwrap();
        assert!(loaded.warnings.iter().any(|w| w.message.contains(words)), "{odd}: {:?}", loaded.warnings);
    }
    let hasty =
        load_text(&format!("{GOOD}\n[[workflows]]\nname = \"tick\"\nevery = \"5s\"\ngrace = \"1s\"\n")).unwrap();
    assert!(hasty.warnings.iter().any(|w| w.message.contains("between two looks")), "{:?}", hasty.warnings);
}

#[test]
fn a_total_failure_must_exceed_a_tier_exactly() {
    let tiers = |burn: &str| {
        let tier = format!("{{ name = \"fast\", burn = {burn}, long = \"1h\", short = \"5m\" }}");
        let rule = format!("[[symptoms]]\nname = \"s\"\nkind = \"burn_rate\"\ntiers = [{tier}]\n");
        format!("{}\n{rule}", changed("slo = 0.9950", "slo = 0.9"))
    };
    assert!(load_text(&tiers("9.999")).is_ok());
    refused(&tiers("10"), "tiers", &["at slo 0.9", "fast"]);
    let text = changed("slo = 0.9950", "slo = 0.9");
    assert!(load_text(&text).unwrap().warnings[0].message.contains("page_fast"));
}

#[test]
fn what_has_no_effect_yet_is_a_warning_at_its_line() {
    let text = format!("{GOOD}\n[watchdog]\nping_url = \"http://127.0.0.1/ping\"\n[advisories]\nenabled = true\n");
    let warnings = load_text(&text).unwrap().warnings;
    for key in ["watchdog", "advisories"] {
        let found = warnings.iter().find(|w| w.message.contains(key)).unwrap();
        assert!(found.message.contains("no effect yet"));
        assert_eq!(found.line, line_of(&text, &format!("[{key}]")));
    }
    let inner = format!("{GOOD}\n[[watch.streams]]\nname = \"a\"\nstream = \"B\"\n");
    let warnings = load_text(&inner).unwrap().warnings;
    let lines: Vec<usize> = warnings.iter().map(|w| w.line).collect();
    assert_eq!(lines, [line_of(&inner, "[[watch.streams]]")]);
}

#[test]
fn holidays_of_a_file_close_a_calendar_and_a_bad_file_is_refused_at_its_line() {
    let text = GOOD.replace("holidays =", "holidays_ics = \"days.ics\"\nholidays =");
    let day = "BEGIN:VCALENDAR\r\nBEGIN:VEVENT\r\nUID:1\r\nSUMMARY:Diwali\r\nDTSTART;VALUE=DATE:20261108\r\nEND:VEVENT\r\nEND:VCALENDAR\r\n";
    let loaded = load_files(&[("matins.toml", &text), ("days.ics", day)], &|_| Some("x".to_owned())).unwrap();
    let holidays = &loaded.config.calendars[&"office".into()].holidays;
    assert!(holidays.contains(&"2026-11-08".parse().unwrap()), "{holidays:?}");
    assert_eq!(holidays.len(), 3);
    assert!(loaded.files.iter().any(|f| f.ends_with("days.ics")), "{:?}", loaded.files);
    let changed = day.replace("20261108", "20261109");
    let other = load_files(&[("matins.toml", &text), ("days.ics", &changed)], &|_| Some("x".to_owned())).unwrap();
    assert_ne!(loaded.config.version, other.config.version);
    refused(&text, "holidays_ics", &["days.ics", "can't be read"]);
}

#[test]
fn postgres_and_open_addresses_are_refused() {
    refused(&format!("[store]\nurl = \"postgres://u:pw@db/x\"\n{GOOD}"), "postgres", &["not supported yet"]);
    refused(&changed("127.0.0.1:8420", "0.0.0.0:8420"), "0.0.0.0", &["auth"]);
}

#[test]
fn paths_of_config_are_beside_the_file_that_names_them() {
    let text = format!("{GOOD}\n[templates]\ndir = \"own\"\n[nats]\ncreds = \"a.creds\"\n");
    let loaded = load_text(&text).unwrap();
    let folder = loaded.files[0].parent().unwrap();
    assert_eq!(loaded.config.templates_dir, Some(folder.join("own")));
    assert!(matches!(&loaded.config.nats.auth, NatsAuth::Creds(path) if *path == folder.join("a.creds")));
}

#[test]
fn the_config_of_the_repository_works_as_it_is() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("config/matins.toml");
    let loaded = load(&path, &|_| None, NOW.parse().unwrap()).unwrap_or_else(|e| panic!("{e}"));
    assert_eq!(loaded.warnings, [], "a first look must not begin with warnings");
}

#[test]
fn every_default_fits_its_own_form() {
    fn walk(section: &'static keys::Section) {
        for key in section.keys.iter().chain(section.kinds.iter().flat_map(|k| k.keys)) {
            if let Some(default) = key.default {
                assert_eq!(value::problem(&key.form, default), None, "{}.{}", section.title, key.name);
            }
            assert!(!(key.doc.is_empty() || key.required && key.default.is_some()), "{}.{}", section.title, key.name);
            if let keys::Form::Table(s) | keys::Form::FlagOrTable(s) | keys::Form::Tables(s) | keys::Form::Named(s) =
                &key.form
            {
                walk(s);
            }
        }
    }
    walk(&sections::ROOT);
}

#[test]
fn the_schema_holds_every_section_and_is_closed() {
    let schema = json_schema();
    let properties = schema["properties"].as_object().unwrap();
    assert_eq!(properties.len(), sections::ROOT.keys.len());
    assert_eq!(schema["additionalProperties"], false);
    assert_eq!(schema["properties"]["receivers"]["additionalProperties"]["oneOf"].as_array().unwrap().len(), 5);
    assert_eq!(schema["properties"]["smtp"]["required"], serde_json::json!(["host", "from"]));
}

/// Texts that are often almost a config.
fn almost_config() -> impl Strategy<Value = String> {
    let lines: Vec<String> = GOOD.lines().map(str::to_owned).collect();
    let junk = prop_oneof![
        ".{0,30}",
        Just("x = {".to_owned()),
        Just("[[routes]]".to_owned()),
        Just("match = 5".to_owned()),
        Just("digest.daily = 1".to_owned()),
        Just("kind = [\"é${\"]".to_owned())
    ];
    proptest::collection::vec(prop_oneof![3 => proptest::sample::select(lines), 1 => junk], 0..40)
        .prop_map(|l| l.join("\n"))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn no_text_panics_and_every_problem_prints(text in prop_oneof![almost_config(), "(?s).{0,200}"]) {
        if let Err(error) = load_text(&text) {
            prop_assert!(!error.problems.is_empty());
            prop_assert!(!error.to_string().is_empty());
        }
    }
}

#[test]
fn reminders_that_nobody_can_hear_are_refused() {
    let hasty = changed("page = [\"oncall\"]", "page = [\"oncall\"]\nremind_every = \"1ms\"");
    refused(&hasty, "1ms", &["less than a second"]);
}
