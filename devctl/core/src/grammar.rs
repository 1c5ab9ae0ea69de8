//! The command line.

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand};

use crate::name::Name;
use crate::output::{Format, Output};

pub mod connecting;
pub mod creating;
mod duration;
pub mod working;

use connecting::{Code, ConfigSsh, Copy, Jetbrains, Jupyter, KnownHosts, PortForward, Proxy, Ssh};
use creating::Create;
use duration::duration;
use working::{Cancel, Jobs, Logs, Monitor, Run};

/// GPU workspaces: create one, log in, run jobs on it, and see what it costs
#[derive(Parser, Debug)]
#[command(name = "devctl", version, max_term_width = 100, after_help = AFTER)]
pub struct Arguments {
    /// The options of every command.
    #[command(flatten)]
    pub shared: Shared,
    /// The command.
    #[command(subcommand)]
    pub command: Command,
}

const AFTER: &str = "\
First steps:
  devctl flavors                       what there is, and what it costs
  devctl create my-dev --flavor t4     create a workspace and wait for it
  devctl ssh my-dev                    log in
  devctl why my-dev                    why it is not as you expect

Exit codes: 0 done, 1 failed, 2 usage, 3 not found, 4 refused, 5 exists, 6 time over,
7 not running, 8 not logged in, 9 out of reach. ssh passes the remote code on.";

/// The options of every command.
#[derive(Args, Debug, Clone, Default)]
pub struct Shared {
    /// Namespace of the workspaces; default: the context's
    #[arg(
        long,
        short,
        global = true,
        env = "DEVCTL_NAMESPACE",
        value_name = "NAME"
    )]
    pub namespace: Option<Name>,
    /// Context of the kubeconfig
    #[arg(long, global = true, env = "DEVCTL_CONTEXT")]
    pub context: Option<String>,
    /// Path of the kubeconfig; default: $KUBECONFIG, or else ~/.kube/config
    #[arg(long, global = true, value_name = "FILE")]
    pub kubeconfig: Option<PathBuf>,
    /// Private key for ssh; default: ssh's own choice
    #[arg(long, global = true, env = "DEVCTL_IDENTITY", value_name = "FILE")]
    pub identity: Option<PathBuf>,
    /// Bastion to go through, as a destination of ssh; --context and --kubeconfig go past it
    #[arg(
        long,
        global = true,
        env = "DEVCTL_BASTION",
        value_name = "USER@HOST",
        value_parser = bastion,
    )]
    pub bastion: Option<String>,
}

/// Reads a destination of ssh that is no option of it.
pub fn bastion(text: &str) -> Result<String, String> {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_.@:[]/".contains(c);
    if !text.is_empty() && !text.starts_with('-') && text.chars().all(is_plain) {
        return Ok(text.to_owned());
    }
    Err("write USER@HOST, or a host of ~/.ssh/config".to_owned())
}

/// A command.
#[derive(Subcommand, Debug)]
pub enum Command {
    /// Create a workspace and wait until it is ready
    Create(Box<Create>),
    /// List the workspaces
    #[command(visible_alias = "status", alias = "ls")]
    List(List),
    /// Show a workspace
    Show(Show),
    /// Say why a workspace is not as you expect, and what to do
    Why(Why),
    /// Show the machines that the platform offers, with prices
    Flavors(Output),
    /// Show who you are here: rights, keys, budget
    #[command(visible_alias = "info")]
    Whoami(Output),
    /// Log in to a workspace, or run a command there
    Ssh(Ssh),
    /// Run a command as a job that outlives the connection
    Run(Run),
    /// List the jobs of a workspace
    Jobs(Jobs),
    /// Show the output of a job
    Logs(Logs),
    /// End a job
    Cancel(Cancel),
    /// Watch processors, memory, GPUs and jobs; it does not count as use
    Monitor(Monitor),
    /// Copy files from or to a workspace, as NAME:PATH
    Cp(Copy),
    /// Forward ports of a workspace to this machine
    PortForward(PortForward),
    /// Start Jupyter on a workspace and open it here
    Jupyter(Jupyter),
    /// Open a workspace in VS Code
    Code(Code),
    #[allow(clippy::doc_markdown, reason = "people read it in the terminal")]
    /// Open a workspace in JetBrains Gateway
    Jetbrains(Jetbrains),
    /// Stop a workspace; its home stays
    Stop(Waiting),
    /// Start a workspace that stopped
    Start(Waiting),
    /// Let a workspace run longer than planned
    Extend(Extend),
    /// Delete a workspace
    Delete(Delete),
    /// Show what workspaces cost
    Cost(Cost),
    /// Let ssh and editors reach workspaces as NAME.ws
    ConfigSsh(ConfigSsh),
    /// Show or forget the SSH host keys of workspaces
    KnownHosts(KnownHosts),
    /// Connect standard input and output to a workspace, for ssh
    Proxy(Proxy),
    /// Check this machine, the cluster, and a workspace
    #[command(alias = "test-k8s")]
    Doctor(Doctor),
    /// Print the code that completes devctl's words in a shell
    Completion(Completion),
    /// Write the manual's pages, one for each command
    Manual(Manual),
}

