//! Machines for the EC2 emulator: the instances of one of its images really boot.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use crate::cache::Cache;
use crate::cluster::Cluster;
use crate::command;
use crate::durations::Usual;
use crate::emulator;
use crate::progress::Progress;

/// The image whose instances boot. It is in us-east-1.
pub const IMAGE: &str = "ami-00000000000c0deb0";

/// The typical duration of a first build on two cores, while Cargo and Go compile.
const TYPICAL: Duration = Duration::from_secs(270);

/// What can go wrong.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The Python environment cannot be built.
    #[error(transparent)]
    Emulator(#[from] emulator::Error),
    /// The root file system, the image or the wheels cannot be built, or the emulator refuses
    /// machines.
    #[error(transparent)]
    Command(#[from] command::Error),
}

/// Builds what machines need, unless it is built already: a root file system, an image and Python
/// wheels.
///
/// This happens on the host, because clusters reach no other network.
pub fn build(cache: &Cache, progress: &Progress) -> Result<(), Error> {
    run(cache, &[], "built", progress)?;
    Ok(())
}

/// Builds what machines need if necessary, and makes the cluster's emulator boot machines. Returns
/// the version of the image's PyTorch, for example `1.13.0`.
pub fn provide(cache: &Cache, cluster: &Cluster, progress: &Progress) -> Result<String, Error> {
    run(cache, &[cluster.emulator_url()], "provided", progress)
}

fn run(
    cache: &Cache,
    emulator: &[String],
    outcome: &str,
    progress: &Progress,
) -> Result<String, Error> {
    let mut python = Command::new(emulator::ensure(cache, progress)?);
    let step = progress.begin("machines of the EC2 emulator");
    let usual = Usual::of(cache, "machines", TYPICAL);
    step.expect(usual.duration());
    python
        .env("PYTHONPATH", source())
        .env("PYTHONDONTWRITEBYTECODE", "1")
        .args(["-m", "machines.provide"])
        .args(emulator);
    let printed = command::output(&mut python)?;
    usual.record(step.elapsed());
    step.end(outcome);
    Ok(printed.trim().to_owned())
}

/// The folder of the Python package `machines`, which the tests of user data also use.
pub(crate) fn source() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../user_data")
}
