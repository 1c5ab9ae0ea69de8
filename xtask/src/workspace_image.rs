//! `cargo xtask image`: the image of workspaces that run as pods, the image of the agent beside them,
//! and machine images for EC2.
//!
//! The recipe of the workspace image is in `images/workspace`. The cache folder keeps the built
//! image as an OCI image layout. Its key is a hash of the recipe and of the apt sources, so a
//! change of either builds the image again.

use std::error::Error;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, ExitStatus, Stdio};
use std::time::Duration;

use clap::{Args, Subcommand, ValueEnum};
use local_cluster::Cluster;
use local_cluster::cache::{self, Cache};
use local_cluster::debian;
use local_cluster::progress::Progress;
use serde_json::json;

use crate::oci;
use crate::process::output;

type Outcome<T> = Result<T, Box<dyn Error>>;

/// The repository of workspace images in a cluster's registry.
const REPOSITORY: &str = "images/workspace";
const AMI_BUILDER: &str = "gpu-workspace-image";
/// The typical duration of compiling the builder, with the AWS SDK, on two cores.
const BUILDER_COMPILED: Duration = Duration::from_mins(8);
const AGENT_REPOSITORY: &str = "images/agent";
/// The image of the bastion.
const BASTION_REPOSITORY: &str = "images/bastion";
const PORTAL_REPOSITORY: &str = "images/portal";
const HOSTILE_REPOSITORY: &str = "images/hostile";
/// A shell's exit status for a missing program (POSIX, "Exit Status for Commands").
const NO_SUCH_PROGRAM: i32 = 127;
/// The advice for a missing program.
const PREREQUISITES: &str = "if it is missing: apt-get install -y util-linux mmdebstrap";

#[derive(Args)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    action: Action,
}

#[derive(Subcommand)]
enum Action {
    /// Build the image of workspaces and push it; prints its reference
    Workspace {
        /// Which PyTorch is in it
        #[arg(long, value_enum, default_value_t)]
        variant: Variant,
        #[command(flatten)]
        destination: Destination,
    },
    /// Build a machine image for EC2 (AMI) that brings the software; prints its catalogue entry
    #[command(disable_help_flag = true)]
    Ami {
        /// The builder's arguments; --help lists them
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        arguments: Vec<String>,
    },
    /// Build the image of the agent and push it; prints its reference
    Agent {
        #[command(flatten)]
        shape: crate::standalone::Shape,
        #[command(flatten)]
        destination: Destination,
    },
    /// Build the image of the bastion and push it; prints its reference
    Bastion {
        #[command(flatten)]
        shape: crate::standalone::Shape,
        #[command(flatten)]
        destination: Destination,
    },
    /// Build the image of the portal, with its app, and push it; prints its reference
    Portal {
        #[command(flatten)]
        shape: crate::standalone::Shape,
        #[command(flatten)]
        destination: Destination,
    },
    /// For tests: build the image of the bastion with a hostile program in a session's place, and push it
    Hostile {
        #[command(flatten)]
        shape: crate::standalone::Shape,
        #[command(flatten)]
        destination: Destination,
    },
}

/// Where the image goes.
#[derive(Args)]
struct Destination {
    /// Name of the local cluster whose registry it is pushed to
    #[arg(long, default_value = "demo", conflicts_with_all = ["push", "layout"])]
    name: String,
    /// Push it to this repository, as `registry/path`, instead of a local cluster's
    #[arg(long, conflicts_with = "layout")]
    push: Option<String>,
    /// Write it to this folder, as an OCI image layout, instead of pushing it
    #[arg(long)]
    layout: Option<PathBuf>,
}

#[derive(Clone, Copy, Default, ValueEnum)]
enum Variant {
    /// Debian's PyTorch, without CUDA
    #[default]
    Cpu,
    /// PyTorch with CUDA and NCCL
    Cuda,
}

impl Variant {
    fn name(self) -> &'static str {
        match self {
            Self::Cpu => "cpu",
            Self::Cuda => "cuda",
        }
    }

    /// The environment variables of this variant, in addition to those of all variants.
    fn environment(self) -> &'static [&'static str] {
        match self {
            Self::Cpu => &[],
            // `NVIDIA_VISIBLE_DEVICES` is not set here: the device plugin decides which devices a
            // container sees.
            Self::Cuda => &["NVIDIA_DRIVER_CAPABILITIES=compute,utility"],
        }
    }
}

