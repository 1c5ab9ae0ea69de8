//! Markets that instances are bought from.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Which market a workspace's instance comes from.
#[derive(Serialize, Deserialize, JsonSchema, Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum WorkspaceCapacityType {
    /// Spot only: cheap, and AWS may take it back.
    Spot,
    /// On demand where no spot offering has capacity.
    #[default]
    SpotWithFallback,
    /// On demand only: AWS does not take it back.
    OnDemand,
}

/// Which market a pool buys from.
#[derive(Serialize, Deserialize, JsonSchema, Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum PoolCapacityType {
    /// Spot instances only.
    #[default]
    Spot,
    /// On-demand instances when no spot offering has capacity.
    SpotWithFallback,
    /// On-demand instances only.
    OnDemand,
}

/// The market an instance came from.
#[derive(Serialize, Deserialize, JsonSchema, Clone, Copy, Debug, PartialEq, Eq)]
pub enum InstanceCapacityType {
    /// Spot market.
    Spot,
    /// On demand.
    OnDemand,
}
