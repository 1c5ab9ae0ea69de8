//! Composition resource names of a workspace in the cluster.

use function_runtime::resource_names::number;

/// The `StatefulSet` of the workspace's pods.
pub const STATEFUL_SET: &str = "cluster-stateful-set";
/// The headless Service of the pods.
pub const SERVICE: &str = "cluster-service";
/// The `NetworkPolicy` of the pods.
pub const NETWORK_POLICY: &str = "cluster-network-policy";
/// The `ServiceAccount` of the pods.
pub const SERVICE_ACCOUNT: &str = "cluster-service-account";
/// The Role of the `ServiceAccount`.
pub const ROLE: &str = "cluster-role";
/// The `RoleBinding` of the `ServiceAccount` to the Role.
pub const ROLE_BINDING: &str = "cluster-role-binding";
/// The Secret with the pods' SSH host keys.
pub const HOST_KEYS: &str = "cluster-host-keys";
/// The `ConfigMap` with the programs that the pods run.
pub const FILES: &str = "cluster-files";
/// The `ConfigMap` with the owner's SSH keys.
pub const AUTHORIZED_KEYS: &str = "cluster-authorized-keys";
/// Prefix of the `PersistentVolumeClaim` of a pod's home, followed by the pod's ordinal. Homes are
/// composed only if they are deleted with the claim.
pub const POD_HOME_PREFIX: &str = "cluster-home-";
/// Prefix of the Lease to which the agent of a pod reports, followed by the pod's ordinal.
pub const POD_ACTIVITY_PREFIX: &str = "cluster-activity-";

const NAMES: [&str; 9] = [
    STATEFUL_SET,
    SERVICE,
    NETWORK_POLICY,
    SERVICE_ACCOUNT,
    ROLE,
    ROLE_BINDING,
    HOST_KEYS,
    FILES,
    AUTHORIZED_KEYS,
];

/// Whether a composed resource with this composition resource name belongs to a workspace in the
/// cluster.
pub fn owns(name: &str) -> bool {
    NAMES.contains(&name)
        || home_of_pod(name).is_some()
        || number(POD_ACTIVITY_PREFIX, name).is_some()
}

/// The composition resource name of a pod's home.
pub fn pod_home(ordinal: i32) -> String {
    format!("{POD_HOME_PREFIX}{ordinal}")
}

/// The composition resource name of a pod's Lease.
pub fn pod_activity(ordinal: i32) -> String {
    format!("{POD_ACTIVITY_PREFIX}{ordinal}")
}

/// The ordinal of the pod whose home has this composition resource name.
pub fn home_of_pod(name: &str) -> Option<i32> {
    number(POD_HOME_PREFIX, name)
}
