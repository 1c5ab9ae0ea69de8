//! What users see of a workspace on EC2: phase, message, address, conditions and events.

use api::condition::{COMPUTE_READY, HOME_READY, INTERRUPTING};
use api::workspace::{GpuDevWorkspaceStatus, Phase};
use function_runtime::composite::Composite;
use function_runtime::response::{Condition, Event, Severity};
use function_workspace::cause::{Cause, Reason};
use function_workspace::conditions;
use function_workspace::placed::Claimed;
use function_workspace::report::{self, Report};

use crate::compose::{AtRest, Composed};
use crate::finding::{Finding, Machine, Outlook};
use crate::on_demand::home;

/// The reason of `Interrupting` after AWS has announced an interruption, and of its event.
const WARNING: &str = "InterruptionWarning";

/// The report about a workspace that runs.
pub fn report(composed: &Composed, claimed: &Claimed<'_>) -> Report {
    let previous = &claimed.previous;
    let Composed {
        target,
        serving,
        home,
        ..
    } = composed;
    let machine = composed.machine();
    let serving = serving.as_ref();
    let attached = home.as_ref().is_none_or(|home| home.attached);
    let compute_cause = compute_cause(target, serving);
    let cause = match (&compute_cause, home) {
        (Some(cause), _) => Some(cause),
        (None, Some(home)) if !home.ready => Some(&home.cause),
        (None, _) => None,
    };
    let warning = machine.and_then(warning);
    let message = cause.map(|cause| cause.message.clone());
    let phase = phase(target, serving, attached, previous);
    let status = match machine {
        Some(machine) => at(machine),
        None if target.outlook == Outlook::Unreadable => previous.clone(),
        None => without_address(previous),
    };
    let status = GpuDevWorkspaceStatus {
        phase: Some(phase),
        message: message.or_else(|| warning.clone()),
        region: previous.region.clone(),
        choice: previous.choice.clone(),
        image: previous.image.clone(),
        opencv_version: previous.opencv_version.clone(),
        pytorch_version: previous.pytorch_version.clone(),
        home: home
            .as_ref()
            .and_then(|home| home.status.clone())
            .or_else(|| previous.home.clone()),
        ..status
    };
    let news = warning.as_ref().filter(|text| !was_warned(claimed, text));
    let events = events(previous, &status, news);
    let compute = condition(COMPUTE_READY, "Available", compute_cause.as_ref());
    let interrupting = interrupting(claimed, warning);
    Report {
        events,
        ready: cause.is_none(),
        conditions: [compute]
            .into_iter()
            .chain(home.as_ref().map(home_condition))
            .chain(interrupting)
            .collect(),
        connection: match machine {
            Some(machine) => report::connection(&machine.address),
            // Only an unreadable machine keeps its address in status.
            None => report::last_connection(&status),
        },
        status,
    }
}

/// The report about a workspace with a resource that cannot be read. It repeats what the last call
/// reported. The workspace is not ready, because the function cannot see whether its machine runs.
pub fn unread(claimed: &Claimed<'_>) -> Report {
    let previous = &claimed.previous;
    Report {
        status: previous.clone(),
        ready: false,
        conditions: conditions::observed(claimed.composite),
        events: Vec::new(),
        connection: report::last_connection(previous),
    }
}

/// The report about a workspace that does not run. `because` is the reason, and `phase` the phase
/// once the last machine is gone.
pub fn at_rest(rest: &AtRest, because: &Cause, phase: Phase, claimed: &Claimed<'_>) -> Report {
    let previous = &claimed.previous;
    let cause = if rest.left.is_empty() {
        because.clone()
    } else {
        let left = rest.left.join(", ");
        let message = format!("{}; waiting for {left} to end", because.message);
        match &rest.hindrance {
            Some(hindrance) => Cause::new(
                hindrance.reason.clone(),
                format!("{message}: {}", hindrance.message),
            ),
            None => Cause::new(Reason::Stopping, message),
        }
    };
    let is_kept = rest.instance_id.is_some();
    let status = GpuDevWorkspaceStatus {
        phase: Some(if rest.left.is_empty() {
            phase
        } else {
            Phase::Stopping
        }),
        message: Some(cause.message.clone()),
        instance_id: rest.instance_id.clone(),
        instance_type: previous.instance_type.clone().filter(|_| is_kept),
        capacity_type: previous.capacity_type.filter(|_| is_kept),
        zone: previous.zone.clone().filter(|_| is_kept),
        // The next machine is chosen anew. A stopped one keeps its type.
        choice: previous.choice.clone().filter(|_| is_kept),
        home: match &rest.home {
            Some(home) => home.status.clone().or_else(|| previous.home.clone()),
            None => previous.home.clone().filter(|_| rest.keeps_home),
        },
        ..without_address(previous)
    };
    Report {
        events: events(previous, &status, None),
        ready: false,
        conditions: [condition(COMPUTE_READY, "Available", Some(&cause))]
            .into_iter()
            .chain(rest.home.as_ref().map(home_condition))
            .chain(not_interrupting(claimed.composite))
            .collect(),
        connection: Vec::new(),
        status,
    }
}

/// The warning that AWS will take the machine back; none without an announcement.
fn warning(machine: &Machine) -> Option<String> {
    machine.is_taken_back.then(|| {
        format!(
            "AWS takes instance {} back within two minutes: save your work elsewhere; another \
             instance follows",
            machine.id
        )
    })
}

