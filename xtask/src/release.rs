//! `cargo xtask release`: makes all changes of a release in the repository, in one step.
//!
//! The command writes files and prints the next steps. A person commits, tags and pushes.

use std::error::Error;
use std::fs;
use std::path::Path;
use std::process::{Command, ExitCode};

use clap::Args;
use jiff::civil::Date;
use semver::Version;

use crate::package::contents::PACKAGES;
use crate::process::output;

pub(crate) mod changelog;
pub(crate) mod versions;

type Outcome<T> = Result<T, Box<dyn Error>>;

/// The workspace's manifest, from which the crates inherit the version.
const MANIFEST: &str = "Cargo.toml";
const CHANGELOG: &str = "CHANGELOG.md";
const ACCEPTED: &str = "releases/accepted.yaml";
/// Files that contain the version and that readers copy from.
const SHOWN: [&str; 4] = [
    "argocd/kustomization.yaml",
    "docs/gitops.md",
    "docs/install.md",
    "examples/gitops/platform/crossplane/packages.yaml",
];

#[derive(Args)]
pub(crate) struct Arguments {
    /// The version, such as 0.2.0
    version: Version,
    /// The release's date instead of today's, UTC
    #[arg(long)]
    date: Option<Date>,
    /// Write nothing; say what would be written
    #[arg(long)]
    dry_run: bool,
}

/// A file, by its path below the root, with its new contents.
#[derive(Debug, PartialEq, Eq)]
struct Written {
    path: String,
    content: String,
}

