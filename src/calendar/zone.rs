//! Names of time zones. They come from tables built into the program, never from files of the machine.

use chrono_tz::{TZ_VARIANTS, Tz};

/// A name that no time zone has.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("unknown time zone `{name}`")]
pub struct ZoneError {
    /// The name as written.
    pub name: String,
    /// A zone of a similar name.
    pub near: Option<String>,
}

/// How alike two names must be to be offered as a correction, 1 being the same.
const ALIKE_MIN: f64 = 0.85;

/// Reads a name of the IANA list, such as `Asia/Kolkata`.
///
/// # Errors
/// When no zone has that name. Offsets such as `CET+1` are no names: they know no daylight saving time.
pub fn parse_zone(text: &str) -> Result<Tz, ZoneError> {
    text.parse().map_err(|_| ZoneError { name: text.to_owned(), near: near_zone(text) })
}

fn near_zone(text: &str) -> Option<String> {
    let wanted = text.trim().to_lowercase().replace(' ', "_");
    let city_only = |name: &str| name.rsplit('/').next().is_some_and(|city| city == wanted);
    let score = |zone: &Tz| {
        let name = zone.name().to_lowercase();
        if city_only(&name) { 1.0 } else { strsim::jaro_winkler(&name, &wanted) }
    };
    let best = TZ_VARIANTS.iter().map(|zone| (score(zone), zone)).max_by(|(a, _), (b, _)| a.total_cmp(b))?;
    (best.0 >= ALIKE_MIN).then(|| best.1.name().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_of_the_list_is_a_zone() {
        for name in ["Europe/Madrid", "Asia/Kolkata", "UTC", "Australia/Lord_Howe", "America/Sao_Paulo"] {
            assert_eq!(parse_zone(name).unwrap().name(), name);
        }
    }

    #[test]
    fn a_misspelled_zone_names_the_near_one() {
        let near = |text| parse_zone(text).unwrap_err().near;
        assert_eq!(near("Europe/Madird").as_deref(), Some("Europe/Madrid"));
        assert_eq!(near("europe/berlin").as_deref(), Some("Europe/Berlin"));
        assert_eq!(near("America/New York").as_deref(), Some("America/New_York"));
        assert_eq!(near("Kolkata").as_deref(), Some("Asia/Kolkata"));
    }

    #[test]
    fn an_offset_or_nothing_is_no_zone() {
        for text in ["CET+1", "+05:30", "", "UTC+2", "local"] {
            assert!(parse_zone(text).is_err(), "{text}");
        }
    }
}