/// Whether the last call told this warning. Its status may have another message, for example that the
/// software is being installed, or that a pool is being deleted. The condition keeps the warning.
fn was_warned(claimed: &Claimed<'_>, warning: &str) -> bool {
    let before = claimed.composite.condition(INTERRUPTING);
    before.is_some_and(|before| before.message == warning)
}

/// `Interrupting`; none for a workspace that AWS has never warned.
fn interrupting(claimed: &Claimed<'_>, warning: Option<String>) -> Option<Condition> {
    match warning {
        Some(warning) => Some(Condition::true_with_message(INTERRUPTING, WARNING, warning)),
        None => not_interrupting(claimed.composite),
    }
}

/// `Interrupting` with status `False`, if AWS has warned the workspace before.
fn not_interrupting(composite: Composite<'_>) -> Option<Condition> {
    let before = composite.condition(INTERRUPTING);
    before.map(|_| Condition::is_false(INTERRUPTING, "NotInterrupting", "AWS takes nothing back"))
}

fn home_condition(home: &home::Finding) -> Condition {
    condition(HOME_READY, "Attached", (!home.ready).then_some(&home.cause))
}

fn condition(type_: &'static str, ready: &str, cause: Option<&Cause>) -> Condition {
    match cause {
        None => Condition::is_true(type_, ready),
        Some(cause) => cause.condition(type_),
    }
}

/// Why the target does not serve; none if it does.
fn compute_cause(target: &Finding, serving: Option<&Machine>) -> Option<Cause> {
    let cause = (!target.serves_well()).then(|| target.cause.clone());
    match (cause, serving) {
        (Some(cause), Some(serving)) => Some(Cause::new(
            cause.reason,
            format!(
                "instance {} ({}) serves until its replacement does: {}",
                serving.id, serving.instance_type, cause.message
            ),
        )),
        (cause, _) => cause,
    }
}

fn phase(
    target: &Finding,
    serving: Option<&Machine>,
    attached: bool,
    previous: &GpuDevWorkspaceStatus,
) -> Phase {
    let was_ready = previous.phase == Some(Phase::Ready);
    let usable = target.machine.is_some() && attached;
    if serving.is_some() {
        return Phase::Provisioning;
    }
    if usable && (target.in_order || was_ready) {
        // A ready workspace stays ready while its instance runs, even if the provider reports
        // problems.
        return Phase::Ready;
    }
    match target.outlook {
        Outlook::Unreadable => previous.phase.unwrap_or(Phase::Provisioning),
        Outlook::NeedsPerson => Phase::Failed,
        Outlook::Waiting if previous.instance_id.is_some() => Phase::Interrupted,
        Outlook::Runs | Outlook::Waiting | Outlook::Starting => Phase::Provisioning,
    }
}

/// The status without addresses: EC2 may already have given them to another customer.
fn without_address(previous: &GpuDevWorkspaceStatus) -> GpuDevWorkspaceStatus {
    GpuDevWorkspaceStatus {
        ssh: None,
        public_ip: None,
        private_ip: None,
        ..previous.clone()
    }
}

fn at(machine: &Machine) -> GpuDevWorkspaceStatus {
    GpuDevWorkspaceStatus {
        host_keys: machine.host_keys.clone(),
        ssh: Some(report::ssh(&machine.address)),
        instance_id: Some(machine.id.clone()),
        instance_type: Some(machine.instance_type.clone()),
        capacity_type: Some(machine.capacity_type),
        zone: Some(machine.zone.clone()),
        public_ip: machine.public_ip.clone(),
        private_ip: machine.private_ip.clone(),
        ..GpuDevWorkspaceStatus::default()
    }
}

fn events(
    previous: &GpuDevWorkspaceStatus,
    status: &GpuDevWorkspaceStatus,
    warning: Option<&String>,
) -> Vec<Event> {
    let id = status.instance_id.as_deref().unwrap_or_default();
    let ssh = status.ssh.as_deref().unwrap_or_default();
    let ready = format!("instance {id} is ready: {ssh}");
    let transition = report::phase_event(previous.phase, status, ready);
    let news = warning.filter(|_| status.message.as_ref() == warning);
    let warning = news.map(|message| Event {
        severity: Severity::Warning,
        reason: WARNING,
        message: message.clone(),
    });
    transition
        .into_iter()
        .chain(warning)
        .chain(home_event(previous, status))
        .collect()
}

/// The event of another volume id. In another zone, the new volume of a pool is a copy of the old
/// one. Any other new volume is empty.
fn home_event(before: &GpuDevWorkspaceStatus, status: &GpuDevWorkspaceStatus) -> Option<Event> {
    let (before, now) = (before.home.as_ref()?, status.home.as_ref()?);
    let (lost, found) = (&before.volume_id, &now.volume_id);
    if lost == found {
        return None;
    }
    if now.pool.is_some() && before.zone != now.zone {
        let (from, to) = (&before.zone, &now.zone);
        return Some(Event {
            severity: Severity::Normal,
            reason: "HomeMoved",
            message: format!("the home moved from {from} to {to}: {found} is a copy of {lost}"),
        });
    }
    Some(Event {
        severity: Severity::Warning,
        reason: "HomeReplaced",
        message: format!("the home volume {lost} is gone; {found}, an empty one, takes its place"),
    })
}
