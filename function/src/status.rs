//! What the user reads: phase, message, address, conditions, events.

use api::condition::{COMPUTE_READY, LAUNCHED, READY, SYNCED};
use api::pool::PoolInstance;
use api::workspace::{GpuDevWorkspaceStatus, Phase};

use crate::claim_paths::ClaimPaths;
use crate::observed::{LaunchFailure, ObservedPool};
use crate::response::{Condition, Event, Severity};
use crate::user_data::USER;

/// Where SSH listens.
const SSH_PORT: &str = "22";

/// The state of a workspace, as it follows from its pool and from what its last
/// status says.
#[derive(Clone, Debug, PartialEq)]
pub struct Report {
    /// The XR's status, whole: a field that is left out is removed.
    pub status: GpuDevWorkspaceStatus,
    /// Whether the workspace can be used and its pool is in order.
    pub ready: bool,
    /// `ComputeReady`.
    pub compute: Condition,
    /// A change of phase that somebody should hear of.
    pub event: Option<Event>,
    /// Host, user, port and command, while there is an address.
    pub connection: Vec<(&'static str, String)>,
}

/// Why the compute is not ready.
#[derive(Clone, Debug, PartialEq)]
struct Cause {
    reason: String,
    message: String,
}

/// Reports on a workspace. `previous` is the XR's status as observed.
pub fn report(
    pool: Option<&ObservedPool>,
    previous: &GpuDevWorkspaceStatus,
    paths: &ClaimPaths,
) -> Report {
    let usable = pool.and_then(|pool| pool.usable(previous.instance_id.as_deref()));
    let in_order = pool.is_some_and(ObservedPool::is_ready);
    let ready = usable.is_some() && in_order;
    let cause = (!ready).then(|| cause(pool, previous, paths));
    let phase = phase(pool, previous, usable.is_some(), in_order);
    let message = cause.as_ref().map(|cause| cause.message.clone());
    let status = match usable {
        Some((instance, address)) => at(instance, address),
        None if pool.is_some_and(|pool| pool.unreadable.is_some()) => previous.clone(),
        None => without_address(previous),
    };
    let status = GpuDevWorkspaceStatus {
        phase: Some(phase),
        message: message.clone(),
        image: previous.image.clone(),
        ..status
    };
    Report {
        event: event(previous.phase, &status),
        compute: match cause {
            None => Condition::holds(COMPUTE_READY, "Available"),
            Some(cause) => Condition::fails(COMPUTE_READY, cause.reason, cause.message),
        },
        connection: usable
            .map(|(_, address)| connection(address))
            .unwrap_or_default(),
        ready,
        status,
    }
}

fn phase(
    pool: Option<&ObservedPool>,
    previous: &GpuDevWorkspaceStatus,
    usable: bool,
    in_order: bool,
) -> Phase {
    let was_ready = previous.phase == Some(Phase::Ready);
    if usable && (in_order || was_ready) {
        // A workspace that is ready stays so while its instance runs, whatever
        // trouble the provider has with looking.
        return Phase::Ready;
    }
    if let Some(pool) = pool {
        if pool.unreadable.is_some() {
            return previous.phase.unwrap_or(Phase::Provisioning);
        }
        let failure = pool.launch_failure().map(|(_, failure)| failure);
        if pool.running().next().is_some() {
            return Phase::Provisioning;
        }
        if failure == Some(LaunchFailure::NeedsPerson) {
            return Phase::Failed;
        }
    }
    match previous.instance_id {
        Some(_) => Phase::Interrupted,
        None => Phase::Provisioning,
    }
}

/// The first cause that applies: what a person has to change, then what the
/// provider cannot do, then what is waited for.
fn cause(
    pool: Option<&ObservedPool>,
    previous: &GpuDevWorkspaceStatus,
    paths: &ClaimPaths,
) -> Cause {
    let Some(pool) = pool else {
        return lost(None, previous).unwrap_or_else(|| Cause {
            reason: "Creating".into(),
            message: "waiting for the SpotPool to be created".into(),
        });
    };
    if let Some(problem) = &pool.unreadable {
        return Cause {
            reason: "StatusUnreadable".into(),
            message: format!(
                "the SpotPool's status has an unknown shape ({problem}); check that the versions of provider-gpu-spot and function-gpu-workspace fit"
            ),
        };
    }
    if pool.deleting {
        return Cause {
            reason: "Deleting".into(),
            message: "the SpotPool is being deleted; another one follows".into(),
        };
    }
    let runs = pool.running().next().is_some();
    let launch = pool.launch_failure().filter(|_| !runs);
    let terminal = launch.filter(|(_, failure)| *failure == LaunchFailure::NeedsPerson);
    let failing = terminal
        .map(|(condition, _)| condition)
        .or_else(|| pool.failing(SYNCED))
        .or_else(|| pool.failing(LAUNCHED).filter(|_| !runs));
    let lost = lost(Some(pool), previous).filter(|_| !runs);
    match (failing, lost) {
        (Some(condition), lost) => {
            let message = paths.translate(&condition.message);
            Cause {
                reason: condition.reason.clone(),
                message: match lost {
                    Some(lost) => format!("{}: {message}", lost.message),
                    None => message,
                },
            }
        }
        (None, Some(lost)) => lost,
        (None, None) => waiting(pool, paths),
    }
}

fn lost(pool: Option<&ObservedPool>, previous: &GpuDevWorkspaceStatus) -> Option<Cause> {
    let id = previous.instance_id.as_deref()?;
    let instance = pool.and_then(|pool| pool.instance(id));
    let why = instance.and_then(|instance| instance.state_reason.as_deref());
    let why = why.map(|why| format!(" ({why})")).unwrap_or_default();
    Some(Cause {
        reason: "Interrupted".into(),
        message: format!("instance {id} is gone{why}, waiting for another one"),
    })
}

fn waiting(pool: &ObservedPool, paths: &ClaimPaths) -> Cause {
    let failing = pool.failing(READY);
    let said = failing.map_or("", |condition| condition.message.as_str());
    let message = if said.is_empty() {
        waited_for(pool)
    } else {
        paths.translate(said)
    };
    Cause {
        reason: failing.map_or("Creating".into(), |condition| condition.reason.clone()),
        message,
    }
}

fn waited_for(pool: &ObservedPool) -> String {
    let Some(instance) = pool.starting() else {
        return "waiting for the SpotPool to launch an instance".into();
    };
    let which = format!(
        "instance {} ({}, {})",
        instance.id, instance.instance_type, instance.zone
    );
    if pool.usable(None).is_some() {
        format!("waiting for the SpotPool to report {which} as ready")
    } else if pool.running().next().is_some() {
        format!("waiting for an address of {which}")
    } else {
        format!("waiting for {which}, which is {}", instance.state)
    }
}

/// The address goes with the instance: EC2 may have given it to somebody else.
fn without_address(previous: &GpuDevWorkspaceStatus) -> GpuDevWorkspaceStatus {
    GpuDevWorkspaceStatus {
        ssh: None,
        public_ip: None,
        private_ip: None,
        ..previous.clone()
    }
}

fn at(instance: &PoolInstance, address: &str) -> GpuDevWorkspaceStatus {
    GpuDevWorkspaceStatus {
        ssh: Some(ssh(address)),
        instance_id: Some(instance.id.clone()),
        instance_type: Some(instance.instance_type.clone()),
        capacity_type: Some(instance.capacity_type),
        zone: Some(instance.zone.clone()),
        public_ip: instance.public_ip.clone(),
        private_ip: instance.private_ip.clone(),
        ..GpuDevWorkspaceStatus::default()
    }
}

fn ssh(address: &str) -> String {
    format!("ssh {USER}@{address}")
}

fn connection(address: &str) -> Vec<(&'static str, String)> {
    vec![
        ("host", address.to_owned()),
        ("port", SSH_PORT.to_owned()),
        ("ssh", ssh(address)),
        ("user", USER.to_owned()),
    ]
}

fn event(before: Option<Phase>, status: &GpuDevWorkspaceStatus) -> Option<Event> {
    if before == status.phase {
        return None;
    }
    let message = status.message.clone().unwrap_or_default();
    let (severity, reason, message) = match status.phase? {
        Phase::Provisioning => return None,
        Phase::Ready => {
            let id = status.instance_id.as_deref().unwrap_or_default();
            let ssh = status.ssh.as_deref().unwrap_or_default();
            (
                Severity::Normal,
                "WorkspaceReady",
                format!("instance {id} is ready: {ssh}"),
            )
        }
        Phase::Failed => (Severity::Warning, "WorkspaceFailed", message),
        Phase::Interrupted => (Severity::Warning, "WorkspaceInterrupted", message),
    };
    Some(Event {
        severity,
        reason,
        message,
    })
}