impl Command {
    /// The format of the command's data.
    pub fn format(&self) -> Format {
        match self {
            Self::Create(given) => given.output.format,
            Self::List(given) => given.output.format,
            Self::Show(given) => given.output.format,
            Self::Why(given) => given.output.format,
            Self::Flavors(given) | Self::Whoami(given) => given.format,
            Self::Cost(given) => given.output.format,
            Self::Doctor(given) => given.output.format,
            Self::Jobs(given) => given.output.format,
            Self::Monitor(given) => given.output.format,
            _ => Format::Table,
        }
    }

    /// Whether the command asks the API server.
    pub fn needs_cluster(&self) -> bool {
        !matches!(
            self,
            Self::ConfigSsh(_) | Self::KnownHosts(_) | Self::Completion(_) | Self::Manual(_)
        )
    }
}

/// The arguments of `list`.
#[derive(Args, Debug)]
pub struct List {
    /// Workspaces of all namespaces
    #[arg(long, short = 'A')]
    pub all_namespaces: bool,
    /// The output format.
    #[command(flatten)]
    pub output: Output,
}

/// The arguments of `show`.
#[derive(Args, Debug)]
pub struct Show {
    /// Name of the workspace
    pub name: Name,
    /// The output format.
    #[command(flatten)]
    pub output: Output,
}

/// The arguments of `why`.
#[derive(Args, Debug)]
pub struct Why {
    /// Name of the workspace
    pub name: Name,
    /// The output format.
    #[command(flatten)]
    pub output: Output,
}

/// The arguments of `stop` and `start`.
#[derive(Args, Debug)]
pub struct Waiting {
    /// Name of the workspace
    pub name: Name,
    /// Return at once
    #[arg(long)]
    pub no_wait: bool,
    /// Longest time to wait, for example 30m
    #[arg(long, default_value = "30m", value_parser = duration, value_name = "DURATION")]
    pub timeout: std::time::Duration,
}

/// The arguments of `extend`.
#[derive(Args, Debug)]
pub struct Extend {
    /// Name of the workspace
    pub name: Name,
    /// How much longer from the planned stop on, for example 4h
    #[arg(value_parser = duration)]
    pub by: std::time::Duration,
}

/// The arguments of `delete`.
#[allow(
    clippy::struct_excessive_bools,
    reason = "each is an option of the command line"
)]
#[derive(Args, Debug)]
pub struct Delete {
    /// Name of the workspace
    pub name: Name,
    /// Delete its homes in the cluster, too
    #[arg(long)]
    pub home: bool,
    /// Ask nothing
    #[arg(long, short)]
    pub yes: bool,
    /// Return at once
    #[arg(long)]
    pub no_wait: bool,
    /// Delete the claim from the git repository of the current folder, on a branch of its own
    #[arg(long, conflicts_with = "home")]
    pub git: bool,
    /// With --git: commit on the current branch, and push it
    #[arg(long, requires = "git")]
    pub push: bool,
    /// Longest time to wait, for example 30m
    #[arg(long, default_value = "30m", value_parser = duration, value_name = "DURATION")]
    pub timeout: std::time::Duration,
}

/// The arguments of `cost`.
#[derive(Args, Debug)]
pub struct Cost {
    /// Name of the workspace; default: all
    pub name: Option<Name>,
    /// The account of this month, with deleted workspaces and what is left
    #[arg(long, conflicts_with = "name")]
    pub month: bool,
    /// The output format.
    #[command(flatten)]
    pub output: Output,
}

/// The arguments of `doctor`.
#[derive(Args, Debug)]
pub struct Doctor {
    /// Name of a workspace to check
    pub name: Option<Name>,
    /// The output format.
    #[command(flatten)]
    pub output: Output,
}

/// The arguments of `completion`.
#[derive(Args, Debug)]
pub struct Completion {
    /// The shell
    pub shell: Shell,
}

/// The arguments of `manual`.
#[derive(Args, Debug)]
pub struct Manual {
    /// Folder for the pages, for example ~/.local/share/man/man1
    pub folder: PathBuf,
}

/// A shell that completes words.
#[derive(clap::ValueEnum, Debug, Clone, Copy, PartialEq, Eq)]
pub enum Shell {
    /// GNU Bash
    Bash,
    /// Z shell
    Zsh,
    /// Fish
    Fish,
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    #[test]
    fn the_grammar_holds_together() {
        Arguments::command().debug_assert();
    }

    #[test]
    fn a_name_that_begins_with_a_hyphen_is_refused() {
        for words in [
            &["devctl", "show", "--", "-oProxyCommand=x"][..],
            &["devctl", "ssh", "--", "-x"],
        ] {
            assert!(Arguments::try_parse_from(words).is_err(), "{words:?}");
        }
    }

    #[test]
    fn the_command_lines_of_the_first_design_are_taken() {
        for words in [
            "devctl create mydev gpu-large",
            "devctl create my-dev --flavor gpu-large",
            "devctl create training-job --flavor gpu-large --distributed --replicas 4",
            "devctl ssh my-dev",
            "devctl ssh my-dev --replica 0",
            "devctl run training-job train.py --batch-size 32",
            "devctl monitor training-job",
            "devctl delete my-dev",
            "devctl status",
            "devctl info",
            "devctl test-k8s",
        ] {
            let parsed = Arguments::try_parse_from(words.split(' '));
            assert!(parsed.is_ok(), "{words}: {}", parsed.unwrap_err());
        }
    }
}
