//! Markets that instances are bought from.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Which market instances come from.
//
// It has no default of its own: that of a pool is another one than that of a workspace.
#[derive(Serialize, Deserialize, JsonSchema, Clone, Copy, Debug, PartialEq, Eq)]
pub enum CapacityType {
    /// Spot only: cheap, and AWS may take it back.
    Spot,
    /// On demand where no spot offering has capacity.
    SpotWithFallback,
    /// On demand only: AWS does not take it back.
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

impl CapacityType {
    /// A pool's, where it says nothing.
    pub(crate) fn of_pools() -> Self {
        Self::Spot
    }

    /// A workspace's, where claim and policy say nothing.
    pub(crate) fn of_workspaces() -> Self {
        Self::SpotWithFallback
    }

    /// The word in a manifest.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Spot => "Spot",
            Self::SpotWithFallback => "SpotWithFallback",
            Self::OnDemand => "OnDemand",
        }
    }
}
