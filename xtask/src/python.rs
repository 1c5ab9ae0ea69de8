//! `cargo xtask e2e` and `cargo xtask python`: run Python code in the locked environment.

use std::error::Error;
use std::ffi::OsString;
use std::path::Path;
use std::process::{Command, ExitCode};

use clap::Args;
use local_cluster::cache::Cache;
use local_cluster::progress::Progress;
use local_cluster::{Cluster, emulator, mirror};

use crate::package;
use crate::process::output;

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

/// Suites whose tests each use namespaces of their own, except tests marked `alone`.
const SIDE_BY_SIDE: &[&str] = &[
    "bastion",
    "cluster",
    "devctl",
    "lifecycle",
    "main",
    "upbound",
];
/// Arguments for parallel tests. Tests wait more than they compute, so more tests than processors
/// run at a time. Tests of one `xdist_group` run one after the other.
const AT_ONCE: [&str; 2] = ["--numprocesses=4", "--dist=loadgroup"];

/// Runs an end-to-end suite against a local cluster.
pub(crate) fn suite(suite: &Suite) -> ExitCode {
    let folder = crate::root().join("tests/e2e");
    if !folder.join(&suite.folder).is_dir() {
        eprintln!("error: tests/e2e has no suite {:?}", suite.folder);
        return ExitCode::FAILURE;
    }
    let all = phases(
        suite,
        std::env::var_os("THOROUGH").is_some_and(|set| !set.is_empty()),
    );
    let results: Vec<_> = all
        .iter()
        .map(|chosen| said(pytest(suite, &folder, chosen)))
        .collect();
    let failed = results.iter().find(|code| **code != ExitCode::SUCCESS);
    failed.copied().unwrap_or(ExitCode::SUCCESS)
}

/// The arguments of each run of pytest. The first run has the tests that can run in parallel. The
/// second run has the others, one after the other. If the user names tests, there is a single run
/// without parallel tests.
fn phases(suite: &Suite, thorough: bool) -> Vec<Vec<String>> {
    if !suite.arguments.is_empty() {
        return vec![suite.arguments.clone()];
    }
    let quick = (!thorough).then_some("not thorough");
    let marked = |of_phase: Option<&'static str>| -> Vec<String> {
        let marks: Vec<_> = of_phase.into_iter().chain(quick).collect();
        if marks.is_empty() {
            Vec::new()
        } else {
            vec!["-m".to_owned(), marks.join(" and ")]
        }
    };
    if !SIDE_BY_SIDE.contains(&suite.folder.as_str()) {
        return vec![marked(None)];
    }
    let mut together = marked(Some("not alone"));
    together.extend(AT_ONCE.map(str::to_owned));
    vec![together, marked(Some("alone"))]
}

fn pytest(suite: &Suite, folder: &Path, chosen: &[String]) -> Result<ExitCode, Box<dyn Error>> {
    let cluster = Cluster::open(&suite.name)?;
    let mut pytest = python()?;
    pytest
        .current_dir(folder)
        .envs(cluster.variables())
        .env(
            "FUNCTION_GPU_WORKSPACE",
            package::program("function-gpu-workspace"),
        )
        .env("MIRRORED_KINDS", mirrored_kinds()?)
        .args(["-m", "pytest", "-p", "no:cacheprovider"])
        .arg(&suite.folder)
        .args(chosen);
    let own = std::env::var_os("PATH").unwrap_or_default();
    let programs = std::env::split_paths(&own);
    let path = std::env::join_paths([cluster.programs()].into_iter().chain(programs))?;
    pytest.env("PATH", path);
    ran(&mut pytest)
}

/// Runs Python with the given arguments.
pub(crate) fn run(arguments: &Arguments) -> ExitCode {
    said(python().and_then(|mut python| ran(python.args(&arguments.arguments))))
}

/// Runs a script in the locked environment.
pub(crate) fn script(path: &Path) -> Result<(), Box<dyn Error>> {
    output(python()?.arg(path))?;
    Ok(())
}

/// The manifests of third-party providers' kinds, as a list of paths.
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
    // Python's bytecode caches must not be in the checkout.
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

#[cfg(test)]
mod tests {
    use super::*;

    fn of(folder: &str, arguments: &[&str]) -> Suite {
        Suite {
            folder: folder.to_owned(),
            name: "test".to_owned(),
            arguments: arguments.iter().map(|&text| text.to_owned()).collect(),
        }
    }

    #[test]
    fn every_test_of_a_suite_is_in_one_of_its_phases() {
        let together = [&["-m", "not alone and not thorough"][..], &AT_ONCE].concat();
        let alone = ["-m", "alone and not thorough"];
        assert_eq!(phases(&of("main", &[]), false), [&together[..], &alone[..]]);
        let both = phases(&of("main", &[]), true);
        assert_eq!(
            both,
            [
                [&["-m", "not alone"][..], &AT_ONCE].concat(),
                vec!["-m", "alone"]
            ]
        );
        assert_eq!(phases(&of("faults", &[]), true), [[""; 0]]);
        assert_eq!(phases(&of("faults", &[]), false), [["-m", "not thorough"]]);
        assert_eq!(
            phases(&of("main", &["-k", "quota"]), false),
            [["-k", "quota"]]
        );
    }
}
