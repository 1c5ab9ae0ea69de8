//! INIT: the first process of a cluster's namespaces.
//!
//! It makes the namespaces a place of their own, starts the parts, reaps what
//! ends, and writes what became of each part to `<state>/parts.json`. When it
//! ends, the kernel ends every process, mount and interface of the cluster.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use jiff::Timestamp;
use nix::errno::Errno;
use nix::mount::{MsFlags, mount};
use nix::sys::wait::{WaitPidFlag, WaitStatus, waitpid};
use nix::unistd::{pause, sethostname};

use crate::cache;
use crate::cgroups;
use crate::network::{self, UPLINK};
use crate::plan::{Part, Plan};
use crate::probe;
use crate::processes::Identity;
use crate::state::StateFolder;
use crate::supervisor::Supervisor;
use crate::wait::{self, Deadline};

/// How often a starting part is looked at.
const LOOK: Duration = Duration::from_millis(100);
/// How long `up` may take to lay the cable.
const CABLE: Duration = Duration::from_secs(30);

/// What can go wrong before the parts start.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The state folder cannot be read or written.
    #[error(transparent)]
    Cache(#[from] cache::Error),
    /// The plan is not one.
    #[error("read {0}: {1}")]
    Plan(PathBuf, serde_json::Error),
    /// A mount failed.
    #[error("mount {what}: {source}")]
    Mount {
        /// What was to be mounted where.
        what: String,
        /// Why not.
        source: Errno,
    },
    /// A kernel interface refused.
    #[error("{what}: {source}")]
    Kernel {
        /// What was asked of it.
        what: &'static str,
        /// Why not.
        source: Errno,
    },
    /// The process table cannot be read.
    #[error("read /proc/self: {0}")]
    Proc(std::io::Error),
    /// The cgroups could not be set up.
    #[error(transparent)]
    Cgroups(#[from] cgroups::Error),
    /// The network could not be set up.
    #[error(transparent)]
    Network(#[from] network::Error),
    /// The cable did not come.
    #[error(transparent)]
    Wait(#[from] wait::Error),
}

/// Runs until the cluster is ended; returns only if it could not be set up.
pub fn run(state: &Path) -> Result<(), Error> {
    let state = StateFolder::at(state.to_path_buf());
    // The host's /proc is still mounted here, so this is the host's number.
    let identity = Identity::of_this_process().map_err(Error::Proc)?;
    let path = state.plan();
    let plan: Plan =
        serde_json::from_str(&cache::read(&path)?).map_err(|error| Error::Plan(path, error))?;
    sethostname(&plan.hostname).map_err(|source| Error::Kernel {
        what: "set the host name",
        source,
    })?;
    cgroups::enter(&plan.cgroup)?;
    separate_mounts(&plan, &state)?;
    // Tells `up` that the network namespace is there to be connected.
    state.write_init(identity)?;
    set_up_network(&plan)?;
    supervise(plan, &state)
}

fn separate_mounts(plan: &Plan, state: &StateFolder) -> Result<(), Error> {
    mount_at("proc", Path::new("/proc"), "proc")?;
    for folder in &plan.private_folders {
        hide(folder, &plan.shared_folder, &state.staging())?;
    }
    for file in &plan.replaced_files {
        bind(&file.source, &file.target)?;
    }
    // `unshare` made every mount private to this namespace. Shared among the
    // cluster's own namespaces, a pod may ask for mount propagation.
    change("/", Path::new("/"), MsFlags::MS_SHARED | MsFlags::MS_REC)
}

/// Covers `folder` with an empty file system, in which `shared` stays visible.
fn hide(folder: &Path, shared: &Path, staging: &Path) -> Result<(), Error> {
    cache::create_folder(staging)?;
    mount_at("tmpfs", staging, "tmpfs")?;
    if let Ok(below) = shared.strip_prefix(folder) {
        let window = staging.join(below);
        cache::create_folder(&window)?;
        change(&shared.to_string_lossy(), &window, MsFlags::MS_BIND)?;
    }
    change(&staging.to_string_lossy(), folder, MsFlags::MS_MOVE)
}

fn mount_at(source: &str, target: &Path, kind: &str) -> Result<(), Error> {
    mount(
        Some(source),
        target,
        Some(kind),
        MsFlags::empty(),
        None::<&str>,
    )
    .map_err(|source| Error::Mount {
        what: format!("{kind} on {}", target.display()),
        source,
    })
}

fn bind(source: &Path, target: &Path) -> Result<(), Error> {
    change(&source.to_string_lossy(), target, MsFlags::MS_BIND)
}

fn change(source: &str, target: &Path, flags: MsFlags) -> Result<(), Error> {
    mount(Some(source), target, None::<&str>, flags, None::<&str>).map_err(|errno| Error::Mount {
        what: format!("{source} on {} ({flags:?})", target.display()),
        source: errno,
    })
}

fn set_up_network(plan: &Plan) -> Result<(), Error> {
    network::ip(&["link", "set", "lo", "up"])?;
    // On the loopback interface rather than on a bridge: pods hang on cables of
    // their own (CNI "ptp"), so pod to service to pod traffic is always routed and
    // needs no br_netfilter, which not every kernel has loaded.
    for address in [plan.gateway, network::POD_IDENTITY_AGENT] {
        let address = format!("{address}/32");
        network::ip(&["address", "add", &address, "dev", "lo"])?;
    }
    wait::until(
        "the cable to the host",
        Deadline::after(CABLE),
        LOOK,
        || {
            let devices =
                fs::read_to_string("/proc/self/net/dev").map_err(|error| error.to_string())?;
            if devices.contains(&format!("{UPLINK}:")) {
                Ok(())
            } else {
                Err(format!("no interface {UPLINK}"))
            }
        },
    )?;
    network::ip(&[
        "address",
        "add",
        &format!("{}/30", plan.node),
        "dev",
        UPLINK,
    ])?;
    network::ip(&["link", "set", UPLINK, "up"])?;
    // What is meant for a machine that is gone must not go back to the host, which
    // would return it.
    network::ip(&["route", "add", "unreachable", &plan.machines])?;
    // Forwarding is switched on by the CNI plugin, with the first pod.
    Ok(network::ip(&[
        "route",
        "add",
        "default",
        "via",
        &plan.host.to_string(),
    ])?)
}

fn supervise(plan: Plan, state: &StateFolder) -> Result<(), Error> {
    let mut supervisor = Supervisor::new(plan.parts, Timestamp::now());
    let mut written = Vec::new();
    loop {
        for part in supervisor.due() {
            match start(&part, &plan.environment) {
                Ok(pid) => supervisor.started(&part.name, pid, Timestamp::now()),
                Err(error) => supervisor.not_started(
                    &part.name,
                    format!("start {}: {error}", part.program.display()),
                    Timestamp::now(),
                ),
            }
        }
        for part in supervisor.starting() {
            supervisor.probed(&part.name, probe::ready(&part.ready), Timestamp::now());
        }
        let statuses = supervisor.statuses();
        if statuses != written {
            state.write_parts(&statuses)?;
            written = statuses;
        }
        if supervisor.at_rest() {
            // Only an end can change anything: an idle cluster is not polled.
            wait_for_an_end(&mut supervisor)?;
        } else {
            note_ends(&mut supervisor)?;
            if supervisor.due().is_empty() {
                std::thread::sleep(LOOK);
            }
        }
    }
}

fn wait_for_an_end(supervisor: &mut Supervisor) -> Result<(), Error> {
    match waitpid(None, None) {
        Ok(status) => note(supervisor, status),
        Err(Errno::EINTR) => {}
        // Every part is dead. INIT stays, so that `status` and `down` find it.
        Err(Errno::ECHILD) => pause(),
        Err(source) => return Err(waiting_failed(source)),
    }
    Ok(())
}

fn note_ends(supervisor: &mut Supervisor) -> Result<(), Error> {
    loop {
        match waitpid(None, Some(WaitPidFlag::WNOHANG)) {
            Ok(WaitStatus::StillAlive) | Err(Errno::ECHILD) => return Ok(()),
            Ok(status) => note(supervisor, status),
            Err(Errno::EINTR) => {}
            Err(source) => return Err(waiting_failed(source)),
        }
    }
}

fn waiting_failed(source: Errno) -> Error {
    Error::Kernel {
        what: "wait for a process",
        source,
    }
}

fn note(supervisor: &mut Supervisor, status: WaitStatus) {
    match status {
        WaitStatus::Exited(pid, code) => {
            supervisor.exited(
                pid.as_raw(),
                format!("exit status {code}"),
                Timestamp::now(),
            );
        }
        WaitStatus::Signaled(pid, signal, _) => supervisor.exited(
            pid.as_raw(),
            format!("killed by signal {} ({signal})", signal as i32),
            Timestamp::now(),
        ),
        _ => {}
    }
}

fn start(part: &Part, environment: &[(String, String)]) -> Result<i32, std::io::Error> {
    // Fails here rather than in `spawn`, whose clean-up waits for the child that
    // a first process must reap itself.
    fs::metadata(&part.program)?;
    let log = File::options().create(true).append(true).open(&part.log)?;
    let child = Command::new(&part.program)
        .args(&part.arguments)
        .env_clear()
        .envs(environment.iter().map(|(name, value)| (name, value)))
        .envs(part.environment.iter().map(|(name, value)| (name, value)))
        .current_dir("/")
        .stdin(Stdio::null())
        .stdout(log.try_clone()?)
        .stderr(log)
        .spawn()?;
    i32::try_from(child.id()).map_err(std::io::Error::other)
}
