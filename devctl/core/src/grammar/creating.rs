//! The arguments of `create`.

use std::path::PathBuf;

use clap::{Args, ValueEnum};

use super::duration::duration;
use crate::name::Name;
use crate::output::Output;

/// The arguments of `create`.
#[allow(
    clippy::struct_excessive_bools,
    reason = "each is an option of the command line"
)]
#[derive(Args, Debug, Clone, Default)]
pub struct Create {
    /// Name of the workspace
    #[arg(required_unless_present = "file")]
    pub name: Option<Name>,
    /// Flavor, as `devctl flavors` lists them
    #[arg(
        id = "positional flavor",
        value_name = "FLAVOR",
        conflicts_with = "flavor"
    )]
    pub positional_flavor: Option<String>,
    /// Flavor, as `devctl flavors` lists them
    #[arg(long)]
    pub flavor: Option<String>,
    /// Where it runs; default: where the flavor is offered, EC2 first
    #[arg(long, value_enum, ignore_case = true)]
    pub placement: Option<Where>,
    /// Owner; default: the owner of the namespace
    #[arg(long)]
    pub owner: Option<String>,
    /// Several pods for one torchrun
    #[arg(long, requires = "replicas")]
    pub distributed: bool,
    /// Number of pods
    #[arg(long, visible_alias = "nodes", value_name = "N")]
    pub replicas: Option<u16>,
    /// GPUs of each pod
    #[arg(long, value_name = "N", requires = "replicas")]
    pub gpus_per_node: Option<u16>,
    /// EC2 instance types in order of preference, for example g5.xlarge,g4dn.xlarge
    #[arg(
        long,
        value_delimiter = ',',
        value_name = "TYPE",
        conflicts_with = "flavor"
    )]
    pub instance_type: Vec<String>,
    /// GPU of the EC2 instance, for example T4 or T4:2
    #[arg(long, value_name = "NAME[:COUNT]")]
    pub gpu: Option<String>,
    /// Smallest memory of the GPU, for example 16Gi
    #[arg(long, value_name = "SIZE")]
    pub gpu_memory: Option<String>,
    /// AWS region
    #[arg(long)]
    pub region: Option<String>,
    /// Market of the EC2 instance
    #[arg(long, value_enum, ignore_case = true)]
    pub capacity: Option<Capacity>,
    /// Image of the EC2 instance, by its name in the catalogue
    #[arg(long)]
    pub image: Option<String>,
    /// Volume for files that outlive machines, for example 100Gi
    #[arg(long, value_name = "SIZE")]
    pub home: Option<String>,
    /// Longest time without use, for example 2h, or Never
    #[arg(long, value_name = "DURATION")]
    pub idle: Option<String>,
    /// Longest run, for example 8h, or Never
    #[arg(long, value_name = "DURATION")]
    pub lifetime: Option<String>,
    /// Kueue queue of the pods
    #[arg(long)]
    pub queue: Option<String>,
    /// Priority class of the pods in the queue
    #[arg(long, value_name = "CLASS")]
    pub priority: Option<String>,
    /// OpenCV release, for example 4.8.0
    #[arg(long, value_name = "VERSION")]
    pub opencv: Option<String>,
    /// PyTorch release, for example 2.12.1
    #[arg(long, value_name = "VERSION")]
    pub pytorch: Option<String>,
    /// Public key that may log in; default: ~/.ssh/id_*.pub on EC2
    #[arg(long, value_name = "FILE")]
    pub key: Vec<PathBuf>,
    /// Put no key of this machine into the claim
    #[arg(long, conflicts_with = "key")]
    pub no_key: bool,
    /// Network that may connect by SSH, for example 203.0.113.0/24
    #[arg(long, value_name = "CIDR")]
    pub allow: Vec<String>,
    /// Claim to create, as YAML or JSON; - is standard input
    #[arg(long, short, value_name = "FILE")]
    pub file: Option<PathBuf>,
    /// Check the claim and print it, and create nothing
    #[arg(long)]
    pub dry_run: bool,
    /// Return as soon as the claim exists
    #[arg(long)]
    pub no_wait: bool,
    /// Longest time to wait, for example 30m
    #[arg(long, default_value = "30m", value_parser = duration, value_name = "DURATION")]
    pub timeout: std::time::Duration,
    /// Commit the claim in the git repository of the current folder, on a branch of its own
    #[arg(long)]
    pub git: bool,
    /// With --git: commit on the current branch, and push it
    #[arg(long, requires = "git")]
    pub push: bool,
    /// The output format.
    #[command(flatten)]
    pub output: Output,
}

/// Where a workspace runs.
#[derive(ValueEnum, Debug, Clone, Copy, PartialEq, Eq)]
pub enum Where {
    /// On an EC2 instance
    #[value(name = "ec2")]
    Ec2,
    /// In pods of the cluster
    Cluster,
}

/// The market of an EC2 instance.
#[derive(ValueEnum, Debug, Clone, Copy, PartialEq, Eq)]
pub enum Capacity {
    /// Spot only
    Spot,
    /// On demand while there is no spot capacity
    Fallback,
    /// On demand only
    OnDemand,
}
