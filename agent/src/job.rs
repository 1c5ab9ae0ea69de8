//! `job`: commands that go on when the session ends. Their output and exit code stay in the home.
//!
//! A job is a folder. A supervisor in a session of its own runs the command, keeps its output, and
//! writes its exit code. The job is registered ([`crate::jobs`]) before the command starts, and the
//! command holds the same lock. So a job counts as running as long as any process of it runs, even if
//! its supervisor is killed. A job without a lock and without an exit code is lost: its machine or its
//! supervisor ended before it.

use std::process::ExitCode;

use crate::arguments::{Job, JobAction};
use crate::places::Places;

mod folder;
mod output;
mod show;
mod start;
mod stop;
mod supervisor;

use folder::Jobs;

/// Runs the subcommand.
pub fn run(places: &Places, given: &Job) -> Result<ExitCode, String> {
    let jobs = || Jobs::new(given.jobs.as_deref());
    match &given.action {
        JobAction::Start(wish) => start::start(places, &jobs()?, wish),
        JobAction::List(wish) => show::list(&jobs()?, wish),
        JobAction::Logs(wish) => show::logs(&jobs()?, wish),
        JobAction::Wait(wish) => show::wait(&jobs()?, wish),
        JobAction::Stop(wish) => stop::stop(&jobs()?, wish),
        JobAction::Supervise(wish) => supervisor::supervise(places, wish),
        JobAction::Exec(wish) => supervisor::exec(wish),
    }
}
