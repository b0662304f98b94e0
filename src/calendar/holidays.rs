//! Holidays out of the text of an ICS file (RFC 5545). Reading the file is `config`'s; what a holiday closes is said in
//! `office`.

use chrono::{DateTime, Days, NaiveDate, NaiveTime, TimeDelta};
use icalendar::parser::{Component, Property, read_components, unfold};
use rrule::{RRule, RRuleSet, Tz};
use std::collections::{BTreeMap, BTreeSet};

/// Why holidays can't be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum IcsError {
    /// The text is no calendar.
    #[error("not an iCalendar file: {0}")]
    Unreadable(String),
    /// One entry is wrong.
    #[error("entry `{summary}`: {reason}")]
    Entry {
        /// Its title.
        summary: String,
        /// What is wrong.
        reason: String,
    },
}

/// Dates that one rule may give; a holiday that comes every day for decades is a mistake.
const OCCURRENCES_MAX: u16 = 4_000;
/// Days that one entry may cover.
const LENGTH_MAX: u64 = 366;

/// Dates in `[from, to)` on which an all-day entry lies, recurring entries included. Entries with a time of day and
/// cancelled ones are left out: a meeting is no holiday.
///
/// # Errors
/// When the text is no calendar, or a date or rule of an entry can't be read: a holiday left out in silence would be
/// found on the holiday.
pub fn holidays_from_ics(text: &str, from: NaiveDate, to: NaiveDate) -> Result<BTreeSet<NaiveDate>, IcsError> {
    let text = unfold(text.trim_start_matches('\u{feff}').trim());
    let roots = read_components(&text).map_err(|e| IcsError::Unreadable(place_of(&e)))?;
    let calendars: Vec<_> = roots.iter().filter(|root| root.name == "VCALENDAR").collect();
    if calendars.is_empty() {
        return Err(IcsError::Unreadable("it has no BEGIN:VCALENDAR".to_owned()));
    }
    let events = calendars.iter().flat_map(|calendar| &calendar.components).filter(|part| part.name == "VEVENT");
    let entries: Vec<Entry<'_>> = events.map(Entry).collect();
    let moved = moved_dates(&entries)?;
    let mut holidays = BTreeSet::new();
    for entry in entries.iter().filter(|entry| !entry.is_cancelled()) {
        let Some(start) = entry.all_day_start()? else { continue };
        let length = entry.length(start)?;
        let earliest = from - Days::new(length);
        let own = entry.value("UID").filter(|_| entry.value("RECURRENCE-ID").is_none());
        let moved = own.and_then(|uid| moved.get(uid));
        for first in entry.occurrences(start, earliest, to)? {
            if !moved.is_some_and(|dates| dates.contains(&first)) {
                holidays.extend(first.iter_days().take(length as usize).filter(|date| (from..to).contains(date)));
            }
        }
    }
    Ok(holidays)
}

