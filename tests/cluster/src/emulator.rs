//! The EC2 emulator's Python package and its Python environment.

use std::path::{Path, PathBuf};

use crate::cache::Cache;
use crate::progress::Progress;
use crate::python::{self, Environment};

pub use crate::python::Error;

/// The folder with the emulator's package and its lock file.
pub(crate) fn source() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../emulator")
}

/// Builds the emulator's virtual environment if necessary, and returns its Python.
pub fn ensure(cache: &Cache, progress: &Progress) -> Result<PathBuf, Error> {
    let wanted = Environment {
        name: "ec2-emulator",
        title: "python environment of the EC2 emulator",
        lock_file: source().join("requirements.txt"),
    };
    python::ensure(cache, progress, &wanted)
}
