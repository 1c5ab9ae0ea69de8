//! Reads a workspace's parameters and last status from its composite.

use api::internal::{Counter, Handled, InternalStatus};
use api::lifecycle::WorkspaceLifecycle;
use api::patterns;
use api::workspace::{GpuDevWorkspaceStatus, WorkspaceParameters};
use function_runtime::composite::{Composite, Origin};
use function_runtime::json::Json;
use function_runtime::outcome::{Problem, Refusal};
use function_runtime::validation::{Schema, Violations, given};
use serde::de::DeserializeOwned;
use thiserror::Error;

static PARAMETERS: Schema<WorkspaceParameters> = Schema::of("spec.parameters", patterns::message);

/// The composite has no namespace and no claim, so the function has no namespace to compose into.
#[derive(Clone, Debug, Error)]
#[error(
    "metadata.namespace: {kind} {name} has no namespace to compose into; create a \
     GpuDevWorkspaceClaim in a namespace instead of the {kind} itself"
)]
struct NoNamespace {
    kind: String,
    name: String,
}

impl Problem for NoNamespace {
    fn reason(&self) -> &'static str {
        "CompositeInvalid"
    }
}

/// Namespace and name of the workspace.
///
/// # Errors
///
/// The composite has neither a namespace nor a claim.
pub fn origin(composite: Composite<'_>) -> Result<Origin, Refusal> {
    composite.origin().ok_or_else(|| {
        Refusal::from(NoNamespace {
            kind: composite.kind().to_owned(),
            name: composite.name().to_owned(),
        })
    })
}

/// `spec.parameters`. They are validated here again, because a composite may be older than its
/// schema.
pub fn parameters(composite: Composite<'_>) -> Result<WorkspaceParameters, Violations> {
    PARAMETERS.read(&given(composite.at(&["spec", "parameters"])))
}

/// Whether the claim has placement `Cluster`. It is read even if other parameters are invalid.
pub fn is_in_cluster(composite: Composite<'_>) -> bool {
    composite.text(&["spec", "parameters", "placement"]) == "Cluster"
}

/// The owner that the claim names; empty if the claim names no valid owner. It is read even if other
/// parameters are invalid.
pub fn named_owner(composite: Composite<'_>) -> &str {
    let owner = composite.text(&["spec", "parameters", "owner"]);
    if is_owner(owner) { owner } else { "" }
}

/// The owner of a composite with a claim, as its status has it; empty if there is none. Developers
/// cannot write that status. A namespaced composite has its owner in its record.
pub fn recorded_owner(composite: Composite<'_>) -> &str {
    match composite.text(&["status", "owner"]) {
        // The status of an earlier version of the function has no owner.
        "" => named_owner(composite),
        recorded => recorded,
    }
}

/// Whether a text matches the schema of `spec.parameters.owner`. The function reads the owner in
/// every call, and a regular expression would be slower.
pub fn is_owner(text: &str) -> bool {
    let is_inner = |byte: u8| matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'.' | b'_' | b'-');
    let is_outer = |byte: Option<&u8>| byte.is_some_and(u8::is_ascii_alphanumeric);
    let bytes = text.as_bytes();
    bytes.len() <= 63
        && bytes.iter().copied().all(is_inner)
        && is_outer(bytes.first())
        && is_outer(bytes.last())
}

/// The lifecycle that the claim asks for. It is read field by field, even if other parameters are
/// invalid, because a claim's error must not switch off its limits. A field with an invalid value
/// counts as unset.
pub fn lifecycle(composite: Composite<'_>) -> WorkspaceLifecycle {
    WorkspaceLifecycle {
        state: wish(composite, "state").unwrap_or_default(),
        max_lifetime: wish(composite, "maxLifetime"),
        stop_after_idle: wish(composite, "stopAfterIdle"),
        delete_after_stopped: wish(composite, "deleteAfterStopped"),
    }
}

fn wish<T: DeserializeOwned>(composite: Composite<'_>, field: &str) -> Option<T> {
    let wish = composite.at(&["spec", "parameters", "lifecycle", field])?;
    wish.read().ok()
}

/// Whether the claim has a home. It is read even if the parameters are invalid.
pub fn asks_for_home(composite: Composite<'_>) -> bool {
    composite.at(&["spec", "parameters", "home"]).is_some()
}

