//! Time as people keep it: cron slots, business hours, holidays. Pure: instants come in, instants go out.
//! What is due at a slot lives in `digest`.
//!
//! One rule maps local times to instants everywhere: a local time happens at the first instant at which a clock on the
//! wall reads it or later. A time that the clocks skip is the end of the gap; a time that they repeat is its first
//! pass. Dates are always walked as dates, never by adding 24 h.

mod holidays;
mod hours;
mod office;
mod schedule;
mod wall;
mod zone;

pub use holidays::{IcsError, holidays_from_ics};
pub use hours::{HoursError, WeekHours};
pub use office::{Calendar, OPENING_SEARCH_MAX};
pub use schedule::{Schedule, ScheduleError};
pub use zone::{ZoneError, parse_zone};
