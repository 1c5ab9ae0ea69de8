//! `down`: ends a cluster and removes all of it.

use std::fs;
use std::time::Duration;

use nix::errno::Errno;

use crate::cache::{self, Cache, remove_folder};
use crate::cgroups;
use crate::cluster::{self, Cluster};
use crate::network;
use crate::progress::Progress;
use crate::state::{self, Verdict};
use crate::wait::{self, Deadline};

/// The time limit in which the kernel must end a cluster's processes.
const PATIENCE: Duration = Duration::from_mins(1);

/// What can go wrong.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A file cannot be read or removed.
    #[error(transparent)]
    Cache(#[from] cache::Error),
    /// The state folder cannot be read.
    #[error(transparent)]
    State(#[from] state::Error),
    /// The cluster's condition cannot be read.
    #[error(transparent)]
    Cluster(#[from] cluster::Error),
    /// The first process cannot be ended.
    #[error("end process {pid}, the cluster's first: {source}")]
    Kill {
        /// Its process number on the host.
        pid: i32,
        /// The kernel's error.
        source: Errno,
    },
    /// The interface cannot be removed.
    #[error(transparent)]
    Network(#[from] network::Error),
    /// The cgroups cannot be removed.
    #[error(transparent)]
    Cgroups(#[from] cgroups::Error),
    /// A process did not end in time.
    #[error(transparent)]
    Wait(#[from] wait::Error),
}

/// Ends the cluster, if there is one. The logs of a cluster that was not up are kept beside its
/// state folder until the cluster is started again.
pub fn down(cache: &Cache, name: &str, progress: &Progress) -> Result<(), Error> {
    state::StateFolder::of(cache, name)?;
    let _lock = cache.lock(&format!("cluster-{name}"), |lock| {
        progress.note(&format!(
            "waiting for another command on `{name}` ({})",
            lock.display()
        ));
    })?;
    let cluster = match Cluster::find(cache, name) {
        Ok(cluster) => cluster,
        Err(cluster::Error::Absent { .. }) => {
            progress.note(&format!("there is no cluster `{name}`"));
            return Ok(());
        }
        Err(error) => return Err(error.into()),
    };
    end(&cluster, progress)
}

/// Ends a cluster. The caller holds its lock.
pub(crate) fn end(cluster: &Cluster, progress: &Progress) -> Result<(), Error> {
    let verdict = cluster.verdict()?;
    let step = progress.begin(&format!("end cluster `{}`", cluster.name()));
    let was_alive = end_processes(cluster)?;
    let addresses = cluster.addresses();
    // If INIT was not alive but the interface exists, the interface belongs to a cluster of another
    // cache folder. That cluster took the same number after this one had ended.
    if was_alive || !network::interface_exists(&addresses.interface()) {
        network::disconnect(addresses)?;
        cgroups::remove(&cluster.cgroup())?;
    }
    let kept = keep_logs(cluster, &verdict)?;
    remove_folder(cluster.state().root())?;
    step.end("done");
    if kept {
        let logs = cluster.state().last_logs();
        progress.note(&format!("its logs are kept in {}", logs.display()));
    }
    Ok(())
}

/// Ends INIT. The kernel ends all other processes in its namespaces first. Returns whether INIT was
/// alive.
fn end_processes(cluster: &Cluster) -> Result<bool, Error> {
    let Some(init) = cluster.state().init()?.filter(|init| init.is_alive()) else {
        return Ok(false);
    };
    init.kill().map_err(|source| Error::Kill {
        pid: init.pid,
        source,
    })?;
    let what = format!("process {} to end", init.pid);
    let deadline = Deadline::after(PATIENCE);
    wait::until(&what, deadline, Duration::from_millis(20), || {
        if init.is_alive() {
            Err("it still runs".to_owned())
        } else {
            Ok(())
        }
    })?;
    Ok(true)
}

fn keep_logs(cluster: &Cluster, verdict: &Verdict) -> Result<bool, Error> {
    let (logs, kept) = (cluster.state().logs(), cluster.state().last_logs());
    let worth_keeping = !matches!(verdict, Verdict::Up | Verdict::Absent) && logs.exists();
    if worth_keeping {
        remove_folder(&kept)?;
        fs::rename(&logs, &kept).map_err(cache::Error::io("keep", &logs))?;
    }
    Ok(worth_keeping)
}
