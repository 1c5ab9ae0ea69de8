//! What the provider saw of a pool and did for it.

use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube::KubeSchema;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::capacity::InstanceCapacityType;
use crate::condition::{Condition, Conditioned};
use crate::fields::is_default;
use crate::home::PoolHomeStatus;

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
    /// Every instance that carries the pool's tags, by launch.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub instances: Vec<PoolInstance>,
    /// Launches that were decided on and not yet seen in EC2. Written before
    /// EC2 is called, so that a crash leaves neither an orphan nor a double.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub launches: Vec<PoolLaunch>,
    /// Which instance each lease has, by the lease's UID. Written before the
    /// instance is tagged.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub leases: BTreeMap<String, String>,
    /// Launch templates that EC2 may have for this pool, by generation.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub launch_templates: Vec<String>,
    /// Since when the pool has lacked spot capacity.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub spot_short_since: Option<Time>,
    /// Launches ever decided on; the next one gets this number plus one.
    #[serde(default)]
    pub launch_generation: i64,
    /// The security group that the provider owns for this pool.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub security_group_id: Option<String>,
    /// The home volume.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub home: Option<PoolHomeStatus>,
    /// Offerings that EC2 refused of late, and until when they are unavailable.
    #[serde(
        rename = "coldOfferings",
        default,
        skip_serializing_if = "Vec::is_empty"
    )]
    pub unavailable_offerings: Vec<UnavailableOffering>,
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
    /// Instances that somebody has.
    #[serde(default, skip_serializing_if = "is_default")]
    pub leased: i32,
}

/// One instance of a pool.
#[derive(Serialize, Deserialize, JsonSchema, Clone, Debug, PartialEq)]
#[serde(rename_all = "camelCase")]
pub struct PoolInstance {
    /// EC2's instance id.
    pub id: String,
    /// The launch that created it.
    pub launch: i64,
    /// The launch template it came from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub generation: Option<String>,
    /// UID of the lease that has it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lease: Option<String>,
    /// What AWS announced about it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub notice: Option<PoolNotice>,
    /// Since when it fails EC2's status checks.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub impaired_since: Option<Time>,
    /// Why it is not, or will not stay, as it should be.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
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
    /// What its agent says of its use: its tag of that name, word for word.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub activity: Option<String>,
    /// Its spot price in US dollars per hour, where the provider looks it up.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hourly_usd: Option<f64>,
    /// Its SSH host key, as its agent says: its tag of that name, word for word.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub host_key: Option<String>,
}

/// What AWS announced about an instance.
#[derive(Serialize, Deserialize, JsonSchema, Clone, Debug, PartialEq)]
#[serde(rename_all = "camelCase")]
pub struct PoolNotice {
    /// `Interruption` or `Rebalance`.
    pub kind: String,
    /// When it was announced.
    pub at: Time,
}

/// A launch that was decided on.
#[derive(Serialize, Deserialize, JsonSchema, Clone, Debug, PartialEq)]
#[serde(rename_all = "camelCase")]
pub struct PoolLaunch {
    /// Its number, unique within the pool.
    pub launch: i64,
    /// How many instances were asked for.
    pub count: i32,
    /// The launch template.
    pub generation: String,
    /// The market asked for.
    pub capacity_type: InstanceCapacityType,
    /// The types and zones asked for, in their order.
    pub offerings: Vec<PoolOffering>,
    /// When EC2 was last asked for it, or is about to be.
    pub decided_at: Time,
    /// The instances that EC2 answered with, until they are listed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub answer: Option<Vec<PoolLaunched>>,
}

/// An instance type in a zone.
#[derive(Serialize, Deserialize, JsonSchema, Clone, Debug, PartialEq)]
#[serde(rename_all = "camelCase")]
pub struct PoolOffering {
    /// Instance type.
    pub instance_type: String,
    /// Availability zone.
    pub zone: String,
}

/// An instance that EC2 answered a launch with.
#[derive(Serialize, Deserialize, JsonSchema, Clone, Debug, PartialEq)]
#[serde(rename_all = "camelCase")]
pub struct PoolLaunched {
    /// EC2's instance id.
    pub id: String,
    /// Its type.
    pub instance_type: String,
    /// Its availability zone.
    pub zone: String,
}

/// An offering that EC2 refused.
#[derive(Serialize, Deserialize, JsonSchema, Clone, Debug, PartialEq)]
#[serde(rename_all = "camelCase")]
pub struct UnavailableOffering {
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
