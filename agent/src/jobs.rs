//! Registered jobs. Each job has a [file](registration), which is locked while the job runs.

use std::fs::File;
use std::io::{self, Read};
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::log::Log;
use crate::registration::{self, Registration};
use crate::signs::Look;

/// Every user may write to the folder, so the number and the size of the files that are read are
/// limited.
const MOST: usize = 1_000;
const LONGEST: u64 = 4_096;
const LONGEST_NAME: usize = 64;

/// A running job.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Job {
    /// The name of the job. The user who registered the job chose it.
    pub name: String,
    /// When the job was registered.
    pub since: Option<Timestamp>,
    /// The user id of the job's owner. User names may differ between containers.
    pub user: u32,
}

/// The content of a job's file. It has no arguments, because they may hold secrets and every user
/// can read the file.
#[derive(Serialize, Deserialize)]
struct Entry {
    name: String,
    since: Timestamp,
}

/// Registers a job of this process.
pub fn register(folder: &Path, name: &str, now: Timestamp) -> io::Result<Registration> {
    let entry = Entry {
        name: name.chars().take(LONGEST_NAME).collect(),
        since: now,
    };
    let file_name = format!("{}-{}.json", std::process::id(), now.as_nanosecond());
    registration::register(folder, &file_name, &serde_json::to_vec(&entry)?)
}

/// The running jobs. Files without a lock are removed if the permissions allow that.
pub fn running(folder: &Path) -> io::Result<Vec<Job>> {
    let files = registration::locked(folder, MOST)?.into_iter();
    let mut jobs = files.map(read).collect::<io::Result<Vec<_>>>()?;
    jobs.sort_by(|a, b| (a.since, &a.name).cmp(&(b.since, &b.name)));
    Ok(jobs)
}

/// Reads the registered jobs.
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

/// A locked file is a job, even if its content is invalid.
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

/// A name without control characters, which a terminal would interpret.
fn printable(name: &str) -> String {
    let harmless = name.chars().filter(|c| !c.is_control());
    harmless.take(LONGEST_NAME).collect()
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::PermissionsExt;
    use std::path::PathBuf;

    use super::*;
    use crate::registration::prepare;

    fn folder(name: &str) -> PathBuf {
        let folder = std::env::temp_dir().join(format!("agent-{name}-{}", std::process::id()));
        prepare(&folder).unwrap();
        folder
    }

    #[test]
    fn a_job_is_listed_while_it_runs() {
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
    fn files_without_a_lock_are_removed() {
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
    fn every_user_may_register_jobs_and_none_may_remove_those_of_others() {
        let folder = folder("mode");
        let mode = fs::metadata(&folder).unwrap().permissions().mode();
        assert_eq!(mode & 0o7777, 0o1777);
        fs::remove_dir_all(&folder).unwrap();
    }
}