pub(crate) fn run(arguments: &Arguments) -> ExitCode {
    let progress = &Progress::to_stderr();
    let built = match &arguments.action {
        Action::Workspace {
            variant,
            destination,
        } => destination.take(REPOSITORY, progress, |progress| {
            let built = ensure(*variant, progress)?;
            let digest = fs::read_to_string(built.join("digest"))?;
            let tag = format!("{}-{}", variant.name(), &digest[..12]);
            Ok((built.join("layout"), tag))
        }),
        Action::Agent { shape, destination } => {
            program(AGENT_REPOSITORY, destination, progress, |layout| {
                crate::agent::image(shape, layout, progress)
            })
        }
        Action::Bastion { shape, destination } => {
            program(BASTION_REPOSITORY, destination, progress, |layout| {
                crate::bastion::image(shape, layout, progress)
            })
        }
        Action::Portal { shape, destination } => {
            program(PORTAL_REPOSITORY, destination, progress, |layout| {
                crate::portal::image(shape, layout, progress)
            })
        }
        Action::Hostile { shape, destination } => {
            program(HOSTILE_REPOSITORY, destination, progress, |layout| {
                crate::bastion::hostile(shape, layout, progress)
            })
        }
        Action::Ami { arguments } => return ami(arguments, progress),
    };
    match built {
        Ok(place) => {
            println!("{place}");
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}

/// Runs the builder of machine images, which is a program of its own: it has the AWS SDK, for which
/// `cargo xtask` does not wait.
fn ami(arguments: &[String], progress: &Progress) -> ExitCode {
    match built_ami(arguments, progress) {
        Ok(status) if status.success() => ExitCode::SUCCESS,
        Ok(_) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}

fn built_ami(arguments: &[String], progress: &Progress) -> Outcome<ExitStatus> {
    let step = progress.begin("compile the builder of machine images");
    let mut cargo = Command::new(env!("CARGO"));
    cargo.current_dir(crate::root());
    // With the whole workspace, the SDK is compiled once for all programs.
    cargo.args(["build", "--workspace", "--bin", AMI_BUILDER]);
    crate::cargo::run(&mut cargo, "image-builder", BUILDER_COMPILED, Some(&step))?;
    step.end("");
    // Cargo puts the programs of the workspace into one folder.
    let builder = std::env::current_exe()?.with_file_name(AMI_BUILDER);
    Ok(Command::new(builder).args(arguments).status()?)
}

/// Builds the image of the bastion and pushes it to a cluster's registry. Returns its reference.
pub(crate) fn bastion_for(cluster: &Cluster, progress: &Progress) -> Outcome<String> {
    let shape = crate::standalone::Shape { release: false };
    let destination = Destination::of(cluster);
    program(BASTION_REPOSITORY, &destination, progress, |layout| {
        crate::bastion::image(&shape, layout, progress)
    })
}

/// The same for the image of the portal.
pub(crate) fn portal_for(cluster: &Cluster, progress: &Progress) -> Outcome<String> {
    let shape = crate::standalone::Shape { release: false };
    let destination = Destination::of(cluster);
    program(PORTAL_REPOSITORY, &destination, progress, |layout| {
        crate::portal::image(&shape, layout, progress)
    })
}

/// Builds the image of one of our programs, which `write` writes as a layout.
fn program(
    repository: &str,
    destination: &Destination,
    progress: &Progress,
    write: impl FnOnce(&Path) -> Outcome<String>,
) -> Outcome<String> {
    let folder = std::env::temp_dir().join(format!("program-image-{}", std::process::id()));
    let place = destination.take(repository, progress, |_| {
        let layout = folder.join("layout");
        let digest = write(&layout)?;
        Ok((layout, digest[..12].to_owned()))
    });
    if folder.exists() {
        fs::remove_dir_all(folder)?;
    }
    place
}

impl Destination {
    /// The registry of a cluster.
    fn of(cluster: &Cluster) -> Self {
        Self {
            name: cluster.name().to_owned(),
            push: None,
            layout: None,
        }
    }

    /// Builds an image and puts it at this destination. `build` returns the image's layout and tag.
    /// Returns a reference, or the path of a folder.
    fn take(
        &self,
        repository: &str,
        progress: &Progress,
        build: impl FnOnce(&Progress) -> Outcome<(PathBuf, String)>,
    ) -> Outcome<String> {
        if let Some(folder) = &self.layout {
            // A folder that cannot be made is told before the build, because the build takes minutes.
            fs::create_dir_all(folder)?;
            let (layout, _) = build(progress)?;
            let mut copy = Command::new("cp");
            copy.args(["--recursive", "--no-target-directory"]);
            output(copy.arg(layout).arg(folder))?;
            return Ok(folder.display().to_string());
        }
        let repository = match &self.push {
            Some(repository) => repository.clone(),
            // The cluster is looked up before the build, because the build takes minutes.
            None => format!("{}/{repository}", Cluster::open(&self.name)?.registry()),
        };
        let (layout, tag) = build(progress)?;
        let reference = format!("{repository}:{tag}");
        let crane = crate::target::crane(progress)?;
        let step = progress.begin(&format!("push {reference}"));
        output(Command::new(crane).arg("push").arg(layout).arg(&reference))?;
        step.end("pushed");
        Ok(reference)
    }
}

/// Returns the image's entry in the cache, and builds it if necessary. The entry contains `layout`,
/// the `digest` of the image's manifest, and `packages.txt`, the list of the image's packages.
fn ensure(variant: Variant, progress: &Progress) -> Outcome<PathBuf> {
    let cache = Cache::from_environment()?;
    let recipe = crate::root().join("images/workspace");
    let sources = debian::sources()?;
    let entry = cache.entry(
        "workspace-images",
        variant.name(),
        &key(variant, &recipe, &sources)?,
    );
    let step = progress.begin(&format!("workspace image, {}", variant.name()));
    let _lock = cache.lock("workspace-images", |lock| {
        step.note(&format!("waiting for another build ({})", lock.display()));
    })?;
    if entry.exists() {
        step.end("cached");
        return Ok(entry);
    }
    let log = cache.log(&format!("workspace-image-{}", variant.name()));
    fs::create_dir_all(cache.root().join("logs"))?;
    cache::publish(&entry, |folder| {
        make(variant, &recipe, &sources, folder, &log)
    })?;
    step.end("built");
    Ok(entry)
}

fn make(
    variant: Variant,
    recipe: &Path,
    sources: &[PathBuf],
    folder: &Path,
    log: &Path,
) -> Outcome<()> {
    let parts = folder.join("parts");
    fs::create_dir(&parts)?;
    let mut build = Command::new("setpriv");
    build
        .args(debian::ISOLATED)
        .arg(recipe.join("build.sh"))
        .arg(variant.name())
        .arg(&parts)
        .arg(debian::SUITE)
        .args(sources);
    logged(&mut build, log)?;
    fs::rename(parts.join("packages.txt"), folder.join("packages.txt"))?;
    let layers = ["debian", "workspace"]
        .map(|name| layer(&parts, name))
        .into_iter()
        .collect::<Outcome<Vec<_>>>()?;
    let mut environment = vec![
        "PATH=/opt/workspace/venv/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
        "LANG=C.UTF-8",
    ];
    environment.extend(variant.environment());
    let config = json!({
        "User": "1000:1000",
        "Env": environment,
        "Cmd": ["bash"],
        "WorkingDir": "/home/developer",
    });
    let digest = oci::write(layers, &config, &folder.join("layout"))?;
    fs::write(folder.join("digest"), digest)?;
    Ok(fs::remove_dir_all(parts)?)
}

fn layer(parts: &Path, name: &str) -> Outcome<oci::Layer> {
    let file = parts.join(format!("{name}.tar.gz"));
    let said = output(Command::new("sha256sum").arg(&file))?;
    let digest = said.split_whitespace().next().unwrap_or_default();
    let content = fs::read_to_string(parts.join(format!("{name}.digest")))?;
    Ok(oci::Layer {
        digest: digest.to_owned(),
        content: content.trim().to_owned(),
        file,
    })
}

/// A hash of all inputs of the image that are on this machine.
fn key(variant: Variant, recipe: &Path, sources: &[PathBuf]) -> Outcome<String> {
    let mut files = files(recipe)?;
    files.extend_from_slice(sources);
    let mut contents = vec![
        ("variant".to_owned(), variant.name().as_bytes().to_vec()),
        ("suite".to_owned(), debian::SUITE.as_bytes().to_vec()),
        (
            "machine".to_owned(),
            std::env::consts::ARCH.as_bytes().to_vec(),
        ),
    ];
    for file in files {
        let name = file.strip_prefix(recipe).unwrap_or(&file);
        contents.push((name.display().to_string(), fs::read(&file)?));
    }
    let borrowed = contents.iter().map(|(n, c)| (n.as_str(), c.as_slice()));
    Ok(cache::key(borrowed))
}

/// The files of the recipe, without the documentation.
fn files(folder: &Path) -> Outcome<Vec<PathBuf>> {
    let mut entries: Vec<PathBuf> = fs::read_dir(folder)?
        .map(|entry| entry.map(|e| e.path()))
        .collect::<Result<_, _>>()?;
    entries.sort();
    let mut found = Vec::new();
    for path in entries {
        if path.is_dir() {
            found.extend(files(&path)?);
        } else if path.extension().is_none_or(|e| e != "md") {
            found.push(path);
        }
    }
    Ok(found)
}

/// Runs a command with its output in a file. An error shows the end of that file.
fn logged(command: &mut Command, log: &Path) -> Outcome<()> {
    let file = fs::File::create(log)?;
    let status = command
        .stdin(Stdio::null())
        .stdout(file.try_clone()?)
        .stderr(file)
        .status()
        .map_err(|e| format!("{command:?}: {e}; {PREREQUISITES}"))?;
    if status.success() {
        return Ok(());
    }
    let text = fs::read_to_string(log)?;
    let lines: Vec<&str> = text.lines().collect();
    let end = lines[lines.len().saturating_sub(20)..].join("\n");
    let hint = match status.code() {
        Some(NO_SUCH_PROGRAM) => PREREQUISITES,
        _ => "",
    };
    Err(format!(
        "the image's build ended with {status}, see {}:\n{end}\n{hint}",
        log.display()
    )
    .into())
}
