//! Package files in a registry: one image, or an index of one image for each platform.

use std::error::Error;
use std::ffi::OsString;
use std::path::PathBuf;
use std::process::Command;

use super::build::Built;
use super::contents::ORGANISATION;
use crate::process::output;

/// Pushes a package by the crossplane CLI, `command`. Answers its reference.
pub(super) fn push(
    mut command: Command,
    registry: &str,
    built: &Built,
) -> Result<String, Box<dyn Error>> {
    let name = built.package.name;
    let reference = format!("{registry}/{ORGANISATION}/{name}:{}", built.tag);
    command
        .args(["xpkg", "push", "--package-files"])
        .arg(listed(&built.files))
        .args([
            concat!(
                "--oci-annotation=org.opencontainers.image.source=",
                env!("CARGO_PKG_REPOSITORY")
            ),
            concat!(
                "--oci-annotation=org.opencontainers.image.licenses=",
                env!("CARGO_PKG_LICENSE")
            ),
            &format!(
                "--oci-annotation=org.opencontainers.image.version={}",
                built.tag
            ),
            &reference,
        ]);
    output(&mut command)?;
    Ok(reference)
}

/// As the CLI takes several files: from more than one it makes an index.
fn listed(files: &[PathBuf]) -> OsString {
    let files: Vec<&std::ffi::OsStr> = files.iter().map(|file| file.as_os_str()).collect();
    files.join(std::ffi::OsStr::new(","))
}
