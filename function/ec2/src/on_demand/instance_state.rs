//! Stops and starts on-demand instances with upbound's kind `InstanceState`.
//!
//! An `Instance` neither stops nor starts its EC2 instance. An `InstanceState` does both, but it
//! would also restart an instance that its owner has shut down. The function therefore desires it
//! only while the workspace is stopped, and until the instance runs again.

use api::policy::WorkspacePolicy;
use function_runtime::desired::Composed;
use function_runtime::outcome::Refusal;
use function_runtime::resource_names::hashed;
use serde_json::{Value, json};

use crate::on_demand::OnDemandInstance;
use crate::on_demand::api::{self as ec2, Managed};
use crate::resource_names;

/// Annotation of the `Instance` that changes when its EC2 instance is started or stopped.
/// provider-aws observes a changed object at once, and otherwise only every ten minutes.
const ANNOTATION: &str = "platform.acme.io/power";

/// The desired state of an instance.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InstanceState {
    /// The instance runs.
    Running,
    /// The instance is stopped and keeps its disks.
    Stopped,
}

impl InstanceState {
    /// Parses EC2's name of a state; none for other states.
    pub fn parse(word: &str) -> Option<Self> {
        let states = [Self::Running, Self::Stopped];
        states.into_iter().find(|state| state.as_str() == word)
    }

    /// EC2's name of the state.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Running => "running",
            Self::Stopped => "stopped",
        }
    }
}

/// The composition resource name of the `InstanceState` for an instance.
pub fn resource_name(id: &str) -> String {
    hashed(resource_names::INSTANCE_STATE_PREFIX, [id])
}

/// The desired `InstanceState` of an instance; none while the instance has no id.
///
/// # Errors
///
/// The object cannot be written as JSON.
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

/// Sets the annotation to the state that the EC2 instance has reached.
pub fn mark(instance: &mut Value, reached: Option<&str>) {
    if let Some(reached) = reached {
        instance["metadata"]["annotations"][ANNOTATION] = json!(reached);
    }
}
