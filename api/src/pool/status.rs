//! Status of a `SpotPool`.

use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube::KubeSchema;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::capacity::InstanceCapacityType;
use crate::condition::{Condition, Conditioned};
use crate::fields::{exact, is_default};
use crate::home::PoolHomeStatus;

/// Shows the instances of the pool and their state.
#[derive(KubeSchema, Serialize, Deserialize, Clone, Debug, Default, PartialEq)]
#[serde(rename_all = "camelCase")]
pub struct SpotPoolStatus {
    /// Conditions of the pool: `Ready`, `Synced` and `Launched`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[x_kube(merge_strategy = ListMerge::Map(vec!["type".into()]))]
    pub conditions: Vec<Condition>,
    /// Last value of the annotation `crossplane.io/reconcile-requested-at` that the provider has
    /// handled.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_handled_reconcile_at: Option<String>,
    /// State of the pool in EC2, as the provider last observed it.
    #[serde(default)]
    pub at_provider: SpotPoolObservation,
}

impl Conditioned for SpotPoolStatus {
    fn conditions(&self) -> &[Condition] {
        &self.conditions
    }
}

/// State of a pool in EC2, as last observed.
#[derive(Serialize, Deserialize, JsonSchema, Clone, Debug, Default, PartialEq)]
#[serde(rename_all = "camelCase")]
pub struct SpotPoolObservation {
    /// AWS account of the resources of this pool. Under credentials of another account the
    /// provider changes nothing while the pool has resources.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub account: Option<String>,
    /// Value of the tag `gpu.platform.acme.io:cluster` on the resources of this pool: the identity
    /// of the control plane. Under another identity the provider changes nothing while the pool
    /// has resources.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub identity: Option<String>,
    /// Value of the tag `gpu.platform.acme.io:pool-uid` on the resources of this pool, with a seal
    /// of the provider: the value of the annotation `gpu.platform.acme.io/identity`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pool_identity: Option<String>,
    /// Number of desired and of existing instances.
    #[serde(default)]
    pub size: ObservedSize,
    /// All instances with the tags of the pool, ordered by launch number.
    #[serde(
        default,
        deserialize_with = "exact",
        skip_serializing_if = "Vec::is_empty"
    )]
    pub instances: Vec<PoolInstance>,
    /// Launches that EC2 does not show yet. The provider records a launch before it calls EC2, so a
    /// crash leaves no lost instance and no duplicate.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub launches: Vec<PoolLaunch>,
    /// Instance of each lease, by the UID of the lease. The provider records it before it tags the
    /// instance.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub leases: BTreeMap<String, String>,
    /// Instances that the provider is terminating, with the reason. The provider records an
    /// instance before it terminates it, and gives no recorded instance to a lease.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub ending: BTreeMap<String, String>,
    /// Launch templates of this pool that may exist in EC2, by generation.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub launch_templates: Vec<String>,
    /// Since when the pool has had no spot capacity.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub spot_short_since: Option<Time>,
    /// Number of launches so far. The next launch gets this number plus one.
    #[serde(default)]
    pub launch_generation: i64,
    /// Security group that the provider owns for this pool.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub security_group_id: Option<String>,
    /// Home volume of the pool.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub home: Option<PoolHomeStatus>,
    /// Types and zones that EC2 refused recently. The provider does not try them before `until`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unavailable_offerings: Vec<UnavailableOffering>,
}

/// Number of desired and of existing instances.
#[derive(Serialize, Deserialize, JsonSchema, Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ObservedSize {
    /// Number of instances that should run.
    #[serde(default)]
    pub desired: i32,
    /// Number of instances that run.
    #[serde(default)]
    pub running: i32,
    /// Number of instances that are leased.
    #[serde(default, skip_serializing_if = "is_default")]
    pub leased: i32,
}

/// An instance of a pool.
#[derive(Serialize, Deserialize, JsonSchema, Clone, Debug, PartialEq)]
#[serde(rename_all = "camelCase")]
pub struct PoolInstance {
    /// Id of the instance in EC2, for example `i-0123456789abcdef0`.
    pub id: String,
    /// Number of the launch that created the instance.
    pub launch: i64,
    /// Launch template from which EC2 launched the instance.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub generation: Option<String>,
    /// UID of the lease that has the instance. Unset if no lease has it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lease: Option<String>,
    /// Announcement of AWS about the instance, for example of an interruption. Unset if there is
    /// none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub notice: Option<PoolNotice>,
    /// The next event that AWS has scheduled for the instance. Unset without one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scheduled_event: Option<PoolScheduledEvent>,
    /// Since when the instance has failed EC2's status checks.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub impaired_since: Option<Time>,
    /// Since when EC2 shows no trace of the instance. The provider replaces it after two minutes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub missing_since: Option<Time>,
    /// Why the instance differs from the spec, or why the provider will end it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
    /// Type of the instance, for example `g5.xlarge`.
    pub instance_type: String,
    /// Availability zone of the instance, for example `us-east-1a`.
    pub zone: String,
    /// Market from which the instance was taken: `Spot` or `OnDemand`.
    pub capacity_type: InstanceCapacityType,
    /// AMI id of the image that the instance booted.
    pub image_id: String,
    /// State of the instance in EC2, for example `running`.
    pub state: String,
    /// Reason that EC2 gives for the last change of state, for example
    /// `Server.SpotInstanceTermination`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub state_reason: Option<String>,
    /// Public IPv4 address of the instance. Unset if it has none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub public_ip: Option<String>,
    /// Private IPv4 address of the instance, in its VPC.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub private_ip: Option<String>,
    /// When EC2 launched the instance.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub launched_at: Option<Time>,
    /// Activity report of the agent on the instance: the unchanged value of the instance's tag.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub activity: Option<String>,
    /// Spot price of the instance in US dollars per hour, if the provider looks it up.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hourly_usd: Option<f64>,
    /// SSH host key that the agent on the instance reports: the unchanged value of the instance's
    /// tag.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub host_key: Option<String>,
    /// SSH host keys that the instance wrote to its console. The provider reads them if the spec's
    /// `readConsole` is true.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub console_host_keys: Vec<String>,
    /// Setup of the instance, as its console shows it. The provider reads it if the spec's
    /// `readConsole` is true.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub setup: Option<PoolSetup>,
}

