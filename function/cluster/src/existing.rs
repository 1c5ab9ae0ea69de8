//! Objects of other people with the names that a workspace needs.
//!
//! Crossplane applies composed objects by server-side apply with force. It refuses an object that
//! another object controls, but it changes every other existing object, and Kubernetes deletes that
//! object with the composite. The function therefore asks for such objects first, and composes
//! nothing over an object without the workspace's label.

use function_runtime::object::ObservedObject;
use function_runtime::outcome::{Problem, Refusal};
use function_runtime::requirement::{Requirement, Selector};
use k8s_openapi::Resource;
use k8s_openapi::api::apps::v1::StatefulSet;
use k8s_openapi::api::core::v1::{ConfigMap, PersistentVolumeClaim, Service, ServiceAccount};
use k8s_openapi::api::networking::v1::NetworkPolicy;
use k8s_openapi::api::rbac::v1::{Role, RoleBinding};
use thiserror::Error;

use crate::names::{Names, WORKSPACE_LABEL};
use crate::resource_names;
use crate::seen::Seen;

/// An object of a workspace whose name the claim decides.
struct Named {
    requirement: String,
    api_version: &'static str,
    kind: &'static str,
    name: String,
}

impl Named {
    fn new<K: Resource>(name: String) -> Self {
        Self {
            requirement: format!("existing-{}-{name}", K::KIND),
            api_version: K::API_VERSION,
            kind: K::KIND,
            name,
        }
    }
}

/// Asks Crossplane for the objects that are not composed yet, and for the homes of `nodes` pods
/// before these start.
///
/// While Crossplane has not answered, nothing is refused: Crossplane calls again until the
/// requirements no longer change, and uses the last answer only.
pub fn requirements(names: &Names, seen: Seen<'_>, nodes: i32) -> Vec<Requirement> {
    let requirement = |named: Named| Requirement {
        name: named.requirement,
        api_version: named.api_version,
        kind: named.kind,
        selector: Selector::NamedIn {
            namespace: names.namespace.clone(),
            name: named.name,
        },
    };
    named(names, seen, nodes).map(requirement).collect()
}

/// Refuses a claim whose objects would take the place of an object of another person.
pub fn check(names: &Names, seen: Seen<'_>, nodes: i32) -> Result<(), Refusal> {
    let is_strange = |named: &Named| {
        let mut found = seen.existing(&named.requirement);
        let label = |object| ObservedObject::new(object).label(WORKSPACE_LABEL);
        found.any(|object| label(object) != Some(&names.name))
    };
    let strange = named(names, seen, nodes).find(is_strange);
    let Some(Named { kind, name, .. }) = strange else {
        return Ok(());
    };
    let namespace = names.namespace.clone();
    let workspace = names.name.clone();
    Err(Refusal::from(NameTaken {
        kind,
        name,
        namespace,
        workspace,
    }))
}

fn named(names: &Names, seen: Seen<'_>, nodes: i32) -> impl Iterator<Item = Named> {
    let objects = of_workspace(names, seen).into_iter();
    objects.chain(homes(names, seen, nodes))
}

/// The objects that are not composed yet. Before behaviour version v3 the claim decides the names
/// of all objects. The Secret with the host keys is left out, because the function would get the
/// contents of another person's Secret.
fn of_workspace(names: &Names, seen: Seen<'_>) -> Vec<Named> {
    use resource_names as key;
    let mut all = vec![
        (key::SERVICE, Named::new::<Service>(names.name.clone())),
        (
            key::STATEFUL_SET,
            Named::new::<StatefulSet>(names.name.clone()),
        ),
    ];
    if !names.are_unique() {
        let (account, binding) = (names.service_account(), names.role_binding());
        all.extend([
            (key::SERVICE_ACCOUNT, Named::new::<ServiceAccount>(account)),
            (key::ROLE, Named::new::<Role>(names.role())),
            (key::ROLE_BINDING, Named::new::<RoleBinding>(binding)),
            (
                key::NETWORK_POLICY,
                Named::new::<NetworkPolicy>(names.network_policy()),
            ),
            (key::FILES, Named::new::<ConfigMap>(names.files())),
            (
                key::AUTHORIZED_KEYS,
                Named::new::<ConfigMap>(names.authorized_keys()),
            ),
        ]);
    }
    all.retain(|(key, _)| !seen.observed.contains_key(*key));
    all.into_iter().map(|(_, named)| named).collect()
}

/// The homes of pods that do not run yet. A StatefulSet mounts a `PersistentVolumeClaim` by its
/// name, also one without the workspace's label.
fn homes(names: &Names, seen: Seen<'_>, nodes: i32) -> Vec<Named> {
    let runs = seen.stateful_set().is_some_and(|set| set.replicas() > 0);
    let nodes = if runs { 0 } else { nodes };
    let home = |ordinal| Named::new::<PersistentVolumeClaim>(names.home(ordinal));
    (0..nodes).map(home).collect()
}

/// An object of another person has the name of an object of the workspace.
#[derive(Clone, Debug, Error)]
#[error(
    "metadata.name: {kind} {name} in namespace {namespace} is not of this workspace, because its \
     label {WORKSPACE_LABEL} is not {workspace}; use another name for the claim, or delete that \
     {kind}"
)]
struct NameTaken {
    kind: &'static str,
    name: String,
    namespace: String,
    workspace: String,
}

impl Problem for NameTaken {
    fn reason(&self) -> &'static str {
        "NameTaken"
    }

    fn field(&self) -> Option<&'static str> {
        Some("metadata.name")
    }
}
