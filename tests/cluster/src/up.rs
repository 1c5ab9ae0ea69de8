//! `up`: starts a cluster and waits until its Crossplane is ready.

use std::fs;
use std::path::PathBuf;
use std::time::Duration;

use jiff::Timestamp;

use crate::binaries::{self, Binaries};
use crate::cache::{self, Cache, create_folder, remove_folder};
use crate::certificates;
use crate::cluster::{self, Cluster};
use crate::command;
use crate::configuration;
use crate::crossplane;
use crate::down;
use crate::emulator;
use crate::launch;
use crate::layout::{Differences, Layout};
use crate::machines;
use crate::modules;
use crate::network::{self, Addresses};
use crate::parts;
use crate::plan::Probe;
use crate::prerequisites;
use crate::probe;
use crate::progress::Progress;
use crate::state::{self, Record, Stage, StateFolder, Verdict, choose_index};
use crate::supervisor::PartStatus;
use crate::wait::{self, Deadline};

/// How long the API server of a cluster that is up may need for an answer. On a busy machine, an
/// answer can take longer than a probe waits.
const BUSY: Duration = Duration::from_secs(20);
const LOOK: Duration = Duration::from_millis(200);

/// The options of `up`.
#[derive(Debug, Clone)]
pub struct Options {
    /// The cluster's name.
    pub name: String,
    /// The program that becomes INIT. It calls [`init::run`](crate::init::run) with its last
    /// argument, the path of the state folder.
    pub init: InitProgram,
    /// How it differs from Kubernetes' defaults.
    pub differences: Differences,
}

/// A program, and the arguments with which it runs as INIT.
#[derive(Debug, Clone)]
pub struct InitProgram {
    /// The executable. The cluster runs a copy of it.
    pub executable: PathBuf,
    /// Its arguments. The path of the state folder follows them.
    pub arguments: Vec<String>,
}

