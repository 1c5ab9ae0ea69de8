//! The composed resources of a composite.

use std::collections::BTreeMap;

use serde_json::Value;

/// Crossplane's annotation on a composed resource with its name in the Composition.
const RESOURCE_NAME: &str = "crossplane.io/composition-resource-name";

/// The references of a composite to its composed resources.
pub fn references(composite: &Value) -> &[Value] {
    let listed = composite
        .pointer("/spec/resourceRefs")
        .or_else(|| composite.pointer("/spec/crossplane/resourceRefs"));
    listed.and_then(Value::as_array).map_or(&[], Vec::as_slice)
}

/// Composed resources by composition resource name. Objects without such a name are left out.
pub fn by_name(resources: impl IntoIterator<Item = Value>) -> BTreeMap<String, Value> {
    let named = resources.into_iter().filter_map(|resource| {
        let annotations = resource.pointer("/metadata/annotations");
        let name = annotations.and_then(|all| all.get(RESOURCE_NAME)?.as_str());
        Some((name?.to_owned(), resource))
    });
    named.collect()
}
