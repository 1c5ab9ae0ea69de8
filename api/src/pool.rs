//! `SpotPool`: a number of equal GPU instances that the provider keeps running.

use std::collections::BTreeMap;

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube::{CustomResource, KubeSchema};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::capacity::CapacityType;
use crate::duration::{Bounds, Duration};
use crate::fields::is_default;
use crate::home::PoolHome;
use crate::managed::{
    LocalSecretReference, ManagementAction, ProviderConfigReference, all_actions,
};
use crate::patterns::{
    DATE_TIME, INSTANCE_TYPE, IPV4_NETWORK, KMS_KEY, MACHINE_IMAGE, POOL_KEY, REGION,
    SECURITY_GROUP,
};

mod status;

pub use status::{
    ObservedSize, PoolInstance, PoolLaunch, PoolLaunched, PoolNotice, PoolOffering,
    PoolScheduledEvent, PoolSetup, PoolSetupState, SpotPoolObservation, SpotPoolStatus,
    UnavailableOffering,
};

/// Annotation of a `SpotPool`. With the value `"true"`, the deletion of the pool also ends its
/// leased instances.
pub const END_LEASES: &str = "gpu.platform.acme.io/end-leases";

/// Keeps a number of equal GPU instances running in one region.
#[derive(CustomResource, KubeSchema, Serialize, Deserialize, Clone, Debug, PartialEq)]
#[kube(
    group = "gpu.platform.acme.io",
    version = "v1alpha1",
    kind = "SpotPool",
    doc = "Keeps a number of equal GPU instances running in one AWS region.",
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
    /// Actions that the provider may take in EC2. `["*"]` allows all of them.
    #[serde(default = "all_actions")]
    pub management_policies: Vec<ManagementAction>,
    /// Provider configuration with credentials and endpoint.
    #[serde(default)]
    pub provider_config_ref: ProviderConfigReference,
    /// Secret to which the provider writes the addresses of the instances. Its keys are `endpoint`,
    /// `port`, `addresses`, `privateAddresses`, `ssh` and `instanceIds`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub write_connection_secret_to_ref: Option<LocalSecretReference>,
    /// Instances that the provider keeps running, and their settings.
    pub for_provider: SpotPoolParameters,
}

