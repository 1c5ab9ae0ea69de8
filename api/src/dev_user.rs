//! `DevUser`: a person with a namespace of their own, and the policy for users.

use std::collections::BTreeMap;

use kube::{CustomResource, KubeSchema};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::cost::{BudgetStatus, UserBudgetPolicy};
use crate::duration::Duration;
use crate::home::HomePolicy;
use crate::patterns::{NAMESPACE_PREFIX, PUBLIC_KEY};
use crate::policy::BehaviourVersion;

/// Describes a person who has workspaces. The name of the `DevUser` is the `owner` of their claims.
#[derive(CustomResource, KubeSchema, Serialize, Deserialize, Clone, Debug, Default, PartialEq)]
#[kube(
    group = "platform.acme.io",
    version = "v1alpha1",
    kind = "DevUser",
    doc = "Gives one person a namespace of their own, with SSH keys, a quota and a budget for \
           workspaces.",
    plural = "devusers",
    status = "DevUserStatus"
)]
#[serde(rename_all = "camelCase")]
pub struct DevUserSpec {
    /// Subjects in Kubernetes' access control that get the owner's permissions. Default: the User
    /// with the name of the `DevUser`. They get none where the policy says `access: Bastion`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 8))]
    pub subjects: Vec<UserSubject>,
    /// OpenSSH public keys that may log in to all workspaces of this person.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 10), inner(length(max = 1024), regex(pattern = PUBLIC_KEY)))]
    pub public_keys: Vec<String>,
    /// Quota of the namespace (`spec.hard` of a `ResourceQuota`). An entry here replaces the same
    /// entry of the policy.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub quota: BTreeMap<String, String>,
    /// Budget for the workspaces of this person. Default: no limit, unless the policy requires a
    /// budget.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub budget: Option<Budget>,
    /// Whether the person has no access: no permission in the namespace and no key in a workspace.
    /// Nothing starts for them. Workspaces that run go on until their limits. Default: `false`.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub suspended: bool,
}

/// What is wrong with a subject of Kubernetes itself.
pub const SUBJECT_RULE: &str = "must be a person, a group of persons or a service account: names \
                                that begin with system: are Kubernetes' own";

/// A subject of Kubernetes' role-based access control.
#[derive(Serialize, Deserialize, KubeSchema, Clone, Debug, PartialEq, Eq)]
#[serde(rename_all = "camelCase")]
#[x_kube(validation = Rule::new(
    "!self.name.startsWith('system:') || \
     (self.kind == 'User' && self.name.startsWith('system:serviceaccount:'))"
).message(SUBJECT_RULE))]
pub struct UserSubject {
    /// Kind of the subject: `User` for one user, `Group` for all members of a group.
    pub kind: SubjectKind,
    /// Name of the subject, for example the user name from single sign-on.
    #[schemars(length(min = 1, max = 253))]
    pub name: String,
}

impl UserSubject {
    /// Whether the subject is not one of Kubernetes' own, such as the group of all users who are
    /// logged in.
    pub fn is_person(&self) -> bool {
        let is_account =
            self.kind == SubjectKind::User && self.name.starts_with("system:serviceaccount:");
        is_account || !self.name.starts_with("system:")
    }
}

/// Kind of a subject.
#[derive(Serialize, Deserialize, JsonSchema, Clone, Copy, Debug, PartialEq, Eq)]
pub enum SubjectKind {
    /// One user.
    User,
    /// A group of users.
    Group,
}

/// Budget for workspaces.
#[derive(Serialize, Deserialize, JsonSchema, Clone, Debug, PartialEq)]
#[serde(rename_all = "camelCase")]
pub struct Budget {
    /// US dollars that the person's workspaces may cost in each calendar month (UTC).
    #[schemars(range(min = 0.0))]
    pub monthly_usd: f64,
    /// Deleted homes, by their names in `status.budget.keptHomes`. The platform team adds a home after
    /// it has deleted the home. The function then stops counting the home in the budget.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 256), inner(length(min = 1, max = 317)))]
    pub deleted_homes: Vec<String>,
}

/// Shows the person's namespace, homes and budget.
#[derive(Serialize, Deserialize, JsonSchema, Clone, Debug, Default, PartialEq)]
#[serde(rename_all = "camelCase")]
pub struct DevUserStatus {
    /// Name of the namespace that belongs to the person.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub namespace: Option<String>,
    /// Whether Crossplane refuses to delete the `DevUser`, because the homes in the namespace would
    /// be deleted too.
    #[serde(default)]
    pub protected: bool,
    /// Names of the homes (`PersistentVolumeClaim`s) in the namespace.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub homes: Vec<String>,
    /// State of the budget: spent, reserved and granted amounts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub budget: Option<BudgetStatus>,
    /// Whether the person is suspended, so that no permission and no key of theirs counts.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub suspended: bool,
    /// Why the `DevUser` is not ready, that it is suspended, or why it cannot be deleted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
}