/// Dates of recurring entries, by their id, that an entry of its own replaces or cancels.
fn moved_dates<'a>(entries: &'a [Entry<'a>]) -> Result<BTreeMap<&'a str, BTreeSet<NaiveDate>>, IcsError> {
    let mut moved: BTreeMap<&str, BTreeSet<NaiveDate>> = BTreeMap::new();
    for entry in entries {
        if let (Some(uid), Some(date)) = (entry.value("UID"), entry.value("RECURRENCE-ID")) {
            moved.entry(uid).or_default().insert(entry.date(date)?);
        }
    }
    Ok(moved)
}

/// A `VEVENT`.
struct Entry<'a>(&'a Component<'a>);

impl Entry<'_> {
    fn property(&self, name: &str) -> Option<&Property<'_>> {
        self.0.find_prop(name)
    }

    fn value(&self, name: &str) -> Option<&str> {
        self.property(name).map(|property| property.val.as_str())
    }

    fn is_cancelled(&self) -> bool {
        self.value("STATUS").is_some_and(|status| status.eq_ignore_ascii_case("CANCELLED"))
    }

    fn refuse(&self, reason: impl Into<String>) -> IcsError {
        IcsError::Entry { summary: self.value("SUMMARY").unwrap_or("untitled").to_owned(), reason: reason.into() }
    }

    /// The date part of a date or time.
    fn date(&self, text: &str) -> Result<NaiveDate, IcsError> {
        let date = text.get(..8).and_then(|date| NaiveDate::parse_from_str(date, "%Y%m%d").ok());
        date.ok_or_else(|| self.refuse(format!("`{text}` is no date")))
    }

    /// Its first date; none when it has a time of day.
    fn all_day_start(&self) -> Result<Option<NaiveDate>, IcsError> {
        let start = self.value("DTSTART").ok_or_else(|| self.refuse("it has no DTSTART"))?;
        if start.contains('T') { Ok(None) } else { self.date(start).map(Some) }
    }

    /// Days that it covers; its end is the first date after it.
    fn length(&self, start: NaiveDate) -> Result<u64, IcsError> {
        let days = match (self.value("DTEND"), self.value("DURATION")) {
            (Some(end), _) => (self.date(end)? - start).num_days(),
            (None, Some(duration)) => self.days_of(duration)?,
            (None, None) => 1,
        };
        // Some programs write the start again as the end of a single day.
        let days = u64::try_from(days).map_err(|_| self.refuse("it ends before it starts"))?.max(1);
        if days > LENGTH_MAX { Err(self.refuse(format!("{days} days are no holiday"))) } else { Ok(days) }
    }

    /// `P3D` or `P1W`, the only durations that a date may have.
    fn days_of(&self, duration: &str) -> Result<i64, IcsError> {
        let counted = |unit: char, days: i64| {
            let count: i64 = duration.strip_prefix('P')?.strip_suffix(unit)?.parse().ok()?;
            count.checked_mul(days)
        };
        let days = counted('D', 1).or_else(|| counted('W', 7));
        days.ok_or_else(|| self.refuse(format!("`{duration}` is no number of days")))
    }

    /// First dates of its occurrences in `[from, to)`.
    fn occurrences(&self, start: NaiveDate, from: NaiveDate, to: NaiveDate) -> Result<BTreeSet<NaiveDate>, IcsError> {
        let mut dates: BTreeSet<NaiveDate> = self.dates("RDATE")?;
        dates.insert(start);
        for property in self.properties("RRULE") {
            dates.extend(self.recur(property.val.as_str(), start, from, to)?);
        }
        let left_out = self.dates("EXDATE")?;
        Ok(dates.into_iter().filter(|date| (from..to).contains(date) && !left_out.contains(date)).collect())
    }

    fn properties(&self, name: &str) -> impl Iterator<Item = &Property<'_>> {
        self.0.properties.iter().filter(move |property| property.name == name)
    }

    /// Dates of all properties of that name, each a list.
    fn dates(&self, name: &str) -> Result<BTreeSet<NaiveDate>, IcsError> {
        self.properties(name)
            .flat_map(|property| property.val.as_str().split(','))
            .map(|text| self.date(text))
            .collect()
    }

    /// Dates that a rule gives. Midnights of UTC stand for the dates.
    fn recur(&self, rule: &str, start: NaiveDate, from: NaiveDate, to: NaiveDate) -> Result<Vec<NaiveDate>, IcsError> {
        let refuse = |reason: String| self.refuse(format!("rule `{rule}`: {reason}"));
        if let Some(part) = rule.split(';').find(|part| is_within_a_day(part)) {
            return Err(refuse(format!("{part} makes no sense for whole days")));
        }
        let read = until_in_utc(rule).parse::<RRule<_>>().and_then(|rule| rule.validate(midnight(start)));
        let valid = read.map_err(|e| refuse(e.to_string()))?;
        let set = RRuleSet::new(midnight(start))
            .rrule(valid)
            .after(midnight(from))
            .before(midnight(to) - TimeDelta::seconds(1));
        let found = set.all(OCCURRENCES_MAX);
        if found.limited {
            return Err(refuse(format!("it gives more than {OCCURRENCES_MAX} dates")));
        }
        Ok(found.dates.into_iter().map(|at| at.date_naive()).collect())
    }
}

