//! Records which managed resource uses which provider configuration.

use api::managed::ProviderConfigReference;
use k8s_openapi::NamespaceResourceScope;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;
use kube::api::{Api, Patch, PatchParams};
use kube::{Client, Resource};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

/// Label with the configuration's name.
pub const CONFIG_LABEL: &str = "crossplane.io/provider-config";
/// Label with the configuration's kind.
pub const CONFIG_KIND_LABEL: &str = "crossplane.io/provider-config-kind";

/// Writes the usage of `resource`, named by its UID and owned by it, before the
/// configuration's credentials are read. `U` is the provider's kind of usage.
///
/// The usage does not block the deletion of its owner: garbage collection in the
/// foreground would take it away first, and with it the configuration, while the
/// external resource still has to be deleted.
pub async fn track<U, K>(
    client: &Client,
    manager: &str,
    resource: &K,
    reference: &ProviderConfigReference,
) -> kube::Result<()>
where
    U: Resource<DynamicType = (), Scope = NamespaceResourceScope>
        + Clone
        + DeserializeOwned
        + std::fmt::Debug,
    K: Resource<DynamicType = ()>,
{
    let Some(owner) = resource.controller_owner_ref(&()) else {
        return Ok(());
    };
    let namespace = resource.meta().namespace.clone().unwrap_or_default();
    let api: Api<U> = Api::namespaced(client.clone(), &namespace);
    let usage = usage_of::<U>(&owner, &namespace, reference);
    let apply = PatchParams::apply(manager).force();
    api.patch(&owner.uid, &apply, &Patch::Apply(&usage)).await?;
    Ok(())
}

fn usage_of<U>(
    owner: &OwnerReference,
    namespace: &str,
    reference: &ProviderConfigReference,
) -> Value
where
    U: Resource<DynamicType = ()>,
{
    json!({
        "apiVersion": U::api_version(&()),
        "kind": U::kind(&()),
        "metadata": {
            "name": owner.uid,
            "namespace": namespace,
            "labels": {
                CONFIG_LABEL: reference.name,
                CONFIG_KIND_LABEL: reference.kind.as_str(),
            },
            "ownerReferences": [owner],
        },
        "spec": {
            "providerConfigRef": reference,
            "resourceRef": {
                "apiVersion": owner.api_version,
                "kind": owner.kind,
                "name": owner.name,
            },
        },
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{ApiServer, Use, thing};

    #[tokio::test]
    async fn a_configuration_is_in_use_before_its_credentials_are_read() {
        let (server, owner) = (ApiServer::default(), thing("a", &[]));
        let reference = ProviderConfigReference::default();
        track::<Use, _>(&server.client(), "provider", &owner, &reference)
            .await
            .unwrap();
        let path = "/apis/example.org/v1/namespaces/default/uses/uid-of-a";
        let usage = server.object(path).expect("a usage named by the UID");
        let labels = &usage["metadata"]["labels"];
        assert_eq!(labels[CONFIG_LABEL], "default");
        assert_eq!(labels[CONFIG_KIND_LABEL], "ClusterProviderConfig");
        let owner = &usage["metadata"]["ownerReferences"][0];
        assert_eq!(owner["controller"], true);
        assert!(owner["blockOwnerDeletion"].is_null());
    }
}
