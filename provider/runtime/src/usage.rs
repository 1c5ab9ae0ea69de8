//! Records which managed resource uses which provider configuration.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use api::managed::ProviderConfigReference;
use jiff::{SignedDuration, Timestamp};
use k8s_openapi::NamespaceResourceScope;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;
use kube::api::{Api, Patch, PatchParams};
use kube::{Client, Resource};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

/// The label with the configuration's name.
pub const CONFIG_LABEL: &str = "crossplane.io/provider-config";
/// The label with the configuration's kind.
pub const CONFIG_KIND_LABEL: &str = "crossplane.io/provider-config-kind";

/// How long this process assumes that a usage which it wrote still exists. A usage that another
/// client deletes is written again after this time.
const BELIEVED: SignedDuration = SignedDuration::from_hours(1);

/// The usages that this process wrote recently. Most reconciles therefore write none.
#[derive(Debug, Default)]
pub struct Usages(Mutex<BTreeMap<String, (ProviderConfigReference, Timestamp)>>);

impl Usages {
    /// Writes the usage of `resource` before the configuration's credentials are read. The
    /// resource's UID is the usage's name, and the resource owns it. `U` is the provider's kind of
    /// usage.
    ///
    /// The usage does not block the deletion of its owner. Otherwise garbage collection in the
    /// foreground would delete the usage first, and with it the configuration, while the external
    /// resource still has to be deleted.
    ///
    /// # Errors
    ///
    /// The API server refused.
    pub async fn track<U, K>(
        &self,
        client: &Client,
        manager: &str,
        resource: &K,
        reference: &ProviderConfigReference,
        now: Timestamp,
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
        if self.is_known(&owner.uid, reference, now) {
            return Ok(());
        }
        let namespace = resource.meta().namespace.clone().unwrap_or_default();
        let api: Api<U> = Api::namespaced(client.clone(), &namespace);
        let usage = usage_of::<U>(&owner, &namespace, reference);
        let apply = PatchParams::apply(manager).force();
        api.patch(&owner.uid, &apply, &Patch::Apply(&usage)).await?;
        self.lock().insert(owner.uid, (reference.clone(), now));
        Ok(())
    }

    /// Forgets the usage of a resource that is gone.
    pub fn forget(&self, uid: &str) {
        self.lock().remove(uid);
    }

    fn is_known(&self, uid: &str, reference: &ProviderConfigReference, now: Timestamp) -> bool {
        let known = self.lock();
        known
            .get(uid)
            .is_some_and(|(of, at)| of == reference && now.duration_since(*at) < BELIEVED)
    }

    fn lock(
        &self,
    ) -> std::sync::MutexGuard<'_, BTreeMap<String, (ProviderConfigReference, Timestamp)>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
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
    use crate::testing::{Use, thing};
    use memory_api_server::ApiServer;

    #[tokio::test]
    async fn a_configuration_is_in_use_before_its_credentials_are_read() {
        let (server, owner) = (ApiServer::default(), thing("a", &[]));
        let reference = ProviderConfigReference::default();
        let (usages, now) = (Usages::default(), Timestamp::UNIX_EPOCH);
        let client = server.client();
        usages
            .track::<Use, _>(&client, "provider", &owner, &reference, now)
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
    #[tokio::test]
    async fn a_usage_is_not_written_at_every_reconcile_and_comes_back_when_it_was_deleted() {
        let (server, owner) = (ApiServer::default(), thing("a", &[]));
        let (usages, client) = (Usages::default(), server.client());
        let path = "/apis/example.org/v1/namespaces/default/uses/uid-of-a";
        let track = async |name: &str, after: SignedDuration| {
            let reference = ProviderConfigReference {
                name: name.to_owned(),
                ..ProviderConfigReference::default()
            };
            let now = Timestamp::UNIX_EPOCH + after;
            usages
                .track::<Use, _>(&client, "provider", &owner, &reference, now)
                .await
                .unwrap();
        };
        track("default", SignedDuration::ZERO).await;
        server.remove(path);
        track("default", SignedDuration::from_secs(1)).await;
        assert!(server.object(path).is_none(), "it is written all the time");
        track("other", SignedDuration::from_secs(2)).await;
        let usage = server.object(path).expect("another configuration is told");
        assert_eq!(usage["metadata"]["labels"][CONFIG_LABEL], "other");
        server.remove(path);
        track("other", BELIEVED + SignedDuration::from_secs(2)).await;
        assert!(server.object(path).is_some(), "a deleted usage comes back");
    }
}
