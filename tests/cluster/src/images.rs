//! Builds images without a builder, in the cluster's registry.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::command;

/// An image to build.
#[derive(Debug)]
pub struct Image<'a> {
    /// Its name, with registry and tag.
    pub reference: &'a str,
    /// Its layers, lowest first.
    pub layers: &'a [PathBuf],
    /// What it runs: a program, and its first arguments after commas.
    pub entrypoint: &'a str,
    /// Who runs it, as a number; nobody says so: root.
    pub user: Option<&'a str>,
    /// Environment variables, each `NAME=value`.
    pub environment: &'a [&'a str],
}

/// Packs what is below `root` into a layer at `to`. The same files give the same
/// layer, whoever owns them and whenever they were written.
pub fn pack(root: &Path, to: &Path) -> Result<(), command::Error> {
    let mut tar = Command::new("tar");
    tar.args(["--create", "--sort=name", "--mtime=@0", "--mode=a+rX"])
        .args(["--owner=0", "--group=0", "--numeric-owner"])
        // Decompressed once on this machine: size does not matter, time does.
        .args(["--use-compress-program=gzip -1", "--file"])
        .arg(to)
        .arg("--directory")
        .arg(root)
        .arg(".");
    command::output(&mut tar)?;
    Ok(())
}

/// Packs a single static binary, as `/<its name>`.
pub fn pack_binary(binary: &Path, to: &Path) -> Result<(), command::Error> {
    let mut tar = Command::new("tar");
    tar.args(["--create", "--mtime=@0", "--mode=a+rX"])
        .args(["--owner=0", "--group=0", "--numeric-owner"])
        .args(["--use-compress-program=gzip -1", "--file"])
        .arg(to)
        .arg("--directory")
        .arg(binary.parent().unwrap_or(Path::new("/")))
        .arg(binary.file_name().unwrap_or(binary.as_os_str()));
    command::output(&mut tar)?;
    Ok(())
}

/// Builds the image and pushes it to the registry that its name says.
pub fn push(crane: &Path, image: &Image<'_>) -> Result<(), command::Error> {
    let mut append = Command::new(crane);
    append.args(["append", "--oci-empty-base", "--new_tag", image.reference]);
    for layer in image.layers {
        append.arg("--new_layer").arg(layer);
    }
    command::output(&mut append)?;
    let mut mutate = Command::new(crane);
    mutate
        .args(["mutate", image.reference, "--tag", image.reference])
        .args(["--entrypoint", image.entrypoint])
        // An image without a platform is refused by the runtime.
        .args(["--set-platform", platform()]);
    if let Some(user) = image.user {
        mutate.args(["--user", user]);
    }
    for variable in image.environment {
        mutate.args(["--env", variable]);
    }
    command::output(&mut mutate)?;
    Ok(())
}

fn platform() -> &'static str {
    match std::env::consts::ARCH {
        "aarch64" => "linux/arm64",
        _ => "linux/amd64",
    }
}
