//! What users see of a workspace in every placement: status, conditions, events and connection
//! details.

use api::workspace::{GpuDevWorkspaceStatus, Phase};
use function_runtime::response::{Condition, Event, Severity};

use crate::login::USER;

/// The reason of the event of a workspace that became ready.
const READY: &str = "WorkspaceReady";
/// The port of the SSH server.
const SSH_PORT: &str = "22";

/// The state of a workspace, from its resources and its last status.
#[derive(Clone, Debug, PartialEq)]
pub struct Report {
    /// The composite's complete status. Crossplane removes fields that are left out.
    pub status: GpuDevWorkspaceStatus,
    /// Whether the owner can use the workspace and all its resources are in order.
    pub ready: bool,
    /// `ComputeReady`, then the conditions that only some workspaces have.
    pub conditions: Vec<Condition>,
    /// Events of this call.
    pub events: Vec<Event>,
    /// Connection details: host, port, SSH command and user. Empty without an address.
    pub connection: Vec<(&'static str, String)>,
}

impl Report {
    /// The report with a further condition.
    #[must_use]
    pub fn with(mut self, condition: Condition) -> Self {
        self.conditions.push(condition);
        self
    }

    /// Takes Ready away for this reason, and gives a workspace this phase instead of `Ready`. `before`
    /// is the phase that the last call reported.
    pub fn hold_back(&mut self, phase: Phase, message: String, before: Option<Phase>) {
        self.ready = false;
        if self.take_back_ready(phase) {
            self.status.message = Some(message);
            let event = phase_event(before, &self.status, String::new());
            self.events.extend(event);
        }
    }

    /// Gives a workspace this phase instead of `Ready`, without the event of a workspace that became
    /// ready. False if its phase is another one, which stays.
    pub fn take_back_ready(&mut self, phase: Phase) -> bool {
        if self.status.phase != Some(Phase::Ready) {
            return false;
        }
        self.status.phase = Some(phase);
        self.events.retain(|event| event.reason != READY);
        true
    }
}

/// The SSH command to log in.
pub fn ssh(host: &str) -> String {
    format!("ssh {USER}@{host}")
}

/// The command to log in to the pods of a workspace. Outside the cluster, nothing resolves a pod's
/// name and nothing leads to its address, so devctl connects through the API server.
pub fn ssh_by_devctl(claim: &str, namespace: &str) -> String {
    format!("devctl ssh {claim} --namespace {namespace}")
}

/// The machine of a workspace in a few words; none if it has none.
pub fn machine(status: &GpuDevWorkspaceStatus) -> Option<String> {
    let pods = status.pods.as_ref();
    let pods = pods.map(|pods| match pods.nodes {
        1 => pods.flavor.clone(),
        nodes => format!("{nodes} x {}", pods.flavor),
    });
    pods.or_else(|| status.instance_type.clone())
}

/// The connection details of a workspace with an address.
pub fn connection(host: &str) -> Vec<(&'static str, String)> {
    vec![
        ("host", host.to_owned()),
        ("port", SSH_PORT.to_owned()),
        ("ssh", ssh(host)),
        ("user", USER.to_owned()),
    ]
}

/// The connection details of the address in a status; empty without an address.
pub fn last_connection(status: &GpuDevWorkspaceStatus) -> Vec<(&'static str, String)> {
    let host = status.ssh.as_deref();
    let host = host.and_then(|ssh| ssh.strip_prefix(&self::ssh("")));
    host.map(connection).unwrap_or_default()
}

/// The event of a new phase; none if the phase is the same as `before`. `ready` is the message for
/// phase Ready. The message for other phases is the status's message.
pub fn phase_event(
    before: Option<Phase>,
    status: &GpuDevWorkspaceStatus,
    ready: String,
) -> Option<Event> {
    if before == status.phase {
        return None;
    }
    let message = status.message.clone().unwrap_or_default();
    let (severity, reason, message) = match status.phase? {
        Phase::Provisioning | Phase::Queued | Phase::Stopping => return None,
        Phase::Stopped | Phase::Expired => (Severity::Normal, "WorkspaceStopped", message),
        Phase::Ready => (Severity::Normal, READY, ready),
        Phase::Failed => (Severity::Warning, "WorkspaceFailed", message),
        Phase::Interrupted => (Severity::Warning, "WorkspaceInterrupted", message),
    };
    Some(Event {
        severity,
        reason,
        message,
    })
}
