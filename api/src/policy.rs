//! `WorkspacePolicy`: the function's input in a Composition of workspaces.
//!
//! The policy is part of a revision of the Composition, so a changed policy reaches workspaces by
//! their Composition update policy. Crossplane neither installs the schema of an input nor checks
//! the input at admission. The function checks it and refuses unknown fields.

use std::collections::BTreeMap;

use kube::KubeSchema;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::capacity::CapacityType;
use crate::cost::BudgetPolicy;
use crate::duration::Duration;
use crate::home::HomePolicy;
use crate::lifecycle::LifecyclePolicy;
use crate::managed::ProviderConfigReference;
use crate::patterns::{
    INSTANCE_TYPE, INSTANCE_TYPES, KMS_KEY, PUBLIC_KEY, PYTORCH_VERSION, REGION,
};

mod bastion;
mod cluster;

pub use bastion::BastionPolicy;
pub use cluster::{ClusterEgress, ClusterPolicy, QueuePolicy};

/// Sets the platform team's rules for every workspace of a Composition.
#[derive(KubeSchema, Serialize, Deserialize, Clone, Debug, PartialEq)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct WorkspacePolicy {
    /// API version of the policy. It is always `workspace.fn.platform.acme.io/v1alpha1`.
    pub api_version: String,
    /// Kind of the policy. It is always `WorkspacePolicy`.
    pub kind: String,
    /// Ignored. It is allowed because some tools require metadata.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "any_object")]
    pub metadata: Option<serde_json::Value>,
    /// Version of the function's behaviour that this Composition uses. Later releases of the
    /// function render a version unchanged.
    pub behaviour_version: BehaviourVersion,
    /// EnvironmentConfigs that hold the catalogue: images, networks, owners' keys and prices.
    pub catalogue: CatalogueReference,
    /// Provider configuration of the workspaces' `SpotPool`s.
    #[serde(default)]
    pub provider_config_ref: ProviderConfigReference,
    /// Provider that makes on-demand workspaces. Versions v1 and v2 know `ProviderAws` only. A
    /// workspace keeps the provider that made it until it is deleted. Default: `SpotPool` from
    /// behaviour version v3 on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub on_demand: Option<OnDemandProvider>,
    /// Provider configuration of on-demand workspaces of `ProviderAws`: a configuration of upbound's
    /// provider-aws, group `aws.m.upbound.io`.
    #[serde(default)]
    pub on_demand_provider_config_ref: ProviderConfigReference,
    /// Values for parameters that a claim does not set.
    #[serde(default)]
    pub defaults: PolicyDefaults,
    /// EC2 instance types that claims may use: exact names, or a family with `.*`, for example
    /// `g5.*`.
    #[schemars(length(min = 1), inner(regex(pattern = INSTANCE_TYPES)))]
    pub allowed_instance_types: Vec<String>,
    /// Names of images in the catalogue that claims and flavors may use. Default: all images of the
    /// region.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(inner(length(min = 1)))]
    pub allowed_images: Option<Vec<String>>,
    /// AWS regions that claims may use. Default: every region with images in the catalogue.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(inner(regex(pattern = REGION)))]
    pub allowed_regions: Option<Vec<String>>,
    /// Markets that claims may use. Default: all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub allowed_capacity_types: Option<Vec<CapacityType>>,
    /// Limits on the cost of a claim.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ceilings: Option<PolicyCeilings>,
    /// Ties the owner of a claim to its namespace, so that users cannot create workspaces for other
    /// owners. Default: any owner in any namespace.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub owner_binding: Option<OwnerBinding>,
    /// Networks from which claims may allow SSH. Each network of a claim must lie within one of
    /// them. Default: any network except the whole internet.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ssh_cidr_ceiling: Option<Vec<String>>,
    /// Largest number of public addresses from which a workspace may allow SSH, all its networks
    /// together. Private networks do not count. Default: 65536, or no limit within
    /// `sshCidrCeiling`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1))]
    pub ssh_max_addresses: Option<u64>,
    /// Who may log in beside the keys of owners.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ssh: Option<SshPolicy>,
    /// The bastion, which may connect to every workspace. Default: no bastion.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bastion: Option<BastionPolicy>,
    /// Whether the function starts only workspaces with access. A workspace has access if a key or an
    /// authority may log in and, on EC2, a network may connect. Effective from behaviour version v3
    /// on.
    #[serde(default = "require_access")]
    pub require_access: bool,
    /// Settings of EC2 instances: root volume, instance profile, sudo, replacement and tags.
    #[serde(default)]
    pub instance: InstancePolicy,
    /// What happens to home volumes when their claims are deleted, and whether they may move.
    #[serde(default)]
    pub home: HomePolicy,
    /// How long workspaces run, and when they are stopped and deleted.
    #[serde(default)]
    pub lifecycle: LifecyclePolicy,
    /// Monthly budgets of owners, from the `DevUser` with the owner's name. Default: budgets are
    /// not checked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub budgets: Option<BudgetPolicy>,
    /// Workspaces in the cluster. Default: placement `Cluster` is not allowed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cluster: Option<ClusterPolicy>,
    /// Longest time until the next reconcile, from `10s` to `1d`.
    #[serde(default = "default_refresh_interval")]
    pub refresh_interval: Duration,
    /// Shortest time until the next reconcile while the function waits for a change, from `10s` to
    /// `1d`.
    #[serde(default = "default_minimum_refresh_interval")]
    pub minimum_refresh_interval: Duration,
}

