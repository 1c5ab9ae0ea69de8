//! `cargo xtask build`: everything that the demo and the tests need, side by side.
//!
//! Go and Cargo compile at the same time: the AWS SDK's crate keeps one processor busy for
//! minutes, and Go the other.

use std::error::Error;
use std::process::ExitCode;
use std::thread;

use local_cluster::cache::Cache;
use local_cluster::progress::Progress;
use local_cluster::{machines, up};

use crate::package;

pub(crate) fn run() -> ExitCode {
    match everything(&Progress::to_stderr()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}

/// Builds the programs of the cluster and of the packages, and what the EC2 emulator's
/// machines are made of.
pub(crate) fn everything(progress: &Progress) -> Result<(), Box<dyn Error>> {
    let cache = Cache::from_environment()?;
    up::check(&cache)?;
    thread::scope(|scope| {
        let packages = scope.spawn(|| said(progress, package::compile_programs(progress)));
        let machines = scope.spawn(|| said(progress, machines::build(&cache, progress)));
        let cluster = said(progress, up::build(&cache, progress));
        let all = [Ok(cluster), packages.join(), machines.join()];
        for one in all {
            one.map_err(|_| "a build panicked")??;
        }
        Ok(())
    })
}

/// An error that another thread may have. People read it at once, and not when the last
/// build ended.
fn said<T, E: ToString>(progress: &Progress, outcome: Result<T, E>) -> Result<T, String> {
    outcome.map_err(|error| {
        progress.note(&format!("error: {}", error.to_string()));
        error.to_string()
    })
}
