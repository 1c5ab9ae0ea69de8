//! INIT: the first process of a cluster's namespaces.
//!
//! INIT sets up the mounts, cgroups and network of the namespaces. Then it starts the parts, reaps
//! every process that ends, and writes the status of each part to `<state>/parts.json`. When INIT
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

/// The interval between two probes of a starting part.
const LOOK: Duration = Duration::from_millis(100);
/// The time in which `up` must create the cable, the veth pair between the host and the cluster.
const CABLE: Duration = Duration::from_secs(30);

/// What can go wrong before the parts start.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The state folder cannot be read or written.
    #[error(transparent)]
    Cache(#[from] cache::Error),
    /// The plan file is not a valid plan.
    #[error("read {0}: {1}")]
    Plan(PathBuf, serde_json::Error),
    /// A mount failed.
    #[error("mount {what}: {source}")]
    Mount {
        /// The source and the target of the mount.
        what: String,
        /// The kernel's error.
        source: Errno,
    },
    /// A system call failed.
    #[error("{what}: {source}")]
    Kernel {
        /// What the call was for.
        what: &'static str,
        /// The kernel's error.
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
    /// The cable did not appear in time.
    #[error(transparent)]
    Wait(#[from] wait::Error),
}

/// Runs until the cluster is ended. Returns only with an error of its own: of the set-up, or of the
/// supervision of the parts.
pub fn run(state: &Path) -> Result<(), Error> {
    let state = StateFolder::at(state.to_path_buf());
    // The host's /proc is still mounted here, so this is the process number on the host.
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
    // This file tells `up` that the network namespace exists and can be connected.
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
    // `unshare` made every mount private to this namespace. Pods may ask for mount propagation, so
    // INIT makes the mounts shared again: among the namespaces of this cluster only.
    change("/", Path::new("/"), MsFlags::MS_SHARED | MsFlags::MS_REC)
}

/// Mounts an empty file system over `folder`. The folder `shared` stays visible in it.
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
    // The addresses are on the loopback interface and not on a bridge. Each pod has a veth pair of
    // its own (CNI plugin "ptp"), so the kernel routes the traffic from a pod through a service to
    // a pod. That needs no br_netfilter, which not every kernel has loaded.
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
    // Without this route, packets for a machine that no longer exists follow the default route to
    // the host, and the host's route sends them back.
    network::ip(&["route", "add", "unreachable", &plan.machines])?;
    // The CNI plugin switches forwarding on when it connects the first pod.
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
            // Only the end of a process can change a status now, so INIT need not poll an idle
            // cluster.
            wait_for_an_end(&mut supervisor, state)?;
        } else {
            note_ends(&mut supervisor, state)?;
            if supervisor.due().is_empty() {
                std::thread::sleep(LOOK);
            }
        }
    }
}

fn wait_for_an_end(supervisor: &mut Supervisor, state: &StateFolder) -> Result<(), Error> {
    match waitpid(None, None) {
        Ok(status) => note(supervisor, status, state),
        Err(Errno::EINTR) => {}
        // No process is left, so every part is dead. INIT keeps running, so that `status` and
        // `down` find the cluster.
        Err(Errno::ECHILD) => pause(),
        Err(source) => return Err(waiting_failed(source)),
    }
    Ok(())
}

fn note_ends(supervisor: &mut Supervisor, state: &StateFolder) -> Result<(), Error> {
    loop {
        match waitpid(None, Some(WaitPidFlag::WNOHANG)) {
            Ok(WaitStatus::StillAlive) | Err(Errno::ECHILD) => return Ok(()),
            Ok(status) => note(supervisor, status, state),
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

fn note(supervisor: &mut Supervisor, status: WaitStatus, state: &StateFolder) {
    let (pid, exit) = match status {
        WaitStatus::Exited(pid, code) => (pid, format!("exit status {code}")),
        WaitStatus::Signaled(pid, signal, _) => {
            let number = signal as i32;
            (pid, format!("killed by signal {number} ({signal})"))
        }
        _ => return,
    };
    let (pid, now) = (pid.as_raw(), Timestamp::now());
    let part = supervisor.part_of(pid);
    // Whoever asks for a restart leaves this file before the process is killed.
    let is_asked = part.is_some_and(|name| fs::remove_file(state.restart(name)).is_ok());
    if is_asked {
        supervisor.ended_as_asked(pid, now);
    } else {
        supervisor.exited(pid, exit, now);
    }
}

fn start(part: &Part, environment: &[(String, String)]) -> Result<i32, std::io::Error> {
    // A missing program must fail here. `spawn` would wait for its failed child itself, but only
    // INIT's own loop may reap processes.
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