/// Desired state of a pool.
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
        .message("home needs size.maximum 1 or 0 and no leases: a volume is attached to one instance"),
    validation = Rule::new("!(has(self.leases) && has(self.authorizedKeys))")
        .message("leases and authorizedKeys exclude each other: each lease has keys of its own")
)]
pub struct SpotPoolParameters {
    /// AWS region of the instances, for example `us-east-1`. Immutable: an instance cannot move to
    /// another region.
    #[schemars(length(max = 32), regex(pattern = REGION))]
    #[x_kube(validation = Rule::new("self == oldSelf").message("region is immutable"))]
    pub region: String,
    /// Number of instances that the provider keeps running: the leased ones and `idle` more, within
    /// `minimum` and `maximum`.
    pub size: PoolSize,
    /// Market from which the provider takes instances. `Spot`: AWS may take them back.
    /// `SpotWithFallback`: on-demand instances replace missing spot instances. `OnDemand`: AWS does
    /// not take them back.
    pub capacity_type: CapacityType,
    /// EC2 instance types in order of preference, for example `g4dn.xlarge`.
    #[schemars(length(min = 1, max = 20), inner(length(max = 32), regex(pattern = INSTANCE_TYPE)))]
    pub instance_types: Vec<String>,
    /// Availability zones to use. Default: every zone of the default VPC in which AWS offers one of
    /// the types.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 10))]
    pub zones: Option<Vec<String>>,
    /// Subnets to launch instances in. All must be in one VPC. Default: the subnets of the default
    /// VPC.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 20))]
    pub subnet_ids: Option<Vec<String>>,
    /// How the provider chooses among the types. `Ordered` tries one type after the other, each in
    /// all zones. `Any` lets AWS choose by price and capacity. AWS always chooses the zone.
    #[serde(default, skip_serializing_if = "is_default")]
    pub type_preference: PoolTypePreference,
    /// Distribution of instances over zones and types. It limits how many instances one
    /// interruption can take.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub spread: Option<PoolSpread>,
    /// When on-demand instances replace missing spot instances. Used with `SpotWithFallback` only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fallback: Option<PoolFallback>,
    /// Lets `SpotLease`s take instances of this pool. Each leased instance belongs to one lease
    /// only: the pool's own security group does not connect its instances with each other.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub leases: Option<PoolLeases>,
    /// When the pool ends, in RFC 3339 format. From then on the provider terminates all instances
    /// without a lease and ignores `size`. The provider does this even if the creator of the pool
    /// no longer exists. A pool without `endsAt` has no end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<String>", length(max = 35), regex(pattern = DATE_TIME))]
    #[x_kube(
        validation = Rule::new("timestamp(self) > timestamp('2000-01-01T00:00:00Z')")
            .message("write a day that the calendar has")
    )]
    pub ends_at: Option<Time>,
    /// Running instances that the provider replaces. Default: none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub replace: Option<PoolReplace>,
    /// Machine image from which the provider launches the instances.
    pub image: PoolImage,
    /// User data for cloud-init, at most 16 KiB before base64 (the limit of EC2). Everybody on the
    /// instance can read it, so it must not hold secrets.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 16384))]
    pub user_data: Option<String>,
    /// Existing security groups for the instances. Default: the provider creates one group for each
    /// pool.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 5))]
    pub security_group_ids: Option<Vec<String>>,
    /// SSH access through the pool's own security group. Default: no network may connect.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ssh: Option<PoolSsh>,
    /// OpenSSH public keys that may log in, without comments. The provider writes them to tags of
    /// the instances, also of running ones, and takes removed keys away. An instance reads its tags
    /// at the metadata service, so sshd must be set up to ask there at each login. Instances that
    /// were launched before the pool had this field do not see their tags.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 42), inner(length(max = 4096), regex(pattern = POOL_KEY)))]
    pub authorized_keys: Option<Vec<String>>,
    /// Size of the encrypted gp3 root volume in GiB. Default: the size in the image.
    #[serde(
        default,
        rename = "rootVolumeSizeGiB",
        skip_serializing_if = "Option::is_none"
    )]
    #[schemars(range(min = 8, max = 16384))]
    pub root_volume_size_gib: Option<i32>,
    /// Key of AWS KMS that encrypts the volumes: its id, its ARN, or an alias, for example
    /// `alias/gpu-volumes`. Default: the account's key for EBS in the region.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 2048), regex(pattern = KMS_KEY))]
    pub kms_key_id: Option<String>,
    /// Whether the provider reads the consoles of new instances. It looks for the lines
    /// `gpu-workspace setup done` and `gpu-workspace setup FAILED: …`, and for the SSH host keys that
    /// cloud-init writes, once a minute until the setup is done, for an hour at most.
    #[serde(default, skip_serializing_if = "is_default")]
    pub read_console: bool,
    /// Name of the IAM instance profile of the instances. Default: none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub iam_instance_profile: Option<String>,
    /// Volume for files that outlive the instance of the pool. The provider creates it in the zone
    /// of the pool's first instance and launches every later instance in that zone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub home: Option<PoolHome>,
    /// Additional tags on instances, volumes and the security group. Keys that begin with
    /// `gpu.platform.acme.io` or `aws:` are refused.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(extend("maxProperties" = 40))]
    #[x_kube(
        validation = Rule::new("self.all(k, !k.startsWith('gpu.platform.acme.io') && !k.startsWith('aws:'))")
            .message("tags under gpu.platform.acme.io and aws: are reserved")
    )]
    pub tags: BTreeMap<String, String>,
}

impl SpotPoolParameters {
    /// Whether `endsAt` has passed.
    pub fn has_ended(&self, now: Timestamp) -> bool {
        self.ends_at.as_ref().is_some_and(|Time(end)| *end <= now)
    }
}

/// Number of instances that a pool keeps.
#[derive(KubeSchema, Serialize, Deserialize, Clone, Copy, Debug, PartialEq, Eq)]
#[x_kube(
    validation = Rule::new("self.minimum <= self.maximum").message("minimum must not exceed maximum")
)]
pub struct PoolSize {
    /// Smallest number of instances, including the leased ones.
    #[schemars(range(min = 0, max = 1000))]
    pub minimum: i32,
    /// Largest number of instances, including the leased ones.
    #[schemars(range(min = 0, max = 1000))]
    pub maximum: i32,
    /// Number of instances to keep running in addition to the leased ones.
    #[serde(default)]
    #[schemars(range(min = 0, max = 1000))]
    pub idle: i32,
}

/// How the provider chooses among a pool's types.
#[derive(Serialize, Deserialize, JsonSchema, Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum PoolTypePreference {
    /// The provider tries one type after the other, in the given order.
    #[default]
    Ordered,
    /// AWS chooses among all types, by price and capacity.
    Any,
}

