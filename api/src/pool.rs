//! `SpotPool`: a number of equal GPU instances that the provider keeps running.

use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube::{CustomResource, KubeSchema};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::condition::{Condition, Conditioned};
use crate::managed::{
    LocalSecretReference, ManagementAction, ProviderConfigReference, all_actions,
};

/// Keeps a number of GPU instances running in one region.
#[derive(CustomResource, KubeSchema, Serialize, Deserialize, Clone, Debug, PartialEq)]
#[kube(
    group = "gpu.platform.acme.io",
    version = "v1alpha1",
    kind = "SpotPool",
    plural = "spotpools",
    namespaced,
    status = "SpotPoolStatus",
    category = "crossplane",
    category = "managed",
    category = "gpu",
    printcolumn = r#"{"name": "Ready", "type": "string", "jsonPath": ".status.conditions[?(@.type=='Ready')].status"}"#,
    printcolumn = r#"{"name": "Synced", "type": "string", "jsonPath": ".status.conditions[?(@.type=='Synced')].status"}"#,
    printcolumn = r#"{"name": "Desired", "type": "integer", "jsonPath": ".status.atProvider.size.desired"}"#,
    printcolumn = r#"{"name": "Running", "type": "integer", "jsonPath": ".status.atProvider.size.running"}"#,
    printcolumn = r#"{"name": "Launched", "type": "string", "jsonPath": ".status.conditions[?(@.type=='Launched')].reason", "priority": 1}"#,
    printcolumn = r#"{"name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp"}"#,
    derive = "PartialEq"
)]
#[serde(rename_all = "camelCase")]
pub struct SpotPoolSpec {
    /// What the provider may do; `["*"]` is everything.
    #[serde(default = "all_actions")]
    pub management_policies: Vec<ManagementAction>,
    /// Credentials and endpoint to use.
    #[serde(default)]
    pub provider_config_ref: ProviderConfigReference,
    /// Where to write the instances' addresses: `endpoint`, `port`, `addresses`,
    /// `privateAddresses`, `ssh` and `instanceIds`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub write_connection_secret_to_ref: Option<LocalSecretReference>,
    /// What the pool should be.
    pub for_provider: SpotPoolParameters,
}

/// What the pool should be.
#[derive(KubeSchema, Serialize, Deserialize, Clone, Debug, PartialEq)]
#[serde(rename_all = "camelCase")]
#[x_kube(
    validation = Rule::new("!(has(self.zones) && has(self.subnetIds))")
        .message("zones and subnetIds exclude each other: a subnet fixes its zone"),
    validation = Rule::new("!(has(self.ssh) && has(self.securityGroupIds))")
        .message("ssh and securityGroupIds exclude each other: with securityGroupIds the provider owns no group to open")
)]
pub struct SpotPoolParameters {
    /// AWS region. Immutable: instances cannot move.
    #[schemars(regex(pattern = r"^[a-z]{2}(-[a-z]+)+-[0-9]$"))]
    #[x_kube(validation = Rule::new("self == oldSelf").message("region is immutable"))]
    pub region: String,
    /// How many instances.
    pub size: PoolSize,
    /// Which market the instances come from.
    #[serde(default)]
    pub capacity_type: PoolCapacityType,
    /// Instance types, most wanted first.
    #[schemars(
        length(min = 1, max = 20),
        inner(regex(pattern = r"^[a-z][a-z0-9-]*\.[a-z0-9-]+$"))
    )]
    pub instance_types: Vec<String>,
    /// Availability zones to use; by default every zone of the default VPC that
    /// offers a type.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 10))]
    pub zones: Option<Vec<String>>,
    /// Subnets to launch into, of one VPC; by default the default VPC's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 20))]
    pub subnet_ids: Option<Vec<String>>,
    /// What the instances boot.
    pub image: PoolImage,
    /// cloud-init user data, at most 16 KiB before base64, EC2's limit. Anybody
    /// on the instance can read it: it must hold no secret.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 16384))]
    pub user_data: Option<String>,
    /// Security groups of somebody else; without them the provider owns one
    /// group per pool.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 5))]
    pub security_group_ids: Option<Vec<String>>,
    /// Who may reach the instances by SSH, in the pool's own security group.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ssh: Option<PoolSsh>,
    /// Size of the encrypted gp3 root volume in GiB; the image's own when unset.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 8, max = 16384))]
    pub root_volume_size_gib: Option<i32>,
    /// Name of an IAM instance profile.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub iam_instance_profile: Option<String>,
    /// Further tags on instances, volumes and the group. Keys under
    /// `gpu.platform.acme.io/` and `aws:` are refused.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(extend("maxProperties" = 40))]
    #[x_kube(
        validation = Rule::new("self.all(k, !k.startsWith('gpu.platform.acme.io/') && !k.startsWith('aws:'))")
            .message("tags under gpu.platform.acme.io/ and aws: are reserved")
    )]
    pub tags: BTreeMap<String, String>,
}

/// How many instances a pool keeps.
#[derive(KubeSchema, Serialize, Deserialize, Clone, Copy, Debug, PartialEq, Eq)]
#[x_kube(
    validation = Rule::new("self.minimum <= self.maximum").message("minimum must not exceed maximum")
)]
pub struct PoolSize {
    /// Never fewer.
    #[schemars(range(min = 0, max = 1000))]
    pub minimum: i32,
    /// Never more.
    #[schemars(range(min = 0, max = 1000))]
    pub maximum: i32,
    /// Instances to keep running beyond those in use.
    #[serde(default)]
    #[schemars(range(min = 0, max = 1000))]
    pub idle: i32,
}

