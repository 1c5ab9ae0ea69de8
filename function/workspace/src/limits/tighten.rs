//! Applies the platform's limits to a policy: in each field, the stricter of both holds.

use api::duration::duration;
use api::lifecycle::{DurationBounds, LifecyclePolicy};
use api::limits::{ClusterLimits, LifecycleLimits, WorkspaceLimits};
use api::policy::{ClusterPolicy, OwnerBinding, PolicyCeilings, WorkspacePolicy};
use function_runtime::validation::{Violation, Violations};
use ipnet::Ipv4Net;

use crate::{bastion, instance_types, policy};

/// Brings a policy within the platform's limits, which are in the `EnvironmentConfig` `name`.
///
/// # Errors
///
/// Policy and limits contradict each other. Violations name fields under `input`.
pub fn tighten(
    policy: &mut WorkspacePolicy,
    limits: &WorkspaceLimits,
    name: &str,
) -> Result<(), Violations> {
    // Without `..`, so that a new limit cannot be forgotten here.
    let WorkspaceLimits {
        owner_binding,
        allowed_instance_types,
        allowed_regions,
        allowed_capacity_types,
        ceilings,
        ssh_cidr_ceiling,
        ssh_max_addresses,
        bastion_security_group_ids,
        lifecycle,
        budgets,
        cluster,
        // It limits no policy: it keeps claims within one.
        admission_binding: _,
    } = limits;
    let mut violations = Vec::new();
    violations.extend(bind(policy, owner_binding.as_ref(), name));
    if let Some(allowed) = allowed_instance_types {
        violations.extend(only_types(policy, allowed, name));
    }
    only(&mut policy.allowed_regions, allowed_regions.as_deref());
    only(
        &mut policy.allowed_capacity_types,
        allowed_capacity_types.as_deref(),
    );
    if let Some(ceilings) = ceilings {
        lower(policy.ceilings.get_or_insert_default(), ceilings);
    }
    if let Some(ceiling) = ssh_cidr_ceiling {
        policy.ssh_cidr_ceiling = Some(match &policy.ssh_cidr_ceiling {
            Some(own) => common_networks(own, ceiling),
            None => ceiling.clone(),
        });
    }
    policy.ssh_max_addresses = least(policy.ssh_max_addresses, *ssh_max_addresses);
    if let Some(lifecycle) = lifecycle {
        shorten(&mut policy.lifecycle, lifecycle);
    }
    if let Some(budgets) = budgets {
        let own = policy.budgets.get_or_insert_default();
        own.require_budget |= budgets.require_budget;
    }
    if let (Some(own), Some(cluster)) = (&mut policy.cluster, cluster) {
        restrict(own, cluster);
    }
    let own = policy::networks_outside(policy).into_iter();
    let own = own.chain(policy::agent_by_tag(policy));
    let own = own.chain(bastion::outside(
        policy,
        ssh_cidr_ceiling.as_deref(),
        *ssh_max_addresses,
    ));
    let own = own.chain(bastion::group_outside(
        policy,
        ssh_cidr_ceiling.as_deref(),
        bastion_security_group_ids.as_deref(),
    ));
    violations.extend(own.map(|violation| {
        let problem = format!(
            "{}, with the limits of EnvironmentConfig {name}",
            violation.problem
        );
        Violation::new(violation.path, problem)
    }));
    Violations::into_result(violations)
}

/// Applies the owner binding. Two labels cannot both name the owner, so another label is refused.
fn bind(
    policy: &mut WorkspacePolicy,
    binding: Option<&OwnerBinding>,
    name: &str,
) -> Option<Violation> {
    let binding = binding?;
    match &policy.owner_binding {
        Some(own) if own != binding => {
            let problem = format!(
                "must be {}, as in EnvironmentConfig {name}",
                binding.namespace_label
            );
            Some(Violation::new("input.ownerBinding.namespaceLabel", problem))
        }
        Some(_) => None,
        None => {
            policy.owner_binding = Some(binding.clone());
            None
        }
    }
}

/// Removes the instance types that the limits do not allow. A policy must allow one at least.
fn only_types(policy: &mut WorkspacePolicy, allowed: &[String], name: &str) -> Option<Violation> {
    let own = &policy.allowed_instance_types;
    let both = common(own, allowed, |outer, inner| {
        instance_types::allows(outer, inner)
    });
    if both.is_empty() {
        let problem = format!(
            "must have one of {}, the types that EnvironmentConfig {name} allows",
            allowed.join(", ")
        );
        return Some(Violation::new("input.allowedInstanceTypes", problem));
    }
    policy.allowed_instance_types = both;
    None
}

/// Removes the entries that the limits do not allow. No list allows everything.
fn only<T: Clone + PartialEq>(own: &mut Option<Vec<T>>, allowed: Option<&[T]>) {
    let Some(allowed) = allowed else {
        return;
    };
    match own {
        Some(own) => own.retain(|entry| allowed.contains(entry)),
        None => *own = Some(allowed.to_vec()),
    }
}