/// The provider of on-demand workspaces.
#[derive(Serialize, Deserialize, JsonSchema, Clone, Copy, Debug, PartialEq, Eq)]
// kube's `OptionalEnum` replaces the description of an optional field with that of its type.
#[schemars(description = "")]
pub enum OnDemandProvider {
    /// provider-gpu-spot, by a `SpotPool` of one instance. A stop terminates the instance and keeps
    /// the home volume.
    SpotPool,
    /// upbound's provider-aws-ec2, by an `Instance`. A stop keeps the instance and its disks.
    ProviderAws,
}

/// A version of the function's behaviour. For the same version, every release of the function
/// produces byte-identical desired resources.
#[derive(Serialize, Deserialize, JsonSchema, Clone, Copy, Debug, PartialEq, Eq)]
pub enum BehaviourVersion {
    /// The first version. Its setup adds the owner's Python environment to the `PATH` of all users,
    /// including root. Use it for Compositions that must not change.
    #[serde(rename = "v1")]
    V1,
    /// The environment is on the owner's `PATH` only. The setup waits while another process uses
    /// apt.
    #[serde(rename = "v2")]
    V2,
    /// No object in the cluster has a name that a developer can choose: the function adds a prefix,
    /// or a prefix and a hash. Workspaces of an earlier version keep the names of their objects. Pods
    /// reach no private network, and they have bounds on disk space.
    /// Releases before 0.1.0 may change this version.
    #[serde(rename = "v3")]
    V3,
}

/// The EnvironmentConfigs that hold the catalogue.
#[derive(Serialize, Deserialize, JsonSchema, Clone, Debug, PartialEq, Eq)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct CatalogueReference {
    /// Name of the first EnvironmentConfig. Messages refer to it.
    #[schemars(length(min = 1))]
    pub name: String,
    /// Names of further EnvironmentConfigs that provide prices only, for example because another
    /// team maintains the prices. Other entries in them have no effect.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 8), inner(length(min = 1)))]
    pub further: Vec<String>,
    /// Further EnvironmentConfigs, each with the entries that it provides. Each entry of the
    /// catalogue may be in one EnvironmentConfig only.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 8))]
    pub parts: Vec<CataloguePart>,
}

/// A further EnvironmentConfig of the catalogue.
#[derive(Serialize, Deserialize, JsonSchema, Clone, Debug, PartialEq, Eq)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct CataloguePart {
    /// Name of the EnvironmentConfig that provides the entries.
    #[schemars(length(min = 1))]
    pub name: String,
    /// The entries that it provides. Other entries in it have no effect. The writers of `owners`
    /// decide who can log in. The writers of `images` decide which programs machines run. The writers
    /// of `networks` decide who reaches machines. The writers of `instanceProfiles` decide what machines
    /// may do in AWS. The writers of `prices` decide their prices.
    #[schemars(length(min = 1, max = 7))]
    pub provides: Vec<CatalogueEntry>,
}

/// An entry of the catalogue.
#[derive(Serialize, Deserialize, JsonSchema, Clone, Copy, Debug, PartialEq, Eq)]
#[serde(rename_all = "camelCase")]
pub enum CatalogueEntry {
    /// Machine images.
    Images,
    /// IAM instance profiles of owners and namespaces.
    InstanceProfiles,
    /// Descriptions of instance types.
    InstanceTypes,
    /// Networks of instances.
    Networks,
    /// SSH keys of owners.
    Owners,
    /// Sources of Python packages.
    Packages,
    /// Prices of machines.
    Prices,
}

impl CatalogueEntry {
    /// All entries.
    pub const ALL: [Self; 7] = [
        Self::Images,
        Self::InstanceProfiles,
        Self::InstanceTypes,
        Self::Networks,
        Self::Owners,
        Self::Packages,
        Self::Prices,
    ];

