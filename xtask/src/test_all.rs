//! `cargo xtask test-all` runs every suite and records the results by commit. `cargo xtask test`
//! runs the few suites that contributors need.
//!
//! A suite that passed at a commit is not run again at this commit. So a second run continues an
//! interrupted one, and runs a repaired suite alone. A release requires that all suites passed.

mod lanes;
mod quick;
mod record;
mod suites;

use std::error::Error;
use std::fs;
use std::ops::ControlFlow;
use std::path::PathBuf;
use std::process::{Command, ExitCode};
use std::time::Duration;

use clap::Args;
use local_cluster::cache::Cache;
use local_cluster::durations::Usual;
use local_cluster::progress::Progress;
use local_cluster::{command, interrupt};

pub(crate) use quick::run as run_quick;
use record::{Record, Revision};
use suites::{SUITES, Suite, Turn};

use crate::build;

type Outcome<T> = Result<T, Box<dyn Error>>;

#[derive(Args)]
pub(crate) struct Arguments {
    /// These suites alone; all of them otherwise
    suites: Vec<String>,
    /// Run also what passed at this commit
    #[arg(long)]
    again: bool,
    /// Run nothing; show what is recorded for this commit
    #[arg(long)]
    show: bool,
    /// How to show it
    #[arg(short, long, value_enum, default_value_t)]
    output: Output,
}

#[derive(Clone, Copy, Default, clap::ValueEnum)]
enum Output {
    #[default]
    Table,
    Json,
}

pub(crate) fn run(arguments: &Arguments) -> ExitCode {
    match test_all(arguments, &Progress::to_stderr()) {
        Ok(code) => code,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}

/// Fails unless every suite passed at the commit of this checkout. The caller has checked that the
/// checkout has no changes.
pub(crate) fn require_green() -> Outcome<()> {
    let revision = Revision::of(&crate::root())?;
    let records = record::read_all(&Cache::from_environment()?, &revision)?;
    let passed = |suite: &&Suite| records.iter().any(|one| one.is_of(suite) && one.passed());
    let missing: Vec<_> = SUITES
        .iter()
        .filter(|suite| !passed(suite))
        .map(|suite| suite.name)
        .collect();
    if missing.is_empty() {
        return Ok(());
    }
    Err(format!(
        "not every suite passed at {revision}: {}. `make test-all` runs what is missing",
        missing.join(", ")
    )
    .into())
}

fn test_all(arguments: &Arguments, progress: &Progress) -> Outcome<ExitCode> {
    let chosen = choose(&arguments.suites)?;
    let cache = Cache::from_environment()?;
    let revision = Revision::of(&crate::root())?;
    interrupt::listen()?;
    let runner = Runner {
        cache: &cache,
        progress,
        logs: record::folder(&cache, &revision),
        is_thorough: true,
    };
    let mut left = Vec::new();
    for suite in &chosen {
        let known = record::read(&cache, &revision, suite)?;
        let is_done = known.is_some_and(|record| record.passed()) && !arguments.again;
        if !is_done && !arguments.show {
            left.push(*suite);
        }
    }
    if !left.is_empty() {
        build::everything(progress)?;
    }
    let keep = |record: &Record| record.write(&cache, &revision);
    run_in_turn(&runner, &left, &keep)?;
    let records = record::read_all(&cache, &revision)?;
    match arguments.output {
        Output::Table => println!("{}", record::table(&revision, SUITES, &records)),
        Output::Json => println!("{}", serde_json::to_string_pretty(&records)?),
    }
    let passed = |suite: &&&Suite| records.iter().any(|one| one.is_of(suite) && one.passed());
    Ok(if interrupt::requested() {
        ExitCode::from(interrupt::EXIT_CODE)
    } else if chosen.iter().filter(passed).count() == chosen.len() {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}

/// Runs the suites in their turns. A suite that fails keeps no other one from running.
fn run_in_turn(
    runner: &Runner<'_>,
    suites: &[&'static Suite],
    keep: &(dyn Fn(&Record) -> Outcome<()> + Sync),
) -> Outcome<()> {
    let run = |suite: &'static Suite| -> Result<ControlFlow<()>, String> {
        if interrupt::requested() {
            return Ok(ControlFlow::Break(()));
        }
        let record = runner.run(suite).map_err(|error| error.to_string())?;
        // An interrupted suite has neither passed nor failed.
        if !interrupt::requested() {
            keep(&record).map_err(|error| error.to_string())?;
        }
        Ok(ControlFlow::Continue(()))
    };
    let of = |turn: Turn| {
        let of_turn = suites.iter().filter(move |suite| suite.turn == turn);
        of_turn.copied()
    };
    lanes::one_by_one(of(Turn::First), &run)?;
    lanes::side_by_side(suites.iter().copied(), 1, &run)?;
    lanes::one_by_one(of(Turn::Alone), &run)?;
    Ok(())
}

fn choose(names: &[String]) -> Outcome<Vec<&'static Suite>> {
    let known = |name: &String| {
        SUITES
            .iter()
            .find(|suite| suite.name == name)
            .ok_or_else(|| {
                let all: Vec<_> = SUITES.iter().map(|suite| suite.name).collect();
                format!("there is no suite {name}: there are {}", all.join(", "))
            })
    };
    if names.is_empty() {
        return Ok(SUITES.iter().collect());
    }
    Ok(names.iter().map(known).collect::<Result<_, _>>()?)
}

/// Runs suites. The output of each goes into a log.
struct Runner<'a> {
    cache: &'a Cache,
    progress: &'a Progress,
    /// The folder of the logs.
    logs: PathBuf,
    /// Whether suites include their slow tests.
    is_thorough: bool,
}

impl Runner<'_> {
    fn run(&self, suite: &Suite) -> Outcome<Record> {
        fs::create_dir_all(&self.logs)?;
        let log = self.logs.join(format!("{}.log", suite.name));
        let kind = if self.is_thorough { "suite" } else { "test" };
        let usual = Usual::of(
            self.cache,
            &format!("{kind}-{}", suite.name),
            Duration::from_mins(suite.minutes),
        );
        let step = self.progress.begin(&format!("suite {}", suite.name));
        step.expect(usual.duration());
        let mut make = Command::new("make");
        make.current_dir(crate::root())
            .args(suite.make)
            .env("KEEP_CLUSTER", "no")
            // A make that called this program must not affect this one.
            .env_remove("MAKEFLAGS")
            .env_remove("MAKELEVEL");
        if self.is_thorough {
            make.env("THOROUGH", "1");
        }
        let ran = command::logged(&mut make, &log);
        let took = step.elapsed();
        let printed = String::from_utf8_lossy(&fs::read(&log)?).into_owned();
        let record = Record::new(suite, ran.is_ok(), &printed, took, jiff::Timestamp::now());
        if record.passed() {
            usual.record(took);
            step.end("passed");
        } else if !interrupt::requested() {
            let why = match ran {
                Err(error) => error.to_string(),
                Ok(()) => format!("no test ran; the log is {}", log.display()),
            };
            step.note(&format!("{} failed: {why}", suite.name));
        }
        Ok(record)
    }
}
