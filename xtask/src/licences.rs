//! `cargo xtask licences`: checks that every dependency's licence allows us to ship the dependency.
//!
//! The command reads Cargo's own metadata, so it needs no network. It does not check for security
//! advisories, whose database needs a network; `cargo audit` does that from Cargo.lock.

use std::error::Error;
use std::process::{Command, ExitCode};

use serde_json::Value;
use spdx::{Expression, LicenseItem};

use crate::process::output;

/// Permissive licences that only require keeping their text.
const ALLOWED: &[&str] = &[
    "0BSD",
    "Apache-2.0",
    "BSD-2-Clause",
    "BSD-3-Clause",
    "CDLA-Permissive-2.0",
    "ISC",
    "MIT",
    "MIT-0",
    "OpenSSL",
    "Unicode-3.0",
    "Unlicense",
    "Zlib",
];

pub(crate) fn run() -> ExitCode {
    match check() {
        Ok(count) => {
            println!("{count} dependencies, every licence allowed");
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}

fn check() -> Result<usize, Box<dyn Error>> {
    let mut cargo = Command::new(env!("CARGO"));
    cargo
        .current_dir(crate::root())
        .args(["metadata", "--format-version=1", "--locked"]);
    let metadata: Value = serde_json::from_str(&output(&mut cargo)?)?;
    let packages = metadata["packages"].as_array().ok_or("no packages")?;
    let refused: Vec<String> = packages.iter().filter_map(refusal).collect();
    if refused.is_empty() {
        Ok(packages.len())
    } else {
        Err(refused.join("\n").into())
    }
}

/// The reason why a package may not be shipped, if there is one.
fn refusal(package: &Value) -> Option<String> {
    let name = format!("{} {}", package["name"], package["version"]).replace('"', "");
    match package["license"].as_str() {
        None => Some(format!("{name}: states no licence")),
        Some(licence) if is_allowed(licence) => None,
        Some(licence) => Some(format!("{name}: {licence} is not on the list")),
    }
}

fn is_allowed(licence: &str) -> bool {
    Expression::parse_mode(licence, spdx::ParseMode::LAX).is_ok_and(|expression| {
        expression.evaluate(|requirement| match &requirement.license {
            LicenseItem::Spdx { id, .. } => ALLOWED.contains(&id.name),
            LicenseItem::Other { .. } => false,
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_copyleft_dependency_is_refused_unless_another_licence_is_offered() {
        assert!(is_allowed("MIT OR Apache-2.0"));
        assert!(is_allowed("MIT/Apache-2.0"));
        assert!(is_allowed("(MIT OR GPL-3.0-only) AND Unicode-3.0"));
        assert!(!is_allowed("GPL-3.0-only"));
        assert!(!is_allowed("MIT AND AGPL-3.0-only"));
        assert!(!is_allowed("Proprietary"));
    }
}
