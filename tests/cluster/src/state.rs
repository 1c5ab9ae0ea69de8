//! A cluster's state folder, `<cache>/clusters/<name>`, and the files in it that record what the
//! cluster is and which state it is in.

use std::fs;
use std::path::{Path, PathBuf};

use jiff::Timestamp;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::cache::{self, Cache, write_whole};
use crate::certificates::Certificates;
use crate::plan::Plan;
use crate::processes::Identity;
use crate::supervisor::{PartState, PartStatus};

/// What can go wrong with the state folder.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A file cannot be read or written.
    #[error(transparent)]
    Cache(#[from] cache::Error),
    /// A file holds no valid JSON of the expected form.
    #[error("read {path}: {source}")]
    Corrupt {
        /// The file.
        path: PathBuf,
        /// The parser's error.
        source: serde_json::Error,
    },
    /// The name is not a valid cluster name.
    #[error(
        "`{0}` cannot name a cluster: use 1 to 20 lower-case letters, digits and \
         hyphens, beginning and ending with a letter or digit"
    )]
    Name(String),
    /// Every cluster number is taken.
    #[error("all 254 cluster numbers are taken: take a cluster down with `cluster down --name`")]
    Full,
}

/// The record of a cluster.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Record {
    /// Its name.
    pub name: String,
    /// Its number. The addresses follow from it.
    pub index: u8,
    /// When `up` recorded the cluster.
    pub created: Timestamp,
    /// How much `up` has done.
    pub stage: Stage,
    /// The version of Kubernetes.
    pub kubernetes: String,
    /// The version of Crossplane.
    pub crossplane: String,
}

/// How much `up` has done.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Stage {
    /// The cluster has a number, and none of its processes was started.
    Preparing,
    /// `up` has begun to start INIT and the parts.
    Starting,
    /// `up` has succeeded.
    Ready,
}

/// The state folder's layout.
#[derive(Debug, Clone)]
pub struct StateFolder {
    root: PathBuf,
}

impl StateFolder {
    /// The state folder with this path.
    pub fn at(root: PathBuf) -> Self {
        Self { root }
    }

    /// The state folder of the cluster with this name.
    pub fn of(cache: &Cache, name: &str) -> Result<Self, Error> {
        Ok(Self::at(cache.clusters().join(valid_name(name)?)))
    }

    /// The folder itself.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// The plan for INIT.
    pub fn plan(&self) -> PathBuf {
        self.root.join("plan.json")
    }

    /// The folder of the parts' logs.
    pub fn logs(&self) -> PathBuf {
        self.root.join("logs")
    }

    /// The log of one part.
    pub fn log(&self, part: &str) -> PathBuf {
        self.logs().join(format!("{part}.log"))
    }

    /// The folder into which `down` moves the logs of a failed cluster.
    pub fn last_logs(&self) -> PathBuf {
        self.root.with_added_extension("last-logs")
    }

    /// The certificates.
    pub fn certificates(&self) -> Certificates {
        Certificates::in_folder(self.root.join("certificates"))
    }

    /// The administrator's kubeconfig.
    pub fn kubeconfig(&self) -> PathBuf {
        self.kubeconfig_of("admin")
    }

    /// The kubeconfig of one client.
    pub fn kubeconfig_of(&self, client: &str) -> PathBuf {
        self.root.join("kubeconfigs").join(client)
    }

    /// The parts' configuration files.
    pub fn configuration(&self) -> PathBuf {
        self.root.join("configuration")
    }

    /// The folder for one part's data.
    pub fn data(&self, part: &str) -> PathBuf {
        self.root.join("data").join(part)
    }

    /// Links to the binaries, for `PATH`.
    pub fn bin(&self) -> PathBuf {
        self.root.join("bin")
    }

    /// The cluster's own copy of the program that runs as INIT.
    pub fn init_program(&self) -> PathBuf {
        self.root.join("init")
    }

    /// The cluster's own copy of the EC2 emulator.
    pub fn emulator(&self) -> PathBuf {
        self.root.join("emulator")
    }

    /// Scratch space of the parts.
    pub fn temporary(&self) -> PathBuf {
        self.root.join("tmp")
    }

    /// The file that asks INIT to start a part again when its process ends.
    pub(crate) fn restart(&self, part: &str) -> PathBuf {
        self.root.join("restarts").join(part)
    }

    /// Where INIT prepares mounts.
    pub(crate) fn staging(&self) -> PathBuf {
        self.root.join("staging")
    }

    /// The cluster's record, if there is a cluster.
    pub fn record(&self) -> Result<Option<Record>, Error> {
        read_json(&self.root.join("cluster.json"))
    }

    pub(crate) fn write_record(&self, record: &Record) -> Result<(), Error> {
        write_json(&self.root.join("cluster.json"), record)?;
        Ok(())
    }

