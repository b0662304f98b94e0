//! The only reader of clock and randomness. Everything else is handed `now`, jitter and keys.

use chrono::{DateTime, SubsecRound, Utc};
use ring::rand::{SecureRandom, SystemRandom};

/// The wall clock, cut to milliseconds, which is what the store keeps.
#[allow(clippy::disallowed_methods, reason = "this is the one place that reads the clock")]
pub fn now() -> DateTime<Utc> {
    Utc::now().trunc_subsecs(3)
}

/// A monotonic instant, for measuring how long something took.
#[allow(clippy::disallowed_methods, reason = "this is the one place that reads the clock")]
pub fn instant() -> std::time::Instant {
    std::time::Instant::now()
}

/// Bytes for keys and tokens.
///
/// # Errors
/// When the system has no randomness to give.
pub fn random_bytes<const N: usize>() -> Result<[u8; N], ring::error::Unspecified> {
    let mut bytes = [0; N];
    SystemRandom::new().fill(&mut bytes)?;
    Ok(bytes)
}

/// A number in [0, 1) for jitter; 0.5 when the system has no randomness, which only makes retries less spread.
pub fn jitter() -> f64 {
    let bytes = random_bytes::<4>().unwrap_or([0x80, 0, 0, 0]);
    f64::from(u32::from_be_bytes(bytes)) / 4_294_967_296.0
}