/// A status of a workspace. A field with an unknown shape, which another version of the
/// function wrote, counts as unset.
pub fn status(status: Option<&Json<'_>>) -> GpuDevWorkspaceStatus {
    GpuDevWorkspaceStatus {
        phase: field(status, "phase"),
        // It follows from the rest.
        machine: None,
        message: field(status, "message"),
        owner: field(status, "owner"),
        ssh: field(status, "ssh"),
        instance_id: field(status, "instanceId"),
        instance_type: field(status, "instanceType"),
        capacity_type: field(status, "capacityType"),
        zone: field(status, "zone"),
        public_ip: field(status, "publicIp"),
        private_ip: field(status, "privateIp"),
        region: field(status, "region"),
        choice: field(status, "choice"),
        image: field(status, "image"),
        opencv_version: field(status, "opencvVersion"),
        pytorch_version: field(status, "pytorchVersion"),
        home: field(status, "home"),
        pods: field(status, "pods"),
        nodes: field(status, "nodes").unwrap_or_default(),
        host_keys: field(status, "hostKeys").unwrap_or_default(),
        queue: field(status, "queue"),
        lifecycle: field(status, "lifecycle"),
        activity: field(status, "activity"),
        cost: field(status, "cost"),
        internal: field(status, "internal").or_else(|| internal_before(status?)),
    }
}

/// The memory in a record of an earlier version of the function, which had it among the fields for
/// users.
fn internal_before(status: &Json<'_>) -> Option<InternalStatus> {
    let [machines, lifecycle] = ["cost", "lifecycle"].map(|name| status.get(name));
    let homes = machines.and_then(|cost| cost.get("home"));
    let handled = lifecycle.and_then(|lifecycle| lifecycle.read::<Handled>().ok());
    let internal = InternalStatus {
        machines: machines.and_then(|cost| cost.read::<Counter>().ok()),
        homes: homes.and_then(|cost| cost.read::<Counter>().ok()),
        budget_request: field(machines, "request"),
        handled: handled.unwrap_or_default(),
    };
    (internal != InternalStatus::default()).then_some(internal)
}

fn field<T: DeserializeOwned>(status: Option<&Json<'_>>, name: &str) -> Option<T> {
    status?.get(name)?.read().ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_status_with_an_unknown_phase_keeps_its_image() {
        let written = json!({"phase": "Asleep", "image": {"id": "ami-1", "name": "default"}});
        let status = status(Some(&written.into()));
        assert_eq!(status.phase, None);
        assert_eq!(status.image.unwrap().id, "ami-1");
    }

    #[test]
    fn the_memory_of_an_earlier_version_is_found() {
        let written = json!({
            "cost": {"earlierUsd": 1.5, "request": {"usd": 2}, "home": {"since": "2026-11-20T10:00:00Z"}},
            "lifecycle": {"resume": "monday", "stop": "tuesday"},
        });
        let memory = status(Some(&written.into())).internal.unwrap();
        let earlier = memory
            .machines
            .map(|machines| machines.earlier_usd.to_string());
        assert_eq!(earlier.as_deref(), Some("1.5"));
        assert!(memory.homes.unwrap().since.is_some());
        assert_eq!(memory.budget_request, None, "it is incomplete");
        assert_eq!(memory.handled.resume.as_deref(), Some("monday"));
        assert_eq!(memory.handled.stop.as_deref(), Some("tuesday"));
        assert_eq!(
            status(Some(&json!({"phase": "Ready"}).into())).internal,
            None
        );
    }

    #[test]
    fn a_wrong_value_is_named_by_its_path() {
        let cases = [
            (
                json!({"owner": "Alice"}),
                "spec.parameters.owner: write lower-case letters, digits, ., _ and -",
            ),
            (
                json!({"owner": "a".repeat(64)}),
                "spec.parameters.owner: must have at most 63 characters",
            ),
            (
                json!({"owner": "a", "ssh": {"publicKeys": ["ssh-rsa AAAA", "nonsense"]}}),
                "spec.parameters.ssh.publicKeys[1]: write an OpenSSH public key",
            ),
            (
                json!({"owner": "a", "placement": "Moon"}),
                "spec.parameters.placement: must be \"EC2\" or \"Cluster\"",
            ),
            (
                json!({"owner": "a", "capacityType": "Reserved"}),
                "spec.parameters.capacityType: must be \"Spot\" or \"SpotWithFallback\" or \"OnDemand\"",
            ),
            (
                json!({"owner": "a", "opencvVersion": 4.8}),
                "spec.parameters.opencvVersion: 4.8 is not of types \"null\", \"string\"",
            ),
        ];
        for (value, expected) in cases {
            let message = PARAMETERS.read(&value).unwrap_err().to_string();
            assert!(message.starts_with(expected), "{message}");
        }
    }

    #[test]
    fn several_wrong_values_are_all_named_in_a_fixed_order() {
        let value = json!({"region": "mars", "owner": "-"});
        let message = PARAMETERS.read(&value).unwrap_err().to_string();
        let owner = message.find("spec.parameters.owner").unwrap();
        assert!(owner < message.find("; spec.parameters.region").unwrap());
    }
}
