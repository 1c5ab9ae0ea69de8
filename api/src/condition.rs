//! Conditions as Crossplane's resources carry them.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The resource is usable.
pub const READY: &str = "Ready";
/// The last reconcile succeeded.
pub const SYNCED: &str = "Synced";
/// The last attempt to start an instance succeeded; its reason is the error's
/// class otherwise.
pub const LAUNCHED: &str = "Launched";
/// The workspace's instance runs.
pub const COMPUTE_READY: &str = "ComputeReady";
/// The workspace stops within half an hour, unless somebody does something.
pub const STOP_SCHEDULED: &str = "StopScheduled";
/// The owner's budget has room for the workspace's run.
pub const WITHIN_BUDGET: &str = "WithinBudget";
/// Kueue has quota for the workspace's pods.
pub const ADMITTED: &str = "Admitted";
/// The workspace's home volume is attached to its instance.
pub const HOME_READY: &str = "HomeReady";
/// upjet's: the last create, update or delete that it ran in the background.
pub const LAST_ASYNC_OPERATION: &str = "LastAsyncOperation";

/// One observation of a resource's state, unique by `type`.
#[derive(Serialize, Deserialize, JsonSchema, Clone, Debug, PartialEq)]
#[serde(rename_all = "camelCase")]
pub struct Condition {
    /// What was observed, for example `Ready`.
    #[serde(rename = "type")]
    pub type_: String,
    /// `True`, `False` or `Unknown`.
    pub status: ConditionStatus,
    /// A constant, machine-readable word for the last transition.
    pub reason: String,
    /// For people: the object, the field and the next step. Carries no time
    /// and no counter, so that it changes only when its meaning does.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub message: String,
    /// When `status` last changed.
    pub last_transition_time: Time,
    /// The `metadata.generation` that was observed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
}

/// Kubernetes' three-valued truth.
#[derive(Serialize, Deserialize, JsonSchema, Clone, Copy, Debug, PartialEq, Eq)]
pub enum ConditionStatus {
    /// It holds.
    True,
    /// It does not.
    False,
    /// Nobody can tell.
    Unknown,
}

impl ConditionStatus {
    /// The word in a manifest.
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
    /// They, in any order.
    fn conditions(&self) -> &[Condition];
}

/// The condition of a type, where there is one.
pub fn find<'a>(conditions: &'a [Condition], type_: &str) -> Option<&'a Condition> {
    conditions.iter().find(|c| c.type_ == type_)
}
