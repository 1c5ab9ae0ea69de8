//! What the user reads of a workspace, wherever it runs.

use std::collections::BTreeMap;

use api::workspace::{GpuDevWorkspaceStatus, Phase};
use function_runtime::desired::Composed;
use function_runtime::response::{Condition, Event, Severity};

use crate::login::USER;

/// Where SSH listens.
const SSH_PORT: &str = "22";

/// A workspace's composed resources, and what is reported of them.
#[derive(Clone, Debug, PartialEq)]
pub struct Composition {
    /// By their names.
    pub resources: BTreeMap<String, Composed>,
    /// What the user reads.
    pub report: Report,
    /// What keeps the user out, or has no effect, although nothing is wrong.
    pub notices: Vec<String>,
    /// The reason why the claim could not be resolved as it is now, while what runs goes on.
    pub unresolved: Option<&'static str>,
    /// Whether only watches, and no time that passes, can bring news.
    pub is_settled: bool,
}

/// The state of a workspace, as it follows from its resources and from what its last status
/// says.
#[derive(Clone, Debug, PartialEq)]
pub struct Report {
    /// The composite's status, whole: a field that is left out is removed.
    pub status: GpuDevWorkspaceStatus,
    /// Whether the workspace can be used and all of it is in order.
    pub ready: bool,
    /// `ComputeReady`, then those that not every workspace has.
    pub conditions: Vec<Condition>,
    /// What somebody should hear of.
    pub events: Vec<Event>,
    /// Host, user, port and command, while there is an address.
    pub connection: Vec<(&'static str, String)>,
}

/// The command that logs in.
pub fn ssh(host: &str) -> String {
    format!("ssh {USER}@{host}")
}

/// The connection details of every workspace.
pub fn connection(host: &str) -> Vec<(&'static str, String)> {
    vec![
        ("host", host.to_owned()),
        ("port", SSH_PORT.to_owned()),
        ("ssh", ssh(host)),
        ("user", USER.to_owned()),
    ]
}

/// The event of a phase that was not there `before`. `ready` is the message of a workspace
/// that became Ready; the message of another phase is the status's.
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
        Phase::Ready => (Severity::Normal, "WorkspaceReady", ready),
        Phase::Failed => (Severity::Warning, "WorkspaceFailed", message),
        Phase::Interrupted => (Severity::Warning, "WorkspaceInterrupted", message),
    };
    Some(Event {
        severity,
        reason,
        message,
    })
}
