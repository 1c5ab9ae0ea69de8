//! The version that all crates and packages share, and the version ranges in packages'
//! dependencies.

use semver::Version;
use toml_edit::{DocumentMut, Item};

/// The range of versions with which a package of `version` works, for dependencies between packages
/// of this repository. It begins at `version`, without its pre-release part, and ends before the
/// next version that may break it. Both ends have `-0`: Crossplane accepts pre-releases, such as
/// development builds, only if a bound is a pre-release.
pub(crate) fn range(version: &Version) -> String {
    let Version {
        major,
        minor,
        patch,
        ..
    } = version;
    let next = if *major == 0 {
        Version::new(0, minor + 1, 0)
    } else {
        Version::new(major + 1, 0, 0)
    };
    format!(">=v{major}.{minor}.{patch}-0, <v{next}-0")
}

/// The version that the workspace's manifest gives all crates.
pub(super) fn of_workspace(manifest: &str) -> Result<Version, String> {
    let document = parse(manifest)?;
    let version = version(&document).and_then(Item::as_str);
    let version = version.ok_or("Cargo.toml: workspace.package.version is missing")?;
    Version::parse(version).map_err(|e| format!("Cargo.toml: workspace.package.version: {e}"))
}

/// The manifest with another version. Everything else stays as it is.
pub(super) fn in_workspace(manifest: &str, version: &Version) -> Result<String, String> {
    let mut document = parse(manifest)?;
    let value = document["workspace"]["package"]["version"]
        .as_value_mut()
        .ok_or("Cargo.toml: workspace.package.version is missing")?;
    let decor = value.decor().clone();
    *value = version.to_string().into();
    *value.decor_mut() = decor;
    Ok(document.to_string())
}

/// The text with the ranges and tags of `version` instead of those of `current`.
pub(super) fn in_text(text: &str, current: &Version, version: &Version) -> String {
    let (before, after) = (range(current), range(version));
    let pieces = text.split(&before);
    let moved = pieces.map(|piece| piece.replace(&format!("v{current}"), &format!("v{version}")));
    moved.collect::<Vec<String>>().join(&after)
}

fn parse(manifest: &str) -> Result<DocumentMut, String> {
    manifest.parse().map_err(|e| format!("Cargo.toml: {e}"))
}

fn version(document: &DocumentMut) -> Option<&Item> {
    document.get("workspace")?.get("package")?.get("version")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_range_ends_where_a_release_may_break() {
        assert_eq!(range(&Version::new(0, 1, 3)), ">=v0.1.3-0, <v0.2.0-0");
        assert_eq!(range(&Version::new(1, 4, 0)), ">=v1.4.0-0, <v2.0.0-0");
        let candidate = Version::parse("0.2.0-rc.1").unwrap();
        assert_eq!(range(&candidate), ">=v0.2.0-0, <v0.3.0-0");
    }

    /// The end of the old range is the beginning of the new one, so a second replacement would
    /// change it again.
    #[test]
    fn ranges_and_tags_move_once() {
        let text = "a:v0.1.0 >=v0.1.0-0, <v0.2.0-0 b:v0.2.0\n";
        let moved = in_text(text, &Version::new(0, 1, 0), &Version::new(0, 2, 0));
        assert_eq!(moved, "a:v0.2.0 >=v0.2.0-0, <v0.3.0-0 b:v0.2.0\n");
    }

    #[test]
    fn a_manifest_keeps_its_comments() {
        let manifest = "# All.\n[workspace.package]\nversion = \"0.1.0\"  # one\nname = 1\n";
        assert_eq!(of_workspace(manifest).unwrap(), Version::new(0, 1, 0));
        assert_eq!(
            in_workspace(manifest, &Version::new(0, 2, 0)).unwrap(),
            manifest.replace("0.1.0", "0.2.0")
        );
        assert!(in_workspace("[workspace]\n", &Version::new(0, 2, 0)).is_err());
    }
}
