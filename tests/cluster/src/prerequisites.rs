//! The machine's prerequisites. All of them are checked before a cluster starts.
//!
//! The script `prerequisites.sh` checks programs and installs missing ones. It also runs before
//! this crate is compiled. Memory and disk are checked here.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use nix::sys::statvfs::statvfs;

use crate::command;

/// The memory that the cluster's processes take, with room for a few pods.
const MEMORY: u64 = 3 << 30;
/// The memory for a build: compiling the AWS SDK's crate takes 8 GB, and Go compiles at the same
/// time.
const MEMORY_TO_BUILD: u64 = 11 << 30;
/// The disk space for the images and data of a cluster.
const DISK: u64 = 3 << 30;
/// The disk space for Go's caches and the binaries, if some are not built yet.
const DISK_TO_BUILD: u64 = 16 << 30;

/// The measured facts about the machine.
#[derive(Debug, Clone)]
struct Facts<'a> {
    memory: u64,
    disk: u64,
    cache: &'a Path,
}

/// A missing prerequisite.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Missing {
    /// Its description.
    pub what: String,
    /// How to get it.
    pub advice: String,
}

/// The machine lacks something.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// Programs are missing, or could not be installed.
    #[error("{0}")]
    Programs(#[from] command::Error),
    /// Memory, disk space or a usable cache folder is missing.
    #[error("{}", render(.0))]
    Missing(Vec<Missing>),
}

/// Checks all prerequisites. Installs missing programs from Debian packages, unless `INSTALL=no`.
/// `building` says whether programs are still to be built.
pub fn ensure(building: bool, cache: &Path) -> Result<(), Error> {
    programs()?;
    let found = missing(
        &Facts {
            memory: available_memory(),
            disk: available_disk(cache),
            cache,
        },
        building,
    );
    if found.is_empty() {
        Ok(())
    } else {
        Err(Error::Missing(found))
    }
}

fn programs() -> Result<(), command::Error> {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("prerequisites.sh");
    let mut check = Command::new("sh");
    // The script's output is for people: it lists missing programs and shows apt-get's progress.
    command::seen(check.arg(script).stdin(Stdio::null()))
}

fn missing(facts: &Facts<'_>, building: bool) -> Vec<Missing> {
    let mut missing = Vec::new();
    let mut require = |present: bool, what: String, advice: &str| {
        if !present {
            let advice = advice.to_owned();
            missing.push(Missing { what, advice });
        }
    };
    let (memory, disk) = if building {
        (MEMORY_TO_BUILD, DISK_TO_BUILD)
    } else {
        (MEMORY, DISK)
    };
    require(
        facts.memory >= memory,
        format!(
            "{} of free memory (found {})",
            gib(memory),
            gib(facts.memory)
        ),
        "end something that uses memory",
    );
    let cache = facts.cache.display();
    require(
        facts.disk >= disk,
        format!("{} of free disk (found {})", gib(disk), gib(facts.disk)),
        &format!("free some below {cache}, or name another folder in GPU_WORKSPACES_CACHE"),
    );
    require(
        fit_for_lists(facts.cache),
        format!("a cache folder without \" ' : or spaces ({cache})"),
        "name another folder in GPU_WORKSPACES_CACHE",
    );
    missing
}

/// Whether a path can occur in lists and in configuration files. A colon separates the entries of
/// PATH and PYTHONPATH, and quotes delimit values in configuration files.
fn fit_for_lists(path: &Path) -> bool {
    let unfit =
        |character: char| matches!(character, ':' | '"' | '\'') || character.is_whitespace();
    path.to_str().is_some_and(|text| !text.contains(unfit))
}

/// All missing prerequisites as one list for people.
fn render(missing: &[Missing]) -> String {
    let mut lines = vec!["this machine lacks what the local cluster needs:".to_owned()];
    let items = missing.iter();
    lines.extend(items.map(|Missing { what, advice }| format!("  - {what}: {advice}")));
    lines.join("\n")
}

/// The available memory in bytes; 0 if the kernel does not report it.
fn available_memory() -> u64 {
    let memory = fs::read_to_string("/proc/meminfo").unwrap_or_default();
    let kibibytes: Option<u64> = memory
        .lines()
        .find_map(|line| line.strip_prefix("MemAvailable:"))
        .and_then(|text| text.trim().trim_end_matches(" kB").parse().ok());
    kibibytes.unwrap_or(0) << 10
}

/// The free disk space in bytes on the file system where `folder` is or will be; 0 if the file
/// system does not report it.
fn available_disk(folder: &Path) -> u64 {
    folder
        .ancestors()
        .find_map(|existing| statvfs(existing).ok())
        .map_or(0, |disk| disk.blocks_available() * disk.fragment_size())
}

fn gib(bytes: u64) -> String {
    format!("{}.{} GiB", bytes >> 30, ((bytes >> 20) % 1024) * 10 / 1024)
}

#[cfg(test)]
#[path = "prerequisites_tests.rs"]
mod tests;
