//! `cargo xtask test`: the suites that contributors and CI run.
//!
//! The end-to-end suites wait most of their time. So the suites that need no cluster run at the
//! same time, in two second lanes ([`lanes`]).

use std::ops::ControlFlow;
use std::process::{Command, ExitCode};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use local_cluster::cache::Cache;
use local_cluster::interrupt;
use local_cluster::progress::Progress;

use super::record::{self, Record, Revision};
use super::suites::{SUITES, Suite};
use super::{Outcome, Runner, lanes};
use crate::{build, cargo};

/// The suite that runs before the lanes, because it fails soonest.
const FIRST: &str = "check";
/// The suites of the lanes, in the order in which the lanes begin them. Long ones come first, so that
/// all lanes end at about the same time.
const IN_LANES: [&str; 11] = [
    "main",
    "cluster",
    "unit",
    "user-data",
    "emulator",
    "portal",
    "argocd",
    "package",
    "conformance",
    "workspace",
    "docs",
];
/// The typical duration of compiling the tests after the programs, on two cores.
const TESTS_COMPILED: Duration = Duration::from_secs(150);
/// With one second lane, two processors are idle for a fifth of the time.
const SECOND_LANES: usize = 2;

pub(crate) fn run() -> ExitCode {
    match test(&Progress::to_stderr()) {
        Ok(code) => code,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}

fn test(progress: &Progress) -> Outcome<ExitCode> {
    let begun = Instant::now();
    let cache = Cache::from_environment()?;
    interrupt::listen()?;
    build::everything(progress)?;
    let runner = Runner {
        cache: &cache,
        progress,
        logs: cache.root().join("logs/test"),
        is_thorough: false,
    };
    let mut records = vec![runner.run(suite(FIRST)?)?];
    if records.iter().all(Record::passed) && !interrupt::requested() {
        compile(progress)?;
        records.extend(in_lanes(&runner)?);
    }
    let names = [FIRST].into_iter().chain(IN_LANES);
    let suites: Vec<_> = names.map(suite).collect::<Result<_, _>>()?;
    let revision = Revision::of(&crate::root())?;
    let count = suites.len();
    println!("{}", record::table(&revision, suites, &records));
    println!("took {}", in_words(begun.elapsed()));
    Ok(if interrupt::requested() {
        ExitCode::from(interrupt::EXIT_CODE)
    } else if records.len() == count && records.iter().all(Record::passed) {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}

/// Compiles the tests before the lanes start, on all processors. In a lane, Cargo's lock would
/// make the other lanes wait for the build.
fn compile(progress: &Progress) -> Outcome<()> {
    let step = progress.begin("tests compiled");
    let mut tests = Command::new(env!("CARGO"));
    tests
        .current_dir(crate::root())
        .args(["test", "--workspace", "--no-run"]);
    cargo::run(&mut tests, "compile-tests", TESTS_COMPILED, Some(&step))?;
    step.end("done");
    Ok(())
}

/// Runs the suites of the lanes. A lane ends at its first failed suite; the other lanes go on.
fn in_lanes(runner: &Runner<'_>) -> Outcome<Vec<Record>> {
    let suites: Vec<_> = IN_LANES.into_iter().map(suite).collect::<Result<_, _>>()?;
    let records = Mutex::new(Vec::new());
    lanes::side_by_side(suites, SECOND_LANES, &|suite| {
        let record = runner.run(suite).map_err(|error| error.to_string())?;
        let goes_on = record.passed() && !interrupt::requested();
        records
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .push(record);
        Ok(if goes_on {
            ControlFlow::Continue(())
        } else {
            ControlFlow::Break(())
        })
    })?;
    Ok(records.into_inner().unwrap_or_else(PoisonError::into_inner))
}

fn suite(name: &str) -> Outcome<&'static Suite> {
    let found = SUITES.iter().find(|suite| suite.name == name);
    Ok(found.ok_or_else(|| format!("there is no suite {name}"))?)
}

fn in_words(took: Duration) -> String {
    let seconds = took.as_secs();
    format!("{} min {} s", seconds / 60, seconds % 60)
}

#[cfg(test)]
mod tests {
    use super::super::suites::Turn;
    use super::*;

    /// Without this test, a misspelt name would fail only after the build.
    #[test]
    fn every_suite_of_make_test_exists_and_runs_once() {
        for name in IN_LANES {
            let turn = suite(name).unwrap().turn;
            let is_in_lane = matches!(turn, Turn::FirstLane | Turn::SecondLane);
            assert!(is_in_lane, "{name} is in no lane");
        }
        let mut names = IN_LANES.to_vec();
        names.push(FIRST);
        for name in &names {
            assert_eq!(suite(name).unwrap().name, *name);
        }
        let all = names.len();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), all);
    }
}
