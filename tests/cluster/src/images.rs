//! Builds images in the cluster's registry, without an image builder.

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
    /// The program that it runs, with its first arguments, separated by commas.
    pub entrypoint: &'a str,
    /// The numeric id of the user that runs the program; `None` means root.
    pub user: Option<&'a str>,
    /// Environment variables, each `NAME=value`.
    pub environment: &'a [&'a str],
}

/// Packs the files below `root` into a layer at `to`. The same files give the same layer: their
/// owners and times do not matter.
pub fn pack(root: &Path, to: &Path) -> Result<(), command::Error> {
    let mut tar = Command::new("tar");
    tar.args(["--create", "--sort=name", "--mtime=@0", "--mode=a+rX"])
        .args(["--owner=0", "--group=0", "--numeric-owner"])
        // The layer is decompressed once, on this machine, so speed matters more than size.
        .args(["--use-compress-program=gzip -1", "--file"])
        .arg(to)
        .arg("--directory")
        .arg(root)
        .arg(".");
    command::output(&mut tar)?;
    Ok(())
}

/// Packs a single static binary. In the image it is `/<its name>`.
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

/// Builds the image in the registry that its name contains.
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
        // containerd refuses an image without a platform.
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
