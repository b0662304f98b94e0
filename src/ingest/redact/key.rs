//! Which names are those of secrets. A name counts by the noun that it ends with: `access_token` is one, `token_count`
//! and `cookie_policy` are not. Values are not looked at here.

use aho_corasick::AhoCorasick;

/// What the name of a key says of its value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Secrecy {
    /// The value is a secret of whatever type.
    Secret,
    /// A text is a secret, a number is a count: `tokens`, `pass`.
    SecretText,
    /// An id or an instant: digits that look like a card number are none.
    Identity,
    /// Nothing is known.
    Open,
}

/// Parts of names without which none of the rules below can hold.
const HINTS: [&str; 10] = ["pass", "pwd", "secret", "token", "cookie", "auth", "key", "cvv", "cvc", "jwt"];

/// Nouns that are secrets, also at the end of a longer word (`accesstoken`).
const NOUNS: [&str; 12] = [
    "password",
    "passwd",
    "passphrase",
    "passcode",
    "pwd",
    "secret",
    "token",
    "cookie",
    "authorization",
    "authorisation",
    "apikey",
    "jwt",
];

/// Nouns that are secrets when they stand alone as a word.
const WORDS: [&str; 6] = ["cvv", "cvc", "passwords", "secrets", "cookies", "apikeys"];

/// What a key must be called to be a secret key.
const KEYS: [&str; 9] = ["api", "secret", "private", "access", "signing", "encryption", "account", "auth", "master"];

/// What may follow a secret's name without changing what it is.
const TAILS: [&str; 14] = [
    "value",
    "hash",
    "plain",
    "plaintext",
    "raw",
    "string",
    "text",
    "old",
    "new",
    "current",
    "confirm",
    "confirmation",
    "header",
    "base64",
];

/// Nouns that make a secret of a name wherever they stand in it: `x_password_y`.
const ANYWHERE: [&str; 4] = ["password", "passwd", "passphrase", "secret"];

/// What is said of a secret and is none, as the last word of a name.
const ABOUT: [&str; 24] = [
    "policy", "name", "names", "count", "length", "required", "reset", "changed", "expired", "expires", "expiry", "at",
    "age", "rotation", "version", "type", "error", "attempts", "field", "manager", "strength", "status", "enabled",
    "set",
];

/// Names whose values are ids and instants.
const IDENTITIES: [&str; 8] =
    ["id", "run_id", "occurred_at", "received_at", "timestamp", "epoch", "redriven_from", "dead_letter_id"];

/// The built-in names and those of `[redact] keys`.
#[derive(Debug)]
pub struct KeyNames {
    hints: Option<AhoCorasick>,
    extra: Vec<String>,
}

impl KeyNames {
    /// `extra` in any case, `-` and `_` alike.
    pub fn new(extra: &[String]) -> Self {
        let extra: Vec<String> = extra.iter().map(|name| squash(name)).filter(|name| !name.is_empty()).collect();
        let hints = AhoCorasick::builder().ascii_case_insensitive(true).build(HINTS).ok();
        Self { hints, extra }
    }

    /// What a name says of its value.
    pub fn secrecy(&self, name: &str) -> Secrecy {
        if !self.extra.is_empty() && self.extra.contains(&squash(name)) {
            return Secrecy::Secret;
        }
        if IDENTITIES.contains(&name) {
            return Secrecy::Identity;
        }
        // Without the automaton, which can't fail to build, every name takes the long way.
        if self.hints.as_ref().is_some_and(|hints| !hints.is_match(name)) {
            return Secrecy::Open;
        }
        judge(&words(name))
    }
}

/// Letters and digits in lower case.
fn squash(name: &str) -> String {
    name.chars().filter(|c| c.is_alphanumeric()).flat_map(char::to_lowercase).collect()
}

