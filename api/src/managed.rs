//! What every managed resource's spec carries beside `forProvider`, as
//! Crossplane defines it for namespaced managed resources.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Which configuration, and so which credentials, a managed resource uses.
#[derive(
    Serialize, Deserialize, JsonSchema, Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord,
)]
pub struct ProviderConfigReference {
    /// `ClusterProviderConfig`, or `ProviderConfig` of the resource's namespace.
    pub kind: ProviderConfigKind,
    /// The configuration's name.
    #[schemars(length(min = 1))]
    pub name: String,
}

impl Default for ProviderConfigReference {
    fn default() -> Self {
        Self {
            kind: ProviderConfigKind::ClusterProviderConfig,
            name: "default".into(),
        }
    }
}

/// The two kinds of provider configuration.
#[derive(
    Serialize, Deserialize, JsonSchema, Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord,
)]
pub enum ProviderConfigKind {
    /// Usable from every namespace.
    ClusterProviderConfig,
    /// Usable from its own namespace.
    ProviderConfig,
}

impl ProviderConfigKind {
    /// The kind's name in manifests and labels.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::ClusterProviderConfig => "ClusterProviderConfig",
            Self::ProviderConfig => "ProviderConfig",
        }
    }
}

/// One thing that Crossplane may do to the external resource.
#[derive(
    Serialize, Deserialize, JsonSchema, Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord,
)]
pub enum ManagementAction {
    /// All of them.
    #[serde(rename = "*")]
    All,
    /// Read it into status.
    Observe,
    /// Create it when it is missing.
    Create,
    /// Bring it in line with the spec.
    Update,
    /// Delete it with the managed resource.
    Delete,
    /// Fill unset spec fields from it.
    LateInitialize,
}

/// The default of `managementPolicies`.
pub fn all_actions() -> Vec<ManagementAction> {
    vec![ManagementAction::All]
}
