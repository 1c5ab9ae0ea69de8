//! `cargo xtask package`: the Crossplane packages of this repository, and other
//! people's that they depend on.

use std::error::Error;
use std::process::ExitCode;

use clap::{Args, Subcommand};
use local_cluster::cache::Cache;
use local_cluster::progress::Progress;
use local_cluster::{Cluster, mirror};

use crate::target::Target;

mod build;
pub(crate) mod contents;
mod dependencies;
pub(crate) mod image;
mod install;
pub(crate) mod stage;

pub(crate) use build::program;
pub(crate) use install::install;

type Outcome<T> = Result<T, Box<dyn Error>>;

#[derive(Args)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    action: Action,
}

#[derive(Subcommand)]
enum Action {
    /// Build the packages into the target folder
    Build,
    /// Build, push and install them
    Install {
        #[command(flatten)]
        target: Target,
    },
    /// Build somebody else's providers from pinned source, and push them to a local
    /// cluster's registry
    Mirror {
        /// Their repositories, such as upbound/provider-aws-ec2
        #[arg(required = true)]
        repositories: Vec<String>,
        /// Name of the local cluster
        #[arg(long, default_value = "demo")]
        name: String,
    },
}

pub(crate) fn run(arguments: Arguments) -> ExitCode {
    let mut progress = Progress::to_stderr();
    let outcome = match arguments.action {
        Action::Build => build_all(&mut progress),
        Action::Install { target } => target
            .resolve()
            .and_then(|target| install(&target, &mut progress)),
        Action::Mirror { repositories, name } => mirror_all(&repositories, &name, &mut progress),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}

fn build_all(progress: &mut Progress) -> Outcome<()> {
    let cli = crate::target::crossplane()?;
    for built in build::build(&cli, stage::COMMITTED_REGISTRY, |_| true, progress)? {
        println!("{}", built.file.display());
    }
    Ok(())
}

fn mirror_all(repositories: &[String], name: &str, progress: &mut Progress) -> Outcome<()> {
    let (cluster, cache) = (Cluster::open(name)?, Cache::from_environment()?);
    for repository in repositories {
        let provider = mirror::find(repository)?;
        println!("{}", mirror::mirror(&cache, &cluster, provider, progress)?);
    }
    Ok(())
}
