//! Cost of workspaces, and budgets of their owners.

use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Cost of a workspace's machines, by the prices of the catalogue. The function updates the amounts
/// every quarter of an hour, and at each start, stop and change of machines. The cost of the homes is
/// in `home`.
#[derive(Serialize, Deserialize, JsonSchema, Clone, Debug, PartialEq)]
#[serde(rename_all = "camelCase")]
pub struct CostStatus {
    /// US dollars per hour of the running machines; 0 while none runs.
    pub hourly_usd: f64,
    /// US dollars in this calendar month (UTC) so far, over all runs.
    pub so_far_usd: f64,
    /// US dollars in this month until the next stop, or until the end of the month if no stop is
    /// planned.
    pub projected_usd: f64,
    /// Date of the catalogue's prices, for example `2026-11-01`.
    pub as_of: String,
    /// Source of the hourly price: `Catalogue`, or `SpotPrice` for the spot price of EC2 in the
    /// status of the `SpotPool`.
    pub source: CostSource,
    /// Calendar month (UTC) of the amounts, for example `2026-11`.
    pub month: String,
    /// Cost of the homes, if the catalogue has their prices. The other amounts do not contain it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub home: Option<HomeCost>,
}

/// Cost of the homes of a workspace, while it runs and while it is stopped. The function updates the
/// amounts once a day, and at each change of size.
#[derive(Serialize, Deserialize, JsonSchema, Clone, Debug, PartialEq)]
#[serde(rename_all = "camelCase")]
pub struct HomeCost {
    /// US dollars per hour of the homes that exist; 0 while none exists.
    pub hourly_usd: f64,
    /// US dollars in this calendar month (UTC) so far.
    pub so_far_usd: f64,
    /// Calendar month (UTC) of the amounts, for example `2026-11`.
    pub month: String,
    /// The homes that exist: volume ids of EC2, or `namespace/name` of `PersistentVolumeClaim`s.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub homes: Vec<String>,
    /// Whether at least one of these homes stays when the claim is deleted.
    #[serde(default)]
    pub kept_after_deletion: bool,
}

/// Source of a price.
#[derive(Serialize, Deserialize, JsonSchema, Clone, Copy, Debug, PartialEq, Eq)]
pub enum CostSource {
    /// The price in the catalogue.
    Catalogue,
    /// The spot price of EC2, from the status of the `SpotPool`.
    SpotPrice,
}

/// Request of a workspace to its owner's budget: the remaining cost of a run.
#[derive(Serialize, Deserialize, JsonSchema, Clone, Debug, PartialEq)]
#[serde(rename_all = "camelCase")]
pub struct BudgetRequest {
    /// When the request was made. Each run has its own request with its own time.
    pub made_at: Time,
    /// US dollars that the run may still cost until `until`, in addition to `soFarUsd`.
    pub usd: f64,
    /// Highest price of the run in US dollars per hour.
    pub hourly_usd: f64,
    /// End of the run, or end of the month if the run has no end.
    pub until: Time,
    /// Whether the run has no end. It then requests the cost of each new month.
    #[serde(default)]
    pub without_end: bool,
    /// Whether a machine of the run is already running.
    #[serde(default)]
    pub running: bool,
}

/// Budgets in the policy of workspaces.
#[derive(Serialize, Deserialize, JsonSchema, Clone, Debug, Default, PartialEq, Eq)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct BudgetPolicy {
    /// Whether owners need a `DevUser` with a budget. If false, owners without a budget have no
    /// limit.
    #[serde(default)]
    pub require_budget: bool,
}

/// Budgets in the policy of users: which workspaces count.
#[derive(Serialize, Deserialize, JsonSchema, Clone, Debug, Default, PartialEq, Eq)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct UserBudgetPolicy {
    /// Kind of the workspaces that count: `GpuDevWorkspace` for those with claims,
    /// `GpuDevWorkspaceClaim` for those without.
    #[serde(default)]
    pub kind: WorkspaceKind,
    /// Whether workspaces in all namespaces count that name the user as owner. If false, only those
    /// in the user's own namespace count. If true, a change of any workspace triggers a reconcile
    /// of every user.
    #[serde(default)]
    pub everywhere: bool,
}

