//! `SpotLease`: exclusive use of one instance of a pool.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube::{CustomResource, KubeSchema};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::capacity::InstanceCapacityType;
use crate::condition::{Condition, Conditioned};
use crate::duration::{Bounds, Duration};
use crate::managed::{LocalSecretReference, ManagementAction, all_actions};
use crate::patterns::{LEASE_KEY, OWNER};
use crate::pool::PoolNotice;

/// Takes a running instance of a pool in the same namespace for as long as the lease exists. The
/// provider ends the instance with the lease, so no other lease gets it afterwards.
#[derive(CustomResource, KubeSchema, Serialize, Deserialize, Clone, Debug, PartialEq)]
#[kube(
    group = "gpu.platform.acme.io",
    version = "v1alpha1",
    kind = "SpotLease",
    doc = "Gives one owner a running instance of a `SpotPool` for as long as the lease exists.",
    plural = "spotleases",
    namespaced,
    status = "SpotLeaseStatus",
    category = "crossplane",
    category = "managed",
    category = "gpu",
    printcolumn = r#"{"name": "Ready", "type": "string", "jsonPath": ".status.conditions[?(@.type=='Ready')].status"}"#,
    printcolumn = r#"{"name": "Synced", "type": "string", "jsonPath": ".status.conditions[?(@.type=='Synced')].status"}"#,
    printcolumn = r#"{"name": "Pool", "type": "string", "jsonPath": ".spec.forProvider.poolRef.name"}"#,
    printcolumn = r#"{"name": "Owner", "type": "string", "jsonPath": ".spec.forProvider.owner"}"#,
    printcolumn = r#"{"name": "Instance", "type": "string", "jsonPath": ".status.atProvider.instanceId"}"#,
    printcolumn = r#"{"name": "Address", "type": "string", "jsonPath": ".status.atProvider.publicIp"}"#,
    printcolumn = r#"{"name": "Expires", "type": "string", "jsonPath": ".status.atProvider.expiresAt", "priority": 1}"#,
    printcolumn = r#"{"name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp"}"#,
    derive = "PartialEq"
)]
#[serde(rename_all = "camelCase")]
pub struct SpotLeaseSpec {
    /// Actions that the provider may take in EC2. `["*"]` allows all of them. Without `Delete` the
    /// instance keeps running after the lease is deleted.
    #[serde(default = "all_actions")]
    pub management_policies: Vec<ManagementAction>,
    /// Secret to which the provider writes the address of the instance. Its keys are `endpoint`,
    /// `port`, `addresses`, `privateAddresses`, `ssh` and `instanceIds`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub write_connection_secret_to_ref: Option<LocalSecretReference>,
    /// The pool to lease from, and the lessee.
    pub for_provider: SpotLeaseParameters,
}

/// The pool to lease from, and the lessee.
#[derive(KubeSchema, Serialize, Deserialize, Clone, Debug, PartialEq)]
#[serde(rename_all = "camelCase")]
pub struct SpotLeaseParameters {
    /// Pool from which the lease takes an instance, in the lease's namespace. Immutable.
    #[x_kube(validation = Rule::new("self == oldSelf").message("poolRef is immutable: make another lease"))]
    pub pool_ref: PoolReference,
    /// Owner of the instance: lower-case letters, digits, `.`, `_` and `-`. Immutable: an instance
    /// is never passed on to another owner.
    #[schemars(length(max = 63), regex(pattern = OWNER))]
    #[x_kube(validation = Rule::new("self == oldSelf").message("owner is immutable: make another lease"))]
    pub owner: String,
    /// OpenSSH public keys that may log in, without comments. The instance reads them from its
    /// tags. RSA keys are too long for a tag.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 5), inner(length(max = 256), regex(pattern = LEASE_KEY)))]
    pub authorized_keys: Vec<String>,
    /// Time from the lease's creation to its end, from `1m` to `365d`, for example `10h`. The pool may
    /// set a lower limit. Default: the limit of the pool.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[x_kube(validation = Bounds::new("1m", "365d").rule())]
    pub lifetime: Option<Duration>,
}

/// Reference to a pool in the same namespace.
#[derive(Serialize, Deserialize, JsonSchema, Clone, Debug, PartialEq, Eq)]
pub struct PoolReference {
    /// Name of the `SpotPool` in the same namespace.
    #[schemars(length(min = 1, max = 253))]
    pub name: String,
}

/// Shows the leased instance and its state.
#[derive(KubeSchema, Serialize, Deserialize, Clone, Debug, Default, PartialEq)]
#[serde(rename_all = "camelCase")]
pub struct SpotLeaseStatus {
    /// Conditions of the lease: `Ready` and `Synced`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[x_kube(merge_strategy = ListMerge::Map(vec!["type".into()]))]
    pub conditions: Vec<Condition>,
    /// Last value of the annotation `crossplane.io/reconcile-requested-at` that the provider has
    /// handled.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_handled_reconcile_at: Option<String>,
    /// The leased instance, as the status of the pool shows it.
    #[serde(default)]
    pub at_provider: SpotLeaseObservation,
}

impl Conditioned for SpotLeaseStatus {
    fn conditions(&self) -> &[Condition] {
        &self.conditions
    }
}

/// The leased instance.
#[derive(Serialize, Deserialize, JsonSchema, Clone, Debug, Default, PartialEq)]
#[serde(rename_all = "camelCase")]
pub struct SpotLeaseObservation {
    /// Value of the tag `gpu.platform.acme.io:lease` on the leased instance, with a seal of the
    /// provider: the value of the annotation `gpu.platform.acme.io/identity`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lease_identity: Option<String>,
    /// Id of the instance in EC2, for example `i-0123456789abcdef0`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub instance_id: Option<String>,
    /// Type of the instance, for example `g5.xlarge`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub instance_type: Option<String>,
    /// Availability zone of the instance, for example `us-east-1a`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub zone: Option<String>,
    /// Market from which the instance was taken: `Spot` or `OnDemand`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub capacity_type: Option<InstanceCapacityType>,
    /// State of the instance in EC2, for example `running`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub state: Option<String>,
    /// Public IPv4 address of the instance. Unset if it has none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub public_ip: Option<String>,
    /// Private IPv4 address of the instance, in its VPC.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub private_ip: Option<String>,
    /// Announcement of AWS about the instance, for example of an interruption. Unset if there is
    /// none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub notice: Option<PoolNotice>,
    /// When the lease ends. The provider then ends the instance too.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires_at: Option<Time>,
}
