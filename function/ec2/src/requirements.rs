//! The resources that Crossplane must fetch. They must be the same in every call of a reconcile,
//! because Crossplane calls again while they change.

use api::capacity::CapacityType;
use api::policy::{BehaviourVersion, OnDemandProvider, WorkspacePolicy};
use function_runtime::requirement::{Requirement, Selector};
use function_workspace::claim;
use function_workspace::placed::Claimed;
use function_workspace::{catalogue, dev_user, flavor, owner};

use crate::capacity;
use crate::on_demand::api::{API_VERSION, Parameters, VolumeAttachment};
use crate::on_demand::home;
use crate::resource_names;

/// All requirements of a workspace on EC2. `policy` is none if it cannot be read. `maker` is the
/// provider that made the home or an on-demand machine; none if neither exists.
pub fn of(
    policy: Option<&WorkspacePolicy>,
    claimed: &Claimed<'_>,
    maker: Option<OnDemandProvider>,
) -> Vec<Requirement> {
    let composite = claimed.composite;
    let parameters = claimed.parameters.as_ref().ok();
    let mut required = policy.map(catalogue::requirements).unwrap_or_default();
    let Some(origin) = composite.origin() else {
        return required;
    };
    required.extend(policy.and_then(|policy| owner::requirement(policy, &origin)));
    let flavor = parameters.and_then(|parameters| parameters.flavor.as_deref());
    required.extend(flavor.map(flavor::requirement));
    let has_keys = policy.is_some_and(with_keys_of_dev_users);
    let status = &claimed.previous;
    required.extend(dev_user::requirement(
        has_keys,
        policy,
        status,
        &claimed.owner,
    ));
    let wished = parameters.and_then(|p| p.capacity_type);
    let market = wished.or(policy.map(|policy| policy.defaults.capacity_type));
    // The requirements are the same in every call, so they do not depend on the flavor's market.
    let may_be_on_demand =
        market == Some(CapacityType::OnDemand) || (flavor.is_some() && wished.is_none());
    // Without a policy, the workspace may be one of v1 or v2.
    let provider = policy.map(|policy| capacity::on_demand_provider(policy, maker));
    let is_of_aws = provider.or(maker) != Some(OnDemandProvider::SpotPool);
    let recorded = claimed.previous.home.as_ref();
    let has_home = (claim::asks_for_home(composite) && may_be_on_demand && is_of_aws)
        || recorded.is_some_and(|home| home.pool.is_none())
        || claimed.request.observed.contains_key(resource_names::HOME);
    if has_home {
        required.push(Requirement {
            name: home::ATTACHMENTS.to_owned(),
            api_version: API_VERSION,
            kind: VolumeAttachment::KIND,
            selector: Selector::Labelled {
                namespace: origin.namespace,
                key: home::WORKSPACE_LABEL,
                value: home::label(&composite.id()),
            },
        });
    }
    required
}

/// Whether the keys of the owner's `DevUser` may log in to machines. Before behaviour version v3,
/// they count in the cluster only.
pub fn with_keys_of_dev_users(policy: &WorkspacePolicy) -> bool {
    let is_counted = policy
        .cluster
        .as_ref()
        .is_some_and(|cluster| cluster.dev_users);
    match policy.behaviour_version {
        BehaviourVersion::V1 | BehaviourVersion::V2 => false,
        BehaviourVersion::V3 => is_counted,
    }
}
