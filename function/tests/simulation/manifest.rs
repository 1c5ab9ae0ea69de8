//! Reads and changes manifests by JSON pointer.

use serde_json::{Map, Value, json};

/// The annotation of a composed resource with its composition resource name.
pub const KEY: &str = "/metadata/annotations/crossplane.io~1composition-resource-name";
/// The annotation of a managed resource with its id in EC2.
pub const EXTERNAL_NAME: &str = "/metadata/annotations/crossplane.io~1external-name";
/// The time at which the deletion of an object began.
pub const DELETED: &str = "/metadata/deletionTimestamp";

/// A text that is not empty.
pub fn text<'a>(manifest: &'a Value, pointer: &str) -> Option<&'a str> {
    manifest
        .pointer(pointer)?
        .as_str()
        .filter(|text| !text.is_empty())
}

/// Sets a field. Creates the missing objects on the way. Returns whether the field changed.
pub fn set(manifest: &mut Value, pointer: &str, value: Value) -> bool {
    if manifest.pointer(pointer) == Some(&value) {
        return false;
    }
    let mut at = manifest;
    for token in pointer.split('/').skip(1) {
        if !at.is_object() {
            *at = Value::Object(Map::new());
        }
        let token = token.replace("~1", "/").replace("~0", "~");
        let Some(fields) = at.as_object_mut() else {
            return false;
        };
        at = fields.entry(token).or_insert(Value::Null);
    }
    *at = value;
    true
}

/// Removes a field. Returns whether it was there.
pub fn remove(manifest: &mut Value, pointer: &str) -> bool {
    let Some((parent, token)) = pointer.rsplit_once('/') else {
        return false;
    };
    let token = token.replace("~1", "/").replace("~0", "~");
    let parent = manifest.pointer_mut(parent);
    let fields = parent.and_then(Value::as_object_mut);
    fields.is_some_and(|fields| fields.remove(&token).is_some())
}

/// Removes the objects around a removed field that have no other field, as a server-side apply does.
pub fn remove_empty_parents(manifest: &mut Value, pointer: &str) {
    let mut at = pointer;
    while let Some((parent, _)) = at.rsplit_once('/') {
        let fields = manifest.pointer(parent).and_then(Value::as_object);
        if fields.is_none_or(|fields| !fields.is_empty()) || !remove(manifest, parent) {
            return;
        }
        at = parent;
    }
}

/// The pointers of all values that are not objects with fields. A list counts as one value.
pub fn leaves(manifest: &Value) -> Vec<String> {
    let mut found = Vec::new();
    collect(manifest, String::new(), &mut found);
    found
}

fn collect(value: &Value, at: String, found: &mut Vec<String>) {
    match value {
        Value::Object(fields) if !fields.is_empty() => {
            for (name, value) in fields {
                let token = name.replace('~', "~0").replace('/', "~1");
                collect(value, format!("{at}/{token}"), found);
            }
        }
        _ => found.push(at),
    }
}

/// Merges fields into a manifest, as a server-side apply does.
pub fn merge(manifest: &mut Value, fields: &Value) {
    match (manifest, fields) {
        (Value::Object(manifest), Value::Object(fields)) => {
            for (name, value) in fields {
                merge(manifest.entry(name.clone()).or_insert(Value::Null), value);
            }
        }
        (manifest, fields) => *manifest = fields.clone(),
    }
}

/// The condition of a type: its status, reason and message.
pub fn condition<'a>(manifest: &'a Value, type_: &str) -> Option<(&'a str, &'a str, &'a str)> {
    let conditions = manifest.pointer("/status/conditions")?.as_array()?;
    let of_type = conditions.iter().find(|c| c["type"] == type_)?;
    let field = |name: &str| of_type[name].as_str().unwrap_or_default();
    Some((field("status"), field("reason"), field("message")))
}

/// Whether the provider reports no problem with the resource.
pub fn is_well(manifest: &Value) -> bool {
    let is = |type_, status| condition(manifest, type_).is_some_and(|c| c.0 == status);
    is("Ready", "True")
        && is("Synced", "True")
        && !is("LastAsyncOperation", "False")
        && manifest.pointer(DELETED).is_none()
}

/// A condition as controllers write it.
pub fn written(type_: &str, status: bool, reason: &str, message: &str) -> Value {
    stated(
        type_,
        if status { "True" } else { "False" },
        reason,
        message,
    )
}

/// A condition with any status.
pub fn stated(type_: &str, status: &str, reason: &str, message: &str) -> Value {
    json!({
        "type": type_,
        "status": status,
        "reason": reason,
        "message": message,
        "lastTransitionTime": "2026-11-20T10:00:05Z",
    })
}
