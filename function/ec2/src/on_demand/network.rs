//! The security group of an on-demand workspace, and its rules.
//!
//! Rules are `SecurityGroupRules`: the newer kinds for ingress and egress never
//! become Synced in provider-aws v2.5. Nothing of a rule can change in EC2, so
//! each network has a rule of its own, under its own key.

use std::collections::BTreeMap;

use api::policy::WorkspacePolicy;
use function_runtime::object::ObservedObject;
use serde_json::{Value, json};

use crate::on_demand::{fields, resource};
use crate::resource_names;
use crate::wanted::Wanted;

/// The group and its rules by key. `observed` is the group as it is: what EC2
/// cannot change stays as it was made.
pub fn desired(
    wanted: &Wanted,
    policy: &WorkspacePolicy,
    observed: Option<ObservedObject<'_>>,
) -> BTreeMap<String, Value> {
    let mut resources = BTreeMap::new();
    resources.insert(
        resource_names::SECURITY_GROUP.to_owned(),
        security_group(wanted, policy, observed),
    );
    resources.insert(resource_names::EGRESS.to_owned(), egress(wanted, policy));
    for cidr in &wanted.ssh_cidrs {
        resources.insert(resource_names::ssh(cidr), ssh(wanted, policy, cidr));
    }
    resources
}

fn security_group(
    wanted: &Wanted,
    policy: &WorkspacePolicy,
    observed: Option<ObservedObject<'_>>,
) -> Value {
    let made = |field: &str| {
        observed
            .and_then(|group| group.for_provider(field))
            .map(str::to_owned)
    };
    let for_provider = fields([
        ("region", Some(json!(wanted.region))),
        (
            "name",
            Some(json!(made("name").unwrap_or_else(|| group_name(wanted)))),
        ),
        (
            "description",
            Some(json!(made("description").unwrap_or_else(|| format!(
                "SSH to the workspace {}",
                wanted.origin
            )))),
        ),
        (
            "vpcId",
            made("vpcId")
                .or_else(|| wanted.network.vpc_id.clone())
                .map(Value::String),
        ),
        ("tags", Some(json!(wanted.tags(policy)))),
    ]);
    resource(
        "SecurityGroup",
        &wanted.origin.namespace,
        &policy.on_demand_provider_config_ref,
        &for_provider,
    )
}

/// Unique in its VPC, where other control planes have groups as well.
fn group_name(wanted: &Wanted) -> String {
    let name = &wanted.composite.name;
    let uid = wanted.composite.uid.split('-').next().unwrap_or_default();
    format!("gpu-workspace-{name}-{uid}")
        .trim_end_matches('-')
        .to_owned()
}

fn egress(wanted: &Wanted, policy: &WorkspacePolicy) -> Value {
    rule(
        wanted,
        policy,
        json!({
            "type": "egress",
            "protocol": "-1",
            "fromPort": 0,
            "toPort": 0,
            "cidrBlocks": ["0.0.0.0/0"],
        }),
    )
}

fn ssh(wanted: &Wanted, policy: &WorkspacePolicy, cidr: &str) -> Value {
    rule(
        wanted,
        policy,
        json!({
            "type": "ingress",
            "protocol": "tcp",
            "fromPort": 22,
            "toPort": 22,
            "cidrBlocks": [cidr],
        }),
    )
}

fn rule(wanted: &Wanted, policy: &WorkspacePolicy, traffic: Value) -> Value {
    let mut for_provider = fields([
        ("region", Some(json!(wanted.region))),
        (
            "securityGroupIdSelector",
            Some(json!({"matchControllerRef": true})),
        ),
    ]);
    if let Value::Object(traffic) = traffic {
        for_provider.extend(traffic);
    }
    resource(
        "SecurityGroupRule",
        &wanted.origin.namespace,
        &policy.on_demand_provider_config_ref,
        &for_provider,
    )
}
