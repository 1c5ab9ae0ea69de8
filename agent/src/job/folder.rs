//! The folder of a job, and the state of the job.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use jiff::Timestamp;
use nix::fcntl::{Flock, FlockArg};
use serde::{Deserialize, Serialize};

use crate::file;
use crate::registration;

const RECORD: &str = "job.json";
const RESULT: &str = "result";
/// The size of the result's file. It has its block from the start, so it can be written on a full
/// disk.
const RESULT_SIZE: usize = 128;
const LONGEST: u64 = 64 * 1024;
const LONGEST_NAME: usize = 40;
/// The most jobs of one name.
const MOST: u32 = 100_000;

/// All jobs of a user.
pub(super) struct Jobs {
    root: PathBuf,
}

/// What is written when a job starts.
#[derive(Serialize, Deserialize, Clone, Debug, PartialEq, Eq)]
pub(super) struct Record {
    /// The name that the user chose.
    pub(super) name: String,
    /// The program and its arguments.
    pub(super) command: Vec<String>,
    /// When the job started.
    pub(super) started: Timestamp,
    /// The file that is locked while a process of the job runs.
    pub(super) lock: PathBuf,
    /// The process group of the command.
    pub(super) group: i32,
    /// When the first process of the group started, in ticks of the kernel (`proc_pid_stat(5)`,
    /// `starttime`).
    pub(super) ticks: u64,
}

/// What became of a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum State {
    /// A process of it runs.
    Running,
    /// It ended with this code.
    Finished {
        /// The exit code.
        code: u8,
        /// When it ended.
        at: Timestamp,
    },
    /// Its machine or its supervisor ended before it.
    Lost,
}

/// A job with its folder.
pub(super) struct Found {
    /// The id.
    pub(super) id: String,
    /// The folder.
    pub(super) folder: PathBuf,
    /// What was written at its start.
    pub(super) record: Record,
}

impl Jobs {
    /// The jobs in a folder; by default in the user's home.
    pub(super) fn new(root: Option<&Path>) -> Result<Self, String> {
        if let Some(root) = root {
            let root = root.to_owned();
            return Ok(Self { root });
        }
        let home = std::env::home_dir().filter(|home| home.is_absolute());
        let home = home.ok_or("the user has no home folder")?;
        let root = home.join(".local/state/gpu-workspace/jobs");
        Ok(Self { root })
    }

    /// Makes the folder of a new job. Its name is the id: the job's name and a number.
    pub(super) fn create(&self, name: &str) -> io::Result<PathBuf> {
        let mut builder = DirBuilder::new();
        builder.mode(0o700);
        builder.recursive(true).create(&self.root)?;
        builder.recursive(false);
        let name = safe(name);
        for number in 1..MOST {
            let folder = self.root.join(format!("{name}-{number}"));
            match builder.create(&folder) {
                Ok(()) => return Ok(folder),
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                Err(error) => return Err(error),
            }
        }
        Err(io::Error::other(format!(
            "there are {MOST} jobs {name}: remove some"
        )))
    }

    /// All jobs that have started, the oldest first.
    pub(super) fn all(&self) -> io::Result<Vec<Found>> {
        let entries = match fs::read_dir(&self.root) {
            Ok(entries) => entries,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            Err(error) => return Err(error),
        };
        let mut all = Vec::new();
        for entry in entries {
            let folder = entry?.path();
            all.extend(found(folder));
        }
        all.sort_by(|a, b| (a.record.started, &a.id).cmp(&(b.record.started, &b.id)));
        Ok(all)
    }

    /// The job of an id; the newest one without an id.
    pub(super) fn find(&self, id: Option<&str>) -> Result<Found, String> {
        let all = self
            .all()
            .map_err(|error| format!("{}: {error}", self.root.display()))?;
        let found = match id {
            Some(id) => all.into_iter().find(|one| one.id == id),
            None => all.into_iter().next_back(),
        };
        found.ok_or_else(|| match id {
            Some(id) => format!("there is no job {id}: gpu-workspace-agent job list"),
            None => "there is no job yet: gpu-workspace-agent job start -- COMMAND".to_owned(),
        })
    }
}

