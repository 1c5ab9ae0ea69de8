//! Where Go finds the sources of a program.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde::Deserialize;

use crate::cache;
use crate::command;
use crate::narrowed::{self, Narrowed};

/// What can go wrong while sources are prepared.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The command `go` or `cp` failed.
    #[error(transparent)]
    Command(#[from] command::Error),
    /// The answer of Go does not name the folder of a module's source.
    #[error("find the source of {module}: {source}")]
    Answer {
        /// The module.
        module: String,
        /// The parser's error.
        source: serde_json::Error,
    },
    /// A copy of sources cannot be narrowed.
    #[error(transparent)]
    Narrowed(#[from] narrowed::Error),
    /// A file cannot be read or written.
    #[error(transparent)]
    File(#[from] cache::Error),
}

/// The folder of a module's source, in the version that the folder `pins` pins. Go downloads the
/// source if it is not there.
pub(crate) fn folder(pins: &Path, module: &str) -> Result<PathBuf, Error> {
    let mut download = go(pins);
    download.args(["mod", "download", "-json", module]);
    let answer = command::output(&mut download)?;
    let found: Download = serde_json::from_str(&answer).map_err(|source| Error::Answer {
        module: module.to_owned(),
        source,
    })?;
    Ok(found.folder)
}

/// Copies the sources of modules into `scratch` and narrows the copies. Returns a file for Go's option
/// `-modfile`: it pins the same versions as the folder `pins`, and names the copies.
pub(crate) fn narrow(pins: &Path, modules: &[Narrowed], scratch: &Path) -> Result<PathBuf, Error> {
    let file = scratch.join("narrowed.mod");
    for (from, to) in [("go.mod", "mod"), ("go.sum", "sum")] {
        let text = cache::read(&pins.join(from))?;
        cache::write(&file.with_extension(to), text)?;
    }
    let mut edit = go(pins);
    edit.args(["mod", "edit"]);
    for (number, narrowed) in modules.iter().enumerate() {
        let to = scratch.join(format!("sources-{number}"));
        copy(&folder(pins, narrowed.module)?, &to)?;
        narrowed.apply(&to, pins)?;
        edit.arg(format!("-replace={}={}", narrowed.module, to.display()));
    }
    command::output(edit.arg(&file))?;
    Ok(file)
}

/// Copies a file or folder. Files in Go's module cache are read-only; the copies are writable.
pub(crate) fn copy(from: &Path, to: &Path) -> Result<(), Error> {
    let mut cp = Command::new("cp");
    cp.args(["--recursive", "--dereference", "--no-preserve=mode"])
        .arg(from)
        .arg(to);
    command::output(&mut cp)?;
    if from.is_file() {
        let mode = fs::metadata(from)
            .map_err(cache::Error::io("read", from))?
            .permissions();
        fs::set_permissions(to, mode).map_err(cache::Error::io("set mode of", to))?;
    }
    Ok(())
}

/// Go in the folder `pins`. The cache keys hold the version of the installed toolchain, so Go must not
/// switch to another one.
pub(crate) fn go(pins: &Path) -> Command {
    let mut go = Command::new("go");
    go.current_dir(pins)
        .env("GOTOOLCHAIN", "local")
        .env("GOWORK", "off");
    go
}

/// The needed part of the answer of `go mod download -json`.
#[derive(Deserialize)]
struct Download {
    #[serde(rename = "Dir")]
    folder: PathBuf,
}
