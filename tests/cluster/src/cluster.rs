//! A cluster as its users see it: its addresses, its files and its condition.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::cache::{self, Cache};
use crate::layout::cgroup;
use crate::network::Addresses;
use crate::processes::Identity;
use crate::state::{self, Record, StateFolder, Verdict, verdict};
use crate::supervisor::PartStatus;

/// What can go wrong when a cluster is looked up.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The cache folder is unknown.
    #[error(transparent)]
    Cache(#[from] cache::Error),
    /// The state folder cannot be read.
    #[error(transparent)]
    State(#[from] state::Error),
    /// There is no such cluster.
    #[error("there is no cluster `{name}`: start it with `cargo xtask cluster up --name {name}`")]
    Absent {
        /// The name that was asked for.
        name: String,
    },
    /// The cluster exists and is not up.
    #[error("cluster `{name}` is not up ({how}): see `cargo xtask cluster status --name {name}`")]
    NotUp {
        /// The name that was asked for.
        name: String,
        /// Its condition.
        how: String,
    },
    /// There is no such program.
    #[error("cluster has no program `{name}`: there are {known}")]
    NoProgram {
        /// The name that was asked for.
        name: String,
        /// The programs that the cluster has.
        known: String,
    },
}

/// A cluster that exists.
#[derive(Debug, Clone)]
pub struct Cluster {
    record: Record,
    state: StateFolder,
}

impl Cluster {
    /// Finds the cluster with that name, in any condition.
    pub fn find(cache: &Cache, name: &str) -> Result<Self, Error> {
        let state = StateFolder::of(cache, name)?;
        match state.record()? {
            Some(record) => Ok(Self { record, state }),
            None => Err(Error::Absent {
                name: name.to_owned(),
            }),
        }
    }

    /// Finds the cluster with that name in the cache folder that the environment names. Fails if
    /// the cluster is not up.
    pub fn open(name: &str) -> Result<Self, Error> {
        let cluster = Self::find(&Cache::from_environment()?, name)?;
        match cluster.verdict()? {
            Verdict::Up => Ok(cluster),
            other => Err(Error::NotUp {
                name: name.to_owned(),
                how: other.to_string(),
            }),
        }
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.record.name
    }

    /// Its record.
    pub fn record(&self) -> &Record {
        &self.record
    }

    /// Its state folder.
    pub fn state(&self) -> &StateFolder {
        &self.state
    }

    /// Its addresses.
    pub fn addresses(&self) -> Addresses {
        Addresses::new(self.record.index)
    }

    /// The administrator's kubeconfig.
    pub fn kubeconfig(&self) -> PathBuf {
        self.state.kubeconfig()
    }

    /// The registry, as host and port. It speaks plain HTTP, and every user of this machine can use
    /// it.
    pub fn registry(&self) -> String {
        self.addresses().registry()
    }

    /// The EC2 emulator's URL.
    pub fn emulator_url(&self) -> String {
        self.addresses().emulator()
    }

    /// The path of a program of the cluster, such as `kubectl`, `crossplane`, `crossplane-core`,
    /// `helm` or `crane`.
    pub fn program(&self, name: &str) -> Result<PathBuf, Error> {
        let path = self.state.bin().join(name);
        if path.exists() {
            return Ok(path);
        }
        Err(Error::NoProgram {
            name: name.to_owned(),
            known: names_in(&self.state.bin()).join(", "),
        })
    }

    /// A call of `kubectl` as the administrator. The caller adds the arguments.
    pub(crate) fn kubectl(&self) -> Result<Command, Error> {
        let mut kubectl = Command::new(self.program("kubectl")?);
        kubectl.env("KUBECONFIG", self.kubeconfig());
        Ok(kubectl)
    }

    /// The log of a part.
    pub fn log(&self, part: &str) -> PathBuf {
        self.state.log(part)
    }

    /// The names of all logs.
    pub fn logs(&self) -> Vec<String> {
        names_in(&self.state.logs())
            .iter()
            .filter_map(|name| name.strip_suffix(".log"))
            .map(str::to_owned)
            .collect()
    }

    /// The statuses of its parts.
    pub fn parts(&self) -> Result<Vec<PartStatus>, Error> {
        Ok(self.state.parts()?)
    }

    /// Its condition.
    pub fn verdict(&self) -> Result<Verdict, Error> {
        let alive = self.state.init()?.is_some_and(Identity::is_alive);
        Ok(verdict(Some(&self.record), alive, &self.state.parts()?))
    }

    /// The cgroup that contains all its processes.
    pub fn cgroup(&self) -> String {
        cgroup(self.addresses())
    }

    /// The folder of the cluster's programs.
    pub fn programs(&self) -> PathBuf {
        self.state.bin()
    }

    /// Environment variables that make kubectl, crossplane and the AWS tools talk to this cluster.
    pub fn variables(&self) -> [(&'static str, String); 8] {
        let core = self.programs().join("crossplane-core");
        [
            ("KUBECONFIG", self.kubeconfig().display().to_string()),
            ("CROSSPLANE_CORE", core.display().to_string()),
            ("AWS_ENDPOINT_URL", self.emulator_url()),
            ("AWS_ACCESS_KEY_ID", "test".to_owned()),
            ("AWS_SECRET_ACCESS_KEY", "test".to_owned()),
            ("AWS_REGION", "us-east-1".to_owned()),
            ("AWS_DEFAULT_REGION", "us-east-1".to_owned()),
            ("GPU_WORKSPACES_REGISTRY", self.registry()),
        ]
    }

    /// Shell commands that set these variables and put the cluster's programs on `PATH`.
    pub fn environment(&self) -> String {
        let bin = self.programs();
        let variables = self.variables();
        let mut lines: Vec<_> = variables
            .iter()
            .map(|(name, value)| format!("export {name}={}", quoted(value)))
            .collect();
        let bin = quoted(&bin.display().to_string());
        lines.push(format!("export PATH={bin}:\"$PATH\"\n"));
        lines.join("\n")
    }
}

/// Quotes a text for a POSIX shell if necessary.
fn quoted(text: &str) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"/._-:@+%".contains(&byte);
    if text.bytes().all(plain) {
        text.to_owned()
    } else {
        format!("'{}'", text.replace('\'', r"'\''"))
    }
}

fn names_in(folder: &Path) -> Vec<String> {
    let mut names: Vec<String> = std::fs::read_dir(folder)
        .into_iter()
        .flatten()
        .flatten()
        .map(|entry| entry.file_name().to_string_lossy().into_owned())
        .collect();
    names.sort();
    names
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::state::Stage;
    use jiff::Timestamp;

    #[test]
    fn a_shell_that_evaluates_the_environment_talks_to_this_cluster() {
        let cluster = Cluster {
            record: Record {
                name: "test".to_owned(),
                index: 1,
                created: Timestamp::UNIX_EPOCH,
                stage: Stage::Ready,
                kubernetes: String::new(),
                crossplane: String::new(),
            },
            state: StateFolder::at("/cache/clusters/test".into()),
        };
        let text = cluster.environment();
        for line in [
            "export KUBECONFIG=/cache/clusters/test/kubeconfigs/admin\n",
            "export AWS_ENDPOINT_URL=http://10.244.1.1:4566\n",
            "export GPU_WORKSPACES_REGISTRY=10.244.1.1:5000\n",
            "export CROSSPLANE_CORE=/cache/clusters/test/bin/crossplane-core\n",
            "export PATH=/cache/clusters/test/bin:\"$PATH\"\n",
        ] {
            assert!(text.contains(line), "{line} is not in:\n{text}");
        }
    }

    #[test]
    fn a_path_cannot_smuggle_commands_into_the_shell() {
        assert_eq!(quoted("/a b;rm"), "'/a b;rm'");
        assert_eq!(quoted("it's"), r"'it'\''s'");
    }
}
