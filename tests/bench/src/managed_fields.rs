//! `metadata.managedFields` of a composed resource, in which the API server records the manager of
//! each field. Crossplane sends it to functions with the rest of the resource. It is the largest
//! part of a resource that no function reads, so the measured request must have it.

use serde_json::{Map, Value, json};

/// The time of the last write. No function reads it.
const WRITTEN: &str = "2026-11-20T10:00:45Z";

/// Adds the field to a resource. In it, Crossplane applies the spec and the metadata without the
/// finalizers. The provider updates the finalizers and, as a subresource, the status. The API
/// server sets fields such as the name and the UID, which have no manager.
pub(crate) fn add(resource: &mut Value) {
    let version = resource
        .get("apiVersion")
        .and_then(Value::as_str)
        .unwrap_or_default()
        .to_owned();
    let of = |part: &str| resource.get(part).map(owned).unwrap_or_default();
    let mut applied = of("metadata");
    let finalizers = applied.remove("f:finalizers");
    for by_the_server in [
        "f:name",
        "f:namespace",
        "f:uid",
        "f:resourceVersion",
        "f:generation",
        "f:creationTimestamp",
        "f:managedFields",
    ] {
        applied.remove(by_the_server);
    }
    let mut entries = vec![entry(
        "apiextensions.crossplane.io/composed/7d1f6b0c9e8a4f52",
        "Apply",
        &version,
        json!({"f:metadata": applied, "f:spec": of("spec")}),
    )];
    if let Some(finalizers) = finalizers {
        let fields = json!({"f:metadata": {"f:finalizers": finalizers}});
        entries.push(entry("provider", "Update", &version, fields));
    }
    if resource.get("status").is_some() {
        let mut status = entry(
            "provider",
            "Update",
            &version,
            json!({"f:status": of("status")}),
        );
        status["subresource"] = json!("status");
        entries.push(status);
    }
    resource["metadata"]["managedFields"] = Value::Array(entries);
}

fn entry(manager: &str, operation: &str, version: &str, mut fields: Value) -> Value {
    prune(&mut fields);
    json!({
        "manager": manager,
        "operation": operation,
        "apiVersion": version,
        "time": WRITTEN,
        "fieldsType": "FieldsV1",
        "fieldsV1": fields,
    })
}

/// Removes parts without fields: the API server does not record them.
fn prune(fields: &mut Value) {
    if let Some(fields) = fields.as_object_mut() {
        fields.retain(|_, of| of.as_object().is_none_or(|of| !of.is_empty()));
    }
}

/// The fields of an object in the form `FieldsV1`, in which each name has the prefix `f:`. In a
/// list with keys, each item has an entry with the prefix `k:` (by a key field) or `v:` (by its
/// value). Any other list has one manager as a whole.
fn owned(value: &Value) -> Map<String, Value> {
    let fields = value.as_object().into_iter().flatten();
    fields
        .map(|(name, value)| {
            let inner = match (name.as_str(), value) {
                (_, Value::Object(_)) => owned(value),
                ("conditions", Value::Array(items)) => keyed(items, "type"),
                ("ownerReferences", Value::Array(items)) => keyed(items, "uid"),
                ("finalizers", Value::Array(items)) => set(items),
                _ => Map::new(),
            };
            (format!("f:{name}"), Value::Object(inner))
        })
        .collect()
}

fn keyed(items: &[Value], key: &str) -> Map<String, Value> {
    let mut list = Map::from_iter([(".".to_owned(), json!({}))]);
    for item in items {
        let mut inner = owned(item);
        inner.insert(".".to_owned(), json!({}));
        let name = format!("k:{}", json!({key: item[key]}));
        list.insert(name, Value::Object(inner));
    }
    list
}

fn set(items: &[Value]) -> Map<String, Value> {
    let values = items.iter().map(|item| (format!("v:{item}"), json!({})));
    std::iter::once((".".to_owned(), json!({})))
        .chain(values)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_field_of_spec_and_status_has_a_manager() {
        let mut resource = json!({
            "apiVersion": "v1",
            "metadata": {"name": "a", "finalizers": ["x"], "labels": {"l": "1"}},
            "spec": {"size": {"minimum": 1}, "types": ["a", "b"]},
            "status": {"conditions": [{"type": "Ready", "status": "True"}]}
        });
        add(&mut resource);
        let fields = |n: usize| resource["metadata"]["managedFields"][n]["fieldsV1"].clone();
        assert_eq!(
            fields(0),
            json!({
                "f:metadata": {"f:labels": {"f:l": {}}},
                "f:spec": {"f:size": {"f:minimum": {}}, "f:types": {}}
            })
        );
        let finalizers = json!({".": {}, "v:\"x\"": {}});
        assert_eq!(
            fields(1),
            json!({"f:metadata": {"f:finalizers": finalizers}})
        );
        let ready = json!({".": {}, "f:type": {}, "f:status": {}});
        assert_eq!(
            fields(2),
            json!({"f:status": {"f:conditions": {".": {}, "k:{\"type\":\"Ready\"}": ready}}})
        );
    }
}
