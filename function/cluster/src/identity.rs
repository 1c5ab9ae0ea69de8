//! The service account of the pods, its permissions, and the SSH host keys that the pods share.

use std::collections::BTreeMap;

use function_workspace::labels::OWNER_LABEL;
use k8s_openapi::Resource as _;
use k8s_openapi::api::core::v1::{Secret, ServiceAccount};
use k8s_openapi::api::rbac::v1::{PolicyRule, Role, RoleBinding, RoleRef, Subject};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;

use crate::names::{Names, WORKSPACE_LABEL};

/// The key of the public host key in the Secret.
pub const PUBLIC_HOST_KEY: &str = "ssh_host_ed25519_key.pub";

/// The annotation of a home with the UID of its owner's `DevUser`. A later `DevUser` with the same
/// name is another person.
pub const OWNER_UID: &str = "platform.acme.io/owner-uid";

/// The metadata of an object of a workspace.
pub fn metadata(names: &Names, name: &str, owner: &str) -> ObjectMeta {
    ObjectMeta {
        name: Some(name.to_owned()),
        namespace: Some(names.namespace.clone()),
        labels: Some(labels(names, owner)),
        ..ObjectMeta::default()
    }
}

/// The labels of a workspace's objects and pods.
pub fn labels(names: &Names, owner: &str) -> BTreeMap<String, String> {
    [
        (WORKSPACE_LABEL.to_owned(), names.name.clone()),
        (OWNER_LABEL.to_owned(), owner.to_owned()),
    ]
    .into()
}

/// The Secret for the host keys. It is composed empty, and the first pod fills it. Its contents are
/// not part of desired state, so Crossplane and this function never hold them.
pub fn host_keys(names: &Names, owner: &str) -> Secret {
    Secret {
        metadata: metadata(names, &names.host_keys(), owner),
        type_: Some("Opaque".to_owned()),
        ..Secret::default()
    }
}

/// The service account of the pods. Only the container that prepares the host keys and the agent
/// get its token, unless the claim asks for it.
pub fn service_account(names: &Names, owner: &str) -> ServiceAccount {
    ServiceAccount {
        metadata: metadata(names, &names.service_account(), owner),
        automount_service_account_token: Some(false),
        ..ServiceAccount::default()
    }
}

/// The permissions of the service account: the host keys, and the Leases of the first `watched`
/// pods.
pub fn role(names: &Names, owner: &str, watched: i32) -> Role {
    let leases: Vec<String> = (0..watched)
        .map(|ordinal| names.activity(ordinal))
        .collect();
    let leases = Some(leases).filter(|leases| !leases.is_empty());
    let leases = leases.map(|leases| owned("coordination.k8s.io", "leases", leases));
    Role {
        metadata: metadata(names, &names.role(), owner),
        rules: Some(
            [owned("", "secrets", vec![names.host_keys()])]
                .into_iter()
                .chain(leases)
                .collect(),
        ),
    }
}

/// Gives the service account its permissions.
pub fn role_binding(names: &Names, owner: &str) -> RoleBinding {
    RoleBinding {
        metadata: metadata(names, &names.role_binding(), owner),
        role_ref: RoleRef {
            api_group: Some(Role::GROUP.to_owned()),
            kind: Role::KIND.to_owned(),
            name: names.role(),
        },
        subjects: Some(vec![Subject {
            kind: ServiceAccount::KIND.to_owned(),
            name: names.service_account(),
            namespace: Some(names.namespace.clone()),
            api_group: None,
        }]),
    }
}

/// The permission to read and patch objects with these names.
fn owned(group: &str, resource: &str, names: Vec<String>) -> PolicyRule {
    PolicyRule {
        api_groups: Some(vec![group.to_owned()]),
        resources: Some(vec![resource.to_owned()]),
        resource_names: Some(names),
        verbs: vec!["get".to_owned(), "patch".to_owned()],
        non_resource_urls: None,
    }
}
