//! `WorkspaceLimits`: limits on workspaces that no Composition can loosen.
//!
//! They are the `data` of the EnvironmentConfig that the function's flag `--limits` names. A policy
//! belongs to a Composition, and there may be many. The limits apply to all of them: in each field,
//! the stricter of policy and limits holds.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::capacity::CapacityType;
use crate::cost::BudgetPolicy;
use crate::patterns::{DURATION, INSTANCE_TYPES, REGION, SECURITY_GROUP};
use crate::policy::{OwnerBinding, PolicyCeilings};

/// Limits of the workspaces of all Compositions. A policy can set stricter limits, and no weaker
/// ones. A field that is not set limits nothing.
#[derive(Serialize, Deserialize, JsonSchema, Clone, Debug, Default, PartialEq)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct WorkspaceLimits {
    /// Ties the owner of a claim to its namespace. A policy that names another label is refused.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub owner_binding: Option<OwnerBinding>,
    /// EC2 instance types that claims may use: exact names, or a family with `.*`, for example
    /// `g5.*`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1), inner(regex(pattern = INSTANCE_TYPES)))]
    pub allowed_instance_types: Option<Vec<String>>,
    /// AWS regions that claims may use.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(inner(regex(pattern = REGION)))]
    pub allowed_regions: Option<Vec<String>>,
    /// Markets that claims may use.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub allowed_capacity_types: Option<Vec<CapacityType>>,
    /// Limits on the cost of a claim.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ceilings: Option<PolicyCeilings>,
    /// Networks from which claims may allow SSH. An empty list allows none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ssh_cidr_ceiling: Option<Vec<String>>,
    /// Largest number of public addresses from which a workspace may allow SSH, all its networks
    /// together.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1))]
    pub ssh_max_addresses: Option<u64>,
    /// Security groups that policies may name for their bastion. Default: any, or none beside
    /// `sshCidrCeiling`, because a group does not say which addresses its members have.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 20), inner(length(max = 20), regex(pattern = SECURITY_GROUP)))]
    pub bastion_security_group_ids: Option<Vec<String>>,
    /// Limits on how long workspaces run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lifecycle: Option<LifecycleLimits>,
    /// Monthly budgets. If they are set, every policy checks budgets.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub budgets: Option<BudgetPolicy>,
    /// Limits on workspaces in the cluster.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cluster: Option<ClusterLimits>,
    /// Name of the `ValidatingAdmissionPolicyBinding` that keeps claims within the current policy.
    /// While it does not exist, each workspace has the condition `PolicyEnforced=False`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 253))]
    pub admission_binding: Option<String>,
}

/// How long workspaces may run. There is no limit for `deleteAfterStopped`, because it would delete
/// homes that a policy keeps.
#[derive(Serialize, Deserialize, JsonSchema, Clone, Debug, Default, PartialEq, Eq)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct LifecycleLimits {
    /// Longest run after each start, for example `7d`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(regex(pattern = DURATION))]
    pub max_lifetime: Option<String>,
    /// Longest time without use before a workspace stops, for example `12h`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(regex(pattern = DURATION))]
    pub stop_after_idle: Option<String>,
    /// Longest extension of a run with the annotation `platform.acme.io/extend-until`. It is
    /// required beside `maxLifetime`. `0s` allows no extension.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(regex(pattern = DURATION))]
    pub max_extension: Option<String>,
}

/// Limits on workspaces in the cluster.
#[derive(Serialize, Deserialize, JsonSchema, Clone, Debug, Default, PartialEq, Eq)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ClusterLimits {
    /// Flavors that claims may use.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub allowed_flavors: Option<Vec<String>>,
    /// Largest number of pods of a workspace.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 64))]
    pub max_nodes: Option<i32>,
    /// Whether the images of flavors and of the agent must be named by digest (`…@sha256:…`).
    #[serde(default)]
    pub require_image_digest: bool,
}
