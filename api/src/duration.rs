//! Durations as people write them.

use std::borrow::Cow;
use std::error::Error;
use std::fmt;

use jiff::SignedDuration;
use kube::core::{Message, Rule};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};

use crate::patterns::DURATION;

/// A hundred years, in seconds. A longer duration counts as this one, because a time after it could
/// not be written.
const LONGEST: i64 = 100 * 366 * 86_400;
/// Characters of the longest text.
const CHARACTERS: u32 = 32;

/// A duration of whole seconds, for example `90m` or `1d12h`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Duration {
    text: String,
    seconds: i64,
}

/// The text is no duration.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Malformed;

impl fmt::Display for Malformed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(DURATION.message)
    }
}

impl Error for Malformed {}

impl Duration {
    /// A duration of whole minutes.
    pub fn of_minutes(minutes: u16) -> Self {
        Self {
            text: format!("{minutes}m"),
            seconds: i64::from(minutes) * 60,
        }
    }

    /// A duration of whole seconds.
    pub fn of_seconds(seconds: u16) -> Self {
        Self {
            text: format!("{seconds}s"),
            seconds: seconds.into(),
        }
    }

    /// The length, at most a hundred years.
    pub const fn length(&self) -> SignedDuration {
        SignedDuration::from_secs(self.seconds)
    }

    /// The length as the timer of a process has it.
    pub fn timer(&self) -> std::time::Duration {
        self.length().unsigned_abs()
    }
}

impl TryFrom<String> for Duration {
    type Error = Malformed;

    fn try_from(text: String) -> Result<Self, Malformed> {
        let seconds = seconds(&text).ok_or(Malformed)?.min(LONGEST);
        Ok(Self { text, seconds })
    }
}

impl From<Duration> for String {
    fn from(duration: Duration) -> Self {
        duration.text
    }
}

impl fmt::Display for Duration {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl JsonSchema for Duration {
    fn schema_name() -> Cow<'static, str> {
        "Duration".into()
    }

    fn inline_schema() -> bool {
        true
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "type": "string",
            "maxLength": CHARACTERS,
            "pattern": DURATION.to_string(),
        })
    }
}

/// The shortest and the longest value of a duration.
#[derive(Clone, Copy, Debug)]
pub struct Bounds {
    least: &'static str,
    most: &'static str,
}

impl Bounds {
    /// The bounds, as people write durations.
    pub const fn new(least: &'static str, most: &'static str) -> Self {
        Self { least, most }
    }

    /// What is wrong with a duration; none if it is within the bounds.
    pub fn problem(self, duration: &Duration) -> Option<String> {
        let (least, most) = self.seconds();
        let is_within = (least..=most).contains(&duration.seconds);
        (!is_within).then(|| self.message())
    }

    /// The bounds as a rule of a definition.
    pub(crate) fn rule(self) -> Rule {
        let (least, most) = self.seconds();
        // CEL's own durations know no days.
        let found = "self.findAll('[0-9]+[smhd]').map(part, int(part.substring(0, size(part) - 1)) \
                     * (part.endsWith('d') ? 86400 : part.endsWith('h') ? 3600 : part.endsWith('m') \
                     ? 60 : 1)).sum()";
        let message = Message::Message(self.message());
        Rule::new(format!("{found} >= {least} && {found} <= {most}")).message(message)
    }

    fn seconds(self) -> (i64, i64) {
        let of = |text| seconds(text).unwrap_or_default();
        (of(self.least), of(self.most))
    }

    fn message(self) -> String {
        let Self { least, most } = self;
        format!("must be at least {least} and at most {most}")
    }
}

/// Parses a duration as claims and policies write it. Returns none for another format and for more
/// than a hundred years.
pub fn duration(text: &str) -> Option<SignedDuration> {
    let seconds = seconds(text).filter(|seconds| *seconds <= LONGEST)?;
    Some(SignedDuration::from_secs(seconds))
}

fn seconds(text: &str) -> Option<i64> {
    let mut seconds: i64 = 0;
    let mut rest = text;
    while !rest.is_empty() {
        let digits = rest.find(|c: char| !c.is_ascii_digit())?;
        let number: i64 = rest[..digits].parse().ok()?;
        let unit = match rest.as_bytes()[digits] {
            b's' => 1,
            b'm' => 60,
            b'h' => 3_600,
            b'd' => 86_400,
            _ => return None,
        };
        seconds = number.checked_mul(unit)?.checked_add(seconds)?;
        rest = &rest[digits + 1..];
    }
    (!text.is_empty()).then_some(seconds)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_read_as_people_write_them() {
        let seconds = |text| duration(text).map(|length| length.as_secs());
        assert_eq!(seconds("90m"), Some(5_400));
        assert_eq!(seconds("1d12h"), Some(129_600));
        assert_eq!(seconds("30s"), Some(30));
        assert_eq!(seconds("0s"), Some(0));
        for none in ["", "12", "h", "1w", "-1h", "1h ", "99999d99999d", "1é"] {
            assert_eq!(seconds(none), None, "{none}");
        }
    }

    #[test]
    fn a_duration_keeps_its_text_and_ends_before_times_do() {
        let read = |text: &str| serde_json::from_value::<Duration>(text.into());
        let own = read("1d12h").unwrap();
        assert_eq!(own.length(), SignedDuration::from_hours(36));
        assert_eq!(serde_json::to_value(&own).unwrap(), "1d12h");
        assert_eq!(read("99999d").unwrap().length().as_secs(), LONGEST);
        assert!(read("soon").is_err());
        assert_eq!(Duration::of_minutes(10), read("10m").unwrap());
        assert_eq!(Duration::of_seconds(10), read("10s").unwrap());
    }
}
