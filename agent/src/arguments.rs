//! The command line.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum};

use crate::imds;
use crate::lease;
use crate::places::{self, Places};
use crate::stop::Reason;

/// Reports whether a workspace is in use.
#[derive(Parser)]
#[command(name = "gpu-workspace-agent", version, about)]
pub struct Arguments {
    /// Root folder of the machine's file system
    #[arg(long, global = true, default_value = "/", hide = true)]
    root: PathBuf,
    /// Folder for jobs and for the last signs of use
    #[arg(long, global = true, env = "GPU_WORKSPACE_RUN_DIR", default_value = places::RUN)]
    run_dir: PathBuf,
    /// The subcommand.
    #[command(subcommand)]
    pub command: Command,
}

impl Arguments {
    /// The paths on the machine.
    pub fn places(&self) -> Places {
        Places::new(&self.root, &self.run_dir)
    }
}

/// The subcommand.
#[derive(Subcommand)]
pub enum Command {
    /// Run a command that counts as use until it ends
    Run(Run),
    /// Report whether the workspace is in use, every few seconds
    Watch(Watch),
    /// Run the hooks before a stop, once
    PreStop(PreStop),
    /// Show whether the workspace is in use
    Status(Status),
    /// Copy this program to another folder
    Install(Install),
    /// Jobs that go on when the session ends
    Job(Job),
    /// Print a measurement of the machine each second. The session does not count as use
    Sample(Sample),
}

/// The arguments of `job`.
#[derive(Args)]
pub struct Job {
    /// Folder of jobs; default: ~/.local/state/gpu-workspace/jobs
    #[arg(long, global = true, env = "GPU_WORKSPACE_JOBS")]
    pub jobs: Option<PathBuf>,
    /// What to do.
    #[command(subcommand)]
    pub action: JobAction,
}

/// What to do with a job.
#[derive(Subcommand)]
pub enum JobAction {
    /// Start a command as a job and print the job's id
    Start(Start),
    /// List the jobs
    List(Status),
    /// Print the output of a job
    Logs(Logs),
    /// Wait until a job ends, and exit with its code
    Wait(Id),
    /// End a job
    Stop(Stop),
    /// Run a command as a job, and keep its output
    #[command(hide = true)]
    Supervise(Supervise),
    /// Become a command that ends with its supervisor
    #[command(hide = true)]
    Exec(Exec),
}

/// The arguments of `job start`.
#[derive(Args)]
pub struct Start {
    /// Name of the job; default: the name of the program
    #[arg(long)]
    pub name: Option<String>,
    /// Folder of the command; default: the current one
    #[arg(long)]
    pub dir: Option<PathBuf>,
    /// Do not count the job as use; its Jupyter kernels, GPUs and sessions still count
    #[arg(long)]
    pub no_use: bool,
    /// Command to run
    #[arg(last = true, required = true)]
    pub command: Vec<OsString>,
}

/// The arguments of `job logs`.
#[derive(Args)]
pub struct Logs {
    /// Id of the job; default: the newest job
    pub id: Option<String>,
    /// Go on until the job ends
    #[arg(long, short)]
    pub follow: bool,
    /// First byte of the output to print
    #[arg(long, default_value_t = 0)]
    pub from: u64,
}

/// The arguments of `job wait`.
#[derive(Args)]
pub struct Id {
    /// Id of the job; default: the newest job
    pub id: Option<String>,
}

/// The arguments of `job stop`.
#[derive(Args)]
pub struct Stop {
    /// Id of the job
    pub id: String,
    /// Seconds between SIGTERM and SIGKILL
    #[arg(long, default_value_t = 10)]
    pub grace: u64,
}

/// The arguments of `job supervise`.
#[derive(Args)]
pub struct Supervise {
    /// Folder of the job
    pub folder: PathBuf,
    /// Name of the job
    pub name: String,
    /// Do not count the job as use
    #[arg(long)]
    pub no_use: bool,
    /// Command to run
    #[arg(last = true, required = true)]
    pub command: Vec<OsString>,
}

