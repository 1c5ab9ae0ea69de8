//! Who the pods are to the API server, and the host keys that they share.

use function_workspace::labels::OWNER_LABEL;
use serde_json::{Value, json};

use crate::names::{Names, WORKSPACE_LABEL};

/// The Secret's entry that clients may know.
pub const PUBLIC_HOST_KEY: &str = "ssh_host_ed25519_key.pub";

/// Metadata of a workspace's object.
pub fn metadata(names: &Names, name: &str, owner: &str) -> Value {
    json!({
        "name": name,
        "namespace": names.namespace,
        "labels": {(WORKSPACE_LABEL): names.name, (OWNER_LABEL): owner},
    })
}

/// The Secret for the host keys, empty: the first pod fills it. Its contents are no
/// part of desired state, so that nobody but the API server and the pods has them.
pub fn host_keys(names: &Names, owner: &str) -> Value {
    json!({
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": metadata(names, &names.host_keys(), owner),
        "type": "Opaque",
    })
}

/// The pods' account. Its token reaches the first container only, unless the claim
/// asks for it.
pub fn service_account(names: &Names, owner: &str) -> Value {
    json!({
        "apiVersion": "v1",
        "kind": "ServiceAccount",
        "metadata": metadata(names, &names.name, owner),
        "automountServiceAccountToken": false,
    })
}

/// The rights of the pods' account: the host keys, and the Leases of `watched` nodes.
pub fn role(names: &Names, owner: &str, watched: i32) -> Value {
    let mut role = json!({
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "Role",
        "metadata": metadata(names, &names.name, owner),
        "rules": [{
            "apiGroups": [""],
            "resources": ["secrets"],
            "resourceNames": [names.host_keys()],
            "verbs": ["get", "patch"],
        }],
    });
    let leases: Vec<String> = (0..watched).map(|node| names.activity(node)).collect();
    if let (false, Some(rules)) = (leases.is_empty(), role["rules"].as_array_mut()) {
        rules.push(json!({
            "apiGroups": ["coordination.k8s.io"],
            "resources": ["leases"],
            "resourceNames": leases,
            "verbs": ["get", "patch"],
        }));
    }
    role
}

/// Gives the account its right.
pub fn role_binding(names: &Names, owner: &str) -> Value {
    json!({
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "RoleBinding",
        "metadata": metadata(names, &names.name, owner),
        "roleRef": {
            "apiGroup": "rbac.authorization.k8s.io",
            "kind": "Role",
            "name": names.name,
        },
        "subjects": [{
            "kind": "ServiceAccount",
            "name": names.name,
            "namespace": names.namespace,
        }],
    })
}
