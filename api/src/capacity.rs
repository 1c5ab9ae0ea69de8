//! Markets of EC2 capacity: spot and on-demand.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Market from which instances are taken.
#[derive(Serialize, Deserialize, JsonSchema, Clone, Copy, Debug, Default, PartialEq, Eq)]
// kube's `OptionalEnum` replaces the description of an optional field with that of its type.
#[schemars(description = "")]
pub enum CapacityType {
    /// Spot instances only. They are cheap, and AWS may take them back.
    Spot,
    /// Spot instances, and on-demand instances while no spot capacity is available.
    #[default]
    SpotWithFallback,
    /// On-demand instances only. AWS does not take them back.
    OnDemand,
}

/// Market of an instance.
#[derive(Serialize, Deserialize, JsonSchema, Clone, Copy, Debug, PartialEq, Eq)]
// kube's `OptionalEnum` replaces the description of an optional field with that of its type.
#[schemars(description = "")]
pub enum InstanceCapacityType {
    /// The spot market.
    Spot,
    /// On-demand capacity.
    OnDemand,
}

impl CapacityType {
    /// The value as manifests spell it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Spot => "Spot",
            Self::SpotWithFallback => "SpotWithFallback",
            Self::OnDemand => "OnDemand",
        }
    }
}
