//! Who may ask for what: requests that another site makes a browser send are refused, and tokens are asked for when config has some.
//! What is asked for is not known here.

use super::error::ApiError;
use crate::config::{Role, WebAuth};
use crate::live::Shared;
use axum::extract::{Request, State};
use axum::http::{HeaderMap, Method, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use ring::hmac;
use secrecy::{ExposeSecret, SecretString};
use std::net::IpAddr;
use std::sync::Arc;
use url::{Host, Url};

/// Name of the token that a request came with; goes into "by" where nobody gave a name.
#[derive(Clone, Debug)]
pub struct Caller(pub Option<String>);

/// Whom the address that the service listens on lets in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reach {
    /// Programs on this machine.
    ThisMachine,
    /// Anybody on the network: without a token nothing is told or done.
    Anybody,
}

/// Stands before every address.
#[derive(Clone)]
pub struct Guard {
    /// Holds the tokens of now.
    pub shared: Arc<Shared>,
    /// As the socket is bound, whatever a newer config says.
    pub reach: Reach,
}

/// Lets a request through, or says why not.
pub async fn check(State(guard): State<Guard>, mut request: Request, next: Next) -> Response {
    let live = guard.shared.live.load();
    let (public_url, auth) = (&live.config.http.public_url, live.config.web_auth.as_ref());
    let (method, path, headers) = (request.method(), request.uri().path(), request.headers());
    let checked = from_our_pages(method, headers, public_url)
        .and_then(|()| by_our_name(path, headers, public_url, auth))
        .and_then(|()| may(method, path, headers, auth, guard.reach));
    drop(live);
    match checked {
        Ok(caller) => {
            request.extensions_mut().insert(caller);
            next.run(request).await
        }
        Err(error) => error.into_response(),
    }
}

/// Refuses what a page of another site sends. Browsers say where a request comes from; programs need not.
fn from_our_pages(method: &Method, headers: &HeaderMap, public_url: &str) -> Result<(), ApiError> {
    if method.is_safe() {
        return Ok(());
    }
    let text = |name| headers.get(name).and_then(|v: &header::HeaderValue| v.to_str().ok());
    let origin = text(header::ORIGIN.as_str());
    let ours = match (origin, text("sec-fetch-site")) {
        (Some(origin), _) if same_origin(origin, public_url) => true,
        (_, Some(site)) => matches!(site, "same-origin" | "none"),
        (Some(origin), None) => is_host(origin, text(header::HOST.as_str()).unwrap_or_default()),
        (None, None) => true,
    };
    if ours { Ok(()) } else { Err(ApiError::Forbidden("a page of another site may not ask for this".to_owned())) }
}

fn same_origin(origin: &str, public_url: &str) -> bool {
    let origin = Url::parse(origin).map(|u| u.origin());
    let ours = Url::parse(public_url).map(|u| u.origin());
    matches!((origin, ours), (Ok(origin), Ok(ours)) if origin.is_tuple() && origin == ours)
}

/// Whether a page is at the address that it sends to. A name does not count, except `localhost`: whoever owns a name can let it point
/// here, and then their page is at "our" address.
fn is_host(origin: &str, host: &str) -> bool {
    let Ok(origin) = Url::parse(origin) else { return false };
    let by_number = match origin.host() {
        Some(Host::Ipv4(_) | Host::Ipv6(_)) => true,
        Some(Host::Domain(name)) => name == "localhost" || name.parse::<IpAddr>().is_ok(),
        None => false,
    };
    by_number && Url::parse(&format!("{}://{host}", origin.scheme())).is_ok_and(|h| h.origin() == origin.origin())
}

/// Refuses requests for a foreign name while no token is asked for: whoever owns a name can let it point here, and then
/// a browser takes their page for one of ours and lets it read the answers.
fn by_our_name(path: &str, headers: &HeaderMap, public_url: &str, auth: Option<&WebAuth>) -> Result<(), ApiError> {
    // Health tells nothing, and an acknowledge link works by its signature.
    let open = ["/healthz", "/readyz"].contains(&path) || path.starts_with("/ack/");
    let host = headers.get(header::HOST).map(|v| v.to_str().unwrap_or_default());
    let Some(host) = host.filter(|_| !open && tokens(auth).is_empty()) else { return Ok(()) };
    if is_our_name(host, public_url) {
        return Ok(());
    }
    Err(ApiError::Forbidden(format!(
        "this is not {host:?}: without tokens the service answers to an IP address, to localhost and to the host of http.public_url"
    )))
}

