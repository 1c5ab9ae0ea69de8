//! `SpotPool`: a number of equal GPU instances that the provider keeps running.

use std::collections::BTreeMap;

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube::{CustomResource, KubeSchema};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::capacity::CapacityType;
use crate::fields::is_default;
use crate::home::PoolHome;
use crate::managed::{
    LocalSecretReference, ManagementAction, ProviderConfigReference, all_actions,
};

mod status;

pub use status::{
    ObservedSize, PoolInstance, PoolLaunch, PoolLaunched, PoolNotice, PoolOffering,
    SpotPoolObservation, SpotPoolStatus, UnavailableOffering,
};

/// `"true"` lets the deletion of a pool end leased instances, too.
pub const END_LEASES: &str = "gpu.platform.acme.io/end-leases";

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
    validation = Rule::new("has(self.leases) == has(oldSelf.leases)")
        .message("leases is set when a pool is made, or never: instances that run cannot read their tags; make another pool"),
    validation = Rule::new("!(has(self.ssh) && has(self.securityGroupIds))")
        .message("ssh and securityGroupIds exclude each other: with securityGroupIds the provider owns no group to open"),
    validation = Rule::new("!has(self.home) || (self.size.maximum <= 1 && !has(self.leases))")
        .message("home needs size.maximum 1 or 0 and no leases: a volume is attached to one instance")
)]
pub struct SpotPoolParameters {
    /// AWS region. Immutable: instances cannot move.
    #[schemars(regex(pattern = r"^[a-z]{2}(-[a-z]+)+-[0-9]$"))]
    #[x_kube(validation = Rule::new("self == oldSelf").message("region is immutable"))]
    pub region: String,
    /// How many instances.
    pub size: PoolSize,
    /// Which market the instances come from.
    #[serde(default = "CapacityType::of_pools")]
    pub capacity_type: CapacityType,
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
    /// How AWS chooses among the types: `Ordered` asks for one after the other,
    /// `Any` lets AWS choose by price and capacity. Among the zones AWS chooses.
    #[serde(default, skip_serializing_if = "is_default")]
    pub type_preference: PoolTypePreference,
    /// How the instances are spread, so that one unavailable offering does not take all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub spread: Option<PoolSpread>,
    /// When on-demand instances stand in for spot ones; only for
    /// `SpotWithFallback`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fallback: Option<PoolFallback>,
    /// Hands instances out to `SpotLease`s. Whoever has one has it alone: the pool's
    /// own security group does not connect its instances.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub leases: Option<PoolLeases>,
    /// When the pool ends: from then on no instance is wanted, whatever its size, but
    /// what leases have. The provider ends them by itself, whether or not whoever made
    /// the pool is there to say so again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ends_at: Option<Time>,
    /// Which running instances are replaced; by default none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub replace: Option<PoolReplace>,
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
    /// A volume of its own for files that outlive the pool's instance. It is made in the
    /// zone of the first instance, and every later one is launched there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub home: Option<PoolHome>,
    /// Further tags on instances, volumes and the group. Keys under
    /// `gpu.platform.acme.io` and `aws:` are refused.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(extend("maxProperties" = 40))]
    #[x_kube(
        validation = Rule::new("self.all(k, !k.startsWith('gpu.platform.acme.io') && !k.startsWith('aws:'))")
            .message("tags under gpu.platform.acme.io and aws: are reserved")
    )]
    pub tags: BTreeMap<String, String>,
}

impl SpotPoolParameters {
    /// Whether the pool's time is over.
    pub fn has_ended(&self, now: Timestamp) -> bool {
        self.ends_at.as_ref().is_some_and(|Time(end)| *end <= now)
    }
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

/// How AWS chooses among a pool's types.
#[derive(Serialize, Deserialize, JsonSchema, Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum PoolTypePreference {
    /// One type after the other, as they are named.
    #[default]
    Ordered,
    /// Any of them, by price and capacity.
    Any,
}

/// How a pool's instances are spread.
#[derive(Serialize, Deserialize, JsonSchema, Clone, Copy, Debug, Default, PartialEq, Eq)]
#[serde(rename_all = "camelCase")]
pub struct PoolSpread {
    /// Whether zones hold equal numbers, as far as they have capacity.
    #[serde(default)]
    pub zones: bool,
    /// At most so many instances of one type in one zone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 1000))]
    pub max_per_offering: Option<i32>,
}

/// When on-demand instances stand in for spot ones.
#[derive(Serialize, Deserialize, JsonSchema, Clone, Copy, Debug, Default, PartialEq, Eq)]
#[serde(rename_all = "camelCase")]
pub struct PoolFallback {
    /// Seconds without spot capacity before on-demand instances are launched.
    #[serde(default)]
    #[schemars(range(min = 0, max = 86400))]
    pub after_seconds: i32,
    /// Seconds after which an on-demand instance that nobody has makes way for a
    /// spot one; never when unset.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 600, max = 604_800))]
    pub return_after_seconds: Option<i32>,
}

/// How instances are handed out.
#[derive(Serialize, Deserialize, JsonSchema, Clone, Copy, Debug, Default, PartialEq, Eq)]
#[serde(rename_all = "camelCase")]
pub struct PoolLeases {
    /// Seconds after its creation at which a lease ends at the latest.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 60, max = 31_536_000))]
    pub max_lifetime_seconds: Option<i32>,
}

/// Which running instances are replaced. One that is leased never is.
#[derive(Serialize, Deserialize, JsonSchema, Clone, Copy, Debug, Default, PartialEq, Eq)]
#[serde(rename_all = "camelCase")]
pub struct PoolReplace {
    /// Those launched from another image, user data, disk, profile or group.
    #[serde(default)]
    pub drifted: bool,
    /// Those that fail EC2's status checks for five minutes.
    #[serde(default)]
    pub impaired: bool,
    /// What AWS's rebalance recommendation means for an instance.
    #[serde(default)]
    pub rebalance: PoolRebalance,
    /// How many at once.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 100))]
    pub at_once: Option<i32>,
}

/// What a rebalance recommendation means.
#[derive(Serialize, Deserialize, JsonSchema, Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum PoolRebalance {
    /// Nothing: they far outnumber interruptions.
    #[default]
    Ignore,
    /// The instance is handed out to nobody any more.
    Cordon,
    /// It is replaced, the next one first.
    ReplaceFirst,
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