/// Distribution of a pool's instances.
#[derive(Serialize, Deserialize, JsonSchema, Clone, Copy, Debug, Default, PartialEq, Eq)]
#[serde(rename_all = "camelCase")]
pub struct PoolSpread {
    /// Whether zones hold equal numbers of instances, as far as they have capacity.
    #[serde(default)]
    pub zones: bool,
    /// Largest number of instances of the same type in the same zone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 1000))]
    pub max_per_offering: Option<i32>,
}

/// When on-demand instances replace missing spot instances.
#[derive(KubeSchema, Serialize, Deserialize, Clone, Debug, Default, PartialEq, Eq)]
#[serde(rename_all = "camelCase")]
pub struct PoolFallback {
    /// Time without spot capacity before the provider launches on-demand instances, at most `1d`, for
    /// example `5m`. Default: no time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[x_kube(validation = Bounds::new("0s", "1d").rule())]
    pub after: Option<Duration>,
    /// Time after which the provider replaces an on-demand instance that is not leased with a spot
    /// instance, from `10m` to `7d`. Default: the provider does not replace it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[x_kube(validation = Bounds::new("10m", "7d").rule())]
    pub return_after: Option<Duration>,
}

/// Rules for leases.
#[derive(KubeSchema, Serialize, Deserialize, Clone, Debug, Default, PartialEq, Eq)]
#[serde(rename_all = "camelCase")]
pub struct PoolLeases {
    /// Longest time from a lease's creation to its end, from `1m` to `365d`, for example `72h`.
    /// Default: no limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[x_kube(validation = Bounds::new("1m", "365d").rule())]
    pub max_lifetime: Option<Duration>,
}

/// Running instances that the provider replaces. It never replaces a leased instance.
#[derive(Serialize, Deserialize, JsonSchema, Clone, Copy, Debug, Default, PartialEq, Eq)]
#[serde(rename_all = "camelCase")]
#[expect(clippy::struct_excessive_bools, reason = "each is a choice of its own")]
pub struct PoolReplace {
    /// Instances whose image, user data, disk, instance profile or security group differs from the
    /// spec.
    #[serde(default)]
    pub drifted: bool,
    /// Instances whose image, user data, disk, instance profile or security group differs from the
    /// spec, and whose console has not shown the end of the setup. Such an instance does not count
    /// towards the minimum, so it ends before its replacement starts. It needs `readConsole`.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub not_set_up: bool,
    /// Instances that booted another image than `image.id`. Such an instance does not count towards
    /// the minimum, so it ends before its replacement starts.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub other_image: bool,
    /// Instances that have failed EC2's status checks for five minutes.
    #[serde(default)]
    pub impaired: bool,
    /// What the provider does when AWS recommends to replace an instance. `Ignore`: nothing.
    /// `Cordon`: no new lease gets the instance. `ReplaceFirst`: it launches a replacement first,
    /// then ends the instance.
    #[serde(default)]
    pub rebalance: PoolRebalance,
    /// Largest number of instances that are replaced at the same time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 100))]
    pub at_once: Option<i32>,
}

/// Reaction to a rebalance recommendation of AWS.
#[derive(Serialize, Deserialize, JsonSchema, Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum PoolRebalance {
    /// None. AWS sends far more recommendations than interruptions.
    #[default]
    Ignore,
    /// The instance keeps running, but no new lease gets it.
    Cordon,
    /// The provider launches a replacement first, then ends the instance.
    ReplaceFirst,
}

/// A machine image.
#[derive(Serialize, Deserialize, JsonSchema, Clone, Debug, PartialEq, Eq)]
pub struct PoolImage {
    /// Id of the machine image (AMI), for example `ami-0123456789abcdef0`.
    #[schemars(length(max = 32), regex(pattern = MACHINE_IMAGE))]
    pub id: String,
}

/// SSH access through the pool's own security group.
#[derive(KubeSchema, Serialize, Deserialize, Clone, Debug, Default, PartialEq, Eq)]
#[serde(rename_all = "camelCase")]
pub struct PoolSsh {
    /// IPv4 networks that may connect to port 22. An empty list allows no network.
    #[serde(default)]
    #[schemars(length(max = 50), inner(length(max = 18), regex(pattern = IPV4_NETWORK)))]
    pub allowed_cidrs: Vec<String>,
    /// Security groups whose members may connect to port 22 by their private addresses. They are in
    /// the VPC of the instances, or in a VPC of the same account and region that is peered with it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 5), inner(length(max = 20), regex(pattern = SECURITY_GROUP)))]
    pub allowed_security_group_ids: Vec<String>,
}
