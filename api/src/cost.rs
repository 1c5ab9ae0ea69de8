//! What workspaces cost, and what their owners may spend.

use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What a workspace costs: its machines, by the catalogue's prices. Amounts are counted
/// in quarters of an hour, and at each start, stop and change of machines.
#[derive(Serialize, Deserialize, JsonSchema, Clone, Debug, PartialEq)]
#[serde(rename_all = "camelCase")]
pub struct CostStatus {
    /// US dollars per hour of what runs; 0 where nothing does.
    pub hourly_usd: f64,
    /// US dollars of this calendar month (UTC), of every run in it.
    pub so_far_usd: f64,
    /// US dollars of this month as they will be when it stops next; at the end of the
    /// month where nothing stops it.
    pub projected_usd: f64,
    /// The day of the catalogue's prices.
    pub as_of: String,
    /// Where the price comes from.
    pub source: CostSource,
    /// The month, for example `2026-11`.
    pub month: String,
    /// US dollars of this month before `since`.
    #[serde(default)]
    pub earlier_usd: f64,
    /// Since when it has cost `hourlyUsd`; none while nothing runs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub since: Option<Time>,
    /// Until when `soFarUsd` counts; none while nothing runs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub billed_until: Option<Time>,
    /// What it asks of its owner's budget, where the policy has budgets.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub request: Option<BudgetRequest>,
}

/// Where a price comes from.
#[derive(Serialize, Deserialize, JsonSchema, Clone, Copy, Debug, PartialEq, Eq)]
pub enum CostSource {
    /// The catalogue.
    Catalogue,
    /// EC2's spot price, as the `SpotPool` shows it.
    SpotPrice,
}

/// What a workspace asks of its owner's budget: what a run may still cost.
#[derive(Serialize, Deserialize, JsonSchema, Clone, Debug, PartialEq)]
#[serde(rename_all = "camelCase")]
pub struct BudgetRequest {
    /// When it was made: it tells one run's request from another's.
    pub made_at: Time,
    /// US dollars until then, beside what was spent.
    pub usd: f64,
    /// US dollars per hour at most.
    pub hourly_usd: f64,
    /// When the run ends; the end of the month where nothing ends it.
    pub until: Time,
    /// Whether nothing ends it, so that it asks again in the next month.
    #[serde(default)]
    pub without_end: bool,
    /// Whether a machine runs already.
    #[serde(default)]
    pub running: bool,
}

/// Budgets, in the policy of workspaces.
#[derive(Serialize, Deserialize, JsonSchema, Clone, Debug, Default, PartialEq, Eq)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct BudgetPolicy {
    /// Whether owners need a `DevUser` with a budget. Otherwise those who have none may
    /// spend without a limit.
    #[serde(default)]
    pub require_budget: bool,
}

/// Budgets, in the policy of users: which workspaces count.
#[derive(Serialize, Deserialize, JsonSchema, Clone, Debug, Default, PartialEq, Eq)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct UserBudgetPolicy {
    /// The kind of composite that workspaces are.
    #[serde(default)]
    pub kind: WorkspaceKind,
    /// Those in every namespace that name the user as their owner, instead of those in
    /// the user's own namespace only. Each user then hears of every workspace.
    #[serde(default)]
    pub everywhere: bool,
}

/// A kind of composite.
#[derive(Serialize, Deserialize, JsonSchema, Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum WorkspaceKind {
    /// That of claims, of `configuration-gpu-workspaces`.
    #[default]
    GpuDevWorkspace,
    /// The namespaced one, of `configuration-gpu-workspaces-namespaced`.
    GpuDevWorkspaceClaim,
}

/// What became of a user's budget.
#[derive(Serialize, Deserialize, JsonSchema, Clone, Debug, Default, PartialEq)]
#[serde(rename_all = "camelCase")]
pub struct BudgetStatus {
    /// The month, for example `2026-11`.
    pub month: String,
    /// The budget in US dollars.
    #[serde(rename = "monthlyUSD")]
    pub monthly_usd: f64,
    /// US dollars spent, by workspaces that are gone as well.
    pub spent_usd: f64,
    /// US dollars that granted runs may still cost.
    pub reserved_usd: f64,
    /// US dollars spent by workspaces that are gone.
    #[serde(default)]
    pub gone_usd: f64,
    /// Which namespace's workspaces count; unset: every one's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub namespace: Option<String>,
    /// Runs that may be started, by namespace and name of their composite.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub grants: BTreeMap<String, Grant>,
    /// Grants that become valid within seconds.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub offers: BTreeMap<String, Grant>,
    /// What each workspace spent this month.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub workspaces: BTreeMap<String, WorkspaceAccount>,
}

/// A run that may be started.
#[derive(Serialize, Deserialize, JsonSchema, Clone, Debug, PartialEq)]
#[serde(rename_all = "camelCase")]
pub struct Grant {
    /// The request that it answers.
    pub made_at: Time,
    /// US dollars that its workspace may have spent of the budget by then, those of
    /// earlier runs of the month included.
    pub usd: f64,
    /// US dollars per hour at most.
    pub hourly_usd: f64,
    /// Until when.
    pub until: Time,
    /// When it was offered.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub offered_at: Option<Time>,
}

/// What a workspace spent.
#[derive(Serialize, Deserialize, JsonSchema, Clone, Debug, PartialEq)]
#[serde(rename_all = "camelCase")]
pub struct WorkspaceAccount {
    /// The composite's UID.
    pub uid: String,
    /// US dollars this month.
    pub usd: f64,
    /// US dollars per hour of what runs.
    #[serde(default)]
    pub hourly_usd: f64,
    /// Until when that counts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub billed_until: Option<Time>,
}
