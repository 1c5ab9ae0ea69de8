//! Builds the pinned binaries, once.
//!
//! Each lands in `<cache>/binaries/<name>-<key>/<name>`; the key stands for its
//! pins (see [`pins`](crate::pins)), so it is built again only when they change.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde::Deserialize;

use crate::cache::{self, Cache};
use crate::command;
use crate::pins::{self, Binary, Module, Pins};
use crate::progress::Progress;

/// What can go wrong while building.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The table of modules does not know the name.
    #[error("no module builds a binary named `{0}`: see pins::MODULES in tests/cluster")]
    Unknown(String),
    /// The cache folder or the pins cannot be read or written.
    #[error(transparent)]
    Cache(#[from] cache::Error),
    /// Go did not say where a module's source is.
    #[error("find the source of {module}: {source}")]
    Source {
        /// Which module.
        module: &'static str,
        /// What is wrong with the answer.
        source: serde_json::Error,
    },
    /// Go failed.
    #[error("build {name}: {source}")]
    Build {
        /// Which binary.
        name: String,
        /// What Go said.
        source: command::Error,
    },
}

/// Built binaries by name.
#[derive(Debug, Clone, Default)]
pub struct Binaries {
    paths: BTreeMap<String, PathBuf>,
}

impl Binaries {
    /// Where the binary is.
    pub fn path(&self, name: &str) -> Result<&Path, Error> {
        self.paths
            .get(name)
            .map(PathBuf::as_path)
            .ok_or_else(|| Error::Unknown(name.to_owned()))
    }

    /// Names with paths, in the order of names.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &Path)> {
        self.paths
            .iter()
            .map(|(name, path)| (name.as_str(), path.as_path()))
    }
}

/// Builds what is not built yet and returns where everything is. A second call
/// at the same time waits for the first.
pub fn ensure(cache: &Cache, names: &[&str], progress: &mut Progress) -> Result<Binaries, Error> {
    let go = go_version()?;
    let mut binaries = Binaries::default();
    for name in names {
        let (module, binary) =
            pins::find(name).ok_or_else(|| Error::Unknown((*name).to_owned()))?;
        let path = ensure_one(cache, module, binary, &go, progress)?;
        binaries.paths.insert((*name).to_owned(), path);
    }
    Ok(binaries)
}

/// Which of the names are not built yet.
pub fn missing(cache: &Cache, names: &[&str]) -> Result<Vec<String>, Error> {
    let go = go_version()?;
    let mut missing = Vec::new();
    for name in names {
        let (module, binary) =
            pins::find(name).ok_or_else(|| Error::Unknown((*name).to_owned()))?;
        let key = Pins::read(module)?.key(module, binary, &go);
        if !cache.entry("binaries", name, &key).exists() {
            missing.push((*name).to_owned());
        }
    }
    Ok(missing)
}

fn ensure_one(
    cache: &Cache,
    module: &Module,
    binary: &Binary,
    go: &str,
    progress: &mut Progress,
) -> Result<PathBuf, Error> {
    let pins = Pins::read(module)?;
    let key = pins.key(module, binary, go);
    let entry = cache.entry("binaries", binary.name, &key);
    let path = entry.join(binary.name);
    let mut step = progress.begin(&format!("binary {}", binary.name));
    if entry.exists() {
        step.end("cached");
        return Ok(path);
    }
    // One lock for all: two Go builds at once take longer than one after the other.
    let _lock = cache.lock("binaries", |lock| {
        step.note(&format!("waiting for another build ({})", lock.display()));
    })?;
    if entry.exists() {
        step.end("cached");
        return Ok(path);
    }
    cache::publish(&entry, |folder| {
        build(cache, module, binary, &pins, &folder.join(binary.name))
    })?;
    step.end("built");
    Ok(path)
}

fn build(
    cache: &Cache,
    module: &Module,
    binary: &Binary,
    pins: &Pins,
    to: &Path,
) -> Result<(), Error> {
    cache::create_folder(&cache.root().join("logs"))?;
    let mut go = Command::new("go");
    go.current_dir(&pins.folder)
        // Static, so that the binary also runs in an image of its own, and no C
        // compiler is needed. The key holds the toolchain's version: no switching.
        .env("CGO_ENABLED", "0")
        .env("GOTOOLCHAIN", "local")
        .env("GOWORK", "off")
        .args(["build", "-trimpath", "-mod=readonly", "-ldflags"])
        .arg(pins.ldflags(module));
    if !module.tags.is_empty() {
        go.args(["-tags", module.tags]);
    }
    go.arg("-o").arg(to).arg(binary.package);
    let log = cache.log(&format!("build-{}", binary.name));
    command::logged(&mut go, &log).map_err(failed(binary.name))
}

/// What `go mod download -json` answers, as far as it is needed.
#[derive(Deserialize)]
struct Download {
    #[serde(rename = "Dir")]
    folder: PathBuf,
}

/// The folder of the source that a binary is built from, downloaded if need be.
pub fn source(name: &str) -> Result<PathBuf, Error> {
    let (module, _) = pins::find(name).ok_or_else(|| Error::Unknown(name.to_owned()))?;
    source_folder(module)
}

/// The folder of a module's source in Go's module cache, downloaded if need be.
pub(crate) fn source_folder(module: &Module) -> Result<PathBuf, Error> {
    let pins = Pins::read(module)?;
    let fails = failed(module.folder);
    let mut go = Command::new("go");
    go.current_dir(&pins.folder)
        .env("GOTOOLCHAIN", "local")
        .env("GOWORK", "off")
        .args(["mod", "download", "-json", module.source]);
    let answer = command::output(&mut go).map_err(&fails)?;
    let found: Download = serde_json::from_str(&answer).map_err(|source| Error::Source {
        module: module.source,
        source,
    })?;
    Ok(found.folder)
}

/// Go's version, such as `go1.26.8`.
pub(crate) fn go_version() -> Result<String, Error> {
    let mut go = Command::new("go");
    go.env("GOTOOLCHAIN", "local").args(["env", "GOVERSION"]);
    let version = command::output(&mut go).map_err(failed("go"))?;
    Ok(version.trim().to_owned())
}

fn failed(name: &str) -> impl Fn(command::Error) -> Error {
    let name = name.to_owned();
    move |source| Error::Build {
        name: name.clone(),
        source,
    }
}
