//! Calendar months in UTC. A budget is for one month.

use std::fmt;
use std::str::FromStr;

use jiff::Timestamp;
use jiff::civil::Date;
use jiff::tz::TimeZone;

/// A calendar month.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Month {
    year: i16,
    month: i8,
}

impl Month {
    /// The month of a time.
    pub fn of(time: Timestamp) -> Self {
        let date = time.to_zoned(TimeZone::UTC).date();
        Self {
            year: date.year(),
            month: date.month(),
        }
    }

    /// The first moment of the month.
    pub fn start(self) -> Timestamp {
        Date::new(self.year, self.month, 1)
            .and_then(|date| date.to_zoned(TimeZone::UTC))
            .map_or(Timestamp::MIN, |start| start.timestamp())
    }

    /// The first moment of the next month.
    pub fn end(self) -> Timestamp {
        let next = if self.month == 12 {
            Self {
                year: self.year.saturating_add(1),
                month: 1,
            }
        } else {
            Self {
                month: self.month + 1,
                ..self
            }
        };
        next.start()
    }
}

impl fmt::Display for Month {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:04}-{:02}", self.year, self.month)
    }
}

impl FromStr for Month {
    type Err = jiff::Error;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let first: Date = format!("{text}-01").parse()?;
        Ok(Self {
            year: first.year(),
            month: first.month(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_month_ends_where_the_next_one_begins() {
        let month = |text: &str| text.parse::<Month>().unwrap();
        assert_eq!(month("2026-11").end(), month("2026-12").start());
        assert_eq!(month("2026-12").end(), month("2027-01").start());
        assert_eq!(month("2028-02").end().to_string(), "2028-03-01T00:00:00Z");
        assert!(month("2026-12") < month("2027-01"));
        assert_eq!(Month::of(month("2026-11").start()).to_string(), "2026-11");
        assert!("2026-13".parse::<Month>().is_err());
    }
}
