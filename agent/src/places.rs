//! Paths on the machine. In tests, the machine is a folder.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

/// The folder for the agent's state. It is empty after a restart of the machine.
pub const RUN: &str = "/run/gpu-workspace";

/// The file system of a machine.
#[derive(Clone, Debug)]
pub struct Places {
    root: PathBuf,
    run: PathBuf,
}

impl Places {
    /// The machine whose file system is at `root`. `run` is the folder for the agent's state, as an
    /// absolute path on the machine.
    pub fn new(root: &Path, run: &Path) -> Self {
        let root = root.to_owned();
        let run = below(&root, run);
        Self { root, run }
    }

    /// The arguments with which another process of this program has the same paths.
    pub fn arguments(&self) -> [OsString; 4] {
        let root = self.root.clone().into_os_string();
        let run = self.run.strip_prefix(&self.root).unwrap_or(&self.run);
        let run = Path::new("/").join(run).into_os_string();
        ["--root".into(), root, "--run-dir".into(), run]
    }

    /// The real path of an absolute path on the machine.
    pub fn at(&self, path: impl AsRef<Path>) -> PathBuf {
        below(&self.root, path.as_ref())
    }

    /// The folder for the agent's state.
    pub fn run(&self) -> &Path {
        &self.run
    }

    /// The folder with the registered jobs.
    pub fn jobs(&self) -> PathBuf {
        self.run.join("jobs")
    }

    /// The folder with the connections that only watch.
    pub fn watching(&self) -> PathBuf {
        self.run.join("watching")
    }

    /// The log of the hooks if the agent does not run as root.
    pub fn hook_log(&self) -> PathBuf {
        self.run.join("hooks.log")
    }

    /// The file with the last report and the last signs of use.
    pub fn state(&self) -> PathBuf {
        self.run.join("activity.json")
    }

    /// The file that records that the hooks have run before this stop.
    pub fn stop(&self) -> PathBuf {
        self.run.join("pre-stop")
    }
}

fn below(root: &Path, path: &Path) -> PathBuf {
    root.join(path.strip_prefix("/").unwrap_or(path))
}
