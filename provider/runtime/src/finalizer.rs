//! Finalizers, which keep a resource until it is cleaned up.

use std::fmt::Debug;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::api::{Api, Patch, PatchParams};
use serde::de::DeserializeOwned;
use serde_json::json;

/// On every managed resource, until the external resource is gone.
pub const MANAGED: &str = "finalizer.managedresource.crossplane.io";
/// On every provider configuration, while a managed resource uses it.
pub const IN_USE: &str = "in-use.crossplane.io";

/// Whether a finalizer is there.
pub fn is_present(meta: &ObjectMeta, name: &str) -> bool {
    meta.finalizers.iter().flatten().any(|f| f == name)
}

/// The finalizers beside one: others who are not finished with the resource.
pub fn others<'a>(meta: &'a ObjectMeta, name: &str) -> Vec<&'a str> {
    let all = meta.finalizers.iter().flatten().map(String::as_str);
    all.filter(|f| *f != name).collect()
}

/// Adds a finalizer. Answers the resource as it is then.
pub async fn add<K>(api: &Api<K>, meta: &ObjectMeta, name: &str) -> kube::Result<K>
where
    K: Clone + DeserializeOwned + Debug,
{
    let mut finalizers = others(meta, name);
    finalizers.push(name);
    write(api, meta, &finalizers).await
}

/// Removes a finalizer; the resource may be gone after that.
pub async fn remove<K>(api: &Api<K>, meta: &ObjectMeta, name: &str) -> kube::Result<K>
where
    K: Clone + DeserializeOwned + Debug,
{
    write(api, meta, &others(meta, name)).await
}

/// A merge patch replaces lists whole, so it names the version it was made
/// from: a finalizer that somebody added meanwhile is not lost.
async fn write<K>(api: &Api<K>, meta: &ObjectMeta, finalizers: &[&str]) -> kube::Result<K>
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
