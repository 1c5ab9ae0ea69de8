//! The cluster that a command works on: a local one, or the current one of the kubeconfig.

use std::error::Error;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use clap::Args;
use local_cluster::cache::Cache;
use local_cluster::progress::Progress;
use local_cluster::{Cluster, binaries};

use crate::process::output;

type Outcome<T> = Result<T, Box<dyn Error>>;

#[derive(Args, Clone)]
pub(crate) struct Target {
    /// Name of the local cluster
    #[arg(long, default_value = "demo", conflicts_with = "current")]
    pub(crate) name: String,
    /// Use the current kubeconfig's cluster instead of a local one
    #[arg(long)]
    pub(crate) current: bool,
    /// With --current: the registry to push to, as the cluster reaches it
    #[arg(long, env = "REGISTRY", requires = "current")]
    pub(crate) registry: Option<String>,
}

/// A cluster and the programs that talk to it.
pub(crate) struct Resolved {
    /// `None` means the kubeconfig that the environment names.
    kubeconfig: Option<PathBuf>,
    /// The registry, as host and port.
    pub(crate) registry: String,
    /// The EC2 emulator's URL, if the cluster has an emulator.
    pub(crate) emulator: Option<String>,
    /// The crossplane CLI.
    pub(crate) crossplane: PathBuf,
    kubectl: PathBuf,
}

impl Target {
    /// Finds the cluster and its programs.
    pub(crate) fn resolve(&self) -> Outcome<Resolved> {
        if self.current {
            let registry = self.registry.clone().ok_or(
                "CLUSTER=current needs REGISTRY, a registry that this machine can push to and \
                 the cluster can pull from",
            )?;
            return Ok(Resolved {
                kubeconfig: None,
                registry,
                emulator: std::env::var("AWS_ENDPOINT_URL").ok(),
                crossplane: on_path("crossplane")?,
                kubectl: on_path("kubectl")?,
            });
        }
        let cluster = Cluster::open(&self.name)?;
        Ok(Resolved {
            kubeconfig: Some(cluster.kubeconfig()),
            registry: cluster.registry(),
            emulator: Some(cluster.emulator_url()),
            crossplane: cluster.program("crossplane")?,
            kubectl: cluster.program("kubectl")?,
        })
    }
}

impl Resolved {
    /// Applies a file of this repository.
    pub(crate) fn apply_file(&self, path: &str) -> Outcome<()> {
        let mut apply = self.kubectl();
        apply.args(["apply", "-f"]).arg(crate::root().join(path));
        output(&mut apply)?;
        Ok(())
    }

    /// Applies objects through standard input, because credentials must never appear in a command
    /// line.
    pub(crate) fn apply_text(&self, text: &str) -> Outcome<()> {
        let mut running = self
            .kubectl()
            .args(["apply", "-f", "-"])
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .spawn()?;
        if let Some(mut input) = running.stdin.take() {
            input.write_all(text.as_bytes())?;
        }
        let status = running.wait()?;
        if status.success() {
            Ok(())
        } else {
            Err(format!("kubectl apply: {status}").into())
        }
    }

    /// A call of kubectl on this cluster. The caller adds the arguments.
    pub(crate) fn kubectl(&self) -> Command {
        self.command(&self.kubectl)
    }

    /// A call of a program on this cluster. The caller adds the arguments.
    pub(crate) fn command(&self, program: &Path) -> Command {
        let mut command = Command::new(program);
        if let Some(kubeconfig) = &self.kubeconfig {
            command.env("KUBECONFIG", kubeconfig);
        }
        command
    }
}

/// The path of crane, which reads registries. crane is built if necessary.
pub(crate) fn crane(progress: &Progress) -> Outcome<PathBuf> {
    pinned("crane", progress)
}

/// The path of the crossplane CLI, in the version of local clusters. It is built if necessary.
pub(crate) fn crossplane(progress: &Progress) -> Outcome<PathBuf> {
    pinned("crossplane", progress)
}

/// The path of the program that checks signatures as Crossplane does. It is built if necessary.
#[cfg(test)]
pub(crate) fn signatures(progress: &Progress) -> Outcome<PathBuf> {
    pinned("signatures", progress)
}

fn pinned(program: &str, progress: &Progress) -> Outcome<PathBuf> {
    let cache = Cache::from_environment()?;
    let built = binaries::ensure(&cache, &[program], progress)?;
    Ok(built.path(program)?.to_path_buf())
}

fn on_path(program: &str) -> Outcome<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path)
        .map(|folder| folder.join(program))
        .find(|candidate| candidate.is_file())
        .ok_or_else(|| format!("{program} is not on PATH").into())
}
