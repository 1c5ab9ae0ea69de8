//! What every managed resource's spec carries beside `forProvider`, and what
//! every provider configuration and its usages carry, as Crossplane defines it
//! for namespaced managed resources.

use kube::KubeSchema;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::condition::{Condition, Conditioned};

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

/// Names the Secret, in the resource's namespace, that tells how the external
/// resource is reached.
#[derive(Serialize, Deserialize, JsonSchema, Clone, Debug, PartialEq, Eq)]
pub struct LocalSecretReference {
    /// The Secret's name.
    #[schemars(length(min = 1))]
    pub name: String,
}

/// Who uses the configuration.
#[derive(KubeSchema, Serialize, Deserialize, Clone, Debug, Default, PartialEq)]
pub struct ProviderConfigStatus {
    /// Managed resources that use this configuration. While there are any, its
    /// deletion waits.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub users: Option<i64>,
    /// `Terminating` while a deletion waits for users.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[x_kube(merge_strategy = ListMerge::Map(vec!["type".into()]))]
    pub conditions: Vec<Condition>,
}

impl Conditioned for ProviderConfigStatus {
    fn conditions(&self) -> &[Condition] {
        &self.conditions
    }
}

/// A resource of the usage's namespace.
#[derive(Serialize, Deserialize, JsonSchema, Clone, Debug, PartialEq, Eq)]
#[serde(rename_all = "camelCase")]
pub struct ResourceReference {
    /// Its API version.
    pub api_version: String,
    /// Its kind.
    pub kind: String,
    /// Its name.
    pub name: String,
}