/// Setup of an instance, as its console shows it.
#[derive(Serialize, Deserialize, JsonSchema, Clone, Debug, PartialEq, Eq)]
#[serde(rename_all = "camelCase")]
pub struct PoolSetup {
    /// State of the setup: `SettingUp`, `Ready`, `Failed`, or `Unknown` if the console does not
    /// show it.
    pub state: PoolSetupState,
    /// The step that failed, or why the state is not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
}

/// State of the setup of an instance.
#[derive(Serialize, Deserialize, JsonSchema, Clone, Copy, Debug, PartialEq, Eq)]
pub enum PoolSetupState {
    /// The setup has not ended yet.
    SettingUp,
    /// The software is installed.
    Ready,
    /// A step of the setup failed.
    Failed,
    /// The console has not shown the end of the setup for fifteen minutes, or cannot be read.
    Unknown,
}

/// Announcement of AWS about an instance.
#[derive(Serialize, Deserialize, JsonSchema, Clone, Debug, PartialEq)]
#[serde(rename_all = "camelCase")]
pub struct PoolNotice {
    /// Kind of the announcement: `Interruption` or `Rebalance`.
    pub kind: String,
    /// When AWS announced the event.
    pub at: Time,
}

/// An event that AWS has scheduled for an instance.
#[derive(Serialize, Deserialize, JsonSchema, Clone, Debug, PartialEq)]
#[serde(rename_all = "camelCase")]
pub struct PoolScheduledEvent {
    /// AWS's code of the event, for example `instance-retirement`.
    pub code: String,
    /// Earliest start of the event. Unset if AWS names none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub not_before: Option<Time>,
}

/// A launch that the provider has decided on.
#[derive(Serialize, Deserialize, JsonSchema, Clone, Debug, PartialEq)]
#[serde(rename_all = "camelCase")]
pub struct PoolLaunch {
    /// Number of the launch, unique within the pool.
    pub launch: i64,
    /// Number of instances that the provider launches.
    pub count: i32,
    /// Launch template of the instances, named by its generation.
    pub generation: String,
    /// Market from which the provider launches: `Spot` or `OnDemand`.
    pub capacity_type: InstanceCapacityType,
    /// Types and zones to launch in, in order of preference.
    pub offerings: Vec<PoolOffering>,
    /// When the provider last called EC2 for this launch, or is about to call it.
    pub decided_at: Time,
    /// How many calls for this launch failed without an answer. After eight, the provider does not
    /// ask again, and makes another launch.
    #[serde(default, skip_serializing_if = "is_default")]
    pub failures: i32,
    /// Instances in EC2's answer. Empty once EC2 lists them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub answer: Option<Vec<PoolLaunched>>,
}

/// An instance type in an availability zone.
#[derive(Serialize, Deserialize, JsonSchema, Clone, Debug, PartialEq)]
#[serde(rename_all = "camelCase")]
pub struct PoolOffering {
    /// Instance type to launch, for example `g5.xlarge`.
    pub instance_type: String,
    /// Availability zone to launch in, for example `us-east-1a`.
    pub zone: String,
}

/// An instance in EC2's answer to a launch.
#[derive(Serialize, Deserialize, JsonSchema, Clone, Debug, PartialEq)]
#[serde(rename_all = "camelCase")]
pub struct PoolLaunched {
    /// Id of the instance in EC2, for example `i-0123456789abcdef0`.
    pub id: String,
    /// Type of the instance, for example `g5.xlarge`.
    pub instance_type: String,
    /// Availability zone of the instance, for example `us-east-1a`.
    pub zone: String,
}

/// A type in a zone that EC2 refused.
#[derive(Serialize, Deserialize, JsonSchema, Clone, Debug, PartialEq)]
#[serde(rename_all = "camelCase")]
pub struct UnavailableOffering {
    /// Instance type that EC2 refused, for example `g5.xlarge`.
    pub instance_type: String,
    /// Availability zone in which EC2 refused it, for example `us-east-1a`.
    pub zone: String,
    /// Market in which EC2 refused it: `Spot` or `OnDemand`.
    pub capacity_type: InstanceCapacityType,
    /// Error code of EC2, for example `InsufficientInstanceCapacity`.
    pub code: String,
    /// Time before which the provider does not try this type and zone again.
    pub until: Time,
}
