//! Durations of the command line.

/// Reads a duration such as `30m`, `72h` or `1h30m`.
pub(super) fn duration(text: &str) -> Result<std::time::Duration, String> {
    let wrong = || "write a duration, for example 30m or 4h".to_owned();
    let text = text.trim();
    if text.starts_with('-') || text.is_empty() {
        return Err(wrong());
    }
    let span: jiff::SignedDuration = match text.strip_suffix('d') {
        Some(days) => {
            let days: i64 = days.parse().map_err(|_| wrong())?;
            jiff::SignedDuration::from_hours(days.checked_mul(24).ok_or_else(wrong)?)
        }
        None => text.parse().map_err(|_| wrong())?,
    };
    std::time::Duration::try_from(span).map_err(|_| wrong())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_read_as_claims_write_them() {
        for (text, seconds) in [
            ("30m", 1_800),
            ("4h", 14_400),
            ("1h30m", 5_400),
            ("2d", 172_800),
        ] {
            assert_eq!(duration(text).unwrap().as_secs(), seconds, "{text}");
        }
        for text in ["", "4", "-1h", "soon", "1x"] {
            assert!(duration(text).is_err(), "{text}");
        }
    }
}
