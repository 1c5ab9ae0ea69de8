//! The objects that a requirement selects.

use function_runtime::requirement::{Requirement, Selector};
use serde_json::Value;

/// Crossplane's label on a composite with the namespace of its claim.
pub const CLAIM_NAMESPACE: &str = "crossplane.io/claim-namespace";

/// Whether a requirement selects an object of its kind.
pub fn selects(requirement: &Requirement, object: &Value) -> bool {
    let namespace = text(object, "/metadata/namespace");
    let name = text(object, "/metadata/name");
    let label = |key: &str| {
        let labels = object.pointer("/metadata/labels");
        labels.and_then(|labels| labels.get(key)?.as_str())
    };
    match &requirement.selector {
        Selector::Named(wanted) => name == wanted,
        Selector::NamedIn {
            namespace: place,
            name: wanted,
        } => namespace == place && name == wanted,
        Selector::Every { namespace: place } => {
            place.as_ref().is_none_or(|place| namespace == place)
        }
        Selector::Claimed { namespace: place } => label(CLAIM_NAMESPACE) == Some(place.as_str()),
        Selector::Labelled {
            namespace: place,
            key,
            value,
        } => namespace == place && label(key) == Some(value.as_str()),
    }
}

/// The text at a JSON pointer; empty if there is none.
pub(crate) fn text<'a>(object: &'a Value, pointer: &str) -> &'a str {
    let found = object.pointer(pointer).and_then(Value::as_str);
    found.unwrap_or_default()
}
