//! The arguments of commands that run and watch jobs.

use std::path::PathBuf;

use clap::Args;

use crate::name::Name;
use crate::output::Output;

/// The arguments of `run`.
#[derive(Args, Debug)]
pub struct Run {
    /// Name of the workspace
    pub name: Name,
    /// Return at once; devctl logs has the output
    #[arg(long)]
    pub detach: bool,
    /// Name of the job; default: the name of the program
    #[arg(long, value_name = "NAME")]
    pub job: Option<String>,
    /// Folder here to copy into the workspace first; the command runs in the copy
    #[arg(long, value_name = "DIR")]
    pub sync: Option<PathBuf>,
    /// Command and its arguments; a .py file runs by torchrun where there are several GPUs or pods
    #[arg(required = true, trailing_var_arg = true, allow_hyphen_values = true)]
    pub command: Vec<String>,
}

/// The arguments of `jobs`.
#[derive(Args, Debug)]
pub struct Jobs {
    /// Name of the workspace
    pub name: Name,
    /// The output format.
    #[command(flatten)]
    pub output: Output,
}

/// The arguments of `logs`.
#[derive(Args, Debug)]
pub struct Logs {
    /// Name of the workspace
    pub name: Name,
    /// Id of the job; default: the newest job
    #[arg(long)]
    pub job: Option<String>,
    /// Go on until the job ends
    #[arg(long, short)]
    pub follow: bool,
    /// Show how the software was installed, instead of a job
    #[arg(long, conflicts_with_all = ["job", "follow", "events"])]
    pub setup: bool,
    /// Show the platform's events about the workspace, instead of a job
    #[arg(long, conflicts_with_all = ["job", "follow"])]
    pub events: bool,
}

/// The arguments of `cancel`.
#[derive(Args, Debug)]
pub struct Cancel {
    /// Name of the workspace
    pub name: Name,
    /// Id of the job
    pub job: String,
}

/// The arguments of `monitor`.
#[derive(Args, Debug)]
pub struct Monitor {
    /// Name of the workspace
    pub name: Name,
    /// One measurement, and no more
    #[arg(long)]
    pub once: bool,
    /// Seconds between two measurements
    #[arg(long, default_value_t = 2, value_parser = clap::value_parser!(u16).range(1..))]
    pub interval: u16,
    /// The output format.
    #[command(flatten)]
    pub output: Output,
}
