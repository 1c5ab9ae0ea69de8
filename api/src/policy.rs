//! `WorkspacePolicy`: the function's input, in a Composition.
//!
//! A Composition's revision pins it, so a changed policy reaches workspaces by
//! the Composition's update policy. Crossplane neither installs its schema nor
//! checks it at admission: the function refuses unknown fields itself.

use std::collections::BTreeMap;

use kube::KubeSchema;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::capacity::CapacityType;
use crate::cost::BudgetPolicy;
use crate::home::HomePolicy;
use crate::lifecycle::{LifecyclePolicy, PodAgent};
use crate::managed::ProviderConfigReference;

/// What the platform team decides for every workspace of a Composition.
#[derive(KubeSchema, Serialize, Deserialize, Clone, Debug, PartialEq)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct WorkspacePolicy {
    /// `workspace.fn.platform.acme.io/v1alpha1`.
    pub api_version: String,
    /// `WorkspacePolicy`.
    pub kind: String,
    /// Ignored; some tools want an object's metadata.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "any_object")]
    pub metadata: Option<serde_json::Value>,
    /// The rendering that this Composition is written for; a later function
    /// renders it the same way.
    pub behaviour_version: BehaviourVersion,
    /// The EnvironmentConfigs with images, networks, prices and owners.
    pub catalogue: CatalogueReference,
    /// Credentials for the pools.
    #[serde(default)]
    pub provider_config_ref: ProviderConfigReference,
    /// Credentials for on-demand workspaces: a configuration of upbound's
    /// provider-aws, group `aws.m.upbound.io`.
    #[serde(default)]
    pub on_demand_provider_config_ref: ProviderConfigReference,
    /// Values for what a claim leaves open.
    #[serde(default)]
    pub defaults: PolicyDefaults,
    /// Instance types that claims may ask for: exact names, or a family with
    /// `.*`, for example `g5.*`.
    #[schemars(
        length(min = 1),
        inner(regex(pattern = r"^[a-z][a-z0-9-]*\.([a-z0-9-]+|\*)$"))
    )]
    pub allowed_instance_types: Vec<String>,
    /// Regions that claims may ask for; unset: every region with images.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(inner(regex(pattern = r"^[a-z]{2}(-[a-z]+)+-[0-9]$")))]
    pub allowed_regions: Option<Vec<String>>,
    /// Markets that claims may ask for; unset: every one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub allowed_capacity_types: Option<Vec<CapacityType>>,
    /// Bounds on what a claim may cost.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ceilings: Option<PolicyCeilings>,
    /// Ties a claim's owner to its namespace, so that nobody creates for
    /// somebody else. Unset: any owner in any namespace.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub owner_binding: Option<OwnerBinding>,
    /// Networks from which SSH may be allowed at most; a claim's CIDR must lie
    /// within one of them. Unset: any but the whole internet.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ssh_cidr_ceiling: Option<Vec<String>>,
    /// How the instances are set up.
    #[serde(default)]
    pub instance: InstancePolicy,
    /// What becomes of home volumes.
    #[serde(default)]
    pub home: HomePolicy,
    /// How long workspaces run.
    #[serde(default)]
    pub lifecycle: LifecyclePolicy,
    /// Monthly budgets of the owners, which are those of the `DevUser`s of their names.
    /// Unset: nobody asks for them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub budgets: Option<BudgetPolicy>,
    /// Workspaces in the cluster. Unset: there are none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cluster: Option<ClusterPolicy>,
    /// Longest time in seconds until the function looks again.
    #[serde(default = "default_refresh_seconds")]
    #[schemars(range(min = 10, max = 86400))]
    pub refresh_seconds: u32,
    /// Shortest time in seconds until the function looks again, whatever it
    /// waits for.
    #[serde(default = "default_minimum_refresh_seconds")]
    #[schemars(range(min = 10, max = 86400))]
    pub minimum_refresh_seconds: u32,
}

/// A rendering of the function. Desired state is byte-identical for the same
/// version across releases.
#[derive(Serialize, Deserialize, JsonSchema, Clone, Copy, Debug, PartialEq, Eq)]
pub enum BehaviourVersion {
    /// The first. Its setup puts the owner's environment on everybody's `PATH`,
    /// root's as well: for Compositions that must not change.
    #[serde(rename = "v1")]
    V1,
    /// The environment is on the owner's `PATH` only, and the setup waits for
    /// other users of apt.
    #[serde(rename = "v2")]
    V2,
}

/// The EnvironmentConfigs that hold the catalogue.
#[derive(Serialize, Deserialize, JsonSchema, Clone, Debug, PartialEq, Eq)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct CatalogueReference {
    /// The first one's name; messages send people there.
    #[schemars(length(min = 1))]
    pub name: String,
    /// Further ones, for example of prices that another team keeps. Each entry
    /// of the catalogue stands in one of them only.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 8), inner(length(min = 1)))]
    pub further: Vec<String>,
}

