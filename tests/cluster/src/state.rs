//! A cluster's state folder, `<cache>/clusters/<name>`, and the files in it that
//! say what the cluster is and how it does.

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
    /// A file does not hold what it should.
    #[error("read {path}: {source}")]
    Corrupt {
        /// Which file.
        path: PathBuf,
        /// What is wrong with it.
        source: serde_json::Error,
    },
    /// The name cannot be one.
    #[error(
        "`{0}` cannot name a cluster: use 1 to 20 lower-case letters, digits and \
         hyphens, beginning and ending with a letter or digit"
    )]
    Name(String),
    /// There are too many clusters.
    #[error("all 254 cluster numbers are taken: take a cluster down with `cluster down --name`")]
    Full,
}

/// What a cluster is.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Record {
    /// Its name.
    pub name: String,
    /// Its number, which decides its addresses.
    pub index: u8,
    /// When it was made.
    pub created: Timestamp,
    /// How far `up` has come.
    pub stage: Stage,
    /// The version of Kubernetes.
    pub kubernetes: String,
    /// The version of Crossplane.
    pub crossplane: String,
}

/// How far `up` has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Stage {
    /// The number is taken; nothing runs.
    Preparing,
    /// INIT was started.
    Starting,
    /// `up` ended well.
    Ready,
}

/// The state folder's layout.
#[derive(Debug, Clone)]
pub struct StateFolder {
    root: PathBuf,
}

impl StateFolder {
    /// That folder.
    pub fn at(root: PathBuf) -> Self {
        Self { root }
    }

    /// The one of the cluster with that name.
    pub fn of(cache: &Cache, name: &str) -> Result<Self, Error> {
        Ok(Self::at(cache.clusters().join(valid_name(name)?)))
    }

    /// The folder itself.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// What INIT is to do.
    pub fn plan(&self) -> PathBuf {
        self.root.join("plan.json")
    }

    /// Every part's log.
    pub fn logs(&self) -> PathBuf {
        self.root.join("logs")
    }

    /// The log of that part.
    pub fn log(&self, part: &str) -> PathBuf {
        self.logs().join(format!("{part}.log"))
    }

    /// Where the logs of a failed cluster are kept when it is taken down.
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

    /// What the part stores.
    pub fn data(&self, part: &str) -> PathBuf {
        self.root.join("data").join(part)
    }

    /// Links to the binaries, for `PATH`.
    pub fn bin(&self) -> PathBuf {
        self.root.join("bin")
    }

    /// The running copy of the program that INIT is.
    pub fn init_program(&self) -> PathBuf {
        self.root.join("init")
    }

    /// The running copy of the EC2 emulator.
    pub fn emulator(&self) -> PathBuf {
        self.root.join("emulator")
    }

    /// Scratch space of the parts.
    pub fn temporary(&self) -> PathBuf {
        self.root.join("tmp")
    }

    /// Where INIT prepares mounts.
    pub(crate) fn staging(&self) -> PathBuf {
        self.root.join("staging")
    }

    /// What the cluster is, if there is one.
    pub fn record(&self) -> Result<Option<Record>, Error> {
        read_json(&self.root.join("cluster.json"))
    }

    pub(crate) fn write_record(&self, record: &Record) -> Result<(), Error> {
        write_json(&self.root.join("cluster.json"), record)?;
        Ok(())
    }

    /// INIT's process on the host, once it has set up its namespaces.
    pub fn init(&self) -> Result<Option<Identity>, Error> {
        read_json(&self.root.join("init.json"))
    }

    pub(crate) fn write_init(&self, identity: Identity) -> Result<(), cache::Error> {
        write_json(&self.root.join("init.json"), &identity)
    }

    /// What INIT last wrote about the parts; empty before it did.
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

/// The number for a new cluster: `demo` and `test` have their own, others get the
/// lowest that is neither recorded nor excluded.
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

/// How a cluster does.
#[derive(Debug, Clone, PartialEq)]
pub enum Verdict {
    /// There is none, or nothing of it was started.
    Absent,
    /// Everything runs and `up` ended well.
    Up,
    /// Everything runs so far; `up` is at work or was interrupted.
    Starting,
    /// Parts ended.
    Dead(Vec<PartStatus>),
    /// INIT ended, and everything with it.
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
