//! Slack: incoming webhook and `chat.postMessage`. Whether Slack took it is read in `outcome`.

use super::http::Http;
use super::outcome;
use crate::outbox::Outcome;
use crate::render::SlackMessage;
use chrono::{DateTime, Utc};
use reqwest::header::{AUTHORIZATION, HeaderMap, HeaderValue};
use secrecy::{ExposeSecret, SecretString};
use serde_json::{Map, Value, json};

/// Posts to an incoming webhook.
pub async fn send_webhook(http: &Http, url: &SecretString, message: &SlackMessage, now: DateTime<Utc>) -> Outcome {
    post(http, url, HeaderMap::new(), &body(message, None), now).await
}

/// Posts with a bot token.
pub async fn send_bot(
    http: &Http,
    api_url: &str,
    token: &SecretString,
    channel: &str,
    message: &SlackMessage,
    now: DateTime<Utc>,
) -> Outcome {
    let Ok(mut bearer) = HeaderValue::from_str(&format!("Bearer {}", token.expose_secret())) else {
        return Outcome::Permanent { why: "the bot token has characters that no token has".to_owned(), broken: true };
    };
    bearer.set_sensitive(true);
    let headers = HeaderMap::from_iter([(AUTHORIZATION, bearer)]);
    let url = SecretString::from(format!("{}/chat.postMessage", api_url.trim_end_matches('/')));
    post(http, &url, headers, &body(message, Some(channel)), now).await
}

async fn post(http: &Http, url: &SecretString, headers: HeaderMap, body: &Value, now: DateTime<Utc>) -> Outcome {
    match http.post(url, headers, body.to_string().into_bytes()).await {
        Ok(answer) => outcome::slack(answer.reply(), now),
        Err(outcome) => outcome,
    }
}

/// The JSON of a message. Links are not unfurled: a preview would show an acknowledge link to Slack's crawler.
pub fn body(message: &SlackMessage, channel: Option<&str>) -> Value {
    let mut body = Map::new();
    if let Some(channel) = channel {
        body.insert("channel".to_owned(), json!(channel));
    }
    body.insert("text".to_owned(), json!(message.text));
    if !message.blocks.is_empty() {
        body.insert("blocks".to_owned(), json!(message.blocks));
    }
    body.insert("unfurl_links".to_owned(), json!(false));
    body.insert("unfurl_media".to_owned(), json!(false));
    Value::Object(body)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_without_blocks_has_no_blocks_key() {
        let mut message = SlackMessage { text: "declined".into(), blocks: vec![json!({"type": "divider"})] };
        assert_eq!(
            body(&message, Some("#oncall")),
            json!({"channel": "#oncall", "text": "declined", "blocks": [{"type": "divider"}], "unfurl_links": false,
                   "unfurl_media": false})
        );
        message.blocks.clear();
        assert_eq!(body(&message, None), json!({"text": "declined", "unfurl_links": false, "unfurl_media": false}));
    }
}