/// The arguments of `job exec`.
#[derive(Args)]
pub struct Exec {
    /// Process id of the supervisor
    pub supervisor: i32,
    /// Command to run
    #[arg(last = true, required = true)]
    pub command: Vec<OsString>,
}

/// The arguments of `sample`.
#[derive(Args)]
pub struct Sample {
    /// Seconds between two measurements
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u64).range(1..))]
    pub interval: u64,
    /// Number of measurements; default: until the session ends
    #[arg(long)]
    pub count: Option<u64>,
    /// Program that reports the use of GPUs
    #[arg(long, default_value = "nvidia-smi")]
    pub nvidia_smi: OsString,
    /// Folder of the owner's files
    #[arg(long, default_value = "/home/developer")]
    pub home: PathBuf,
}

/// The arguments of `run`.
#[derive(Args)]
pub struct Run {
    /// Name of the job in `status`; default: the name of the program
    #[arg(long)]
    pub name: Option<String>,
    /// Command to run
    #[arg(last = true, required = true)]
    pub command: Vec<OsString>,
}

/// The arguments of `watch`.
#[derive(Args)]
pub struct Watch {
    /// Destination of reports: stdout, ec2, or lease NAMESPACE/NAME
    #[arg(long, num_args = 1..=2, value_names = ["KIND", "NAME"], default_value = "stdout")]
    pub to: Vec<String>,
    /// Seconds between two reports; the agent may report up to a tenth earlier
    #[arg(long, default_value_t = 300, value_parser = clap::value_parser!(u64).range(1..))]
    pub report_interval: u64,
    /// Seconds between two readings of the sources
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u64).range(1..))]
    pub sample_interval: u64,
    /// Port of sshd
    #[arg(long, default_value_t = 22)]
    pub ssh_port: u16,
    /// Program that reports the utilization of GPUs
    #[arg(long, default_value = "nvidia-smi")]
    pub nvidia_smi: OsString,
    /// Utilization in percent above which a GPU is in use
    #[arg(long, default_value_t = 5)]
    pub gpu_threshold: u32,
    /// Home folder whose Jupyter servers are asked; can be given several times
    #[arg(long, default_value = "/home/developer")]
    pub home: Vec<PathBuf>,
    /// Owner of the workspace, who runs the hooks before an interruption
    #[arg(long, default_value = "developer")]
    pub owner: String,
    /// Longest time for the hooks, in seconds
    #[arg(long, default_value_t = 110)]
    pub hook_timeout: u64,
    /// Address of the instance metadata service
    #[arg(long, default_value = imds::ENDPOINT)]
    pub metadata_endpoint: String,
    /// Address of EC2; default: that of the instance's region
    #[arg(long, env = "AWS_ENDPOINT_URL_EC2")]
    pub ec2_endpoint: Option<String>,
    /// Address of the API server; default: that of the pod's cluster
    #[arg(long)]
    pub kubernetes: Option<String>,
    /// Folder with the pod's `token` and `ca.crt`
    #[arg(long, default_value = lease::SERVICE_ACCOUNT)]
    pub service_account: PathBuf,
}

/// The arguments of `pre-stop`.
#[derive(Args)]
pub struct PreStop {
    /// Reason of the stop, for the hooks
    #[arg(long, value_enum, default_value = "stop")]
    pub reason: Reason,
    /// Do nothing unless systemd stops the whole machine
    #[arg(long)]
    pub only_at_shutdown: bool,
    /// User who runs the hooks
    #[arg(long, default_value = "developer")]
    pub owner: String,
    /// Longest time for the hooks, in seconds
    #[arg(long, default_value_t = 110)]
    pub timeout: u64,
}

/// The arguments of `status`.
#[derive(Args)]
pub struct Status {
    /// Output format
    #[arg(long, short, value_enum, default_value = "table")]
    pub output: Format,
}

/// The output format of `status`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Format {
    /// A table for people
    Table,
    /// JSON for programs
    Json,
}

/// The arguments of `install`.
#[derive(Args)]
pub struct Install {
    /// Folder for the copy, or path of the copy
    pub destination: PathBuf,
}