fn lower(own: &mut PolicyCeilings, ceilings: &PolicyCeilings) {
    let PolicyCeilings {
        hourly_usd,
        home_size_gib,
    } = ceilings;
    own.hourly_usd = least(own.hourly_usd, *hourly_usd);
    own.home_size_gib = least(own.home_size_gib, *home_size_gib);
}

fn least<T: PartialOrd>(a: Option<T>, b: Option<T>) -> Option<T> {
    match (a, b) {
        (Some(a), Some(b)) => Some(if b < a { b } else { a }),
        (a, b) => a.or(b),
    }
}

/// The networks that lie within both ceilings. Of two networks, one contains the other, or they
/// have no address in common.
fn common_networks(own: &[String], ceiling: &[String]) -> Vec<String> {
    let parsed = |texts: &[String]| -> Vec<Ipv4Net> {
        let networks = texts.iter().filter_map(|text| text.parse().ok());
        networks.map(|network: Ipv4Net| network.trunc()).collect()
    };
    let both = common(&parsed(own), &parsed(ceiling), |outer, inner| {
        outer.contains(inner)
    });
    both.iter().map(ToString::to_string).collect()
}

/// The narrower entry of each pair of which one contains the other, without duplicates.
fn common<T: Clone + PartialEq>(
    own: &[T],
    allowed: &[T],
    contains: impl Fn(&T, &T) -> bool,
) -> Vec<T> {
    let mut both: Vec<T> = Vec::new();
    for (a, b) in own.iter().flat_map(|a| allowed.iter().map(move |b| (a, b))) {
        let narrower = if contains(b, a) {
            a
        } else if contains(a, b) {
            b
        } else {
            continue;
        };
        if !both.contains(narrower) {
            both.push(narrower.clone());
        }
    }
    both
}

fn shorten(own: &mut LifecyclePolicy, limits: &LifecycleLimits) {
    let LifecycleLimits {
        max_lifetime,
        stop_after_idle,
        max_extension,
    } = limits;
    bound(&mut own.max_lifetime, max_lifetime.as_ref());
    bound(&mut own.stop_after_idle, stop_after_idle.as_ref());
    // A policy without an extension allows none.
    if own.max_extension.is_some() {
        own.max_extension = shorter(own.max_extension.take(), max_extension.as_ref());
    }
}

fn bound(own: &mut Option<DurationBounds>, limit: Option<&String>) {
    if limit.is_some() {
        let own = own.get_or_insert_default();
        own.maximum = shorter(own.maximum.take(), limit);
    }
}

fn shorter(own: Option<String>, limit: Option<&String>) -> Option<String> {
    let length = |text: &String| duration(text);
    let is_shorter = match (own.as_ref().and_then(length), limit.and_then(length)) {
        (Some(own), Some(limit)) => own <= limit,
        // A text that is no duration limits nothing.
        (_, limit) => limit.is_none(),
    };
    if is_shorter { own } else { limit.cloned() }
}

