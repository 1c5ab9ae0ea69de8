//! The desired `SpotPool`: one instance, for one workspace.

use api::managed::all_actions;
use api::policy::WorkspacePolicy;
use api::pool::{PoolCapacityType, PoolImage, PoolSize, PoolSsh, SpotPoolParameters, SpotPoolSpec};
use api::workspace::{ChosenImage, WorkspaceCapacityType};
use api::{POOL_GROUP, VERSION};
use serde_json::{Value, json};

use crate::composite::Origin;
use crate::refusal::Refusal;

/// The pool's key among the composed resources. Crossplane never collects a
/// resource whose kind changes under its key, so the key is the pool's for ever.
pub const KEY: &str = "pool";
const KIND: &str = "SpotPool";

/// Everything that a desired pool depends on, beside the policy.
#[derive(Clone, Debug)]
pub struct Wanted<'a> {
    /// Where the workspace lives.
    pub origin: &'a Origin,
    /// Whose it is.
    pub owner: &'a str,
    /// AWS region.
    pub region: &'a str,
    /// The claim's market; the policy's default when unset.
    pub capacity_type: Option<WorkspaceCapacityType>,
    /// Most wanted first.
    pub instance_types: Vec<String>,
    /// What it boots.
    pub image: &'a ChosenImage,
    /// cloud-init user data.
    pub user_data: String,
    /// Networks that may connect by SSH.
    pub ssh_cidrs: Vec<String>,
    /// Subnets of the catalogue; the default VPC's when empty.
    pub subnet_ids: Vec<String>,
    /// Security groups of the catalogue, instead of the pool's own.
    pub security_group_ids: Vec<String>,
}

/// The desired pool. Its name is Crossplane's to choose; labels and annotations
/// of the XR are not copied, since other controllers act on theirs.
pub fn desired(wanted: Wanted<'_>, policy: &WorkspacePolicy) -> Result<Value, Refusal> {
    let namespace = wanted.origin.namespace.clone();
    let spec = spec(wanted, policy);
    let mut spec = serde_json::to_value(spec).map_err(|error| Refusal::Unwritable {
        what: "the SpotPool",
        problem: error.to_string(),
    })?;
    // Left to the API server's default, so that an operator may change it.
    if let Some(spec) = spec.as_object_mut() {
        spec.remove("managementPolicies");
    }
    Ok(json!({
        "apiVersion": format!("{POOL_GROUP}/{VERSION}"),
        "kind": KIND,
        "metadata": {"namespace": namespace},
        "spec": spec,
    }))
}

fn spec(wanted: Wanted<'_>, policy: &WorkspacePolicy) -> SpotPoolSpec {
    let mut tags = policy.instance.tags.clone();
    tags.insert("owner".into(), wanted.owner.to_owned());
    let workspace = format!("{}/{}", wanted.origin.namespace, wanted.origin.name);
    tags.insert("workspace".into(), workspace);

    let security_group_ids = non_empty(wanted.security_group_ids);
    // The CRD refuses both together: a group of somebody else is not opened.
    let ssh = security_group_ids.is_none().then_some(PoolSsh {
        allowed_cidrs: wanted.ssh_cidrs,
    });
    let capacity_type = wanted
        .capacity_type
        .unwrap_or(policy.defaults.capacity_type);
    SpotPoolSpec {
        management_policies: all_actions(),
        provider_config_ref: policy.provider_config_ref.clone(),
        for_provider: SpotPoolParameters {
            region: wanted.region.to_owned(),
            size: PoolSize {
                minimum: 1,
                maximum: 1,
                idle: 0,
            },
            capacity_type: match capacity_type {
                WorkspaceCapacityType::Spot => PoolCapacityType::Spot,
                WorkspaceCapacityType::SpotWithFallback => PoolCapacityType::SpotWithFallback,
            },
            instance_types: wanted.instance_types,
            zones: None,
            subnet_ids: non_empty(wanted.subnet_ids),
            image: PoolImage {
                id: wanted.image.id.clone(),
            },
            user_data: Some(wanted.user_data),
            security_group_ids,
            ssh,
            root_volume_size_gib: policy.instance.root_volume_size_gib,
            iam_instance_profile: policy.instance.iam_instance_profile.clone(),
            tags,
        },
    }
}

fn non_empty(list: Vec<String>) -> Option<Vec<String>> {
    (!list.is_empty()).then_some(list)
}