fn is_our_name(host: &str, public_url: &str) -> bool {
    let Ok(asked) = Url::parse(&format!("http://{host}/")) else { return false };
    match asked.host() {
        Some(Host::Ipv4(_) | Host::Ipv6(_)) => true,
        Some(Host::Domain("localhost")) => true,
        Some(Host::Domain(name)) => Url::parse(public_url).is_ok_and(|ours| ours.host_str() == Some(name)),
        None => false,
    }
}

/// The role that a request needs where tokens are asked for; none when anybody may.
fn needed(method: &Method, path: &str, reach: Reach) -> Option<Role> {
    match path {
        "/metrics" => (reach == Reach::Anybody).then_some(Role::Read),
        "/api/v1/events" => Some(Role::Ingest),
        _ if !path.starts_with("/api/") => None,
        _ if method.is_safe() => Some(Role::Read),
        _ => Some(Role::Operate),
    }
}

fn tokens(auth: Option<&WebAuth>) -> &[(String, SecretString, Role)] {
    auth.map_or(&[], |auth| &auth.tokens)
}

fn may(
    method: &Method,
    path: &str,
    headers: &HeaderMap,
    auth: Option<&WebAuth>,
    reach: Reach,
) -> Result<Caller, ApiError> {
    let asked_for = !tokens(auth).is_empty() || reach == Reach::Anybody;
    let Some(needed) = needed(method, path, reach).filter(|_| asked_for) else { return Ok(Caller(None)) };
    let given = headers.get(header::AUTHORIZATION).and_then(|v| v.to_str().ok()).and_then(bearer);
    let given = given.ok_or(ApiError::Unauthorized)?;
    let mut found = None;
    // All are compared, so that time does not tell which one came close.
    for (name, token, role) in tokens(auth) {
        if same_secret(token.expose_secret(), given) {
            found = Some((name, *role));
        }
    }
    let (name, role) = found.ok_or(ApiError::Unauthorized)?;
    let enough = match role {
        Role::Ingest => needed == Role::Ingest,
        Role::Read => needed == Role::Read,
        Role::Operate => true,
    };
    if enough {
        return Ok(Caller(Some(name.clone())));
    }
    Err(ApiError::Forbidden(format!("token {name:?} has a role that may not do this")))
}

fn bearer(value: &str) -> Option<&str> {
    let (scheme, token) = value.split_once(' ')?;
    scheme.eq_ignore_ascii_case("bearer").then(|| token.trim())
}

