//! `cargo xtask package`: the Crossplane packages of this repository, and third-party packages that
//! they depend on.

use std::error::Error;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use clap::{Args, Subcommand};
use jiff::Timestamp;
use local_cluster::cache::Cache;
use local_cluster::progress::Progress;
use local_cluster::{Cluster, mirror};

use crate::target::Target;

mod authorities;
mod build;
pub(crate) mod compile;
pub(crate) mod contents;
mod dependencies;
pub(crate) mod image;
mod install;
pub(crate) mod platform;
mod push;
mod sbom;
mod sign;
mod signature;
pub(crate) mod stage;
#[cfg(test)]
mod test_registry;
mod verify;

use build::{Packages, Request};
use compile::{Profile, Source};
use platform::Platform;

pub(crate) use build::program;
pub(crate) use contents::Composites;
pub(crate) use install::install;

type Outcome<T> = Result<T, Box<dyn Error>>;

/// Compiles the packages' programs, in the form that development packages contain.
pub(crate) fn compile_programs(progress: &Progress) -> Outcome<()> {
    Source::here().compile(Profile::Dev, Platform::host(), progress)?;
    Ok(())
}

#[derive(Args)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    action: Action,
}

#[derive(Subcommand)]
enum Action {
    /// Compile the packages' programs alone, as development packages have them
    Compile,
    /// Build the packages into the target folder
    Build(Shape),
    /// Build them twice, in two folders, and fail when they differ
    Verify {
        /// As they are released: both are compiled with all their dependencies
        #[arg(long)]
        release: bool,
    },
    /// Build, and push to a registry: an index where there are several platforms
    Push {
        #[command(flatten)]
        shape: Shape,
        /// Where to push, and where the packages look for each other
        #[arg(long, env = "REGISTRY", default_value = stage::COMMITTED_REGISTRY)]
        registry: String,
        /// Leave out dependencies that the registry lacks, instead of naming them
        #[arg(long)]
        without_missing: bool,
    },
    /// Sign packages that are in a registry, for Crossplane's check of signatures
    Sign {
        /// What to sign, instead of this version's packages
        references: Vec<String>,
        /// The file with the private key: ECDSA of the curve P-256, in PEM
        #[arg(long, env = "PACKAGE_SIGNING_KEY", value_name = "FILE")]
        key: PathBuf,
        /// The registry with this version's packages
        #[arg(long, env = "REGISTRY", default_value = stage::COMMITTED_REGISTRY)]
        registry: String,
    },
    /// Build, push and install them
    Install {
        #[command(flatten)]
        target: Target,
        #[command(flatten)]
        composites: Composites,
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

/// What comes out of a build.
#[derive(Args)]
struct Shape {
    /// Optimised and reproducible, with the version as its tag
    #[arg(long)]
    release: bool,
    /// For these platforms instead of this machine's
    #[arg(long, value_delimiter = ',')]
    platform: Vec<Platform>,
}

impl Shape {
    /// Builds the packages for a registry. `holds` says whether the registry has a repository.
    fn build(
        &self,
        registry: &str,
        holds: &dyn Fn(&str) -> bool,
        progress: &Progress,
    ) -> Outcome<Packages> {
        let host = [Platform::host()];
        let given = self.platform.as_slice();
        let request = Request {
            profile: profile(self.release),
            platforms: if given.is_empty() { &host } else { given },
            registry,
            holds,
        };
        let cli = crate::target::crossplane(progress)?;
        build::build(&cli, &Source::here(), &request, progress)
    }
}

fn profile(is_release: bool) -> Profile {
    if is_release {
        Profile::Release
    } else {
        Profile::Dev
    }
}

pub(crate) fn run(arguments: Arguments) -> ExitCode {
    let progress = Progress::to_stderr();
    let outcome = match arguments.action {
        Action::Compile => compile_programs(&progress),
        Action::Build(shape) => shape
            .build(stage::COMMITTED_REGISTRY, &|_| true, &progress)
            .map(|packages| {
                let files = packages.built.iter().flat_map(|built| &built.files);
                files.for_each(|file| println!("{}", file.display()));
            }),
        Action::Verify { release } => verify_all(profile(release), &progress),
        Action::Push {
            shape,
            registry,
            without_missing,
        } => push_all(&shape, &registry, without_missing, &progress),
        Action::Sign {
            references,
            key,
            registry,
        } => sign_all(references, &key, &registry, &progress),
        Action::Install { target, composites } => target
            .resolve()
            .and_then(|target| install(&target, composites, &progress)),
        Action::Mirror { repositories, name } => mirror_all(&repositories, &name, &progress),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}

fn verify_all(profile: Profile, progress: &Progress) -> Outcome<()> {
    let cli = crate::target::crossplane(progress)?;
    for (name, digest) in verify::verify(&cli, profile, progress)? {
        println!("{digest}  {name}");
    }
    Ok(())
}

fn push_all(
    shape: &Shape,
    registry: &str,
    without_missing: bool,
    progress: &Progress,
) -> Outcome<()> {
    let cli = crate::target::crossplane(progress)?;
    let crane = crate::target::crane(progress)?;
    let holds =
        |repository: &str| !without_missing || dependencies::holds(&crane, registry, repository);
    let packages = shape.build(registry, &holds, progress)?;
    for built in &packages.built {
        println!("{}", push::push(Command::new(&cli), registry, built)?);
    }
    Ok(())
}

fn sign_all(
    mut references: Vec<String>,
    key: &Path,
    registry: &str,
    progress: &Progress,
) -> Outcome<()> {
    let key = sign::key(key)?;
    let crane = crate::target::crane(progress)?;
    if references.is_empty() {
        references = sign::released(registry);
    }
    for reference in references {
        println!(
            "{}",
            sign::sign(&crane, &key, &reference, Timestamp::now())?
        );
    }
    Ok(())
}

fn mirror_all(repositories: &[String], name: &str, progress: &Progress) -> Outcome<()> {
    let (cluster, cache) = (Cluster::open(name)?, Cache::from_environment()?);
    for repository in repositories {
        let provider = mirror::find(repository)?;
        println!("{}", mirror::mirror(&cache, &cluster, provider, progress)?);
    }
    Ok(())
}
