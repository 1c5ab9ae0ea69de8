//! Where things are on a machine. A test's machine is a folder.

use std::path::{Path, PathBuf};

/// Where the agent keeps what it knows until the machine stops.
pub const RUN: &str = "/run/gpu-workspace";

/// A machine's file system.
#[derive(Clone, Debug)]
pub struct Places {
    root: PathBuf,
    run: PathBuf,
}

impl Places {
    /// The machine whose file system is at `root`, and that keeps its state in `run`, as
    /// the machine itself names it.
    pub fn new(root: &Path, run: &Path) -> Self {
        let root = root.to_owned();
        let run = below(&root, run);
        Self { root, run }
    }

    /// Where an absolute path of the machine is.
    pub fn at(&self, path: impl AsRef<Path>) -> PathBuf {
        below(&self.root, path.as_ref())
    }

    /// The folder with what the agent keeps.
    pub fn run(&self) -> &Path {
        &self.run
    }

    /// The folder with the jobs that run.
    pub fn jobs(&self) -> PathBuf {
        self.run.join("jobs")
    }

    /// What hooks print where nobody is root.
    pub fn hook_log(&self) -> PathBuf {
        self.run.join("hooks.log")
    }

    /// The file with the last signs of use.
    pub fn state(&self) -> PathBuf {
        self.run.join("activity.json")
    }

    /// The file that says that hooks were run before this stop.
    pub fn stop(&self) -> PathBuf {
        self.run.join("pre-stop")
    }
}

fn below(root: &Path, path: &Path) -> PathBuf {
    root.join(path.strip_prefix("/").unwrap_or(path))
}