/// What can go wrong.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The machine lacks a prerequisite.
    #[error(transparent)]
    Prerequisites(#[from] prerequisites::Error),
    /// A file cannot be read or written.
    #[error(transparent)]
    Cache(#[from] cache::Error),
    /// The state folder cannot be read or written.
    #[error(transparent)]
    State(#[from] state::Error),
    /// The cluster's condition cannot be read.
    #[error(transparent)]
    Cluster(#[from] cluster::Error),
    /// The remains of a killed start cannot be removed.
    #[error(transparent)]
    Down(#[from] down::Error),
    /// A binary cannot be built.
    #[error(transparent)]
    Binaries(#[from] binaries::Error),
    /// The EC2 emulator's environment cannot be built.
    #[error(transparent)]
    Emulator(#[from] emulator::Error),
    /// Crossplane's files cannot be made.
    #[error(transparent)]
    Crossplane(#[from] crossplane::Error),
    /// The certificates cannot be made.
    #[error(transparent)]
    Certificates(#[from] certificates::Error),
    /// The network cannot be set up.
    #[error(transparent)]
    Network(#[from] network::Error),
    /// A program failed.
    #[error(transparent)]
    Command(#[from] command::Error),
    /// The cluster did not come up.
    #[error(
        "{source}\n\
         What still runs of cluster `{name}` is left for a look; \
         `cargo xtask cluster down --name {name}` ends it and keeps the logs"
    )]
    Launch {
        /// Its name.
        name: String,
        /// The error of the launch.
        source: Box<launch::Error>,
    },
    /// A cluster with this name exists, and it is not up.
    #[error(
        "cluster `{name}` exists and is not up: {how}\n\
         `cargo xtask cluster down --name {name}` ends it and keeps the logs; \
         then start it again"
    )]
    HalfUp {
        /// Its name.
        name: String,
        /// Its condition.
        how: String,
    },
}

/// Builds everything that clusters need, and starts no cluster.
pub fn build(cache: &Cache, progress: &Progress) -> Result<(), Error> {
    Built::ensure(cache, &Differences::default(), progress).map(drop)
}

/// Checks that the machine has what building and starting clusters needs.
pub fn check(cache: &Cache) -> Result<(), Error> {
    // This fails without Go: the cache keys need its version. The check below then reports that Go
    // is missing.
    let building = binaries::missing(cache, &modules::cluster_binaries())
        .map_or(true, |missing| !missing.is_empty());
    Ok(prerequisites::ensure(building, cache.root())?)
}

/// Starts the cluster, unless it is up already.
pub fn up(cache: &Cache, options: &Options, progress: &Progress) -> Result<Cluster, Error> {
    let name = &options.name;
    let state = StateFolder::of(cache, name)?;
    check(cache)?;
    let _lock = cache.lock(&format!("cluster-{name}"), |lock| {
        progress.note(&format!(
            "waiting for another command on `{name}` ({})",
            lock.display()
        ));
    })?;
    if let Some(cluster) = existing(cache, name, progress)? {
        return Ok(cluster);
    }
    let mut record = take_number(cache, name, progress)?;
    let built = Built::ensure(cache, &options.differences, progress)?;

    let layout = Layout {
        name: name.clone(),
        addresses: Addresses::new(record.index),
        state,
        cache: cache.root().to_path_buf(),
        binaries: built.binaries,
        python: built.python,
        differences: options.differences.clone(),
    };
    prepare(&layout, &options.init, progress)?;
    record.stage = Stage::Starting;
    layout.state.write_record(&record)?;
    launch::launch(&layout, &options.init, &built.crossplane, progress).map_err(|source| {
        Error::Launch {
            name: name.clone(),
            source: Box::new(source),
        }
    })?;
    record.stage = Stage::Ready;
    layout.state.write_record(&record)?;
    Ok(Cluster::find(cache, name)?)
}

/// What `up` builds once for all clusters.
struct Built {
    binaries: Binaries,
    python: PathBuf,
    crossplane: crossplane::Files,
}

impl Built {
    fn ensure(
        cache: &Cache,
        differences: &Differences,
        progress: &Progress,
    ) -> Result<Self, Error> {
        let mut names = modules::cluster_binaries();
        if differences.identities {
            names.push("dex");
        }
        let binaries = binaries::ensure(cache, &names, progress)?;
        Ok(Self {
            python: emulator::ensure(cache, progress)?,
            crossplane: crossplane::ensure(cache, &binaries, progress)?,
            binaries,
        })
    }
}

/// Returns the cluster if it is up. Returns none if there is no cluster, or if its start was
/// killed; the remains of that start are removed. Fails if the cluster exists in any other
/// condition.
fn existing(cache: &Cache, name: &str, progress: &Progress) -> Result<Option<Cluster>, Error> {
    let cluster = match Cluster::find(cache, name) {
        Ok(cluster) => cluster,
        Err(cluster::Error::Absent { .. }) => return Ok(None),
        Err(error) => return Err(error.into()),
    };
    let half_up = |how: String| Error::HalfUp {
        name: name.to_owned(),
        how,
    };
    match cluster.verdict()? {
        Verdict::Absent => Ok(None),
        Verdict::Up => {
            let answers = Probe::Http {
                url: format!("{}/readyz", cluster.addresses().apiserver()),
                authority: Some(cluster.state().certificates().authority()),
            };
            let deadline = Deadline::after(BUSY);
            wait::until("its API server to answer", deadline, LOOK, || {
                probe::ready(&answers)
            })
            .map_err(|missed| half_up(missed.to_string()))?;
            progress.note(&format!("cluster `{name}` is already up"));
            Ok(Some(cluster))
        }
        Verdict::Dead(parts) => {
            let deaths: Vec<_> = parts.iter().map(PartStatus::describe_death).collect();
            Err(half_up(deaths.join("\n")))
        }
        Verdict::Gone => Err(half_up(launch::init_failed(cluster.state()).to_string())),
        // This process holds the cluster's lock, so the earlier `up` no longer runs: it was killed.
        Verdict::Starting => {
            progress.note(&format!(
                "cluster `{name}` was half up when its start was killed"
            ));
            down::end(&cluster, progress)?;
            Ok(None)
        }
    }
}

/// Chooses the cluster's number and records it, so that no other cluster takes the same number.
fn take_number(cache: &Cache, name: &str, progress: &Progress) -> Result<Record, Error> {
    let _lock = cache.lock("clusters", |_| {})?;
    let routes = network::host_routes()?;
    let in_use = |index: u8| {
        let addresses = Addresses::new(index);
        network::interface_exists(&addresses.interface())
            || !network::overlaps(&routes, addresses).taken.is_empty()
    };
    let index = choose_index(name, &state::records(cache)?, in_use)?;
    let addresses = Addresses::new(index);
    let overlaps = network::overlaps(&routes, addresses);
    if let Some((wanted, route)) = overlaps.taken.into_iter().next() {
        return Err(network::Error::Taken { wanted, route }.into());
    }
    for (ours, theirs) in overlaps.shadowed {
        progress.note(&format!(
            "note: while the cluster is up, {ours} leads to it and not to {theirs}"
        ));
    }
    let record = Record {
        name: name.to_owned(),
        index,
        created: Timestamp::now(),
        stage: Stage::Preparing,
        kubernetes: binaries::version("kubelet")?,
        crossplane: binaries::version("crossplane-core")?,
    };
    let state = StateFolder::of(cache, name)?;
    remove_folder(state.root())?;
    create_folder(state.root())?;
    state.write_record(&record)?;
    Ok(record)
}

/// Writes the files of the state folder.
fn prepare(layout: &Layout, init: &InitProgram, progress: &Progress) -> Result<(), Error> {
    let step = progress.begin("certificates and configuration");
    let state = &layout.state;
    remove_folder(&state.last_logs())?;
    for folder in [
        state.logs(),
        state.temporary(),
        state.bin(),
        state.emulator(),
    ] {
        create_folder(&folder)?;
    }
    for part in ["registry", "cni", "volume-plugins"] {
        create_folder(&state.data(part))?;
    }
    for (name, path) in layout.binaries.iter() {
        let link = state.bin().join(name);
        std::os::unix::fs::symlink(path, &link).map_err(cache::Error::io("link", &link))?;
    }
    // The cluster runs copies, so that a rebuilt xtask or an edited emulator does not disturb it.
    let copy = state.init_program();
    fs::copy(&init.executable, &copy).map_err(cache::Error::io("write", &copy))?;
    copy_emulator(layout)?;
    state.certificates().create(layout.addresses)?;
    configuration::write_all(layout)?;
    state.write_plan(&parts::plan(layout))?;
    step.end("written");
    Ok(())
}

fn copy_emulator(layout: &Layout) -> Result<(), Error> {
    let mut cp = std::process::Command::new("cp");
    cp.arg("--recursive")
        .arg(emulator::source().join("ec2_emulator"))
        .arg(machines::source().join("machines"))
        .arg(layout.state.emulator());
    command::output(&mut cp)?;
    Ok(())
}
