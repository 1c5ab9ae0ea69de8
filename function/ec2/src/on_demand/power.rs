//! Whether an on-demand instance is on or off: upbound's `InstanceState`.
//!
//! An `Instance` neither stops nor starts what it stands for. An `InstanceState` does,
//! and would start again what its owner shuts down; so it is there only while the
//! workspace is at rest, and until its instance runs again.

use api::policy::WorkspacePolicy;
use serde_json::{Value, json};

use crate::on_demand::{fields, instance, resource};
use crate::resource_names;
use function_runtime::managed::Managed;
use function_runtime::resource_names::hashed;

const KIND: &str = "InstanceState";
/// An annotation of the Instance that changes when its machine was turned on or off:
/// upbound's provider looks at an object that changes, and otherwise every ten minutes.
const ANNOTATION: &str = "platform.acme.io/power";

/// Whether an instance is on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Power {
    /// It runs.
    On,
    /// It is stopped, its disks kept.
    Off,
}

impl Power {
    /// EC2's state.
    pub fn state(self) -> &'static str {
        match self {
            Self::On => "running",
            Self::Off => "stopped",
        }
    }
}

/// The key of an instance's power.
pub fn key(id: &str) -> String {
    hashed(resource_names::POWER_PREFIX, [id])
}

/// The desired power of an instance.
pub fn desired(
    instance: Managed<'_>,
    namespace: &str,
    power: Power,
    policy: &WorkspacePolicy,
) -> Option<(String, Value)> {
    let id = instance::id(instance)?;
    let for_provider = fields([
        (
            "region",
            instance.asked("region").map(|region| json!(region)),
        ),
        ("instanceId", Some(json!(id))),
        ("state", Some(json!(power.state()))),
    ]);
    let config = &policy.on_demand_provider_config_ref;
    Some((key(id), resource(KIND, namespace, config, &for_provider)))
}

/// Marks an Instance with where its power stands.
pub fn mark(instance: &mut Value, reached: Option<&str>) {
    if let Some(reached) = reached {
        instance["metadata"]["annotations"][ANNOTATION] = json!(reached);
    }
}
