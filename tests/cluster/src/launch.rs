//! Starts a prepared cluster and waits for it, part by part.

use std::fs::{self, File};
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::Duration;

use crate::binaries;
use crate::cache;
use crate::cgroups;
use crate::command::{self, tail};
use crate::configuration::first_objects;
use crate::crossplane;
use crate::images;
use crate::layout::Layout;
use crate::network;
use crate::processes::Identity;
use crate::progress::Progress;
use crate::state::{self, StateFolder};
use crate::supervisor::{PartState, PartStatus};
use crate::up::InitProgram;
use crate::wait::{self, Deadline};

/// The interval between two looks at the cluster.
const LOOK: Duration = Duration::from_millis(100);
/// The time limit for what takes a moment on an idle machine, so that it also fits a busy one.
const PATIENCE: Duration = Duration::from_mins(2);
/// The time limit for Crossplane's pods: an image of 70 MB, two init containers, many CRDs.
const CROSSPLANE_PATIENCE: Duration = Duration::from_mins(5);
/// `launch` waits for these two parts first, because its next steps need them.
const REGISTRY: &str = "registry";
const APISERVER: &str = "kube-apiserver";
/// The number of lines of a log that are shown.
const LINES: usize = 20;

/// What can go wrong.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A file cannot be read or written.
    #[error(transparent)]
    Cache(#[from] cache::Error),
    /// The state folder cannot be read.
    #[error(transparent)]
    State(#[from] state::Error),
    /// The network cannot be set up.
    #[error(transparent)]
    Network(#[from] network::Error),
    /// A binary is missing.
    #[error(transparent)]
    Binaries(#[from] binaries::Error),
    /// The cgroups of an earlier cluster cannot be removed.
    #[error(transparent)]
    Cgroups(#[from] cgroups::Error),
    /// A program failed.
    #[error(transparent)]
    Command(#[from] command::Error),
    /// Something did not happen in time.
    #[error(transparent)]
    Wait(#[from] wait::Error),
    /// A part ended.
    #[error("{}", .0.describe_death())]
    Died(Box<PartStatus>),
    /// The first process ended, or did not start.
    #[error("the cluster's first process ended\n  log: {log}, which ends with:\n{tail}")]
    Init {
        /// Its log.
        log: PathBuf,
        /// The last lines of the log.
        tail: String,
    },
}

/// Starts INIT, waits for the parts and installs Crossplane.
pub(crate) fn launch(
    layout: &Layout,
    init: &InitProgram,
    crossplane: &crossplane::Files,
    progress: &Progress,
) -> Result<(), Error> {
    let step = progress.begin("namespaces and network");
    // Such cgroups exist if someone deleted a cluster's state folder while the cluster ran.
    cgroups::remove(&layout.cgroup())?;
    let identity = start_init(layout, init)?;
    network::connect(layout.addresses, identity.pid)?;
    step.end("ready");
    let cluster = Running { layout, identity };

    cluster.await_part(REGISTRY, progress)?;
    let step = progress.begin("images");
    push_pause(layout)?;
    crossplane::push_image(layout, crossplane)?;
    step.end("pushed");

    cluster.await_part(APISERVER, progress)?;
    let step = progress.begin("service of the DNS, storage class");
    apply_first_objects(layout)?;
    step.end("applied");

    let step = progress.begin("Crossplane");
    cluster.install_crossplane(crossplane)?;
    step.end("ready");
    for part in layout.state.parts()? {
        if ![REGISTRY, APISERVER].contains(&part.name.as_str()) {
            cluster.await_part(&part.name, progress)?;
        }
    }
    Ok(())
}

fn start_init(layout: &Layout, init: &InitProgram) -> Result<Identity, Error> {
    let log = layout.state.log("init");
    let output = File::create(&log).map_err(cache::Error::io("create", &log))?;
    let error = output.try_clone().map_err(cache::Error::io("open", &log))?;
    // `setsid` starts a session of its own, so that neither Ctrl-C nor the end of the terminal
    // reaches the cluster. INIT mounts its own /proc (see init.rs).
    let mut unshare = Command::new("setsid");
    unshare
        .args(["--fork", "unshare", "--fork", "--kill-child=SIGKILL"])
        .args(["--pid", "--mount", "--net", "--ipc", "--uts"])
        .arg(layout.state.init_program())
        .args(&init.arguments)
        .arg(layout.state.root())
        .stdin(Stdio::null())
        .stdout(output)
        .stderr(error);
    let started = unshare.status().map_err(|source| command::Error::Start {
        program: command::describe(&unshare),
        source,
    })?;
    if !started.success() {
        return Err(init_failed(&layout.state));
    }
    wait::until(
        "the cluster's first process",
        Deadline::after(PATIENCE),
        LOOK,
        || {
            // INIT prints only when it fails.
            let said = fs::metadata(&log).map_or(0, |log| log.len());
            match layout.state.init() {
                Ok(Some(identity)) => Ok(Ok(identity)),
                _ if said > 0 => Ok(Err(init_failed(&layout.state))),
                Ok(None) => Err("it has not reported yet".to_owned()),
                Err(error) => Err(error.to_string()),
            }
        },
    )?
}

pub(crate) fn init_failed(state: &StateFolder) -> Error {
    let log = state.log("init");
    Error::Init {
        tail: tail(&log, LINES),
        log,
    }
}

fn push_pause(layout: &Layout) -> Result<(), Error> {
    let layer = layout.state.temporary().join("pause.tar.gz");
    images::pack_binary(layout.binaries.path("pause")?, &layer)?;
    images::push(
        &layout.program("crane"),
        &images::Image {
            reference: &layout.pause_image(),
            layers: &[layer],
            entrypoint: "/pause",
            environment: &[],
            user: None,
        },
    )?;
    Ok(())
}

fn apply_first_objects(layout: &Layout) -> Result<(), Error> {
    let mut kubectl = Command::new(layout.program("kubectl"));
    kubectl
        .env("KUBECONFIG", layout.state.kubeconfig())
        // The objects are new and come from this crate, so nothing must be merged or validated.
        .args(["create", "--validate=false", "-f", "-"]);
    command::output_with_input(&mut kubectl, &first_objects(layout).to_string())?;
    Ok(())
}

/// A cluster whose INIT was started.
struct Running<'a> {
    layout: &'a Layout,
    identity: Identity,
}

impl Running<'_> {
    /// Returns the parts' statuses. Fails if a part or INIT has ended.
    fn check(&self) -> Result<Vec<PartStatus>, Error> {
        let parts = self.layout.state.parts()?;
        if let Some(dead) = parts.iter().find(|part| part.state == PartState::Dead) {
            return Err(Error::Died(Box::new(dead.clone())));
        }
        if self.identity.is_alive() {
            Ok(parts)
        } else {
            Err(init_failed(&self.layout.state))
        }
    }

    fn await_part(&self, name: &str, progress: &Progress) -> Result<(), Error> {
        let step = progress.begin(name);
        let what = format!("{name} to be ready");
        wait::until(&what, Deadline::after(PATIENCE), LOOK, || {
            let parts = match self.check() {
                Ok(parts) => parts,
                Err(error) => return Ok(Err(error)),
            };
            match parts.iter().find(|part| part.name == name) {
                Some(part) if part.state == PartState::Ready => Ok(Ok(())),
                Some(part) => Err(observation(part)),
                None => Err("INIT has not reported it yet".to_owned()),
            }
        })??;
        step.end("ready");
        Ok(())
    }

    fn install_crossplane(&self, files: &crossplane::Files) -> Result<(), Error> {
        let mut helm = crossplane::installation(self.layout, files)?;
        let log = self.layout.state.log("helm");
        let output = File::create(&log).map_err(cache::Error::io("create", &log))?;
        let error = output.try_clone().map_err(cache::Error::io("open", &log))?;
        let program = command::describe(&helm);
        let start = |source| command::Error::Start {
            program: program.clone(),
            source,
        };
        let mut child = helm
            .stdin(Stdio::null())
            .stdout(output)
            .stderr(error)
            .spawn()
            .map_err(start)?;
        let deadline = Deadline::after(CROSSPLANE_PATIENCE);
        let ended = wait::until("Crossplane's pods to be ready", deadline, LOOK, || {
            if let Err(error) = self.check() {
                return Ok(Err(error));
            }
            match child.try_wait() {
                Ok(Some(status)) => Ok(Ok(status)),
                Ok(None) => Err(String::new()),
                Err(error) => Ok(Err(start(error).into())),
            }
        });
        if !matches!(ended, Ok(Ok(_))) {
            child.kill().map_err(start)?;
            child.wait().map_err(start)?;
        }
        let ended = ended.map_err(|missed| wait::Error {
            observed: self.pods(),
            ..missed
        })??;
        if ended.success() {
            return Ok(());
        }
        Err(command::Error::FailedWithLog {
            program,
            status: ended,
            output: format!("{}\n  pods:\n{}", tail(&log, LINES), self.pods()),
            log,
        }
        .into())
    }

    /// The list of pods, as `kubectl` prints it.
    fn pods(&self) -> String {
        let mut kubectl = Command::new(self.layout.program("kubectl"));
        kubectl
            .env("KUBECONFIG", self.layout.state.kubeconfig())
            .args(["get", "pods", "--all-namespaces", "--request-timeout=5s"]);
        command::output(&mut kubectl).unwrap_or_else(|error| error.to_string())
    }
}

fn observation(part: &PartStatus) -> String {
    match &part.observed {
        Some(observed) => format!(
            "{} ({observed}); its log is {}, which ends with:\n{}",
            part.state,
            part.log.display(),
            tail(&part.log, LINES)
        ),
        None => part.state.to_string(),
    }
}
