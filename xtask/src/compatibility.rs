//! `cargo xtask compatibility`: compares the packages' definitions with those of the last release.
//!
//! `docs/compatibility.md` describes the policy. The rules are in `schema` (fields), `bounds` (the
//! values that a field accepts) and `definition` (kinds and versions).

use std::error::Error;
use std::path::Path;
use std::process::ExitCode;

use clap::Args;

use crate::package::contents::PACKAGES;

mod accepted;
mod baseline;
mod bounds;
mod change;
mod definition;
#[cfg(test)]
mod rules_tests;
mod schema;

use accepted::Accepted;
use change::Change;

type Outcome<T> = Result<T, Box<dyn Error>>;

#[derive(Args)]
pub(crate) struct Arguments {
    /// Make the working tree's definitions the baseline of its version, as long as that
    /// version is not released
    #[arg(long)]
    freeze: bool,
}

pub(crate) fn run(arguments: &Arguments) -> ExitCode {
    let root = crate::root();
    let outcome = if arguments.freeze {
        freeze_unreleased(&root)
    } else {
        check(&root)
    };
    match outcome {
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

/// Makes the working tree's definitions the baseline of a release.
pub(crate) fn freeze(root: &Path, version: &str) -> Outcome<usize> {
    let definitions = baseline::of_tree(root, PACKAGES)?;
    baseline::freeze(root, version, &definitions)?;
    Ok(definitions.len())
}

fn freeze_unreleased(root: &Path) -> Outcome<String> {
    let version = env!("CARGO_PKG_VERSION");
    let changelog = std::fs::read_to_string(root.join("CHANGELOG.md"))?;
    if crate::release::changelog::has_section(&changelog, version) {
        return Err(format!(
            "{version} is released: CHANGELOG.md has a section for it. Its baseline stays; \
             `cargo xtask release` freezes the next one"
        )
        .into());
    }
    let count = freeze(root, version)?;
    Ok(format!("{count} definitions are the baseline of {version}"))
}

/// Compares with the last release. Fails if a breaking change is not accepted, or if an acceptance
/// matches no change.
pub(crate) fn check(root: &Path) -> Outcome<String> {
    let Some((version, old)) = baseline::last(root)? else {
        return Err("releases/ has no baseline: `cargo xtask compatibility --freeze`".into());
    };
    let new = baseline::of_tree(root, PACKAGES)?;
    let accepted = Accepted::read(root)?;
    let (refused, stale) = accepted.sort(definition::compare(&old, &new));
    if refused.is_empty() && stale.is_empty() {
        return Ok(format!(
            "{} definitions are compatible with {version}",
            old.len()
        ));
    }
    Err(report(&version.to_string(), &refused, &stale).into())
}

fn report(version: &str, refused: &[Change], stale: &[String]) -> String {
    let mut lines = Vec::new();
    if !refused.is_empty() {
        let count = refused.len();
        lines.push(format!("{count} breaking changes since {version}:"));
        lines.extend(refused.iter().map(ToString::to_string));
        lines.push(format!(
            "A change that has to be: list it in {} with the reason, and tell users in \
             CHANGELOG.md (docs/compatibility.md).",
            accepted::FILE
        ));
    }
    for entry in stale {
        lines.push(format!(
            "{}: {entry}: nothing like it changed since {version}; remove the entry",
            accepted::FILE
        ));
    }
    lines.join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_users_wrote_for_the_last_release_is_still_accepted() {
        if let Err(error) = check(&crate::root()) {
            panic!("{error}");
        }
    }
}
