//! The security group of an on-demand workspace, and its rules.
//!
//! The rules are `SecurityGroupRules`: the newer kinds for ingress and egress never become Synced
//! in provider-aws v2.5. EC2 cannot change a rule, so each network, and the security group of the
//! bastion, has its own rule with its own name.

use std::collections::BTreeMap;

use api::policy::WorkspacePolicy;
use function_runtime::desired::Composed;
use function_runtime::json::Json;
use function_runtime::object::{EXTERNAL_NAME, ObservedObject};
use function_runtime::outcome::Refusal;
use serde_json::{Value, json};

use crate::on_demand::api::{Managed, OfSameComposite, SecurityGroup, SecurityGroupRule};
use crate::on_demand::finding;
use crate::on_demand::observed::Group;
use crate::resolved::Resolved;
use crate::resource_names;

/// The external name of a rule that provider-aws created and forgot.
///
/// provider-aws may lose the external name of a rule before it stores it
/// (crossplane-contrib/provider-upjet-aws#1482). It then creates the rule again, which EC2 refuses, and
/// the rule is never ready. With any external name it reads the group in EC2 and finds the rule by its
/// networks and ports (`resourceSecurityGroupRuleRead` in terraform-provider-aws).
const FOUND: &str = "sgrule-found";

/// Names a rule that provider-aws forgot. Once a rule has this name, it keeps it: without it,
/// provider-aws would create the rule again.
pub fn name_forgotten(rule: &mut Value, observed: &Json<'_>) {
    let observed = ObservedObject::new(observed);
    let is_forgotten = match observed.external_name() {
        Some(name) => name == FOUND,
        None => finding::failure(observed).is_some_and(|failure| failure.is_of_duplicate_rule()),
    };
    if is_forgotten {
        rule["metadata"]["annotations"][EXTERNAL_NAME] = json!(FOUND);
    }
}

/// The desired group and its rules, by composition resource name. `group` is the observed group:
/// its fields that EC2 cannot change are kept. `observed` are all observed resources.
///
/// # Errors
///
/// An object cannot be written as JSON.
pub fn desired(
    resolved: &Resolved,
    policy: &WorkspacePolicy,
    group: Option<&Group<'_>>,
    observed: &BTreeMap<String, Json<'_>>,
) -> Result<BTreeMap<String, Value>, Refusal> {
    let namespace = &resolved.origin.namespace;
    let config = &policy.on_demand_provider_config_ref;
    let group = security_group(resolved, policy, group);
    let group = Composed::manifest(&Managed::new(namespace, config, group))?;
    let region = &resolved.region;
    let networks = resolved.ssh_cidrs.iter();
    let networks = networks.map(|cidr| (resource_names::ssh(cidr), ssh(region, cidr)));
    let bastion = resolved.bastion_group.iter();
    let bastion = bastion.map(|id| (resource_names::ssh(id), ssh_of_group(region, id)));
    let mut desired = BTreeMap::from([(resource_names::SECURITY_GROUP.to_owned(), group)]);
    for (name, rule) in [(resource_names::EGRESS.to_owned(), egress(region))]
        .into_iter()
        .chain(networks)
        .chain(bastion)
    {
        let mut rule = Composed::manifest(&Managed::new(namespace, config, rule))?;
        if let Some(observed) = observed.get(&name) {
            name_forgotten(&mut rule, observed);
        }
        desired.insert(name, rule);
    }
    Ok(desired)
}

fn security_group(
    resolved: &Resolved,
    policy: &WorkspacePolicy,
    observed: Option<&Group<'_>>,
) -> SecurityGroup {
    let made = observed.map(|group| &group.for_provider);
    let as_made = |field: fn(&SecurityGroup) -> &String| {
        let made = made.map(field).filter(|made| !made.is_empty());
        made.cloned()
    };
    let description = || format!("SSH to the workspace {}", resolved.origin);
    let name = as_made(|made| &made.name).map(|made| {
        if observed.is_some_and(is_lost) {
            next_name(&made)
        } else {
            made
        }
    });
    SecurityGroup {
        region: resolved.region.clone(),
        name: name.unwrap_or_else(|| group_name(resolved)),
        description: as_made(|made| &made.description).unwrap_or_else(description),
        vpc_id: made
            .and_then(|made| made.vpc_id.clone())
            .or_else(|| resolved.network.vpc_id.clone()),
        tags: resolved.tags(policy),
    }
}

/// Whether EC2 has a group of the observed name, whose id provider-aws does not know. EC2's answer to
/// the creation was lost, and EC2 takes no client token for this call: it refuses the second attempt.
fn is_lost(group: &Group<'_>) -> bool {
    group.external_name().is_none()
        && finding::failure(group.object())
            .is_some_and(|failure| failure.is_of_duplicate_group(&group.for_provider.name))
}

/// The name of the group that replaces a lost one: `NAME#2`, then `NAME#3`.
fn next_name(lost: &str) -> String {
    let numbered = lost.rsplit_once('#');
    let numbered = numbered.and_then(|(name, number)| Some((name, number.parse::<u32>().ok()?)));
    let (name, number) = numbered.unwrap_or((lost, 1));
    format!("{name}#{}", number.saturating_add(1))
}

/// The name of the group. It is unique in its VPC, even if other control planes create groups
/// there.
fn group_name(resolved: &Resolved) -> String {
    let name = &resolved.composite.name;
    let uid = resolved.composite.uid.split('-').next().unwrap_or_default();
    format!("gpu-workspace-{name}-{uid}")
        .trim_end_matches('-')
        .to_owned()
}

fn egress(region: &str) -> SecurityGroupRule {
    SecurityGroupRule {
        region: region.to_owned(),
        security_group_id_selector: Some(OfSameComposite::SELECTOR),
        type_: "egress".to_owned(),
        protocol: "-1".to_owned(),
        from_port: 0,
        to_port: 0,
        cidr_blocks: vec!["0.0.0.0/0".to_owned()],
        source_security_group_id: None,
    }
}

fn ssh(region: &str, cidr: &str) -> SecurityGroupRule {
    SecurityGroupRule {
        cidr_blocks: vec![cidr.to_owned()],
        ..to_ssh(region)
    }
}

/// The rule for the members of a security group. provider-aws refuses one that names networks, too.
fn ssh_of_group(region: &str, id: &str) -> SecurityGroupRule {
    SecurityGroupRule {
        source_security_group_id: Some(id.to_owned()),
        ..to_ssh(region)
    }
}

/// A rule that admits nobody to the port of SSH.
fn to_ssh(region: &str) -> SecurityGroupRule {
    SecurityGroupRule {
        region: region.to_owned(),
        security_group_id_selector: Some(OfSameComposite::SELECTOR),
        type_: "ingress".to_owned(),
        protocol: "tcp".to_owned(),
        from_port: 22,
        to_port: 22,
        ..SecurityGroupRule::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_lost_group_gives_the_next_one_a_new_name() {
        assert_eq!(next_name("gpu-workspace-a-1f"), "gpu-workspace-a-1f#2");
        assert_eq!(next_name("gpu-workspace-a-1f#2"), "gpu-workspace-a-1f#3");
        assert_eq!(next_name("ours#alone"), "ours#alone#2");
    }
}
