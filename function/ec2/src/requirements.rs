//! The resources that Crossplane must fetch. They must be the same in every call of a reconcile,
//! because Crossplane calls again while they change.

use api::capacity::CapacityType;
use api::policy::WorkspacePolicy;
use function_runtime::requirement::{Requirement, Selector};
use function_workspace::claim;
use function_workspace::cost::budget;
use function_workspace::placed::Claimed;
use function_workspace::{catalogue, owner};

use crate::on_demand::api::{API_VERSION, Parameters, VolumeAttachment};
use crate::on_demand::home;
use crate::resource_names;

/// All requirements of a workspace on EC2. `policy` is none if it cannot be read.
pub fn of(policy: Option<&WorkspacePolicy>, claimed: &Claimed<'_>) -> Vec<Requirement> {
    let composite = claimed.composite;
    let parameters = claimed.parameters.as_ref().ok();
    let mut required = policy.map(catalogue::requirements).unwrap_or_default();
    let Some(origin) = composite.origin() else {
        return required;
    };
    required.extend(policy.and_then(|policy| owner::requirement(policy, &origin)));
    let owner = claim::owner(composite);
    required.extend(budget::requirement(policy, &claimed.previous, owner));
    let market = parameters.and_then(|p| p.capacity_type);
    let market = market.or(policy.map(|policy| policy.defaults.capacity_type));
    let is_on_demand = market == Some(CapacityType::OnDemand);
    let recorded = claimed.previous.home.as_ref();
    let has_home = (claim::asks_for_home(composite) && is_on_demand)
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
