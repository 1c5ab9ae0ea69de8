//! `down`: ends a cluster and leaves nothing of it.

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

/// How long the kernel may take to end a cluster's processes.
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
    /// The cluster cannot be looked at.
    #[error(transparent)]
    Cluster(#[from] cluster::Error),
    /// The first process cannot be ended.
    #[error("end process {pid}, the cluster's first: {source}")]
    Kill {
        /// Its number.
        pid: i32,
        /// Why not.
        source: Errno,
    },
    /// The interface cannot be removed.
    #[error(transparent)]
    Network(#[from] network::Error),
    /// The cgroups cannot be removed.
    #[error(transparent)]
    Cgroups(#[from] cgroups::Error),
    /// Something did not end in time.
    #[error(transparent)]
    Wait(#[from] wait::Error),
}

/// Ends the cluster, if there is one. The logs of one that was not in order are
/// kept beside its state folder until it is brought up again.
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

/// Ends a cluster whose lock the caller holds.
pub(crate) fn end(cluster: &Cluster, progress: &Progress) -> Result<(), Error> {
    let verdict = cluster.verdict()?;
    let step = progress.begin(&format!("end cluster `{}`", cluster.name()));
    let was_alive = end_processes(cluster)?;
    let addresses = cluster.addresses();
    // An interface that is there without our processes is a cluster's of another
    // cache folder, which was free to take the number of one that had ended.
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

/// Ends INIT; the kernel ends everything else in its namespaces before INIT is gone.
/// Returns whether it was there to be ended.
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
