//! Machines for the EC2 emulator: instances of its image that boots.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::cache::Cache;
use crate::cluster::Cluster;
use crate::command;
use crate::emulator;
use crate::progress::Progress;

/// The image whose instances boot, in us-east-1.
pub const IMAGE: &str = "ami-00000000000c0deb0";

/// What can go wrong.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The Python environment cannot be built.
    #[error(transparent)]
    Emulator(#[from] emulator::Error),
    /// What machines are made of cannot be built, or the emulator takes none.
    #[error(transparent)]
    Command(#[from] command::Error),
}

/// Builds what machines are made of, once, and tells the cluster's emulator.
///
/// On the host, as the cluster reaches no other network.
pub fn provide(cache: &Cache, cluster: &Cluster, progress: &mut Progress) -> Result<(), Error> {
    let mut python = Command::new(emulator::ensure(cache, progress)?);
    let step = progress.begin("machines of the EC2 emulator");
    python
        .env("PYTHONPATH", source())
        .env("PYTHONDONTWRITEBYTECODE", "1")
        .args(["-m", "machines.provide", &cluster.emulator_url()]);
    command::output(&mut python)?;
    step.end("provided");
    Ok(())
}

/// The `known_hosts` lines of a booted instance, as its console shows them; none
/// before it has printed them.
pub fn host_keys(
    cache: &Cache,
    cluster: &Cluster,
    instance: &str,
    address: &str,
) -> Result<String, Error> {
    let mut python = Command::new(emulator::ensure(
        cache,
        &mut Progress::to(Box::new(std::io::sink())),
    )?);
    python
        .env("PYTHONPATH", source())
        .env("PYTHONDONTWRITEBYTECODE", "1")
        .args(["-m", "machines.console", &cluster.emulator_url()])
        .args([instance, address]);
    Ok(command::output(&mut python)?)
}

/// Where the package `machines` is, which the tests of user data share.
pub(crate) fn source() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../user_data")
}
