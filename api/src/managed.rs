//! Fields that Crossplane defines for namespaced managed resources: beside `forProvider` in their
//! specs, in provider configurations, and in provider configuration usages.

use kube::KubeSchema;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::condition::{Condition, Conditioned};

/// Annotation of a `SpotPool` or `SpotLease`: its first UID, with a seal of the provider. Resources in
/// EC2 have this UID as a tag. A restored object has another UID and the same annotation, and takes
/// over the resources.
pub const IDENTITY: &str = "gpu.platform.acme.io/identity";

/// Reference to the provider configuration that a managed resource uses.
#[derive(
    Serialize, Deserialize, JsonSchema, Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord,
)]
pub struct ProviderConfigReference {
    /// `ClusterProviderConfig`, or `ProviderConfig` in the resource's own namespace.
    pub kind: ProviderConfigKind,
    /// Name of the provider configuration, for example `default`.
    #[schemars(length(min = 1, max = 253))]
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

/// Kind of a provider configuration.
#[derive(
    Serialize, Deserialize, JsonSchema, Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord,
)]
pub enum ProviderConfigKind {
    /// Managed resources in every namespace may use it.
    ClusterProviderConfig,
    /// Managed resources in its own namespace may use it.
    ProviderConfig,
}

impl ProviderConfigKind {
    /// The name of the kind, as in manifests and labels.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::ClusterProviderConfig => "ClusterProviderConfig",
            Self::ProviderConfig => "ProviderConfig",
        }
    }
}

/// An action that the provider may take on the external resource.
#[derive(
    Serialize, Deserialize, JsonSchema, Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord,
)]
pub enum ManagementAction {
    /// All actions.
    #[serde(rename = "*")]
    All,
    /// Read the external resource into status.
    Observe,
    /// Create the external resource if it does not exist.
    Create,
    /// Update the external resource to match the spec.
    Update,
    /// Delete the external resource with the managed resource.
    Delete,
    /// Fill unset fields of the spec from the external resource.
    LateInitialize,
}

/// The default of `managementPolicies`.
pub fn all_actions() -> Vec<ManagementAction> {
    vec![ManagementAction::All]
}

/// Reference to the connection Secret, in the resource's own namespace.
#[derive(Serialize, Deserialize, JsonSchema, Clone, Debug, PartialEq, Eq)]
pub struct LocalSecretReference {
    /// Name of the Secret in the resource's own namespace.
    #[schemars(length(min = 1))]
    pub name: String,
}

/// Shows how many resources use the configuration, and whether its deletion waits for them.
#[derive(KubeSchema, Serialize, Deserialize, Clone, Debug, Default, PartialEq)]
pub struct ProviderConfigStatus {
    /// Number of managed resources that use this configuration. Its deletion waits until the number
    /// is 0.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub users: Option<i64>,
    /// Condition `Terminating` while the deletion waits for users, and `Permitted=False` while the
    /// configuration asks for what the provider does not do for it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[x_kube(merge_strategy = ListMerge::Map(vec!["type".into()]))]
    pub conditions: Vec<Condition>,
}

impl Conditioned for ProviderConfigStatus {
    fn conditions(&self) -> &[Condition] {
        &self.conditions
    }
}

/// Reference to a resource in the same namespace.
#[derive(Serialize, Deserialize, JsonSchema, Clone, Debug, PartialEq, Eq)]
#[serde(rename_all = "camelCase")]
pub struct ResourceReference {
    /// API version of the resource, for example `gpu.platform.acme.io/v1alpha1`.
    pub api_version: String,
    /// Kind of the resource, for example `SpotPool`.
    pub kind: String,
    /// Name of the resource in the same namespace.
    pub name: String,
}
