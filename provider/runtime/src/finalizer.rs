//! Finalizers, which keep a resource until it is cleaned up.

use std::collections::BTreeMap;
use std::fmt::Debug;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::api::{Api, Patch, PatchParams};
use serde::de::DeserializeOwned;
use serde_json::json;

/// The finalizer of every managed resource. It stays until the external resource is gone.
pub const MANAGED: &str = "finalizer.managedresource.crossplane.io";
/// The finalizer of every provider configuration. It stays while a managed resource uses the
/// configuration.
pub const IN_USE: &str = "in-use.crossplane.io";

/// Whether the resource has a finalizer.
pub fn is_present(meta: &ObjectMeta, name: &str) -> bool {
    meta.finalizers.iter().flatten().any(|f| f == name)
}

/// The finalizers except `name`: other controllers still have to clean up.
pub fn others<'a>(meta: &'a ObjectMeta, name: &str) -> Vec<&'a str> {
    let all = meta.finalizers.iter().flatten().map(String::as_str);
    all.filter(|f| *f != name).collect()
}

/// Adds a finalizer and annotations in one write, and returns the resource after that.
pub async fn add<K>(
    api: &Api<K>,
    meta: &ObjectMeta,
    name: &str,
    annotations: &[(&str, &str)],
) -> kube::Result<K>
where
    K: Clone + DeserializeOwned + Debug,
{
    let mut finalizers = others(meta, name);
    finalizers.push(name);
    write(api, meta, &finalizers, annotations).await
}

/// Removes a finalizer. The resource may be gone after that.
pub async fn remove<K>(api: &Api<K>, meta: &ObjectMeta, name: &str) -> kube::Result<K>
where
    K: Clone + DeserializeOwned + Debug,
{
    write(api, meta, &others(meta, name), &[]).await
}

/// A merge patch replaces whole lists. So it names the version that it was made from, and a
/// finalizer that another client added meanwhile is not lost.
async fn write<K>(
    api: &Api<K>,
    meta: &ObjectMeta,
    finalizers: &[&str],
    annotations: &[(&str, &str)],
) -> kube::Result<K>
where
    K: Clone + DeserializeOwned + Debug,
{
    let name = meta.name.as_deref().unwrap_or_default();
    let annotations: BTreeMap<_, _> = annotations.iter().copied().collect();
    let patch = json!({"metadata": {
        "resourceVersion": meta.resource_version,
        "finalizers": finalizers,
        "annotations": annotations,
    }});
    api.patch(name, &PatchParams::default(), &Patch::Merge(patch))
        .await
}
