//! `cargo xtask package verify`: checks that the same sources give the same packages, in any folder
//! and at any time.
//!
//! For a release, everything is compiled twice, including dependencies. For development packages,
//! the dependencies are compiled once. The check then shows only that no path and no time gets into
//! this workspace's crates, images, manifests and package files.

use std::error::Error;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use local_cluster::progress::Progress;

use super::build::{Request, build};
use super::compile::{Profile, Source};
use super::image;
use super::platform::Platform;
use super::stage::COMMITTED_REGISTRY;
use crate::process::output;

type Outcome<T> = Result<T, Box<dyn Error>>;

/// Builds in this checkout and in a copy of it, for this machine's platform, and compares the
/// results. Returns the name and digest of each package file.
pub(super) fn verify(
    cli: &Path,
    profile: Profile,
    progress: &Progress,
) -> Outcome<Vec<(String, String)>> {
    let here = Source::here();
    let first = digests(cli, &here, profile, progress)?;
    let folder = here.target.join("verify");
    if folder.exists() {
        fs::remove_dir_all(&folder)?;
    }
    let there = Source {
        root: folder.join("another/checkout"),
        target: folder.join("compiled"),
    };
    let step = progress.begin("copy the checkout");
    copy(&here.root, &there.root)?;
    if profile == Profile::Dev {
        share_dependencies(&here, &there)?;
    }
    step.end("");
    let second = digests(cli, &there, profile, progress)?;
    let differing = differing(&first, &second);
    if !differing.is_empty() {
        return Err(format!(
            "not reproducible: {}. Compare them with those below {}",
            differing.join(", "),
            there.packages(profile).display()
        )
        .into());
    }
    fs::remove_dir_all(&folder)?;
    Ok(first)
}

fn digests(
    cli: &Path,
    source: &Source,
    profile: Profile,
    progress: &Progress,
) -> Outcome<Vec<(String, String)>> {
    let request = Request {
        profile,
        platforms: &[Platform::host()],
        registry: COMMITTED_REGISTRY,
        holds: &|_| true,
    };
    let mut digests = Vec::new();
    let packages = build(cli, source, &request, progress)?;
    for file in packages.built.iter().flat_map(|one| &one.files) {
        digests.push(digest(file)?);
        // Only a package with a program has a bill of materials.
        let bill = file.with_extension("cdx.json");
        if bill.is_file() {
            digests.push(digest(&bill)?);
        }
    }
    Ok(digests)
}

/// The name of a file, and the digest of its contents.
fn digest(file: &Path) -> Outcome<(String, String)> {
    let name = file.file_name().unwrap_or_default();
    let digest = image::sha256(&fs::read(file)?);
    Ok((name.to_string_lossy().into_owned(), digest))
}

fn differing<'a>(first: &'a [(String, String)], second: &[(String, String)]) -> Vec<&'a str> {
    let differs = |one: &&(String, String)| !second.contains(one);
    let names = first.iter().filter(differs).map(|(name, _)| name.as_str());
    names.collect()
}

/// Copies the files that git tracks or would add, without the files that git ignores.
fn copy(from: &Path, to: &Path) -> Outcome<()> {
    let mut git = Command::new("git");
    git.current_dir(from);
    git.args([
        "ls-files",
        "--cached",
        "--others",
        "--exclude-standard",
        "-z",
    ]);
    for path in output(&mut git)?
        .split('\0')
        .filter(|path| !path.is_empty())
    {
        let source = from.join(path);
        // git also lists a file that was deleted if the deletion is not committed.
        if source.is_file() {
            let target = to.join(path);
            fs::create_dir_all(target.parent().unwrap_or(to))?;
            fs::copy(source, target)?;
        }
    }
    Ok(())
}

/// Links the compiled development dependencies into another target folder. Removes the output of
/// this workspace's crates there.
fn share_dependencies(here: &Source, there: &Source) -> Outcome<()> {
    let (from, to) = (here.target.join("debug"), there.target.join("debug"));
    fs::create_dir_all(&to)?;
    let folders: Vec<PathBuf> = ["deps", "build", ".fingerprint"]
        .iter()
        .map(|folder| from.join(folder))
        .collect();
    output(
        Command::new("cp")
            .args(["--archive", "--link"])
            .args(folders)
            .arg(&to),
    )?;
    let mut metadata = Command::new(env!("CARGO"));
    metadata.current_dir(&there.root).args([
        "metadata",
        "--format-version=1",
        "--no-deps",
        "--locked",
    ]);
    let metadata: serde_json::Value = serde_json::from_str(&output(&mut metadata)?)?;
    let mut clean = Command::new(env!("CARGO"));
    clean
        .current_dir(&there.root)
        .env("CARGO_TARGET_DIR", &there.target)
        .arg("clean");
    for package in metadata["packages"].as_array().ok_or("no packages")? {
        clean.args(["--package", package["name"].as_str().unwrap_or_default()]);
    }
    output(&mut clean)?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_package_that_differs_is_named() {
        let one = |name: &str, digest: &str| (name.to_owned(), digest.to_owned());
        let first = [one("a.xpkg", "1"), one("b.xpkg", "2")];
        let second = [one("a.xpkg", "1"), one("b.xpkg", "3")];
        assert_eq!(differing(&first, &second), ["b.xpkg"]);
        assert!(differing(&first, &first).is_empty());
    }
}
