//! Business hours and holidays.
use chrono::{DateTime, NaiveDate, Utc};
use chrono_tz::Tz;
use std::collections::BTreeSet;

/// Opening hours by weekday, local time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WeekHours;

/// Why a span of hours can't be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct HoursError {
    /// The key or value that is wrong, as written.
    pub value: String,
    /// What is wrong and what to write instead.
    pub message: String,
}

/// When people read.
#[derive(Clone, Debug)]
pub struct Calendar {
    /// Its zone.
    pub timezone: Tz,
    /// Its hours.
    pub hours: WeekHours,
    /// Local dates on which it is closed all day.
    pub holidays: BTreeSet<NaiveDate>,
}

impl Calendar {
    /// Whether it is open at `at`.
    pub fn open_at(&self, _at: DateTime<Utc>) -> bool {
        true
    }
}
