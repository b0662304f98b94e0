//! Time as people keep it: cron slots, business hours, holidays. Pure: instants come in, instants go out.
//! What is due at a slot lives in `digest`.

mod hours;
mod schedule;

pub use hours::{Calendar, HoursError, WeekHours};
pub use schedule::{Schedule, ScheduleError};
