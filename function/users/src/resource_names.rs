//! Composition resource names of a `DevUser`.

/// The user's Namespace.
pub const NAMESPACE: &str = "user-namespace";
/// The `RoleBinding` of the user in that Namespace.
pub const OWNER_ROLE_BINDING: &str = "user-owner-role-binding";
/// The `ServiceAccount` in that Namespace that the bastion impersonates.
pub const OWNER_ACCOUNT: &str = "user-owner-service-account";
/// The `RoleBinding` of that account.
pub const BASTION_ROLE_BINDING: &str = "user-bastion-role-binding";
/// The `ResourceQuota` of the Namespace.
pub const QUOTA: &str = "user-quota";
/// The `LimitRange` of the Namespace: resources of containers that name none.
pub const LIMITS: &str = "user-limits";
/// The `LocalQueue` of the Namespace, for Kueue.
pub const LOCAL_QUEUE: &str = "user-local-queue";
/// The `NetworkPolicy` of the Namespace, which denies traffic from other namespaces.
pub const DEFAULT_DENY: &str = "user-default-deny";
/// The `ClusterUsage` that refuses the deletion of a user who has homes.
pub const PROTECTION: &str = "user-protection";

/// The `ConfigMap` that tells the user what the platform knows about them.
pub const ACCOUNT: &str = "user-account";

const NAMES: [&str; 10] = [
    ACCOUNT,
    NAMESPACE,
    OWNER_ROLE_BINDING,
    OWNER_ACCOUNT,
    BASTION_ROLE_BINDING,
    QUOTA,
    LIMITS,
    LOCAL_QUEUE,
    DEFAULT_DENY,
    PROTECTION,
];

/// Whether a composed resource with this composition resource name belongs to a `DevUser`.
pub fn owns(name: &str) -> bool {
    NAMES.contains(&name)
}
