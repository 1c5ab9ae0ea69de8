//! `DevUser`: a person with a namespace of their own, and the policy for it.

use std::collections::BTreeMap;

use kube::{CustomResource, KubeSchema};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::cost::{BudgetStatus, UserBudgetPolicy};
use crate::home::HomePolicy;
use crate::policy::BehaviourVersion;
use crate::workspace::PUBLIC_KEY;

/// A person who has workspaces. Its name is the `owner` of their claims.
#[derive(CustomResource, KubeSchema, Serialize, Deserialize, Clone, Debug, Default, PartialEq)]
#[kube(
    group = "platform.acme.io",
    version = "v1alpha1",
    kind = "DevUser",
    plural = "devusers",
    status = "DevUserStatus"
)]
#[serde(rename_all = "camelCase")]
pub struct DevUserSpec {
    /// Who they are to Kubernetes; the User of the same name when empty.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 8))]
    pub subjects: Vec<UserSubject>,
    /// OpenSSH public keys, for every workspace of theirs.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(
        length(max = 10),
        inner(length(max = 1024), regex(pattern = PUBLIC_KEY))
    )]
    pub public_keys: Vec<String>,
    /// The namespace's quota, each entry instead of the policy's.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub quota: BTreeMap<String, String>,
    /// What their workspaces may cost.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub budget: Option<Budget>,
}

/// A subject of Kubernetes' role-based access control.
#[derive(Serialize, Deserialize, JsonSchema, Clone, Debug, PartialEq, Eq)]
#[serde(rename_all = "camelCase")]
pub struct UserSubject {
    /// What it is.
    pub kind: SubjectKind,
    /// Its name, for example that of single sign-on.
    #[schemars(length(min = 1, max = 253))]
    pub name: String,
}

/// What a subject is.
#[derive(Serialize, Deserialize, JsonSchema, Clone, Copy, Debug, PartialEq, Eq)]
pub enum SubjectKind {
    /// A person.
    User,
    /// Several people.
    Group,
}

/// What workspaces may cost.
#[derive(Serialize, Deserialize, JsonSchema, Clone, Debug, PartialEq)]
#[serde(rename_all = "camelCase")]
pub struct Budget {
    /// US dollars in a calendar month, UTC.
    #[serde(rename = "monthlyUSD")]
    #[schemars(range(min = 0.0))]
    pub monthly_usd: f64,
}

/// What came of it.
#[derive(Serialize, Deserialize, JsonSchema, Clone, Debug, Default, PartialEq)]
#[serde(rename_all = "camelCase")]
pub struct DevUserStatus {
    /// The namespace.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub namespace: Option<String>,
    /// Whether its deletion is refused, because homes or workspaces would go with it.
    #[serde(default)]
    pub protected: bool,
    /// The homes in the namespace.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub homes: Vec<String>,
    /// What became of the budget.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub budget: Option<BudgetStatus>,
    /// Why it is not ready, or what keeps it from being deleted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
}

/// What the platform team decides for every `DevUser` of a Composition.
#[derive(KubeSchema, Serialize, Deserialize, Clone, Debug, PartialEq)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct DevUserPolicy {
    /// `workspace.fn.platform.acme.io/v1alpha1`.
    pub api_version: String,
    /// `DevUserPolicy`.
    pub kind: String,
    /// Ignored; some tools want an object's metadata.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "crate::policy::any_object")]
    pub metadata: Option<serde_json::Value>,
    /// The rendering that this Composition is written for.
    pub behaviour_version: BehaviourVersion,
    /// What comes before a user's name in that of their namespace.
    #[serde(default = "default_namespace_prefix")]
    #[schemars(length(min = 1, max = 16), regex(pattern = r"^[a-z0-9][a-z0-9-]*$"))]
    pub namespace_prefix: String,
    /// The label of the Namespace that names its owner; workspaces' policies bind
    /// owners to it (`ownerBinding.namespaceLabel`).
    #[serde(default = "default_owner_label")]
    #[schemars(length(min = 1, max = 317))]
    pub owner_label: String,
    /// Further labels of the Namespace, for example Kueue's opt-in or the level
    /// of Pod Security.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub namespace_labels: BTreeMap<String, String>,
    /// The `ClusterRole` that owners have in their namespace.
    #[serde(default = "default_owner_role")]
    #[schemars(length(min = 1, max = 253))]
    pub owner_role: String,
    /// `spec.hard` of the namespace's `ResourceQuota`; none when empty.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub quota: BTreeMap<String, String>,
    /// What containers get that say nothing: the namespace's `LimitRange`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub container_defaults: Option<ContainerDefaults>,
    /// The namespace's queue. Unset: Kueue is not used.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub queue: Option<UserQueue>,
    /// Which workspaces count towards a user's `spec.budget`. Unset: it is not enforced.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub budgets: Option<UserBudgetPolicy>,
    /// What becomes of homes when a user is deleted.
    #[serde(default)]
    pub home: HomePolicy,
    /// Longest time in seconds until the function looks again.
    #[serde(default = "default_refresh_seconds")]
    #[schemars(range(min = 10, max = 86400))]
    pub refresh_seconds: u32,
}

/// What containers get that say nothing of it themselves.
#[derive(Serialize, Deserialize, JsonSchema, Clone, Debug, PartialEq, Eq)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ContainerDefaults {
    /// What they ask for: `cpu`, `memory`.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub requests: BTreeMap<String, String>,
    /// What they may use at most. A limit of `cpu` here would be one for workspaces,
    /// which say nothing of it, and refuse those that ask for more.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub limits: BTreeMap<String, String>,
}

/// A namespace's queue of Kueue.
#[derive(Serialize, Deserialize, JsonSchema, Clone, Debug, PartialEq, Eq)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct UserQueue {
    /// The `LocalQueue`'s name.
    #[schemars(length(min = 1, max = 63))]
    pub name: String,
    /// The `ClusterQueue` whose quota it draws on.
    #[schemars(length(min = 1, max = 253))]
    pub cluster_queue: String,
}

fn default_namespace_prefix() -> String {
    "dev-".into()
}

fn default_owner_label() -> String {
    "platform.acme.io/owner".into()
}

fn default_owner_role() -> String {
    "gpu-workspaces-owner".into()
}

fn default_refresh_seconds() -> u32 {
    60
}
