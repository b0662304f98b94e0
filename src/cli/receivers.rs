//! `matins receivers test`: whether a message arrives.

use super::Failure;
use super::args::Receivers;
use super::client::{self, Client};
use super::list::say;
use super::table::field;
use serde_json::json;

pub(super) async fn run(client: &Client, command: Receivers) -> Result<(), Failure> {
    let Receivers::Test { name } = command;
    let outcome = client.post(&client::path("receivers", &name, "/test"), &json!({})).await?;
    let (state, number, error) = (field(&outcome, "state"), field(&outcome, "number"), field(&outcome, "last_error"));
    match state.as_str() {
        "sent" => say(&format!("Test #{number} was taken by {name}.\n")),
        "pending" if error.is_empty() => {
            Err(anyhow::anyhow!("test #{number} waits for {name}; see `matins outbox list`").into())
        }
        _ => Err(anyhow::anyhow!("test #{number} to {name} is {state}: {error}").into()),
    }
}