/// Kind of the workspace composites.
#[derive(Serialize, Deserialize, JsonSchema, Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum WorkspaceKind {
    /// Cluster-scoped composites with claims, of `configuration-gpu-workspaces`.
    #[default]
    GpuDevWorkspace,
    /// Namespaced composites, of `configuration-gpu-workspaces-namespaced`. Their cost is in their
    /// `WorkspaceRecord`s.
    GpuDevWorkspaceClaim,
}

/// State of a user's budget.
#[derive(Serialize, Deserialize, JsonSchema, Clone, Debug, Default, PartialEq)]
#[serde(rename_all = "camelCase")]
pub struct BudgetStatus {
    /// Calendar month (UTC) of the amounts, for example `2026-11`.
    pub month: String,
    /// Budget of the person in US dollars per calendar month.
    pub monthly_usd: f64,
    /// US dollars spent on machines and homes, including workspaces that are deleted.
    pub spent_usd: f64,
    /// US dollars that granted runs, and homes until the end of the month, may still cost.
    pub reserved_usd: f64,
    /// US dollars spent by workspaces that are deleted.
    #[serde(default)]
    pub gone_usd: f64,
    /// Namespace whose workspaces count. Unset if those of all namespaces count.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub namespace: Option<String>,
    /// Runs that may start, by `namespace/name` of the composite.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub grants: BTreeMap<String, Grant>,
    /// Grants that become valid within seconds, by `namespace/name` of the composite.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub offers: BTreeMap<String, Grant>,
    /// Spending of each workspace in this month, by `namespace/name` of the composite.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub workspaces: BTreeMap<String, WorkspaceAccount>,
    /// Homes of deleted workspaces, which still cost money. Those that `spec.budget.deletedHomes`
    /// lists do not count.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub kept_homes: Vec<KeptHomes>,
}

/// Homes of one workspace that outlive it.
#[derive(Serialize, Deserialize, JsonSchema, Clone, Debug, PartialEq)]
#[serde(rename_all = "camelCase")]
pub struct KeptHomes {
    /// Names of the homes: volume ids of EC2, or `namespace/name` of `PersistentVolumeClaim`s.
    pub homes: Vec<String>,
    /// US dollars per hour of all these homes together.
    pub hourly_usd: f64,
    /// Time from which the cost of these homes counts here.
    pub since: Time,
}

/// Permission to start a run.
#[derive(Serialize, Deserialize, JsonSchema, Clone, Debug, PartialEq)]
#[serde(rename_all = "camelCase")]
pub struct Grant {
    /// `madeAt` of the request that this grant answers.
    pub made_at: Time,
    /// US dollars that the workspace may have spent in this month by `until`, including its earlier
    /// runs.
    pub usd: f64,
    /// Highest price of the run in US dollars per hour.
    pub hourly_usd: f64,
    /// Time at which the grant ends.
    pub until: Time,
    /// When the run was first offered. Set for offers only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub offered_at: Option<Time>,
}

/// Spending of a workspace.
#[derive(Serialize, Deserialize, JsonSchema, Clone, Debug, PartialEq)]
#[serde(rename_all = "camelCase")]
pub struct WorkspaceAccount {
    /// UID of the workspace's composite in Kubernetes.
    pub uid: String,
    /// US dollars in this month, for machines and homes.
    pub usd: f64,
    /// US dollars per hour of the running machines.
    #[serde(default)]
    pub hourly_usd: f64,
    /// Time up to which `usd` counts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub billed_until: Option<Time>,
    /// The homes that stay when the workspace is deleted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kept_homes: Option<KeptHomes>,
}
