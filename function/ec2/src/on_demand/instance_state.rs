//! Whether an on-demand instance is on or off: upbound's `InstanceState`.
//!
//! An `Instance` neither stops nor starts what it stands for. An `InstanceState` does,
//! and would start again what its owner shuts down; so it is there only while the
//! workspace is at rest, and until its instance runs again.

use api::policy::WorkspacePolicy;
use function_runtime::object::ObservedObject;
use function_runtime::resource_names::hashed;
use serde_json::{Value, json};

use crate::on_demand::{fields, instance, resource};
use crate::resource_names;

const KIND: &str = "InstanceState";
/// An annotation of the Instance that changes when its machine was started or stopped:
/// upbound's provider looks at an object that changes, and otherwise every ten minutes.
const ANNOTATION: &str = "platform.acme.io/power";

/// The state that an instance is to have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InstanceState {
    /// It runs.
    Running,
    /// It is stopped, its disks kept.
    Stopped,
}

impl InstanceState {
    /// EC2's state.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Running => "running",
            Self::Stopped => "stopped",
        }
    }
}

/// The name of an instance's `InstanceState`.
pub fn key(id: &str) -> String {
    hashed(resource_names::INSTANCE_STATE_PREFIX, [id])
}

/// The desired state of an instance.
pub fn desired(
    instance: ObservedObject<'_>,
    namespace: &str,
    state: InstanceState,
    policy: &WorkspacePolicy,
) -> Option<(String, Value)> {
    let id = instance::id(instance)?;
    let for_provider = fields([
        (
            "region",
            instance.for_provider("region").map(|region| json!(region)),
        ),
        ("instanceId", Some(json!(id))),
        ("state", Some(json!(state.as_str()))),
    ]);
    let config = &policy.on_demand_provider_config_ref;
    Some((key(id), resource(KIND, namespace, config, &for_provider)))
}

/// Marks an Instance with the state that its machine has reached.
pub fn mark(instance: &mut Value, reached: Option<&str>) {
    if let Some(reached) = reached {
        instance["metadata"]["annotations"][ANNOTATION] = json!(reached);
    }
}
