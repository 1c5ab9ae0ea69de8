//! Removes the cgroups that a cluster leaves behind.
//!
//! Ending its processes empties them, and the kernel keeps the empty folders.
//! Under cgroup version 1 there is one folder per hierarchy, under version 2 one
//! in all; both are found by the mounts. Under version 2 the runtime may also
//! have switched controllers on in the root's `cgroup.subtree_control`, which
//! other users of the machine share and which is therefore left as it is.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::wait::{self, Deadline};

/// Removes every cgroup of that name, below the root of each hierarchy.
pub fn remove(name: &str) -> Result<(), wait::Error> {
    let mounts = fs::read_to_string("/proc/self/mountinfo").unwrap_or_default();
    let deadline = Deadline::after(Duration::from_secs(10));
    for hierarchy in hierarchies(&mounts) {
        let folder = hierarchy.join(name);
        let what = format!("{} to be empty", folder.display());
        // A process that was just killed occupies its cgroup a little longer.
        wait::until(&what, deadline, Duration::from_millis(50), || {
            remove_tree(&folder).map_err(|error| error.to_string())
        })?;
    }
    Ok(())
}

/// The mount points of all cgroup hierarchies, by proc_pid_mountinfo(5): the mount
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