/// `X-API-Key`, `xApiKey` and `x_api_key` are all `x`, `api`, `key`. Digits at the end of a word don't count.
fn words(name: &str) -> Vec<String> {
    let chars: Vec<char> = name.chars().collect();
    let mut words = vec![String::new()];
    for (n, c) in chars.iter().enumerate() {
        let before = n.checked_sub(1).and_then(|p| chars.get(p));
        let starts_hump = c.is_uppercase()
            && before.is_some_and(|b| {
                b.is_lowercase()
                    || b.is_numeric()
                    || (b.is_uppercase() && chars.get(n + 1).is_some_and(|a| a.is_lowercase()))
            });
        if starts_hump || !c.is_alphanumeric() {
            words.push(String::new());
        }
        if let Some(word) = words.last_mut().filter(|_| c.is_alphanumeric()) {
            word.extend(c.to_lowercase());
        }
    }
    let bare = words.into_iter().map(|w| w.trim_end_matches(|c: char| c.is_ascii_digit()).to_owned());
    bare.filter(|w| !w.is_empty()).collect()
}

fn judge(words: &[String]) -> Secrecy {
    let mut words = words;
    while let [head @ .., last] = words {
        if head.is_empty() || !TAILS.contains(&last.as_str()) {
            break;
        }
        words = head;
    }
    let [head @ .., last] = words else { return Secrecy::Open };
    let last = last.as_str();
    if NOUNS.iter().any(|noun| last.ends_with(noun)) || WORDS.contains(&last) {
        return Secrecy::Secret;
    }
    let is_anywhere = |word: &String| ANYWHERE.iter().any(|noun| word.ends_with(noun));
    if head.iter().any(is_anywhere) && !ABOUT.contains(&last) {
        return Secrecy::Secret;
    }
    let is_key_of = |word: &str| KEYS.contains(&word);
    let is_key = match last {
        "key" | "keys" => head.last().is_some_and(|w| is_key_of(w)),
        _ => last.strip_suffix("key").is_some_and(is_key_of),
    };
    match last {
        _ if is_key => Secrecy::Secret,
        "tokens" | "pass" | "auth" => Secrecy::SecretText,
        _ => Secrecy::Open,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_like_secrets_are_secret_in_any_spelling() {
        let names = KeyNames::new(&[]);
        for name in [
            "authorization",
            "Authorization",
            "Proxy-Authorization",
            "cookie",
            "Set-Cookie",
            "setCookie",
            "cookies",
            "password",
            "Password",
            "PASSWORD",
            "passwd",
            "pwd",
            "db_password",
            "userPassword",
            "password2",
            "new_password",
            "passwordConfirmation",
            "secret",
            "client_secret",
            "clientSecret",
            "CLIENT-SECRET",
            "clientsecret",
            "token",
            "access_token",
            "accessToken",
            "refresh-token",
            "x-auth-token",
            "authtoken",
            "api_key",
            "api-key",
            "apiKey",
            "API-Key",
            "APIKey",
            "apikey",
            "X-API-Key",
            "xApiKey",
            "private_key",
            "secretKey",
            "aws_secret_access_key",
            "password_hash",
            "Authorization-Header",
            "token_value",
            "cvv",
            "id_token",
            "api key",
            "api.key",
            "x_password_y",
            "db-secret-prod",
            "userPasswordBackup",
        ] {
            assert_eq!(names.secrecy(name), Secrecy::Secret, "{name}");
        }
    }

    #[test]
    fn names_that_only_mention_a_secret_stay_open() {
        let names = KeyNames::new(&[]);
        for name in [
            "token_count",
            "max_tokens",
            "tokenizer",
            "cookie_policy",
            "password_policy",
            "secret_name",
            "password_changed_at",
            "secretary_desk",
            "author",
            "authenticated",
            "key",
            "keys",
            "primary_key",
            "idempotency_key",
            "access_key_id",
            "monkey",
            "passenger",
            "bypass",
            "compass",
            "keyboard",
            "auth_method",
            "api_key_id",
            "",
        ] {
            let secrecy = names.secrecy(name);
            let expected = if name == "max_tokens" { Secrecy::SecretText } else { Secrecy::Open };
            assert_eq!(secrecy, expected, "{name}");
        }
        assert_eq!(names.secrecy("tokens"), Secrecy::SecretText);
        assert_eq!(names.secrecy("run_id"), Secrecy::Identity);
    }

    #[test]
    fn keys_of_config_count_in_any_spelling() {
        let names = KeyNames::new(&["tax-number".into(), "id".into()]);
        for name in ["tax_number", "TaxNumber", "TAX-NUMBER", "id"] {
            assert_eq!(names.secrecy(name), Secrecy::Secret, "{name}");
        }
        assert_eq!(names.secrecy("number"), Secrecy::Open);
    }
}
