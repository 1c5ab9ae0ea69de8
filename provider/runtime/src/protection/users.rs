//! Counts what uses a configuration.

use std::fmt::Debug;

use kube::api::{Api, ApiResource, DynamicObject, ListParams, PartialObjectMeta};
use kube::{Client, Resource, ResourceExt as _};
use serde::de::DeserializeOwned;

use crate::finalizer;
use crate::lists::Pages;
use crate::usage::{CONFIG_KIND_LABEL, CONFIG_LABEL};

/// The number of resources that name the configuration and still have to be cleaned up.
/// `managed` has the kinds of resources.
pub(super) async fn references<C>(
    config: &C,
    client: &Client,
    managed: &[ApiResource],
) -> kube::Result<i64>
where
    C: Resource<DynamicType = ()>,
{
    let mut references = 0;
    let is_user = |resource: &&DynamicObject| {
        let reference = &resource.data["spec"]["providerConfigRef"];
        reference["name"] == config.name_any()
            && reference["kind"] == *C::kind(&())
            && finalizer::is_present(&resource.metadata, finalizer::MANAGED)
    };
    for kind in managed {
        let resources = visible_to(config, client, kind);
        let mut pages = Pages::of(ListParams::default());
        while let Some(params) = pages.next() {
            let listed = match resources.list(params).await {
                // A kind that is inactive has no resources.
                Err(kube::Error::Api(status)) if status.is_not_found() => break,
                listed => listed?,
            };
            pages.read(listed.metadata);
            references += listed.items.iter().filter(is_user).count();
        }
    }
    Ok(i64::try_from(references).unwrap_or(i64::MAX))
}

/// The number of usages that have a controlling owner. A usage that lost its owner, for example by
/// a restored backup, is written again when its resource connects.
pub(super) async fn users<C, U>(config: &C, client: &Client) -> kube::Result<i64>
where
    C: Resource<DynamicType = ()>,
    U: Resource<DynamicType = ()> + Clone + DeserializeOwned + Debug,
{
    let usages = visible_to(config, client, &ApiResource::erase::<U>(&()));
    let labels = format!(
        "{CONFIG_LABEL}={},{CONFIG_KIND_LABEL}={}",
        config.name_any(),
        C::kind(&())
    );
    let is_owned = |usage: &&PartialObjectMeta<DynamicObject>| {
        let owners = usage.metadata.owner_references.iter().flatten();
        owners.into_iter().any(|o| o.controller == Some(true))
    };
    let mut users = 0;
    let mut pages = Pages::of(ListParams::default().labels(&labels));
    while let Some(params) = pages.next() {
        let listed = usages.list_metadata(params).await?;
        pages.read(listed.metadata);
        users += listed.items.iter().filter(is_owned).count();
    }
    Ok(i64::try_from(users).unwrap_or(i64::MAX))
}

/// The objects of a kind in the configuration's namespace, or in all of them.
pub(super) fn visible_to<C>(config: &C, client: &Client, kind: &ApiResource) -> Api<DynamicObject>
where
    C: Resource<DynamicType = ()>,
{
    match config.meta().namespace.as_deref() {
        Some(namespace) => Api::namespaced_with(client.clone(), namespace, kind),
        None => Api::all_with(client.clone(), kind),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::testing::{Config, ConfigSpec, Thing, Use, thing};
    use memory_api_server::ApiServer;

    #[tokio::test]
    async fn a_configuration_with_many_users_is_counted_page_by_page() {
        const USERS: u16 = 250;
        let server = ApiServer::default();
        for number in 0..USERS {
            let path =
                |plural| format!("/apis/example.org/v1/namespaces/default/{plural}/{number}");
            let mut user = json!(thing(&number.to_string(), &[]));
            user["metadata"]["finalizers"] = json!([finalizer::MANAGED]);
            user["spec"] = json!({"providerConfigRef": {"kind": "Config", "name": "main"}});
            server.put(&path("things"), user);
            let usage = json!({
                "apiVersion": "example.org/v1", "kind": "Use",
                "metadata": {
                    "name": number.to_string(), "namespace": "default",
                    "labels": {CONFIG_LABEL: "main", CONFIG_KIND_LABEL: "Config"},
                    "ownerReferences": [{
                        "apiVersion": "example.org/v1", "kind": "Thing", "controller": true,
                        "name": number.to_string(), "uid": number.to_string(),
                    }],
                },
            });
            server.put(&path("uses"), usage);
        }
        let client = server.client();
        let managed = [ApiResource::erase::<Thing>(&())];
        let config = Config::new("main", ConfigSpec {});
        let all = i64::from(USERS);
        assert_eq!(users::<_, Use>(&config, &client).await.unwrap(), all);
        assert_eq!(references(&config, &client, &managed).await.unwrap(), all);
        assert!(server.longest_list() <= 100, "a page has them all");
    }
}
