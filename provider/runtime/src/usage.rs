//! Records which managed resource uses which provider configuration.

use api::managed::ProviderConfigReference;
use api::provider_config::{ProviderConfigUsage, ProviderConfigUsageSpec, ResourceReference};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, OwnerReference};
use kube::api::{Api, Patch, PatchParams};
use kube::{Client, Resource};

/// Label with the configuration's name.
pub const CONFIG_LABEL: &str = "crossplane.io/provider-config";
/// Label with the configuration's kind.
pub const CONFIG_KIND_LABEL: &str = "crossplane.io/provider-config-kind";

/// Writes the usage of `resource`, named by its UID and owned by it, before the
/// configuration's credentials are read.
pub async fn track<K>(
    client: &Client,
    manager: &str,
    resource: &K,
    reference: &ProviderConfigReference,
) -> kube::Result<()>
where
    K: Resource<DynamicType = ()>,
{
    let Some(owner) = resource.controller_owner_ref(&()) else {
        return Ok(());
    };
    let namespace = resource.meta().namespace.clone().unwrap_or_default();
    let usage = usage_of(owner, &namespace, reference);
    let name = usage.metadata.name.clone().unwrap_or_default();
    let api: Api<ProviderConfigUsage> = Api::namespaced(client.clone(), &namespace);
    api.patch(
        &name,
        &PatchParams::apply(manager).force(),
        &Patch::Apply(&usage),
    )
    .await?;
    Ok(())
}

fn usage_of(
    owner: OwnerReference,
    namespace: &str,
    reference: &ProviderConfigReference,
) -> ProviderConfigUsage {
    let labels = [
        (CONFIG_LABEL.to_owned(), reference.name.clone()),
        (
            CONFIG_KIND_LABEL.to_owned(),
            reference.kind.as_str().to_owned(),
        ),
    ];
    ProviderConfigUsage {
        metadata: ObjectMeta {
            name: Some(owner.uid.clone()),
            namespace: Some(namespace.to_owned()),
            labels: Some(labels.into()),
            owner_references: Some(vec![owner.clone()]),
            ..ObjectMeta::default()
        },
        spec: ProviderConfigUsageSpec {
            provider_config_ref: reference.clone(),
            resource_ref: ResourceReference {
                api_version: owner.api_version,
                kind: owner.kind,
                name: owner.name,
            },
        },
    }
}
