//! `cargo xtask e2e` and `cargo xtask python`: what is written in Python, in the
//! locked environment.

use std::error::Error;
use std::ffi::OsString;
use std::path::Path;
use std::process::{Command, ExitCode};

use clap::Args;
use local_cluster::cache::Cache;
use local_cluster::progress::Progress;
use local_cluster::{Cluster, emulator, mirror};

use crate::package;

#[derive(Args)]
pub(crate) struct Suite {
    /// The suite: a folder of tests/e2e
    folder: String,
    /// Name of the local cluster, which must be up with the packages in
    #[arg(long, default_value = "test")]
    name: String,
    /// For pytest
    #[arg(last = true)]
    arguments: Vec<String>,
}

#[derive(Args)]
pub(crate) struct Arguments {
    /// For Python, for example `-m pytest`
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    arguments: Vec<String>,
}

/// Runs an end-to-end suite against a local cluster.
pub(crate) fn suite(suite: &Suite) -> ExitCode {
    let folder = crate::root().join("tests/e2e");
    let run = || {
        let cluster = Cluster::open(&suite.name)?;
        let mut pytest = python()?;
        pytest
            .current_dir(&folder)
            .envs(cluster.variables())
            .env(
                "FUNCTION_GPU_WORKSPACE",
                package::program("function-gpu-workspace"),
            )
            .env("MIRRORED_KINDS", mirrored_kinds()?)
            .args(["-m", "pytest", "-p", "no:cacheprovider"])
            .arg(&suite.folder)
            .args(&suite.arguments);
        let own = std::env::var_os("PATH").unwrap_or_default();
        let programs = std::env::split_paths(&own);
        let path = std::env::join_paths([cluster.programs()].into_iter().chain(programs))?;
        pytest.env("PATH", path);
        ran(&mut pytest)
    };
    if !folder.join(&suite.folder).is_dir() {
        eprintln!("error: tests/e2e has no suite {:?}", suite.folder);
        return ExitCode::FAILURE;
    }
    said(run())
}

/// Runs Python with the given arguments.
pub(crate) fn run(arguments: &Arguments) -> ExitCode {
    said(python().and_then(|mut python| ran(python.args(&arguments.arguments))))
}

/// The manifests of other providers' kinds, as a path list.
fn mirrored_kinds() -> Result<OsString, Box<dyn Error>> {
    let mut files = Vec::new();
    for provider in mirror::PROVIDERS {
        files.extend(provider.kinds()?);
    }
    Ok(std::env::join_paths(files)?)
}

fn python() -> Result<Command, Box<dyn Error>> {
    let cache = Cache::from_environment()?;
    let python = emulator::ensure(&cache, &Progress::to_stderr())?;
    let mut command = Command::new(python);
    // Caches stay out of the checkout.
    command.env("PYTHONDONTWRITEBYTECODE", "1");
    Ok(command)
}

fn ran(command: &mut Command) -> Result<ExitCode, Box<dyn Error>> {
    let program = Path::new(command.get_program()).display().to_string();
    let status = command.status().map_err(|e| format!("{program}: {e}"))?;
    Ok(if status.success() {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}

fn said(outcome: Result<ExitCode, Box<dyn Error>>) -> ExitCode {
    outcome.unwrap_or_else(|error| {
        eprintln!("error: {error}");
        ExitCode::FAILURE
    })
}