/// Bounds on what a claim may cost.
#[derive(Serialize, Deserialize, JsonSchema, Clone, Debug, PartialEq, Default)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct PolicyCeilings {
    /// Highest on-demand price of an instance type in US dollars per hour, by
    /// the catalogue's prices. It bounds spot as well, which may fall back.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0.0))]
    pub hourly_usd: Option<f64>,
    /// Largest home volume in GiB.
    #[serde(
        default,
        rename = "homeSizeGiB",
        skip_serializing_if = "Option::is_none"
    )]
    #[schemars(range(min = 1, max = 16384))]
    pub home_size_gib: Option<i32>,
}

/// Workspaces in the cluster.
#[derive(Serialize, Deserialize, JsonSchema, Clone, Debug, PartialEq, Eq)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ClusterPolicy {
    /// The `WorkspaceFlavor` of claims that name none.
    #[schemars(length(min = 1, max = 63))]
    pub default_flavor: String,
    /// Flavors that claims may ask for; unset: every one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub allowed_flavors: Option<Vec<String>>,
    /// The most nodes of a workspace.
    #[serde(default = "default_max_nodes")]
    #[schemars(range(min = 1, max = 64))]
    pub max_nodes: i32,
    /// Queues of Kueue. Unset: pods start as soon as there is room.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub queue: Option<QueuePolicy>,
    /// Whether an owner's keys are those of the `DevUser` of that name as well.
    #[serde(default)]
    pub dev_users: bool,
    /// The agent beside the owner's container, which says who uses the workspace.
    /// Unset: none, and nothing is known of that.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<PodAgent>,
    /// The cluster's DNS domain.
    #[serde(default = "default_cluster_domain")]
    #[schemars(
        length(max = 253),
        regex(pattern = r"^[a-z0-9]([a-z0-9.-]*[a-z0-9])?$")
    )]
    pub domain: String,
}

/// Queues of Kueue.
#[derive(Serialize, Deserialize, JsonSchema, Clone, Debug, PartialEq, Eq)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct QueuePolicy {
    /// The `LocalQueue` of claims that name none.
    #[schemars(length(min = 1, max = 63))]
    pub default: String,
    /// `LocalQueue`s that claims may name; unset: every one of their namespace.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub allowed: Option<Vec<String>>,
    /// The `WorkloadPriorityClass` of claims that name none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub default_priority_class: Option<String>,
    /// Priority classes that claims may name; unset: the default one only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub allowed_priority_classes: Option<Vec<String>>,
}

/// Ties a claim's owner to its namespace.
#[derive(Serialize, Deserialize, JsonSchema, Clone, Debug, PartialEq, Eq)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct OwnerBinding {
    /// The label of the claim's Namespace whose value is the only owner that
    /// its claims may name, for example `platform.acme.io/owner`.
    #[schemars(length(min = 1, max = 317))]
    pub namespace_label: String,
}

/// Values for what a claim leaves open.
#[derive(Serialize, Deserialize, JsonSchema, Clone, Debug, PartialEq)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct PolicyDefaults {
    /// Market; `SpotWithFallback` when unset.
    #[serde(default = "CapacityType::of_workspaces")]
    pub capacity_type: CapacityType,
    /// Key of the image in the catalogue; `default` when unset.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub image: Option<String>,
    /// `PyTorch` release; the image's own when unset.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 32), regex(pattern = r"^[0-9]+\.[0-9]+\.[0-9]+$"))]
    pub pytorch_version: Option<String>,
    /// Networks from which SSH is allowed when a claim names none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub ssh_cidrs: Vec<String>,
}

impl Default for PolicyDefaults {
    fn default() -> Self {
        Self {
            capacity_type: CapacityType::of_workspaces(),
            image: None,
            pytorch_version: None,
            ssh_cidrs: Vec::new(),
        }
    }
}

/// How instances are set up.
#[derive(Serialize, Deserialize, JsonSchema, Clone, Debug, PartialEq, Default)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct InstancePolicy {
    /// Size of the root volume in GiB; the image's own when unset.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 8, max = 16384))]
    pub root_volume_size_gib: Option<i32>,
    /// Name of an IAM instance profile for the instances.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub iam_instance_profile: Option<String>,
    /// Whether `developer` may use sudo without a password.
    #[serde(default)]
    pub sudo: bool,
    /// Whether an on-demand instance is replaced when its user data changes, for
    /// example by a further key or another OpenCV release. User data is read at
    /// the first boot only. Otherwise the instance stays as it was set up.
    #[serde(default)]
    pub replace_on_user_data_change: bool,
    /// Further tags on everything in EC2.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub tags: BTreeMap<String, String>,
}

fn default_max_nodes() -> i32 {
    8
}

fn default_cluster_domain() -> String {
    "cluster.local".into()
}

fn default_refresh_seconds() -> u32 {
    600
}

fn default_minimum_refresh_seconds() -> u32 {
    10
}

pub(crate) fn any_object(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
    schemars::json_schema!({
        "type": "object",
        "x-kubernetes-preserve-unknown-fields": true
    })
}