    /// INIT's process as the host numbers it. INIT writes this file when its namespaces exist.
    pub fn init(&self) -> Result<Option<Identity>, Error> {
        read_json(&self.root.join("init.json"))
    }

    pub(crate) fn write_init(&self, identity: Identity) -> Result<(), cache::Error> {
        write_json(&self.root.join("init.json"), &identity)
    }

    /// The last statuses of the parts that INIT wrote; empty before INIT has written any.
    pub fn parts(&self) -> Result<Vec<PartStatus>, Error> {
        Ok(read_json(&self.root.join("parts.json"))?.unwrap_or_default())
    }

    pub(crate) fn write_parts(&self, parts: &[PartStatus]) -> Result<(), cache::Error> {
        write_json(&self.root.join("parts.json"), &parts)
    }

    pub(crate) fn write_plan(&self, plan: &Plan) -> Result<(), cache::Error> {
        write_json(&self.plan(), plan)
    }
}

fn valid_name(name: &str) -> Result<&str, Error> {
    let inner = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    let valid = (1..=20).contains(&name.len())
        && name.bytes().all(inner)
        && !name.starts_with('-')
        && !name.ends_with('-');
    valid
        .then_some(name)
        .ok_or_else(|| Error::Name(name.to_owned()))
}

fn read_json<T: DeserializeOwned>(path: &Path) -> Result<Option<T>, Error> {
    let text = match fs::read_to_string(path) {
        Ok(text) => text,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(cache::Error::io("read", path)(error).into()),
    };
    serde_json::from_str(&text)
        .map(Some)
        .map_err(|source| Error::Corrupt {
            path: path.to_path_buf(),
            source,
        })
}

fn write_json(path: &Path, value: &impl Serialize) -> Result<(), cache::Error> {
    let text = serde_json::to_string_pretty(value)
        .map_err(|error| cache::Error::io("encode", path)(error.into()))?;
    write_whole(path, text)
}

/// The number for a cluster. A recorded cluster keeps its number. `demo` and `test` have fixed
/// numbers. Any other cluster gets the lowest number from 2 on that is neither recorded nor
/// excluded.
pub fn choose_index(
    name: &str,
    recorded: &[Record],
    excluded: impl Fn(u8) -> bool,
) -> Result<u8, Error> {
    if let Some(known) = recorded.iter().find(|record| record.name == name) {
        return Ok(known.index);
    }
    match name {
        "demo" => Ok(0),
        "test" => Ok(1),
        _ => (2..=u8::MAX)
            .find(|index| !excluded(*index) && recorded.iter().all(|record| record.index != *index))
            .ok_or(Error::Full),
    }
}

/// The records of all clusters in this cache.
pub fn records(cache: &Cache) -> Result<Vec<Record>, Error> {
    let folder = cache.clusters();
    cache::create_folder(&folder)?;
    let listing = fs::read_dir(&folder).map_err(cache::Error::io("list", &folder))?;
    let mut records = Vec::new();
    for entry in listing {
        let entry = entry.map_err(cache::Error::io("list", &folder))?;
        records.extend(StateFolder::at(entry.path()).record()?);
    }
    Ok(records)
}

/// The condition of a cluster.
#[derive(Debug, Clone, PartialEq)]
pub enum Verdict {
    /// There is no cluster, or nothing of it was started.
    Absent,
    /// All parts are ready, and `up` has succeeded.
    Up,
    /// No part is dead, but `up` has not finished: it is at work or was interrupted.
    Starting,
    /// These parts have ended.
    Dead(Vec<PartStatus>),
    /// INIT has ended, and the kernel ended every other process of the cluster with it.
    Gone,
}

impl std::fmt::Display for Verdict {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Absent => formatter.write_str("not started"),
            Self::Up => formatter.write_str("up"),
            Self::Starting => formatter.write_str("starting, or its `up` was interrupted"),
            Self::Dead(parts) => {
                let names: Vec<_> = parts.iter().map(|part| part.name.as_str()).collect();
                write!(formatter, "dead: {}", names.join(", "))
            }
            Self::Gone => formatter.write_str("gone: its first process ended"),
        }
    }
}

/// Judges a cluster by its record, whether its INIT is alive, and its parts.
pub fn verdict(record: Option<&Record>, init_alive: bool, parts: &[PartStatus]) -> Verdict {
    let Some(record) = record.filter(|record| record.stage != Stage::Preparing) else {
        return Verdict::Absent;
    };
    if !init_alive {
        return Verdict::Gone;
    }
    let dead: Vec<_> = parts
        .iter()
        .filter(|part| part.state == PartState::Dead)
        .cloned()
        .collect();
    if !dead.is_empty() {
        return Verdict::Dead(dead);
    }
    let all_ready = parts.iter().all(|part| part.state == PartState::Ready);
    if record.stage == Stage::Ready && all_ready {
        Verdict::Up
    } else {
        Verdict::Starting
    }
}

#[cfg(test)]
#[path = "state_tests.rs"]
mod tests;
