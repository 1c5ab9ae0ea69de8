//! `cargo xtask build`: builds everything that the demo and the tests need.
//!
//! Go and Cargo compile at the same time. Compiling the AWS SDK's crate keeps one processor busy
//! for minutes, and Go uses the other one.

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

/// Builds the programs of the cluster and of the packages, and the parts of the EC2 emulator's
/// machines.
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

/// Turns an error into text, which may go to another thread. Prints the error at once, because the
/// other builds may take minutes more.
fn said<T, E: ToString>(progress: &Progress, outcome: Result<T, E>) -> Result<T, String> {
    outcome.map_err(|error| {
        progress.note(&format!("error: {}", error.to_string()));
        error.to_string()
    })
}