/// Whether two secrets are the same, in a time that depends on neither: their tags under one key are compared.
fn same_secret(ours: &str, given: &str) -> bool {
    let key = hmac::Key::new(hmac::HMAC_SHA256, b"matins-compare");
    let tag = hmac::sign(&key, given.as_bytes());
    hmac::verify(&key, ours.as_bytes(), tag.as_ref()).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use axum::http::{HeaderName, StatusCode};

    fn headers(pairs: &[(&'static str, &'static str)]) -> HeaderMap {
        let pairs = pairs.iter().map(|(n, v)| (HeaderName::from_static(n), header::HeaderValue::from_static(v)));
        pairs.collect()
    }

    #[test]
    fn only_our_pages_and_programs_may_act() {
        let public = "https://matins.example.com";
        for (sent, allowed) in [
            (&[][..], true),
            (&[("origin", "https://matins.example.com")], true),
            (&[("origin", "https://matins.example.com"), ("sec-fetch-site", "same-origin")], true),
            (&[("origin", "https://evil.example"), ("host", "evil.example")], false),
            (&[("origin", "http://127.0.0.1:8420"), ("host", "127.0.0.1:8420")], true),
            (&[("origin", "http://localhost:8420"), ("host", "localhost:8420")], true),
            (&[("origin", "http://127.0.0.1:9000"), ("host", "127.0.0.1:8420")], false),
            (&[("origin", "null")], false),
            (&[("sec-fetch-site", "cross-site")], false),
            (&[("sec-fetch-site", "same-site"), ("origin", "https://other.example.com")], false),
            (&[("sec-fetch-site", "none")], true),
        ] {
            assert_eq!(from_our_pages(&Method::POST, &headers(sent), public).is_ok(), allowed, "{sent:?}");
        }
        assert!(from_our_pages(&Method::GET, &headers(&[("sec-fetch-site", "cross-site")]), public).is_ok());
    }

    #[test]
    fn a_token_may_do_what_its_role_says_and_no_more() {
        let token = |name: &str, role| (name.to_owned(), SecretString::from(format!("{name}-secret")), role);
        let auth = WebAuth {
            tokens: vec![token("in", Role::Ingest), token("look", Role::Read), token("ops", Role::Operate)],
            ..WebAuth::default()
        };
        let status = |method: &Method, path, token: &'static str| {
            let sent = headers(&[("authorization", token)]);
            may(method, path, &sent, Some(&auth), Reach::Anybody).map_or_else(|e| e.status(), |_| StatusCode::OK)
        };
        for (token, ingest, read, act) in [
            ("Bearer in-secret", StatusCode::OK, StatusCode::FORBIDDEN, StatusCode::FORBIDDEN),
            ("bearer look-secret", StatusCode::FORBIDDEN, StatusCode::OK, StatusCode::FORBIDDEN),
            ("Bearer ops-secret", StatusCode::OK, StatusCode::OK, StatusCode::OK),
            ("Bearer guess", StatusCode::UNAUTHORIZED, StatusCode::UNAUTHORIZED, StatusCode::UNAUTHORIZED),
            ("ops-secret", StatusCode::UNAUTHORIZED, StatusCode::UNAUTHORIZED, StatusCode::UNAUTHORIZED),
        ] {
            assert_eq!(status(&Method::POST, "/api/v1/events", token), ingest, "{token} sends");
            assert_eq!(status(&Method::GET, "/api/v1/incidents", token), read, "{token} looks");
            assert_eq!(status(&Method::POST, "/api/v1/incidents/1/resolve", token), act, "{token} acts");
            assert_eq!(status(&Method::GET, "/metrics", token), read, "{token} looks at metrics");
            assert_eq!(status(&Method::GET, "/healthz", token), StatusCode::OK);
        }
    }

    #[test]
    fn off_loopback_nothing_is_told_without_a_token_and_on_it_metrics_are_open() {
        let token = ("t".to_owned(), SecretString::from("secret".to_owned()), Role::Read);
        let auth = WebAuth { tokens: vec![token], ..WebAuth::default() };
        let open = |path, auth: Option<&WebAuth>, reach| may(&Method::GET, path, &headers(&[]), auth, reach).is_ok();
        for (path, at_home, at_home_with_tokens, abroad) in [
            ("/api/v1/incidents", true, false, false),
            ("/api/v1/openapi.json", true, false, false),
            ("/metrics", true, true, false),
            ("/readyz", true, true, true),
            ("/ack/7", true, true, true),
        ] {
            assert_eq!(open(path, None, Reach::ThisMachine), at_home, "{path}");
            assert_eq!(open(path, Some(&auth), Reach::ThisMachine), at_home_with_tokens, "{path}");
            assert_eq!(open(path, Some(&auth), Reach::Anybody), abroad, "{path}");
            // The tokens went with a reload; the socket stays where it is until the next start.
            assert_eq!(open(path, None, Reach::Anybody), abroad, "{path}");
        }
    }

    #[test]
    fn without_tokens_only_our_own_names_are_answered_to() {
        let public = "https://matins.example.com";
        for (host, ours) in [
            ("127.0.0.1:8420", true),
            ("[::1]:8420", true),
            ("localhost:8420", true),
            ("LOCALHOST", true),
            ("matins.example.com", true),
            ("evil.example:8420", false),
            ("127.0.0.1.evil.example", false),
            ("", false),
        ] {
            let sent = HeaderMap::from_iter([(header::HOST, header::HeaderValue::from_static(host))]);
            assert_eq!(by_our_name("/api/v1/incidents", &sent, public, None).is_ok(), ours, "{host}");
            assert!(by_our_name("/ack/7", &sent, public, None).is_ok());
        }
        assert!(by_our_name("/api/v1/incidents", &headers(&[]), public, None).is_ok(), "a program of HTTP/1.0");
    }
}
