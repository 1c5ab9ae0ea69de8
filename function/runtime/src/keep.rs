//! Keeping an observed resource as it is, until the function knows more.
//!
//! Crossplane deletes a resource that is missing from desired state, and removes a field
//! that is missing from a desired resource. So a resource is kept by desiring it whole.

use serde_json::{Map, Value};

/// The prefix of the labels that this function sets.
const OWN_PREFIX: &str = "platform.acme.io/";

/// An observed resource as it must be desired to stay as it is.
///
/// Of its metadata only the identity and this function's own labels remain: an
/// apply that carries `managedFields` is refused, the other fields are the API
/// server's or Crossplane's, and other labels and annotations are other people's.
pub fn kept(observed: &Value) -> Value {
    let mut kept = Map::new();
    for (key, value) in observed.as_object().into_iter().flatten() {
        match key.as_str() {
            "status" => {}
            "metadata" => {
                kept.insert(key.clone(), identity(value));
            }
            _ => {
                kept.insert(key.clone(), value.clone());
            }
        }
    }
    Value::Object(kept)
}

fn identity(metadata: &Value) -> Value {
    let entries = ["name", "namespace"].into_iter().filter_map(|key| {
        let value = metadata.get(key)?;
        Some((key.to_owned(), value.clone()))
    });
    let mut identity: Map<String, Value> = entries.collect();
    let labels = metadata.get("labels").and_then(Value::as_object);
    let own: Map<String, Value> = labels
        .into_iter()
        .flatten()
        .filter(|(key, _)| key.starts_with(OWN_PREFIX))
        .map(|(key, value)| (key.clone(), value.clone()))
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
    fn a_held_resource_keeps_every_field_of_its_spec_and_nothing_that_an_apply_refuses() {
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
            kept(&observed),
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
