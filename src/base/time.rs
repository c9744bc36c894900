//! Wall-clock times as they stand in records. Time limits never use them: those run on the monotonic clock.

use serde::{Deserialize, Serialize};
use std::fmt;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

const DAY: i64 = 86_400_000;

/// A moment in UTC with milliseconds, years 1 to 9999; in JSON `2025-01-31T09:30:00.125Z` (RFC 3339).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Timestamp(i64);

impl Timestamp {
    /// What the wall clock says now.
    pub fn now() -> Timestamp {
        SystemTime::now().into()
    }
    /// Milliseconds since 1970, if the year has four digits.
    pub fn from_millis(millis: i64) -> Option<Timestamp> {
        (days(1, 1, 1) * DAY..days(10_000, 1, 1) * DAY)
            .contains(&millis)
            .then_some(Timestamp(millis))
    }
    /// Milliseconds since 1970.
    pub fn millis(self) -> i64 {
        self.0
    }
    /// How far apart two moments are, whichever is first: the wall clock may have been set back in between.
    pub fn distance(self, other: Timestamp) -> Duration {
        Duration::from_millis(self.0.abs_diff(other.0))
    }
    /// The moment without separators, for a file name: `20250131T093000.125Z`.
    pub fn compact(self) -> String {
        self.to_string().replace(['-', ':'], "")
    }
}

impl From<SystemTime> for Timestamp {
    /// Clamps to the years 1 to 9999.
    fn from(time: SystemTime) -> Timestamp {
        let millis = match time.duration_since(UNIX_EPOCH) {
            Ok(after) => i64::try_from(after.as_millis()).unwrap_or(i64::MAX),
            Err(before) => i64::try_from(before.duration().as_millis()).map_or(i64::MIN, |m| -m),
        };
        Timestamp(millis.clamp(days(1, 1, 1) * DAY, days(10_000, 1, 1) * DAY - 1))
    }
}

impl fmt::Display for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (year, month, day) = date(self.0.div_euclid(DAY));
        let rest = self.0.rem_euclid(DAY);
        let (hour, minute, second) = (rest / 3_600_000, rest / 60_000 % 60, rest / 1000 % 60);
        write!(
            f,
            "{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{:03}Z",
            rest % 1000
        )
    }
}

impl From<Timestamp> for String {
    fn from(time: Timestamp) -> String {
        time.to_string()
    }
}

impl TryFrom<String> for Timestamp {
    type Error = &'static str;
    fn try_from(text: String) -> Result<Self, Self::Error> {
        parse(&text).ok_or("a time looks like 2025-01-31T09:30:00.125Z")
    }
}

fn parse(text: &str) -> Option<Timestamp> {
    if text.len() != 24 || !text.is_ascii() {
        return None;
    }
    let field = |from: usize, to: usize| {
        let digits = &text[from..to];
        digits
            .bytes()
            .all(|b| b.is_ascii_digit())
            .then(|| digits.parse::<i64>().ok())
            .flatten()
    };
    let (year, month, day) = (field(0, 4)?, field(5, 7)?, field(8, 10)?);
    let (hour, minute, second, milli) = (field(11, 13)?, field(14, 16)?, field(17, 19)?, field(20, 23)?);
    let time = Timestamp(days(year, month, day) * DAY + ((hour * 60 + minute) * 60 + second) * 1000 + milli);
    // Writing it again checks the separators and refuses the 31st of February and the like.
    (year >= 1 && time.to_string() == text).then_some(time)
}

/// Days since 1970-01-01 of a date in the Gregorian calendar; months are counted from March, so that the leap day is last.
fn days(year: i64, month: i64, day: i64) -> i64 {
    let year = year - i64::from(month <= 2);
    let month = (month + 9) % 12;
    year * 365 + year.div_euclid(4) - year.div_euclid(100) + year.div_euclid(400) + (month * 306 + 5) / 10 + day
        - 719_469
}

/// The date of a day since 1970-01-01: the inverse of [`days`].
fn date(day: i64) -> (i64, i64, i64) {
    let day = day + 719_468;
    let era = day.div_euclid(146_097);
    let of_era = day.rem_euclid(146_097);
    let year = (of_era - of_era / 1460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year + year / 4 - year / 100);
    let month = (5 * of_year + 2) / 153;
    let day = of_year - (153 * month + 2) / 5 + 1;
    let month = if month < 10 { month + 3 } else { month - 9 };
    (year + era * 400 + i64::from(month <= 2), month, day)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn at(text: &str) -> Option<Timestamp> {
        Timestamp::try_from(text.to_owned()).ok()
    }

    #[test]
    fn agrees_with_known_moments() {
        for (millis, text) in [
            (0, "1970-01-01T00:00:00.000Z"),
            (951_782_400_000, "2000-02-29T00:00:00.000Z"),
            (1_700_000_000_123, "2023-11-14T22:13:20.123Z"),
            (-1, "1969-12-31T23:59:59.999Z"),
            (4_107_542_400_000, "2100-03-01T00:00:00.000Z"),
        ] {
            assert_eq!(Timestamp::from_millis(millis).unwrap().to_string(), text);
            assert_eq!(at(text).unwrap().millis(), millis);
        }
    }

    #[test]
    fn refuses_what_is_not_a_moment() {
        for text in [
            "",
            "2023-02-29T00:00:00.000Z",
            "2023-01-01T24:00:00.000Z",
            "2023-01-01 00:00:00.000Z",
            "2023-01-01T00:00:00.000+",
            "0000-01-01T00:00:00.000Z",
            "+023-01-01T00:00:00.000Z",
            "2023-01-01T00:00:00Z",
            "2023-01-01T00:00:00.00éZ",
        ] {
            assert_eq!(at(text), None, "{text}");
        }
        assert_eq!(Timestamp::from_millis(i64::MAX), None);
    }

    #[test]
    fn measures_the_distance_both_ways() {
        let (a, b) = (
            at("2023-01-01T00:00:00.000Z").unwrap(),
            at("2023-01-01T00:01:00.000Z").unwrap(),
        );
        assert_eq!(a.distance(b), Duration::from_secs(60));
        assert_eq!(b.distance(a), Duration::from_secs(60));
    }

    proptest! {
        #[test]
        fn every_moment_survives_its_text(millis in days(1, 1, 1) * DAY..days(10_000, 1, 1) * DAY) {
            let time = Timestamp::from_millis(millis).unwrap();
            prop_assert_eq!(at(&time.to_string()), Some(time));
        }
    }
}
