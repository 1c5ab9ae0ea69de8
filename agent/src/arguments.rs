//! The command line.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum};

use crate::imds;
use crate::lease;
use crate::places::{self, Places};
use crate::stop::Reason;

/// Says who uses a workspace.
#[derive(Parser)]
#[command(name = "gpu-workspace-agent", version, about)]
pub struct Arguments {
    /// Where the machine's file system is
    #[arg(long, global = true, default_value = "/", hide = true)]
    root: PathBuf,
    /// Where jobs and the last signs of use are kept
    #[arg(long, global = true, env = "GPU_WORKSPACE_RUN_DIR", default_value = places::RUN)]
    run_dir: PathBuf,
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

impl Arguments {
    /// Where things are.
    pub fn places(&self) -> Places {
        Places::new(&self.root, &self.run_dir)
    }
}

/// What to do.
#[derive(Subcommand)]
pub enum Command {
    /// Run a command that counts as use until it ends
    Run(Run),
    /// Watch who uses the workspace, and report it
    Watch(Watch),
    /// Run the hooks before a stop, once
    PreStop(PreStop),
    /// Show who uses the workspace
    Status(Status),
    /// Copy this program
    Install(Install),
}

/// `run`.
#[derive(Args)]
pub struct Run {
    /// What `status` calls it; the program's name when unset
    #[arg(long)]
    pub name: Option<String>,
    /// The command
    #[arg(last = true, required = true)]
    pub command: Vec<OsString>,
}

/// `watch`.
#[derive(Args)]
pub struct Watch {
    /// Where reports go: stdout, ec2, or lease NAMESPACE/NAME
    #[arg(long, num_args = 1..=2, value_names = ["KIND", "NAME"], default_value = "stdout")]
    pub to: Vec<String>,
    /// Seconds between two reports, or a little less
    #[arg(long, default_value_t = 300, value_parser = clap::value_parser!(u64).range(1..))]
    pub report_interval: u64,
    /// Seconds between two looks
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u64).range(1..))]
    pub sample_interval: u64,
    /// The port of sshd
    #[arg(long, default_value_t = 22)]
    pub ssh_port: u16,
    /// What tells how busy GPUs are
    #[arg(long, default_value = "nvidia-smi")]
    pub nvidia_smi: OsString,
    /// Percent of its time above which a GPU is in use
    #[arg(long, default_value_t = 5)]
    pub gpu_threshold: u32,
    /// A home whose Jupyter servers are asked; may be given several times
    #[arg(long, default_value = "/home/developer")]
    pub home: Vec<PathBuf>,
    /// Who owns the workspace, and runs the hooks before an interruption
    #[arg(long, default_value = "developer")]
    pub owner: String,
    /// Seconds that hooks may run
    #[arg(long, default_value_t = 110)]
    pub hook_timeout: u64,
    /// The instance metadata service
    #[arg(long, default_value = imds::ENDPOINT)]
    pub metadata_endpoint: String,
    /// EC2, if not that of the instance's region
    #[arg(long, env = "AWS_ENDPOINT_URL_EC2")]
    pub ec2_endpoint: Option<String>,
    /// The API server, if not that of the pod
    #[arg(long)]
    pub kubernetes: Option<String>,
    /// The folder with the pod's `token` and `ca.crt`
    #[arg(long, default_value = lease::SERVICE_ACCOUNT)]
    pub service_account: PathBuf,
}

/// `pre-stop`.
#[derive(Args)]
pub struct PreStop {
    /// Why the machine stops
    #[arg(long, value_enum, default_value = "stop")]
    pub reason: Reason,
    /// Do nothing unless systemd stops the whole machine
    #[arg(long)]
    pub only_at_shutdown: bool,
    /// Who runs the hooks
    #[arg(long, default_value = "developer")]
    pub owner: String,
    /// Seconds that they may run
    #[arg(long, default_value_t = 110)]
    pub timeout: u64,
}

/// `status`.
#[derive(Args)]
pub struct Status {
    /// How to show it
    #[arg(long, short, value_enum, default_value = "table")]
    pub output: Format,
}

/// How `status` shows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Format {
    /// For people
    Table,
    /// For programs
    Json,
}

/// `install`.
#[derive(Args)]
pub struct Install {
    /// A folder, or the copy's own path
    pub destination: PathBuf,
}
