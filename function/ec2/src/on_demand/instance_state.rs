//! Stops and starts on-demand instances with upbound's kind `InstanceState`.
//!
//! An `Instance` neither stops nor starts its EC2 instance. An `InstanceState` does both, but it
//! would also restart an instance that its owner has shut down. The function therefore desires it
//! only while the workspace is stopped, and until the instance runs again.

use api::managed::ProviderConfigReference;
use function_runtime::desired::Composed;
use function_runtime::json::Json;
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
    config: &ProviderConfigReference,
) -> Result<Option<(String, Value)>, Refusal> {
    let Some(id) = instance.current_id() else {
        return Ok(None);
    };
    let region = &instance.for_provider.region;
    Ok(Some(of(id, region, namespace, state, config)?))
}

/// The `InstanceState` that stops an observed `Instance`, which may have fields of an unknown
/// shape; none if it shows no id. It has the instance's own provider configuration, so it needs no
/// policy.
///
/// # Errors
///
/// The object cannot be written as JSON.
pub fn stopping(instance: &Json<'_>) -> Result<Option<(String, Value)>, Refusal> {
    let text = |path: &str| instance.pointer(path).and_then(Json::as_str);
    let config = instance.pointer("/spec/providerConfigRef");
    let config = config.and_then(|config| config.read::<ProviderConfigReference>().ok());
    let (Some(id), Some(region), Some(namespace), Some(config)) = (
        id_of(instance),
        text("/spec/forProvider/region"),
        text("/metadata/namespace"),
        config,
    ) else {
        return Ok(None);
    };
    let stopped = InstanceState::Stopped;
    Ok(Some(of(id, region, namespace, stopped, &config)?))
}

/// The id of an observed `Instance`, which may have fields of an unknown shape.
pub fn id_of<'a>(instance: &'a Json<'_>) -> Option<&'a str> {
    instance.pointer("/status/atProvider/id")?.as_str()
}

fn of(
    id: &str,
    region: &str,
    namespace: &str,
    state: InstanceState,
    config: &ProviderConfigReference,
) -> Result<(String, Value), Refusal> {
    let parameters = ec2::InstanceState {
        region: region.to_owned(),
        instance_id: id.to_owned(),
        state: state.as_str().to_owned(),
    };
    let desired = Composed::manifest(&Managed::new(namespace, config, parameters))?;
    Ok((resource_name(id), desired))
}

/// Sets the annotation to the state that the EC2 instance has reached.
pub fn mark(instance: &mut Value, reached: Option<&str>) {
    if let Some(reached) = reached {
        instance["metadata"]["annotations"][ANNOTATION] = json!(reached);
    }
}