fn found(folder: PathBuf) -> Option<Found> {
    let id = folder.file_name()?.to_str()?.to_owned();
    let content = file::read(&folder.join(RECORD), LONGEST).ok()?;
    let record = serde_json::from_slice(&content).ok()?;
    Some(Found { id, folder, record })
}

impl Found {
    /// What became of the job.
    pub(super) fn state(&self) -> io::Result<State> {
        // The supervisor writes the result before it lets go of the lock.
        if is_locked(&self.record.lock)? {
            return Ok(State::Running);
        }
        let result = file::read(&self.folder.join(RESULT), LONGEST).unwrap_or_default();
        Ok(result_of(&String::from_utf8_lossy(&result)))
    }

    /// Waits until no process of the job runs.
    pub(super) fn ended(&self) -> io::Result<State> {
        match file::open(&self.record.lock) {
            Ok(file) => drop(Flock::lock(file, FlockArg::LockShared).map_err(|(_, error)| error)?),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(error),
        }
        self.state()
    }
}

fn is_locked(path: &Path) -> io::Result<bool> {
    let file = match file::open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(false),
        Err(error) => return Err(error),
    };
    Ok(registration::if_locked(file)?.is_some())
}

fn result_of(text: &str) -> State {
    let words: Vec<&str> = text.split_whitespace().collect();
    if let ["exit", code, at] = words[..]
        && let (Ok(code), Ok(at)) = (code.parse(), at.parse())
    {
        return State::Finished { code, at };
    }
    State::Lost
}

/// Writes what is known when a job starts. From then on it is listed.
pub(super) fn record(folder: &Path, record: &Record) -> io::Result<()> {
    file::replace(&folder.join(RECORD), &serde_json::to_vec(record)?, 0o600)
}

/// Makes the file of the result, with its block.
pub(super) fn reserve_result(folder: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    let mut file = options
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(folder.join(RESULT))?;
    file.write_all(&padded("running"))?;
    file.sync_all()?;
    Ok(file)
}

/// Writes the result into its block.
pub(super) fn write_result(file: &File, code: u8, at: Timestamp) -> io::Result<()> {
    file.write_all_at(&padded(&format!("exit {code} {at:.0}")), 0)?;
    file.sync_all()
}

/// Writes that the job ended with its machine.
pub(super) fn write_lost(file: &File) -> io::Result<()> {
    file.write_all_at(&padded("lost"), 0)?;
    file.sync_all()
}

fn padded(text: &str) -> Vec<u8> {
    format!("{text:<width$}\n", width = RESULT_SIZE - 1).into_bytes()
}

/// A name that is a part of a folder's name, and no option of a program.
fn safe(name: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "._".contains(c);
    let plain = name.chars().map(|c| if is_plain(c) { c } else { '-' });
    let plain: String = plain.take(LONGEST_NAME).collect();
    let plain = plain.trim_matches(['-', '.']);
    if plain.is_empty() {
        "job".to_owned()
    } else {
        plain.to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_plain_and_never_options_or_paths() {
        for (name, expected) in [
            ("train.py", "train.py"),
            ("-rf", "rf"),
            ("../../etc", "etc"),
            ("a b\u{1b}", "a-b"),
            ("", "job"),
            ("..", "job"),
        ] {
            assert_eq!(safe(name), expected);
        }
    }

    #[test]
    fn a_result_is_complete_or_the_job_is_lost() {
        let at = "2026-11-27T10:00:00Z".parse().unwrap();
        assert_eq!(
            result_of("exit 3 2026-11-27T10:00:00Z  \n"),
            State::Finished { code: 3, at }
        );
        for text in [
            "",
            "running",
            "exit",
            "exit 3",
            "exit 300 2026-11-27T10:00:00Z",
            "exit 3 soon",
        ] {
            assert_eq!(result_of(text), State::Lost, "{text}");
        }
    }

    #[test]
    fn two_jobs_of_one_name_have_two_folders() {
        let root = std::env::temp_dir().join(format!("agent-jobs-{}", std::process::id()));
        let jobs = Jobs { root: root.clone() };
        let first = jobs.create("train").unwrap();
        let second = jobs.create("train").unwrap();
        assert!(first.ends_with("train-1") && second.ends_with("train-2"));
        assert!(jobs.all().unwrap().is_empty(), "it has not started");
        fs::remove_dir_all(root).unwrap();
    }
}
