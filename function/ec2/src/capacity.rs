//! Checks the market of a workspace, and chooses its provider.

use api::capacity::CapacityType;
use api::policy::{BehaviourVersion, OnDemandProvider, WorkspacePolicy};
use api::workspace::WorkspaceParameters;
use function_runtime::validation::{Violation, Violations};

use crate::choice::Choice;

/// The market of the workspace: that of the claim, or else that of its choice, or else that of the
/// policy.
pub fn wished(
    parameters: &WorkspaceParameters,
    policy: &WorkspacePolicy,
    choice: &Choice,
) -> CapacityType {
    let claimed = parameters.capacity_type.or(choice.capacity_type);
    claimed.unwrap_or(policy.defaults.capacity_type)
}

/// The provider of an on-demand workspace. `maker` is the provider that made its home or its
/// machine; none if neither exists.
pub fn on_demand_provider(
    policy: &WorkspacePolicy,
    maker: Option<OnDemandProvider>,
) -> OnDemandProvider {
    match policy.behaviour_version {
        BehaviourVersion::V1 | BehaviourVersion::V2 => OnDemandProvider::ProviderAws,
        BehaviourVersion::V3 => maker
            .or(policy.on_demand)
            .unwrap_or(OnDemandProvider::SpotPool),
    }
}

/// The market of the workspace, if the policy allows it. The market cannot change between
/// provider-aws and a `SpotPool` while one of them has the home volume.
pub fn capacity_type(
    parameters: &WorkspaceParameters,
    policy: &WorkspacePolicy,
    choice: &Choice,
    keeper: Option<OnDemandProvider>,
) -> Result<CapacityType, Violations> {
    const PATH: &str = "spec.parameters.capacityType";
    let resolved = wished(parameters, policy, choice);
    if let Some(allowed) = &policy.allowed_capacity_types
        && !allowed.contains(&resolved)
    {
        let allowed: Vec<&str> = allowed.iter().map(|c| c.as_str()).collect();
        return Err(Violation::not_allowed(PATH, resolved.as_str(), &allowed).into());
    }
    let is_on_demand = resolved == CapacityType::OnDemand;
    let problem = match keeper {
        Some(OnDemandProvider::ProviderAws) if !is_on_demand => {
            "must be OnDemand: provider-aws manages the home volume and attaches it to its own \
             instances only"
        }
        Some(OnDemandProvider::SpotPool)
            if is_on_demand
                && on_demand_provider(policy, keeper) == OnDemandProvider::ProviderAws =>
        {
            "must be Spot or SpotWithFallback: the SpotPool manages the home volume and attaches \
             it to its own instances only"
        }
        _ => return Ok(resolved),
    };
    Err(Violation::new(PATH, problem).into())
}
