//! Whether an on-demand instance is on or off: upbound's `InstanceState`.
//!
//! An `Instance` neither stops nor starts what it stands for. An `InstanceState` does,
//! and would start again what its owner shuts down; so it is there only while the
//! workspace is at rest, and until its instance runs again.

use api::policy::WorkspacePolicy;
use function_runtime::desired::Composed;
use function_runtime::outcome::Refusal;
use function_runtime::resource_names::hashed;
use serde_json::{Value, json};

use crate::on_demand::OnDemandInstance;
use crate::on_demand::api::{self as ec2, Managed};
use crate::resource_names;

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
    /// The state of EC2's word, where it is one of both.
    pub fn parse(word: &str) -> Option<Self> {
        let states = [Self::Running, Self::Stopped];
        states.into_iter().find(|state| state.as_str() == word)
    }

    /// EC2's state.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Running => "running",
            Self::Stopped => "stopped",
        }
    }
}

/// The name of an instance's `InstanceState`.
pub fn resource_name(id: &str) -> String {
    hashed(resource_names::INSTANCE_STATE_PREFIX, [id])
}

/// The desired state of an instance; none while it has no id.
///
/// # Errors
///
/// It cannot be written.
pub fn desired(
    instance: &OnDemandInstance<'_>,
    namespace: &str,
    state: InstanceState,
    policy: &WorkspacePolicy,
) -> Result<Option<(String, Value)>, Refusal> {
    let Some(id) = instance.current_id() else {
        return Ok(None);
    };
    let parameters = ec2::InstanceState {
        region: instance.for_provider.region.clone(),
        instance_id: id.to_owned(),
        state: state.as_str().to_owned(),
    };
    let config = &policy.on_demand_provider_config_ref;
    let desired = Composed::manifest(&Managed::new(namespace, config, parameters))?;
    Ok(Some((resource_name(id), desired)))
}

/// Marks an Instance with the state that its machine has reached.
pub fn mark(instance: &mut Value, reached: Option<&str>) {
    if let Some(reached) = reached {
        instance["metadata"]["annotations"][ANNOTATION] = json!(reached);
    }
}
