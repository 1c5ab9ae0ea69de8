//! The cluster's cgroups: one folder in each hierarchy, which is all that the
//! cluster sees, and which is removed with it.
//!
//! Under cgroup version 1 there is a hierarchy per controller, under version 2 one
//! in all; both are found by the mounts. Version 2 differs in two ways. Only
//! cgroups without processes of their own can hand controllers down, which is why
//! the parts are in a leaf beside the containers. And the root must hand down the
//! controllers that containers are limited by: they are switched on in the root's
//! `cgroup.subtree_control`, and stay on, as others on the machine may rely on it.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use nix::errno::Errno;
use nix::mount::{MsFlags, mount};
use nix::sched::{CloneFlags, unshare};

use crate::cache;
use crate::wait::{self, Deadline};

/// The leaf that the parts are in.
const PARTS: &str = "parts";
/// Version 2's controllers that container limits need.
const CONTROLLERS: &[&str] = &["cpuset", "cpu", "io", "memory", "pids"];

/// What can go wrong with the cluster's cgroups.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A cgroup cannot be made or entered.
    #[error(transparent)]
    Cache(#[from] cache::Error),
    /// Processes remain in it.
    #[error(transparent)]
    Wait(#[from] wait::Error),
    /// The kernel gives no cgroup namespace.
    #[error("unshare the cgroup namespace: {0}")]
    Namespace(Errno),
    /// A hierarchy cannot be replaced by the cluster's part of it.
    #[error("mount {folder} over its hierarchy: {source}")]
    Mount {
        /// The cluster's part.
        folder: String,
        /// Why not.
        source: Errno,
    },
}

/// Moves this process into the cgroup of that name, in each hierarchy, and makes
/// it the root of all that this process and its descendants see.
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

/// Version 2 only: the file does not exist otherwise. A controller that the kernel
/// lacks is refused, and a container that asks for it will say so.
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
    // Version 1 lets no process into a cpuset without processors and memory.
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

/// 0 stands for the process that writes it.
fn join(folder: &Path) -> Result<(), cache::Error> {
    cache::write(&folder.join("cgroup.procs"), "0")
}

/// Removes every cgroup of that name, below the root of each hierarchy.
///
/// Ending its processes empties them, and the kernel keeps the empty folders.
pub fn remove(name: &str) -> Result<(), Error> {
    let mountinfo = Path::new("/proc/self/mountinfo");
    let deadline = Deadline::after(Duration::from_secs(10));
    for hierarchy in hierarchies(&cache::read(mountinfo)?) {
        let folder = hierarchy.join(name);
        let what = format!("{} to be empty", folder.display());
        // A process that was just killed occupies its cgroup a little longer.
        wait::until(&what, deadline, Duration::from_millis(50), || {
            remove_tree(&folder).map_err(|error| error.to_string())
        })?;
    }
    Ok(())
}

/// The mount points of all cgroup hierarchies, by `proc_pid_mountinfo(5)`: the mount
/// point is field 5, and the type follows a hyphen.
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

/// Removes folders only, innermost first: a cgroup's files go with it.
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
