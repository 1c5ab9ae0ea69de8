//! `cargo xtask test`: the suites that contributors and CI run.
//!
//! The end-to-end suites wait most of their time. So the suites that need no cluster run at the
//! same time, in a second lane.

use std::error::Error;
use std::process::{Command, ExitCode};
use std::thread;
use std::time::{Duration, Instant};

use local_cluster::cache::Cache;
use local_cluster::interrupt;
use local_cluster::progress::Progress;

use super::record::{self, Record, Revision};
use super::suites::{LANES, SUITES, Suite, Turn};
use super::{Outcome, Runner};
use crate::{build, cargo};

/// The suite that runs before both lanes, because it fails soonest.
const FIRST: &str = "check";
/// The suites of the two lanes, in the order in which each lane runs its own ([`Suite::turn`]). Both
/// lanes take about the same time.
const IN_LANES: [&str; 11] = [
    "main",
    "cluster",
    "unit",
    "emulator",
    "conformance",
    "user-data",
    "workspace",
    "portal",
    "package",
    "argocd",
    "docs",
];

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
        records.extend(side_by_side(&runner)?);
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

/// Compiles the tests before the lanes start, on both processors. In a lane, Cargo's lock would
/// make the other lane wait for the build.
fn compile(progress: &Progress) -> Outcome<()> {
    let step = progress.begin("tests compiled");
    let mut tests = Command::new(env!("CARGO"));
    tests
        .current_dir(crate::root())
        .args(["test", "--workspace", "--no-run"]);
    cargo::run(&mut tests, "compile-tests", Some(&step))?;
    step.end("done");
    Ok(())
}

/// Runs both lanes at the same time. A lane ends at its first failed suite; the other lane goes on.
fn side_by_side(runner: &Runner<'_>) -> Outcome<Vec<Record>> {
    thread::scope(|scope| {
        let lanes = LANES.map(|turn| scope.spawn(move || lane(runner, turn)));
        let mut records = Vec::new();
        for lane in lanes {
            records.extend(lane.join().map_err(|_| "a lane panicked")??);
        }
        Ok(records)
    })
}

fn lane(runner: &Runner<'_>, turn: Turn) -> Result<Vec<Record>, String> {
    let said = |error: Box<dyn Error>| error.to_string();
    let mut records = Vec::new();
    for name in IN_LANES {
        let suite = suite(name).map_err(said)?;
        if suite.turn != turn {
            continue;
        }
        let record = runner.run(suite).map_err(said)?;
        let passed = record.passed();
        records.push(record);
        if !passed || interrupt::requested() {
            break;
        }
    }
    Ok(records)
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
    use super::*;

    /// Without this test, a misspelt name would fail only after the build.
    #[test]
    fn every_suite_of_make_test_exists_and_runs_once() {
        for name in IN_LANES {
            let turn = suite(name).unwrap().turn;
            assert!(LANES.contains(&turn), "{name} is in no lane");
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