fn restrict(own: &mut ClusterPolicy, limits: &ClusterLimits) {
    let ClusterLimits {
        allowed_flavors,
        max_nodes,
        require_image_digest,
    } = limits;
    only(&mut own.allowed_flavors, allowed_flavors.as_deref());
    own.max_nodes = max_nodes.map_or(own.max_nodes, |most| own.max_nodes.min(most));
    own.require_image_digest |= require_image_digest;
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn policy(change: Value) -> WorkspacePolicy {
        let mut input = json!({
            "apiVersion": "workspace.fn.platform.acme.io/v1alpha1",
            "kind": "WorkspacePolicy",
            "behaviourVersion": "v2",
            "catalogue": {"name": "gpu-workspaces"},
            "allowedInstanceTypes": ["g4dn.*", "g5.xlarge"]
        });
        let Value::Object(change) = change else {
            panic!("no object: {change}")
        };
        input.as_object_mut().unwrap().extend(change);
        policy::read(Some(&input)).unwrap()
    }

    fn limits(data: Value) -> WorkspaceLimits {
        serde_json::from_value(data).unwrap()
    }

    fn tightened(own: Value, data: Value) -> WorkspacePolicy {
        let mut policy = policy(own);
        tighten(&mut policy, &limits(data), "limits").unwrap();
        policy
    }

    fn refused(own: Value, data: Value) -> String {
        let refused = tighten(&mut policy(own), &limits(data), "limits");
        refused.unwrap_err().to_string()
    }

    #[test]
    fn a_policy_without_limits_gets_all_of_the_platforms() {
        let data = json!({
            "ownerBinding": {"namespaceLabel": "platform.acme.io/owner"},
            "allowedInstanceTypes": ["g4dn.xlarge"],
            "allowedRegions": ["us-east-1"],
            "allowedCapacityTypes": ["Spot"],
            "ceilings": {"hourlyUsd": 2.5, "homeSizeGiB": 500},
            "sshCidrCeiling": ["10.0.0.0/8"],
            "sshMaxAddresses": 256,
            "lifecycle": {"maxLifetime": "7d", "stopAfterIdle": "12h", "maxExtension": "8h"},
            "budgets": {"requireBudget": true},
            "cluster": {"allowedFlavors": ["t4"], "maxNodes": 2, "requireImageDigest": true}
        });
        let own = json!({"cluster": {"defaultFlavor": "t4"}, "lifecycle": {"maxExtension": "9d"}});
        let policy = tightened(own, data.clone());
        let limited = json!({
            "ownerBinding": {"namespaceLabel": "platform.acme.io/owner"},
            "allowedInstanceTypes": ["g4dn.xlarge"],
            "allowedRegions": ["us-east-1"],
            "allowedCapacityTypes": ["Spot"],
            "ceilings": {"hourlyUsd": 2.5, "homeSizeGiB": 500},
            "sshCidrCeiling": ["10.0.0.0/8"],
            "sshMaxAddresses": 256,
            "lifecycle": {
                "maxLifetime": {"maximum": "7d"},
                "stopAfterIdle": {"maximum": "12h"},
                "maxExtension": "8h"
            },
            "budgets": {"requireBudget": true},
            "cluster": {
                "defaultFlavor": "t4",
                "allowedFlavors": ["t4"],
                "maxNodes": 2,
                "requireImageDigest": true
            }
        });
        assert_eq!(policy, self::policy(limited));
        let mut again = policy.clone();
        tighten(&mut again, &limits(data), "limits").unwrap();
        assert_eq!(again, policy, "the limits apply once");
    }

    #[test]
    fn a_stricter_policy_stays_as_it_is() {
        let own = json!({
            "allowedInstanceTypes": ["g4dn.xlarge"],
            "allowedRegions": ["us-east-1"],
            "allowedCapacityTypes": ["Spot"],
            "ceilings": {"hourlyUsd": 1.0, "homeSizeGiB": 50},
            "sshCidrCeiling": ["10.1.0.0/16"],
            "sshMaxAddresses": 16,
            "lifecycle": {
                "maxLifetime": {"default": "1d", "maximum": "2d"},
                "stopAfterIdle": {"default": "1h", "maximum": "2h"},
                "maxExtension": "1h"
            },
            "budgets": {"requireBudget": true},
            "cluster": {
                "defaultFlavor": "t4",
                "allowedFlavors": ["t4"],
                "maxNodes": 1,
                "requireImageDigest": true
            }
        });
        let data = json!({
            "allowedInstanceTypes": ["g4dn.*", "g5.*"],
            "allowedRegions": ["eu-west-1", "us-east-1"],
            "allowedCapacityTypes": ["OnDemand", "Spot"],
            "ceilings": {"hourlyUsd": 2.5, "homeSizeGiB": 500},
            "sshCidrCeiling": ["192.0.2.0/24", "10.0.0.0/8"],
            "sshMaxAddresses": 4096,
            "lifecycle": {"maxLifetime": "168h", "stopAfterIdle": "1d", "maxExtension": "8h"},
            "budgets": {},
            "cluster": {"allowedFlavors": ["cpu", "t4"], "maxNodes": 4}
        });
        assert_eq!(tightened(own.clone(), data), policy(own));
    }

    #[test]
    fn durations_are_compared_and_not_their_texts() {
        let own = json!({"lifecycle": {"maxLifetime": {"maximum": "100h"}}});
        let data = json!({"lifecycle": {"maxLifetime": "9d", "maxExtension": "0s"}});
        let lifetime = tightened(own, data).lifecycle.max_lifetime.unwrap();
        assert_eq!(lifetime.maximum.as_deref(), Some("100h"));
    }

    #[test]
    fn a_policy_that_contradicts_the_platform_is_refused_by_its_field() {
        let types = json!({"allowedInstanceTypes": ["p5.48xlarge", "g6.*"]});
        assert_eq!(
            refused(json!({}), types),
            "input.allowedInstanceTypes: must have one of p5.48xlarge, g6.*, the types that \
             EnvironmentConfig limits allows"
        );
        let own = json!({"ownerBinding": {"namespaceLabel": "team"}});
        let binding = json!({"ownerBinding": {"namespaceLabel": "owner"}});
        assert_eq!(
            refused(own, binding),
            "input.ownerBinding.namespaceLabel: must be owner, as in EnvironmentConfig limits"
        );
        let own = json!({"defaults": {"sshCidrs": ["203.0.113.0/24"]}});
        assert_eq!(
            refused(own, json!({"sshCidrCeiling": ["10.0.0.0/8"]})),
            "input.defaults.sshCidrs[0]: must lie within 10.0.0.0/8, with the limits of \
             EnvironmentConfig limits"
        );
    }

    #[test]
    fn ceilings_with_nothing_in_common_allow_no_network() {
        let own = json!({"sshCidrCeiling": ["10.0.0.0/8", "192.0.2.7/24"]});
        let both = |ceiling: Value| {
            let data = json!({"sshCidrCeiling": ceiling});
            tightened(own.clone(), data).ssh_cidr_ceiling.unwrap()
        };
        assert!(both(json!(["172.16.0.0/12"])).is_empty());
        assert!(both(json!([])).is_empty());
        let common = both(json!(["192.0.0.0/8", "10.2.0.0/16"]));
        assert_eq!(common, ["10.2.0.0/16", "192.0.2.0/24"]);
    }
}
