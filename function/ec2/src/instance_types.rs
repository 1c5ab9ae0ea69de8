//! The instance types in a claim, and the check against the policy.

use api::catalogue::Catalogue;
use api::policy::WorkspacePolicy;
use api::workspace::WorkspaceParameters;
use function_runtime::outcome::{Hold, Problem, Refusal, Unresolved};
use function_runtime::validation::{Violation, Violations};
use function_workspace::instance_types::allows;
use thiserror::Error;

/// An instance type in the claim, and its field.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InstanceType {
    /// The name, for example `g4dn.xlarge`.
    pub name: String,
    /// The field, for example `spec.parameters.instanceTypes[0]`.
    pub path: String,
}

/// The type of a workspace if neither its claim nor the policy names one.
const DEFAULT: &str = "g4dn.xlarge";
/// The field of the policy with the default type.
pub const DEFAULT_PATH: &str = "input.defaults.instanceType";

/// The type of a claim that names nothing. Without a default in the policy, it is a type that the
/// policy allows.
pub fn default(policy: &WorkspacePolicy) -> &str {
    let allowed = &policy.allowed_instance_types;
    let is_allowed = allowed.iter().any(|entry| allows(entry, DEFAULT));
    let is_name = |entry: &&String| !entry.ends_with(".*");
    let first = allowed.iter().find(is_name).filter(|_| !is_allowed);
    let named = policy.defaults.instance_type.as_ref();
    named.or(first).map_or(DEFAULT, String::as_str)
}

/// The instance types that the claim names, without duplicates and in order of preference.
pub fn named(parameters: &WorkspaceParameters) -> Vec<InstanceType> {
    let first = parameters.instance_type.iter();
    let first = first.map(|name| (name, "spec.parameters.instanceType".to_owned()));
    let further = parameters.instance_types.iter().enumerate();
    let further = further.map(|(n, name)| (name, format!("spec.parameters.instanceTypes[{n}]")));
    let mut types: Vec<InstanceType> = Vec::new();
    for (name, path) in first.chain(further) {
        if types.iter().all(|known| known.name != *name) {
            types.push(InstanceType {
                name: name.clone(),
                path,
            });
        }
    }
    types
}

/// Refuses instance types that the policy does not allow.
pub fn check(types: &[InstanceType], policy: &WorkspacePolicy) -> Result<(), Violations> {
    let allowed = &policy.allowed_instance_types;
    let refused = types
        .iter()
        .filter(|t| !allowed.iter().any(|entry| allows(entry, &t.name)));
    Violations::into_result(
        refused
            .map(|t| Violation::not_allowed(&t.path, &t.name, allowed))
            .collect(),
    )
}

/// Refuses types that cost more than the policy's ceiling. A missing price is not an error of the
/// claim, so the workspace is held.
pub fn check_prices(
    types: &[InstanceType],
    region: &str,
    policy: &WorkspacePolicy,
    catalogue: &Catalogue,
) -> Result<(), Unresolved> {
    let Some(ceiling) = policy.ceilings.as_ref().and_then(|c| c.hourly_usd) else {
        return Ok(());
    };
    let prices = catalogue.prices.as_ref();
    let hourly = prices.and_then(|prices| prices.hourly_usd.get(region));
    let mut violations = Vec::new();
    for t in types {
        let price = hourly.and_then(|hourly| hourly.get(&t.name));
        let (Some(price), Some(prices)) = (price, prices) else {
            let missing = PriceMissing {
                name: policy.catalogue.name.clone(),
                region: region.to_owned(),
                instance_type: t.name.clone(),
            };
            return Err(Hold::from(missing).into());
        };
        if *price > ceiling {
            let problem = format!(
                "{} costs {price} USD per hour in {region} (as of {}), the policy allows \
                 {ceiling}",
                t.name, prices.as_of
            );
            violations.push(Violation::new(&t.path, problem));
        }
    }
    Violations::into_result(violations).map_err(|v| Refusal::parameters(v).into())
}

/// The policy has a price ceiling, but the catalogue has no price for the type.
#[derive(Clone, Debug, Error)]
#[error(
    "EnvironmentConfig {name} has no data.prices.hourlyUsd.{region}.{instance_type}, and \
         the policy's ceilings.hourlyUsd needs it: add the on-demand price"
)]
struct PriceMissing {
    /// The name of the `EnvironmentConfig`.
    name: String,
    /// The region of the workspace.
    region: String,
    /// The instance type.
    instance_type: String,
}

impl Problem for PriceMissing {
    fn reason(&self) -> &'static str {
        "PriceMissing"
    }
}