/// Which market a pool buys from.
#[derive(Serialize, Deserialize, JsonSchema, Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum PoolCapacityType {
    /// Spot instances only.
    #[default]
    Spot,
    /// On-demand instances when no spot offering has capacity.
    SpotWithFallback,
    /// On-demand instances only.
    OnDemand,
}

/// The machine image.
#[derive(Serialize, Deserialize, JsonSchema, Clone, Debug, PartialEq, Eq)]
pub struct PoolImage {
    /// AMI id.
    #[schemars(regex(pattern = r"^ami-[0-9a-f]{8,17}$"))]
    pub id: String,
}

/// SSH access through the pool's own security group.
#[derive(KubeSchema, Serialize, Deserialize, Clone, Debug, Default, PartialEq, Eq)]
#[serde(rename_all = "camelCase")]
pub struct PoolSsh {
    /// IPv4 networks that may connect to port 22; none means nobody.
    #[serde(default)]
    #[schemars(
        length(max = 50),
        inner(regex(pattern = r"^([0-9]{1,3}\.){3}[0-9]{1,3}/[0-9]{1,2}$"))
    )]
    pub allowed_cidrs: Vec<String>,
}

/// What the provider saw and did.
#[derive(KubeSchema, Serialize, Deserialize, Clone, Debug, Default, PartialEq)]
#[serde(rename_all = "camelCase")]
pub struct SpotPoolStatus {
    /// `Ready`, `Synced` and `Launched`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[x_kube(merge_strategy = ListMerge::Map(vec!["type".into()]))]
    pub conditions: Vec<Condition>,
    /// The value of the annotation `crossplane.io/reconcile-requested-at` that
    /// was followed last.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_handled_reconcile_at: Option<String>,
    /// The pool in EC2.
    #[serde(default)]
    pub at_provider: SpotPoolObservation,
}

impl Conditioned for SpotPoolStatus {
    fn conditions(&self) -> &[Condition] {
        &self.conditions
    }
}

/// The pool in EC2, as last observed.
#[derive(Serialize, Deserialize, JsonSchema, Clone, Debug, Default, PartialEq)]
#[serde(rename_all = "camelCase")]
pub struct SpotPoolObservation {
    /// Wanted and present.
    #[serde(default)]
    pub size: ObservedSize,
    /// Every instance that carries the pool's tags, by slot.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub instances: Vec<PoolInstance>,
    /// Launches that were decided on and not yet seen in EC2. Written before
    /// EC2 is called, so that a crash leaves neither an orphan nor a double.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub launches: Vec<PoolLaunch>,
    /// Launches ever decided on; the next one gets this number plus one.
    #[serde(default)]
    pub launch_generation: i64,
    /// The security group that the provider owns for this pool.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub security_group_id: Option<String>,
    /// Offerings that EC2 refused of late, and until when they rest.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub cold_offerings: Vec<ColdOffering>,
}

/// Wanted and present.
#[derive(Serialize, Deserialize, JsonSchema, Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ObservedSize {
    /// Instances that should run.
    #[serde(default)]
    pub desired: i32,
    /// Instances that do.
    #[serde(default)]
    pub running: i32,
}

/// One instance of a pool.
#[derive(Serialize, Deserialize, JsonSchema, Clone, Debug, PartialEq)]
#[serde(rename_all = "camelCase")]
pub struct PoolInstance {
    /// EC2's instance id.
    pub id: String,
    /// The slot it fills.
    pub slot: i32,
    /// The launch that created it.
    pub launch: i64,
    /// Its type.
    pub instance_type: String,
    /// Its availability zone.
    pub zone: String,
    /// `Spot` or `OnDemand`.
    pub capacity_type: InstanceCapacityType,
    /// The image it booted.
    pub image_id: String,
    /// EC2's instance state, for example `running`.
    pub state: String,
    /// Why EC2 left the last state, where it says so, for example
    /// `Server.SpotInstanceTermination`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub state_reason: Option<String>,
    /// Public IPv4 address.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub public_ip: Option<String>,
    /// Private IPv4 address.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub private_ip: Option<String>,
    /// When EC2 launched it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub launched_at: Option<Time>,
}

/// The market an instance came from.
#[derive(Serialize, Deserialize, JsonSchema, Clone, Copy, Debug, PartialEq, Eq)]
pub enum InstanceCapacityType {
    /// Spot market.
    Spot,
    /// On demand.
    OnDemand,
}

/// A launch that was decided on.
#[derive(Serialize, Deserialize, JsonSchema, Clone, Debug, PartialEq)]
#[serde(rename_all = "camelCase")]
pub struct PoolLaunch {
    /// Its number, unique within the pool.
    pub launch: i64,
    /// The slot it fills.
    pub slot: i32,
    /// The instance type asked for.
    pub instance_type: String,
    /// The availability zone asked for.
    pub zone: String,
    /// The market asked for.
    pub capacity_type: InstanceCapacityType,
    /// When EC2 was last asked for it, or is about to be.
    pub decided_at: Time,
    /// The instance that EC2 answered with, until the instance is listed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub instance_id: Option<String>,
}

/// An offering that EC2 refused.
#[derive(Serialize, Deserialize, JsonSchema, Clone, Debug, PartialEq)]
#[serde(rename_all = "camelCase")]
pub struct ColdOffering {
    /// Instance type.
    pub instance_type: String,
    /// Availability zone.
    pub zone: String,
    /// Market.
    pub capacity_type: InstanceCapacityType,
    /// EC2's error code.
    pub code: String,
    /// Not tried again before this.
    pub until: Time,
}
