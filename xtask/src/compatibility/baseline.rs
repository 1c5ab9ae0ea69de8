//! The definitions of the working tree, and those of releases. Each definition of a release is one
//! file below `releases/<version>/<package>/`, as it was shipped.

use std::fs;
use std::path::{Path, PathBuf};

use semver::Version;
use serde::Deserialize;
use serde_json::Value;

use super::Outcome;
use super::definition::Definition;
use crate::package::contents::Package;
use crate::package::stage::sorted;

const FOLDER: &str = "releases";
const HEADER: &str = "# What users of this release rely on. Written by `cargo xtask release`.\n";

/// The definitions in the manifests of packages.
pub(super) fn of_tree(root: &Path, packages: &[Package]) -> Outcome<Vec<Definition>> {
    let mut definitions = Vec::new();
    for package in packages {
        let mut files = below(&root.join("package").join(package.folder))?;
        for folder in package.manifests {
            let of_folder = directly_in(&root.join(folder))?.into_iter();
            files.extend(of_folder.filter(|file| !package.leaves_out(file)));
        }
        for file in files {
            definitions.extend(read(&file, package.name)?);
        }
    }
    Ok(definitions)
}

/// The newest release and its definitions.
pub(super) fn last(root: &Path) -> Outcome<Option<(Version, Vec<Definition>)>> {
    let mut releases = Vec::new();
    for path in sorted(&root.join(FOLDER))? {
        if path.is_dir() {
            releases.push((Version::parse(&name(&path))?, path));
        }
    }
    let Some((version, folder)) = releases.into_iter().max() else {
        return Ok(None);
    };
    let mut definitions = Vec::new();
    for package in sorted(&folder)? {
        for file in directly_in(&package)? {
            definitions.extend(read(&file, &name(&package))?);
        }
    }
    Ok(Some((version, definitions)))
}

/// Writes the definitions of a release. Replaces those that were written for it before.
pub(super) fn freeze(root: &Path, version: &str, definitions: &[Definition]) -> Outcome<()> {
    let folder = root.join(FOLDER).join(version);
    if folder.exists() {
        fs::remove_dir_all(&folder)?;
    }
    for definition in definitions {
        let folder = folder.join(&definition.package);
        fs::create_dir_all(&folder)?;
        let text = serde_yaml::to_string(&definition.body)?;
        let file = folder.join(format!("{}.yaml", definition.name()));
        fs::write(file, format!("{HEADER}{text}"))?;
    }
    Ok(())
}

fn read(file: &Path, package: &str) -> Outcome<Vec<Definition>> {
    let text = fs::read_to_string(file)?;
    let mut definitions = Vec::new();
    for document in serde_yaml::Deserializer::from_str(&text) {
        let body = Value::deserialize(document).map_err(|e| format!("{}: {e}", file.display()))?;
        let kind = body["kind"].as_str().unwrap_or_default();
        if matches!(
            kind,
            "CompositeResourceDefinition" | "CustomResourceDefinition"
        ) {
            definitions.push(Definition {
                package: package.to_owned(),
                body,
            });
        }
    }
    Ok(definitions)
}

fn below(folder: &Path) -> Outcome<Vec<PathBuf>> {
    let mut files = directly_in(folder)?;
    for path in sorted(folder)?.into_iter().filter(|path| path.is_dir()) {
        files.extend(below(&path)?);
    }
    Ok(files)
}

fn directly_in(folder: &Path) -> Outcome<Vec<PathBuf>> {
    let is_manifest = |path: &PathBuf| path.extension().is_some_and(|e| e == "yaml");
    Ok(sorted(folder)?.into_iter().filter(is_manifest).collect())
}

fn name(path: &Path) -> String {
    let name = path.file_name().unwrap_or_default();
    name.to_string_lossy().into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_release_is_the_baseline_and_not_the_last_in_the_alphabet() {
        let root = std::env::temp_dir().join(format!("releases-{}", std::process::id()));
        for version in ["0.9.0", "0.10.0", "0.10.0-rc.1"] {
            let body = serde_json::json!({
                "kind": "CustomResourceDefinition",
                "metadata": {"name": "as.test"},
                "spec": {"group": version},
            });
            let package = "provider-a".to_owned();
            freeze(&root, version, &[Definition { package, body }]).unwrap();
        }
        let (version, definitions) = last(&root).unwrap().unwrap();
        assert_eq!(version.to_string(), "0.10.0");
        assert_eq!(definitions[0].package, "provider-a");
        assert_eq!(definitions[0].body["spec"]["group"], "0.10.0");
        fs::remove_dir_all(&root).unwrap();
    }
}
