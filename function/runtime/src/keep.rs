//! Keeps an observed resource as it is while the function lacks information.
//!
//! Crossplane deletes an observed resource that is missing in desired state. It also removes fields
//! that are missing in a desired resource. A resource is therefore kept by desiring all of it.

use serde_json::{Map, Value};

use crate::json::Json;

/// Prefix of the labels that this function sets.
const OWN_PREFIX: &str = "platform.acme.io/";

/// An observed resource as it must be desired to stay as it is.
///
/// Its metadata is reduced to name, namespace and this function's own labels. The API server
/// refuses an apply with `managedFields`. The other metadata fields belong to the API server or to
/// Crossplane, and other labels and annotations belong to other writers.
pub fn kept(observed: &Json<'_>) -> Value {
    let mut kept = Map::new();
    for (key, value) in observed.fields() {
        match key {
            "status" => {}
            "metadata" => {
                kept.insert(key.to_owned(), identity(value));
            }
            _ => {
                kept.insert(key.to_owned(), value.into());
            }
        }
    }
    Value::Object(kept)
}

fn identity(metadata: &Json<'_>) -> Value {
    let entries = ["name", "namespace"].into_iter().filter_map(|key| {
        let value = metadata.get(key)?;
        Some((key.to_owned(), value.into()))
    });
    let mut identity: Map<String, Value> = entries.collect();
    let labels = metadata.get("labels");
    let own: Map<String, Value> = labels
        .into_iter()
        .flat_map(Json::fields)
        .filter(|(key, _)| key.starts_with(OWN_PREFIX))
        .map(|(key, value)| (key.to_owned(), value.into()))
        .collect();
    if !own.is_empty() {
        identity.insert("labels".to_owned(), Value::Object(own));
    }
    Value::Object(identity)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_kept_resource_has_its_whole_spec_and_no_metadata_of_others() {
        let observed = json!({
            "apiVersion": "gpu.platform.acme.io/v1alpha1",
            "kind": "SpotPool",
            "metadata": {
                "name": "alice-vision-x7k2p-6c8e5d4f0a1b",
                "namespace": "team-vision",
                "generateName": "alice-vision-x7k2p-",
                "uid": "1", "resourceVersion": "2", "generation": 3,
                "creationTimestamp": "2026-11-20T10:00:00Z",
                "managedFields": [{"manager": "crossplane"}],
                "ownerReferences": [{"kind": "GpuDevWorkspace"}],
                "finalizers": ["finalizer.managedresource.crossplane.io"],
                "labels": {"crossplane.io/composite": "alice-vision-x7k2p"},
                "annotations": {"crossplane.io/composition-resource-name": "pool"}
            },
            "spec": {"managementPolicies": ["*"], "forProvider": {"a": {"b": [1, 2]}}},
            "status": {"conditions": []}
        });
        assert_eq!(
            kept(&observed.into()),
            json!({
                "apiVersion": "gpu.platform.acme.io/v1alpha1",
                "kind": "SpotPool",
                "metadata": {
                    "name": "alice-vision-x7k2p-6c8e5d4f0a1b",
                    "namespace": "team-vision"
                },
                "spec": {"managementPolicies": ["*"], "forProvider": {"a": {"b": [1, 2]}}}
            })
        );
    }
}
