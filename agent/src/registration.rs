//! Files that a process locks as long as it runs.
//!
//! The kernel releases a lock when the last process that holds it ends. Locks work across the
//! containers of a pod. Process ids do not, because each container has its own.

use std::fs::{self, File, OpenOptions, Permissions};
use std::io::{self, Write};
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

use nix::errno::Errno;
use nix::fcntl::{FcntlArg, FdFlag, Flock, FlockArg, fcntl};
use nix::unistd::{AccessFlags, access};

use crate::file;

/// Prefix of files that are not locked yet.
const UNFINISHED: &str = ".";

/// A file that this process has locked. It is removed when the value is dropped.
#[derive(Debug)]
pub struct Registration {
    path: PathBuf,
    lock: Flock<File>,
}

impl Registration {
    /// The locked file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Lets the commands that this process starts hold the lock, too. The file then stays locked until
    /// the last of them ends.
    pub fn inherit(&self) -> io::Result<()> {
        fcntl(&*self.lock, FcntlArg::F_SETFD(FdFlag::empty()))?;
        Ok(())
    }
}

impl Drop for Registration {
    fn drop(&mut self) {
        // A file without a lock has no effect. Another process removes it.
        let _ = fs::remove_file(&self.path);
    }
}

/// Creates the folder. Every user may create files in it. No user may remove another user's files.
/// The permissions of an existing volume of a pod are kept.
pub fn prepare(folder: &Path) -> io::Result<()> {
    fs::create_dir_all(folder)?;
    match fs::set_permissions(folder, Permissions::from_mode(0o1777)) {
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
            access(folder, AccessFlags::W_OK).map_err(Into::into)
        }
        done => done,
    }
}

/// Writes and locks a file that every user may read. The file gets its name once it is locked.
pub fn register(folder: &Path, file_name: &str, content: &[u8]) -> io::Result<Registration> {
    let unfinished = folder.join(format!("{UNFINISHED}{file_name}"));
    let path = folder.join(file_name);
    let mut file = OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o644)
        .open(&unfinished)?;
    file.write_all(content)?;
    let lock = Flock::lock(file, FlockArg::LockExclusiveNonblock)
        .map_err(|(_, error)| io::Error::from(error))?;
    fs::rename(&unfinished, &path)?;
    Ok(Registration { path, lock })
}

/// The locked files among the first `most` files of a folder. Files without a lock are removed if the
/// permissions allow that.
pub fn locked(folder: &Path, most: usize) -> io::Result<Vec<File>> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder)?.take(most) {
        let path = entry?.path();
        let name = path.file_name().map(|name| name.to_string_lossy());
        if name.is_none_or(|name| name.starts_with(UNFINISHED)) {
            continue;
        }
        let Ok(file) = file::open(&path) else {
            continue;
        };
        match if_locked(file)? {
            Some(file) => found.push(file),
            None => {
                // Its process has ended. In a pod, the file may belong to another user.
                let _ = fs::remove_file(&path);
            }
        }
    }
    Ok(found)
}

/// The file, if a process holds its lock.
pub fn if_locked(file: File) -> io::Result<Option<File>> {
    match Flock::lock(file, FlockArg::LockSharedNonblock) {
        Err((file, Errno::EWOULDBLOCK)) => Ok(Some(file)),
        Err((_, error)) => Err(error.into()),
        Ok(_unlocked) => Ok(None),
    }
}
