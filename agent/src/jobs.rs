//! Registered jobs: a file for each, locked while the job runs.
//!
//! The kernel lets go of a lock with the process that has it, however that ends, and locks
//! reach across the containers of a pod, where process numbers do not.

use std::fs::{self, File, OpenOptions, Permissions};
use std::io::{self, Read, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

use jiff::Timestamp;
use nix::errno::Errno;
use nix::fcntl::{Flock, FlockArg};
use nix::unistd::{AccessFlags, access};
use serde::{Deserialize, Serialize};

use crate::file;
use crate::log::Log;
use crate::signs::Look;

/// The folder is anybody's to write to: what is beyond these is not read.
const MOST: usize = 1_000;
const LONGEST: u64 = 4_096;
const LONGEST_NAME: usize = 64;
/// Files with this prefix are not locked yet.
const UNFINISHED: &str = ".";

/// A job that runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Job {
    /// What it is called. Whoever registered it chose it.
    pub name: String,
    /// When it was registered.
    pub since: Option<Timestamp>,
    /// Whose it is: a number, since names may be those of another container.
    pub user: u32,
}

/// What a job's file says. No arguments: they may hold secrets, and everybody reads it.
#[derive(Serialize, Deserialize)]
struct Entry {
    name: String,
    since: Timestamp,
}

/// A job of this process; it is over when this is dropped.
#[derive(Debug)]
pub struct Registration {
    path: PathBuf,
    _lock: Flock<File>,
}

impl Drop for Registration {
    fn drop(&mut self) {
        // What is left without its lock is no job, and somebody else removes it.
        let _ = fs::remove_file(&self.path);
    }
}

/// Makes the folder, for everybody to write to and nobody to remove what is another's. A
/// volume that is there already is as its pod has it.
pub fn prepare(folder: &Path) -> io::Result<()> {
    fs::create_dir_all(folder)?;
    match fs::set_permissions(folder, Permissions::from_mode(0o1777)) {
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
            access(folder, AccessFlags::W_OK).map_err(Into::into)
        }
        done => done,
    }
}

/// Registers a job of this process.
pub fn register(folder: &Path, name: &str, now: Timestamp) -> io::Result<Registration> {
    let entry = Entry {
        name: name.chars().take(LONGEST_NAME).collect(),
        since: now,
    };
    let file_name = format!("{}-{}.json", std::process::id(), now.as_nanosecond());
    let unfinished = folder.join(format!("{UNFINISHED}{file_name}"));
    let path = folder.join(file_name);
    let mut file = OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o644)
        .open(&unfinished)?;
    file.write_all(&serde_json::to_vec(&entry)?)?;
    let lock = Flock::lock(file, FlockArg::LockExclusiveNonblock)
        .map_err(|(_, error)| io::Error::from(error))?;
    fs::rename(&unfinished, &path)?;
    Ok(Registration { path, _lock: lock })
}

/// The jobs that run. What is left of others is removed, as far as that is allowed.
pub fn running(folder: &Path) -> io::Result<Vec<Job>> {
    let mut jobs = Vec::new();
    for entry in fs::read_dir(folder)?.take(MOST) {
        let path = entry?.path();
        let name = path.file_name().map(|name| name.to_string_lossy());
        if name.is_none_or(|name| name.starts_with(UNFINISHED)) {
            continue;
        }
        let Ok(file) = file::open(&path) else {
            continue;
        };
        match Flock::lock(file, FlockArg::LockSharedNonblock) {
            Err((file, Errno::EWOULDBLOCK)) => jobs.push(read(file)?),
            Err((_, error)) => return Err(error.into()),
            Ok(_unlocked) => {
                // Its owner is gone. In a pod it may be another user's to remove.
                let _ = fs::remove_file(&path);
            }
        }
    }
    jobs.sort_by(|a, b| (a.since, &a.name).cmp(&(b.since, &b.name)));
    Ok(jobs)
}

/// Looks at the registered jobs.
pub fn look(folder: &Path, log: &Log) -> Look {
    match running(folder) {
        Ok(jobs) => {
            log.fine("job");
            if jobs.is_empty() {
                Look::Idle { last: None }
            } else {
                Look::Active
            }
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => Look::Absent,
        Err(error) => {
            log.problem("job", "folder", &format!("{}: {error}", folder.display()));
            Look::Unknown
        }
    }
}

/// A locked file counts, whatever is in it.
fn read(file: File) -> io::Result<Job> {
    let user = file.metadata()?.uid();
    let mut content = Vec::new();
    file.take(LONGEST).read_to_end(&mut content)?;
    let entry = serde_json::from_slice::<Entry>(&content).ok();
    let name = entry.as_ref().map_or("?", |entry| entry.name.as_str());
    Ok(Job {
        name: printable(name),
        since: entry.as_ref().map(|entry| entry.since),
        user,
    })
}

/// A name without what a terminal would obey.
fn printable(name: &str) -> String {
    let harmless = name.chars().filter(|c| !c.is_control());
    harmless.take(LONGEST_NAME).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn folder(name: &str) -> PathBuf {
        let folder = std::env::temp_dir().join(format!("agent-{name}-{}", std::process::id()));
        prepare(&folder).unwrap();
        folder
    }

    #[test]
    fn a_job_is_there_while_it_runs() {
        let folder = folder("job");
        let log = Log::default();
        assert_eq!(look(&folder, &log), Look::Idle { last: None });
        let now = "2026-11-22T10:00:00Z".parse().unwrap();
        let job = register(&folder, "train\u{1b}[2J", now).unwrap();
        let found = running(&folder).unwrap();
        assert_eq!(found.len(), 1);
        assert_eq!(
            (found[0].name.as_str(), found[0].since),
            ("train[2J", Some(now))
        );
        assert_eq!(look(&folder, &log), Look::Active);
        drop(job);
        assert_eq!(running(&folder).unwrap(), []);
        fs::remove_dir_all(&folder).unwrap();
        assert_eq!(look(&folder, &log), Look::Absent);
    }

    #[test]
    fn files_that_nobody_has_locked_are_no_jobs_and_go() {
        let folder = folder("left");
        fs::write(folder.join("left.json"), "{}").unwrap();
        fs::write(folder.join(".unfinished.json"), "").unwrap();
        nix::unistd::mkfifo(&folder.join("pipe"), nix::sys::stat::Mode::S_IRWXU).unwrap();
        assert_eq!(running(&folder).unwrap(), []);
        assert!(!folder.join("left.json").exists());
        assert!(
            folder.join(".unfinished.json").exists(),
            "about to be locked"
        );
        fs::remove_dir_all(&folder).unwrap();
    }

    #[test]
    fn everybody_registers_jobs_and_nobody_removes_those_of_others() {
        let folder = folder("mode");
        let mode = fs::metadata(&folder).unwrap().permissions().mode();
        assert_eq!(mode & 0o7777, 0o1777);
        fs::remove_dir_all(&folder).unwrap();
    }
}
