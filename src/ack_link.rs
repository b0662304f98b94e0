//! Signed links by which a person acknowledges an incident without signing in. Pure: the key and the time are handed in.
//! Showing the page behind a link, and acting on it, is `web`'s.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use chrono::{DateTime, Utc};
use ring::hmac;

/// Keeps a signature for this purpose from being good for any other.
const PURPOSE: &str = "matins-acknowledge-v1";

/// Why a link is not good.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LinkError {
    /// It was not made with our key, or not for this incident and time.
    #[error("this link is not valid: it was changed, or made by another Matins")]
    Forged,
    /// Its time is over.
    #[error("this link has expired; use the one in a newer message, or `matins incidents acknowledge`")]
    Expired,
}

/// Path and query of a link that works until `expires_at`, to whole seconds: `/ack/<incident>?sig=…&exp=…`.
pub fn sign(key: &[u8; 32], incident_id: i64, expires_at: DateTime<Utc>) -> String {
    let expires_at = expires_at.timestamp();
    let tag = hmac::sign(&hmac_key(key), signed_text(incident_id, expires_at).as_bytes());
    format!("/ack/{incident_id}?sig={}&exp={expires_at}", URL_SAFE_NO_PAD.encode(tag))
}

/// Whether a link is good at `now`. `exp` is the Unix time in the link; compared in constant time.
///
/// # Errors
/// When it was not signed with `key` for just this incident and time, or its time is over.
pub fn verify(key: &[u8; 32], incident_id: i64, exp: i64, sig: &str, now: DateTime<Utc>) -> Result<(), LinkError> {
    let tag = URL_SAFE_NO_PAD.decode(sig).map_err(|_| LinkError::Forged)?;
    hmac::verify(&hmac_key(key), signed_text(incident_id, exp).as_bytes(), &tag).map_err(|_| LinkError::Forged)?;
    if now.timestamp() < exp { Ok(()) } else { Err(LinkError::Expired) }
}

fn hmac_key(key: &[u8; 32]) -> hmac::Key {
    hmac::Key::new(hmac::HMAC_SHA256, key)
}

fn signed_text(incident_id: i64, exp: i64) -> String {
    format!("{PURPOSE}\n{incident_id}\n{exp}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const KEY: [u8; 32] = [7; 32];

    fn at(seconds: i64) -> DateTime<Utc> {
        DateTime::from_timestamp(seconds, 0).expect("an instant")
    }

    fn parts(link: &str) -> (i64, String, i64) {
        let url = url::Url::parse("http://localhost").and_then(|base| base.join(link)).expect("a link");
        let value = |name: &str| url.query_pairs().find(|(n, _)| n == name).expect("a parameter").1.into_owned();
        let id = url.path().strip_prefix("/ack/").and_then(|id| id.parse().ok()).expect("an id");
        (id, value("sig"), value("exp").parse().expect("a time"))
    }

    #[test]
    fn a_link_is_good_until_its_time_is_over() {
        let (id, sig, exp) = parts(&sign(&KEY, 12, at(1000)));
        assert_eq!(verify(&KEY, id, exp, &sig, at(999)), Ok(()));
        assert_eq!(verify(&KEY, id, exp, &sig, at(1000)), Err(LinkError::Expired));
    }

    #[test]
    fn a_link_stays_the_same_over_versions() {
        assert_eq!(
            sign(&KEY, 12, at(1_800_000_000)),
            "/ack/12?sig=9dhgdZ0cc026-iaAu5p8PV_kxjP5eqm0FPVxypRw1Lw&exp=1800000000"
        );
    }

    proptest! {
        #[test]
        fn another_incident_time_or_key_is_forged(id in 1i64..1_000_000, other in 1i64..1_000_000, more in 1i64..1_000_000) {
            let (_, sig, exp) = parts(&sign(&KEY, id, at(1_800_000_000)));
            prop_assume!(id != other);
            prop_assert_eq!(verify(&KEY, other, exp, &sig, at(0)), Err(LinkError::Forged));
            prop_assert_eq!(verify(&KEY, id, exp + more, &sig, at(0)), Err(LinkError::Forged));
            prop_assert_eq!(verify(&[8; 32], id, exp, &sig, at(0)), Err(LinkError::Forged));
        }

        #[test]
        fn no_single_changed_character_of_a_signature_is_good(place in 0usize..43, letter in "[A-Za-z0-9_-]") {
            let (id, sig, exp) = parts(&sign(&KEY, 12, at(1000)));
            let mut changed = sig.clone();
            changed.replace_range(place..=place, &letter);
            prop_assume!(changed != sig);
            prop_assert_eq!(verify(&KEY, id, exp, &changed, at(0)), Err(LinkError::Forged));
        }

        #[test]
        fn no_text_is_taken_for_a_signature(sig in ".{0,80}") {
            prop_assert_eq!(verify(&KEY, 12, 1000, &sig, at(0)), Err(LinkError::Forged));
        }
    }
}
