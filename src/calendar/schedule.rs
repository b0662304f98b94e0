//! POSIX cron lines.

/// A 5-field POSIX cron line or `@hourly` and the like.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Schedule {
    line: String,
}

/// Why a cron line is refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct ScheduleError(pub String);

impl Schedule {
    /// The line as written.
    pub fn line(&self) -> &str {
        &self.line
    }
}
