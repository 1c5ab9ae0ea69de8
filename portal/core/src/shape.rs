//! The shapes of what the versioned API takes and gives.

use std::collections::BTreeMap;

use api::cost::BudgetStatus;
use jiff::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::offer::Offer;
use crate::timeline::Entry;
use crate::view::Row;

/// Who the person is, for Kubernetes and here.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Me {
    /// The name of the User.
    pub user: String,
    /// The groups that count.
    pub groups: Vec<String>,
    /// The address in the token.
    pub email: Option<String>,
    /// The person's `DevUser`.
    pub owner: Option<String>,
    /// The namespace of the person's workspaces.
    pub namespace: Option<String>,
    /// Why the person can do nothing here.
    pub problem: Option<String>,
    /// When the session ends.
    pub expires_at: Timestamp,
}

/// What the platform offers. `Menu` is what a claim for EC2 may choose from.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Catalogue<Menu> {
    /// The flavors.
    pub offers: Vec<Offer>,
    /// Instance types, images and regions.
    pub ec2: Menu,
}

/// Which workspaces a person wants to see.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
pub struct Selection {
    /// Only those of a namespace.
    pub namespace: Option<String>,
    /// Only those of an owner.
    pub owner: Option<String>,
    /// Only those in a phase.
    pub phase: Option<String>,
    /// Only those with this text in their name.
    pub q: Option<String>,
    /// How many at most. Without it, all.
    #[schemars(range(min = 1, max = 500))]
    pub limit: Option<u16>,
    /// Goes on after another answer: its `continue`.
    #[serde(rename = "continue")]
    pub after: Option<String>,
}

/// The workspaces that a person sees.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Listed {
    /// The version from which `/api/v1/watch` goes on.
    pub version: u64,
    /// The workspaces.
    pub items: Vec<Row>,
    /// There are more: the value of `continue` for the next question.
    #[serde(rename = "continue", skip_serializing_if = "Option::is_none")]
    pub next: Option<String>,
}

/// What has happened to a workspace.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Timeline {
    /// What is known, the latest first.
    pub entries: Vec<Entry>,
    /// Why there are no events; none if there may be some.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub without_events: Option<String>,
}

/// The person's budget of the month.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Budget {
    /// US dollars of a month; none without a budget.
    pub monthly_usd: Option<f64>,
    /// What is spent and promised in this month; none before the function has counted.
    pub status: Option<BudgetStatus>,
}

/// One workspace.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Whole {
    /// The row of the list.
    #[serde(flatten)]
    pub row: Row,
    /// `spec.parameters` of the claim.
    pub parameters: Value,
    /// The conditions of the claim.
    pub conditions: Option<Vec<Condition>>,
    /// `status.lifecycle` of the claim.
    pub lifecycle: Option<BTreeMap<String, Value>>,
    /// `status.activity` of the claim.
    pub activity: Option<BTreeMap<String, Value>>,
    /// `status.cost` of the claim.
    pub cost: Option<BTreeMap<String, Value>>,
}

/// A condition of a claim.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Condition {
    /// The type.
    #[serde(rename = "type")]
    pub kind: String,
    /// `True`, `False` or `Unknown`.
    pub status: String,
    /// The reason, one word.
    pub reason: Option<String>,
    /// The message for people.
    pub message: Option<String>,
    /// When the status has changed last.
    pub last_transition_time: Option<Timestamp>,
}

/// A workspace that is to be created.
#[derive(Clone, Debug, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct NewWorkspace {
    /// The name of the claim.
    pub name: String,
    /// The namespace. Default: the person's own.
    pub namespace: Option<String>,
    /// `spec.parameters` of the claim, as `/api/v1/schemas/workspace` describes them.
    pub parameters: Option<BTreeMap<String, Value>>,
}

/// A merge patch (RFC 7386) of `spec.parameters`.
#[derive(Clone, Debug, PartialEq, Deserialize, JsonSchema)]
#[serde(transparent)]
pub struct Patch(pub BTreeMap<String, Value>);

/// How much longer a workspace runs.
#[derive(Clone, Debug, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Extension {
    /// A duration, for example `4h`.
    pub by: String,
}

/// A workspace of the first API that is to be created.
#[derive(Clone, Debug, PartialEq, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct PlainWish {
    /// The person's own address, or the name of their `DevUser`.
    pub owner: String,
    /// An EC2 instance type. Default: the platform's choice.
    pub instance_type: Option<String>,
    /// An OpenCV release. Default: the platform's choice.
    pub opencv_version: Option<String>,
}

/// A refusal of the first API.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct PlainProblem {
    /// What is wrong, and what to do.
    pub error: String,
}
