//! What the function remembers of a workspace from call to call, and users need not read.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::cost::BudgetRequest;

/// The function's memory of a workspace. Its fields may change with every version of the function:
/// read the other fields of the status instead.
#[derive(Serialize, Deserialize, JsonSchema, Clone, Debug, Default, PartialEq)]
#[serde(rename_all = "camelCase")]
pub struct InternalStatus {
    /// How the cost of the machines is counted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub machines: Option<Counter>,
    /// How the cost of the homes is counted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub homes: Option<Counter>,
    /// Request to the owner's budget, if the policy uses budgets.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub budget_request: Option<BudgetRequest>,
    /// The annotations that the function has handled.
    #[serde(default, skip_serializing_if = "Handled::is_empty")]
    pub handled: Handled,
}

/// How a cost is counted.
#[derive(Serialize, Deserialize, JsonSchema, Clone, Debug, Default, PartialEq)]
#[serde(rename_all = "camelCase")]
pub struct Counter {
    /// US dollars in this month before the time in `since`.
    #[serde(default)]
    pub earlier_usd: f64,
    /// Since when the price has been the present one. Unset while nothing costs money.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub since: Option<Time>,
    /// Time up to which the cost is counted. Unset while nothing costs money.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub billed_until: Option<Time>,
}

/// The last values of a claim's annotations that the function has handled.
#[derive(Serialize, Deserialize, JsonSchema, Clone, Debug, Default, PartialEq, Eq)]
pub struct Handled {
    /// Last value of the annotation `platform.acme.io/resume` that the function has handled, or the
    /// value at the time of the stop.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resume: Option<String>,
    /// Last value of the annotation `platform.acme.io/stop` that the function has handled.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stop: Option<String>,
}

impl Handled {
    /// Whether the function has handled no annotation.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}