pub(crate) fn run(arguments: &Arguments) -> ExitCode {
    let today = || {
        jiff::Timestamp::now()
            .to_zoned(jiff::tz::TimeZone::UTC)
            .date()
    };
    let date = arguments.date.unwrap_or_else(today);
    match release(&crate::root(), &arguments.version, date, arguments.dry_run) {
        Ok(said) => {
            println!("{said}");
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}

fn release(root: &Path, version: &Version, date: Date, dry_run: bool) -> Outcome<String> {
    let changed = output(
        Command::new("git")
            .current_dir(root)
            .args(["status", "--porcelain"]),
    )?;
    if !changed.is_empty() && !dry_run {
        return Err(format!("commit or stash what is not part of the release:\n{changed}").into());
    }
    crate::compatibility::check(root)?;
    if !dry_run {
        crate::test_all::require_green()?;
    }
    let written = plan(root, version, date)?;
    let mut lines: Vec<String> = written.iter().map(|one| one.path.clone()).collect();
    lines.push("Cargo.lock".into());
    lines.push(format!("releases/{version}/"));
    if dry_run {
        return Ok(format!("would write:\n  {}", lines.join("\n  ")));
    }
    for one in written {
        fs::write(root.join(&one.path), &one.content)?;
    }
    crate::compatibility::freeze(root, &version.to_string())?;
    // This updates only the workspace's own versions in Cargo.lock. Whether to update dependencies
    // is a separate decision.
    output(Command::new(env!("CARGO")).current_dir(root).args([
        "update",
        "--workspace",
        "--offline",
    ]))?;
    Ok(format!(
        "wrote:\n  {}\n\n{}",
        lines.join("\n  "),
        next(version)
    ))
}

/// Returns the files to write. Refuses a version that was released before, or is older.
fn plan(root: &Path, version: &Version, date: Date) -> Outcome<Vec<Written>> {
    let read = |path: &str| {
        fs::read_to_string(root.join(path)).map_err(|error| format!("{path}: {error}"))
    };
    let manifest = read(MANIFEST)?;
    let current = versions::of_workspace(&manifest)?;
    let log = read(CHANGELOG)?;
    if changelog::has_section(&log, &version.to_string()) || *version < current {
        return Err(format!("{version} is not newer than what was released, {current}").into());
    }
    let mut written = vec![
        Written {
            path: CHANGELOG.into(),
            content: changelog::released(&log, version, date)?,
        },
        Written {
            path: MANIFEST.into(),
            content: versions::in_workspace(&manifest, version)?,
        },
        // The accepted changes belong to this release, so the list for the next release is empty.
        Written {
            path: ACCEPTED.into(),
            content: without_changes(&read(ACCEPTED)?),
        },
    ];
    let mut paths: Vec<String> = SHOWN.map(str::to_owned).into();
    for package in PACKAGES {
        paths.push(format!("package/{}/crossplane.yaml", package.folder));
    }
    for path in paths {
        let text = read(&path)?;
        let content = versions::in_text(&text, &current, version);
        if content != text {
            written.push(Written { path, content });
        }
    }
    Ok(written)
}

/// The text with its comments at the top and an empty list.
fn without_changes(text: &str) -> String {
    let comments = text.lines().take_while(|line| line.starts_with('#'));
    let kept: Vec<&str> = comments.chain(["changes: []\n"]).collect();
    kept.join("\n")
}

fn next(version: &Version) -> String {
    let mut lines = vec![
        "Look at the difference, then:".to_owned(),
        "  make test".into(),
        format!("  git commit --all --message 'Release {version}'"),
        format!("  git tag --annotate v{version} --message 'v{version}'"),
        "  cargo xtask package build --release".into(),
        "  cargo xtask package verify --release".into(),
        "  cargo xtask package push --release".into(),
        "  cargo xtask package sign --key FILE".into(),
        format!("  git push origin HEAD v{version}"),
    ];
    lines.insert(2, "  git add releases".into());
    lines.join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn repository(name: &str) -> std::path::PathBuf {
        let root = std::env::temp_dir().join(format!("release-{name}-{}", std::process::id()));
        let write = |path: &str, text: &str| {
            let path = root.join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        };
        write(MANIFEST, "[workspace.package]\nversion = \"0.1.0\" # all\n");
        write(CHANGELOG, "# Changelog\n\n## Unreleased\n\n- Pools.\n");
        write(ACCEPTED, "# Why.\nchanges:\n  - definition: as.test\n");
        for path in SHOWN {
            write(path, "image: acme/function:v0.1.0\n");
        }
        for package in PACKAGES {
            let range = versions::range(&Version::new(0, 1, 0));
            write(
                &format!("package/{}/crossplane.yaml", package.folder),
                &format!("spec:\n  dependsOn:\n    - version: \"{range}\"\n"),
            );
        }
        root
    }

    fn date() -> Date {
        jiff::civil::date(2026, 11, 30)
    }

    #[test]
    fn a_release_moves_every_version_at_once() {
        let root = repository("all");
        let written = plan(&root, &Version::new(0, 2, 0), date()).unwrap();
        let content = |path: &str| &written.iter().find(|one| one.path == path).unwrap().content;
        assert!(content(CHANGELOG).contains("## 0.2.0 - 2026-11-30\n\n- Pools.\n"));
        assert!(content(MANIFEST).contains("version = \"0.2.0\" # all"));
        assert_eq!(content(ACCEPTED), "# Why.\nchanges: []\n");
        for path in SHOWN {
            assert_eq!(content(path), "image: acme/function:v0.2.0\n");
        }
        for package in PACKAGES {
            let path = format!("package/{}/crossplane.yaml", package.folder);
            assert!(content(&path).contains("\">=v0.2.0-0, <v0.3.0-0\""));
        }
        fs::remove_dir_all(&root).unwrap();
    }

    #[test]
    fn nothing_is_released_twice_or_backwards() {
        let root = repository("twice");
        assert!(plan(&root, &Version::new(0, 1, 0), date()).is_ok());
        let log = "# Changelog\n\n## Unreleased\n\n- More.\n\n## 0.1.0 - 2026-11-01\n\n- Pools.\n";
        fs::write(root.join(CHANGELOG), log).unwrap();
        for version in [Version::new(0, 1, 0), Version::new(0, 0, 9)] {
            let error = plan(&root, &version, date()).unwrap_err().to_string();
            assert!(error.contains("is not newer"), "{error}");
        }
        fs::remove_dir_all(&root).unwrap();
    }
}