    /// The name of the field in the catalogue's data.
    pub fn field(self) -> &'static str {
        match self {
            Self::Images => "images",
            Self::InstanceProfiles => "instanceProfiles",
            Self::InstanceTypes => "instanceTypes",
            Self::Networks => "networks",
            Self::Owners => "owners",
            Self::Packages => "packages",
            Self::Prices => "prices",
        }
    }
}

/// Limits on the cost of a claim.
#[derive(Serialize, Deserialize, JsonSchema, Clone, Debug, PartialEq, Default)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct PolicyCeilings {
    /// Highest on-demand price of an instance type in US dollars per hour, by the catalogue. It
    /// also applies to spot, because a spot workspace may fall back to on-demand.
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

/// Who may log in beside the keys of owners.
#[derive(Serialize, Deserialize, JsonSchema, Clone, Debug, Default, PartialEq, Eq)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct SshPolicy {
    /// Public keys of certificate authorities. A certificate of one of them opens a workspace if its
    /// principals include the name of the workspace's owner, as long as it is valid.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 4), inner(length(max = 1024), regex(pattern = PUBLIC_KEY)))]
    pub user_authorities: Vec<String>,
}

/// Ties the owner of a claim to its namespace.
#[derive(Serialize, Deserialize, JsonSchema, Clone, Debug, PartialEq, Eq)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct OwnerBinding {
    /// Label of the claim's Namespace. Claims in that namespace may only name the label's value as
    /// their owner. Example: `platform.acme.io/owner`.
    #[schemars(length(min = 1, max = 317))]
    pub namespace_label: String,
}

/// Values for parameters that a claim does not set.
#[derive(Serialize, Deserialize, JsonSchema, Clone, Debug, Default, PartialEq)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct PolicyDefaults {
    /// Market of EC2 instances: `Spot`, `SpotWithFallback` or `OnDemand`. Default:
    /// `SpotWithFallback`.
    #[serde(default)]
    pub capacity_type: CapacityType,
    /// AWS region, for example `eu-central-1`. Default: `us-east-1`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 32), regex(pattern = REGION))]
    pub region: Option<String>,
    /// EC2 instance type, for example `g5.xlarge`. Default: `g4dn.xlarge`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 32), regex(pattern = INSTANCE_TYPE))]
    pub instance_type: Option<String>,
    /// Name of the image in the catalogue. Default: `default`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub image: Option<String>,
    /// PyTorch release, for example `2.12.1`. Default: the release in the image.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 32), regex(pattern = PYTORCH_VERSION))]
    pub pytorch_version: Option<String>,
    /// Networks that may connect by SSH if the claim names none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub ssh_cidrs: Vec<String>,
}

/// Setup of the instances.
#[derive(Serialize, Deserialize, JsonSchema, Clone, Debug, PartialEq, Default)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct InstancePolicy {
    /// Size of the root volume in GiB. Default: the size in the image.
    #[serde(
        default,
        rename = "rootVolumeSizeGiB",
        skip_serializing_if = "Option::is_none"
    )]
    #[schemars(range(min = 8, max = 16384))]
    pub root_volume_size_gib: Option<i32>,
    /// Key of AWS KMS that encrypts the volumes: its id, its ARN, or an alias, for example
    /// `alias/gpu-volumes`. Default: the account's key for EBS in the region. On-demand workspaces of
    /// `ProviderAws` always have that key.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 2048), regex(pattern = KMS_KEY))]
    pub kms_key_id: Option<String>,
    /// Name of the IAM instance profile of the instances. The catalogue may name others for owners
    /// and namespaces. Default: none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub iam_instance_profile: Option<String>,
    /// Whether the user `developer` may use sudo without a password.
    #[serde(default)]
    pub sudo: bool,
    /// Whether an on-demand instance of `ProviderAws` is replaced when its user data changes, for
    /// example after another OpenCV release, or before v3 a new key. An instance reads user data at
    /// its first boot only, so without replacement it keeps its first setup. Instances of a pool keep
    /// it until their next launch.
    #[serde(default)]
    pub replace_on_user_data_change: bool,
    /// Additional tags on all EC2 resources of workspaces: keys of at most 128 characters, values of
    /// at most 256. From v3 on, a tag key has letters, digits and `+-=.,_:@` only, because an
    /// instance reads its tags.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub tags: BTreeMap<String, String>,
}

fn require_access() -> bool {
    true
}

fn default_refresh_interval() -> Duration {
    Duration::of_minutes(10)
}

fn default_minimum_refresh_interval() -> Duration {
    Duration::of_seconds(10)
}

pub(crate) fn any_object(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
    schemars::json_schema!({
        "type": "object",
        "x-kubernetes-preserve-unknown-fields": true
    })
}
