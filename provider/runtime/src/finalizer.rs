//! The finalizer that keeps a managed resource until it is cleaned up.

use std::fmt::Debug;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::api::{Api, Patch, PatchParams};
use serde::de::DeserializeOwned;
use serde_json::json;

/// Crossplane's own, on every managed resource.
pub const NAME: &str = "finalizer.managedresource.crossplane.io";

/// Whether it is there.
pub fn is_present(meta: &ObjectMeta) -> bool {
    let finalizers = meta.finalizers.as_deref().unwrap_or_default();
    finalizers.iter().any(|f| f == NAME)
}

/// Adds it. Answers the resource as it is then.
pub async fn add<K>(api: &Api<K>, meta: &ObjectMeta) -> kube::Result<K>
where
    K: Clone + DeserializeOwned + Debug,
{
    let mut finalizers = meta.finalizers.clone().unwrap_or_default();
    finalizers.push(NAME.to_owned());
    write(api, meta, &finalizers).await
}

/// Removes it; the resource may be gone after that.
pub async fn remove<K>(api: &Api<K>, meta: &ObjectMeta) -> kube::Result<K>
where
    K: Clone + DeserializeOwned + Debug,
{
    let others = meta.finalizers.iter().flatten().filter(|f| *f != NAME);
    let finalizers: Vec<String> = others.cloned().collect();
    write(api, meta, &finalizers).await
}

/// A merge patch replaces lists whole, so it names the version it was made
/// from: a finalizer that somebody added meanwhile is not lost.
async fn write<K>(api: &Api<K>, meta: &ObjectMeta, finalizers: &[String]) -> kube::Result<K>
where
    K: Clone + DeserializeOwned + Debug,
{
    let name = meta.name.as_deref().unwrap_or_default();
    let patch = json!({"metadata": {
        "resourceVersion": meta.resource_version,
        "finalizers": finalizers,
    }});
    api.patch(name, &PatchParams::default(), &Patch::Merge(patch))
        .await
}
