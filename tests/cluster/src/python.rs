//! Python virtual environments with exactly the locked packages. Each is built once per lock file
//! and Python version.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::cache::{self, Cache, key};
use crate::command;
use crate::progress::Progress;

/// What can go wrong while an environment is built.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The cache folder or the lock file cannot be read or written.
    #[error(transparent)]
    Cache(#[from] cache::Error),
    /// Python or pip failed.
    #[error("build a virtual environment: {0}")]
    Build(#[from] command::Error),
}

/// A virtual environment that a caller wants.
#[derive(Debug, Clone)]
pub struct Environment {
    /// The name of its folder in the cache.
    pub name: &'static str,
    /// The title of the step that builds it.
    pub title: &'static str,
    /// The lock file: pip's requirements, each with its hashes.
    pub lock_file: PathBuf,
}

/// Builds the environment if necessary, and returns its Python.
pub fn ensure(cache: &Cache, progress: &Progress, wanted: &Environment) -> Result<PathBuf, Error> {
    let step = progress.begin(wanted.title);
    let requirements = cache::read(&wanted.lock_file)?;
    let python = command::output(
        Command::new("python3").args(["-c", "import sys; print(sys.version, sys.base_prefix)"]),
    )?;
    let key = key([
        ("requirements.txt", requirements.as_bytes()),
        ("python", python.as_bytes()),
    ]);
    let entry = cache.entry("environments", wanted.name, &key);
    let interpreter = entry.join("bin/python");
    if entry.exists() {
        step.end("cached");
        return Ok(interpreter);
    }
    let _lock = cache.lock("environments", |lock| {
        step.note(&format!("waiting for another build ({})", lock.display()));
    })?;
    if entry.exists() {
        step.end("cached");
        return Ok(interpreter);
    }
    let log = cache.log(&format!("build-{}", wanted.name));
    cache::create_folder(&cache.root().join("logs"))?;
    cache::publish(&entry, |folder| build(folder, &wanted.lock_file, &log))?;
    step.end("built");
    Ok(interpreter)
}

fn build(folder: &Path, lock_file: &Path, log: &Path) -> Result<(), Error> {
    command::logged(
        Command::new("python3").args(["-m", "venv"]).arg(folder),
        log,
    )?;
    // The folder is renamed after the build, and console scripts contain its old path. So packages
    // are run with `python -m`, which does not need that path.
    command::logged(
        Command::new(folder.join("bin/python"))
            .args(["-m", "pip", "install", "--disable-pip-version-check"])
            .args(["--no-input", "--require-hashes", "-r"])
            .arg(lock_file),
        log,
    )?;
    Ok(())
}
