//! The program `gpu-workspace-agent`. See docs/activity.md.

use std::process::ExitCode;

use clap::Parser;
use gpu_workspace_agent::arguments::{Arguments, Command};
use gpu_workspace_agent::{hook, install, job, run, sample, status, watch};

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    let places = arguments.places();
    let (done, failure) = match &arguments.command {
        Command::Run(given) => (run::run(&places, given), run::NOT_STARTED),
        Command::Watch(given) => (watch::run(&places, given), 1),
        Command::PreStop(given) => (hook::run(&places, given), 1),
        Command::Status(given) => (status::run(&places, given), 1),
        Command::Install(given) => (install::run(given), 1),
        Command::Job(given) => (job::run(&places, given), run::NOT_STARTED),
        Command::Sample(given) => (sample::run(&places, given), 1),
    };
    done.unwrap_or_else(|problem| {
        eprintln!("gpu-workspace-agent: {problem}");
        ExitCode::from(failure)
    })
}
