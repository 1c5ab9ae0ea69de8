//! What a policy lets a claim ask for: instance types, regions, markets, SSH
//! networks, and what it may cost.

use api::capacity::WorkspaceCapacityType;
use api::catalogue::Catalogue;
use api::policy::WorkspacePolicy;
use api::workspace::WorkspaceParameters;
use ipnet::Ipv4Net;
use thiserror::Error;

use crate::outcome::{Hold, Problem, Refusal, Unresolved};
use crate::schema::{Violation, Violations};

/// What is wrong with a text that is no network.
pub const NO_NETWORK: &str = "must be an IPv4 network, for example 203.0.113.0/24";

/// An accepted instance type and the field that asks for it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InstanceType {
    /// For example `g4dn.xlarge`.
    pub name: String,
    /// For example `spec.parameters.instanceTypes[0]`.
    pub path: String,
}

/// The instance types of a workspace without repetitions, most wanted first.
pub fn instance_types(parameters: &WorkspaceParameters) -> Vec<InstanceType> {
    let first = (
        &parameters.instance_type,
        "spec.parameters.instanceType".to_owned(),
    );
    let further = parameters.instance_types.iter().enumerate();
    let further = further.map(|(n, name)| (name, format!("spec.parameters.instanceTypes[{n}]")));
    let mut types: Vec<InstanceType> = Vec::new();
    for (name, path) in std::iter::once(first).chain(further) {
        if types.iter().all(|known| known.name != *name) {
            types.push(InstanceType {
                name: name.clone(),
                path,
            });
        }
    }
    types
}

/// Refuses what the policy does not allow.
pub fn check_instance_types(
    types: &[InstanceType],
    policy: &WorkspacePolicy,
) -> Result<(), Violations> {
    let allowed = &policy.allowed_instance_types;
    let refused = types
        .iter()
        .filter(|t| !allowed.iter().any(|entry| allows(entry, &t.name)));
    Violations::none_of(
        refused
            .map(|t| {
                let problem = format!(
                    "{} is not allowed; allowed are {}",
                    t.name,
                    allowed.join(", ")
                );
                Violation::new(&t.path, problem)
            })
            .collect(),
    )
}

/// Refuses a region that the policy does not allow.
pub fn check_region(
    parameters: &WorkspaceParameters,
    policy: &WorkspacePolicy,
) -> Result<(), Violations> {
    let Some(allowed) = &policy.allowed_regions else {
        return Ok(());
    };
    let region = &parameters.region;
    if allowed.contains(region) {
        return Ok(());
    }
    let problem = format!(
        "{region} is not allowed; allowed are {}",
        allowed.join(", ")
    );
    Err(Violation::new("spec.parameters.region", problem).into())
}

/// The workspace's market: the claim's, or else the policy's. A home stays with whoever
/// keeps it.
pub fn capacity_type(
    parameters: &WorkspaceParameters,
    policy: &WorkspacePolicy,
    keeper: Option<HomeKeeper>,
) -> Result<WorkspaceCapacityType, Violations> {
    const PATH: &str = "spec.parameters.capacityType";
    let wanted = parameters
        .capacity_type
        .unwrap_or(policy.defaults.capacity_type);
    if let Some(allowed) = &policy.allowed_capacity_types
        && !allowed.contains(&wanted)
    {
        let allowed: Vec<&str> = allowed.iter().map(|c| c.as_str()).collect();
        let problem = format!(
            "{} is not allowed; allowed are {}",
            wanted.as_str(),
            allowed.join(", ")
        );
        return Err(Violation::new(PATH, problem).into());
    }
    let is_on_demand = wanted == WorkspaceCapacityType::OnDemand;
    let problem = match keeper {
        Some(HomeKeeper::ProviderAws) if !is_on_demand => {
            "must be OnDemand: the home volume is provider-aws's, which attaches it to its own \
             instances only"
        }
        Some(HomeKeeper::SpotPool) if is_on_demand => {
            "must be Spot or SpotWithFallback: the home volume is the SpotPool's, which attaches \
             it to its own instances only"
        }
        _ => return Ok(wanted),
    };
    Err(Violation::new(PATH, problem).into())
}

/// Who has the home volume.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HomeKeeper {
    /// upbound's provider, as an `EBSVolume`.
    ProviderAws,
    /// The workspace's `SpotPool`.
    SpotPool,
}

/// Refuses a home volume beyond the policy's ceiling.
pub fn check_home(
    parameters: &WorkspaceParameters,
    policy: &WorkspacePolicy,
) -> Result<(), Violations> {
    let ceiling = policy.ceilings.as_ref().and_then(|c| c.home_size_gib);
    match (&parameters.home, ceiling) {
        (Some(home), Some(ceiling)) if home.size_gib > ceiling => {
            let problem = format!("must be at most {ceiling}, the policy's ceiling");
            Err(Violation::new("spec.parameters.home.sizeGiB", problem).into())
        }
        _ => Ok(()),
    }
}

