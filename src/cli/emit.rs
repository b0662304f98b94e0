//! `matins emit`: one event from the command line.

use super::Failure;
use super::args::{EmitArgs, Service};
use super::list::say;
use super::report::{self, Way};
use serde_json::{Map, Value, json};

pub(super) async fn run(service: &Service, args: EmitArgs) -> Result<(), Failure> {
    let event = report::with_id(event(&args))?;
    let id = event["id"].as_str().unwrap_or_default();
    match report::hand_over(service, &args.fallback, &event, report::Patience::LONG).await? {
        Way::Service => say(&format!("Event {id} is stored.\n")),
        Way::Nats => say(&format!("The service is away. Event {id} is stored in NATS, and read when it is back.\n")),
    }
}

/// The event that the arguments describe; what was not given is left out.
fn event(args: &EmitArgs) -> Map<String, Value> {
    let text = |value: &Option<String>| value.as_ref().map(|v| json!(v));
    let error = given([
        ("message", text(&args.message)),
        ("type", text(&args.error_type)),
        ("code", text(&args.code)),
        ("http_status", args.http_status.map(|v| json!(v))),
    ]);
    let pairs = |pairs: &[(String, String)]| {
        let table: Map<String, Value> = pairs.iter().map(|(key, value)| (key.clone(), json!(value))).collect();
        (!table.is_empty()).then_some(Value::Object(table))
    };
    given([
        ("id", text(&args.id)),
        ("type", text(&args.event_type)),
        ("workflow", Some(json!(args.workflow))),
        ("step", text(&args.step)),
        ("run_id", text(&args.run_id)),
        ("item", text(&args.item)),
        ("class", text(&args.class)),
        ("disposition", text(&args.disposition)),
        ("error", (!error.is_empty()).then_some(Value::Object(error))),
        ("attempt", args.attempt.map(|v| json!(v))),
        ("max_attempts", args.max_attempts.map(|v| json!(v))),
        ("downstream", text(&args.downstream)),
        ("occurred_at", text(&args.at)),
        ("ok", args.ok.map(|v| json!(v))),
        ("failed", args.failed.map(|v| json!(v))),
        ("status", text(&args.status)),
        ("note", text(&args.note)),
        ("labels", pairs(&args.labels)),
        ("links", pairs(&args.links)),
    ])
}

fn given<const N: usize>(fields: [(&str, Option<Value>); N]) -> Map<String, Value> {
    fields.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::Cli;
    use crate::cli::args::Command;
    use clap::Parser as _;

    #[test]
    fn what_is_not_given_is_left_out() {
        let words =
            "matins emit --workflow pay --class persistent --item inv-5 --http-status 402 --label team=a=b --ok 0";
        let cli = Cli::try_parse_from(words.split(' ')).expect("arguments");
        let Command::Emit(args) = cli.command else { panic!("emit is expected") };
        assert_eq!(
            Value::Object(event(&args)),
            json!({ "workflow": "pay", "class": "persistent", "item": "inv-5", "error": { "http_status": 402 },
                    "labels": { "team": "a=b" }, "ok": 0 })
        );
    }
}
