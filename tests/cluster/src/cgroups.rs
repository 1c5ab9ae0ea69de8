//! The cluster's cgroups: one folder in each hierarchy. The cluster sees nothing outside this
//! folder, and `down` removes it.
//!
//! Cgroup version 1 has one hierarchy per controller, version 2 has a single one. The table of
//! mounts shows both. Version 2 has two rules of its own:
//!
//! - Only a cgroup without processes of its own can enable controllers for its children. So the
//!   parts are in a leaf cgroup beside the cgroups of the containers.
//! - The root must enable the controllers that container limits use. `enter` enables them in the
//!   root's `cgroup.subtree_control`. They stay enabled, because other programs on the machine may
//!   rely on them.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use nix::errno::Errno;
use nix::mount::{MsFlags, mount};
use nix::sched::{CloneFlags, unshare};

use crate::cache;
use crate::wait::{self, Deadline};

/// The leaf cgroup of the parts.
const PARTS: &str = "parts";
/// The controllers of version 2 that container limits need.
const CONTROLLERS: &[&str] = &["cpuset", "cpu", "io", "memory", "pids"];

/// What can go wrong with the cluster's cgroups.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A cgroup cannot be created or entered.
    #[error(transparent)]
    Cache(#[from] cache::Error),
    /// A cgroup still contains processes.
    #[error(transparent)]
    Wait(#[from] wait::Error),
    /// The kernel refuses a cgroup namespace.
    #[error("unshare the cgroup namespace: {0}")]
    Namespace(Errno),
    /// The cluster's folder cannot be mounted over its hierarchy.
    #[error("mount {folder} over its hierarchy: {source}")]
    Mount {
        /// The cluster's folder.
        folder: String,
        /// The kernel's error.
        source: Errno,
    },
}

/// Moves this process into the cgroup of that name, in each hierarchy. This process and its
/// descendants then see this cgroup as the root.
pub fn enter(name: &str) -> Result<(), Error> {
    let mountinfo = Path::new("/proc/self/mountinfo");
    let hierarchies = hierarchies(&cache::read(mountinfo)?);
    for hierarchy in &hierarchies {
        hand_down_controllers(hierarchy);
        make(&hierarchy.join(name))?;
        join(&hierarchy.join(name))?;
    }
    unshare(CloneFlags::CLONE_NEWCGROUP).map_err(Error::Namespace)?;
    for hierarchy in &hierarchies {
        let folder = hierarchy.join(name);
        mount(
            Some(&folder),
            hierarchy,
            None::<&str>,
            MsFlags::MS_BIND,
            None::<&str>,
        )
        .map_err(|source| Error::Mount {
            folder: folder.display().to_string(),
            source,
        })?;
        make(&hierarchy.join(PARTS))?;
        join(&hierarchy.join(PARTS))?;
    }
    Ok(())
}

/// Enables the controllers in version 2; version 1 has no such file. The kernel refuses a
/// controller that it lacks, and a container that needs this controller then fails with a message
/// of its own.
fn hand_down_controllers(root: &Path) {
    let file = root.join("cgroup.subtree_control");
    if file.exists() {
        for controller in CONTROLLERS {
            let _ = fs::write(&file, format!("+{controller}"));
        }
    }
}

fn make(folder: &Path) -> Result<(), cache::Error> {
    cache::create_folder(folder)?;
    // Version 1: a process cannot enter a cpuset that has no processors and no memory nodes.
    for file in ["cpuset.cpus", "cpuset.mems"] {
        let own = folder.join(file);
        let unset = fs::read_to_string(&own).is_ok_and(|text| text.trim().is_empty());
        let version_1 = folder.join("tasks").exists();
        if let (true, true, Some(parent)) = (unset, version_1, folder.parent()) {
            cache::write(&own, cache::read(&parent.join(file))?)?;
        }
    }
    Ok(())
}

/// Moves this process into a cgroup. The kernel takes 0 for the writing process.
fn join(folder: &Path) -> Result<(), cache::Error> {
    cache::write(&folder.join("cgroup.procs"), "0")
}

/// Removes the cgroup of that name, and all cgroups below it, from each hierarchy.
///
/// The cgroups are empty once their processes have ended, but the kernel keeps empty folders.
pub fn remove(name: &str) -> Result<(), Error> {
    let mountinfo = Path::new("/proc/self/mountinfo");
    let deadline = Deadline::after(Duration::from_secs(10));
    for hierarchy in hierarchies(&cache::read(mountinfo)?) {
        let folder = hierarchy.join(name);
        let what = format!("{} to be empty", folder.display());
        // A process that was just killed stays in its cgroup for a moment.
        wait::until(&what, deadline, Duration::from_millis(50), || {
            remove_tree(&folder).map_err(|error| error.to_string())
        })?;
    }
    Ok(())
}

/// The mount points of all cgroup hierarchies. In `proc_pid_mountinfo(5)` the mount point is field
/// 5, and the type follows the separating hyphen.
fn hierarchies(mountinfo: &str) -> Vec<PathBuf> {
    mountinfo
        .lines()
        .filter_map(|line| {
            let (mount, filesystem) = line.split_once(" - ")?;
            let kind = filesystem.split(' ').next()?;
            let point = mount.split(' ').nth(4)?;
            matches!(kind, "cgroup" | "cgroup2").then(|| PathBuf::from(point))
        })
        .collect()
}

/// Removes only folders, the innermost first: the kernel removes a cgroup's files with its folder.
fn remove_tree(folder: &Path) -> io::Result<()> {
    let listing = match fs::read_dir(folder) {
        Ok(listing) => listing,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(error),
    };
    for entry in listing {
        let entry = entry?;
        if entry.file_type()?.is_dir() {
            remove_tree(&entry.path())?;
        }
    }
    fs::remove_dir(folder)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cgroups_of_both_versions_are_found_and_nothing_else() {
        let mounts = "\
25 22 0:23 / /sys/fs/cgroup rw,relatime - tmpfs tmpfs rw,mode=755
26 25 0:24 / /sys/fs/cgroup/cpu rw,relatime shared:5 - cgroup cgroup rw,cpu
35 25 0:33 / /sys/fs/cgroup/unified rw,relatime - cgroup2 cgroup2 rw
";
        assert_eq!(
            hierarchies(mounts),
            [
                PathBuf::from("/sys/fs/cgroup/cpu"),
                PathBuf::from("/sys/fs/cgroup/unified"),
            ]
        );
    }
}