/// Refuses types that cost more than the policy's ceiling. A type without a
/// price is nothing that the claim did wrong: the workspace is held.
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
    Violations::none_of(violations).map_err(|v| Refusal::parameters(v).into())
}

/// The networks that may connect by SSH: the claim's, or else the policy's. As
/// EC2 does, host bits are cleared.
pub fn ssh_cidrs(
    parameters: &WorkspaceParameters,
    policy: &WorkspacePolicy,
) -> Result<Vec<String>, Violations> {
    let claimed = parameters
        .ssh
        .as_ref()
        .map_or(&[][..], |ssh| &ssh.allowed_cidrs);
    let (texts, field) = if claimed.is_empty() {
        (
            policy.defaults.ssh_cidrs.as_slice(),
            "input.defaults.sshCidrs",
        )
    } else {
        (claimed, "spec.parameters.ssh.allowedCidrs")
    };
    let mut networks: Vec<String> = Vec::new();
    let mut violations = Vec::new();
    for (n, text) in texts.iter().enumerate() {
        match ssh_cidr(
            text,
            &format!("{field}[{n}]"),
            policy.ssh_cidr_ceiling.as_deref(),
        ) {
            Ok(network) => {
                let network = network.to_string();
                if !networks.contains(&network) {
                    networks.push(network);
                }
            }
            Err(violation) => violations.push(violation),
        }
    }
    Violations::none_of(violations)?;
    Ok(networks)
}

/// One network, within the ceiling where there is one.
pub fn ssh_cidr(text: &str, path: &str, ceiling: Option<&[String]>) -> Result<Ipv4Net, Violation> {
    let network: Ipv4Net = text.parse().map_err(|_| Violation::new(path, NO_NETWORK))?;
    if network.prefix_len() == 0 {
        let problem = "must not be the whole internet; name the networks you connect from";
        return Err(Violation::new(path, problem));
    }
    if let Some(ceiling) = ceiling {
        let within = ceiling
            .iter()
            .filter_map(|text| text.parse::<Ipv4Net>().ok())
            .any(|outer| outer.contains(&network));
        if !within {
            let problem = match ceiling {
                [] => "must be empty: the policy allows no network".to_owned(),
                _ => format!("must lie within {}", ceiling.join(" or ")),
            };
            return Err(Violation::new(path, problem));
        }
    }
    Ok(network.trunc())
}

fn allows(entry: &str, name: &str) -> bool {
    match entry.strip_suffix(".*") {
        Some(family) => name.split_once('.').is_some_and(|(of, _)| of == family),
        None => entry == name,
    }
}

/// There is a ceiling, and nothing to hold against it.
#[derive(Clone, Debug, Error)]
#[error(
    "EnvironmentConfig {name} has no data.prices.hourlyUsd.{region}.{instance_type}, and \
         the Composition's input.ceilings.hourlyUsd needs it: add the on-demand price"
)]
struct PriceMissing {
    /// The `EnvironmentConfig`.
    name: String,
    /// The workspace's region.
    region: String,
    /// The type.
    instance_type: String,
}

impl Problem for PriceMissing {
    fn reason(&self) -> &'static str {
        "PriceMissing"
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_family_allows_its_sizes_and_no_other_family() {
        assert!(allows("g5.*", "g5.xlarge"));
        assert!(allows("g5.xlarge", "g5.xlarge"));
        assert!(!allows("g5.*", "g5g.xlarge"));
        assert!(!allows("g5.xlarge", "g5.2xlarge"));
    }

    #[test]
    fn a_network_outside_the_ceiling_never_gets_in() {
        let ceiling = ["10.0.0.0/8".to_owned()];
        let check = |text: &str| ssh_cidr(text, "p", Some(&ceiling)).map(|n| n.to_string());
        assert_eq!(check("10.1.2.3/16").unwrap(), "10.1.0.0/16");
        assert!(check("11.0.0.0/16").is_err());
        assert!(check("8.0.0.0/6").is_err(), "it contains the ceiling");
        assert!(ssh_cidr("10.0.0.0/8", "p", Some(&[])).is_err());
    }

    #[test]
    fn the_whole_internet_and_nonsense_are_refused_without_a_ceiling() {
        for text in [
            "0.0.0.0/0",
            "10.0.0.0/0",
            "300.0.0.1/24",
            "10.0.0.0/33",
            "10.0.0.0",
            "::/64",
        ] {
            assert!(ssh_cidr(text, "p", None).is_err(), "{text}");
        }
        assert!(ssh_cidr("192.0.2.7/32", "p", None).is_ok());
    }
}
