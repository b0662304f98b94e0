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
use secrecy::ExposeSecret;
use std::net::IpAddr;
use std::sync::Arc;
use url::{Host, Url};

/// Name of the token that a request came with; goes into "by" where nobody gave a name.
#[derive(Clone, Debug)]
pub struct Caller(pub Option<String>);

/// Lets a request through, or says why not.
pub async fn check(State(shared): State<Arc<Shared>>, mut request: Request, next: Next) -> Response {
    let live = shared.live.load();
    let checked = from_our_pages(request.method(), request.headers(), &live.config.http.public_url)
        .and_then(|()| may(request.method(), request.uri().path(), request.headers(), live.config.web_auth.as_ref()));
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

/// The role that a request needs; none when anybody may.
fn needed(method: &Method, path: &str) -> Option<Role> {
    if !path.starts_with("/api/") {
        return None;
    }
    Some(match path {
        "/api/v1/events" => Role::Ingest,
        _ if method.is_safe() => Role::Read,
        _ => Role::Operate,
    })
}

fn may(method: &Method, path: &str, headers: &HeaderMap, auth: Option<&WebAuth>) -> Result<Caller, ApiError> {
    let (Some(auth), Some(needed)) = (auth.filter(|a| !a.tokens.is_empty()), needed(method, path)) else {
        return Ok(Caller(None));
    };
    let given = headers.get(header::AUTHORIZATION).and_then(|v| v.to_str().ok()).and_then(bearer);
    let given = given.ok_or(ApiError::Unauthorized)?;
    let mut found = None;
    // All are compared, so that time does not tell which one came close.
    for (name, token, role) in &auth.tokens {
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
        let token = |name: &str, role| (name.to_owned(), secrecy::SecretString::from(format!("{name}-secret")), role);
        let auth = WebAuth {
            tokens: vec![token("in", Role::Ingest), token("look", Role::Read), token("ops", Role::Operate)],
            ..WebAuth::default()
        };
        let status = |method: &Method, path, token: &'static str| {
            let sent = headers(&[("authorization", token)]);
            may(method, path, &sent, Some(&auth)).map_or_else(|e| e.status(), |_| StatusCode::OK)
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
            assert_eq!(status(&Method::GET, "/healthz", token), StatusCode::OK);
        }
        assert!(may(&Method::GET, "/api/v1/incidents", &headers(&[]), None).is_ok());
        assert!(may(&Method::GET, "/api/v1/incidents", &headers(&[]), Some(&auth)).is_err());
    }
}