fn midnight(date: NaiveDate) -> DateTime<Tz> {
    date.and_time(NaiveTime::MIN).and_utc().with_timezone(&Tz::UTC)
}

/// A rule whose `UNTIL`, a date beside an all-day start, is written as an instant.
fn until_in_utc(rule: &str) -> String {
    let part = |part: &str| match part.split_once('=') {
        Some(("UNTIL", date)) if !date.contains('T') => format!("UNTIL={date}T000000Z"),
        Some(("UNTIL", time)) if !time.ends_with('Z') => format!("UNTIL={time}Z"),
        _ => part.to_owned(),
    };
    rule.trim_end_matches(';').split(';').map(part).collect::<Vec<_>>().join(";")
}

/// Whether a part of a rule speaks of times within a day. Such rules could also take very long to walk.
fn is_within_a_day(part: &str) -> bool {
    let fine = ["FREQ=HOURLY", "FREQ=MINUTELY", "FREQ=SECONDLY", "BYHOUR=", "BYMINUTE=", "BYSECOND="];
    fine.iter().any(|start| part.to_ascii_uppercase().starts_with(start))
}

/// Where the parser gave up; what else it says is about its own insides.
fn place_of(error: &str) -> String {
    let digits = error.split("at line ").nth(1).map(|rest| rest.split(|c: char| !c.is_ascii_digit()).next());
    match digits.flatten() {
        Some(line) => format!("it can't be read from line {line} on, continued lines counted as one"),
        None => "it can't be read".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(events: &[&str], from: &str, to: &str) -> Result<Vec<String>, IcsError> {
        let body: Vec<_> =
            events.iter().map(|event| format!("BEGIN:VEVENT\nSUMMARY:Day\n{event}\nEND:VEVENT\n")).collect();
        let text = format!("BEGIN:VCALENDAR\nVERSION:2.0\nPRODID:-//x//y//EN\n{}END:VCALENDAR\n", body.concat());
        let holidays = holidays_from_ics(&text.replace('\n', "\r\n"), from.parse().unwrap(), to.parse().unwrap())?;
        Ok(holidays.into_iter().map(|date| date.to_string()).collect())
    }

    fn dates(events: &[&str]) -> Vec<String> {
        read(events, "2026-01-01", "2029-01-01").unwrap()
    }

    #[test]
    fn an_all_day_entry_covers_its_dates_without_its_end() {
        assert_eq!(dates(&["DTSTART;VALUE=DATE:20261225\nDTEND;VALUE=DATE:20261226"]), ["2026-12-25"]);
        assert_eq!(dates(&["DTSTART;VALUE=DATE:20261225"]), ["2026-12-25"]);
        assert_eq!(dates(&["DTSTART;VALUE=DATE:20261225\nDTEND;VALUE=DATE:20261225"]), ["2026-12-25"]);
        assert_eq!(
            dates(&["DTSTART;VALUE=DATE:20261230\nDTEND;VALUE=DATE:20270102"]),
            ["2026-12-30", "2026-12-31", "2027-01-01"]
        );
        assert_eq!(dates(&["DTSTART;VALUE=DATE:20261225\nDURATION:P2D"]), ["2026-12-25", "2026-12-26"]);
        assert_eq!(dates(&["DTSTART;VALUE=DATE:20261201\nDURATION:P1W"]).len(), 7);
    }

    #[test]
    fn recurring_entries_come_each_time_except_where_left_out() {
        let yearly = "DTSTART;VALUE=DATE:20100815\nRRULE:FREQ=YEARLY";
        assert_eq!(dates(&[yearly]), ["2026-08-15", "2027-08-15", "2028-08-15"]);
        let until = "DTSTART;VALUE=DATE:20100815\nRRULE:FREQ=YEARLY;UNTIL=20270815";
        assert_eq!(dates(&[until]), ["2026-08-15", "2027-08-15"]);
        let left_out = "DTSTART;VALUE=DATE:20100815\nRRULE:FREQ=YEARLY\nEXDATE;VALUE=DATE:20260815,20280815";
        assert_eq!(dates(&[left_out]), ["2027-08-15"]);
        let fourth_thursday = "DTSTART;VALUE=DATE:20201126\nRRULE:FREQ=YEARLY;BYMONTH=11;BYDAY=4TH";
        assert_eq!(dates(&[fourth_thursday]), ["2026-11-26", "2027-11-25", "2028-11-23"]);
        let counted = "DTSTART;VALUE=DATE:20260101\nRRULE:FREQ=MONTHLY;COUNT=2\nRDATE;VALUE=DATE:20260704";
        assert_eq!(dates(&[counted]), ["2026-01-01", "2026-02-01", "2026-07-04"]);
    }

    #[test]
    fn a_long_entry_that_began_before_still_counts() {
        let found = read(
            &["DTSTART;VALUE=DATE:20101224\nDTEND;VALUE=DATE:20101227\nRRULE:FREQ=YEARLY"],
            "2026-12-26",
            "2027-12-25",
        );
        assert_eq!(found.unwrap(), ["2026-12-26", "2027-12-24"]);
    }

    #[test]
    fn an_occurrence_that_is_moved_or_cancelled_is_not_on_its_old_date() {
        let yearly = "UID:a\nDTSTART;VALUE=DATE:20100815\nRRULE:FREQ=YEARLY";
        let moved = "UID:a\nRECURRENCE-ID;VALUE=DATE:20260815\nDTSTART;VALUE=DATE:20260817";
        let cancelled = "UID:a\nRECURRENCE-ID;VALUE=DATE:20270815\nDTSTART;VALUE=DATE:20270815\nSTATUS:CANCELLED";
        assert_eq!(dates(&[yearly, moved, cancelled]), ["2026-08-17", "2028-08-15"]);
    }

    #[test]
    fn a_rule_that_never_comes_gives_nothing_and_ends() {
        assert_eq!(dates(&["DTSTART;VALUE=DATE:20260101\nRRULE:FREQ=YEARLY;BYMONTH=2;BYMONTHDAY=30"]), ["2026-01-01"]);
        assert_eq!(dates(&["DTSTART;VALUE=DATE:19000101\nRRULE:FREQ=DAILY"]).len(), 1096);
    }

    #[test]
    fn a_meeting_is_no_holiday() {
        let meeting = "DTSTART;TZID=Europe/Berlin:20261225T100000\nDTEND;TZID=Europe/Berlin:20261225T110000";
        assert!(
            dates(&[meeting, "DTSTART:20261226T000000Z", "DTSTART;VALUE=DATE:20261224\nSTATUS:CANCELLED"]).is_empty()
        );
    }

    #[test]
    fn folded_lines_and_a_byte_order_mark_are_read() {
        let text = "\u{feff}BEGIN:VCALENDAR\r\nBEGIN:VEVENT\r\nSUMMARY:A long ti\r\n tle\r\nDTSTART;VALUE=DA\r\n TE:20261225\r\nEND:VEVENT\r\nEND:VCALENDAR\r\n";
        let found = holidays_from_ics(text, "2026-01-01".parse().unwrap(), "2027-01-01".parse().unwrap()).unwrap();
        assert_eq!(found.len(), 1);
    }

    #[test]
    fn what_calendar_programs_write_around_it_is_no_hindrance() {
        let text = "BEGIN:VCALENDAR\nPRODID:-//Google Inc//Google Calendar 70.9054//EN\nVERSION:2.0\nCALSCALE:GREGORIAN\n\
            METHOD:PUBLISH\nX-WR-CALNAME:Feiertage in Österreich\nX-WR-TIMEZONE:UTC\nBEGIN:VTIMEZONE\nTZID:Europe/Vienna\n\
            BEGIN:STANDARD\nDTSTART:19701025T030000\nRRULE:FREQ=YEARLY;BYMONTH=10;BYDAY=-1SU\nTZOFFSETFROM:+0200\n\
            TZOFFSETTO:+0100\nEND:STANDARD\nEND:VTIMEZONE\nBEGIN:VEVENT\nDTSTART;VALUE=DATE:20261208\n\
            DTEND;VALUE=DATE:20261209\nDTSTAMP:20261101T120000Z\nUID:20261208_x@google.com\nCLASS:PUBLIC\n\
            DESCRIPTION:Feiertag\\, gesetzlich\\nMariä Empfängnis\nLOCATION:\nSEQUENCE:0\nSTATUS:CONFIRMED\n\
            SUMMARY;LANGUAGE=de:Mariä Empfängnis\nTRANSP:TRANSPARENT\nBEGIN:VALARM\nACTION:DISPLAY\nTRIGGER:-P1D\n\
            DESCRIPTION:soon\nEND:VALARM\nEND:VEVENT\nEND:VCALENDAR";
        for text in [text.to_owned(), text.replace('\n', "\r\n") + "\r\n\r\n"] {
            let found = holidays_from_ics(&text, "2026-01-01".parse().unwrap(), "2027-01-01".parse().unwrap()).unwrap();
            assert_eq!(found, ["2026-12-08".parse().unwrap()].into());
        }
    }

    #[test]
    fn an_entry_that_the_parser_gives_up_on_is_told() {
        let good = "BEGIN:VCALENDAR\r\nBEGIN:VEVENT\r\nDTSTART;VALUE=DATE:20261225\r\nEND:VEVENT\r\nEND:VCALENDAR\r\n";
        let text = format!("{good}{}", good.replace("DTSTART;", ";;"));
        let error = holidays_from_ics(&text, "2026-01-01".parse().unwrap(), "2027-01-01".parse().unwrap()).unwrap_err();
        assert_eq!(
            error.to_string(),
            "not an iCalendar file: it can't be read from line 6 on, continued lines counted as one"
        );
    }

    #[test]
    fn what_can_not_be_read_is_an_error() {
        let refused = |event: &str| read(&[event], "2026-01-01", "2029-01-01").unwrap_err().to_string();
        assert_eq!(refused("DTSTART;VALUE=DATE:20261301"), "entry `Day`: `20261301` is no date");
        assert_eq!(refused("DTSTAMP:20260101T000000Z"), "entry `Day`: it has no DTSTART");
        assert!(refused("DTSTART;VALUE=DATE:20260101\nRRULE:FREQ=SOMETIMES").contains("rule `FREQ=SOMETIMES`"));
        assert!(refused("DTSTART;VALUE=DATE:19000101\nRRULE:FREQ=SECONDLY").contains("no sense for whole days"));
        assert!(
            refused("DTSTART;VALUE=DATE:19000101\nRRULE:FREQ=DAILY;BYHOUR=1,2").contains("no sense for whole days")
        );
        assert!(refused("DTSTART;VALUE=DATE:20260105\nDTEND;VALUE=DATE:20260101").contains("ends before"));
        for text in ["", "<html></html>", "2026-12-25", "BEGIN:VCALENDAR\r\nBEGIN:VEVENT\r\n"] {
            let error = holidays_from_ics(text, "2026-01-01".parse().unwrap(), "2027-01-01".parse().unwrap());
            assert!(matches!(error, Err(IcsError::Unreadable(_))), "{text}: {error:?}");
        }
    }
}
