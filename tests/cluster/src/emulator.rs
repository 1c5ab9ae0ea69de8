//! The EC2 emulator's Python: a virtual environment with exactly the locked
//! packages, built once per lock file and Python version.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::cache::{self, Cache, key};
use crate::command;
use crate::progress::Progress;

/// What can go wrong while the environment is built.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The cache folder or the lock file cannot be read or written.
    #[error(transparent)]
    Cache(#[from] cache::Error),
    /// Python or pip failed.
    #[error("build the EC2 emulator's virtual environment: {0}")]
    Build(#[from] command::Error),
}

/// Where the emulator's package and its lock file are.
pub(crate) fn source() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../emulator")
}

/// Makes sure of the virtual environment and returns its Python.
pub fn ensure(cache: &Cache, progress: &mut Progress) -> Result<PathBuf, Error> {
    let mut step = progress.begin("python environment of the EC2 emulator");
    let lock_file = source().join("requirements.txt");
    let requirements = cache::read(&lock_file)?;
    let python = command::output(
        Command::new("python3").args(["-c", "import sys; print(sys.version, sys.base_prefix)"]),
    )?;
    let key = key([
        ("requirements.txt", requirements.as_bytes()),
        ("python", python.as_bytes()),
    ]);
    let entry = cache.entry("environments", "ec2-emulator", &key);
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
    cache::publish(&entry, |folder| build(cache, folder, &lock_file))?;
    step.end("built");
    Ok(interpreter)
}

fn build(cache: &Cache, folder: &Path, lock_file: &Path) -> Result<(), Error> {
    cache::create_folder(&cache.root().join("logs"))?;
    let log = cache.log("build-ec2-emulator");
    command::logged(
        Command::new("python3").args(["-m", "venv"]).arg(folder),
        &log,
    )?;
    // Console scripts name the folder they were installed into, which is renamed
    // afterwards: the emulator is run as `python -m`, which does not mind.
    command::logged(
        Command::new(folder.join("bin/python"))
            .args(["-m", "pip", "install", "--disable-pip-version-check"])
            .args(["--no-input", "--require-hashes", "-r"])
            .arg(lock_file),
        &log,
    )?;
    Ok(())
}
