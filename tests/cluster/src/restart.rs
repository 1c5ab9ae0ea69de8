//! `restart`: kills a part of a cluster and has INIT start it again, for tests of what happens to others.
//!
//! INIT starts no part again by itself. This command leaves a file with the part's name in the state folder, and
//! INIT takes the file when the part's process ends.

use std::time::Duration;

use nix::errno::Errno;

use crate::cache::{self, create_folder};
use crate::cluster::Cluster;
use crate::processes::{Identity, children};
use crate::progress::Progress;
use crate::state;
use crate::supervisor::{PartState, PartStatus};
use crate::wait::{self, Deadline};

/// The interval between two looks at the part.
const LOOK: Duration = Duration::from_millis(100);
/// The time limit in which the part must be ready again.
const PATIENCE: Duration = Duration::from_mins(2);

/// What can go wrong.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The request cannot be written.
    #[error(transparent)]
    Cache(#[from] cache::Error),
    /// The state folder cannot be read.
    #[error(transparent)]
    State(#[from] state::Error),
    /// The cluster has no such part, or the part does not run.
    #[error("no part `{name}` runs: there are {running}")]
    NotRunning {
        /// The name that was asked for.
        name: String,
        /// The parts that run.
        running: String,
    },
    /// The kernel refuses to end the process.
    #[error("end {name}: {source}")]
    Kill {
        /// The part.
        name: String,
        /// The kernel's error.
        source: Errno,
    },
    /// The part is not ready in time.
    #[error(transparent)]
    Wait(#[from] wait::Error),
}

/// Kills the part by SIGKILL, and returns when another process of it is ready.
pub fn restart(cluster: &Cluster, name: &str, progress: &Progress) -> Result<(), Error> {
    let state = cluster.state();
    let step = progress.begin(&format!("restart {name}"));
    let before = pid(&state.parts()?, name);
    let process = match (before, state.init()?) {
        (Some(inside), Some(init)) => children(init.pid)
            .into_iter()
            .find(|(_, number)| *number == inside)
            .and_then(|(outside, _)| Identity::of(outside)),
        _ => None,
    };
    let process = process.ok_or_else(|| Error::NotRunning {
        name: name.to_owned(),
        running: running(cluster).join(", "),
    })?;
    let request = state.restart(name);
    if let Some(folder) = request.parent() {
        create_folder(folder)?;
    }
    cache::write(&request, "")?;
    process.kill().map_err(|source| Error::Kill {
        name: name.to_owned(),
        source,
    })?;
    let what = format!("{name} to be ready again");
    wait::until(&what, Deadline::after(PATIENCE), LOOK, || {
        let parts = state.parts().map_err(|error| error.to_string())?;
        let part = parts.iter().find(|part| part.name == name);
        match part {
            Some(part) if part.state == PartState::Ready && part.pid != before => Ok(()),
            Some(part) => Err(part.state.to_string()),
            None => Err("INIT does not report it".to_owned()),
        }
    })?;
    step.end("ready");
    Ok(())
}

fn pid(parts: &[PartStatus], name: &str) -> Option<i32> {
    let ready = |part: &&PartStatus| part.name == name && part.state == PartState::Ready;
    parts.iter().find(ready).and_then(|part| part.pid)
}

fn running(cluster: &Cluster) -> Vec<String> {
    let parts = cluster.state().parts().unwrap_or_default();
    let ready = parts
        .into_iter()
        .filter(|part| part.state == PartState::Ready);
    ready.map(|part| part.name).collect()
}