/// Sets the platform team's rules for every `DevUser` of a Composition.
#[derive(KubeSchema, Serialize, Deserialize, Clone, Debug, PartialEq)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct DevUserPolicy {
    /// API version of the policy. It is always `workspace.fn.platform.acme.io/v1alpha1`.
    pub api_version: String,
    /// Kind of the policy. It is always `DevUserPolicy`.
    pub kind: String,
    /// Ignored. It is allowed because some tools require metadata.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "crate::policy::any_object")]
    pub metadata: Option<serde_json::Value>,
    /// Version of the function's behaviour that this Composition uses.
    pub behaviour_version: BehaviourVersion,
    /// Prefix of the namespace's name. The user's name follows it.
    #[serde(default = "default_namespace_prefix")]
    #[schemars(length(min = 1, max = 16), regex(pattern = NAMESPACE_PREFIX))]
    pub namespace_prefix: String,
    /// Label of the Namespace whose value is the owner. Use the same label in the policy of
    /// workspaces (`ownerBinding.namespaceLabel`).
    #[serde(default = "default_owner_label")]
    #[schemars(length(min = 1, max = 317))]
    pub owner_label: String,
    /// Additional labels of the Namespace, for example to enable Kueue or to set the level of Pod
    /// Security.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub namespace_labels: BTreeMap<String, String>,
    /// `ClusterRole` that users get in their own namespace. The platform team installs it.
    #[serde(default = "default_owner_role")]
    #[schemars(length(min = 1, max = 253))]
    pub owner_role: String,
    /// Who gets permissions in the namespace: the user, or the bastion for the user. Default:
    /// `Direct`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub access: Option<UserAccess>,
    /// `ClusterRole` that the bastion gets in each user's namespace with `access: Bastion`. The
    /// platform team installs it.
    #[serde(default = "default_bastion_role")]
    #[schemars(length(min = 1, max = 253))]
    pub bastion_role: String,
    /// Quota of each namespace (`spec.hard` of a `ResourceQuota`). Default: no quota. From v3 on, a
    /// line that counts custom resources is written once their definition is a minute old, because
    /// Kubernetes refuses objects of a kind that it does not count yet.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub quota: BTreeMap<String, String>,
    /// Default resources of containers that name none (a `LimitRange` in the namespace).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub container_defaults: Option<ContainerDefaults>,
    /// Kueue queue of the namespace. Default: Kueue is not used.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub queue: Option<UserQueue>,
    /// Which workspaces count towards `spec.budget` of a user. Default: budgets are not enforced.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub budgets: Option<UserBudgetPolicy>,
    /// What happens to homes when a user is deleted.
    #[serde(default)]
    pub home: HomePolicy,
    /// Longest time until the next reconcile, from `10s` to `1d`.
    #[serde(default = "default_refresh_interval")]
    pub refresh_interval: Duration,
}

/// Who gets permissions in a user's namespace.
#[derive(Serialize, Deserialize, JsonSchema, Clone, Copy, Debug, Default, PartialEq, Eq)]
// kube's `OptionalEnum` replaces the description of an optional field with that of its type.
#[schemars(description = "")]
pub enum UserAccess {
    /// The subjects of the `DevUser`. They use the API server themselves.
    #[default]
    Direct,
    /// The account `gpu-workspaces.owner` in the namespace, which the bastion impersonates.
    /// The subjects of the `DevUser` get nothing.
    Bastion,
}

/// Default resources of containers that name none.
#[derive(Serialize, Deserialize, JsonSchema, Clone, Debug, PartialEq, Eq)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ContainerDefaults {
    /// Default requests, for example of `cpu` and `memory`.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub requests: BTreeMap<String, String>,
    /// Default limits. Do not set `cpu`: workspaces set no CPU limit, so the default would limit
    /// them, and Kubernetes would refuse pods that request more.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub limits: BTreeMap<String, String>,
}

/// The Kueue queue of a namespace.
#[derive(Serialize, Deserialize, JsonSchema, Clone, Debug, PartialEq, Eq)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct UserQueue {
    /// Name of the LocalQueue that the function creates in the namespace.
    #[schemars(length(min = 1, max = 63))]
    pub name: String,
    /// Name of the ClusterQueue that provides the quota.
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

fn default_bastion_role() -> String {
    "gpu-workspaces-owner-by-bastion".into()
}

fn default_refresh_interval() -> Duration {
    Duration::of_minutes(1)
}
