//! CHANGELOG.md: a section for each release, and one for unreleased changes.

use jiff::civil::Date;
use semver::Version;

const UNRELEASED: &str = "## Unreleased";

/// Returns the changelog with the unreleased section renamed to a version and with a new, empty
/// unreleased section. Fails if there is nothing to release.
pub(super) fn released(text: &str, version: &Version, date: Date) -> Result<String, String> {
    let (before, after) = text
        .split_once(&format!("{UNRELEASED}\n"))
        .ok_or_else(|| format!("CHANGELOG.md: no section \"{UNRELEASED}\""))?;
    let entries = after.split("\n## ").next().unwrap_or_default();
    if !entries.lines().any(|line| line.starts_with("- ")) {
        return Err(format!(
            "CHANGELOG.md: \"{UNRELEASED}\" has no entry; say what users get from {version}"
        ));
    }
    let after = after.trim_start_matches('\n');
    Ok(format!(
        "{before}{UNRELEASED}\n\n## {version} - {date}\n\n{after}"
    ))
}

/// Whether the changelog has a section for a version. A version is released if and only if it has
/// one.
pub(crate) fn has_section(text: &str, version: &str) -> bool {
    let mut headings = text.lines().filter_map(|line| line.strip_prefix("## "));
    headings.any(|heading| heading.split(' ').next() == Some(version))
}

#[cfg(test)]
mod tests {
    use super::*;

    const LOG: &str =
        "# Changelog\n\n## Unreleased\n\n- Pools.\n\n## 0.1.0 - 2026-11-01\n\n- All.\n";

    #[test]
    fn what_was_unreleased_gets_a_version_and_a_date() {
        let date = jiff::civil::date(2026, 12, 1);
        let log = released(LOG, &Version::new(0, 2, 0), date).unwrap();
        assert_eq!(
            log,
            "# Changelog\n\n## Unreleased\n\n## 0.2.0 - 2026-12-01\n\n- Pools.\n\n\
             ## 0.1.0 - 2026-11-01\n\n- All.\n"
        );
        // Another release right after this one has no changes to list.
        let error = released(&log, &Version::new(0, 3, 0), date).unwrap_err();
        assert!(error.contains("has no entry"), "{error}");
    }

    #[test]
    fn a_version_is_found_by_all_of_its_name() {
        assert!(has_section(LOG, "0.1.0"));
        assert!(!has_section(LOG, "0.1"));
        assert!(!has_section(LOG, "0.2.0"));
    }
}
