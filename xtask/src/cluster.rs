//! `cargo xtask cluster`: the local cluster's command line.

use std::error::Error;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use clap::{Args, Subcommand, ValueEnum};
use local_cluster::cache::Cache;
use local_cluster::control_plane::ControlPlane;
use local_cluster::progress::Progress;
use local_cluster::report;
use local_cluster::up::{InitProgram, Options};
use local_cluster::{
    Cluster, Differences, argocd, binaries, down, gpus, init, interrupt, kueue, machines, restart,
    up,
};

#[derive(Args)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    action: Action,
}

#[derive(Subcommand)]
enum Action {
    /// Build what is needed and start the cluster
    Up {
        #[command(flatten)]
        name: Name,
        /// Feature gates of the API server, such as ConstrainedImpersonation=false; a cluster that
        /// is up keeps its own
        #[arg(long, value_name = "GATES")]
        feature_gates: Option<String>,
        /// The longest pause before a crashed container is started again; a cluster that is up
        /// keeps its own
        #[arg(long, value_name = "SECONDS", value_parser = clap::value_parser!(u16).range(1..=300))]
        restart_pause: Option<u16>,
        /// Run a provider of identities (dex), whose tokens the API server takes; a cluster that is up
        /// keeps its own
        #[arg(long)]
        identities: bool,
    },
    /// End the cluster and remove everything of it
    Down {
        #[command(flatten)]
        name: Name,
    },
    /// Show every part; fails unless everything is ready
    Status {
        #[command(flatten)]
        name: Name,
        /// How to show it
        #[arg(short, long, value_enum, default_value_t)]
        output: Output,
    },
    /// Print shell commands that point kubectl, crossplane and the AWS tools at
    /// the cluster, for eval
    Env {
        #[command(flatten)]
        name: Name,
    },
    /// Print the log of a part
    Logs {
        /// The part, as `status` names it
        part: String,
        #[command(flatten)]
        name: Name,
        /// Keep printing what is added
        #[arg(short, long)]
        follow: bool,
        /// Begin at the last so many lines
        #[arg(short = 'n', long)]
        tail: Option<u32>,
    },
    /// Build a program of tests/cluster/binaries unless it is built, and print its path
    Binary {
        /// Its name, such as argocd
        program: String,
    },
    /// Run an API server and etcd alone until standard input ends; prints the path of the
    /// administrator's kubeconfig
    ControlPlane {
        /// A folder for their data and logs; its earlier contents are deleted
        folder: PathBuf,
        /// A further argument of the API server
        #[arg(long = "argument", value_name = "NAME=VALUE", value_parser = argument)]
        arguments: Vec<(String, String)>,
    },
    /// Kill a part and start it again, for tests; returns when it is ready
    Restart {
        /// The part, as `status` names it
        part: String,
        #[command(flatten)]
        name: Name,
    },
    /// Install software that not every cluster needs; what is installed is brought
    /// in line
    Install {
        /// What to install
        software: Software,
        #[command(flatten)]
        name: Name,
    },
    /// Make the node advertise GPUs that are not there, for pods to ask for
    Gpus {
        /// How many; 0 removes them
        count: u32,
        #[command(flatten)]
        name: Name,
    },
    /// Run as the first process of a cluster's namespaces
    #[command(hide = true)]
    Init { state: PathBuf },
}

#[derive(Args)]
struct Name {
    /// The cluster's name
    #[arg(long, default_value = "demo")]
    name: String,
}

#[derive(Clone, Copy, ValueEnum)]
enum Software {
    /// Argo CD, with a git server that tells it of each push
    Argocd,
    /// Queues and quotas for workloads
    Kueue,
    /// Machines for the EC2 emulator's image that boots
    Machines,
}

#[derive(Clone, Copy, Default, ValueEnum)]
enum Output {
    #[default]
    Table,
    Json,
}

