//! Condition types, and conditions as Crossplane's resources carry them.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The resource is usable.
pub const READY: &str = "Ready";
/// The last reconcile succeeded.
pub const SYNCED: &str = "Synced";
/// The last attempt to launch an instance succeeded. If it failed, the reason is the class of the
/// error.
pub const LAUNCHED: &str = "Launched";
/// The workspace has running compute: an instance on EC2, or its pods in the cluster.
pub const COMPUTE_READY: &str = "ComputeReady";
/// Somebody can reach the workspace: a key or an authority may log in, and on EC2 a network may
/// connect.
pub const ACCESS_READY: &str = "AccessReady";
/// The reason of `AccessReady` for a workspace that the policy's bastion does not reach. The condition is
/// `True` if another network may connect, and `False` if none may.
pub const BASTION_OUT_OF_REACH: &str = "BastionOutOfReach";
/// The software of the workspace is installed on its machine.
pub const SOFTWARE_READY: &str = "SoftwareReady";
/// The workspace stops within half an hour, unless its owner uses it or extends its run.
pub const STOP_SCHEDULED: &str = "StopScheduled";
/// The provider of the machine takes it back within minutes.
pub const INTERRUPTING: &str = "Interrupting";
/// The owner's budget covers the run of the workspace.
pub const WITHIN_BUDGET: &str = "WithinBudget";
/// Kueue has admitted the workspace's pods: the queue has quota for them.
pub const ADMITTED: &str = "Admitted";
/// The workspace's home volume is attached to its instance.
pub const HOME_READY: &str = "HomeReady";
/// The API server refuses claims that would leave the current policy.
pub const POLICY_ENFORCED: &str = "PolicyEnforced";
/// Condition of upjet's providers: result of the last create, update or delete that the provider
/// ran in the background.
pub const LAST_ASYNC_OPERATION: &str = "LastAsyncOperation";

/// One aspect of a resource's state. Each `type` occurs once.
#[derive(Serialize, Deserialize, JsonSchema, Clone, Debug, PartialEq)]
#[serde(rename_all = "camelCase")]
pub struct Condition {
    /// Name of the condition, for example `Ready`.
    #[serde(rename = "type")]
    pub type_: String,
    /// Whether the condition holds: `True`, `False`, or `Unknown` if that is not known.
    pub status: ConditionStatus,
    /// Reason of the status in one word, which programs can compare.
    pub reason: String,
    /// Explanation for people: the object, the field and the next step. It holds no counter and no
    /// time except deadlines, so it changes only when its meaning changes.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub message: String,
    /// When the value of `status` last changed.
    pub last_transition_time: Time,
    /// The `metadata.generation` of the resource that the condition is about.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
}

/// Status of a condition.
#[derive(Serialize, Deserialize, JsonSchema, Clone, Copy, Debug, PartialEq, Eq)]
pub enum ConditionStatus {
    /// The condition holds.
    True,
    /// The condition does not hold.
    False,
    /// It is not known whether the condition holds.
    Unknown,
}

impl ConditionStatus {
    /// The status as manifests spell it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::True => "True",
            Self::False => "False",
            Self::Unknown => "Unknown",
        }
    }
}

impl From<bool> for ConditionStatus {
    fn from(holds: bool) -> Self {
        if holds { Self::True } else { Self::False }
    }
}

/// A status that carries conditions.
pub trait Conditioned {
    /// The conditions, in no particular order.
    fn conditions(&self) -> &[Condition];
}

/// Finds the condition of a type; none if the resource does not have it.
pub fn find<'a>(conditions: &'a [Condition], type_: &str) -> Option<&'a Condition> {
    conditions.iter().find(|c| c.type_ == type_)
}