pub(crate) fn run(arguments: Arguments) -> ExitCode {
    match act(arguments.action) {
        Ok(code) => code,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}

fn act(action: Action) -> Result<ExitCode, Box<dyn Error>> {
    match action {
        Action::Up {
            name,
            feature_gates,
            restart_pause,
            identities,
        } => {
            let differences = Differences {
                feature_gates,
                restart_pause,
                identities,
            };
            start(&name.name, differences)?;
        }
        Action::Down { name } => down::down(
            &Cache::from_environment()?,
            &name.name,
            &Progress::to_stderr(),
        )?,
        Action::Status { name, output } => return status(&name.name, output),
        Action::Env { name } => print!("{}", Cluster::open(&name.name)?.environment()),
        Action::Logs {
            part,
            name,
            follow,
            tail,
        } => return logs(&name.name, &part, follow, tail),
        Action::Binary { program } => {
            let cache = Cache::from_environment()?;
            let built = binaries::ensure(&cache, &[&program], &Progress::to_stderr())?;
            println!("{}", built.path(&program)?.display());
        }
        Action::ControlPlane { folder, arguments } => control_plane(&folder, &arguments)?,
        Action::Install { software, name } => install(software, &name.name)?,
        Action::Restart { part, name } => {
            let cluster = Cluster::find(&Cache::from_environment()?, &name.name)?;
            restart::restart(&cluster, &part, &Progress::to_stderr())?;
        }
        Action::Gpus { count, name } => {
            gpus::advertise(&Cluster::open(&name.name)?, count, &Progress::to_stderr())?;
        }
        Action::Init { state } => init::run(&state)?,
    }
    Ok(ExitCode::SUCCESS)
}

/// `NAME=VALUE`.
fn argument(text: &str) -> Result<(String, String), String> {
    let pair = text.split_once('=').ok_or("write NAME=VALUE")?;
    Ok((pair.0.to_owned(), pair.1.to_owned()))
}

fn control_plane(folder: &Path, arguments: &[(String, String)]) -> Result<(), Box<dyn Error>> {
    let cache = Cache::from_environment()?;
    let running = ControlPlane::start(&cache, folder, arguments, &Progress::to_stderr())?;
    println!("{}", running.kubeconfig().display());
    std::io::copy(&mut std::io::stdin(), &mut std::io::sink())?;
    Ok(())
}

fn start(name: &str, differences: Differences) -> Result<(), Box<dyn Error>> {
    let began = std::time::Instant::now();
    let (cache, progress) = (Cache::from_environment()?, Progress::to_stderr());
    undone_by_interrupt(&cache, name, &progress, || {
        up(&cache, name, differences, &progress)
    })?;
    eprintln!(
        "cluster `{name}` is up after {:.1} s; use it with:\n  \
         eval \"$(cargo xtask cluster env --name {name})\"",
        began.elapsed().as_secs_f64()
    );
    Ok(())
}

/// Starts the cluster, unless it is up already.
pub(crate) fn up(
    cache: &Cache,
    name: &str,
    differences: Differences,
    progress: &Progress,
) -> Result<(), Box<dyn Error>> {
    let options = Options {
        name: name.to_owned(),
        init: InitProgram {
            executable: std::env::current_exe()?,
            arguments: vec!["cluster".to_owned(), "init".to_owned()],
        },
        differences,
    };
    up::up(cache, &options, progress)?;
    Ok(())
}

/// Does the work. If Ctrl-C ends it, removes the cluster unless the cluster existed before.
pub(crate) fn undone_by_interrupt<T>(
    cache: &Cache,
    name: &str,
    progress: &Progress,
    work: impl FnOnce() -> Result<T, Box<dyn Error>>,
) -> Result<T, Box<dyn Error>> {
    let was_there = Cluster::find(cache, name).is_ok();
    interrupt::listen()?;
    let done = work();
    if done.is_err() && interrupt::requested() {
        interrupt::acknowledge();
        progress.note("interrupted; what is built is kept, and the next run goes on from there");
        if !was_there {
            down::down(cache, name, progress)?;
        }
        std::process::exit(interrupt::EXIT_CODE.into());
    }
    done
}

fn install(software: Software, name: &str) -> Result<(), Box<dyn Error>> {
    let (cache, cluster) = (Cache::from_environment()?, Cluster::open(name)?);
    let progress = Progress::to_stderr();
    match software {
        Software::Argocd => argocd::install(&cache, &cluster, &progress)?,
        Software::Kueue => kueue::install(&cache, &cluster, &progress)?,
        Software::Machines => {
            machines::provide(&cache, &cluster, &progress)?;
        }
    }
    Ok(())
}

fn status(name: &str, output: Output) -> Result<ExitCode, Box<dyn Error>> {
    let report = report::look(&Cluster::find(&Cache::from_environment()?, name)?)?;
    match output {
        Output::Table => println!("{report}"),
        Output::Json => println!("{}", serde_json::to_string_pretty(&report)?),
    }
    Ok(if report.up {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}

fn logs(
    name: &str,
    part: &str,
    follow: bool,
    tail: Option<u32>,
) -> Result<ExitCode, Box<dyn Error>> {
    let cluster = Cluster::find(&Cache::from_environment()?, name)?;
    let known = cluster.logs();
    if !known.iter().any(|log| log == part) {
        let known = known.join(", ");
        return Err(format!("cluster `{name}` has no log of `{part}`: there are {known}").into());
    }
    let lines = tail.map_or_else(|| "+1".to_owned(), |lines| lines.to_string());
    let mut command = Command::new("tail");
    command.args(["-n", &lines]);
    if follow {
        command.arg("-F");
    }
    let status = command.arg(cluster.log(part)).status()?;
    Ok(if status.success() {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}
